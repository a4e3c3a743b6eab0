"""Signing up, in and out, over REST and in the web application, renewing sessions, and confirming e-mail addresses."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import structlog

from coaching_service.core import audit, rate_limits
from coaching_service.core.auth import CUSTOMERS, Principal, new_token, token_hash
from coaching_service.core.database import outcome
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.declared import Index, NotExported, Unsharded
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.worker_thread import aggregate_all
from coaching_service.core.errors import Forbidden, NotFound, SignInRejected, Unauthorized, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.mail import MailBody, NewMail
from coaching_service.people import account, second_factor, team
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.models import IdentityDisplaced, SubjectKind
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.identities.service import Identity
from coaching_service.people.second_factor import ChallengeAnswer
from coaching_service.people.sessions import models as session_models
from coaching_service.people.sessions.models import OwnSession, Session, SessionUse
from coaching_service.people.team import CoachRemoved, SignInEmailChanged

# --- Sign-in sessions in the database: tokens are stored as hashes ----------------------------------------------------
# Each session is a family of refresh tokens; only the latest is valid.


ACCESS_LIFETIME = timedelta(hours=1)
FAMILY_LIFETIME = timedelta(days=30)
_MAX_ACCESS_TOKENS = 5
_ROLE = "customerRoleData"
_CUSTOMER_FIELDS = ("name", "email", "timezone", "loadUnit", f"{_ROLE}.assignedTo", f"{_ROLE}.isArchived")

_sessions = Documents[session_models.Session](
    "sessions",
    (Index(("subjectId",)),),
    client_field="subjectId",
    secret=True,
    global_indexes=(
        Index(("access.hash",), unique=True),
        Index(("familyHash",), unique=True, partial_filter=(("familyHash", {"$exists": True}),)),
        Index(("expiresAt",), expire_after=0),
    ),
    cross_company_reason="a session is found by the hash of its token before its company is known",
    placement=Unsharded("a token is unique among all companies, and found by its hash at each request"),
    transfer=NotExported("tokens"),
)


async def create(
    ctx: Context,
    session: session_models.NewSession,
    access_hash: str,
    access_lifetime: timedelta,
    lifetime: timedelta,
    *,
    renewed_id: ObjectId | None = None,
) -> None:
    """Store a session that ends after `lifetime`, with its first access token.

    `renewed_id`: an existing session of the same user that begins again instead, with what depends on it.
    """
    at = now()
    fields = {**session, "access": [{"hash": access_hash, "until": at + access_lifetime}], "expiresAt": at + lifetime}
    where = {"_id": renewed_id, "subjectId": session["subjectId"]}
    if renewed_id is None or not await _sessions.set_derived(ctx, where, {"$set": {**fields, "createdAt": at}}):
        await _sessions.insert(ctx, fields)


async def find_by_access(
    services: Services, access_hash: str, application: str | None = None
) -> session_models.SessionWithSubject | None:
    """Return the session with this unexpired access token, in one round trip, or None.

    `application` is the one the session was created for; None: the REST interface.
    """
    unexpired = {"$elemMatch": {"hash": access_hash, "until": {"$gt": now()}}}
    return await _with_subject(services, {"access": unexpired, "application": application})


async def _with_subject(services: Services, where: Filter) -> session_models.SessionWithSubject | None:
    stages: list[Document] = [
        {"$match": where},
        {"$project": {"access.hash": 0, "familyHash": 0, "refreshHash": 0}},
        {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        {"$lookup": {"from": "coaches", "localField": "subjectId", "foreignField": "_id", "as": "coach"}},
        {
            "$lookup": {
                "from": "customers",
                "localField": "subjectId",
                "foreignField": "_id",
                "let": {"companyId": "$companyId"},
                "as": "customer",
                "pipeline": [
                    {"$match": {"$expr": {"$eq": ["$companyId", "$$companyId"]}}},
                    {"$project": dict.fromkeys(_CUSTOMER_FIELDS, 1)},
                ],
            }
        },
    ]
    result: list[Any] = await aggregate_all(_sessions.across_companies(services), stages)
    return result[0] if result else None


# --- The mail with the token by which a coach or client confirms the e-mail address -----------------------------------


MAILS = 3  # to one user within 15 minutes
_SENDER = "Coaching service"


@transactional
async def queue_mail(ctx: Context) -> bool:
    """Queue a mail with a token to confirm the e-mail address of the caller.

    It contains no text that the user has chosen, since the address may be a stranger's. Returns False if there is
    nothing to confirm.
    """
    confirmation = await identities.sign_confirmation(ctx, ctx.caller.id)
    if confirmation is None:
        return False
    address, token = confirmation
    body: MailBody = {
        "company": _SENDER,
        "name": address,
        "paragraphs": ["Confirm that this is your e-mail address. The link works for a week."],
        "button": "Confirm your e-mail address",
        "link": f"{ctx.services.base_url}/app/confirm-email?token={token}",
        "notes": ["If you did not sign up, do nothing: the address is not used without your confirmation."],
        "reason": "You receive this mail because an account was created with this e-mail address.",
        "settings": None,
    }
    addition = f"Applications can send this token to POST /auth/confirm-email: {token}"
    subject, is_owner = "Confirm your e-mail address", ctx.caller.role == "OWNER"
    await mail.enqueue_mail(ctx, NewMail(address, subject, body, text_addition=addition, is_urgent=is_owner))
    return True


async def send_again(ctx: Context) -> bool:
    """Queue another mail for the caller; returns False if the address is already confirmed.

    Raises TooManyRequests from the fourth mail within 15 minutes.
    """
    if await identities.is_email_confirmed(ctx, ctx.caller.id):
        return False
    await rate_limits.limit(ctx.services, "confirmation mail", str(ctx.caller.id), MAILS)
    return await queue_mail(ctx)


IMPERSONATION_LIFETIME = timedelta(minutes=15)
RECENT_SIGN_IN = timedelta(minutes=10)
_SIGN_UPS = 30  # of a network address, which many users may share, within 15 minutes

T = TypeVar("T")

log = structlog.get_logger("coaching_service.sessions")


# --- Signing up, in and out ------------------------------------------------------------------------------------------


async def sign_up(ctx: Context, company_name: str, name: str, email: str, password: str) -> session_models.SignedIn:
    """Create a company and return the tokens of its owner's session.

    Raises Conflict if the e-mail address is already used to sign in, Forbidden if the operator has disabled sign-up,
    TooManyRequests after too many sign-ups from one network address.
    """
    return await register(ctx, company_name, name, email, password, partial(create_session, kind="coach"))


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
    ctx.services.disk_space.require()
    await rate_limits.limit(ctx.services, "sign-up", ctx.network_address, _SIGN_UPS)
    password_hash = await hash_password(password)

    @transactional
    async def create_company(ctx: Context) -> T:
        owner = await team.create_company(
            ctx, company_name, name, email, password_hash, timezone=timezone, is_confirmed=False
        )
        owner_ctx = ctx.acting_as(owner)
        await queue_mail(owner_ctx)
        return await create_owner_session(owner_ctx, owner.id)

    return await create_company(ctx)


async def sign_in(
    ctx: Context, email: str, password: str, device_tokens: Iterable[str] = ()
) -> session_models.SignedIn:
    """Return the tokens of a new session.

    `device_tokens`: those that earlier sign-ins returned to the device, which has a counter of failures of its own.
    Raises SignInRejected, always the same; SecondFactorRequired if the user has one; TooManyRequests after too many
    failures.
    """
    return await _begin_session(ctx, *await verify_credentials(ctx, email, password, device_tokens))


async def answer_challenge(ctx: Context, answer: ChallengeAnswer) -> session_models.SignedIn:
    """Return the tokens of a new session of the user whom a challenge asks. Raises what `verify_answer` raises."""
    return await _begin_session(ctx, *await verify_answer(ctx, answer), has_second_factor=True)


async def _begin_session(
    ctx: Context, identity: Identity, principal: Principal, *, has_second_factor: bool = False
) -> session_models.SignedIn:
    user_ctx = ctx.acting_as(principal)
    tokens = await create_session(user_ctx, identity.subject_id, identity.kind, has_second_factor=has_second_factor)
    if identity.kind == "customer":
        await customers.record_sign_in(user_ctx, identity.subject_id)
    return tokens


async def verify_credentials(
    ctx: Context, email: str, password: str, device_tokens: Iterable[str]
) -> tuple[Identity, Principal]:
    """Return the identity and the principal of a user who signs in. Raises what sign_in raises."""
    verified = await identities.verify_sign_in(ctx, email, password, device_tokens)
    principal = await _require_principal(ctx, verified.identity)
    await second_factor.require_none(ctx.acting_as(principal), verified)
    await identities.clear(ctx, verified.attempt)
    audit.record_sign_in(ctx.acting_as(principal))
    return verified.identity, principal


async def verify_answer(ctx: Context, answer: ChallengeAnswer) -> tuple[Identity, Principal]:
    """Return the identity and the principal of a user who answers a challenge, which is used then.

    Raises InvalidFields without an answer; SignInRejected for a challenge that is not valid, or a wrong answer, which
    counts as a failed sign-in of the user; TooManyRequests as `sign_in` does.
    """
    if not (answer.get("code") or answer.get("recoveryCode") or answer.get("assertion")):
        raise invalid_field("code", "or recoveryCode or assertion is needed", code="REQUIRED")
    async with ctx.services.sign_in_slot.holding(ctx.network_address):
        challenged = await second_factor.find_challenged(ctx, answer)
        verified = challenged.verified
        principal = await _require_principal(ctx, verified.identity)
        await identities.require_few(ctx, verified.attempt)
        if not await second_factor.verify(ctx.acting_as(principal), answer, challenged):
            ctx.services.metrics.sign_in_failures.labels("wrong_code").inc()
            audit.record_failed_sign_in(ctx, principal.company.id, principal.id, is_coach=principal.is_coach)
            await identities.count(ctx, verified.attempt)
            if answer.get("assertion"):
                raise second_factor.passkey_rejected()
            raise SignInRejected("The code is wrong, or has been used", code="SECOND_FACTOR_REJECTED")
        if not await second_factor.use_challenge(ctx, challenged.challenge):
            raise second_factor.challenge_rejected()
    await identities.clear(ctx, verified.attempt)
    audit.record_sign_in(ctx.acting_as(principal))
    return verified.identity, principal


async def _require_principal(ctx: Context, identity: Identity) -> Principal:
    if (principal := await get_principal(ctx.services, identity)) is None:
        ctx.services.metrics.sign_in_failures.labels("no_access").inc()
        raise identities.sign_in_rejected()
    return principal


async def get_principal(services: Services, identity: Identity) -> Principal | None:
    """Return the coach or client of an identity; None if the user may not sign in. Raises CompanySuspended."""
    if identity.kind == "coach":
        return await team.get_principal(services, identity.subject_id)
    return await customers.load_principal(services, identity.company_id, identity.subject_id)


async def create_session(
    ctx: Context, subject_id: ObjectId, kind: SubjectKind, *, has_second_factor: bool = False
) -> session_models.SignedIn:
    """Create a session of a coach or client of the company and return its tokens and one of the device."""
    access, family = new_token(), new_token()
    refresh_token = f"{family}.{new_token()}"
    session: session_models.NewSession = {
        "subjectId": subject_id,
        "kind": kind,
        "familyHash": token_hash(family),
        "refreshHash": token_hash(refresh_token),
        "impersonatedBy": None,
        "hasSecondFactor": has_second_factor,
    }
    await create(ctx, session, token_hash(access), ACCESS_LIFETIME, FAMILY_LIFETIME)
    device_token = await identities.sign_device(ctx, subject_id)
    return {
        **_token_response(access, ACCESS_LIFETIME),
        "refreshToken": refresh_token,
        "deviceToken": device_token,
    }


async def impersonate(ctx: Context, customer_id: ObjectId) -> session_models.AccessToken:
    """Return a client's session for the caller: 15 minutes long, marked as impersonated, not renewable."""
    access = new_token()
    session: session_models.NewSession = {
        "subjectId": customer_id,
        "kind": "customer",
        "impersonatedBy": ctx.caller.id,
        "hasSecondFactor": ctx.caller.has_second_factor,
    }
    await create(ctx, session, token_hash(access), IMPERSONATION_LIFETIME, IMPERSONATION_LIFETIME)
    return _token_response(access, IMPERSONATION_LIFETIME)


