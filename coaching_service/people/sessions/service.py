"""Signing up, in and out; renewing; forgotten passwords; and who a bearer is."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import structlog

from coaching_service.core import audit, rate_limits
from coaching_service.core.auth.principal import Company, Principal
from coaching_service.core.auth.secrets import new_token, token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import Forbidden, SignInRejected, Unauthorized
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people.account import service as account
from coaching_service.people.assistants import service as assistants
from coaching_service.people.customers import first_access
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.identities.service import Identity, SubjectKind
from coaching_service.people.sessions import store
from coaching_service.people.team import service as team
from coaching_service.people.team.events import CoachRemoved

RESET_REQUESTED = "password_forgotten"
IMPERSONATION_LIVES = timedelta(minutes=15)
_MAILS_A_WINDOW = 3
# Of one network address, behind which many may be.
_SIGN_UPS_A_WINDOW, _FORGOTTEN_A_WINDOW = 30, 20

T = TypeVar("T")
Work = Coroutine[Any, Any, T]

log = structlog.get_logger("coaching_service.sessions")


async def sign_up(ctx: Context, company_name: str, name: str, email: str, password: str) -> Document:
    """A new company with its owner signed in.

    Raises Conflict when the address is already used to sign in, Forbidden when the operator has closed sign-up,
    TooManyRequests when many have signed up from one network address.
    """
    return await register(
        ctx, company_name, name, email, password, lambda tx, owner_id: create_session(tx, owner_id, "coach")
    )


async def register(
    ctx: Context,
    company_name: str,
    name: str,
    email: str,
    password: str,
    begin: Callable[[Context, ObjectId], Work[T]],
    timezone: str = "UTC",
) -> T:
    """A new company in `timezone`, and what `begin` makes for its owner in the same transaction.

    Raises what sign_up does.
    """
    if not ctx.services.registration:
        raise Forbidden("Sign-up is closed; ask the operator of this service")
    await rate_limits.limit(ctx.services, "sign-up", ctx.network_address, _SIGN_UPS_A_WINDOW)
    password_hash = await hash_password(password)

    async def founded(tx: Context) -> T:
        owner = await team.create_company(tx, company_name, name, email, password_hash, timezone=timezone)
        return await begin(tx.acting_as(owner), owner.id)

    return await in_transaction(ctx, founded)


async def sign_in(ctx: Context, email: str, password: str) -> Document:
    """The tokens of a new session. Raises SignInRefused, always the same; TooManyRequests after too many failures."""
    identity, principal = await verify_credentials(ctx, email, password)
    tokens = await create_session(ctx.acting_as(principal), identity.subject_id, identity.kind)
    if identity.kind == "customer":
        await first_access.record_sign_in(ctx.acting_as(principal), identity.subject_id)
    return tokens


async def verify_credentials(ctx: Context, email: str, password: str) -> tuple[Identity, Principal]:
    """Whom an address and password sign in. Raises what sign_in does."""
    identity = await identities.verify_sign_in(ctx, email, password)
    if (principal := await _principal_of(ctx.services, identity)) is None:
        raise identities.sign_in_rejected()
    await identities.clear_failures(ctx, email)
    return identity, principal


async def _principal_of(services: Services, identity: Identity) -> Principal | None:
    if identity.kind == "coach":
        return await team.load_principal(services, identity.subject_id)
    return await first_access.load_principal(services, identity.company_id, identity.subject_id)


async def create_session(ctx: Context, subject_id: ObjectId, kind: SubjectKind) -> Document:
    """A new session of a coach or client of the company: `{accessToken, tokenType, expiresIn, refreshToken}`."""
    access, family = new_token(), new_token()
    refresh = f"{family}.{new_token()}"
    session = {
        "subjectId": subject_id,
        "kind": kind,
        "familyHash": token_hash(family),
        "refreshHash": token_hash(refresh),
        "impersonatedBy": None,
    }
    await store.add(ctx, session, token_hash(access), store.ACCESS_LIVES, store.FAMILY_LIVES)
    return _tokens(access, store.ACCESS_LIVES) | {"refreshToken": refresh}


async def impersonate(ctx: Context, customer_id: ObjectId) -> Document:
    """A client's session of 15 minutes for the coach asking, marked as such; it cannot be renewed."""
    access = new_token()
    session = {"subjectId": customer_id, "kind": "customer", "impersonatedBy": ctx.caller.id}
    await store.add(ctx, session, token_hash(access), IMPERSONATION_LIVES, IMPERSONATION_LIVES)
    return _tokens(access, IMPERSONATION_LIVES)


def _tokens(access: str, lives: timedelta) -> Document:
    return {"accessToken": access, "tokenType": "Bearer", "expiresIn": int(lives.total_seconds())}


async def refresh(ctx: Context, token: str) -> Document:
    """New tokens for a refresh token, which is then spent.

    Raises SignInRefused for any other; a spent one ends its whole family at once. Nothing is spent while its bearer
    may not sign in.
    """
    refused = SignInRejected("The refresh token is not valid; sign in again")
    family_hash = token_hash(token.partition(".")[0])
    session = await store.by_refresh(ctx.services, family_hash, token_hash(token))
    if session is not None and to_principal(session) is None:
        raise refused
    access, renewed = new_token(), f"{token.partition('.')[0]}.{new_token()}"
    rotated = await store.rotate(ctx.services, family_hash, token_hash(token), token_hash(renewed), token_hash(access))
    if rotated is None:
        if (ended := await store.revoke_family(ctx.services, family_hash)) is not None:
            log.warning("spent refresh token", session=str(ended["_id"]), company=str(ended["companyId"]))
        raise refused
    return _tokens(access, store.ACCESS_LIVES) | {"refreshToken": renewed}


