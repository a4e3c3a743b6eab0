"""Signing up, in and out, renewing sessions, and resetting passwords."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import structlog

from coaching_service.core import audit, rate_limits
from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.secrets import new_token, token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import CompanySuspended, Forbidden, SignInRejected, Unauthorized
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue
from coaching_service.core.jobs.mail import NewMail
from coaching_service.core.jobs.mail_body import MailBody, subject_with
from coaching_service.core.jobs.queue import Job
from coaching_service.people.account import service as account
from coaching_service.people.assistants import service as assistants
from coaching_service.people.customers import first_access
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.events import IdentityDisplaced
from coaching_service.people.identities.models import SubjectKind
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.identities.service import Identity
from coaching_service.people.sessions import confirmations, store
from coaching_service.people.sessions.models import (
    AccessTokenResponse,
    NewSession,
    SessionWithSubject,
    TokensResponse,
)
from coaching_service.people.team import service as team
from coaching_service.people.team.events import CoachRemoved, SignInEmailChanged

RESET_REQUESTED = "password_forgotten"
IMPERSONATION_LIFETIME = timedelta(minutes=15)
# Limits within 15 minutes; those of a network address are higher because many users may share it.
_RESET_MAILS = 3
_SIGN_UPS, _RESET_REQUESTS = 30, 20

T = TypeVar("T")

log = structlog.get_logger("coaching_service.sessions")


# --- signing up, in and out ------------------------------------------------------------------------------------------


async def sign_up(ctx: Context, company_name: str, name: str, email: str, password: str) -> TokensResponse:
    """Create a company and return the tokens of its owner's session.

    Raises Conflict if the e-mail address is already used to sign in, Forbidden if the operator has disabled sign-up,
    TooManyRequests after too many sign-ups from one network address.
    """

    async def create_owner_session(ctx: Context, owner_id: ObjectId) -> TokensResponse:
        return await create_session(ctx, owner_id, "coach")

    return await register(ctx, company_name, name, email, password, create_owner_session)


async def register(
    ctx: Context,
    company_name: str,
    name: str,
    email: str,
    password: str,
    create_owner_session: Callable[[Context, ObjectId], Coroutine[Any, Any, T]],
    timezone: str = "UTC",
) -> T:
    """Create a company in `timezone`, and return what `create_owner_session` returns in the same transaction.

    A mail with a token to confirm the owner's e-mail address is queued. Raises what sign_up raises.
    """
    if not ctx.services.registration:
        raise Forbidden("Sign-up is disabled; ask the operator of this service", code="SIGN_UP_DISABLED")
    await rate_limits.limit(ctx.services, "sign-up", ctx.network_address, _SIGN_UPS)
    password_hash = await hash_password(password)

    @transactional
    async def create_company(ctx: Context) -> T:
        owner = await team.create_company(
            ctx, company_name, name, email, password_hash, timezone=timezone, is_confirmed=False
        )
        owner_ctx = ctx.acting_as(owner)
        await confirmations.queue_mail(owner_ctx, owner.id)
        return await create_owner_session(owner_ctx, owner.id)

    return await create_company(ctx)


async def sign_in(ctx: Context, email: str, password: str) -> TokensResponse:
    """Return the tokens of a new session.

    Raises SignInRejected, always the same; TooManyRequests after too many failures.
    """
    identity, principal = await verify_credentials(ctx, email, password)
    tokens = await create_session(ctx.acting_as(principal), identity.subject_id, identity.kind)
    if identity.kind == "customer":
        await first_access.record_sign_in(ctx.acting_as(principal), identity.subject_id)
    return tokens


async def verify_credentials(ctx: Context, email: str, password: str) -> tuple[Identity, Principal]:
    """Return the identity and the principal of a user who signs in. Raises what sign_in raises."""
    identity = await identities.verify_sign_in(ctx, email, password)
    if (principal := await load_principal(ctx.services, identity)) is None:
        ctx.services.metrics.sign_in_failures.labels("no_access").inc()
        raise identities.sign_in_rejected()
    await identities.clear_failures(ctx, email)
    return identity, principal


async def load_principal(services: Services, identity: Identity) -> Principal | None:
    """Return the coach or client of an identity; None if the user may not sign in. Raises CompanySuspended."""
    if identity.kind == "coach":
        return await team.load_principal(services, identity.subject_id)
    return await first_access.load_principal(services, identity.company_id, identity.subject_id)


async def create_session(ctx: Context, subject_id: ObjectId, kind: SubjectKind) -> TokensResponse:
    """Create a session of a coach or client of the company and return its tokens."""
    access, family = new_token(), new_token()
    refresh_token = f"{family}.{new_token()}"
    session: NewSession = {
        "subjectId": subject_id,
        "kind": kind,
        "familyHash": token_hash(family),
        "refreshHash": token_hash(refresh_token),
        "impersonatedBy": None,
    }
    await store.insert(ctx, session, token_hash(access), store.ACCESS_LIFETIME, store.FAMILY_LIFETIME)
    return {**_token_response(access, store.ACCESS_LIFETIME), "refreshToken": refresh_token}


async def impersonate(ctx: Context, customer_id: ObjectId) -> AccessTokenResponse:
    """Return a client's session for the caller: 15 minutes long, marked as impersonated, not renewable."""
    access = new_token()
    session: NewSession = {"subjectId": customer_id, "kind": "customer", "impersonatedBy": ctx.caller.id}
    await store.insert(ctx, session, token_hash(access), IMPERSONATION_LIFETIME, IMPERSONATION_LIFETIME)
    return _token_response(access, IMPERSONATION_LIFETIME)


