"""Queries over what clients did in each exercise, for the features that report on it.

What is on the dates `without` is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypedDict

from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import Filter
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListPart, ListSelection
from coaching_service.people.activity.models import LOWER_IS_BETTER
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items.models import DatedItem, LastTime, WorkItem
from coaching_service.training.workouts.items.service import TOTALS, logged_sets
from coaching_service.training.workouts.reports.blocks import Stage
from coaching_service.training.workouts.sets import Best, BlockExerciseTotals, PlannedSet, RecordKey, Totals
from coaching_service.training.workouts.store import BY_DATE, blocks

# --- Results of the queries -------------------------------------------------------------------------------------------


class ExerciseSession(TypedDict):
    """A block with the items that contain a certain exercise."""

    _id: ObjectId
    date: str
    items: list[WorkItem]


class DoneExercise(TypedDict):
    """An exercise (`_id`) that a client did: in how many sessions, and the date of the latest."""

    _id: ObjectId
    lastDate: str
    sessions: int


class LiftResult(BlockExerciseTotals):
    """What a client did for an exercise in a block on a date, with its best sets."""

    date: str


class ExerciseSum(Totals):
    """The totals of an exercise (`_id`) over a period."""

    _id: ObjectId


SESSION_ORDER = ("-date", "-_id")

_BY_DONE_EXERCISE = blocks.index_name("customerId", "items.doneExerciseIds", *SESSION_ORDER)
_BY_EXERCISE = blocks.index_name("customerId", "items.exerciseIds", *SESSION_ORDER)
_BY_ITEM = blocks.index_name("customerId", "items._id")
# The fields of an item that training load is computed from.
_LOAD_FIELDS = (
    *("_id", "type", "exerciseId", "exerciseSets", "circuitExercises", "customerSets"),
    *("assistedExerciseIds", "addedExerciseIds", "bodyWeight"),
)


async def find_exercise_sessions(
    ctx: Context,
    customer_id: ObjectId,
    exercise_id: ObjectId,
    list_part: ListPart,
    selection: ListSelection,
    *,
    include_planned: bool,
    without: Collection[str] = (),
) -> tuple[list[ExerciseSession], int]:
    """Return a client's blocks in which an exercise was done for one part of their list, and the total number.

    Only sessions of the selection. With `include_planned` also if it is only planned. Each has only the items
    with the exercise.
    """
    field, hint = (
        ("items.exerciseIds", _BY_EXERCISE) if include_planned else ("items.doneExerciseIds", _BY_DONE_EXERCISE)
    )
    condition = store.on_dates(customer_id, {"$gt": ""}, without) | {field: exercise_id} | selection.filter()
    hint = hint if selection.ids is None else "_id_"
    items = {"$filter": {"input": "$items", "cond": {"$in": [exercise_id, "$$this.exerciseIds"]}}}
    page: list[Stage] = [{"$sort": {"date": -1, "_id": -1}}, {"$skip": list_part.skip}, {"$limit": list_part.limit}]
    sessions, total = await gather_reads(
        ctx,
        blocks.aggregate(ctx, list_part.within(condition), *page, {"$project": {"date": 1, "items": items}}, hint=hint),
        blocks.count(ctx, condition, hint=hint),
    )
    return sessions, total


async def find_exercise_sessions_between(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, first: str, last: str
) -> list[ExerciseSession]:
    """Return a client's blocks from the date `first` to `last` in which an exercise was done, by date.

    Each has only the items with the exercise, and of these only the fields that training load needs.
    """
    condition = store.between(customer_id, first, last) | {"items.doneExerciseIds": exercise_id}
    items = {"$filter": {"input": "$items", "cond": {"$in": [exercise_id, "$$this.exerciseIds"]}}}
    stages: list[Stage] = [
        {"$sort": {"date": 1, "_id": 1}},
        {"$project": {"date": 1, "items": items}},
        {"$project": {"date": 1, **{f"items.{name}": 1 for name in _LOAD_FIELDS}}},
    ]
    return await blocks.aggregate(ctx, condition, *stages, hint=_BY_DONE_EXERCISE)


async def find_done_exercises(
    ctx: Context, customer_id: ObjectId, *, without: Collection[str] = ()
) -> list[DoneExercise]:
    """Return every exercise that a client did, the one done latest first."""
    stages: list[Stage] = [
        {"$project": {"_id": 0, "date": 1, "exerciseId": "$done.exercises.exerciseId"}},
        {"$unwind": "$exerciseId"},
        {"$group": {"_id": "$exerciseId", "lastDate": {"$max": "$date"}, "sessions": {"$sum": 1}}},
        {"$sort": {"lastDate": -1, "_id": 1}},
    ]
    condition = store.on_dates(customer_id, {"$gt": ""}, without) | store.IS_SESSION
    return await blocks.aggregate(ctx, condition, *stages, hint=BY_DATE)


async def find_exercise_ids(ctx: Context, customer_id: ObjectId) -> list[ObjectId]:
    """Return every exercise that is on a client's calendar, planned or done, the one of the latest date first."""
    stages: list[Stage] = [
        {"$project": {"_id": 0, "date": 1, "exerciseId": "$items.exerciseIds"}},
        {"$unwind": "$exerciseId"},
        {"$unwind": "$exerciseId"},
        {"$group": {"_id": "$exerciseId", "lastDate": {"$max": "$date"}}},
        {"$sort": {"lastDate": -1, "_id": 1}},
        {"$project": {"_id": 1}},
    ]
    condition: Filter = {"customerId": customer_id, "date": {"$gt": ""}}
    return [each["_id"] for each in await blocks.aggregate(ctx, condition, *stages, hint=BY_DATE)]