def _token_response(access: str, lifetime: timedelta) -> session_models.AccessToken:
    return {"accessToken": access, "tokenType": "Bearer", "expiresIn": int(lifetime.total_seconds())}


async def refresh(ctx: Context, token: str) -> session_models.SessionTokens:
    """Return new tokens for a refresh token, which is then spent.

    Raises SignInRejected for any other token; a spent one ends its session at once. A token is not spent while its
    user may not sign in.
    """
    rejected = SignInRejected("The refresh token is not valid; sign in again")
    family = token.partition(".")[0]
    family_hash = token_hash(family)
    valid = {"familyHash": family_hash, "refreshHash": token_hash(token), "expiresAt": {"$gt": now()}}
    session = await _with_subject(ctx.services, valid)
    if session is not None and to_principal(session) is None:
        raise rejected
    access, renewed, at = new_token(), f"{family}.{new_token()}", now()
    added = {"hash": token_hash(access), "until": at + ACCESS_LIFETIME}
    change = {
        "$set": {"refreshHash": token_hash(renewed), "expiresAt": at + FAMILY_LIFETIME, "updatedAt": at},
        "$push": {"access": {"$each": [added], "$slice": -_MAX_ACCESS_TOKENS}},
        "$inc": {"version": 1},
    }
    sessions = _sessions.across_companies(ctx.services)
    if not (await sessions.update_one(valid, change)).modified_count:
        if (ended := await sessions.find_one({"familyHash": family_hash})) is not None:
            which = session_models.SessionsEnded(ended["companyId"], ended["subjectId"], session_id=ended["_id"])
            await _end(ctx, which)
            log.warning("spent refresh token", session=str(ended["_id"]), company=str(ended["companyId"]))
        raise rejected
    return {**_token_response(access, ACCESS_LIFETIME), "refreshToken": renewed}


