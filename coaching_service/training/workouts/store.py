"""Workout blocks in the database: one document for each block, with its items in order."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, cast

from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, external_id_taken
from coaching_service.core.database.documents import Documents, Filter, PipelineStage
from coaching_service.core.database.recording import MISSING, DocumentChange
from coaching_service.core.errors import BadRequest
from coaching_service.core.events import EventType
from coaching_service.core.external_identity import BY_EXTERNAL_ID, IDENTITY_CHECKS
from coaching_service.core.fields import names_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import UPDATED
from coaching_service.training.workouts.blocks.models import BlockContent, BlockFields, DayBlock, StoredBlock
from coaching_service.training.workouts.items.descriptions import COMPUTED_ITEM_FIELDS, ITEM_REFERENCES, complete_block
from coaching_service.training.workouts.items.models import WORKOUT_TYPES, WorkItem
from coaching_service.training.workouts.items.service import RECORDED_FIELDS, list_contacts, summarize_block


class TooManyWorkouts(BadRequest):
    """A day of a client would hold more than 20 workouts."""

    default_code = "TOO_MANY_WORKOUTS"


class TooManyReminders(BadRequest):
    """A client would get more than 10 reminders on a day."""

    default_code = "TOO_MANY_REMINDERS"


# From any interface; sessions that were imported as done, and recurring check-ins, are no workouts here. What an
# archive of a company holds is restored whole.
_MOST_OF_A_DAY = {"workouts": (20, TooManyWorkouts), "reminders": (10, TooManyReminders)}
_MANY = 1_000  # more than a day has lost
ClientDay: TypeAlias = tuple[ObjectId, str]
_Amounts: TypeAlias = Counter[tuple[str, ObjectId | None, str]]  # of workouts and reminders, by client and date
_EVENT_TYPES: dict[declared.Action, EventType] = {
    "created": "workout.created",
    "changed": "workout.updated",
    "deleted": "workout.deleted",
}


def _event(action: declared.Action, known: Mapping[str, Any], _: Collection[str]) -> declared.EventData:
    """Return the event of a client's workout; a change of a program's workout is a change of the program."""
    if known["customerId"] is None:
        return {"type": "program.updated", "data": {"programId": known["programId"]}, "fields": ["wblocks"]}
    return {"type": _EVENT_TYPES[action], "data": {"wblockId": known["_id"], "date": known["date"]}}


async def _check_days(ctx: Context, changes: Sequence[DocumentChange]) -> None:
    """Raise BadRequest if a day of a client has more workouts or reminders than before, and than it may have."""
    growth = _Amounts()
    for change in changes:
        if (client := change.client_id) is None:
            continue
        is_workout = all(change.known[name] in (None, MISSING) for name in ("checkInId", "source"))
        days = change.values.get("date", (change.known["date"], change.known["date"]))
        items = change.values.get("items", ([], []))
        if change.action != "changed":
            before, after = change.before or {}, change.after or {}
            days, items = ((before.get(name), after.get(name)) for name in ("date", "items"))
        for sign, day, some in zip((-1, 1), days, items, strict=True):
            if day is not None:
                growth.update(_amounts_of(client, day, some, sign, is_workout=is_workout))
        if None not in days and days[0] != days[1]:  # the items that it keeps are not known
            growth["reminders", client, str(days[1])] += _MANY
    fuller = {(client, date) for _, client, date in +growth if client is not None}
    _require_room(await count_days(ctx, fuller), growth)


def _amounts_of(
    client: ObjectId | None, day: object, items: Iterable[Mapping[str, Any]], sign: int = 1, *, is_workout: bool
) -> _Amounts:
    """Return what a block adds to a day, or with the `sign` -1 what it takes from it."""
    reminders = sum(item["type"] == "REMINDER" for item in items)
    return Counter(
        {("workouts", client, str(day)): sign * is_workout, ("reminders", client, str(day)): sign * reminders}
    )


def _require_room(counts: _Amounts, growth: _Amounts) -> None:
    """Raise BadRequest if a day that has got more of something has too much of it then, as `counts` say."""
    for what, (most, error) in _MOST_OF_A_DAY.items():
        for place, more in growth.items():
            if place[0] == what and more > 0 and counts[place] > most:
                raise error(f"A day holds at most {most} {what}, and {place[2]} would have {counts[place]}")


async def count_days(ctx: Context, days: Collection[ClientDay], without: Sequence[ObjectId] = ()) -> _Amounts:
    """Return how many workouts and reminders the days of clients have; blocks `without` are left out."""
    counts = _Amounts()
    if not days:
        return counts
    is_reminder = {"$filter": {"input": "$items", "cond": {"$eq": ["$$this.type", "REMINDER"]}}}
    is_workout = {"$eq": [{"$ifNull": ["$checkInId", "$source", None]}, None]}
    counted = {"workouts": {"$sum": {"$toInt": is_workout}}, "reminders": {"$sum": {"$size": is_reminder}}}
    clients, dates = ([*{day[at] for day in days}] for at in (0, 1))
    where: Filter = {"customerId": {"$in": clients}, "date": {"$in": dates}, "_id": {"$nin": list(without)}}
    group = {"$group": {"_id": {"customerId": "$customerId", "date": "$date"}, **counted}}
    for found in await blocks.aggregate(ctx, where, group, hint=BY_DATE):
        for what in counted:
            counts[what, found["_id"]["customerId"], found["_id"]["date"]] += found[what]
    return counts


@dataclass
class DayRoom:
    """What days of clients hold while several blocks are saved, so that only those are refused that are too many."""

    counts: _Amounts

    def take(self, client_id: ObjectId, before: Mapping[str, Any] | None, *after: Mapping[str, Any]) -> None:
        """Count blocks that are created, or one that is changed.

        Raises TooManyWorkouts and TooManyReminders, and counts nothing then.
        """
        growth = _Amounts()
        for sign, block in [*([] if before is None else [(-1, before)]), *((1, each) for each in after)]:
            is_workout = block.get("checkInId") is None and block.get("source") is None
            growth.update(_amounts_of(client_id, block["date"], block["items"], sign, is_workout=is_workout))
        counts = _Amounts(self.counts)
        counts.update(growth)
        _require_room(counts, growth)
        self.counts = counts


def _texts(block: Mapping[str, Any]) -> Iterator[declared.SearchedText]:
    """Yield the name of a workout with those of its tasks and circuits, and what was written in its logs."""
    name, items = block.get("name", ""), block.get("items", ())
    if block.get("checkInId") is None:
        names = [item.get("circuitName") or item.get("taskFields", {}).get("title") for item in items]
        yield declared.SearchedText("workouts", name, "\n".join(filter(None, names)), block.get("date"))
    comments = [block.get("comment")]
    for item in items:
        reasons = [(item.get(each) or {}).get("reason") for each in ("skipped", "swappedFor")]
        comments += [item.get("comment"), item.get("pain"), *reasons]
    if texts := [text for text in comments if text]:
        yield declared.SearchedText("comments", name, "\n".join(texts), block.get("date"), is_named=False)


blocks = Documents[StoredBlock](
    "workoutBlocks",
    (
        declared.Index(("customerId", "date", "position", "_id")),
        declared.Index(("programId", "customerId", "day", "position", "_id")),
        declared.Index(("customerId", "items.doneExerciseIds", "-date", "-_id")),
        declared.Index(("customerId", "items.exerciseIds", "-date", "-_id")),
        declared.Index(("customerId", "items._id")),
        declared.Index(("date", "_id", "customerId"), partial_filter=(("items.isPendingForm", {"$eq": True}),)),
        BY_EXTERNAL_ID,
        declared.Index(("customerId", UPDATED)),
        declared.Index(("source.importId", "_id"), partial_filter=(("source.importId", {"$exists": True}),)),
    ),
    private=("companyId", "position", "done", "clientTexts", "fingerprint", "programCopy", "shiftedDays"),
    client_field="customerId",
    history=declared.History(
        "workout",
        _event,
        ("customerId", "programId", "date", "name", "checkInId", "source"),
        omit=("done",),
        public_names={"position": "order"},
        contact=list_contacts,
        check=_check_days,
    ),
    transfer=declared.Portable(
        StoredBlock,
        declared.TRAINING,
        extra={"position": int},
        computed=(*COMPUTED_ITEM_FIELDS, "programCopy"),
        checks=IDENTITY_CHECKS,
        references={"customerId": "customers", **ITEM_REFERENCES},
        complete=complete_block,
    ),
    searched=declared.Searched(("workouts", "comments"), ("name", "date", "checkInId", "comment", "items"), _texts),
    cross_company_reason="the totals of all companies are checked",
)

BY_DATE = blocks.index_name("customerId", "date", "position", "_id")
BY_PROGRAM = blocks.index_name("programId", "customerId", "day", "position", "_id")
BY_ID_ELSEWHERE = blocks.index_name("externalId")
_BY_UPDATE = blocks.index_name("customerId", UPDATED)


# --- The conditions that the queries over workout blocks share --------------------------------------------------------


IS_REGULAR: Filter = {"checkInId": None}
# Forms, measurements and reminders alone make no workout.
HAS_WORKOUT_ITEM: Filter = {"items.type": {"$in": [*WORKOUT_TYPES]}}
# Sessions that were imported have been done, but never scheduled: compliance ignores them.
IS_WORKOUT: Filter = {"isRest": False, "source": None} | HAS_WORKOUT_ITEM | IS_REGULAR
IS_SESSION: Filter = {"done": {"$ne": None}} | HAS_WORKOUT_ITEM | IS_REGULAR


def of_clients(customer_ids: Collection[ObjectId], first: str, last: str) -> Filter:
    """Return the condition of the blocks of clients from the date `first` to `last`."""
    return {"customerId": {"$in": sorted(customer_ids)}, "date": {"$gte": first, "$lte": last}}


def on_dates(customer_id: ObjectId, dates: Filter, without: Collection[str] = ()) -> Filter:
    """Return the condition of the blocks of a client on dates that satisfy a filter, but not on those in `without`."""
    return {"customerId": customer_id, "date": dates | ({"$nin": sorted(without)} if without else {})}


def between(customer_id: ObjectId, first: str, last: str, without: Collection[str] = ()) -> Filter:
    """Return the condition of the blocks of a client from the date `first` to `last`, but not on those in `without`."""
    return on_dates(customer_id, {"$gte": first, "$lte": last}, without)


async def find_between(
    ctx: Context,
    owner: Filter,
    day_field: str,
    first: str | int,
    last: str | int,
    *,
    updated_since: datetime | None = None,
    added: PipelineStage | None = None,
) -> list[StoredBlock]:
    """Return the owner's blocks whose `day_field` is from `first` to `last`, in order.

    With `updated_since` (UTC), only those changed at this time or later. The documents of the stage `added`, if any,
    are read with the same command, and follow; not in a transaction, where MongoDB refuses `$unionWith`.
    """
    condition = owner | {day_field: {"$gte": first, "$lte": last}}
    hint = None
    if updated_since is not None:
        condition[UPDATED] = {"$gte": updated_since}
        hint = BY_PROGRAM if "programId" in owner else _BY_UPDATE  # a program has few blocks
    sort = (day_field, "position", "_id")
    if added is None:
        return await blocks.find(ctx, condition, sort=sort, hint=hint)
    in_order = {"$sort": dict.fromkeys(sort, 1)}  # the first uses the index; `$unionWith` promises no order
    return await blocks.aggregate(
        ctx, condition, in_order, added, in_order, {"$project": blocks.projection(None)}, hint=hint
    )


def orders_within_days(places: Iterable[tuple[ObjectId, str | int | None]]) -> dict[ObjectId, int]:
    """Return the position of each block among the blocks of its day, from 0; `places` are blocks with their days."""
    counts: Counter[str | int | None] = Counter()
    orders: dict[ObjectId, int] = {}
    for block_id, day in places:
        orders[block_id] = counts[day]
        counts[day] += 1
    return orders


async def find_days(
    ctx: Context, owner: Filter, day_field: str, days: Filter, limit: int = 0, *, hint: str | None = None
) -> list[DayBlock]:
    """Return the owner's blocks whose `day_field` satisfies `days`, in order, without what is planned in them."""
    names = (name for name in names_of(DayBlock) if name != "items")
    fields = (*names, *(f"items.{name}" for name in RECORDED_FIELDS))
    sort = (day_field, "position", "_id")
    return cast(
        "list[DayBlock]",
        await blocks.find(ctx, owner | {day_field: days}, sort=sort, limit=limit, fields=fields, hint=hint),
    )


