"""Sign-in sessions over REST."""

from __future__ import annotations

from coaching_service.core import errors
from coaching_service.core.auth import any_session, owner_session, public, with_password_only
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.people import second_factor
from coaching_service.people.sessions import credentials as passwords
from coaching_service.people.sessions import models as session_models
from coaching_service.people.sessions import service

routes = Routes("/auth", tag="Sessions", path_descriptions={"passkeyId": "The identifier of the passkey."})
team_routes = Routes(
    "/coach/employees", tag="Team", path_descriptions={"employeeId": "The identifier of the employee."}
)

_ANY_SESSION = with_password_only(any_session())
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
    errors=(errors.CompanySuspended, errors.SignInRejected, errors.SecondFactorRequired, errors.TooManyRequests),
    example={"email": "ana@example.com", "password": _PASSWORD},
)
async def sign_in(ctx: Context, body: session_models.SignIn) -> session_models.SignedIn:
    """Sign in, as a coach or as a client.

    From the 6th failure of an account, or the 30th of a network address, within 15 minutes: 429 with `Retry-After`. A
    device that sends the `deviceToken` of its last sign-in has a counter of its own instead, of 6 failures, so
    that others cannot lock it. Failures of an account no longer count for the network address when the user signs in.

    A user with a second factor gets 401 `SECOND_FACTOR_REQUIRED` instead, with `methods` and a `challenge` to answer
    within 5 minutes (POST /auth/second-factor). It is no credential.
    """
    return await service.sign_in(ctx, body["email"], body["password"], _device_tokens(body))


@routes.post(
    "/second-factor",
    request_class="unlimited",
    access=public(),
    status=200,
    errors=(errors.CompanySuspended, errors.SignInRejected, errors.TooManyRequests),
    example={"challenge": "from the response of POST /auth/login", "code": "123456"},
)
async def confirm_sign_in(ctx: Context, body: second_factor.ChallengeAnswer) -> session_models.SignedIn:
    """Confirm a sign-in with a second factor.

    `code` is of the authenticator application, also of the 30 seconds before and after; each is accepted once. A
    `recoveryCode` is accepted once too. A wrong one is 401 `SECOND_FACTOR_REJECTED` and counts as a failed sign-in:
    429 with `Retry-After` as for POST /auth/login. A challenge that is unknown, used or too old is 401
    `CHALLENGE_REJECTED`.
    """
    return await service.answer_challenge(ctx, body)


@routes.get("/second-factor", access=_ANY_SESSION)
async def get_second_factor(ctx: Context) -> second_factor.SecondFactor:
    """Read which second factors the caller has."""
    return await second_factor.get(ctx, ctx.caller.id)


@routes.post("/second-factor/totp", access=_ANY_SESSION, status=200)
async def create_authenticator_secret(ctx: Context) -> second_factor.AuthenticatorSecret:
    """Set up an authenticator application.

    Returns a new secret, which is in use once a code of it is confirmed. The caller has signed in at most 10 minutes
    ago, else 403 `SIGN_IN_AGAIN`.
    """
    return await passwords.begin_authenticator(ctx)


@routes.post(
    "/second-factor/totp/confirm",
    access=_ANY_SESSION,
    status=200,
    errors=(errors.Conflict, errors.TooManyRequests),
    example={"code": "123456"},
)
async def confirm_second_factor(ctx: Context, body: second_factor.CodeToConfirm) -> second_factor.ConfirmedFactor:
    """Confirm the authenticator application.

    From now on a sign-in needs its codes; an application that was in use before is replaced. The 10 recovery codes are
    returned once. This session counts as one with a second factor. 400 `WRONG_CODE` for `code`; from the 6th wrong one
    within 15 minutes: 429 with `Retry-After`. 403 `SIGN_IN_AGAIN` as above.
    """
    return await passwords.confirm_authenticator(ctx, body["code"])


@routes.delete("/second-factor", access=_ANY_SESSION, errors=(errors.NotFound,))
async def delete_second_factor(ctx: Context) -> None:
    """Remove my second factor.

    The password alone signs in then. 403 `SIGN_IN_AGAIN` as above.
    """
    await passwords.remove_second_factor(ctx)


@routes.post("/second-factor/options", access=public(), status=200, errors=(errors.Conflict,))
async def create_sign_in_options(ctx: Context) -> second_factor.PasskeyChallenge:
    """Begin to sign in with a passkey, without a password.

    Send `challenge` with the `assertion` of the browser to POST /auth/second-factor. 409 `PASSKEYS_UNAVAILABLE` if the
    base address is an IP address.
    """
    return second_factor.challenge_anyone(ctx.services)


@routes.post("/passkeys/options", access=_ANY_SESSION, status=200, errors=(errors.Conflict,))
async def create_passkey_options(ctx: Context) -> second_factor.PasskeyOptions:
    """Begin to register a passkey.

    403 `SIGN_IN_AGAIN` as for an authenticator application; 409 `PASSKEYS_UNAVAILABLE` if the base address is an IP
    address.
    """
    return await passwords.begin_passkey(ctx)


@routes.post(
    "/passkeys",
    access=_ANY_SESSION,
    status=201,
    errors=(errors.Conflict,),
    example={
        "name": "Phone",
        "credential": {"id": "AQ", "rawId": "AQ", "response": {"clientDataJSON": "e30", "attestationObject": "oA"}},
    },
)
async def create_passkey(ctx: Context, body: second_factor.NewPasskey) -> second_factor.Passkey:
    """Register a passkey.

    `credential` is what the browser returned for `publicKey`. This session counts as one with a second factor.
    """
    return await passwords.add_passkey(ctx, body["name"], body["credential"])


@routes.get("/passkeys", access=_ANY_SESSION)
async def list_passkeys(ctx: Context) -> list[second_factor.Passkey]:
    """List my passkeys."""
    return [second_factor.to_passkey(each) for each in await second_factor.list_passkeys(ctx, ctx.caller.id)]


@routes.delete("/passkeys/{passkeyId}", access=_ANY_SESSION)
async def delete_passkey(ctx: Context, passkey_id: ObjectId) -> None:
    """Remove a passkey.

    403 `SIGN_IN_AGAIN` as above.
    """
    await passwords.remove_passkey(ctx, passkey_id)


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


@routes.post("/logout", access=_ANY_SESSION, status=200)
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


@team_routes.delete("/{employeeId}/second-factor", access=owner_session())
async def reset_employee_second_factor(ctx: Context, employee_id: ObjectId) -> None:
    """Remove an employee's second factor.

    For an employee who has lost the device and the recovery codes: the password alone signs in then. The employee's
    sessions end, and the employee gets a mail.
    """
    await passwords.reset_of_employee(ctx, employee_id)
