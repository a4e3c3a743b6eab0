"""Queries over scheduled and completed blocks, for the features that report on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListSelection
from coaching_service.core.walking import Walk
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts.item_models import DatedItem
from coaching_service.training.workouts.models import StoredBlock
from coaching_service.training.workouts.query_models import (
    AssignedBlocks,
    BlockReference,
    BlockTitle,
    DoneExercise,
    ExerciseSession,
    ExerciseSum,
    LastSession,
    OwnPendingItem,
    PendingForm,
    PendingForms,
    ScheduledBlock,
    Session,
)
from coaching_service.training.workouts.store import blocks
from coaching_service.training.workouts.totals_models import Best, RecordType
from coaching_service.training.workouts.training_load import TOTALS

Stage = dict[str, Any]

SESSION_ORDER = ("-date", "-_id")

_BY_DATE = blocks.index_name("customerId", "date", "position", "_id")
_BY_PROGRAM = blocks.index_name("programId", "customerId", "day", "position", "_id")
_BY_DONE_EXERCISE = blocks.index_name("customerId", "items.doneExerciseIds", *SESSION_ORDER)
_BY_EXERCISE = blocks.index_name("customerId", "items.exerciseIds", *SESSION_ORDER)
_BY_ITEM = blocks.index_name("customerId", "items._id")
_BY_PENDING_FORM = blocks.index_name("date", "_id", "customerId")
# The fields of an item that training load is computed from.
_LOAD_FIELDS = ("_id", "type", "exerciseId", "exerciseSets", "circuitExercises", "customerSets")
_IS_REGULAR: Filter = {"checkInId": None}
_IS_SESSION: Filter = {"done": {"$ne": None}} | _IS_REGULAR


async def find_exercise_sessions(
    ctx: Context,
    customer_id: ObjectId,
    exercise_id: ObjectId,
    walk: Walk,
    selection: ListSelection,
    *,
    include_planned: bool,
    without: Collection[str] = (),
) -> tuple[list[ExerciseSession], int]:
    """Return a client's blocks in which an exercise was done for one part of their list, and the total number.

    Only those of the selection. With `include_planned` also those in which it is only planned. Each has only the items
    with the exercise. Blocks on the dates in `without` are left out.
    """
    field, hint = (
        ("items.exerciseIds", _BY_EXERCISE) if include_planned else ("items.doneExerciseIds", _BY_DONE_EXERCISE)
    )
    condition: Filter = {"customerId": customer_id, field: exercise_id, **selection.filter(), **_except_dates(without)}
    hint = hint if selection.ids is None else "_id_"
    items = {"$filter": {"input": "$items", "cond": {"$in": [exercise_id, "$$this.exerciseIds"]}}}
    page: list[Stage] = [{"$sort": {"date": -1, "_id": -1}}, {"$skip": walk.skip}, {"$limit": walk.limit}]
    sessions, total = await gather_reads(
        ctx,
        blocks.aggregate(ctx, walk.within(condition), *page, {"$project": {"date": 1, "items": items}}, hint=hint),
        blocks.count(ctx, condition, hint=hint),
    )
    return sessions, total


async def find_exercise_sessions_between(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, first: str, last: str
) -> list[ExerciseSession]:
    """Return a client's blocks from the date `first` to `last` in which an exercise was done, by date.

    Each has only the items with the exercise, and of these only the fields that training load needs.
    """
    condition = _between(customer_id, first, last) | {"items.doneExerciseIds": exercise_id}
    items = {"$filter": {"input": "$items", "cond": {"$in": [exercise_id, "$$this.exerciseIds"]}}}
    stages: list[Stage] = [
        {"$sort": {"date": 1, "_id": 1}},
        {"$project": {"date": 1, "items": items}},
        {"$project": {"date": 1, **{f"items.{name}": 1 for name in _LOAD_FIELDS}}},
    ]
    return await blocks.aggregate(ctx, condition, *stages, hint=_BY_DONE_EXERCISE)


async def find_done_exercises(ctx: Context, customer_id: ObjectId) -> list[DoneExercise]:
    """Return every exercise that a client did, the one done latest first."""
    stages: list[Stage] = [
        {"$project": {"_id": 0, "date": 1, "exerciseId": "$done.exercises.exerciseId"}},
        {"$unwind": "$exerciseId"},
        {"$group": {"_id": "$exerciseId", "lastDate": {"$max": "$date"}, "sessions": {"$sum": 1}}},
        {"$sort": {"lastDate": -1, "_id": 1}},
    ]
    condition: Filter = {"customerId": customer_id, "date": {"$gt": ""}} | _IS_SESSION
    return await blocks.aggregate(ctx, condition, *stages, hint=_BY_DATE)


async def find_last_sessions(
    ctx: Context,
    customer_id: ObjectId,
    block_ids: Sequence[ObjectId],
    before: str,
    *,
    without: Collection[str] = (),
) -> dict[ObjectId, ExerciseSession]:
    """Return the latest session before the date `before` of each exercise planned in some of a client's blocks.

    The keys are the exercises; those without such a session are left out. A session has only the items with its
    exercise. Sessions on the dates in `without` are left out.
    """
    dates = {"$lt": before} | _except_dates(without).get("date", {})
    earlier = blocks.read_filter(ctx, {"customerId": customer_id, "date": dates})
    of_exercise = {"$filter": {"input": "$items", "cond": {"$in": ["$$exercise", "$$this.exerciseIds"]}}}
    latest = {
        "from": blocks.name,
        "localField": "_id",
        "foreignField": "items.doneExerciseIds",
        "let": {"exercise": "$_id"},
        "pipeline": [
            {"$match": earlier},
            {"$sort": {"date": -1, "_id": -1}},
            {"$limit": 1},
            {"$project": {"date": 1, "items": of_exercise}},
        ],
        "as": "session",
    }
    stages: list[Stage] = [
        {"$project": {"exerciseId": "$items.exerciseId"}},
        {"$unwind": "$exerciseId"},
        {"$group": {"_id": "$exerciseId"}},
        {"$lookup": latest},
        {"$unwind": "$session"},
    ]
    condition = {"customerId": customer_id, "_id": {"$in": list(block_ids)}}
    sessions: list[LastSession] = await blocks.aggregate(ctx, condition, *stages, hint="_id_")
    return {each["_id"]: each["session"] for each in sessions}


async def count_assigned_blocks(
    ctx: Context, customer_id: ObjectId, program_ids: Sequence[ObjectId]
) -> list[AssignedBlocks]:
    """Return the blocks of each assignment of programs to a client; an assignment without blocks is left out."""
    has_items = {"$gt": [{"$size": "$items"}, 0]}
    is_completed = {"$and": [has_items, {"$allElementsTrue": ["$items.isCompleted"]}]}
    group = {
        "_id": "$assignmentId",
        "blocks": {"$sum": 1},
        "completedBlocks": {"$sum": {"$cond": [is_completed, 1, 0]}},
        "firstDate": {"$min": "$date"},
        "lastDate": {"$max": "$date"},
    }
    condition: Filter = {"programId": {"$in": list(program_ids)}, "customerId": customer_id}
    return await blocks.aggregate(ctx, condition | {"assignmentId": {"$ne": None}}, {"$group": group}, hint=_BY_PROGRAM)


async def find_best_sets(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId) -> dict[RecordType, Best]:
    """Return the best set of each type of record that a client ever did of an exercise."""
    condition = {"customerId": customer_id, "items.doneExerciseIds": exercise_id}
    of_exercise = {"$filter": {"input": "$done.exercises", "cond": {"$eq": ["$$this.exerciseId", exercise_id]}}}
    best = {"date": "$date", **{name: f"$exercise.bests.{name}" for name in ("value", "reps", "witemId")}}
    order = {"exercise.bests.value": -1, "date": 1, "exercise.bests.reps": -1, "exercise.bests.witemId": 1}
    stages: list[Stage] = [
        {"$project": {"date": 1, "exercise": of_exercise}},
        {"$unwind": "$exercise"},
        {"$unwind": "$exercise.bests"},
        {"$group": {"_id": "$exercise.bests.kind", "best": {"$top": {"sortBy": order, "output": best}}}},
    ]
    groups = await blocks.aggregate(ctx, condition, *stages, hint=_BY_DONE_EXERCISE)
    return {group["_id"]: group["best"] for group in groups}


async def find_items(ctx: Context, customer_id: ObjectId, item_ids: Sequence[ObjectId]) -> list[DatedItem]:
    """Return the existing items of a client with these identifiers: only the fields that training load needs."""
    ids = list(item_ids)
    of_ids = {"$filter": {"input": "$items", "cond": {"$in": ["$$this._id", ids]}}}
    stages: list[Stage] = [
        {"$project": {"date": 1, "item": of_ids}},
        {"$unwind": "$item"},
        {"$project": {"_id": 0, "date": 1, "item": dict.fromkeys(_LOAD_FIELDS, 1)}},
    ]
    condition = {"customerId": customer_id, "items._id": {"$in": ids}}
    return await blocks.aggregate(ctx, condition, *stages, hint=_BY_ITEM)


async def sum_by_exercise(ctx: Context, customer_id: ObjectId, first: str, last: str) -> list[ExerciseSum]:
    """Return the totals of each exercise that a client did from the date `first` to `last`."""
    stages: list[Stage] = [
        {"$project": {"_id": 0, "done": "$done.exercises"}},
        {"$unwind": "$done"},
        {"$group": {"_id": "$done.exerciseId", **{name: {"$sum": f"$done.{name}"} for name in TOTALS}}},
    ]
    return await blocks.aggregate(ctx, _between(customer_id, first, last), *stages, hint=_BY_DATE)


async def find_sessions(ctx: Context, customer_id: ObjectId, first: str, last: str) -> list[Session]:
    """Return a client's sessions from the date `first` to `last`, by date.

    A session has at least one working set, or a completed item of a type without sets.
    """
    totals = {name: {"$ifNull": [f"$done.{name}", 0]} for name in TOTALS}
    condition = _between(customer_id, first, last) | _IS_SESSION
    project = {"$project": {"_id": 0, "date": 1, "sessionRpe": 1, "durationMinutes": 1, **totals}}
    return await blocks.aggregate(ctx, condition, {"$sort": {"date": 1}}, project, hint=_BY_DATE)


async def find_first_session_date(ctx: Context, customer_id: ObjectId) -> str | None:
    """Return the date of a client's first session, or None."""
    condition: Filter = {"customerId": customer_id, "date": {"$gt": ""}} | _IS_SESSION
    first = await blocks.find(ctx, condition, sort=("date",), limit=1, fields=("date",), hint=_BY_DATE)
    return first[0]["date"] if first else None


