"""Signing in, up and out, password resets, and the first access of an invited client."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import public
from coaching_service.core.database.context import Context
from coaching_service.core.validation import Email, Input, Text, Timezone
from coaching_service.people.customer_access import service as customer_access
from coaching_service.people.customer_access.schemas import FirstAccess
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions import web_sessions
from coaching_service.people.sessions.schemas import Credentials, ForgottenPassword, PasswordReset, SignUp
from coaching_service.web.browser_sessions import local_path
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app")


class _Next(Input):
    next = Text(max_length=4000, load_default=None)


class _Token(Input):
    token = Text(max_length=500, load_default="")


class _FirstAccess(FirstAccess):
    email = Email(allow_none=True, load_default=None)


class _SignUp(SignUp):
    timezone = Timezone(allow_none=True, load_default=None)


@pages.get("/sign-in", access=public(), query=_Next(), template="sign_in/sign_in.html")
async def sign_in_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any] | Redirect:
    """The sign-in page; a signed-in coach is redirected."""
    if ctx.principal is not None:
        return Redirect(local_path(query["next"]))
    return {"next": local_path(query["next"]), "registration": ctx.services.registration}


@pages.post("/sign-in", access=public(), query=_Next(), form=Credentials(), on=sign_in_page, request_class="unlimited")
async def sign_in(ctx: Context, query: dict[str, Any], form: dict[str, Any]) -> Redirect:
    """Sign in, with the same limits on attempts as REST."""
    token = await web_sessions.sign_in(ctx, form["email"], form["password"])
    return Redirect(local_path(query["next"]), session_token=token)


@pages.get("/sign-up", access=public(), template="sign_in/sign_up.html")
async def sign_up_page(ctx: Context) -> dict[str, Any] | Redirect:
    """The sign-up page."""
    if ctx.principal is not None:
        return Redirect("/app")
    return {"registration": ctx.services.registration}


@pages.post("/sign-up", access=public(), form=_SignUp(), on=sign_up_page, request_class="unlimited")
async def sign_up(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Create a company and sign its owner in."""
    token = await web_sessions.sign_up(
        ctx, form["companyName"], form["name"], form["email"], form["password"], form["timezone"] or "UTC"
    )
    return Redirect("/app", f"Welcome, {form['name']}. {form['companyName']} is ready.", session_token=token)


@pages.post("/sign-out", access=public(), on=None)
async def sign_out(ctx: Context) -> Redirect:
    """End the session."""
    if ctx.principal is not None:
        await sessions.sign_out(ctx)
    return Redirect("/app/sign-in", "You are signed out.", ends_session=True)


@pages.get("/forgotten-password", access=public(), template="sign_in/forgotten_password.html")
async def forgotten_password_page(_: Context) -> dict[str, Any]:
    """The page to request a password reset."""
    return {}


@pages.post("/forgotten-password", access=public(), form=ForgottenPassword(), on=forgotten_password_page)
async def request_password_reset(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Send an e-mail with a link if the address has an account; the response is the same if it has none."""
    await sessions.request_password_reset(ctx, form["email"])
    return Redirect(
        "/app/sign-in", "If the address has an account, we sent an email with a link. It expires in an hour."
    )


@pages.get("/reset-password", access=public(), query=_Token(), template="sign_in/reset_password.html")
async def reset_password_page(_: Context, query: dict[str, Any]) -> dict[str, Any]:
    """The page to choose a new password, linked from the e-mail."""
    return {"token": query["token"]}


@pages.post("/reset-password", access=public(), form=PasswordReset(), on=reset_password_page, request_class="unlimited")
async def reset_password(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Set the password; every session of the account ends."""
    await sessions.reset_password(ctx, form["token"], form["password"])
    return Redirect("/app/sign-in", "Password changed. Sign in with your new password.", ends_session=True)


@pages.get("/first-access", access=public(), query=_Token(), template="sign_in/first_access.html")
async def first_access_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any]:
    """The page where an invited client chooses a password."""
    is_valid = await customer_access.is_token_valid(ctx, query["token"])
    return {"token": query["token"], "is_valid": is_valid}


@pages.post("/first-access", access=public(), form=_FirstAccess(), on=first_access_page, request_class="unlimited")
async def first_access(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Set the client's password."""
    await customer_access.choose_password(ctx, form["token"], form["password"], form["email"])
    return Redirect("/app/welcome")


@pages.get("/welcome", access=public(), template="sign_in/invitation_accepted.html")
async def invitation_accepted_page(_: Context) -> dict[str, Any]:
    """Confirmation for a client who has chosen a password."""
    return {}
