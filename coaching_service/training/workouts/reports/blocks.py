"""Queries over scheduled and completed blocks, for the features that report on them.

What is on the dates `without` is left out; sessions and workouts with anything done are no check-ins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, NotRequired, TypedDict

from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import Filter
from coaching_service.core.dates import local_date
from coaching_service.core.fields import names_of
from coaching_service.core.ids import ObjectId
from coaching_service.people import availability
from coaching_service.people.availability import Absences, AvailabilityKind
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.models import (
    SESSION_FIELDS,
    Block,
    PlannedBlock,
    SessionFields,
    StoredBlock,
)
from coaching_service.training.workouts.items.models import WORKOUT_TYPES, ItemForm
from coaching_service.training.workouts.items.service import TOTALS
from coaching_service.training.workouts.sets import Totals
from coaching_service.training.workouts.store import BY_DATE, BY_PROGRAM, blocks

# --- Results of the queries -------------------------------------------------------------------------------------------


class PendingItem(TypedDict):
    """A scheduled form that is not answered: the fields of its item."""

    _id: ObjectId
    form: ItemForm


class UnansweredForm(TypedDict):
    """A form that a client has not answered; `_id` is its workout block."""

    _id: ObjectId
    customerId: ObjectId
    date: str
    formName: str


class PendingForm(TypedDict):
    """A scheduled form that is not answered, in the block `_id`, with the active client as `client`."""

    _id: ObjectId
    customerId: ObjectId
    date: str
    items: PendingItem
    client: Customer


class OwnPendingItem(PendingItem):
    """A scheduled form of one client that is not answered, with its block and date."""

    wblockId: ObjectId
    date: str


class PeriodTotals(TypedDict):
    """What clients did in a period (`2026-03`, or `2026-10` for a week), apart from days on which they do not train.

    `active`: the clients with a session; `planned`: workouts, on all days.
    """

    _id: str
    active: int
    planned: int
    sessions: int
    workoutDays: int
    completedDays: int


class BlockReference(TypedDict):
    """A workout block by name and date."""

    _id: ObjectId
    name: str
    date: str


class ItemReference(TypedDict):
    """An item `_id` with its workout; `exerciseId` of an exercise, and `title` of other types, without either null."""

    _id: ObjectId
    wblockId: ObjectId
    name: str
    date: str
    exerciseId: ObjectId | None
    title: str | None


class DailyCount(TypedDict):
    """How many of something a client has on a date, as of forms without an answer in a block."""

    customerId: ObjectId
    date: str
    count: int


class BlockProgress(TypedDict):
    """What became of a block: the number of its items, and of those completed.

    `isWorkout`: it is neither rest nor of a recurring check-in, has an item of WORKOUT_TYPES, and is completed if its
    client added it. `isImported`: it was done before, and never planned. `hasWork`: it has a completed set that is not
    warm-up, or a completed item of a type without sets.
    """

    date: str
    plannedDate: NotRequired[str | None]
    name: str
    createdBy: NotRequired[Literal["client"] | None]
    isRest: bool
    isWorkout: bool
    isImported: NotRequired[bool]
    totalItems: int
    completedItems: int
    hasWork: bool


class BlockOutline(BlockProgress):
    """A block of a client without its items."""

    _id: ObjectId


class ScheduledBlock(BlockOutline):
    """A scheduled block of a client with what became of it."""

    customerId: ObjectId


class LatestSessions(TypedDict):
    """The latest session of a client up to today, and what was done of later ones: one each, or none."""

    lastSession: list[dict[Literal["date"], str]]
    doneAhead: list[dict[Literal["loggedAt"], datetime | None]]


class AgendaReminder(TypedDict):
    """A reminder of a block; `scheduledTime` as it was sent."""

    _id: ObjectId
    scheduledTime: str
    isCompleted: bool


class AgendaBlock(BlockOutline):
    """A block of a client with its reminders; `isOpenCheckIn`: it is a check-in, or has a form, that is not done."""

    customerId: ObjectId
    createdAt: datetime
    isOpenCheckIn: bool
    reminders: list[AgendaReminder]


class DoneWorkout(SessionFields):
    """A workout with anything done; `sets` are the completed ones that are not warm-up."""

    _id: ObjectId
    date: str
    name: str
    totalItems: int
    completedItems: int
    sets: int


class BlockTitle(TypedDict):
    """The title of a scheduled block, and its latest change."""

    _id: ObjectId
    date: str
    name: str
    updatedAt: datetime
    version: int


class Session(Totals):
    """A training session: a block with a working set, or with a completed item of a type without sets."""

    date: str
    sessionRpe: float | None
    durationMinutes: float | None


class AssignedBlocks(TypedDict):
    """The blocks of one assignment of a program (`_id`): their number, how many are completed, and their dates."""

    _id: ObjectId
    blocks: int
    completedBlocks: int
    firstDate: str
    lastDate: str


# --- What the queries over workout blocks share -----------------------------------------------------------------------


Stage = dict[str, Any]

# What a client added makes a workout day only when it is completed.
_IS_PLANNED_OR_COMPLETED: Stage = {
    "$or": [{"$ne": ["$createdBy", "client"]}, {"$allElementsTrue": ["$items.isCompleted"]}]
}
_HAS_WORKOUT_ITEM: Stage = {"$ne": [{"$setIntersection": ["$items.type", [*WORKOUT_TYPES]]}, []]}
_IS_IMPORTED: Stage = {"$ne": [{"$ifNull": ["$source", None]}, None]}
# The fields of BlockProgress, in a projection.
PROGRESS: Stage = {
    **dict.fromkeys(("date", "name", "isRest", "createdBy", "plannedDate"), 1),
    "isWorkout": {
        "$and": [
            {"$not": "$isRest"},
            _IS_PLANNED_OR_COMPLETED,
            {"$eq": [{"$ifNull": ["$checkInId", None]}, None]},
            {"$not": _IS_IMPORTED},
            _HAS_WORKOUT_ITEM,
        ]
    },
    "isImported": _IS_IMPORTED,
    "totalItems": {"$size": "$items"},
    "completedItems": {"$size": {"$filter": {"input": "$items", "cond": "$$this.isCompleted"}}},
    "hasWork": {"$ne": [{"$ifNull": ["$done", None]}, None]},
}


_BY_ITEM = blocks.index_name("customerId", "items._id")
_IN_ORDER: Stage = {"$sort": {"customerId": 1, "date": 1, "position": 1, "_id": 1}}
_PENDING: Stage = {"$filter": {"input": "$items", "cond": {"$eq": ["$$this.isPendingForm", True]}}}
_LAST: tuple[Stage, ...] = ({"$sort": {"date": -1}}, {"$limit": 1}, {"$project": {"_id": 0, "date": 1}})
_BY_PENDING_FORM = blocks.index_name("date", "_id", "customerId")


async def find_existing_ids(ctx: Context, block_ids: Collection[ObjectId]) -> set[ObjectId]:
    """Return which of some blocks still exist. Access is not checked."""
    return {block["_id"] for block in await blocks.find(ctx, {"_id": {"$in": list(block_ids)}}, fields=("_id",))}


async def find_trained_ids(ctx: Context, block_ids: Collection[ObjectId]) -> set[ObjectId]:
    """Return which of some blocks still exist and are workouts, rest or not. Access is not checked."""
    where: Filter = {"_id": {"$in": list(block_ids)}} | store.HAS_WORKOUT_ITEM | store.IS_REGULAR
    return {block["_id"] for block in await blocks.find(ctx, where, fields=("_id",))}


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
    return await blocks.aggregate(ctx, condition | {"assignmentId": {"$ne": None}}, {"$group": group}, hint=BY_PROGRAM)


async def find_assigned(ctx: Context, program_id: ObjectId, assignment_ids: Sequence[ObjectId]) -> list[StoredBlock]:
    """Return the blocks of assignments of a program, by day, with `position`, `programCopy` and `shiftedDays`."""
    where = _of_assignments(program_id, assignment_ids)
    sort = ("customerId", "day", "position", "_id")
    including = ("position", "programCopy", "shiftedDays")
    return await blocks.find(ctx, where, sort=sort, including=including, hint=BY_PROGRAM)


def _of_assignments(program_id: ObjectId, assignment_ids: Sequence[ObjectId]) -> Filter:
    return {"programId": program_id, "customerId": {"$ne": None}, "assignmentId": {"$in": list(assignment_ids)}}


async def find_last_assigned(
    ctx: Context, program_id: ObjectId, assignment_ids: Sequence[ObjectId]
) -> dict[ObjectId, str]:
    """Return the last date of the blocks of assignments of a program, by assignment."""
    where = _of_assignments(program_id, assignment_ids)
    group = {"$group": {"_id": "$assignmentId", "last": {"$max": "$date"}}}
    return {each["_id"]: each["last"] for each in await blocks.aggregate(ctx, where, group, hint=BY_PROGRAM)}


async def find_sessions(ctx: Context, customer_id: ObjectId, first: str, last: str) -> list[Session]:
    """Return a client's sessions from the date `first` to `last`, by date.

    A session has at least one working set, or a completed item of a type without sets.
    """
    totals = {name: {"$ifNull": [f"$done.{name}", 0]} for name in TOTALS}
    condition = store.between(customer_id, first, last) | store.IS_SESSION
    project = {"$project": {"_id": 0, "date": 1, "sessionRpe": 1, "durationMinutes": 1, **totals}}
    return await blocks.aggregate(ctx, condition, {"$sort": {"date": 1}}, project, hint=BY_DATE)


async def find_session_date(
    ctx: Context, customer_id: ObjectId, order: str, dates: Filter | None = None, without: Collection[str] = ()
) -> str | None:
    """Return the date of the first session of a client in the `order` (`date`, or `-date` for the latest), or None.

    Of those on the dates that satisfy `dates`, but not in `without`.
    """
    condition = store.on_dates(customer_id, dates or {"$gt": ""}, without) | store.IS_SESSION
    sessions = await blocks.find(ctx, condition, sort=(order,), limit=1, fields=("date",), hint=BY_DATE)
    return sessions[0]["date"] if sessions else None


async def find_done_dates_around(
    ctx: Context, customer_id: ObjectId, first: str, last: str, *, without: Collection[str] = ()
) -> tuple[str | None, str | None]:
    """Return the last date before `first`, and the first one after `last`, on which a client did a workout.

    Those in `without` are left out; None without one.
    """
    before, after = await gather_reads(
        ctx,
        find_session_date(ctx, customer_id, "-date", {"$gt": "", "$lt": first}, without),
        find_session_date(ctx, customer_id, "date", {"$gt": last}, without),
    )
    return before, after


async def find_done_workouts(
    ctx: Context, customer_id: ObjectId, first: str, last: str, *, without: Collection[str] = ()
) -> list[DoneWorkout]:
    """Return the workouts of a client with anything done, from the date `first` to `last`, newest first."""
    fields: dict[str, Any] = {
        **dict.fromkeys(("date", "name", *SESSION_FIELDS), 1),
        "totalItems": PROGRESS["totalItems"],
        "completedItems": PROGRESS["completedItems"],
        "sets": {"$ifNull": ["$done.sets", 0]},
    }
    return await blocks.aggregate(
        ctx,
        store.between(customer_id, first, last, without) | store.IS_SESSION,
        {"$sort": {"date": -1, "position": -1, "_id": -1}},
        {"$project": fields},
        hint=BY_DATE,
    )


async def find_latest_done(
    ctx: Context, customer_id: ObjectId, count: int, *, without: Collection[str] = ()
) -> list[Block]:
    """Return the latest `count` workouts of a client with anything done: their names, dates and items."""
    return await blocks.aggregate(
        ctx,
        store.on_dates(customer_id, {"$gt": ""}, without) | store.IS_SESSION,
        {"$sort": {"date": -1, "position": -1, "_id": -1}},
        {"$limit": count},
        {"$project": dict.fromkeys(("name", "date", "items"), 1)},
        hint=BY_DATE,
    )


def last_session_stages(ctx: Context, today_of: Mapping[ObjectId, date]) -> list[Stage]:
    """Return the pipeline stages that add the latest session of clients, by `_id`, up to the client's today.

    They add `lastSession`, a list of one block with its `date`, or empty, and `doneAhead`, the same with `loggedAt`:
    when sessions of later dates were logged for the last time.
    """
    clients_of: defaultdict[date, list[ObjectId]] = defaultdict(list)
    for client, today in today_of.items():
        clients_of[today].append(client)
    dates = [{"case": {"$in": ["$_id", clients]}, "then": str(day)} for day, clients in clients_of.items()]
    is_done = {"$gt": [{"$size": {"$ifNull": ["$$this.doneExerciseIds", []]}}, 0]}
    logged_at = {"$ifNull": ["$$this.completedAt", {"$cond": [is_done, "$$this.updatedAt", None]}]}
    last = {"$max": {"$max": {"$map": {"input": "$items", "in": logged_at}}}}
    ahead: list[Stage] = [
        {"$match": {"$expr": {"$gt": ["$date", "$$today"]}}},
        {"$group": {"_id": None, "loggedAt": last}},
    ]
    variables = {"today": "$today"}
    return [
        {"$set": {"today": {"$switch": {"branches": dates, "default": None}}}},
        _lookup(ctx, {"$expr": {"$lte": ["$date", "$$today"]}} | store.IS_SESSION, "lastSession", variables, _LAST),
        _lookup(ctx, store.IS_SESSION, "doneAhead", variables, ahead),
    ]


def find_last_trained(sessions: LatestSessions, timezone: str) -> str | None:
    """Return on which date of the client, in `timezone`, a session was last done, or None.

    It is the date of the session, or when it was logged if that was before.
    """
    dates = [block["date"] for block in sessions["lastSession"]]
    dates += [str(local_date(each["loggedAt"], timezone)) for each in sessions["doneAhead"] if each["loggedAt"]]
    return max(dates, default=None)


def last_assigned_block_stage(ctx: Context) -> Stage:
    """Return the pipeline stage that adds the last date of the blocks of a client's assignments.

    The document has the client as `_id` and the `assignments`. It is added as `lastBlock`: a list of one block with its
    `date`, or empty.
    """
    of_assignments = {"$expr": {"$in": ["$assignmentId", "$$assignments"]}}
    return _lookup(ctx, of_assignments, "lastBlock", {"assignments": "$assignments"}, _LAST)


def _lookup(ctx: Context, condition: Filter, name: str, variables: dict[str, str], stages: Sequence[Stage]) -> Stage:
    """Return the stage that adds what `stages` make of the blocks of a client that meet a condition on `variables`."""
    pipeline = [{"$match": blocks.read_filter(ctx, {"date": {"$gt": ""}} | condition)}, *stages]
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
) -> list[DailyCount]:
    """Return how many forms without an answer clients have on each date from `first` to `last`, by date."""
    condition = store.of_clients(customer_ids, first, last) | {"items.isPendingForm": True}
    stages: list[Stage] = [
        {"$sort": {"customerId": 1, "date": 1}},
        {"$project": {"_id": 0, "customerId": 1, "date": 1, "count": {"$size": _PENDING}}},
    ]
    return await blocks.aggregate(ctx, condition, *stages, hint=BY_DATE)


async def find_scheduled_blocks(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str
) -> list[ScheduledBlock]:
    """Return the blocks of clients from the date `first` to `last`, by client and date, in order.

    Blocks of recurring check-ins are left out.
    """
    where, fields = store.of_clients(customer_ids, first, last) | store.IS_REGULAR, {"customerId": 1, **PROGRESS}
    return await blocks.aggregate(ctx, where, _IN_ORDER, {"$project": fields}, hint=BY_DATE)


async def sum_periods(
    ctx: Context,
    customer_ids: Sequence[ObjectId],
    first: str,
    last: str,
    *,
    period: Literal["week", "month"],
    today: str,
    absences: Mapping[ObjectId, Absences],
) -> list[PeriodTotals]:
    """Return what clients, whose today is the same, did from the date `first` to `last`, by week or month.

    Days count as in compliance: up to yesterday, and today once it is completed.
    """
    absent = [
        {
            "$and": [
                {"$eq": ["$_id.client", client]},
                {"$gte": ["$_id.date", each["from"]]},
                {"$lte": ["$_id.date", each["until"] or last]},
            ]
        }
        for client, of_client in absences.items()
        for each in of_client.periods
    ]
    is_session = {"$and": [PROGRESS["hasWork"], _HAS_WORKOUT_ITEM]}
    of_workouts = {
        name: {"$sum": {"$cond": ["$isWorkout", f"${name}", 0]}} for name in ("totalItems", "completedItems")
    }
    of_day = {
        "_id": {"client": "$customerId", "date": "$date"},
        **of_workouts,
        "planned": {"$sum": {"$toInt": "$isWorkout"}},
        "sessions": {"$sum": {"$toInt": "$isSession"}},
    }
    is_done = {"$eq": ["$totalItems", "$completedItems"]}
    is_over = {"$or": [{"$lt": ["$_id.date", today]}, {"$and": [{"$eq": ["$_id.date", today]}, is_done]}]}
    is_day = {"$and": [{"$gt": ["$totalItems", 0]}, is_over, *([{"$not": {"$or": absent}}] if absent else [])]}
    day = {"$dateFromString": {"dateString": "$_id.date"}}
    key: Any = {"$substrBytes": ["$_id.date", 0, 7]}
    if period == "week":
        key = {"$dateToString": {"format": "%G-%V", "date": day}}
    sums = {
        "planned": {"$sum": "$planned"},
        "sessions": {"$sum": "$sessions"},
        "workoutDays": {"$sum": {"$toInt": is_day}},
        "completedDays": {"$sum": {"$toInt": {"$and": [is_day, is_done]}}},
    }
    totals = {name: {"$sum": f"${name}"} for name in sums}
    return await blocks.aggregate(
        ctx,
        store.of_clients(customer_ids, first, last) | store.IS_REGULAR,
        {
            "$project": {
                "customerId": 1,
                "date": 1,
                **{name: PROGRESS[name] for name in ("isWorkout", "totalItems", "completedItems")},
                "isSession": is_session,
            }
        },
        {"$group": of_day},
        {"$group": {"_id": {"client": "$_id.client", "period": key}, **sums}},
        {"$group": {"_id": "$_id.period", "active": {"$sum": {"$toInt": {"$gt": ["$sessions", 0]}}}, **totals}},
        hint=BY_DATE,
    )


async def find_agenda(ctx: Context, customer_ids: Collection[ObjectId], first: str, last: str) -> list[AgendaBlock]:
    """Return the blocks of clients from the date `first` to `last`, in the order of each calendar.

    Access is not checked. The number of queries does not depend on the number of clients.
    """
    is_check_in = {"$ne": [{"$ifNull": ["$checkInId", None]}, None]}
    is_incomplete = {"$in": [False, "$items.isCompleted"]}
    fields: dict[str, Any] = {
        **PROGRESS,
        "customerId": 1,
        "createdAt": 1,
        "isOpenCheckIn": {"$or": [{"$and": [is_check_in, is_incomplete]}, {"$in": [True, "$items.isPendingForm"]}]},
        "reminders": {
            "$map": {
                "input": {"$filter": {"input": "$items", "cond": {"$eq": ["$$this.type", "REMINDER"]}}},
                "in": {
                    "_id": "$$this._id",
                    "scheduledTime": "$$this.reminderFields.scheduledTime",
                    "isCompleted": "$$this.isCompleted",
                },
            }
        },
    }
    where = store.of_clients(customer_ids, first, last)
    return await blocks.aggregate(ctx, where, _IN_ORDER, {"$project": fields}, hint=BY_DATE)


async def find_titles(ctx: Context, customer_id: ObjectId, first: str, last: str) -> list[BlockTitle]:
    """Return the titles of a client's blocks from the date `first` to `last`, in order."""
    return await blocks.aggregate(
        ctx,
        store.between(customer_id, first, last),
        {"$sort": {"date": 1, "position": 1, "_id": 1}},
        {"$project": dict.fromkeys(("date", "name", "updatedAt", "version"), 1)},
        hint=BY_DATE,
    )