async def sign_out(ctx: Context) -> None:
    """End the session asking, refresh tokens included."""
    await store.remove(ctx, ctx.caller.credential_id)


async def end_sessions(ctx: Context, subject_id: ObjectId) -> None:
    """End every session of a coach or client of the company, in the caller's transaction."""
    await store.remove_all(ctx, subject_id)


async def authenticate(services: Services, access_token: str) -> Principal:
    """Whom a bearer's access token stands for. Raises Unauthorized when it is unknown, ended, or its bearer is gone."""
    if (principal := await find_principal(services, token_hash(access_token))) is None:
        raise Unauthorized()
    return principal


async def find_principal(services: Services, access_hash: str) -> Principal | None:
    """Whom the session with this access token's hash stands for, or None."""
    session = await store.resolve(services, access_hash)
    return None if session is None else to_principal(session)


def to_principal(session: Document) -> Principal | None:
    """Whom a session that store.resolve gave stands for; None when they, or the company, are gone."""
    if not session["company"]:
        return None
    company: Company = account.to_company(session["company"][0])
    if session["kind"] == "coach":
        if not session["coach"]:
            return None
        return team.to_principal(session["coach"][0], company, "session", session["_id"])
    if not session["customer"] or session["customer"][0]["customerRoleData"]["isArchived"]:
        return None
    return first_access.to_principal(session["customer"][0], company, session["_id"], session["impersonatedBy"])


async def request_password_reset(ctx: Context, email: str) -> None:
    """Queue the question whether anybody signs in by `email`; the worker asks it, so the answer takes no time here.

    Raises TooManyRequests when many have been asked from one network address.
    """
    await rate_limits.limit(ctx.services, "password forgotten", ctx.network_address, _FORGOTTEN_A_WINDOW)
    await queue.enqueue(ctx, RESET_REQUESTED, {"email": email})


async def send_password_reset(services: Services, job: Job) -> RunAgain | None:
    """Send a token to set a new password to whoever signs in by the address, a few times an hour at most.

    It goes to the address that is stored, whatever was typed to find it.
    """
    identity = await identities.find_by_email(services, job.arguments["email"])
    principal = await _principal_of(services, identity) if identity else None
    if identity is None or principal is None:
        return None
    mails, _ = await rate_limits.count(services, "reset mail", str(identity.subject_id))
    if mails > _MAILS_A_WINDOW:
        return None
    ctx = Context(services).acting_as(principal)

    async def queued(tx: Context) -> None:
        address = await identities.get_email(tx, identity.subject_id)
        if address is None:
            return
        token = await identities.create_reset_token(tx, identity.subject_id, identity.kind)
        text = (
            f"Hello {principal.name},\n\nset a new password within the hour:\n\n"
            f"{services.base_url}/app/reset-password?token={token}\n\n"
            f"Or send it with this token to POST /auth/password/reset: {token}\n"
            "If you did not ask for this, do nothing: your password stays as it is.\n"
        )
        about = identity.subject_id if identity.kind == "customer" else None
        await mail.enqueue_mail(tx, address, "Set a new password", text, about=about)

    await in_transaction(ctx, queued)
    return None


async def reset_password(ctx: Context, token: str, password: str) -> None:
    """Set a new password by a token; every session of its bearer and every assistant they let in ends.

    Raises SignInRefused when the token is unknown, used, or older than an hour.
    """
    identity = await identities.find_by_reset_token(ctx.services, token)
    principal = await _principal_of(ctx.services, identity) if identity else None
    if identity is None or principal is None:
        raise _bad_reset()
    password_hash = await hash_password(password)

    async def changed(tx: Context) -> None:
        if not await identities.reset_password(tx, identity.subject_id, token, password_hash):
            raise _bad_reset()
        await store.remove_all(tx, identity.subject_id)
        await assistants.revoke_all_of_coach(tx, identity.subject_id)

    await in_transaction(ctx.acting_as(principal), changed)


async def change_password(ctx: Context, current: str, fresh: str) -> None:
    """Give the coach asking, who has a session, another password. This session goes on; every other one ends, and so
    does every assistant they let in.

    Raises Forbidden when `current` is not their password, which counts like a sign-in that failed; TooManyRequests.
    """
    if not await identities.check_password(ctx, ctx.caller.id, current):
        raise Forbidden("The password is wrong")
    password_hash = await hash_password(fresh)

    async def changed(tx: Context) -> None:
        await identities.set_password(tx, tx.caller.id, password_hash)
        await store.remove_others(tx, tx.caller.id, tx.caller.credential_id)
        await assistants.revoke_all_of_coach(tx, tx.caller.id)
        await audit.record(tx, "password.changed")

    await in_transaction(ctx, changed)


def _bad_reset() -> SignInRejected:
    return SignInRejected("The token is unknown, used or older than an hour; ask for another")


async def end_sessions_of_coach(ctx: Context, event: CoachRemoved) -> None:
    """End every session of a removed coach."""
    await end_sessions(ctx, event.coach_id)
