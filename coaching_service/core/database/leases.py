"""Leases: work that only one process at a time does, by the clock of the database."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypedDict

from pymongo.errors import DuplicateKeyError

from coaching_service.core.database.context import Collection, Services
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded

LEASE = timedelta(seconds=10)


class Lease(TypedDict):
    """Which process does the work `_id`, and until when."""

    _id: str
    holder: str
    expiresAt: datetime


_leases = Documents[Lease](
    "leases",
    secret=True,
    cross_company_reason="one process does the work of all companies",
    placement=Unsharded("a few documents"),
    transfer=NotExported("state of the service"),
    incidental=True,
    process_state=True,
)


async def acquire(services: Services, name: str, holder: str) -> bool:
    """Take or renew the lease for a work, for 10 seconds; returns whether `holder` has it now."""
    return await acquire_in(_leases.across_companies(services), name, holder)


async def release(services: Services, name: str, holder: str) -> None:
    """Let another process take the lease."""
    await release_in(_leases.across_companies(services), name, holder)


async def acquire_in(leases: Collection, name: str, holder: str) -> bool:
    """Take or renew a lease of a collection; returns whether `holder` has it now."""
    is_free = {"$or": [{"$eq": ["$holder", holder]}, {"$lte": ["$expiresAt", "$$NOW"]}]}
    where, taken = {"_id": name, "$expr": is_free}, [{"$set": held_by(holder)}]
    if (await leases.update_one(where, taken)).matched_count:
        return True
    if await leases.find_one({"_id": name}, {"_id": 1}) is not None:
        return False
    free = {"holder": {"$ifNull": ["$holder", ""]}, "expiresAt": {"$ifNull": ["$expiresAt", "$$NOW"]}}
    with suppress(DuplicateKeyError):  # another process is storing it
        await leases.update_one({"_id": name}, [{"$set": free}], upsert=True)
    return bool((await leases.update_one(where, taken)).matched_count)


async def release_in(leases: Collection, name: str, holder: str) -> None:
    """Let another process take a lease of a collection."""
    await leases.update_one({"_id": name, "holder": holder}, [{"$set": {"expiresAt": "$$NOW"}}])


def held_by(holder: str) -> Document:
    """Return the fields of a lease that `holder` takes now, as expressions."""
    expiry = {"$add": ["$$NOW", round(LEASE.total_seconds() * 1000)]}
    return {"holder": {"$literal": holder}, "expiresAt": expiry}