def _token_response(access: str, lifetime: timedelta) -> AccessTokenResponse:
    return {"accessToken": access, "tokenType": "Bearer", "expiresIn": int(lifetime.total_seconds())}


async def refresh(ctx: Context, token: str) -> TokensResponse:
    """Return new tokens for a refresh token, which is then spent.

    Raises SignInRejected for any other token; a spent one ends its session at once. A token is not spent while its
    user may not sign in.
    """
    rejected = SignInRejected("The refresh token is not valid; sign in again")
    family = token.partition(".")[0]
    family_hash = token_hash(family)
    session = await store.find_by_refresh(ctx.services, family_hash, token_hash(token))
    if session is not None and to_principal(session) is None:
        raise rejected
    access, renewed = new_token(), f"{family}.{new_token()}"
    if not await store.rotate(ctx.services, family_hash, token_hash(token), token_hash(renewed), token_hash(access)):
        if (ended := await store.delete_family(ctx.services, family_hash)) is not None:
            log.warning("spent refresh token", session=str(ended["_id"]), company=str(ended["companyId"]))
        raise rejected
    return {**_token_response(access, store.ACCESS_LIFETIME), "refreshToken": renewed}


async def sign_out(ctx: Context) -> None:
    """End the caller's session."""
    await store.delete(ctx, ctx.caller.credential_id)


async def end_sessions(ctx: Context, subject_id: ObjectId) -> None:
    """End every session of a coach or client of the company, in the caller's transaction."""
    await store.delete_all(ctx, subject_id)


async def end_sessions_of_coach(ctx: Context, event: CoachRemoved | SignInEmailChanged) -> None:
    """End every session of a coach who was removed or whose e-mail address has changed."""
    await end_sessions(ctx, event.coach_id)


async def end_displaced_sessions(ctx: Context, event: IdentityDisplaced) -> None:
    """End every session of a coach or client, of any company, who lost an unconfirmed e-mail address."""
    await store.delete_all_in_company(ctx, event.company_id, event.subject_id)


# --- authentication --------------------------------------------------------------------------------------------------


async def authenticate(services: Services, access_token: str) -> Principal:
    """Return the user of an access token. Raises Unauthorized if it is unknown or expired, or the user is deleted."""
    if (principal := await find_principal(services, token_hash(access_token))) is None:
        raise Unauthorized()
    return principal


async def find_principal(services: Services, access_hash: str) -> Principal | None:
    """Return the user of the access token with this hash, or None."""
    session = await store.find_by_access(services, access_hash)
    return None if session is None else to_principal(session)


def to_principal(session: SessionWithSubject) -> Principal | None:
    """Return the user of a session; None if the user or the company is deleted, or the client archived.

    Raises CompanySuspended.
    """
    if not session["company"]:
        return None
    company = account.to_company(session["company"][0])
    if session["kind"] == "coach":
        if not session["coach"]:
            return None
        return team.to_principal(session["coach"][0], company, "session", session["_id"])
    if not session["customer"] or session["customer"][0]["customerRoleData"]["isArchived"]:
        return None
    return first_access.to_principal(session["customer"][0], company, session["_id"], session["impersonatedBy"])


# --- confirming an e-mail address ------------------------------------------------------------------------------------


async def confirm_email(ctx: Context, token: str) -> None:
    """Confirm an e-mail address by a mailed token.

    Raises SignInRejected if the token is unknown or older than a week, or the user no longer signs in by the address.
    """
    confirmed = await identities.find_by_confirmation(ctx.services, token)
    principal = await load_principal(ctx.services, confirmed.identity) if confirmed else None
    if confirmed is None or principal is None:
        raise _confirmation_rejected()
    await _confirm_email(ctx.acting_as(principal), confirmed.address)


@transactional
async def _confirm_email(ctx: Context, address: str) -> None:
    if not await identities.confirm_email(ctx, ctx.caller.id, address):
        raise _confirmation_rejected()


def _confirmation_rejected() -> SignInRejected:
    return SignInRejected("The token is unknown or older than a week; sign in and request another")


# --- passwords -------------------------------------------------------------------------------------------------------