async def find_lift_results(
    ctx: Context,
    customer_id: ObjectId,
    exercise_ids: Sequence[ObjectId],
    first: str,
    last: str,
    *,
    without: Collection[str] = (),
) -> list[LiftResult]:
    """Return what a client did for some exercises in each block from the date `first` to `last`, by date."""
    condition = store.between(customer_id, first, last, without) | {"items.doneExerciseIds": {"$in": [*exercise_ids]}}
    stages: list[Stage] = [
        {"$sort": {"date": 1, "_id": 1}},
        {"$project": {"_id": 0, "date": 1, "done": "$done.exercises"}},
        {"$unwind": "$done"},
        {"$match": {"done.exerciseId": {"$in": [*exercise_ids]}}},
        {"$replaceWith": {"$mergeObjects": ["$done", {"date": "$date"}]}},
    ]
    return await blocks.aggregate(ctx, condition, *stages, hint=_BY_DONE_EXERCISE)


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
    exercise.
    """
    earlier = blocks.read_filter(ctx, store.on_dates(customer_id, {"$lt": before}, without))
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
    sessions: list[Any] = await blocks.aggregate(ctx, condition, *stages, hint="_id_")
    return {each["_id"]: each["session"] for each in sessions}


def earlier_session_stage(ctx: Context) -> Stage:
    """Return the pipeline stage that adds a session before the `date` of a document in which its exercise was done.

    The document has `customerId`, `exerciseId` and `date`. It is added as `earlierSession`: a list of one block with
    its `_id`, or empty.
    """
    is_earlier = {"$and": [{"$eq": ["$customerId", "$$customer"]}, {"$lt": ["$date", "$$date"]}]}
    return {
        "$lookup": {
            "from": blocks.name,
            "localField": "exerciseId",
            "foreignField": "items.doneExerciseIds",
            "let": {"customer": "$customerId", "date": "$date"},
            "pipeline": [
                {"$match": blocks.read_filter(ctx, {"date": {"$gt": ""}, "$expr": is_earlier})},
                {"$limit": 1},
                {"$project": {"_id": 1}},
            ],
            "as": "earlierSession",
        }
    }


async def find_last_plan(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, before: str) -> list[PlannedSet]:
    """Return the sets that a client's latest block before the date `before` plans of an exercise, outside of circuits.

    Only the latest 20 blocks that plan the exercise are considered; empty if none of them does so.
    """
    condition = {"customerId": customer_id, "items.exerciseIds": exercise_id, "date": {"$lt": before}}
    of_exercise = {"$filter": {"input": "$items", "cond": {"$eq": ["$$this.exerciseId", exercise_id]}}}
    stages: list[Stage] = [
        {"$sort": {"date": -1, "_id": -1}},
        {"$limit": 20},
        {"$project": {"_id": 0, "item": {"$first": of_exercise}}},
        {"$match": {"item": {"$ne": None}}},
        {"$limit": 1},
        {"$project": {"sets": "$item.exerciseSets"}},
    ]
    plans = await blocks.aggregate(ctx, condition, *stages, hint=_BY_EXERCISE)
    return plans[0]["sets"] if plans else []


async def find_best_sets(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId) -> dict[RecordKey, Best]:
    """Return the best set for each record that a client ever did of an exercise."""
    condition = {"customerId": customer_id, "items.doneExerciseIds": exercise_id}
    groups = await _find_best_sets(ctx, condition, {"$eq": ["$$this.exerciseId", exercise_id]}, _BY_DONE_EXERCISE)
    return {key: best for _, key, best in groups}


async def find_all_best_sets(ctx: Context, customer_id: ObjectId) -> dict[ObjectId, dict[RecordKey, Best]]:
    """Return the best set for each exercise and record that a client ever did."""
    condition: Filter = {"customerId": customer_id, "date": {"$gt": ""}} | store.IS_SESSION
    bests: dict[ObjectId, dict[RecordKey, Best]] = {}
    for exercise_id, key, best in await _find_best_sets(ctx, condition, True, BY_DATE):  # noqa: FBT003  # a condition
        bests.setdefault(exercise_id, {})[key] = best
    return bests


async def _find_best_sets(
    ctx: Context, condition: Filter, of_exercises: Any, hint: str
) -> list[tuple[ObjectId, RecordKey, Best]]:
    """Return the best sets among blocks; `of_exercises` is the expression that selects totals of exercises."""
    selected = {"$filter": {"input": "$done.exercises", "cond": of_exercises}}
    best = {
        "date": "$date",
        **{name: f"$exercise.bests.{name}" for name in ("value", "reps", "witemId")},
        "isImported": {"$ne": [{"$ifNull": ["$source", None]}, None]},
    }
    value = "$exercise.bests.value"
    is_lower_better = {"$in": ["$exercise.bests.kind", sorted(LOWER_IS_BETTER)]}
    order = {"rank": 1, "date": 1, "exercise.bests.reps": -1, "exercise.bests.witemId": 1}
    group = {
        "exerciseId": "$exercise.exerciseId",
        "kind": "$exercise.bests.kind",
        "meters": {"$ifNull": ["$exercise.bests.meters", None]},
    }
    stages: list[Stage] = [
        {"$project": {"date": 1, "source": 1, "exercise": selected}},
        {"$unwind": "$exercise"},
        {"$unwind": "$exercise.bests"},
        {"$set": {"rank": {"$cond": [is_lower_better, value, {"$multiply": [value, -1]}]}}},
        {"$group": {"_id": group, "best": {"$top": {"sortBy": order, "output": best}}}},
    ]
    groups = await blocks.aggregate(ctx, condition, *stages, hint=hint)
    return [
        (each["_id"]["exerciseId"], RecordKey(each["_id"]["kind"], each["_id"]["meters"]), each["best"])
        for each in groups
    ]


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
    return await blocks.aggregate(ctx, store.between(customer_id, first, last), *stages, hint=BY_DATE)


async def find_planned_for(
    ctx: Context, customer_ids: Sequence[ObjectId], exercise_id: ObjectId, first: str
) -> list[ObjectId]:
    """Return the clients among some on whose calendars an exercise is, from a date on, by identifier."""
    condition: Filter = {
        "customerId": {"$in": list(customer_ids)},
        "items.exerciseIds": exercise_id,
        "date": {"$gte": first},
    }
    group: Stage = {"$group": {"_id": "$customerId"}}
    found = await blocks.aggregate(ctx, condition, group, {"$sort": {"_id": 1}}, hint=_BY_EXERCISE)
    return [each["_id"] for each in found]


async def find_planned_exercises(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str
) -> list[ObjectId]:
    """Return the exercises that are on the calendars of clients on some days, most frequent first."""
    condition = store.of_clients(customer_ids, first, last)
    stages: list[Stage] = [
        {"$unwind": "$items"},
        {"$unwind": "$items.exerciseIds"},
        {"$group": {"_id": "$items.exerciseIds", "count": {"$sum": 1}}},
        {"$sort": {"count": -1, "_id": 1}},
    ]
    return [each["_id"] for each in await blocks.aggregate(ctx, condition, *stages, hint=BY_DATE)]


async def add_last_times(
    ctx: Context, customer_id: ObjectId, blocks: Sequence[Block], *, without: Collection[str] = ()
) -> list[Block]:
    """Return blocks of a client, whose access has been checked, with `lastTime` of each exercise item.

    It is the latest session of the exercise before the date of the block, or None: the latest earlier block with a
    completed set of it that is not warm-up. One query for each date of the blocks.
    """
    dates = sorted({block["date"] for block in blocks if block["date"] is not None})
    ids_by_date = {date: [block["_id"] for block in blocks if block["date"] == date] for date in dates}
    reads = (find_last_sessions(ctx, customer_id, ids, date, without=without) for date, ids in ids_by_date.items())
    sessions = await gather_reads(ctx, *reads)
    sessions_by_date: dict[str | None, dict[ObjectId, ExerciseSession]] = dict(zip(dates, sessions, strict=True))
    listed: list[Block] = []
    for block in blocks:
        of_date, items = sessions_by_date.get(block["date"], {}), list[WorkItem]()
        for item in block["items"]:
            if item["type"] == "EXERCISE":
                last_time: LastTime | None = None
                if (session := of_date.get(item["exerciseId"])) is not None:
                    done = logged_sets(session["items"], item["exerciseId"])
                    last_time = {"date": session["date"], "wblockId": session["_id"], "sets": done}
                items.append({**item, "lastTime": last_time})
            else:
                items.append(item)
        listed.append({**block, "items": items})
    return listed
