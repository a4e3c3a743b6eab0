"""Sign-in sessions over REST."""

from __future__ import annotations

from coaching_service.core import errors
from coaching_service.core.auth import any_session, public
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.people.sessions import models as session_models
from coaching_service.people.sessions import passwords, service

routes = Routes("/auth", tag="Sessions")

_PASSWORD = "correct horse battery staple"  # noqa: S105 - an example of the OpenAPI document


@routes.post(
    "/register",
    request_class="unlimited",
    access=public(),
    errors=(errors.Forbidden, errors.Conflict, errors.TooManyRequests),
    example={"companyName": "My Gym", "name": "Ana", "email": "ana@example.com", "password": _PASSWORD},
)
async def sign_up(ctx: Context, body: session_models.SignUp) -> session_models.SignedIn:
    """Sign up a company.

    Its owner is signed in at once, and receives a mail with a token that confirms the e-mail address (POST
    /auth/confirm-email). Until then mail to others, such as invitations, is held, and the address is lost to a user who
    confirms it first. The operator may have disabled sign-up (403). From the 31st sign-up of a network address within
    15 minutes: 429 with `Retry-After`.
    """
    return await service.sign_up(ctx, body["companyName"], body["name"], body["email"], body["password"])


@routes.post(
    "/login",
    request_class="unlimited",
    access=public(),
    status=200,
    errors=(errors.CompanySuspended, errors.SignInRejected, errors.TooManyRequests),
    example={"email": "ana@example.com", "password": _PASSWORD},
)
async def sign_in(ctx: Context, body: session_models.SignIn) -> session_models.SignedIn:
    """Sign in, as a coach or as a client.

    From the 6th failure of an account, or the 30th of a network address, within 15 minutes: 429 with `Retry-After`. A
    device that sends the `deviceToken` of its last sign-in has a counter of its own instead, of 6 failures, so
    that others cannot lock it. Failures of an account no longer count for the network address when the user signs in.
    """
    return await service.sign_in(ctx, body["email"], body["password"], _device_tokens(body))


def _device_tokens(body: session_models.SignIn | session_models.ResetRequest) -> list[str]:
    token = body.get("deviceToken")
    return [token] if token else []


@routes.post(
    "/refresh",
    access=public(),
    status=200,
    errors=(errors.CompanySuspended, errors.SignInRejected),
    example={"refreshToken": "the latest refresh token"},
)
async def refresh_session(ctx: Context, body: session_models.RefreshToken) -> session_models.SessionTokens:
    """Renew a session.

    The refresh token can be used once; using it again ends the session with all its tokens.
    """
    return await service.refresh(ctx, body["refreshToken"])


@routes.post("/logout", access=any_session(), status=200)
async def sign_out(ctx: Context) -> session_models.Confirmation:
    """Sign out.

    Ends the session with all its tokens.
    """
    await service.sign_out(ctx)
    return {"message": "Signed out"}


@routes.post(
    "/password/forgot",
    access=public(),
    status=200,
    errors=(errors.TooManyRequests,),
    example={"email": "ana@example.com"},
)
async def request_password_reset(ctx: Context, body: session_models.ResetRequest) -> session_models.Confirmation:
    """Request a token to set a new password.

    The response is the same for every e-mail address. If a user signs in by it, the token is sent there and expires
    after an hour. From the 21st request of a network address within 15 minutes: 429 with `Retry-After`, except for a
    device that sends the `deviceToken` of its last sign-in.
    """
    await passwords.request_password_reset(ctx, body["email"], _device_tokens(body))
    return {"message": "If this e-mail address is used to sign in, a mail has been sent to it"}


@routes.post(
    "/password/reset",
    request_class="unlimited",
    access=public(),
    status=200,
    errors=(errors.CompanySuspended, errors.Conflict, errors.SignInRejected),
    example={"token": "from the e-mail", "password": _PASSWORD},
)
async def reset_password(ctx: Context, body: session_models.PasswordReset) -> session_models.PasswordSet:
    """Set a new password by a token.

    Every session ends; sign in with the new password, and with `deviceToken`, so that failures of others do not prevent
    it. API keys of the user remain valid unless `deleteApiKeys` names them; `apiKeys` is how many there still are.
    """
    new_password = await passwords.reset_password(ctx, body["token"], body["password"], body["deleteApiKeys"])
    return {"message": "The password has been set; sign in with it", **new_password}


@routes.post(
    "/confirm-email",
    access=public(),
    status=200,
    errors=(errors.CompanySuspended, errors.SignInRejected),
    example={"token": "from the e-mail"},
)
async def confirm_email(ctx: Context, body: session_models.EmailConfirmation) -> session_models.Confirmation:
    """Confirm an e-mail address by a token.

    The token is in the mail that a sign-up, or POST /auth/confirm-email/resend, sends. Mail that the company holds is
    sent when its owner confirms the address.
    """
    await service.confirm_email(ctx, body["token"])
    return {"message": "The e-mail address is confirmed"}


@routes.post("/confirm-email/resend", access=any_session(), status=200, errors=(errors.TooManyRequests,))
async def resend_confirmation(ctx: Context) -> session_models.Confirmation:
    """Request another token to confirm the e-mail address.

    It is sent to the address by which the caller signs in, unless it is confirmed. From the fourth request within 15
    minutes: 429 with `Retry-After`.
    """
    if await service.send_again(ctx):
        return {"message": "A mail with a new token has been queued"}
    return {"message": "The e-mail address is already confirmed"}