async def sign_out(ctx: Context) -> None:
    """End the caller's session."""
    await end_session(ctx, ctx.caller.credential_id)


async def end_session(ctx: Context, session_id: ObjectId) -> bool:
    """End one session of the caller; returns whether there was one."""
    return await _end(ctx, session_models.SessionsEnded(ctx.company_id, ctx.caller.id, session_id=session_id)) > 0


async def end_other_sessions(ctx: Context) -> None:
    """End every session of the caller, except for the session that sends this request."""
    kept = ctx.caller.credential_id
    await _end(ctx, session_models.SessionsEnded(ctx.company_id, ctx.caller.id, kept_session_id=kept))


async def end_sessions(ctx: Context, subject_id: ObjectId) -> None:
    """End every session of a coach or client of the company."""
    await _end(ctx, session_models.SessionsEnded(ctx.company_id, subject_id))


@transactional
async def _end(ctx: Context, which: session_models.SessionsEnded) -> int:
    """End sessions with what depends on them; returns how many there were."""
    sessions = _sessions.across_companies(ctx.services)
    number = (await sessions.delete_many(which.filter("_id"), session=ctx.session)).deleted_count
    await ctx.publish(which)
    return number


async def end_sessions_of_coach(ctx: Context, event: CoachRemoved | SignInEmailChanged) -> None:
    """End every session of a coach who was removed or whose e-mail address has changed."""
    await end_sessions(ctx, event.coach_id)