async def find_by_external_id(ctx: Context, owner: Filter, external_id: str) -> StoredBlock | None:
    """Return the owner's block with this identifier in another system, or None."""
    matching = await blocks.find(ctx, owner | {"externalId": external_id}, limit=1, hint=BY_ID_ELSEWHERE)
    return matching[0] if matching else None


async def find_last_date(ctx: Context, owner: Filter) -> str | None:
    """Return the last date on which the owner has a workout, also one without items yet, or rest.

    Blocks of recurring check-ins, imported sessions, what clients added, and blocks that have only forms, measurements
    and reminders, are left out.
    """
    has_work = {"$or": [{"items": {"$size": 0}}, {"items.type": {"$in": [*WORKOUT_TYPES]}}]}
    condition = owner | {"date": {"$gt": ""}, "checkInId": None, "source": None, "createdBy": None} | has_work
    last = await blocks.find(ctx, condition, sort=("-date",), limit=1, fields=("date",))
    return last[0]["date"] if last else None


async def next_position(ctx: Context, owner: Filter, day_field: str, day: str | int | None) -> int:
    """Return the position after every block of the owner's day, even if the clocks of two processes differ."""
    position = {"$project": {"position": 1}}
    last = await blocks.aggregate(ctx, owner | {day_field: day}, {"$sort": {"position": -1}}, {"$limit": 1}, position)
    return next_positions(1, last[0]["position"] if last else 0)[0]


