"""Leases: work that only one process at a time does, by the clock of the database."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypedDict

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from coaching_service.core.database.collections import Unsharded
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.database.portable import NotExported

LEASE = timedelta(seconds=10)


class LeaseLost(Exception):
    """Another process does the work now."""


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
    is_free = {"$or": [{"$eq": ["$holder", holder]}, {"$lte": ["$expiresAt", "$$NOW"]}]}  # or it is not stored
    taken = {each: {"$cond": [is_free, value, f"${each}"]} for each, value in _held_by(holder).items()}
    with suppress(DuplicateKeyError):  # another process is storing it
        lease = await _leases.across_companies(services).find_one_and_update(
            {"_id": name}, [{"$set": taken}], upsert=True, return_document=ReturnDocument.AFTER
        )
        return bool(lease["holder"] == holder)
    return False


async def renew(tx: Context, name: str, holder: str) -> None:
    """Renew a lease in the caller's transaction. Raises LeaseLost if `holder` does not have it."""
    where, change = {"_id": name, "holder": holder}, [{"$set": _held_by(holder)}]
    if not (await tx.collection(_leases.name).update_one(where, change, session=tx.session)).matched_count:
        raise LeaseLost


async def release(services: Services, name: str, holder: str) -> None:
    """Let another process take the lease."""
    where = {"_id": name, "holder": holder}
    await _leases.across_companies(services).update_one(where, [{"$set": {"expiresAt": "$$NOW"}}])


async def is_held(services: Services, name: str) -> bool:
    """Return whether a process has the lease: it works, or was killed less than ten seconds ago."""
    held = {"_id": name, "$expr": {"$gt": ["$expiresAt", "$$NOW"]}}
    return await _leases.across_companies(services).find_one(held, {"_id": 1}) is not None


def _held_by(holder: str) -> Document:
    """Return the fields of a lease that `holder` takes now, as expressions."""
    expiry = {"$add": ["$$NOW", round(LEASE.total_seconds() * 1000)]}
    return {"holder": {"$literal": holder}, "expiresAt": expiry}