async def find_pending_forms(
    ctx: Context,
    condition: Filter,
    *,
    dates: Filter,
    customer_ids: Sequence[ObjectId] | None,
    limit: int,
    newest_first: bool = False,
) -> list[PendingForm]:
    """Return at most `limit` scheduled forms without an answer that meet a cursor's `condition`, by date.

    On dates that satisfy `dates`, of the active ones of the clients `customer_ids` (None: all).
    """
    order = -1 if newest_first else 1
    where: Filter = {
        "items.isPendingForm": True,
        "date": {"$gt": "", **dates} | condition.get("date", {}),
        "customerId": {"$ne": None} if customer_ids is None else {"$in": list(customer_ids)},
    }
    stages: list[Stage] = [
        {"$sort": {"date": order, "_id": order}},
        {"$project": {"date": 1, "customerId": 1, "items": {"$sortArray": {"input": _PENDING, "sortBy": {"_id": 1}}}}},
        {"$unwind": "$items"},
        {"$match": condition},
        customers.active_customer_stage(ctx),
        {"$unwind": "$client"},
        {"$limit": limit},
        {"$project": {"date": 1, "customerId": 1, "client": 1, "items._id": 1, "items.form": 1}},
    ]
    return await blocks.aggregate(ctx, where, *stages, hint=_BY_PENDING_FORM)