async def end_displaced_sessions(ctx: Context, event: IdentityDisplaced) -> None:
    """End every session of a coach or client, of any company, who lost an unconfirmed e-mail address."""
    await _end(ctx, session_models.SessionsEnded(event.company_id, event.subject_id))


async def require_recent_sign_in(ctx: Context) -> None:
    """Raise Forbidden unless the caller's session began at most 10 minutes ago, and is the caller's own."""
    if ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot change how the client signs in", code="IMPERSONATED")
    session = await _sessions.find_one(ctx, {"_id": ctx.caller.credential_id}, ("createdAt",))
    if session is None or now() - session["createdAt"] > RECENT_SIGN_IN:
        raise Forbidden("Sign in again, at most 10 minutes before this change", code="SIGN_IN_AGAIN")


async def mark_second_factor(ctx: Context, subject_id: ObjectId, session_id: ObjectId | None) -> None:
    """Store that one session of a coach or client counts as one with a second factor; None: that none does."""
    where = {"subjectId": subject_id} if session_id is None else {"_id": session_id}
    await _sessions.set_derived(ctx, where, {"$set": {"hasSecondFactor": session_id is not None}})


async def hold_session(ctx: Context, session_id: ObjectId) -> bool:
    """Return whether a session exists; until the caller's transaction ends, it cannot be ended."""
    return await _sessions.set_derived(ctx, {"_id": session_id}, {"$inc": {"version": 1}}) == 1