async def request_password_reset(ctx: Context, email: str) -> None:
    """Queue a password reset; whether anyone signs in by `email` is looked up by the worker, so timing reveals nothing.

    Raises TooManyRequests after too many requests from one network address.
    """
    await rate_limits.limit(ctx.services, "password forgotten", ctx.network_address, _RESET_REQUESTS)
    await queue.enqueue(ctx, RESET_REQUESTED, {"email": email})


async def send_password_reset(services: Services, job: Job) -> None:
    """Queue a mail with a token to set a password for each user who signs in by `email` or claims it.

    Each gets at most 3 in 15 minutes, at the stored address, not at the one in the request.
    """
    for identity in await identities.list_by_email(services, job.arguments["email"]):
        try:
            principal = await load_principal(services, identity)
        except CompanySuspended:
            continue
        if principal is None or _is_held(principal):
            continue
        mails, _ = await rate_limits.count(services, "reset mail", str(identity.subject_id))
        if mails <= _RESET_MAILS:
            await _queue_reset_mail(Context(services).acting_as(principal), identity)


def _is_held(principal: Principal) -> bool:
    """Return whether a token for this user would expire before its mail is sent."""
    return principal.company.holds_mail and principal.role != "OWNER"


async def send_reset_mail(services: Services, identity: Identity) -> bool:
    """Queue a mail with a token to set a password, for the operator; returns False if the user may not sign in.

    Raises CompanySuspended.
    """
    principal = await load_principal(services, identity)
    if principal is None:
        return False
    await _queue_reset_mail(Context(services).acting_as(principal), identity)
    return True


async def count_open(ctx: Context, subject_id: ObjectId) -> int:
    """Return the number of sessions of a coach or client of the company that have not ended."""
    return await store.count_open(ctx, subject_id)


@transactional
async def _queue_reset_mail(ctx: Context, identity: Identity) -> None:
    email = await identities.get_mail_address(ctx, identity.subject_id)
    if email is None:
        return
    token = await identities.create_reset_token(ctx, identity.subject_id, identity.kind)
    company, is_client = ctx.caller.company.name, identity.kind == "customer"
    body: MailBody = {
        "company": company,
        "name": ctx.caller.name,
        "paragraphs": ["You can set a new password with this link. It works once, within the hour."],
        "button": "Set a new password",
        "link": f"{ctx.services.base_url}/{'train' if is_client else 'app'}/reset-password?token={token}",
        "notes": ["If you did not ask for this, do nothing: your password stays as it is."],
        "reason": "You receive this mail because a new password was requested for this e-mail address, with which you "
        f"sign in at {company}.",
        "settings": None,
    }
    if is_client:
        subject = subject_with(company, "Set a new password for {}", "Set a new password")
        reset_mail = NewMail(email, subject, body, identity.subject_id)
    else:
        addition = f"Applications can send the password with this token to POST /auth/password/reset: {token}"
        reset_mail = NewMail(
            email, "Set a new password", body, text_addition=addition, is_urgent=ctx.caller.role == "OWNER"
        )
    await mail.enqueue_mail(ctx, reset_mail)


async def reset_password(ctx: Context, token: str, password: str) -> None:
    """Set a new password by a mailed token.

    Every session and connected assistant of the user ends, and the count of failed sign-ins is reset. Raises
    SignInRejected if the token is unknown, used, or older than an hour.
    """
    identity = await identities.find_by_reset_token(ctx.services, token)
    principal = await load_principal(ctx.services, identity) if identity else None
    if identity is None or principal is None:
        raise _reset_rejected()
    password_hash = await hash_password(password)
    email = await _reset_password(ctx.acting_as(principal), identity.subject_id, token, password_hash)
    await identities.clear_failures(ctx, email)


@transactional
async def _reset_password(ctx: Context, subject_id: ObjectId, token: str, password_hash: str) -> str:
    email = await identities.reset_password(ctx, subject_id, token, password_hash)
    if email is None:
        raise _reset_rejected()
    await store.delete_all(ctx, subject_id)
    await assistants.revoke_all_of_coach(ctx, subject_id)
    return email


def _reset_rejected() -> SignInRejected:
    return SignInRejected("The token is unknown, used or older than an hour; ask for another")


async def change_password(ctx: Context, current: str, new: str) -> None:
    """Change the caller's password; every other session of the caller ends, and so does every connected assistant.

    Raises Forbidden if `current` is wrong, which counts as a failed sign-in; TooManyRequests.
    """
    if not await identities.check_password(ctx, ctx.caller.id, current):
        raise Forbidden("The password is wrong", code="WRONG_PASSWORD")
    await _change_password(ctx, await hash_password(new))


@transactional
async def _change_password(ctx: Context, password_hash: str) -> None:
    await identities.set_password(ctx, ctx.caller.id, password_hash)
    await store.delete_others(ctx, ctx.caller.id, ctx.caller.credential_id)
    await assistants.revoke_all_of_coach(ctx, ctx.caller.id)
    await audit.record(ctx, "password.changed")