async def find_unanswered_forms(
    ctx: Context, customer_ids: Sequence[ObjectId], before: str, form_id: ObjectId | None
) -> list[UnansweredForm]:
    """Return the scheduled forms without an answer of clients before a date, by date; with `form_id` only of that form.

    Access is not checked.
    """
    where: Filter = {
        "items.isPendingForm": True,
        "date": {"$gt": "", "$lt": before},
        "customerId": {"$in": list(customer_ids)},
    }
    of_form = {} if form_id is None else {"items.form.formId": form_id}
    stages: list[Stage] = [
        {"$sort": {"date": 1, "_id": 1}},
        {"$unwind": "$items"},
        {"$match": {"items.isPendingForm": True, **of_form}},
        {"$project": {"date": 1, "customerId": 1, "formName": "$items.form.name"}},
    ]
    return await blocks.aggregate(ctx, where, *stages, hint=_BY_PENDING_FORM)


async def find_next_workout(
    ctx: Context, customer_id: ObjectId, after: str, *, without: Collection[str] = ()
) -> BlockReference | None:
    """Return the first workout of a client after a date; None without one."""
    condition = store.on_dates(customer_id, {"$gt": after}, without) | store.IS_WORKOUT
    sort = ("date", "position", "_id")
    first = await blocks.find(ctx, condition, sort=sort, limit=1, fields=("name", "date"), hint=BY_DATE)
    return {"_id": first[0]["_id"], "name": first[0]["name"], "date": str(first[0]["date"])} if first else None


