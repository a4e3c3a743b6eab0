"""Signing in, up and out, password resets, what e-mails to clients link to, the OpenID provider, and second factors."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any, TypedDict
from urllib.parse import urlencode

import segno
import structlog
from aiohttp import web
from markupsafe import Markup
from marshmallow import fields

from coaching_service.core import auth, errors
from coaching_service.core.database.context import Context, Services
from coaching_service.core.dates import TIMEZONES
from coaching_service.core.fields import Default, input_of
from coaching_service.core.http.responses import Download
from coaching_service.core.open_id import OpenIdProvider, ProviderError, ProviderUnavailable
from coaching_service.core.validation import Text, Timezone
from coaching_service.people import customer_access, own_profile, second_factor
from coaching_service.people.identities import service as identities
from coaching_service.people.notifications import COMPANY
from coaching_service.people.sessions import credentials
from coaching_service.people.sessions import models as session_models
from coaching_service.people.sessions import service as sessions
from coaching_service.web import browser_sessions, static_files
from coaching_service.web.pages import Pages, Redirect, Render
from coaching_service.web.rendering import CLIENT_LAYOUT

pages = Pages("")

_coach = pages.below("/app")


class _Next(TypedDict):
    next: Annotated[str | None, Text(max_length=4000)]
    again: Annotated[bool, Default(False)]


class TokenQuery(TypedDict):
    """The token of a link in an e-mail."""

    token: Annotated[str, Text(max_length=500), Default("")]


class _SignUp(session_models.SignUp):
    timezone: Annotated[str | None, Timezone()]


@_coach.get("/sign-in", access=auth.public(), template="sign_in/sign_in.html")
async def sign_in_page(ctx: Context, query: _Next) -> dict[str, Any] | Redirect:
    """The sign-in page of coaches and clients; a signed-in user is redirected, unless to sign in again."""
    if ctx.principal is not None and not query["again"]:
        return Redirect(browser_sessions.landing_path("coach" if ctx.principal.is_coach else "customer", query["next"]))
    next_path = browser_sessions.local_path(query["next"])
    is_for_client = browser_sessions.is_client_path(next_path)
    look = {"layout": CLIENT_LAYOUT} if is_for_client else {}
    again = {"again": "true"} if query["again"] else {}
    following = urlencode({**again, **({"next": next_path} if next_path != "/app" else {})})
    return {
        "next": next_path,
        "query": f"?{following}" if following else "",
        "is_again": query["again"],
        "challenge": None,
        "methods": None,
        "provider": ctx.services.open_id.registration.name if ctx.services.open_id else None,
        "has_passkeys": second_factor.relying_party(ctx.services) is not None,
        "registration": ctx.services.registration,
        "is_for_client": is_for_client,
        **look,
    }


@_coach.post("/sign-in", access=auth.public(), on=sign_in_page, request_class="unlimited", with_request=True)
async def sign_in(
    ctx: Context, query: _Next, form: session_models.Credentials, request: web.Request
) -> Redirect | Render:
    """Sign in, with the same limits on attempts as REST; a client lands on /train, a coach on /app.

    A user with a second factor is asked for it.
    """
    try:
        session = await sessions.sign_in_web(
            ctx,
            form["email"],
            form["password"],
            ctx.device,
            browser_sessions.device_tokens_of(ctx.services, request),
        )
    except errors.SecondFactorRequired as required:
        return Render(required.details, "Sign in again.")
    return await _land(ctx, query, session, request)


@_coach.post(
    "/sign-in/second-factor", access=auth.public(), on=sign_in_page, request_class="unlimited", with_request=True
)
async def answer_challenge(
    ctx: Context, query: _Next, form: browser_sessions.CodeForm, request: web.Request
) -> Redirect:
    """Confirm a sign-in with a code of the application, a recovery code or a passkey; or sign in with a passkey."""
    try:
        session = await browser_sessions.answer_challenge(ctx, form, ctx.device)
    except errors.SignInRejected as rejected:
        if rejected.code != "CHALLENGE_REJECTED":
            raise
        again = f"?{urlencode({'next': query['next']})}" if query["next"] else ""
        return Redirect(f"/app/sign-in{again}", "That took too long. Sign in again.")
    return await _land(ctx, query, session, request)


async def _land(ctx: Context, query: _Next, session: sessions.StartedSession, request: web.Request) -> Redirect:
    """Return where a user goes after signing in, whose account at the provider is linked if it waits for that."""
    path = browser_sessions.landing_path(session.kind, query["next"])
    linkable = browser_sessions.provider_state_of(ctx.services, request)
    user = await sessions.find_web_principal(ctx.services, session.token) if linkable else None
    if user is None or not await credentials.link_account(ctx.acting_as(user), linkable):
        return Redirect(path, session=session, provider_state="" if linkable else None)
    name = ctx.services.open_id.registration.name if ctx.services.open_id else ""
    return Redirect(path, f"Connected. Next time {name} alone signs you in.", session=session, provider_state="")


@_coach.get("/sign-up", access=auth.public(), template="sign_in/sign_up.html")
async def sign_up_page(ctx: Context) -> dict[str, Any] | Redirect:
    """The sign-up page."""
    if ctx.principal is not None:
        return Redirect(browser_sessions.home_of(ctx.principal))
    return {"registration": ctx.services.registration}


@_coach.post("/sign-up", access=auth.public(), on=sign_up_page, request_class="unlimited")
async def sign_up(ctx: Context, form: _SignUp) -> Redirect:
    """Create a company and sign its owner in."""
    company, name, timezone = form["companyName"], form["name"], form["timezone"] or "UTC"
    start = sessions.start_for_coach
    session = await sessions.register(ctx, company, name, form["email"], form["password"], start, timezone)
    return Redirect("/app", f"Welcome, {name}. {company} is ready.", session=session)


@_coach.get("/confirm-email", access=auth.public(), template="sign_in/confirm_email.html")
async def confirm_email_page(_: Context, query: TokenQuery) -> dict[str, Any]:
    """The page to confirm an e-mail address, linked from the e-mail."""
    return {"token": query["token"]}


_coach.act(
    "/confirm-email",
    "confirm_email",
    sessions.confirm_email,
    "Your email address is confirmed.",
    access=auth.public(),
    on=confirm_email_page,
    to="/app",
    form=session_models.EmailConfirmation,
    fields=("token",),
)


@_coach.post("/confirm-email/resend", access=auth.session_only(), on=None)
async def resend_confirmation(ctx: Context) -> Redirect:
    """Send another link to confirm the e-mail address."""
    is_sent = await sessions.send_again(ctx)
    return Redirect("/app", "We sent you a new link." if is_sent else "Your email address is confirmed.")


@_coach.post("/sign-out", access=auth.public(), on=None)
async def sign_out(ctx: Context) -> Redirect:
    """End the session; a client sees the sign-in page of clients then."""
    is_client = ctx.principal is not None and not ctx.principal.is_coach
    if ctx.principal is not None:
        await sessions.sign_out(ctx)
    return Redirect(
        "/app/sign-in?next=/train" if is_client else "/app/sign-in", "You are signed out.", ends_session=True
    )


@_coach.get("/forgotten-password", access=auth.public(), template="sign_in/forgotten_password.html")
async def forgotten_password_page(_: Context) -> dict[str, Any]:
    """The page to request a password reset."""
    return {}


@_coach.post("/forgotten-password", access=auth.public(), on=forgotten_password_page, with_request=True)
async def request_password_reset(
    ctx: Context, form: session_models.ForgottenPassword, request: web.Request
) -> Redirect:
    """Send an e-mail with a link if the address has an account; the response is the same if it has none."""
    await credentials.request_password_reset(
        ctx, form["email"], browser_sessions.device_tokens_of(ctx.services, request)
    )
    return Redirect(
        "/app/sign-in", "If the address has an account, we sent an email with a link. It expires in an hour."
    )


def declare_password_reset(of: Pages, sign_in_path: str) -> None:
    """Declare the page to choose a new password, linked from an email, and where the user signs in with it."""

    @of.get("/reset-password", access=auth.public(), query=TokenQuery, template="sign_in/reset_password.html")
    async def reset_password_page(ctx: Context, query: TokenQuery) -> dict[str, Any]:
        """The page to choose a new password."""
        user, api_keys = await credentials.find_user(ctx, query["token"])
        known = {"company_name": user.company.name} if user else {}
        return {"token": query["token"], "api_keys": api_keys, **known}

    @of.post(
        "/reset-password",
        access=auth.public(),
        form=session_models.PasswordReset,
        on=reset_password_page,
        request_class="unlimited",
    )
    async def reset_password(ctx: Context, form: session_models.PasswordReset) -> Redirect:
        """Set the password; every session of the account ends."""
        new_password = await credentials.reset_password(ctx, form["token"], form["password"], form["deleteApiKeys"])
        return Redirect(
            sign_in_path,
            f"Password changed. Sign in with your new password.{describe_api_keys(new_password)}",
            ends_session=True,
            device_token=new_password["deviceToken"],
        )


declare_password_reset(_coach, "/app/sign-in")


def describe_api_keys(new_password: session_models.NewPassword) -> str:
    """Return a sentence on the API keys that a user still has; empty without any."""
    number = new_password["apiKeys"]
    if number == 0:
        return ""
    return " Your API key still works." if number == 1 else f" Your {number} API keys still work."


@_coach.get("/first-access", access=auth.public(), template="")
async def old_first_access_page(_: Context, query: TokenQuery) -> Redirect:
    """Redirect from the address in older invitations."""
    return Redirect("/train/first-access?" + urlencode({"token": query["token"]}))


_START_PAGES = (
    (auth.CUSTOMERS.VIEW, "/app/attention"),
    (auth.EXERCISES.VIEW, "/app/exercises"),
    (auth.PROGRAMS.VIEW, "/app/programs"),
)


@_coach.get("", access=auth.coach(), template="")
async def home(ctx: Context) -> Redirect:
    """Redirect to the first area that the coach has permission to view."""
    permissions = ctx.caller.permissions
    return Redirect(next((path for permission, path in _START_PAGES if permission in permissions), "/app/settings"))


# --- What e-mails to clients link to: the first access, declining invitations, and a new password ---------------------


_client = pages.below("/train")


class _ManifestQuery(TypedDict):
    """The company that the page of a visitor knows, sealed."""

    company: Annotated[str, Text(max_length=2000), Default("")]


@_client.get("/manifest.webmanifest", access=auth.public(), template="")
async def manifest(ctx: Context, query: _ManifestQuery) -> Download:
    """The web application manifest, with the name of the company of the client, or of the link that was opened."""
    known = ctx.services.vault.open_value(COMPANY, query["company"])
    content = static_files.create_manifest(ctx.principal.company.name if ctx.principal else known or "Training")

    async def read(start: int, end: int) -> AsyncGenerator[bytes, None]:
        yield content[start:end]

    return Download("application/manifest+json", "train.webmanifest", read, len(content), inline=True)


class _FirstAccessForm(customer_access.FirstAccess):
    timezone: Annotated[str | None, fields.String()]  # the browser's, which is ignored if it is unknown here


@_client.get("/first-access", access=auth.public(), template="train/first_access.html")
async def first_access_page(ctx: Context, query: TokenQuery) -> dict[str, Any] | Redirect:
    """The page where an invited client chooses a password; a used link opens the application if it can."""
    client = await customer_access.find_invited(ctx, query["token"])
    if client is None and ctx.principal is not None:
        return Redirect(browser_sessions.home_of(ctx.principal))
    known = {"company_name": client.company.name} if client else {}
    return {"token": query["token"], "is_valid": client is not None, **known}


@_client.post("/first-access", access=auth.public(), on=first_access_page, request_class="unlimited")
async def first_access(ctx: Context, form: _FirstAccessForm) -> Redirect:
    """Set the client's password and sign the client in; without a time zone the client gets the browser's."""
    try:
        client_ctx = await customer_access.choose_password(ctx, form["token"], form["password"], form.get("email"))
    except errors.SecondFactorRequired:
        return Redirect("/app/sign-in?next=/train", "Your password is set. Sign in with it.")
    if client_ctx.caller.timezone is None and form["timezone"] in TIMEZONES:
        await own_profile.update_own_profile(client_ctx, {"timezone": form["timezone"]})
    session = await sessions.start_for_customer(client_ctx, client_ctx.caller.id, ctx.device)
    return Redirect("/train", f"Welcome, {client_ctx.caller.name}.", session=session)


@_client.get("/no-invitations", access=auth.public(), template="sign_in/no_invitations.html")
async def decline_page(ctx: Context, query: customer_access.DeclineLink) -> customer_access.DeclinePage:
    """The page to decline further invitations, with the name of the company."""
    return {"token": query["token"], "company": await customer_access.find_company_name(ctx.services, query["token"])}


_client.act(
    "/no-invitations",
    "decline",
    customer_access.decline,
    "You will receive no more invitations from them.",
    access=auth.public(),
    on=decline_page,
    form=customer_access.DeclineLink,
    fields=("token",),
    one_click=True,
)


declare_password_reset(_client, "/app/sign-in?next=/train")


# --- Signing in at the OpenID provider of the operator: to it, and back with its answer -------------------------------
# What belongs to one attempt is in a cookie of the browser, encrypted. The state, the nonce and the verifier of PKCE
# are signatures of its number, so that an answer is accepted by the browser that has asked, and once.


log = structlog.get_logger("coaching_service.open_id")
_provider = pages.below("/auth/oidc")
_ATTEMPT = "sign-in at the OpenID provider"
_TOO_LATE = "That took too long, or was started in another window. Nothing was changed. Try again."
_NOT_REACHED = "{} cannot be reached. Sign in with your password, or try again later."
_REFUSED = "{} did not sign you in here. Sign in with your password, or try again."
_UNKNOWN = "There is no account here for you. Ask the owner of your company for an invitation."
_CONNECT = "Sign in once with your password to connect {}. After that, {} alone signs you in."


class _Start(TypedDict):
    next: Annotated[str | None, Text(max_length=4000)]


class _Answer(TypedDict):
    state: Annotated[str, Text(max_length=500), Default("")]
    code: Annotated[str, Text(max_length=4000), Default("")]
    iss: Annotated[str | None, Text(max_length=4000)]


@_provider.get("/start", access=auth.public(), template="", request_class="unlimited")
async def start_provider_sign_in(ctx: Context, query: _Start) -> Redirect:
    """Redirect to the provider."""
    provider = _require_provider(ctx.services)
    number, path = auth.new_token(), browser_sessions.local_path(query["next"], "")
    state, nonce, verifier = (_sign(ctx.services, use, number) for use in ("state", "nonce", "verifier"))
    try:
        url = await provider.authorization_url(state, nonce, verifier)
    except ProviderError as error:
        return _back(provider, error, query["next"])
    return Redirect(
        url, provider_state=second_factor.create_challenge(ctx.services, _ATTEMPT, detail=path, nonce=number)
    )


@_provider.get("/callback", access=auth.public(), template="", request_class="unlimited", with_request=True)
async def finish_provider_sign_in(ctx: Context, query: _Answer, request: web.Request) -> Redirect:
    """Sign the user in whom the provider names, or ask for the password once to link the account."""
    provider, services = _require_provider(ctx.services), ctx.services
    attempt = await second_factor.find_challenge(
        services, _ATTEMPT, browser_sessions.provider_state_of(services, request)
    )
    is_own = attempt is not None and services.vault.verify_signature(f"OpenID state {attempt['nonce']}", query["state"])
    if attempt is None or not is_own or not await second_factor.use_challenge(ctx, attempt):
        return Redirect("/app/sign-in", _TOO_LATE, provider_state="")
    path = attempt["detail"]
    try:
        nonce, verifier = (_sign(services, use, attempt["nonce"]) for use in ("nonce", "verifier"))
        user = await provider.redeem(query["code"], nonce, verifier, query["iss"])
        session = await credentials.sign_in_by_provider(ctx, user, ctx.device)
    except ProviderError as error:
        return _back(provider, error, path)
    except (errors.SignInRejected, errors.Conflict):
        return Redirect(_sign_in_path(path), _UNKNOWN, provider_state="")
    if session is not None:
        return Redirect(browser_sessions.landing_path(session.kind, path), session=session, provider_state="")
    if await identities.find_by_email(ctx.services, user.email) is None:
        return Redirect(_sign_in_path(path), _UNKNOWN, provider_state="")
    name = provider.registration.name
    linkable = credentials.sign_linkable(ctx, user)
    return Redirect(_sign_in_path(path), _CONNECT.format(name, name), provider_state=linkable)


def _require_provider(services: Services) -> OpenIdProvider:
    if services.open_id is None:
        raise errors.NotFound("page")
    return services.open_id


def _sign(services: Services, use: str, number: str) -> str:
    return services.vault.sign(f"OpenID {use} {number}")


def _sign_in_path(next_path: str | None) -> str:
    path = browser_sessions.local_path(next_path, "")
    return "/app/sign-in" + (f"?{urlencode({'next': path})}" if path else "")


def _back(provider: OpenIdProvider, error: ProviderError, next_path: str | None) -> Redirect:
    """Return to the sign-in page, with the reason in the log."""
    log.warning("sign-in at the provider failed", reason=str(error))
    sentence = _NOT_REACHED if isinstance(error, ProviderUnavailable) else _REFUSED
    name = provider.registration.name
    return Redirect(_sign_in_path(next_path), sentence.format(name[:1].upper() + name[1:]), provider_state="")


# --- How users sign in: the second factor and the passkeys of a coach or client, with the same pages for both ---------


_REPEATED = "Two-step sign-in is on. The recovery codes are shown once: set it up again for new ones."
_CREDENTIAL = input_of(second_factor.NewCredential, name="NewCredentialInput")()


class _PasskeyForm(TypedDict):
    name: Annotated[str, Text(max_length=second_factor.MAX_NAME)]
    credential: Annotated[str, Text(max_length=browser_sessions.MAX_ANSWER)]


def _declare(prefix: str, access: auth.Access, template: str) -> None:
    of, path = pages.below(prefix), f"{prefix}/security"

    @of.get("/security", access=access, template=template)
    async def security_page(ctx: Context) -> dict[str, Any]:
        """What the user signs in with, the secret that is being set up, and what can be changed."""
        is_recent = await credentials.is_recent_sign_in(ctx)
        pending = await second_factor.find_pending(ctx) if is_recent else None
        code = segno.make(pending["otpauthUrl"], micro=False) if pending else None
        return {
            "security_path": path,
            "factor": await second_factor.get(ctx, ctx.caller.id),
            "is_recent": is_recent,
            "is_missing": ctx.caller.company.requires_second_factor and not ctx.caller.has_second_factor,
            "pending": pending,
            "qr_code": Markup(code.svg_inline(omitsize=True, light="#fff")) if code else None,  # noqa: S704 - has no text
            "recovery_codes": None,
            "provider": ctx.services.open_id.registration.name if ctx.services.open_id else None,
            "provider_account": await credentials.find_linked_account(ctx),
            "passkeys": [
                second_factor.to_passkey(each) for each in await second_factor.list_passkeys(ctx, ctx.caller.id)
            ],
            "has_passkeys": second_factor.relying_party(ctx.services) is not None,
        }

    act = partial(of.act, access=access, on=security_page)
    act("/security/begin", "begin_second_factor", credentials.begin_authenticator, to=f"{path}#set-up")

    @of.post(
        "/security/confirm",
        access=access,
        form=second_factor.CodeToConfirm,
        on=security_page,
        request_class="unlimited",
    )
    async def confirm_second_factor(ctx: Context, form: second_factor.CodeToConfirm) -> Render | Redirect:
        """Put the application into use, and show recovery codes once."""
        codes = await credentials.confirm_authenticator(ctx, form["code"])
        return Render({"recovery_codes": codes["recoveryCodes"]}, _REPEATED)

    delete = partial(act, deletes=True)
    delete("/security/remove", "remove_second_factor", credentials.remove_second_factor, "Two-step sign-in is off.")

    @of.post("/security/passkeys/begin", access=access, on=security_page, idempotent=True)
    async def begin_passkey(ctx: Context) -> Redirect:
        """Return to the script of the page what the browser needs to create a passkey."""
        options = await credentials.begin_passkey(ctx)
        return Redirect(path, data=dict(options))

    @of.post("/security/passkeys", access=access, form=_PasskeyForm, on=security_page, request_class="unlimited")
    async def add_passkey(ctx: Context, form: _PasskeyForm) -> Redirect:
        """Add a passkey that the browser has created."""
        try:
            credential = browser_sessions.read_answer(_CREDENTIAL, form["credential"])
            await credentials.add_passkey(ctx, form["name"], credential)
        except errors.InvalidFields:
            raise errors.BadRequest("The passkey was not accepted. Try again.") from None
        return Redirect(path, f"{form['name']} was added. You can sign in with it.")

    passkey_path = "/security/passkeys/{passkeyId}/remove"
    delete(passkey_path, "remove_passkey", credentials.remove_passkey, "The passkey was removed.")
    unlinked = "Disconnected. You sign in with your password."
    delete("/security/disconnect", "unlink_provider_account", credentials.unlink_account, unlinked)


_declare("/app/settings", auth.with_password_only(auth.session_only()), "settings/security.html")
_declare("/train/settings", auth.customer(), "train/settings/security.html")
