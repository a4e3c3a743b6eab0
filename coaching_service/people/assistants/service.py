"""OAuth grants of assistants: a coach's consent, the authorization code, the tokens, and their revocation."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Collection
from dataclasses import dataclass, replace

import structlog

from coaching_service.core import audit
from coaching_service.core.auth.access import READ_PERMISSIONS
from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.secrets import new_token, token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import NotFound, Unauthorized
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.assistants import store
from coaching_service.people.assistants.models import (
    SCOPES,
    AuthorizationCode,
    Grant,
    GrantWithCoach,
    Scope,
    StoredGrant,
)
from coaching_service.people.team import service
from coaching_service.people.team import service as team
from coaching_service.people.team.models import CoachRemoved

log = structlog.get_logger("coaching_service.assistants")


class GrantRejected(Exception):
    """A code or token is not accepted; the message may be sent to the application."""


@dataclass(frozen=True)
class GrantRequest:
    """What an OAuth application asks a coach to consent to.

    `client_id` and `client_name` identify the application. The code is sent to `redirect_uri`; `redirect_uri_given`:
    the request contained it, so the token request must repeat it. `challenge` is the SHA-256 of the code verifier
    (base64url, no padding); `resource` is what the tokens are for. `client_host` is the host that describes the
    application, if it identifies itself by a document there. `requested` are the scopes of OAuth that it asks
    for, and `offered` what the coach can allow of them.
    """

    client_id: str
    client_name: str
    redirect_uri: str
    redirect_host: str
    challenge: str
    resource: str
    redirect_uri_given: bool = True
    client_host: str | None = None
    requested: str = ""
    offered: tuple[Scope, ...] = SCOPES


@dataclass(frozen=True)
class TokenPair:
    """An access token that is valid for `seconds`, and a refresh token if the application uses them.

    `requested` and `scopes`: what the application asked for, and what it was allowed.
    """

    access: str
    refresh: str | None
    requested: str = ""
    scopes: tuple[Scope, ...] = SCOPES
    seconds: int = int(store.ACCESS_LIFETIME.total_seconds())


# --- consent ---------------------------------------------------------------------------------------------------------


@transactional
async def create_grant(
    ctx: Context, request: GrantRequest, scopes: Collection[Scope], *, confirm_in_chat: bool = False
) -> str:
    """Store the caller's consent to `scopes`, and return the code, which can be exchanged for tokens once.

    `confirm_in_chat`: the assistant may confirm calls itself, within limits.
    """
    authorization_code = new_token()
    code: AuthorizationCode = {
        "hash": token_hash(authorization_code),
        "challenge": request.challenge,
        "redirectUri": request.redirect_uri,
        "named": request.redirect_uri_given,
        "resource": request.resource,
        "usedAt": None,
    }
    fields = {
        "coachId": ctx.caller.id,
        "clientId": request.client_id,
        "clientName": request.client_name,
        "redirectHost": request.redirect_host,
        "readOnly": "change" not in scopes,
        "scopes": [scope for scope in SCOPES if scope in scopes],
        "requested": request.requested,
        "confirmInChat": confirm_in_chat,
        "code": code,
        "lastUsedAt": None,
        "expiresAt": now() + store.CODE_LIFETIME,
    }
    grant = await store.grants.insert(ctx, fields)
    await audit.record(ctx, "assistant.granted", grantId=grant["_id"], clientName=request.client_name)
    return authorization_code


# --- tokens ----------------------------------------------------------------------------------------------------------


async def exchange_code(
    services: Services, code: str, client_id: str, verifier: str, redirect_uri: str | None, *, refreshable: bool
) -> TokenPair:
    """Return the first tokens for a code.

    Raises GrantRejected; a code that was used before revokes the tokens that it was exchanged for.
    """
    grant = await store.find(services, {"code.hash": token_hash(code)})
    if grant is None or grant["clientId"] != client_id:
        raise GrantRejected("The code is unknown, expired or another client's")
    stored = grant["code"]
    if stored["usedAt"] is not None:
        raise await _reject_replayed_code(services, grant)
    if redirect_uri != stored["redirectUri"] and (redirect_uri is not None or stored["named"]):
        raise GrantRejected("redirect_uri is not the one the code was sent to")
    if not hmac.compare_digest(_challenge(verifier), stored["challenge"]):
        raise GrantRejected("code_verifier does not fit the code_challenge")
    await _require_coach(services, grant)
    access, family = new_token(), new_token()
    refresh = f"{family}.{new_token()}" if refreshable else None
    family_hash, refresh_hash = (token_hash(family), token_hash(refresh)) if refresh else (None, None)
    if not await store.exchange_code(services, grant["_id"], token_hash(access), family_hash, refresh_hash):
        raise await _reject_replayed_code(services, grant)
    return _pair(grant, access, refresh)


def _pair(grant: StoredGrant, access: str, refresh: str | None) -> TokenPair:
    scopes = tuple(store.with_scopes(grant)["scopes"])
    return TokenPair(access, refresh, grant.get("requested", ""), scopes)


async def _reject_replayed_code(services: Services, grant: StoredGrant) -> GrantRejected:
    await store.delete_by_id(services, grant["_id"])
    log.warning("authorization code used twice", grant=str(grant["_id"]), company=str(grant["companyId"]))
    return GrantRejected("The code has been used; the tokens it was exchanged for have been revoked")


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode("ascii", "replace")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


async def refresh_tokens(services: Services, token: str, client_id: str) -> TokenPair:
    """Return new tokens for a refresh token, which is then spent; it is accepted again within a short grace period.

    Raises GrantRejected; a token that was spent earlier revokes the whole grant, and so does any other token of its
    family, since spent tokens are not stored forever.
    """
    family = token.partition(".")[0]
    grant = await store.find(services, {"familyHash": token_hash(family)})
    if grant is None or grant["clientId"] != client_id:
        raise GrantRejected("The refresh token is unknown, expired or another client's")
    await _require_coach(services, grant)
    access, renewed = new_token(), f"{family}.{new_token()}"
    hashes = (token_hash(token), token_hash(renewed), token_hash(access))
    if not await store.rotate(services, grant["_id"], *hashes):
        await store.delete_by_id(services, grant["_id"])
        log.warning("spent refresh token", grant=str(grant["_id"]), company=str(grant["companyId"]))
        raise GrantRejected("The refresh token has been used; its grant has been revoked")
    return _pair(grant, access, renewed)


async def _require_coach(services: Services, grant: StoredGrant) -> None:
    """Raise GrantRejected, and delete the grant, if its coach or company is deleted; CompanySuspended."""
    if await team.get_principal(services, grant["coachId"]) is None:
        await store.delete_by_id(services, grant["_id"])
        raise GrantRejected("The coach who gave consent no longer exists")


async def revoke_token(services: Services, token: str, client_id: str) -> None:
    """Delete the grant of an access or refresh token, if it belongs to this application."""
    grant = await store.find(services, {"familyHash": token_hash(token.partition(".")[0])})
    grant = grant or await store.find(services, {"access.hash": token_hash(token)})
    if grant is not None and grant["clientId"] == client_id:
        await store.delete_by_id(services, grant["_id"])


async def authenticate(services: Services, access_token: str) -> Principal:
    """Return the coach who gave consent as a principal.

    Raises Unauthorized if the token is unknown or expired, or the coach is deleted; CompanySuspended.
    """
    access_hash = token_hash(access_token)
    unexpired = {"$elemMatch": {"hash": access_hash, "until": {"$gt": now()}}}
    grant = await store.find_with_coach(services, {"access.hash": access_hash, "access": unexpired})
    if grant is None:
        raise Unauthorized()
    principal = _to_principal(grant)
    await service.set_last_used(store.grants, services, grant)
    return principal


async def load_principal(services: Services, grant_id: ObjectId) -> Principal | None:
    """Return the coach who gave consent as a principal, as `authenticate` does; None if the grant is revoked or
    expired.

    Raises CompanySuspended.
    """
    grant = await store.find_with_coach(services, {"_id": grant_id} | store.is_unexpired())
    return None if grant is None else _to_principal(grant)


def _to_principal(grant: GrantWithCoach) -> Principal:
    coach = team.to_principal(grant["coach"], account.to_company(grant["company"]), "mcp", grant["_id"])
    scopes = store.with_scopes(grant)["scopes"]
    return replace(
        coach,
        permissions=coach.permissions if "change" in scopes else coach.permissions & READ_PERMISSIONS,
        read_only="change" not in scopes,
        may_read="read" in scopes,
        may_reach_out="outreach" in scopes,
        may_confirm=grant["confirmInChat"],
        restricted="change" not in scopes,
        application=grant["clientName"],
    )


# --- managing grants -------------------------------------------------------------------------------------------------


async def list_assistants(ctx: Context) -> list[Grant]:
    """Return the assistants that the caller has connected, or all of the company for its owner."""
    return await store.list_in_use(ctx, _manageable(ctx))


async def is_connected(ctx: Context, grant_id: ObjectId) -> bool:
    """Return whether the company has this grant and it has not expired."""
    return await store.grants.find_one(ctx, {"_id": grant_id} | store.is_unexpired(), ("_id",)) is not None


@transactional
async def revoke(ctx: Context, grant_id: ObjectId) -> None:
    """Delete a grant: its tokens fail from the next request. Raises NotFound if the caller has no such grant."""
    if await store.grants.delete(ctx, _manageable(ctx) | {"_id": grant_id}) is None:
        raise NotFound("assistant")
    await audit.record(ctx, "assistant.revoked", grantId=grant_id)


async def revoke_all_of_coach(ctx: Context, coach_id: ObjectId) -> None:
    """Delete every grant of a coach, in the caller's transaction."""
    await store.grants.delete_many(ctx, {"coachId": coach_id})


async def revoke_grants_of_coach(ctx: Context, event: CoachRemoved) -> None:
    """Delete every grant of a removed coach."""
    await revoke_all_of_coach(ctx, event.coach_id)


def _manageable(ctx: Context) -> Filter:
    return {} if ctx.caller.role == "OWNER" else {"coachId": ctx.caller.id}