async def find_own_pending_forms(
    ctx: Context, customer_id: ObjectId, first: str, last: str, *, without: Collection[str] = ()
) -> list[OwnPendingItem]:
    """Return the forms without an answer of a client from the date `first` to `last`, by date."""
    condition = store.between(customer_id, first, last, without) | {"items.isPendingForm": True}
    stages: list[Stage] = [
        {"$sort": {"date": 1, "position": 1, "_id": 1}},
        {"$unwind": "$items"},
        {"$match": {"items.isPendingForm": True}},
        {"$project": {"_id": "$items._id", "form": "$items.form", "wblockId": "$_id", "date": 1}},
    ]
    return await blocks.aggregate(ctx, condition, *stages, hint=BY_DATE)


async def find_completed_dates(
    ctx: Context, customer_id: ObjectId, first: str, last: str, *, without: Collection[str] = ()
) -> list[str]:
    """Return the dates from `first` to `last` on which a client has completed all items of a workout."""
    condition = (
        store.between(customer_id, first, last, without) | {"items.isCompleted": {"$ne": False}} | store.IS_WORKOUT
    )
    dates = {"$group": {"_id": "$date"}}
    return [each["_id"] for each in await blocks.aggregate(ctx, condition, dates, hint=BY_DATE)]


async def find_items(
    ctx: Context, customer_ids: Collection[ObjectId], item_ids: Collection[ObjectId]
) -> dict[ObjectId, ItemReference]:
    """Return some items of clients with the workouts they are in; items that were removed are left out."""
    ids = list(item_ids)
    condition = {"customerId": {"$in": list(customer_ids)}, "items._id": {"$in": ids}}
    titles = ("circuitName", "taskFields.title", "form.name", "reminderFields.message")
    stages: list[Stage] = [
        {"$unwind": "$items"},
        {"$match": {"items._id": {"$in": ids}}},
        {
            "$project": {
                "_id": "$items._id",
                "wblockId": "$_id",
                "name": 1,
                "date": 1,
                "exerciseId": {"$ifNull": ["$items.exerciseId", None]},
                "title": {"$ifNull": [*(f"$items.{title}" for title in titles), None]},
            }
        },
    ]
    listed: list[ItemReference] = await blocks.aggregate(ctx, condition, *stages, hint=_BY_ITEM)
    return {each["_id"]: each for each in listed}


