"""The numbers assigned at one time, by company. Readers find changes by them: the numbers in changes have no index."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NotRequired, TypedDict

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported
from coaching_service.core.database.documents import Documents
from coaching_service.core.errors import CursorExpired
from coaching_service.core.ids import ObjectId


class ChangeCounter(TypedDict):
    """The last number used within a company, whose identifier is `_id`."""

    _id: ObjectId
    companyId: ObjectId
    lastSeq: int


class NewChange(TypedDict):
    """What the sequencer needs of a change. `eventCount` is missing only in a damaged one."""

    _id: ObjectId
    companyId: ObjectId
    eventCount: NotRequired[int]


class NumberedId(TypedDict):
    """A change and the number of its last event."""

    _id: ObjectId
    lastSeq: int


class NumberBatch(TypedDict):
    """The changes of a company that were numbered at one time, in order; erased ones stay in it."""

    _id: ObjectId
    companyId: ObjectId
    first: int
    last: int
    changes: list[NumberedId]
    numberedAt: datetime


class NumberedChange(TypedDict):
    """The numbers of the first and the last event of a change, within its company."""

    _id: ObjectId
    companyId: ObjectId
    createdAt: datetime
    seq: int
    lastSeq: int


RETENTION = timedelta(days=31)  # a day longer than events are available for

counters = Documents[ChangeCounter](
    "changeCounters",
    (Index(()),),
    secret=True,
    cross_company_reason="the sequencer counts the changes of all companies",
    transfer=NotExported("numbers of the change log"),
    incidental=True,
)
# Not unique: a counter that is behind after damage must not stop the numbering of all companies.
batches = Documents[NumberBatch](
    "changeNumbers",
    (Index(("last",)), Index(("numberedAt", "first"))),
    secret=True,
    expire=("numberedAt", int(RETENTION.total_seconds())),
    cross_company_reason="the sequencer numbers the changes of all companies",
    transfer=NotExported("numbers of the change log"),
    incidental=True,
)


async def find_last_number(ctx: Context) -> int:
    """Return the last number of the company; 0 if nothing is numbered."""
    counter = await counters.find_one(ctx, {"_id": ctx.company_id})
    return counter["lastSeq"] if counter else 0


async def find_last_numbers(services: Services, company_ids: Collection[ObjectId]) -> dict[ObjectId, int]:
    """Return the last number of each of these companies that has one."""
    found = counters.across_companies(services).find({"_id": {"$in": list(company_ids)}}, {"lastSeq": 1})
    return {counter["_id"]: counter["lastSeq"] async for counter in found}


async def find_position_at(ctx: Context, time: datetime) -> int:
    """Return the number before the first one that was assigned at `time` or later."""
    last = await find_last_number(ctx)  # read first: a number that is assigned meanwhile is after it
    order = ("numberedAt", "first")
    first = await batches.find(ctx, {"numberedAt": {"$gte": time}}, sort=order, limit=1, fields=("first",))
    return first[0]["first"] - 1 if first else last


async def require_available(ctx: Context, number: int, since: datetime) -> None:
    """Raise CursorExpired if numbers after `number` were assigned before `since`, or `number` is not assigned yet.

    A cursor ahead of the log is from another database, or from before an older copy of this one was restored.
    """
    last = await find_last_number(ctx)
    if number > last or (number < last and number < await find_position_at(ctx, since)):
        raise CursorExpired


async def find_after(ctx: Context, number: int, limit: int, since: datetime) -> list[NumberedId]:
    """Return at most `limit` changes whose last number is greater than `number`, in order.

    Raises CursorExpired if numbers after `number` were assigned before `since`.
    """
    numbered = await batches.aggregate(
        ctx,
        {"last": {"$gt": number}},
        {"$sort": {"last": 1}},
        {"$limit": limit},
        {"$unwind": "$changes"},
        {"$match": {"changes.lastSeq": {"$gt": number}}},
        {"$limit": limit},
        {"$project": {"_id": "$changes._id", "lastSeq": "$changes.lastSeq", "first": 1, "numberedAt": 1}},
        hint=batches.index_name("last"),
    )
    if not (numbered and numbered[0]["first"] <= number + 1 and numbered[0]["numberedAt"] >= since):
        await require_available(ctx, number, since)
    return [{"_id": each["_id"], "lastSeq": each["lastSeq"]} for each in numbered]
