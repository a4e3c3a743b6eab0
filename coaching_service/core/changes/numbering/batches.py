"""The numbers assigned at one time, by company. Readers find changes by them: the numbers in changes have no index."""

from __future__ import annotations

from datetime import datetime, timedelta

from coaching_service.core.changes.numbering.models import ChangeCounter, NumberBatch, NumberedId
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import NotExported

RETENTION = timedelta(days=31)  # a day longer than events are available for

counters = Documents[ChangeCounter](
    "changeCounters",
    (Index(()),),
    secret=True,
    cross_company_reason="the sequencer counts the changes of all companies",
    transfer=NotExported("numbers of the change log"),
)
# Not unique: a counter that is behind after damage must not stop the numbering of all companies.
batches = Documents[NumberBatch](
    "changeNumbers",
    (Index(("last",)), Index(("numberedAt", "first"))),
    secret=True,
    expire=("numberedAt", int(RETENTION.total_seconds())),
    cross_company_reason="the sequencer numbers the changes of all companies",
    transfer=NotExported("numbers of the change log"),
)


async def find_last_number(ctx: Context) -> int:
    """Return the last number of the company; 0 if nothing is numbered."""
    counter = await counters.find_one(ctx, {"_id": ctx.company_id})
    return counter["lastSeq"] if counter else 0


async def find_position_at(ctx: Context, time: datetime) -> int:
    """Return the number before the first one that was assigned at `time` or later."""
    last = await find_last_number(ctx)  # read first: a number that is assigned meanwhile is after it
    order = ("numberedAt", "first")
    first = await batches.find(ctx, {"numberedAt": {"$gte": time}}, sort=order, limit=1, fields=("first",))
    return first[0]["first"] - 1 if first else last


async def find_between(ctx: Context, after: int, until: int, limit: int) -> list[NumberedId]:
    """Return at most `limit` changes whose last number is greater than `after`, not than `until`, in order."""
    numbered: list[NumberedId] = await batches.aggregate(
        ctx,
        {"last": {"$gt": after}},
        {"$sort": {"last": 1}},
        {"$limit": limit},
        {"$unwind": "$changes"},
        {"$match": {"changes.lastSeq": {"$gt": after, "$lte": until}}},
        {"$limit": limit},
        {"$replaceWith": "$changes"},
        hint=batches.index_name("last"),
    )
    return numbered