async def find_last_session_date(ctx: Context, customer_id: ObjectId) -> str | None:
    """Return the date of a client's latest session, or None."""
    condition: Filter = {"customerId": customer_id, "date": {"$gt": ""}} | _IS_SESSION
    sessions = await blocks.find(ctx, condition, sort=("-date",), limit=1, fields=("date",), hint=_BY_DATE)
    return sessions[0]["date"] if sessions else None


def last_session_stage(ctx: Context) -> Stage:
    """Return the pipeline stage that adds the date of the latest session of a client, by `_id`.

    It is added as `lastSession`: a list of one block with its `date`, or empty.
    """
    return _last_date_stage(ctx, _IS_SESSION, "lastSession", {})


def last_assigned_block_stage(ctx: Context) -> Stage:
    """Return the pipeline stage that adds the last date of the blocks of a client's assignments.

    The document has the client as `_id` and the `assignments`. It is added as `lastBlock`: a list of one block with its
    `date`, or empty.
    """
    of_assignments = {"$expr": {"$in": ["$assignmentId", "$$assignments"]}}
    return _last_date_stage(ctx, of_assignments, "lastBlock", {"assignments": "$assignments"})


def _last_date_stage(ctx: Context, condition: Filter, name: str, variables: dict[str, str]) -> Stage:
    """Return the stage that adds the last date of the blocks of a client that meet a condition on `variables`."""
    pipeline: list[Stage] = [
        {"$match": blocks.read_filter(ctx, {"date": {"$gt": ""}} | condition)},
        {"$sort": {"date": -1}},
        {"$limit": 1},
        {"$project": {"_id": 0, "date": 1}},
    ]
    return {
        "$lookup": {
            "from": blocks.name,
            "localField": "_id",
            "foreignField": "customerId",
            "let": variables,
            "pipeline": pipeline,
            "as": name,
        }
    }


