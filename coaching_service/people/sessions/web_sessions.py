"""Sign-in sessions of the web application: the token in a cookie, which the REST interface does not accept."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.secrets import new_token, token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.errors import Forbidden
from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service, store

LIFETIME, IDLE_LIFETIME = timedelta(hours=12), timedelta(hours=2)
_APPLICATION = "web"
_EXTENDED_AFTER = timedelta(minutes=5)


async def sign_in(ctx: Context, email: str, password: str) -> str:
    """Return the token of a new session of a coach.

    Raises Forbidden if the e-mail address belongs to a client, and what service.sign_in raises.
    """
    identity, principal = await service.verify_credentials(ctx, email, password)
    if identity.kind != "coach":
        raise Forbidden("This application is for coaches; you are known here as a client", code="COACHES_ONLY")
    return await create_session(ctx.acting_as(principal), identity.subject_id)


async def sign_up(ctx: Context, company_name: str, name: str, email: str, password: str, timezone: str) -> str:
    """Create a company and return the token of its owner's session. Raises what service.sign_up raises."""
    return await service.register(ctx, company_name, name, email, password, create_session, timezone)


async def create_session(ctx: Context, coach_id: ObjectId) -> str:
    """Return the token of a new session of a coach: it ends after 12 hours, or 2 hours without a request."""
    token = new_token()
    await store.insert(
        ctx,
        {"subjectId": coach_id, "kind": "coach", "application": _APPLICATION, "impersonatedBy": None},
        token_hash(token),
        IDLE_LIFETIME,
        LIFETIME,
    )
    return token


async def find_principal(services: Services, token: str) -> Principal | None:
    """Return the coach of a session as a principal; None if the token is unknown or expired, or the coach deleted."""
    access_hash = token_hash(token)
    session = await store.find_by_access(services, access_hash, _APPLICATION)
    if session is None:
        return None
    until = min(now() + IDLE_LIFETIME, session["expiresAt"])
    if until - session["access"][0]["until"] > _EXTENDED_AFTER:
        await store.extend(services, access_hash, until)
    return service.to_principal(session)