async def count_open(ctx: Context, subject_id: ObjectId) -> int:
    """Return the number of sessions of a coach or client of the company that have not ended."""
    return await _sessions.count(ctx, {"subjectId": subject_id, "expiresAt": {"$gt": now()}})


# --- Authentication --------------------------------------------------------------------------------------------------


async def authenticate(services: Services, access_token: str) -> Principal:
    """Return the user of an access token. Raises Unauthorized if it is unknown or expired, or the user is deleted."""
    session = await find_by_access(services, token_hash(access_token))
    principal = None if session is None or not await _may_act(services, session) else to_principal(session)
    if principal is None:
        raise Unauthorized()
    return principal


async def _may_act(services: Services, session: session_models.SessionWithSubject) -> bool:
    """Return whether a session is the user's own, or its coach may still act as the client. Raises CompanySuspended."""
    coach_id = session["impersonatedBy"]
    if coach_id is None or not session["customer"]:
        return True
    coach = await team.get_principal(services, coach_id)
    if coach is None or CUSTOMERS.EDIT not in coach.permissions:
        return False
    return customers.is_in_scope(Context(services, coach), session["customer"][0])


def to_principal(session: session_models.SessionWithSubject) -> Principal | None:
    """Return the user of a session; None if the user or the company is deleted, or the client archived.

    Raises CompanySuspended.
    """
    if not session["company"]:
        return None
    company = account.to_company(session["company"][0])
    if session["kind"] == "coach":
        if not session["coach"]:
            return None
        coach = team.to_principal(session["coach"][0], company, "session", session["_id"])
        return replace(coach, has_second_factor=session.get("hasSecondFactor", False))
    if not session["customer"] or session["customer"][0]["customerRoleData"]["isArchived"]:
        return None
    client = customers.to_principal(session["customer"][0], company, session["_id"], session["impersonatedBy"])
    is_own = session["impersonatedBy"] is None
    return client if is_own else replace(client, has_second_factor=session.get("hasSecondFactor", False))


# --- Confirming an e-mail address ------------------------------------------------------------------------------------


async def confirm_email(ctx: Context, token: str) -> None:
    """Confirm an e-mail address by a mailed token.

    Raises SignInRejected if the token is unknown or older than a week, or the user no longer signs in by the address.
    """
    rejected = SignInRejected("The token is unknown or older than a week; sign in and request another")
    confirmed = await identities.find_by_confirmation(ctx.services, token)
    principal = await get_principal(ctx.services, confirmed[0]) if confirmed else None
    if confirmed is None or principal is None:
        raise rejected
    if not await transactional(identities.confirm_email)(ctx.acting_as(principal), principal.id, confirmed[1]):
        raise rejected


# --- Sessions of the web application: the token in a cookie, which the REST interface does not accept -----------------


COACH_LIFETIME, COACH_IDLE_LIFETIME = timedelta(hours=12), timedelta(hours=2)
CUSTOMER_LIFETIME = timedelta(days=90)
_APPLICATION = "web"
_COACH_EXTENDED_AFTER, _CUSTOMER_EXTENDED_AFTER = timedelta(minutes=5), timedelta(hours=1)
_MAX_DEVICE_LENGTH = 300


@dataclass(frozen=True)
class StartedSession:
    """A new session: its token, whose it is, how long the cookie lasts, and the token of the device."""

    token: str
    kind: SubjectKind
    cookie_lifetime: timedelta
    device_token: str


async def sign_in_web(
    ctx: Context, email: str, password: str, device: str = "", device_tokens: Iterable[str] = ()
) -> StartedSession:
    """Start a session of a coach or client.

    `device`: the User-Agent header of the browser, which describes the session in the user's list;
    `device_tokens` as in sign_in. Raises what sign_in raises.
    """
    identity, principal = await verify_credentials(ctx, email, password, device_tokens)
    return await start_web(ctx, principal, identity.kind, device)


async def start_web(
    ctx: Context, user: Principal, kind: SubjectKind, device: str, *, has_second_factor: bool = False
) -> StartedSession:
    """Start a session of a user; one who is signed in already keeps the session, which begins again."""
    is_again = ctx.principal is not None and ctx.principal.id == user.id
    renewed_id = ctx.principal.credential_id if ctx.principal and is_again else None
    start = {"has_second_factor": has_second_factor, "renewed_id": renewed_id}
    user_ctx = ctx.acting_as(user)
    if kind == "coach":
        return await start_for_coach(user_ctx, user.id, **start)
    session = await start_for_customer(user_ctx, user.id, device, **start)
    await customers.record_sign_in(user_ctx, user.id)
    return session