def iterate_logged_blocks(ctx: Context) -> AsyncIterator[StoredBlock]:
    """Iterate over the blocks of all clients that have logged sets: blocks of a client follow each other, by date."""
    where: Filter = {"customerId": {"$ne": None}, "items.customerSets.0": {"$exists": True}}
    fields = ("customerId", "date", "startTime", *names_of(PlannedBlock, SessionFields), "items")
    return blocks.stream_own(ctx, fields, where)


# --- The days of a client's calendar, with what became of the blocks on them ------------------------------------------


Status = Literal["planned", "done", "part", "missed", "rest", "away"]


class CalendarBlock(BlockOutline):
    """A block with what became of it; a block without items is planned. `away`: the client does not train that day."""

    status: Status


class CalendarDay(TypedDict):
    """A day with its blocks in order; `status` is the status of its workouts, None without a workout or rest.

    `absence`: why the client does not train on it, else None; its status is then `away` unless something was done.
    """

    date: str
    absence: AvailabilityKind | None
    status: Status | None
    blocks: list[CalendarBlock]


async def list_days(
    ctx: Context, customer_id: ObjectId, first: date, last: date, *, today: date, without: Collection[str] = ()
) -> list[CalendarDay]:
    """Return every day of a client from `first` to `last`; `today` is the client's.

    The dates in `without` have no blocks. The caller has checked the access to the client.
    """
    listed: list[BlockOutline]
    listed, absences_of = await gather_reads(
        ctx,
        blocks.aggregate(
            ctx,
            store.between(customer_id, str(first), str(last), without),
            {"$sort": {"date": 1, "position": 1, "_id": 1}},
            {"$project": PROGRESS},
            hint=BY_DATE,
        ),
        availability.get_absences(ctx, [customer_id], str(first), str(last)),
    )
    absences, by_day = absences_of[customer_id], dict[str, list[CalendarBlock]]()
    for outline in listed:
        status = status_of_block(outline, today, is_away=outline["date"] in absences)
        by_day.setdefault(outline["date"], []).append({**outline, "status": status})
    days = (str(date.fromordinal(number)) for number in range(first.toordinal(), last.toordinal() + 1))
    return [
        {
            "date": day,
            "absence": absences.kind_on(day),
            "status": status_of_day(by_day.get(day, ()), today, is_away=day in absences),
            "blocks": by_day.get(day, []),
        }
        for day in days
    ]


