"""Workout blocks in the database: one document a block, its items inside it, in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, Filter
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import sums
from coaching_service.training.workouts.items import MAX_ITEMS

blocks = Documents[Document](
    "workoutBlocks",
    (
        Index(("customerId", "date", "position", "_id")),
        Index(("programId", "customerId", "day", "position", "_id")),
        Index(("customerId", "items.doneExerciseIds", "-date", "-_id")),
        Index(("customerId", "items.exerciseIds", "-date", "-_id")),
        Index(("customerId", "items._id")),
    ),
    private=("companyId", "position", "done"),
    client_field="customerId",
)


def position() -> int:
    """Where a block goes among those of its day: after all that were put there before (microseconds)."""
    return time.time_ns() // 1_000


async def between(ctx: Context, owner: Filter, field: str, first: object, last: object) -> list[Document]:
    """The owner's blocks whose `field` (`date` or `day`) is from `first` to `last`, in the order they are done."""
    where = owner | {field: {"$gte": first, "$lte": last}}
    return await blocks.find(ctx, where, sort=(field, "position", "_id"))


async def everything(ctx: Context, owner: Filter, field: str) -> list[Document]:
    """Every block of the owner's, in the order they are done."""
    return await blocks.find(ctx, owner, sort=(field, "position", "_id"))


async def one(ctx: Context, owner: Filter, block_id: ObjectId) -> Document | None:
    """The owner's block, or None."""
    return await blocks.find_one(ctx, owner | {"_id": block_id})


async def has_block(ctx: Context, owner: Filter, first: str, last: str) -> bool:
    """Whether the owner has a block from the date `first` to `last`."""
    where = owner | {"date": {"$gte": first, "$lte": last}}
    return bool(await blocks.find(ctx, where, limit=1, fields=("_id",)))


async def same_day(ctx: Context, owner: Filter, field: str, value: object) -> list[ObjectId]:
    """The identifiers of the owner's blocks of one day, in order."""
    found = await blocks.find(ctx, owner | {field: value}, sort=("position", "_id"), fields=("_id",))
    return [block["_id"] for block in found]


async def last_day(ctx: Context, owner: Filter) -> str | None:
    """The last date the owner has a block on."""
    found = await blocks.find(ctx, owner | {"date": {"$gt": ""}}, sort=("-date",), limit=1, fields=("date",))
    return found[0]["date"] if found else None


async def place(ctx: Context, owner: Filter, field: str, value: object) -> int:
    """The position after every block of the owner's day, whatever the clocks of those who put them there said."""
    last = await blocks.find(ctx, owner | {field: value}, sort=("-position",), limit=1, fields=("position",))
    return max(position(), last[0]["position"] + 1) if last else position()


async def add(ctx: Context, block: Document, at: int) -> Document:
    """Store a new block at a position of its day."""
    return await blocks.insert(ctx, _summed(block) | {"position": at})


async def add_many(ctx: Context, new: Sequence[Document]) -> None:
    """Store new blocks; those of one day are done in the order given."""
    at = position()
    await blocks.insert_many(ctx, [_summed(block) | {"position": at + number} for number, block in enumerate(new)])


async def change(
    ctx: Context, owner: Filter, block_id: ObjectId, fields: Document, version: int | None
) -> Document | None:
    """Set fields of a block; None when there is no such block."""
    return await blocks.update(ctx, owner | {"_id": block_id}, {"$set": fields}, version=version)


async def remove(ctx: Context, owner: Filter, block_id: ObjectId) -> Document | None:
    """Remove a block; gives what it was, or None."""
    return await blocks.delete(ctx, owner | {"_id": block_id})


async def remove_all(ctx: Context, owner: Filter) -> None:
    """Remove every block of the owner's."""
    await blocks.delete_many(ctx, owner)


async def program_workout_days(ctx: Context, program_ids: Sequence[ObjectId]) -> list[Document]:
    """`{_id: programId, days}`: on how many days each program has a block that is not rest and holds an item."""
    where = {
        "programId": {"$in": list(program_ids)},
        "customerId": None,
        "isRest": False,
        "items.0": {"$exists": True},
    }
    return await blocks.aggregate(
        ctx,
        where,
        {"$group": {"_id": {"program": "$programId", "day": "$day"}}},
        {"$group": {"_id": "$_id.program", "days": {"$sum": 1}}},
    )


async def push_item(ctx: Context, owner: Filter, block_id: ObjectId, item: Document) -> Document | None:
    """Append a new item, of which nothing was done, to a block that has room; gives the block's `version` and the `_id`
    of each of its items, or None."""
    room = {f"items.{MAX_ITEMS - 1}": {"$exists": False}}
    push = {"$push": {"items": item}}
    return await blocks.update(ctx, owner | {"_id": block_id} | room, push, fields=("version", "items._id"))


async def holds_item(ctx: Context, owner: Filter, item_id: ObjectId) -> bool:
    """Whether any of the owner's blocks holds the item."""
    return await blocks.find_one(ctx, owner | {"items._id": item_id}, ("_id",)) is not None


async def untouched_from(ctx: Context, owner: Filter, day: str) -> list[Document]:
    """`_id` and `date` of the owner's blocks from a day on that have nothing done: no item, no log of the block."""
    no_item = {
        "items.isCompleted": {"$ne": True},
        "items.comment": {"$not": {"$type": "string"}},
        **{f"items.{name}.0": {"$exists": False} for name in ("customerSets", "answers", "values")},
    }
    nothing_done = no_item | {"sessionRpe": None, "durationMinutes": None, "comment": None}
    return await blocks.find(ctx, owner | {"date": {"$gte": day}} | nothing_done, fields=("date",))


async def shift(ctx: Context, owner: Filter, ids: Sequence[ObjectId], days: int) -> int:
    """Move blocks by a number of days; gives how many. Their places on a day stay."""
    moved = {
        "$dateToString": {
            "format": "%Y-%m-%d",
            "date": {
                "$dateAdd": {
                    "startDate": {"$dateFromString": {"dateString": "$date", "format": "%Y-%m-%d"}},
                    "unit": "day",
                    "amount": days,
                }
            },
        }
    }
    return await blocks.update_each(ctx, owner | {"_id": {"$in": list(ids)}}, {"date": moved})


async def rewrite(
    ctx: Context, owner: Filter, block_id: ObjectId, mutate: Callable[[Document], Document], version: int | None
) -> Document | None:
    """Change a block by a function of what is stored; None when there is no such block."""
    return await blocks.rewrite(ctx, owner | {"_id": block_id}, lambda block: _summed(mutate(block)), version=version)


def _summed(fields: Document) -> Document:
    """Fields to store, with `done` where items are among them."""
    return fields | {"done": sums.of(fields["items"])} if "items" in fields else fields