async def count_pending_forms(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str
) -> list[PendingForms]:
    """Return how many forms without an answer clients have on each date from `first` to `last`, by date."""
    pending = {"$filter": {"input": "$items", "cond": {"$eq": ["$$this.isPendingForm", True]}}}
    condition: Filter = {
        "customerId": {"$in": list(customer_ids)},
        "date": {"$gte": first, "$lte": last},
        "items.isPendingForm": True,
    }
    stages: list[Stage] = [
        {"$sort": {"customerId": 1, "date": 1}},
        {"$project": {"_id": 0, "customerId": 1, "date": 1, "count": {"$size": pending}}},
    ]
    return await blocks.aggregate(ctx, condition, *stages, hint=_BY_DATE)


async def find_scheduled_blocks(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str
) -> list[ScheduledBlock]:
    """Return the blocks of clients from the date `first` to `last`, by client and date, in order.

    Those of recurring check-ins are left out.
    """
    completed = {"$size": {"$filter": {"input": "$items", "cond": "$$this.isCompleted"}}}
    fields = dict.fromkeys(("customerId", "date", "name", "isRest"), 1)
    condition: Filter = {"customerId": {"$in": list(customer_ids)}, "date": {"$gte": first, "$lte": last}}
    return await blocks.aggregate(
        ctx,
        condition | _IS_REGULAR,
        {"$sort": {"customerId": 1, "date": 1, "position": 1, "_id": 1}},
        {"$project": {**fields, "totalItems": {"$size": "$items"}, "completedItems": completed}},
        hint=_BY_DATE,
    )


