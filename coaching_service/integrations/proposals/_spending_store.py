"""What assistants have changed lately without a confirmation, in the database: a document for each call."""

from __future__ import annotations

from datetime import timedelta
from typing import TypedDict

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.ids import ObjectId

WINDOW = timedelta(minutes=10)
_RETENTION = WINDOW + timedelta(minutes=1)


class LoadRaise(TypedDict):
    """A load `of` a client and exercise that a call has changed."""

    of: str
    before: float
    after: float


class DayLoads(TypedDict):
    """The loads `of` a client and exercise that a call has removed from a day, or added to it: one for each set."""

    of: str
    date: str
    isAdded: bool
    loads: list[float]


class CallSpending(TypedDict):
    """What a call changes: days of clients (`client date`), how many workouts it removes, and loads."""

    days: list[str]
    removed: int
    loads: list[LoadRaise]
    dayLoads: list[DayLoads]


class StoredSpending(CallSpending, Stored):
    """What a call of an assistant, with this key or grant, changes."""

    credentialId: ObjectId


_spending = Documents[StoredSpending](
    "assistantSpending",
    (Index(("credentialId", "createdAt")),),
    secret=True,
    expire=("createdAt", int(_RETENTION.total_seconds())),
    transfer=NotExported("what assistants have done in the last ten minutes"),
    incidental=True,
)


async def put(ctx: Context, call_id: ObjectId, spending: CallSpending) -> None:
    """Store what a call changes, at once: calls at the same time see it, whether their transactions commit or not."""
    await _spending.upsert(ctx, {"_id": call_id}, {"credentialId": ctx.caller.credential_id, **spending})


async def list_recent(ctx: Context, *, other_than: ObjectId) -> list[StoredSpending]:
    """Return what the other calls of the caller's key or grant have changed in the last ten minutes, oldest first."""
    where = {
        "credentialId": ctx.caller.credential_id,
        "createdAt": {"$gt": now() - WINDOW},
        "_id": {"$ne": other_than},
    }
    return await _spending.find(ctx, where, sort=("createdAt",))


async def remove(ctx: Context, call_id: ObjectId) -> None:
    """Forget a call that is not carried out."""
    await _spending.delete(ctx, {"_id": call_id})