def status_of_block(block: BlockProgress, today: date, *, is_away: bool = False) -> Status:
    """Return what became of a block; `today` is the client's. What the client added is never missed.

    `is_away`: the client does not train on its day.
    """
    if block["isRest"]:
        return "rest"
    status = _status_of([block], today, is_away=is_away)
    return "planned" if status == "missed" and block.get("createdBy") is not None else status


def status_of_day(blocks: Sequence[BlockProgress], today: date, *, is_away: bool = False) -> Status | None:
    """Return what became of the workouts among the blocks of a day; `today` is the client's.

    Days have this status everywhere: calendars, the last seven days of a client, charts, and, as it is completed or
    not, compliance. `is_away`: the client does not train on it, so nothing can be missed. What the client added or
    imported counts where nothing else is planned, and is never missed.
    """
    if workouts := [block for block in blocks if block["isWorkout"]]:
        return _status_of(workouts, today, is_away=is_away)
    own = [block for block in blocks if (block.get("createdBy") or block.get("isImported")) and not block["isRest"]]
    if own and (status := _status_of(own, today, is_away=is_away)) != "missed":
        return status
    if is_away:
        return "away"
    return "rest" if any(block["isRest"] for block in blocks) else None


def _status_of(blocks: Sequence[BlockProgress], today: date, *, is_away: bool) -> Status:
    total = sum(block["totalItems"] for block in blocks)
    completed = sum(block["completedItems"] for block in blocks)
    if total and completed == total:
        return "done"
    if completed or any(block["hasWork"] for block in blocks):
        return "part"
    if is_away:
        return "away"
    return "missed" if total and blocks[0]["date"] < str(today) else "planned"
