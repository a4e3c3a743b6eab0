"""API keys. A key acts as the coach who created it, narrowed by its own restrictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import cast

from coaching_service.core import audit
from coaching_service.core.auth.access import READ_PERMISSIONS
from coaching_service.core.auth.principal import KeyHolder, Principal
from coaching_service.core.auth.secrets import (
    API_KEY_PREFIX,
    TEST_KEY_PREFIX,
    SecretUnreadable,
    fingerprint_of,
    new_api_key,
)
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.database.sealed import Sealed
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import InvalidApiKey, NotFound, Unavailable, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.api_keys.models import (
    ApiKey,
    ApiKeyRestrictions,
    ApiKeyWithCoach,
    CreatedApiKey,
    NewRestrictions,
)
from coaching_service.people.api_keys.store import keys
from coaching_service.people.team import service
from coaching_service.people.team import service as team
from coaching_service.people.team.models import CoachRemoved

_SEALED = Sealed(keys, "apiKey")
_ORDER = ("createdAt", "_id")
_DEFAULTS: ApiKeyRestrictions = {
    "readOnly": False,
    "permissions": None,
    "expiresAt": None,
    "outreach": False,
    "confirmInChat": False,
    "mcpOnly": False,
}


async def create(
    ctx: Context, name: str, restrictions: ApiKeyRestrictions | NewRestrictions | None = None
) -> CreatedApiKey:
    """Create a key of the caller and return it with its secret `key`.

    Raises InvalidFields if `expiresAt` is in the past.
    """
    applied: ApiKeyRestrictions = {**_DEFAULTS, **(restrictions or {})}
    if (expires_at := applied["expiresAt"]) is not None and expires_at <= now():
        raise invalid_field("restrictions.expiresAt", "must be in the future", code="IN_THE_PAST")
    prefix = TEST_KEY_PREFIX if ctx.caller.company.is_sandbox else API_KEY_PREFIX
    secret, key_id = new_api_key(prefix), ObjectId()
    vault = ctx.services.vault
    key = await keys.insert(
        ctx,
        {
            "_id": key_id,
            "coachId": ctx.caller.id,
            "name": name,
            "prefix": prefix,
            "lastFour": secret[-4:],
            "restrictions": applied,
            "lastUsedAt": None,
            "hash": vault.keyed_hash(secret),
            "sealed": _SEALED.seal(vault, key_id, secret.encode()),
        },
    )
    return cast("CreatedApiKey", {**key, "key": secret})


async def list_keys(ctx: Context) -> list[ApiKey]:
    """Return the keys of the caller, or of the whole company for its owner."""
    return await keys.find(ctx, _manageable(ctx), sort=_ORDER)


async def reveal(ctx: Context, key_id: ObjectId) -> str:
    """Return a key's secret and record that it was read.

    Raises NotFound if the caller has no such key, Unavailable if its master key is missing from the settings.
    """
    if (key := await keys.find_one(ctx, _manageable(ctx) | {"_id": key_id}, ("sealed",))) is None:
        raise NotFound("API key")
    try:
        secret = _SEALED.open(ctx.services.vault, key).decode()
    except SecretUnreadable:
        raise Unavailable("This key cannot be read: the operator has to add its master key to the settings") from None
    await audit.record(ctx, "apiKey.revealed", keyId=key_id)
    return secret


async def is_usable(ctx: Context, key_id: ObjectId) -> bool:
    """Return whether the company has this key and it has not expired."""
    key = await keys.find_one(ctx, {"_id": key_id}, ("restrictions",))
    return key is not None and not _is_expired(key["restrictions"]["expiresAt"])


@transactional
async def revoke(ctx: Context, key_id: ObjectId) -> None:
    """Delete a key, which fails from the next request. Raises NotFound if the caller has no such key."""
    if await keys.delete(ctx, _manageable(ctx) | {"_id": key_id}) is None:
        raise NotFound("API key")
    await audit.record(ctx, "apiKey.revoked", keyId=key_id)


async def count_own(ctx: Context) -> int:
    """Return how many keys the caller has created, and not deleted."""
    return await keys.count(ctx, {"coachId": ctx.caller.id})


async def list_own_names(ctx: Context) -> list[str]:
    """Return the names and the last characters of the caller's keys, the oldest first."""
    own = await keys.find(ctx, {"coachId": ctx.caller.id}, sort=_ORDER, fields=("name", "lastFour"))
    return [f"{key['name']} (…{key['lastFour']})" for key in own]


