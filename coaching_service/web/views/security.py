"""How users sign in: the second factor and the passkeys of a coach or client, with the same pages for both."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import segno
from markupsafe import Markup

from coaching_service.core.auth import Access, customer, session_only, with_password_only
from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest, InvalidFields
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Text
from coaching_service.people.second_factor import models, passkeys
from coaching_service.people.second_factor import service as second_factor
from coaching_service.people.sessions import own_second_factor, provider_accounts
from coaching_service.web import browser_sessions
from coaching_service.web.pages import Handler, Pages, Redirect, Render

pages = Pages("")
_REPEATED = "Two-step sign-in is on. The recovery codes are shown once: set it up again for new ones."
_CREDENTIAL = input_of(models.NewCredential, name="NewCredentialInput")()


class _PasskeyForm(TypedDict):
    name: Annotated[str, Text(max_length=models.MAX_NAME)]
    credential: Annotated[str, Text(max_length=browser_sessions.MAX_ANSWER)]


def _declare(prefix: str, access: Access, template: str) -> None:
    of = pages.below(prefix)

    @of.get("/security", access=access, template=template)
    async def security_page(ctx: Context) -> dict[str, Any]:
        """What the user signs in with, the secret that is being set up, and what can be changed."""
        is_recent = await own_second_factor.is_recent(ctx)
        pending = await second_factor.find_pending(ctx) if is_recent else None
        return {
            "security_path": f"{prefix}/security",
            "factor": await second_factor.get(ctx, ctx.caller.id),
            "is_recent": is_recent,
            "is_missing": ctx.caller.company.requires_second_factor and not ctx.caller.has_second_factor,
            "pending": pending,
            "qr_code": _draw(pending) if pending else None,
            "recovery_codes": None,
            "provider": ctx.services.open_id.registration.name if ctx.services.open_id else None,
            "provider_account": await provider_accounts.find_own(ctx),
            "passkeys": [passkeys.to_passkey(each) for each in await passkeys.list_of(ctx, ctx.caller.id)],
            "has_passkeys": passkeys.relying_party(ctx.services) is not None,
        }

    @of.post("/security/begin", access=access, on=security_page)
    async def begin_second_factor(ctx: Context) -> Redirect:
        """Set up an authenticator application."""
        await own_second_factor.begin(ctx)
        return Redirect(f"{prefix}/security#set-up")

    @of.post("/security/confirm", access=access, form=models.CodeToConfirm, on=security_page, request_class="unlimited")
    async def confirm_second_factor(ctx: Context, form: models.CodeToConfirm) -> Render | Redirect:
        """Put the application into use, and show recovery codes once."""
        codes = await own_second_factor.confirm(ctx, form["code"])
        return Render({"recovery_codes": codes["recoveryCodes"]}, _REPEATED)

    @of.post("/security/remove", access=access, on=security_page, deletes=True)
    async def remove_second_factor(ctx: Context) -> Redirect:
        """Remove the second factor."""
        await own_second_factor.remove(ctx)
        return Redirect(f"{prefix}/security", "Two-step sign-in is off.")

    _declare_other_ways(of, access, security_page)


def _declare_other_ways(of: Pages, access: Access, security_page: Handler) -> None:
    path = f"{of.prefix}/security"

    @of.post("/security/passkeys/begin", access=access, on=security_page, idempotent=True)
    async def begin_passkey(ctx: Context) -> Redirect:
        """Return to the script of the page what the browser needs to create a passkey."""
        options = await own_second_factor.begin_passkey(ctx)
        return Redirect(path, data=dict(options))

    @of.post("/security/passkeys", access=access, form=_PasskeyForm, on=security_page, request_class="unlimited")
    async def add_passkey(ctx: Context, form: _PasskeyForm) -> Redirect:
        """Add a passkey that the browser has created."""
        try:
            credential = browser_sessions.read_answer(_CREDENTIAL, form["credential"])
            await own_second_factor.add_passkey(ctx, form["name"], credential)
        except InvalidFields:
            raise BadRequest("The passkey was not accepted. Try again.") from None
        return Redirect(path, f"{form['name']} was added. You can sign in with it.")

    @of.post("/security/passkeys/{passkeyId}/remove", access=access, on=security_page, deletes=True)
    async def remove_passkey(ctx: Context, passkey_id: ObjectId) -> Redirect:
        """Remove a passkey."""
        await own_second_factor.remove_passkey(ctx, passkey_id)
        return Redirect(path, "The passkey was removed.")

    @of.post("/security/disconnect", access=access, on=security_page, deletes=True)
    async def unlink_provider_account(ctx: Context) -> Redirect:
        """Remove the link to the account at the OpenID provider."""
        await provider_accounts.unlink(ctx)
        return Redirect(path, "Disconnected. You sign in with your password.")


def _draw(secret: models.AuthenticatorSecret) -> Markup:
    """Return a QR code of a secret as a picture within a page."""
    return Markup(segno.make(secret["otpauthUrl"], micro=False).svg_inline(omitsize=True, light="#fff"))  # noqa: S704 - has no text


_declare("/app/settings", with_password_only(session_only()), "settings/security.html")
_declare("/train/settings", customer(), "train/settings/security.html")
