"""Sessions of the coach application: a cookie's token, of no use at REST's door, as REST's are of none at this one."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.secrets import new_token, token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.errors import Forbidden
from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service, store

LIVES, IDLE = timedelta(hours=12), timedelta(hours=2)
_DOOR = "web"
_PROLONGED_EVERY = timedelta(minutes=5)


async def sign_in(ctx: Context, email: str, password: str) -> str:
    """A new session's token for a coach. Raises SignInRefused, TooManyRequests; Forbidden for a client of a coach's."""
    identity, principal = await service.verify_credentials(ctx, email, password)
    if identity.kind != "coach":
        raise Forbidden("This application is for coaches; you are known here as a client")
    return await create_session(ctx.acting_as(principal), identity.subject_id)


async def sign_up(ctx: Context, company_name: str, name: str, email: str, password: str, timezone: str) -> str:
    """A new company; gives its owner's token. Raises what service.sign_up does."""
    return await service.register(ctx, company_name, name, email, password, create_session, timezone)


async def create_session(ctx: Context, coach_id: ObjectId) -> str:
    """A new session of a coach of the company: 12 hours at most, ended by two without a request."""
    token = new_token()
    session = {"subjectId": coach_id, "kind": "coach", "door": _DOOR, "impersonatedBy": None}
    await store.add(ctx, session, token_hash(token), IDLE, LIVES)
    return token


async def find_principal(services: Services, token: str) -> Principal | None:
    """Whom a cookie's token stands for; None when it is unknown, ended, or its bearer is gone."""
    hashed = token_hash(token)
    session = await store.resolve(services, hashed, _DOOR)
    if session is None:
        return None
    until = min(now() + IDLE, session["expiresAt"])
    if until - session["access"][0]["until"] > _PROLONGED_EVERY:
        await store.prolong(services, hashed, until)
    return service.to_principal(session)
