"""What e-mails to clients link to: the first access, declining invitations, and a new password."""

from __future__ import annotations

from typing import Annotated, Any

from aiohttp import web
from marshmallow import fields

from coaching_service.core.auth.access import public
from coaching_service.core.database.context import Context
from coaching_service.core.dates import TIMEZONES
from coaching_service.people import own_profile
from coaching_service.people.customer_access import service
from coaching_service.people.customer_access import service as customer_access
from coaching_service.people.customer_access.models import DeclineLink, DeclinePage, FirstAccess
from coaching_service.people.sessions import web_sessions
from coaching_service.web.browser_sessions import device_of, home_of
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.sign_in import TokenQuery, declare_password_reset

pages = Pages("/train")


class _FirstAccessForm(FirstAccess):
    timezone: Annotated[str | None, fields.String()]  # the browser's, which is ignored if it is unknown here


@pages.get("/first-access", access=public(), template="train/first_access.html")
async def first_access_page(ctx: Context, query: TokenQuery) -> dict[str, Any] | Redirect:
    """The page where an invited client chooses a password; a used link opens the application if it can."""
    is_valid = await customer_access.is_token_valid(ctx, query["token"])
    if not is_valid and ctx.principal is not None:
        return Redirect(home_of(ctx.principal))
    return {"token": query["token"], "is_valid": is_valid}


@pages.post("/first-access", access=public(), on=first_access_page, request_class="unlimited", with_request=True)
async def first_access(ctx: Context, form: _FirstAccessForm, request: web.Request) -> Redirect:
    """Set the client's password and sign the client in; without a time zone the client gets the browser's."""
    client_ctx = await customer_access.choose_password(ctx, form["token"], form["password"], form.get("email"))
    if client_ctx.caller.timezone is None and form["timezone"] in TIMEZONES:
        await own_profile.update(client_ctx, {"timezone": form["timezone"]})
    session = await web_sessions.start_for_customer(client_ctx, client_ctx.caller.id, device_of(request))
    return Redirect("/train", f"Welcome, {client_ctx.caller.name}.", session=session)


@pages.get("/no-invitations", access=public(), template="sign_in/no_invitations.html")
async def decline_page(ctx: Context, query: DeclineLink) -> DeclinePage:
    """The page to decline further invitations, with the name of the company."""
    return {"token": query["token"], "company": await service.find_company_name(ctx.services, query["token"])}


@pages.post("/no-invitations", access=public(), on=decline_page, one_click=True)
async def decline(ctx: Context, form: DeclineLink) -> Redirect:
    """Stop further invitations of the company to this e-mail address."""
    await service.decline(ctx, form["token"])
    return Redirect("/train/no-invitations", "You will receive no more invitations from them.")


declare_password_reset(pages, "/app/sign-in?next=/train")