async def create_many(ctx: Context, new_blocks: Sequence[BlockContent], *, after: int = 0) -> list[StoredBlock]:
    """Store new blocks; blocks of one day are in the order given, after the position `after`."""
    return await blocks.insert_many(ctx, with_positions(new_blocks, after))


async def preview_many(
    ctx: Context, new_blocks: Sequence[BlockContent], removed: Sequence[ObjectId] = ()
) -> list[StoredBlock]:
    """Return what `create_many` would return, and store nothing; `removed` would not be there.

    Raises ExternalIdTaken as it does, and BadRequest for a day with too many workouts or reminders.
    """
    if of_client := [block for block in new_blocks if block["customerId"] is not None]:
        client_id = cast("ObjectId", of_client[0]["customerId"])  # they are all on one schedule
        days = {(client_id, str(block["date"])) for block in of_client}
        DayRoom(await count_days(ctx, days, removed)).take(client_id, None, *of_client)
    ids = [external_id for block in new_blocks if (external_id := block.get("externalId"))]
    where: Filter = {"externalId": {"$in": ids}}
    held = await blocks.find(ctx, where, fields=("externalId",), hint=BY_ID_ELSEWHERE) if ids else []
    holders = {str(block["externalId"]): block["_id"] for block in held}
    for number, external_id in enumerate(ids):
        if external_id in holders or external_id in ids[:number]:
            raise external_id_taken(ctx, holders.get(external_id))
    return [blocks.without_private(blocks.with_metadata(ctx, each)) for each in with_positions(new_blocks, 0)]


