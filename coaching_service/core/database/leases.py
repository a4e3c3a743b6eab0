"""Leases: work that only one process at a time does, by the clock of the database."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypedDict

from pymongo.errors import DuplicateKeyError

from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Documents
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
    leases = _leases.across_companies(services)
    free = {"holder": {"$ifNull": ["$holder", ""]}, "expiresAt": {"$ifNull": ["$expiresAt", "$$NOW"]}}
    is_free = {"$or": [{"$eq": ["$holder", holder]}, {"$lte": ["$expiresAt", "$$NOW"]}]}
    expiry = {"$add": ["$$NOW", round(LEASE.total_seconds() * 1000)]}
    taken = {"holder": {"$literal": holder}, "expiresAt": expiry}
    result = await leases.update_one({"_id": name, "$expr": is_free}, [{"$set": taken}])
    if result.matched_count:
        return True
    if await leases.find_one({"_id": name}, {"_id": 1}) is None:
        with suppress(DuplicateKeyError):  # another process is storing it
            await leases.update_one({"_id": name}, [{"$set": free}], upsert=True)
    return False


async def release(services: Services, name: str, holder: str) -> None:
    """Let another process take the lease."""
    where = {"_id": name, "holder": holder}
    await _leases.across_companies(services).update_one(where, [{"$set": {"expiresAt": "$$NOW"}}])