async def revoke_own(ctx: Context, since: datetime | None) -> None:
    """Delete the caller's keys that were created since a time, or all, in the caller's transaction."""
    where: Filter = {"coachId": ctx.caller.id}
    if since is not None:
        where |= {"createdAt": {"$gte": since}}
    for key in await keys.find(ctx, where, sort=_ORDER):
        await keys.delete(ctx, {"_id": key["_id"]})
        await audit.record(ctx, "apiKey.revoked", keyId=key["_id"])


async def delete_keys_of_coach(ctx: Context, event: CoachRemoved) -> None:
    """Delete every key of a removed coach."""
    await keys.delete_many(ctx, {"coachId": event.coach_id})


async def find_name(ctx: Context, key_id: ObjectId) -> str | None:
    """Return the name of a key, or None."""
    key = await keys.find_one(ctx, {"_id": key_id}, ("name",))
    return None if key is None else key["name"]


async def find_secret(ctx: Context, name: str) -> str | None:
    """Return the secret of the caller's key with this name, or None."""
    key = await keys.find_one(ctx, {"coachId": ctx.caller.id, "name": name}, ("sealed",))
    return None if key is None else _SEALED.open(ctx.services.vault, key).decode()


def _manageable(ctx: Context) -> Filter:
    return {} if ctx.caller.role == "OWNER" else {"coachId": ctx.caller.id}


# --- authentication --------------------------------------------------------------------------------------------------


async def authenticate(services: Services, secret: str) -> Principal:
    """Return the coach of a key as a principal, with the key's restrictions.

    It may have been read a moment ago (see `core/cached_reads.py`). Raises InvalidApiKey if the key is unknown, deleted
    or expired, CompanySuspended.
    """
    hashes = services.vault.keyed_hashes(secret)
    holder = await services.key_holders.get(hashes[0], partial(_load, services, hashes))
    _require_unexpired(holder.expires_at)
    return holder.principal


async def load_principal(services: Services, key_id: ObjectId) -> Principal | None:
    """Return the coach of a key as a principal, as `authenticate` does; None if it is deleted or expired.

    Raises CompanySuspended.
    """
    key = await _find_with_coach(services, {"_id": key_id})
    return None if key is None or _is_expired(key["restrictions"]["expiresAt"]) else _to_principal(key)


async def _load(services: Services, hashes: list[str]) -> KeyHolder:
    """Return the holder of the key with one of these hashes. Raises InvalidApiKey, CompanySuspended."""
    key = await _find_with_coach(services, {"hash": {"$in": hashes}})
    if key is None:
        raise InvalidApiKey()
    _require_unexpired(key["restrictions"]["expiresAt"])
    principal = _to_principal(key)
    await service.set_last_used(keys, services, key)
    return KeyHolder(principal, key["restrictions"]["expiresAt"])


async def _find_with_coach(services: Services, where: Filter) -> ApiKeyWithCoach | None:
    key: ApiKeyWithCoach | None = await service.find_with_coach(keys, services, where, without=("sealed", "hash"))
    return key


def _to_principal(key: ApiKeyWithCoach) -> Principal:
    restrictions = key["restrictions"]
    coach = team.to_principal(key["coach"], account.to_company(key["company"]), "apiKey", key["_id"])
    permissions = coach.permissions
    if restrictions["permissions"] is not None:
        permissions &= frozenset(restrictions["permissions"])
    if restrictions["readOnly"]:
        permissions &= READ_PERMISSIONS
    restricted = restrictions["readOnly"] or restrictions["permissions"] is not None
    return replace(
        coach,
        permissions=permissions,
        read_only=restrictions["readOnly"],
        may_reach_out=restrictions["outreach"],
        may_confirm=restrictions["confirmInChat"],
        mcp_only=restrictions.get("mcpOnly", False),
        restricted=restricted,
    )


def _require_unexpired(expires_at: datetime | None) -> None:
    if _is_expired(expires_at):
        raise InvalidApiKey()


def _is_expired(expires_at: datetime | None) -> bool:
    return expires_at is not None and expires_at <= now()


# --- rotation of master keys -----------------------------------------------------------------------------------------


async def count_unreadable(services: Services) -> dict[str, int]:
    """Return the number of keys encrypted under each master key that this process lacks, by its fingerprint."""
    sealed = [key["sealed"] async for key in _SEALED.iterate(services)]
    return Counter(fingerprint_of(each) for each in sealed if not services.vault.has_key_for(each))


iterate_unreadable = _SEALED.iterate_unreadable


def rotate_master_key(services: Services) -> AsyncIterator[bool]:
    """Encrypt and hash every key under the newest master key; yields for each whether it changed."""
    return _SEALED.rotate_master_key(services, lambda key: {"hash": services.vault.keyed_hash(key.decode())})