def next_positions(count: int, after: int) -> list[int]:
    """Return the positions of blocks that are created now, in order: after the position `after`, and older ones."""
    first = max(time.time_ns() // 1_000, after + 1)  # microseconds
    return list(range(first, first + count))


def with_positions(new_blocks: Sequence[BlockContent], after: int) -> list[dict[str, Any]]:
    """Return new blocks with their totals, and their positions after the position `after`, in order."""
    positions = next_positions(len(new_blocks), after)
    return [
        {**block, "done": summarize_block(block["items"]), "position": position}
        for block, position in zip(new_blocks, positions, strict=True)
    ]


async def update(
    ctx: Context, owner: Filter, block_id: ObjectId, fields: BlockFields, version: int | None
) -> StoredBlock | None:
    """Set fields of a block. Returns None if there is no such block; raises Conflict if it has another version.

    A new date is the coach's, unless `fields` have the `plannedDate` of a block that its client moves.
    """
    change: dict[str, Any] = {"$set": dict(fields)}
    if "date" in fields and "plannedDate" not in fields:
        change["$unset"] = {"plannedDate": ""}
    return await blocks.update(ctx, owner | {"_id": block_id}, change, version=version)


def item_fields(items: Sequence[WorkItem]) -> BlockFields:
    """Return the fields to set in place of the items of a block."""
    return {"items": list(items), "done": summarize_block(items)}


async def set_items_each(ctx: Context, changes: Sequence[tuple[StoredBlock, Sequence[WorkItem]]]) -> list[StoredBlock]:
    """Replace the items of blocks, and return the blocks afterwards. Raises Conflict if one has changed since."""
    return await set_fields_each(ctx, [(block, item_fields(items)) for block, items in changes])


async def set_fields_each(ctx: Context, changes: Sequence[tuple[StoredBlock, BlockFields]]) -> list[StoredBlock]:
    """Set fields of blocks, and return the blocks afterwards. Raises Conflict if one has changed since it was read.

    Blocks are read with the private fields among those to set.
    """
    return [blocks.without_private(block) for block in await blocks.rewrite_each(ctx, changes)]


async def shift_dates(ctx: Context, owner: Filter, ids: Sequence[ObjectId], days: int) -> int:
    """Move blocks by a number of days, keeping their order within a day. Returns how many were moved.

    Copies of blocks of a program remember in `shiftedDays` how far they are from its date then.
    """
    date = {"$dateFromString": {"dateString": "$date", "format": "%Y-%m-%d"}}
    shifted = {"$dateAdd": {"startDate": date, "unit": "day", "amount": days}}
    planned = {"$dateFromString": {"dateString": {"$ifNull": ["$plannedDate", "$date"]}, "format": "%Y-%m-%d"}}
    further = {"$dateDiff": {"startDate": planned, "endDate": shifted, "unit": "day"}}
    is_copy = {"$gt": ["$programBlockId", None]}
    fields = {
        "date": {"$dateToString": {"format": "%Y-%m-%d", "date": shifted}},
        "plannedDate": "$$REMOVE",
        "shiftedDays": {"$cond": [is_copy, {"$add": [{"$ifNull": ["$shiftedDays", 0]}, further]}, "$$REMOVE"]},
    }
    return await blocks.update_each(ctx, owner | {"_id": {"$in": list(ids)}}, fields)
