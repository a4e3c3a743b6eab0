"""Getting in and out: sign in, sign up, forgotten passwords, a client's first access."""

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
    """Where to go once signed in."""

    next = Text(max_length=4000, load_default=None)


class _Token(Input):
    """The right to do it, from a mail."""

    token = Text(max_length=500, load_default="")


class _FirstAccess(FirstAccess):
    email = Email(allow_none=True, load_default=None)


class _SignUp(SignUp):
    timezone = Timezone(allow_none=True, load_default=None)


@pages.get("/sign-in", access=public(), query=_Next(), template="sign_in/sign_in.html")
async def sign_in_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any] | Redirect:
    """The page to sign in by; whoever is in already goes on."""
    if ctx.principal is not None:
        return Redirect(local_path(query["next"]))
    return {"next": local_path(query["next"]), "registration": ctx.services.registration}


@pages.post("/sign-in", access=public(), query=_Next(), form=Credentials(), on=sign_in_page, request_class="unlimited")
async def sign_in(ctx: Context, query: dict[str, Any], form: dict[str, Any]) -> Redirect:
    """Sign in, slowed down like REST's."""
    token = await web_sessions.sign_in(ctx, form["email"], form["password"])
    return Redirect(local_path(query["next"]), session_token=token)


@pages.get("/sign-up", access=public(), template="sign_in/sign_up.html")
async def sign_up_page(ctx: Context) -> dict[str, Any] | Redirect:
    """The page on which a company begins."""
    if ctx.principal is not None:
        return Redirect("/app")
    return {"registration": ctx.services.registration}


@pages.post("/sign-up", access=public(), form=_SignUp(), on=sign_up_page, request_class="unlimited")
async def sign_up(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Sign up a company; its owner is in at once."""
    who = (form["companyName"], form["name"], form["email"], form["password"])
    token = await web_sessions.sign_up(ctx, *who, form["timezone"] or "UTC")
    return Redirect("/app", f"Welcome, {form['name']}. {form['companyName']} is ready.", session_token=token)


@pages.post("/sign-out", access=public(), on=None)
async def sign_out(ctx: Context) -> Redirect:
    """End the session."""
    if ctx.principal is not None:
        await sessions.sign_out(ctx)
    return Redirect("/app/sign-in", "You are signed out.", ends_session=True)


@pages.get("/forgotten-password", access=public(), template="sign_in/forgotten_password.html")
async def forgotten_page(_: Context) -> dict[str, Any]:
    """The page that asks for an address."""
    return {}


@pages.post("/forgotten-password", access=public(), form=ForgottenPassword(), on=forgotten_page)
async def forgotten(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Send a mail if anybody signs in by the address; the answer is the same if nobody does."""
    await sessions.request_password_reset(ctx, form["email"])
    return Redirect(
        "/app/sign-in", "If this address signs in here, a mail is on its way. Its link is good for an hour."
    )


@pages.get("/reset-password", access=public(), query=_Token(), template="sign_in/reset_password.html")
async def reset_page(_: Context, query: dict[str, Any]) -> dict[str, Any]:
    """The page a mail links to: choose a new password."""
    return {"token": query["token"]}


@pages.post("/reset-password", access=public(), form=PasswordReset(), on=reset_page, request_class="unlimited")
async def reset(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Set the password; every session of its owner ends."""
    await sessions.reset_password(ctx, form["token"], form["password"])
    return Redirect("/app/sign-in", "The password is set. Sign in with it.", ends_session=True)


@pages.get("/first-access", access=public(), query=_Token(), template="sign_in/first_access.html")
async def first_access_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any]:
    """The page an invitation links to: a client chooses a password, once."""
    is_open = await customer_access.is_token_valid(ctx, query["token"])
    return {"token": query["token"], "open": is_open}


@pages.post("/first-access", access=public(), form=_FirstAccess(), on=first_access_page, request_class="unlimited")
async def first_access(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Let the client in: from now on they sign in by the password."""
    await customer_access.choose_password(ctx, form["token"], form["password"], form["email"])
    return Redirect("/app/welcome")


@pages.get("/welcome", access=public(), template="sign_in/invitation_accepted.html")
async def welcome(_: Context) -> dict[str, Any]:
    """What a client reads who has just chosen a password."""
    return {}
