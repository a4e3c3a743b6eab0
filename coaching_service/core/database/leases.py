"""Leases: work that only one process at a time does, by the clock of the database."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypedDict

from pymongo import ReturnDocument
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
    is_free = {"$or": [{"$eq": ["$holder", holder]}, {"$lte": ["$expiresAt", "$$NOW"]}]}  # or it is not stored
    taken = {each: {"$cond": [is_free, value, f"${each}"]} for each, value in held_by(holder).items()}
    with suppress(DuplicateKeyError):  # another process is storing it
        lease = await leases.find_one_and_update(
            {"_id": name}, [{"$set": taken}], upsert=True, return_document=ReturnDocument.AFTER
        )
        return bool(lease["holder"] == holder)
    return False


async def release_in(leases: Collection, name: str, holder: str) -> None:
    """Let another process take a lease of a collection."""
    await leases.update_one({"_id": name, "holder": holder}, [{"$set": {"expiresAt": "$$NOW"}}])


def held_by(holder: str) -> Document:
    """Return the fields of a lease that `holder` takes now, as expressions."""
    expiry = {"$add": ["$$NOW", round(LEASE.total_seconds() * 1000)]}
    return {"holder": {"$literal": holder}, "expiresAt": expiry}
