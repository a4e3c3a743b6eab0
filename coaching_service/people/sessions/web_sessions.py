"""Sign-in sessions of the web application: the token in a cookie, which the REST interface does not accept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from coaching_service.core.auth import Principal, new_token, token_hash
from coaching_service.core.database import outcome
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as first_access
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.models import SubjectKind
from coaching_service.people.second_factor.models import ChallengeAnswer
from coaching_service.people.sessions import service
from coaching_service.people.sessions.models import NewSession, OwnSession, Session, SessionUse

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


async def sign_in(
    ctx: Context, email: str, password: str, device: str = "", device_tokens: Iterable[str] = ()
) -> StartedSession:
    """Start a session of a coach or client.

    `device`: the User-Agent header of the browser, which describes the session in the user's list;
    `device_tokens` as in service.sign_in. Raises what service.sign_in raises.
    """
    identity, principal = await service.verify_credentials(ctx, email, password, device_tokens)
    return await start(ctx, principal, identity.kind, device)


async def answer_challenge(ctx: Context, answer: ChallengeAnswer, device: str = "") -> StartedSession:
    """Start a session of the user whom a challenge asks. Raises what service.verify_answer raises."""
    identity, principal = await service.verify_answer(ctx, answer)
    return await start(ctx, principal, identity.kind, device, has_second_factor=True)


async def start(
    ctx: Context, user: Principal, kind: SubjectKind, device: str, *, has_second_factor: bool = False
) -> StartedSession:
    """Start a session of a user; one who is signed in already keeps the session, which begins again."""
    is_again = ctx.principal is not None and ctx.principal.id == user.id
    started = _Start(has_second_factor, ctx.principal.credential_id if ctx.principal and is_again else None)
    user_ctx = ctx.acting_as(user)
    if kind == "coach":
        return await start_for_coach(user_ctx, user.id, started)
    session = await start_for_customer(user_ctx, user.id, device, started)
    await first_access.record_sign_in(user_ctx, user.id)
    return session


async def sign_up(
    ctx: Context, company_name: str, name: str, email: str, password: str, timezone: str
) -> StartedSession:
    """Create a company and start a session of its owner. Raises what service.sign_up raises."""
    return await service.register(ctx, company_name, name, email, password, start_for_coach, timezone)


class _Start(NamedTuple):
    """How a session starts: with a second factor or not, and instead of an earlier one of the same browser, if any."""

    has_second_factor: bool = False
    renewed_id: ObjectId | None = None


_WITH_PASSWORD = _Start()


async def start_for_coach(ctx: Context, coach_id: ObjectId, start: _Start = _WITH_PASSWORD) -> StartedSession:
    """Start a session of a coach of the company: it ends after 12 hours, or 2 hours without a request."""
    token = new_token()
    session = _session_of(coach_id, "coach", has_second_factor=start.has_second_factor)
    lifetimes = (COACH_IDLE_LIFETIME, COACH_LIFETIME)
    await service.create(ctx, session, token_hash(token), *lifetimes, renewed_id=start.renewed_id)
    return StartedSession(token, "coach", COACH_LIFETIME, await identities.sign_device(ctx, coach_id))


async def start_for_customer(
    ctx: Context, customer_id: ObjectId, device: str, start: _Start = _WITH_PASSWORD
) -> StartedSession:
    """Start a session of a client of the company: it ends 90 days after its last request."""
    token = new_token()
    session = _session_of(customer_id, "customer", has_second_factor=start.has_second_factor)
    session |= {"device": device[:_MAX_DEVICE_LENGTH], "lastUsedAt": now()}
    lifetimes = (CUSTOMER_LIFETIME, CUSTOMER_LIFETIME)
    await service.create(ctx, session, token_hash(token), *lifetimes, renewed_id=start.renewed_id)
    return StartedSession(token, "customer", CUSTOMER_LIFETIME, await identities.sign_device(ctx, customer_id))


def _session_of(subject_id: ObjectId, kind: SubjectKind, *, has_second_factor: bool) -> NewSession:
    return {
        "subjectId": subject_id,
        "kind": kind,
        "application": _APPLICATION,
        "impersonatedBy": None,
        "hasSecondFactor": has_second_factor,
    }


async def find_principal(services: Services, token: str, *, extends: bool = True) -> Principal | None:
    """Return the user of a session as a principal, and extend the session if `extends`: the user has done something.

    None if the token is unknown or expired, or the user may not sign in any more.
    """
    access_hash = token_hash(token)
    session = await service.find_by_access(services, access_hash, _APPLICATION)
    if session is None:
        return None
    if extends:
        await _extend(services, access_hash, session)
    return service.to_principal(session)


async def _extend(services: Services, access_hash: str, session: Session) -> None:
    at, until = now(), session["access"][0]["until"]
    if session["kind"] == "customer":
        extended, extended_after = at + CUSTOMER_LIFETIME, _CUSTOMER_EXTENDED_AFTER
        change = {"access.0.until": extended, "expiresAt": extended, "lastUsedAt": at}
    else:
        extended, extended_after = min(at + COACH_IDLE_LIFETIME, session["expiresAt"]), _COACH_EXTENDED_AFTER
        change = {"access.0.until": extended}
    if extended - until > extended_after:
        with outcome.incidental():
            await service._sessions.across_companies(services).update_one(
                {"access.hash": access_hash}, {"$set": change}
            )


async def list_own(ctx: Context) -> list[OwnSession]:
    """Return the web sessions of the caller, the last used first; `isCurrent`: it sends this request."""
    stored = await _list_open(ctx, ctx.caller.id)
    sessions: list[OwnSession] = [
        {
            "_id": session["_id"],
            "device": session.get("device", ""),
            "createdAt": session["createdAt"],
            "lastUsedAt": _last_used(session),
            "isCurrent": session["_id"] == ctx.caller.credential_id,
        }
        for session in stored
    ]
    return sorted(sessions, key=lambda session: (session["isCurrent"], session["lastUsedAt"]), reverse=True)


async def find_last_use(ctx: Context, customer_id: ObjectId) -> datetime | None:
    """Return when a client was last on the web application, to the hour, or None; ended sessions do not count.

    Access to the client is not checked.
    """
    stored = await _list_open(ctx, customer_id)
    return max((_last_used(session) for session in stored), default=None)


async def _list_open(ctx: Context, subject_id: ObjectId) -> list[SessionUse]:
    where = {"subjectId": subject_id, "application": _APPLICATION, "expiresAt": {"$gt": now()}}
    return await service._sessions.find(ctx, where, fields=("device", "createdAt", "lastUsedAt"))


def _last_used(session: Session | SessionUse) -> datetime:
    return session.get("lastUsedAt") or session["createdAt"]


async def end_own(ctx: Context, session_id: ObjectId) -> None:
    """End one session of the caller. Raises NotFound if the caller has no such session."""
    if not await service.end_session(ctx, session_id):
        raise NotFound("session")
