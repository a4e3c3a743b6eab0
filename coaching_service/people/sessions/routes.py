"""Sessions over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import any_session, public
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, Forbidden, SignInRejected, TooManyRequests
from coaching_service.core.http.routes import Routes
from coaching_service.people.sessions import service
from coaching_service.people.sessions.schemas import (
    Confirmation,
    Credentials,
    ForgottenPassword,
    PasswordReset,
    RefreshToken,
    SessionTokens,
    SignUp,
)

routes = Routes("/auth", tag="Sessions")

_PASSWORD = "correct horse battery staple"  # noqa: S105 - the document's example


@routes.post(
    "/register",
    request_class="unlimited",
    access=public(),
    body=SignUp(),
    returns=SessionTokens,
    errors=(Forbidden, Conflict, TooManyRequests),
    example={"companyName": "My Gym", "name": "Ana", "email": "ana@example.com", "password": _PASSWORD},
)
async def sign_up(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Sign up a company.

    Its owner is signed in at once. The operator may have closed sign-up (403). From the 31st of a network address
    within 15 minutes: 429 with `Retry-After`.
    """
    return await service.sign_up(ctx, body["companyName"], body["name"], body["email"], body["password"])


@routes.post(
    "/login",
    request_class="unlimited",
    access=public(),
    status=200,
    body=Credentials(),
    returns=SessionTokens,
    errors=(SignInRejected, TooManyRequests),
    example={"email": "ana@example.com", "password": _PASSWORD},
)
async def sign_in(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Sign in, as a coach or as a client.

    From the 6th failure of an account, or the 30th of a network address, within 15 minutes: 429 with `Retry-After`.
    """
    return await service.sign_in(ctx, body["email"], body["password"])


@routes.post(
    "/refresh",
    access=public(),
    status=200,
    body=RefreshToken(),
    returns=SessionTokens,
    errors=(SignInRejected,),
    example={"refreshToken": "the one you were given last"},
)
async def refresh_session(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Renew a session.

    The refresh token is spent by it; using a spent one ends the session and all tokens that came of it.
    """
    return await service.refresh(ctx, body["refreshToken"])


@routes.post("/logout", access=any_session(), status=200, returns=Confirmation)
async def sign_out(ctx: Context) -> dict[str, Any]:
    """Sign out.

    The session ends with all its tokens.
    """
    await service.sign_out(ctx)
    return {"message": "Signed out"}


@routes.post(
    "/password/forgot",
    access=public(),
    status=200,
    body=ForgottenPassword(),
    returns=Confirmation,
    errors=(TooManyRequests,),
    example={"email": "ana@example.com"},
)
async def request_password_reset(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Ask for a token to set a new password.

    The answer is the same whether anybody signs in by the address or not; the token comes by e-mail and lives an hour.
    From the 21st of a network address within 15 minutes: 429 with `Retry-After`.
    """
    await service.request_password_reset(ctx, body["email"])
    return {"message": "If this address signs in, a mail is on its way"}


@routes.post(
    "/password/reset",
    request_class="unlimited",
    access=public(),
    status=200,
    body=PasswordReset(),
    returns=Confirmation,
    errors=(SignInRejected,),
    example={"token": "from the e-mail", "password": _PASSWORD},
)
async def reset_password(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Set a new password by a token.

    Every session ends; sign in with the new one.
    """
    await service.reset_password(ctx, body["token"], body["password"])
    return {"message": "The password is set; sign in with it"}
