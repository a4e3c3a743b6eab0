"""API keys in the database: found by keyed hash, stored encrypted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.fields import Part, private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.api_keys.models import ApiKey, ApiKeyWithCoach
from coaching_service.people.team import credentials

keys = Documents[ApiKey](
    "apiKeys",
    (Index(("coachId", "name")), Index(("createdAt", "_id"))),
    private=private_of(ApiKey),
    global_indexes=(Index(("hash",), unique=True),),
    cross_company_reason="a key is found by its hash before its company is known",
    is_cached=True,
    placement=Unsharded("a key is unique among all companies, and found by its hash"),
    transfer=NotExported("API keys"),
)


async def create(ctx: Context, key: Mapping[str, object]) -> ApiKey:
    """Store a new key."""
    return await keys.insert(ctx, key)


async def list_all(ctx: Context, where: Filter) -> list[ApiKey]:
    """Return the keys of `where`, newest last."""
    return await keys.find(ctx, where, sort=("createdAt", "_id"))


async def count(ctx: Context, where: Filter) -> int:
    """Return the number of keys of `where`."""
    return await keys.count(ctx, where)


async def find_restrictions(ctx: Context, key_id: ObjectId) -> Part[ApiKey, Literal["_id", "restrictions"]] | None:
    """Return `_id` and restrictions of a key, or None."""
    return await keys.find_one(ctx, {"_id": key_id}, ("restrictions",))


async def find_name(ctx: Context, key_id: ObjectId) -> str | None:
    """Return the name of a key, or None."""
    key = await keys.find_one(ctx, {"_id": key_id}, ("name",))
    return None if key is None else key["name"]


async def find_sealed(ctx: Context, where: Filter) -> Part[ApiKey, Literal["_id", "sealed"]] | None:
    """Return `_id` and encrypted secret of the key of `where`, or None."""
    return await keys.find_one(ctx, where, ("sealed",))


async def delete(ctx: Context, where: Filter) -> bool:
    """Delete the key of `where`; returns whether there was one."""
    return await keys.delete(ctx, where) is not None


async def delete_all(ctx: Context, coach_id: ObjectId) -> None:
    """Delete every key of a coach."""
    await keys.delete_many(ctx, {"coachId": coach_id})


async def iterate_sealed(services: Services) -> AsyncIterator[ApiKey]:
    """Yield `_id`, hash and encrypted secret of every key of every company, for the rotation of master keys."""
    cursor: Any = keys.across_companies(services).find({}, {"sealed": 1, "hash": 1}, batch_size=200)
    async for key in cursor:
        yield key


async def reseal(services: Services, key: ApiKey, sealed: bytes, keyed_hash: str) -> None:
    """Replace a key's encrypted secret and hash, unless it has changed since it was read."""
    unchanged = {"_id": key["_id"], "hash": key["hash"]}
    await keys.across_companies(services).update_one(unchanged, {"$set": {"sealed": sealed, "hash": keyed_hash}})


async def find_with_coach(services: Services, where: Filter) -> ApiKeyWithCoach | None:
    """Return the key of `where`, its `coach` and `company`, in one round trip.

    None if the key, the coach or the company is deleted.
    """
    key: ApiKeyWithCoach | None = await credentials.find_with_coach(keys, services, where, without=("sealed", "hash"))
    return key


async def set_last_used(services: Services, key: ApiKey) -> None:
    """Record that a key was used, at most once a minute."""
    await credentials.set_last_used(keys, services, key)
