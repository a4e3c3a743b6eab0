"""API keys: found by keyed hash, kept encrypted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.ids import ObjectId

_LAST_USED_EVERY = timedelta(minutes=1)

keys = Documents[Document](
    "apiKeys",
    (Index(("coachId", "name")), Index(("createdAt", "_id"))),
    private=("companyId", "hash", "sealed"),
    global_indexes=(Index(("hash",), unique=True),),
    cross_company_reason="a key is found by its hash before its company is known",
)


async def add(ctx: Context, key: Document) -> Document:
    """Store a new key."""
    return await keys.insert(ctx, key)


async def everything(ctx: Context, where: Filter) -> list[Document]:
    """The keys of `where`, the newest last."""
    return await keys.find(ctx, where, sort=("createdAt", "_id"))


async def one(ctx: Context, where: Filter, fields: tuple[str, ...]) -> Document | None:
    """The key that `where` names, or None."""
    return await keys.find_one(ctx, where, fields)


async def remove(ctx: Context, where: Filter) -> bool:
    """Remove the key that `where` names; whether there was one."""
    return await keys.delete(ctx, where) is not None


async def remove_all(ctx: Context, coach_id: ObjectId) -> None:
    """Remove every key of a coach."""
    await keys.delete_many(ctx, {"coachId": coach_id})


async def every_sealed(services: Services) -> AsyncIterator[Document]:
    """Every key of every company, for the operator's rotation."""
    async for key in keys.across_companies(services).find({}, {"sealed": 1, "hash": 1}, batch_size=200):
        yield key


async def reseal(services: Services, key: Document, sealed: bytes, hashed: str) -> None:
    """Exchange a key's sealed secret and hash, if nobody did meanwhile."""
    same = {"_id": key["_id"], "hash": key["hash"]}
    await keys.across_companies(services).update_one(same, {"$set": {"sealed": sealed, "hash": hashed}})


async def named(ctx: Context, coach_id: ObjectId, name: str) -> Document | None:
    """A coach's key of that name, sealed secret included, or None."""
    return await keys.find_one(ctx, {"coachId": coach_id, "name": name}, ("sealed",))


async def resolve(services: Services, hashes: list[str], *beside: Document) -> Document | None:
    """The key with one of these hashes, with its `coach` and `company` and what stages `beside` add, in one round trip;
    None if any is gone."""
    found = keys.across_companies(services).aggregate(
        [
            {"$match": {"hash": {"$in": hashes}}},
            {"$project": {"sealed": 0, "hash": 0}},
            {"$lookup": {"from": "coaches", "localField": "coachId", "foreignField": "_id", "as": "coach"}},
            {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
            *beside,
        ]
    )
    for key in await found.to_list(1):
        if key["coach"] and key["company"]:
            return {**key, "coach": key["coach"][0], "company": key["company"][0]}
    return None


async def touch(services: Services, key: Document) -> None:
    """Remember that the key was used, at most once a minute."""
    at = now()
    last = key["lastUsedAt"]
    if last is None or at - last >= _LAST_USED_EVERY:
        await keys.across_companies(services).update_one(
            {"_id": key["_id"], "lastUsedAt": last}, {"$set": {"lastUsedAt": at}}
        )