async def find_titles(ctx: Context, customer_id: ObjectId, first: str, last: str) -> list[BlockTitle]:
    """Return the titles of a client's blocks from the date `first` to `last`, in order."""
    return await blocks.aggregate(
        ctx,
        _between(customer_id, first, last),
        {"$sort": {"date": 1, "position": 1, "_id": 1}},
        {"$project": dict.fromkeys(("date", "name", "updatedAt", "version"), 1)},
        hint=_BY_DATE,
    )


async def find_pending_forms(
    ctx: Context, condition: Filter, *, dates: Filter, customer_ids: Sequence[ObjectId] | None, limit: int
) -> list[PendingForm]:
    """Return at most `limit` scheduled forms without an answer that meet a cursor's `condition`, by date.

    On dates that satisfy `dates`, of the active ones of the clients `customer_ids` (None: all).
    """
    where: Filter = {
        "items.isPendingForm": True,
        "date": {"$gt": "", **dates} | condition.get("date", {}),
        "customerId": {"$ne": None} if customer_ids is None else {"$in": list(customer_ids)},
    }
    pending = {"$filter": {"input": "$items", "cond": {"$eq": ["$$this.isPendingForm", True]}}}
    stages: list[Stage] = [
        {"$sort": {"date": 1, "_id": 1}},
        {"$project": {"date": 1, "customerId": 1, "items": {"$sortArray": {"input": pending, "sortBy": {"_id": 1}}}}},
        {"$unwind": "$items"},
        {"$match": condition},
        customers.active_customer_stage(),
        {"$unwind": "$client"},
        {"$limit": limit},
        {"$project": {"date": 1, "customerId": 1, "client": 1, "items._id": 1, "items.form": 1}},
    ]
    return await blocks.aggregate(ctx, where, *stages, hint=_BY_PENDING_FORM)


async def find_next_workout(
    ctx: Context, customer_id: ObjectId, after: str, *, without: Collection[str] = ()
) -> BlockReference | None:
    """Return the first workout of a client after a date: a block with items that is neither rest nor of a check-in.

    Those on the dates in `without` are left out. None without one.
    """
    condition: Filter = {
        "customerId": customer_id,
        "date": {"$gt": after} | _except_dates(without).get("date", {}),
        "isRest": False,
        "items.0": {"$exists": True},
    }
    sort = ("date", "position", "_id")
    first = await blocks.find(ctx, condition | _IS_REGULAR, sort=sort, limit=1, fields=("name", "date"), hint=_BY_DATE)
    return {"_id": first[0]["_id"], "name": first[0]["name"], "date": str(first[0]["date"])} if first else None


async def find_own_pending_forms(
    ctx: Context, customer_id: ObjectId, first: str, last: str, *, without: Collection[str] = ()
) -> list[OwnPendingItem]:
    """Return the forms without an answer of a client from the date `first` to `last`, by date.

    Those on the dates in `without` are left out.
    """
    condition: Filter = {
        "customerId": customer_id,
        "date": {"$gte": first, "$lte": last} | _except_dates(without).get("date", {}),
        "items.isPendingForm": True,
    }
    stages: list[Stage] = [
        {"$sort": {"date": 1, "position": 1, "_id": 1}},
        {"$unwind": "$items"},
        {"$match": {"items.isPendingForm": True}},
        {"$project": {"_id": "$items._id", "form": "$items.form", "wblockId": "$_id", "date": 1}},
    ]
    return await blocks.aggregate(ctx, condition, *stages, hint=_BY_DATE)


async def find_completed_dates(
    ctx: Context, customer_id: ObjectId, first: str, last: str, *, without: Collection[str] = ()
) -> list[str]:
    """Return the dates from `first` to `last` on which a client has completed all items of a workout.

    Those in `without` are left out.
    """
    condition: Filter = {
        "customerId": customer_id,
        "date": {"$gte": first, "$lte": last} | _except_dates(without).get("date", {}),
        "isRest": False,
        "items.0": {"$exists": True},
        "items.isCompleted": {"$ne": False},
    }
    dates = {"$group": {"_id": "$date"}}
    return [each["_id"] for each in await blocks.aggregate(ctx, condition | _IS_REGULAR, dates, hint=_BY_DATE)]


def _except_dates(dates: Collection[str]) -> Filter:
    return {"date": {"$nin": sorted(dates)}} if dates else {}


def _between(customer_id: ObjectId, first: str, last: str) -> Filter:
    return {"customerId": customer_id, "date": {"$gte": first, "$lte": last}}


def iterate_logged_blocks(ctx: Context) -> AsyncIterator[StoredBlock]:
    """Iterate over the blocks of all clients that have logged sets: those of a client follow each other, by date."""
    where: Filter = {"customerId": {"$ne": None}, "items.customerSets.0": {"$exists": True}}
    return blocks.stream_own(ctx, ("customerId", "date", "name", "comment", "items"), where)
