"""Letting assistants in: a coach's consent, the code it gives, the tokens the code gives, and their end."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, replace

import structlog

from coaching_service.core import audit
from coaching_service.core.auth.permissions import READ_PERMISSIONS
from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.secrets import new_token, token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import NotFound, Unauthorized
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.assistants import store
from coaching_service.people.team import service as team
from coaching_service.people.team.events import CoachRemoved

log = structlog.get_logger("coaching_service.assistants")


class GrantRejected(Exception):
    """A code or token that is not accepted; the message says no more than a caller may know."""


@dataclass(frozen=True)
class GrantRequest:
    """What an assistant asked to be let in with.

    `client_id`, `client_name`: the program that asks. `redirect_uri`: where the code goes; `named`: the program said so
    and has to say it again with the code. `challenge`: SHA-256 of the verifier that the code's bearer will show
    (base64url, no padding). `resource`: what the tokens are for.
    """

    client_id: str
    client_name: str
    redirect_uri: str
    redirect_host: str
    challenge: str
    resource: str
    named: bool = True


@dataclass(frozen=True)
class TokenPair:
    """An access token that lives `seconds`, and the refresh token for the next, if the client takes any."""

    access: str
    refresh: str | None
    seconds: int = int(store.ACCESS_LIVES.total_seconds())


async def create_grant(ctx: Context, asked: GrantRequest, *, read_only: bool) -> str:
    """Let an assistant in on behalf of the coach asking; gives the code that is exchanged for tokens, once."""
    code = new_token()
    bound = {
        "hash": token_hash(code),
        "challenge": asked.challenge,
        "redirectUri": asked.redirect_uri,
        "named": asked.named,
        "resource": asked.resource,
    }

    async def granted(tx: Context) -> None:
        grant = {
            "coachId": tx.caller.id,
            "clientId": asked.client_id,
            "clientName": asked.client_name,
            "redirectHost": asked.redirect_host,
            "readOnly": read_only,
        }
        stored = await store.add(tx, grant, bound)
        await audit.record(tx, "assistant.granted", grantId=stored["_id"], clientName=asked.client_name)

    await in_transaction(ctx, granted)
    return code


async def exchange_code(
    services: Services, code: str, client_id: str, verifier: str, redirect_uri: str | None, *, refreshable: bool
) -> TokenPair:
    """The first tokens for a code. Raises Refused; a code that was used before ends what it had given."""
    grant = await store.by_code(services, token_hash(code))
    if grant is None or grant["clientId"] != client_id:
        raise GrantRejected("The code is unknown, expired or another client's")
    bound = grant["code"]
    if bound["usedAt"] is not None:
        return await _replayed(services, grant)
    if redirect_uri != bound["redirectUri"] and (redirect_uri is not None or bound["named"]):
        raise GrantRejected("redirect_uri is not the one the code was sent to")
    if not hmac.compare_digest(_challenge(verifier), bound["challenge"]):
        raise GrantRejected("code_verifier does not fit the code_challenge")
    await _require_coach(services, grant)
    access, family = new_token(), new_token()
    refresh = f"{family}.{new_token()}" if refreshable else None
    family_hash, refresh_hash = (token_hash(family), token_hash(refresh)) if refresh else (None, None)
    if not await store.take_up(services, grant["_id"], token_hash(access), family_hash, refresh_hash):
        return await _replayed(services, grant)
    return TokenPair(access, refresh)


async def _replayed(services: Services, grant: Document) -> TokenPair:
    await store.drop(services, grant["_id"])
    log.warning("authorization code used twice", grant=str(grant["_id"]), company=str(grant["companyId"]))
    raise GrantRejected("The code has been used; what it gave has been revoked")


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode("ascii", "replace")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


async def refresh_tokens(services: Services, token: str, client_id: str) -> TokenPair:
    """New tokens for a refresh token, which is then spent; within a short grace it is taken again.

    Raises Refused; a token spent longer ago ends the whole grant. So does one of its family that was never given out:
    spent ones are not kept, and whoever knows the family has seen one of them.
    """
    family = token.partition(".")[0]
    grant = await store.by_family(services, token_hash(family))
    if grant is None or grant["clientId"] != client_id:
        raise GrantRejected("The refresh token is unknown, expired or another client's")
    await _require_coach(services, grant)
    access, renewed = new_token(), f"{family}.{new_token()}"
    hashes = (token_hash(token), token_hash(renewed), token_hash(access))
    if not await store.rotate(services, grant["_id"], *hashes):
        await store.drop(services, grant["_id"])
        log.warning("spent refresh token", grant=str(grant["_id"]), company=str(grant["companyId"]))
        raise GrantRejected("The refresh token has been used; what it belonged to has been revoked")
    return TokenPair(access, renewed)


async def _require_coach(services: Services, grant: Document) -> None:
    """Raise Refused, and end the grant, when the coach who gave it or their company is gone."""
    if await team.load_principal(services, grant["coachId"]) is None:
        await store.drop(services, grant["_id"])
        raise GrantRejected("The coach who let this program in is no longer here")


async def revoke_token(services: Services, token: str, client_id: str) -> None:
    """End the grant of an access or refresh token, if it is this client's."""
    grant = await store.by_family(services, token_hash(token.partition(".")[0]))
    grant = grant or await store.by_access(services, token_hash(token))
    if grant is not None and grant["clientId"] == client_id:
        await store.drop(services, grant["_id"])


async def authenticate(services: Services, access_token: str) -> Principal:
    """Whom an assistant's access token stands for: the coach who let it in.

    Raises Unauthorized when it is unknown or ended, or the coach is gone.
    """
    grant = await store.resolve(services, token_hash(access_token))
    if grant is None:
        raise Unauthorized()
    await store.touch(services, grant)
    coach = team.to_principal(grant["coach"], account.to_company(grant["company"]), "mcp", grant["_id"])
    if not grant["readOnly"]:
        return coach
    return replace(coach, permissions=coach.permissions & READ_PERMISSIONS, read_only=True, restricted=True)


async def list_assistants(ctx: Context) -> list[Document]:
    """The assistants the coach asking has let in; for the owner, those of the whole company."""
    return await store.in_use(ctx, _reach(ctx))


async def revoke(ctx: Context, grant_id: ObjectId) -> None:
    """End a grant: its tokens fail on their very next request. Raises NotFound, also for a colleague's."""

    async def revoked(tx: Context) -> None:
        if await store.remove(tx, _reach(tx) | {"_id": grant_id}) is None:
            raise NotFound("assistant")
        await audit.record(tx, "assistant.revoked", grantId=grant_id)

    await in_transaction(ctx, revoked)


async def revoke_all_of_coach(ctx: Context, coach_id: ObjectId) -> None:
    """End every grant of a coach, in the caller's transaction."""
    await store.remove_all(ctx, coach_id)


def _reach(ctx: Context) -> Document:
    return {} if ctx.caller.role == "OWNER" else {"coachId": ctx.caller.id}


async def revoke_grants_of_coach(ctx: Context, event: CoachRemoved) -> None:
    """Revoke every OAuth grant of a removed coach."""
    await revoke_all_of_coach(ctx, event.coach_id)
