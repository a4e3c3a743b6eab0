"""What other features read of blocks that are scheduled or done, in bulk and compactly."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Filter
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.store import blocks
from coaching_service.training.workouts.tallies import FIGURES

_BY_DATE, _, _BY_DONE, _BY_PLANNED, _BY_ITEM = (index.name for index in blocks.indexes)
# What makes a block a session: something done in it, or a rating of it.
_SESSION: Filter = {
    "$or": [
        {"done": {"$ne": None}},
        {"sessionRpe": {"$ne": None}, "durationMinutes": {"$ne": None}},
    ]
}


async def exercise_sessions(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, *, planned_too: bool, skip: int, limit: int
) -> tuple[list[Document], int]:
    """One page of the client's blocks with this exercise done (or planned too), newest first, and how many there are:
    `{_id, date, items}`, only the items with the exercise."""
    field, hint = ("items.exerciseIds", _BY_PLANNED) if planned_too else ("items.doneExerciseIds", _BY_DONE)
    where = {"customerId": customer_id, field: exercise_id}
    only = {"$filter": {"input": "$items", "cond": {"$in": [exercise_id, "$$this.exerciseIds"]}}}
    page: list[Document] = [{"$sort": {"date": -1, "_id": -1}}, {"$skip": skip}, {"$limit": limit}]
    found, total = await gather_reads(
        ctx,
        blocks.aggregate(ctx, where, *page, {"$project": {"date": 1, "items": only}}, hint=hint),
        blocks.count(ctx, where, hint=hint),
    )
    return found, total


async def best_sets(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId) -> dict[str, Document]:
    """The best of each kind in all that the client did of an exercise: `{value, reps, date, witemId}` by kind, in the
    order of bests.rank."""
    where = {"customerId": customer_id, "items.doneExerciseIds": exercise_id}
    mine = {"$filter": {"input": "$done.exercises", "cond": {"$eq": ["$$this.exerciseId", exercise_id]}}}
    facts = {"date": "$date", **{fact: f"$of.bests.{fact}" for fact in ("value", "reps", "witemId")}}
    order = {"of.bests.value": -1, "date": 1, "of.bests.reps": -1, "of.bests.witemId": 1}
    stages: list[Document] = [
        {"$project": {"date": 1, "of": mine}},
        {"$unwind": "$of"},
        {"$unwind": "$of.bests"},
        {
            "$group": {
                "_id": "$of.bests.kind",
                "best": {"$top": {"sortBy": order, "output": facts}},
            }
        },
    ]
    return {found["_id"]: found["best"] for found in await blocks.aggregate(ctx, where, *stages, hint=_BY_DONE)}


async def items_now(ctx: Context, customer_id: ObjectId, item_ids: Sequence[ObjectId]) -> list[Document]:
    """The client's items of these identifiers that are still there: `{date, item}`."""
    ids = list(item_ids)
    fields = dict.fromkeys(("_id", "type", "exerciseId", "exerciseSets", "circuitExercises", "customerSets"), 1)
    which = {"$filter": {"input": "$items", "cond": {"$in": ["$$this._id", ids]}}}
    stages: list[Document] = [
        {"$project": {"date": 1, "item": which}},
        {"$unwind": "$item"},
        {"$project": {"_id": 0, "date": 1, "item": fields}},
    ]
    where = {"customerId": customer_id, "items._id": {"$in": ids}}
    return await blocks.aggregate(ctx, where, *stages, hint=_BY_ITEM)


async def exercise_totals(ctx: Context, customer_id: ObjectId, first: str, last: str) -> list[Document]:
    """`{_id: exerciseId, sets, reps, volumeLoad}` of what was done from `first` to `last`."""
    stages: list[Document] = [
        {"$project": {"_id": 0, "done": "$done.exercises"}},
        {"$unwind": "$done"},
        {"$group": {"_id": "$done.exerciseId", **{name: {"$sum": f"$done.{name}"} for name in FIGURES}}},
    ]
    return await blocks.aggregate(ctx, _between(customer_id, first, last), *stages, hint=_BY_DATE)


async def sessions_done(ctx: Context, customer_id: ObjectId, first: str, last: str) -> list[Document]:
    """The client's sessions from `first` to `last`: `{date, sets, reps, volumeLoad, sessionRpe, durationMinutes}`, by
    date. A session is a block with an item done, be it in part, or one that was rated."""
    sums = {name: {"$ifNull": [f"$done.{name}", 0]} for name in FIGURES}
    where = _between(customer_id, first, last) | _SESSION
    project = {"$project": {"_id": 0, "date": 1, "sessionRpe": 1, "durationMinutes": 1, **sums}}
    return await blocks.aggregate(ctx, where, {"$sort": {"date": 1}}, project, hint=_BY_DATE)


async def first_session(ctx: Context, customer_id: ObjectId) -> str | None:
    """The date of the client's first session, or None."""
    where: Filter = {"customerId": customer_id, "date": {"$gt": ""}} | _SESSION
    found = await blocks.find(ctx, where, sort=("date",), limit=1, fields=("date",), hint=_BY_DATE)
    return found[0]["date"] if found else None


async def days_scheduled(ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str) -> list[Document]:
    """The clients' blocks from `first` to `last`: `{_id, customerId, date, name, isRest, totalItems, completedItems}`,
    by date, in the order they are done."""
    done = {"$size": {"$filter": {"input": "$items", "cond": "$$this.isCompleted"}}}
    fields = dict.fromkeys(("customerId", "date", "name", "isRest"), 1)
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "date": {"$gte": first, "$lte": last}}
    return await blocks.aggregate(
        ctx,
        where,
        {"$sort": {"customerId": 1, "date": 1, "position": 1, "_id": 1}},
        {"$project": {**fields, "totalItems": {"$size": "$items"}, "completedItems": done}},
        hint=_BY_DATE,
    )


def _between(customer_id: ObjectId, first: str, last: str) -> Filter:
    return {"customerId": customer_id, "date": {"$gte": first, "$lte": last}}