async def start_for_coach(ctx: Context, coach_id: ObjectId, **start: Any) -> StartedSession:
    """Start a session of a coach of the company: it ends after 12 hours, or 2 hours without a request."""
    return await _start(ctx, coach_id, "coach", (COACH_IDLE_LIFETIME, COACH_LIFETIME), {}, **start)


async def start_for_customer(ctx: Context, customer_id: ObjectId, device: str, **start: Any) -> StartedSession:
    """Start a session of a client of the company: it ends 90 days after its last request."""
    used = {"device": device[:_MAX_DEVICE_LENGTH], "lastUsedAt": now()}
    return await _start(ctx, customer_id, "customer", (CUSTOMER_LIFETIME, CUSTOMER_LIFETIME), used, **start)


async def _start(
    ctx: Context,
    subject_id: ObjectId,
    kind: SubjectKind,
    lifetimes: tuple[timedelta, timedelta],
    used: Document,
    *,
    has_second_factor: bool = False,
    renewed_id: ObjectId | None = None,
) -> StartedSession:
    """Start a session; `renewed_id`: instead of an earlier one of the same browser."""
    session: Any = {
        "subjectId": subject_id,
        "kind": kind,
        "application": _APPLICATION,
        "impersonatedBy": None,
        "hasSecondFactor": has_second_factor,
        **used,
    }
    token = new_token()
    await create(ctx, session, token_hash(token), *lifetimes, renewed_id=renewed_id)
    return StartedSession(token, kind, lifetimes[1], await identities.sign_device(ctx, subject_id))


async def find_web_principal(services: Services, token: str, *, extends: bool = True) -> Principal | None:
    """Return the user of a session as a principal, and extend the session if `extends`: the user has done something.

    None if the token is unknown or expired, or the user may not sign in any more.
    """
    access_hash = token_hash(token)
    session = await find_by_access(services, access_hash, _APPLICATION)
    if session is None:
        return None
    at = now()
    if session["kind"] == "customer":
        extended, extended_after = at + CUSTOMER_LIFETIME, _CUSTOMER_EXTENDED_AFTER
        change = {"access.0.until": extended, "expiresAt": extended, "lastUsedAt": at}
    else:
        extended, extended_after = min(at + COACH_IDLE_LIFETIME, session["expiresAt"]), _COACH_EXTENDED_AFTER
        change = {"access.0.until": extended}
    if extends and extended - session["access"][0]["until"] > extended_after:
        with outcome.incidental():
            await _sessions.across_companies(services).update_one({"access.hash": access_hash}, {"$set": change})
    return to_principal(session)


async def list_own_sessions(ctx: Context) -> list[OwnSession]:
    """Return the web sessions of the caller, the last used first; `isCurrent`: it sends this request."""
    sessions: list[OwnSession] = [
        {
            "_id": session["_id"],
            "device": session.get("device", ""),
            "createdAt": session["createdAt"],
            "lastUsedAt": _last_used(session),
            "isCurrent": session["_id"] == ctx.caller.credential_id,
        }
        for session in await _list_open(ctx, ctx.caller.id)
    ]
    return sorted(sessions, key=lambda session: (session["isCurrent"], session["lastUsedAt"]), reverse=True)


async def find_last_use(ctx: Context, customer_id: ObjectId) -> datetime | None:
    """Return when a client was last on the web application, to the hour, or None; ended sessions do not count.

    Access to the client is not checked.
    """
    return max(map(_last_used, await _list_open(ctx, customer_id)), default=None)


async def _list_open(ctx: Context, subject_id: ObjectId) -> list[SessionUse]:
    where = {"subjectId": subject_id, "application": _APPLICATION, "expiresAt": {"$gt": now()}}
    return await _sessions.find(ctx, where, fields=("device", "createdAt", "lastUsedAt"))


def _last_used(session: Session | SessionUse) -> datetime:
    return session.get("lastUsedAt") or session["createdAt"]


async def end_own_session(ctx: Context, session_id: ObjectId) -> None:
    """End one session of the caller. Raises NotFound if the caller has no such session."""
    if not await end_session(ctx, session_id):
        raise NotFound("session")
