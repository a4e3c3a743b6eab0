"""Workout blocks on the schedule of a client or a program."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest
from typing import Any, ClassVar, Literal, TypeVar, cast

import orjson

from coaching_service.core.database.context import Context, gather_reads, transactional, version_conflict
from coaching_service.core.database.documents import Filter, PipelineStage
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import Conflict, NotFound, invalid_field, require_found
from coaching_service.core.external_identity import MetadataFilter, present_identity, stored_fields, stored_identity
from coaching_service.core.fields import labels_of, names_of, nulls_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate
from coaching_service.library.exercises.models import ASSISTANCE
from coaching_service.people.customers import service as customers
from coaching_service.training import body_weights
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks.models import Block, StoredBlock
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.service import (
    MAX_ITEMS,
    PLANNED_FIELDS,
    create_item,
    derive_again,
    has_added_loads,
    is_recorded,
    load_exercises,
    load_references,
    round_total,
    volume_load,
    with_body_weight,
    working_sets,
)
from coaching_service.training.workouts.store import BY_DATE, blocks

# --- Computing again what is stored of logs, after a change of what the figures mean ----------------------------------


_BATCH = 100
_BY_ITEM = blocks.index_name("customerId", "items._id")


async def recompute_logs(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId | None = None) -> bool:
    """Compute the figures of a client's sessions (with an exercise) again; returns whether there are any.

    A block that is changed at the same time is read again: nothing is written that is older than its items.
    """
    condition: Filter = {"customerId": customer_id, "date": {"$gt": ""}} | store.IS_SESSION
    if exercise_id is not None:
        condition |= {"items.doneExerciseIds": exercise_id}
    return await _recompute_all(ctx, customer_id, condition, BY_DATE)


async def recompute_added_loads(ctx: Context, customer_id: ObjectId, first: str, last: str) -> bool:
    """Compute the figures of sessions with loads that are added to the body's again, in the caller's transaction.

    Those from the date `first` to `last`; returns whether there are any.
    """
    condition = store.between(customer_id, first, last) | {"items.addedExerciseIds.0": {"$exists": True}}
    return await _recompute_all(ctx, customer_id, condition, BY_DATE)


async def recompute_items(ctx: Context, customer_id: ObjectId, item_ids: Sequence[ObjectId]) -> None:
    """Compute the figures of a client's blocks that have some items again, in the caller's transaction."""
    await _recompute_all(ctx, customer_id, {"customerId": customer_id, "items._id": {"$in": [*item_ids]}}, _BY_ITEM)


async def _recompute_all(ctx: Context, customer_id: ObjectId, condition: Filter, hint: str) -> bool:
    """Compute the figures of the blocks that meet a condition again; returns whether there are any."""
    sessions = await blocks.find(ctx, condition, fields=("_id",), hint=hint)
    ids = [block["_id"] for block in sessions]
    for start in range(0, len(ids), _BATCH):
        remaining: Sequence[ObjectId] = ids[start : start + _BATCH]
        while remaining:
            remaining = await _recompute(ctx, customer_id, remaining)
    return bool(ids)


async def _recompute(ctx: Context, customer_id: ObjectId, ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Compute the figures of some blocks again; returns blocks that have changed in the meantime."""
    condition: Filter = {"customerId": customer_id, "_id": {"$in": list(ids)}}
    stored = await blocks.find(ctx, condition, including=("done",), hint="_id_")
    known = await load_exercises(ctx, [item for block in stored for item in block["items"]])
    derived = {block["_id"]: [derive_again(item, known) for item in block["items"]] for block in stored}
    weighed = {str(each["date"]) for each in stored if any(map(has_added_loads, derived[each["_id"]]))}
    weights = await body_weights.find_on_dates(ctx, customer_id, weighed, ctx.caller.company.load_unit)
    changed: list[ObjectId] = []
    for block in stored:
        weight = weights.get(str(block["date"]))
        fields = store.item_fields([with_body_weight(item, weight) for item in derived[block["_id"]]])
        if (block["items"], cast("dict[str, Any]", block).get("done")) != (fields["items"], fields["done"]):
            where = {"customerId": customer_id, "_id": block["_id"], "version": block["version"]}
            if not await blocks.set_derived(ctx, where, {"$set": dict(fields)}):
                changed.append(block["_id"])
    return changed


# --- Owners of a schedule: the same operations serve the calendar of a client (by date) and a program (by day) --------


DayField = Literal["date", "day"]
ReadBlocks = Callable[[PipelineStage | None], Awaitable[list[StoredBlock]]]


class ScheduleOwner(ABC):
    """What the block operations need to know about the owner of a schedule.

    `day_field` is the field of a block that has its date or day.
    """

    day_field: ClassVar[DayField] = "day"

    @property
    def client_id(self) -> ObjectId | None:
        """The client whose calendar it is; None for a program."""
        return None

    @property
    @abstractmethod
    def block_filter(self) -> Filter:
        """The filter that finds the owner's blocks; also the owner's fields in a new block."""

    @abstractmethod
    async def require_access(self, ctx: Context) -> None:
        """Raise NotFound or Forbidden if the caller may not access this owner."""

    async def authorize_and_lock(self, ctx: Context) -> None:
        """Do what `require_access` does, as the first operation of a transaction that changes the schedule."""
        await self.require_access(ctx)

    async def require_open(self, ctx: Context) -> None:  # noqa: B027  # only clients are closed
        """Raise Conflict (CUSTOMER_ARCHIVED) if nothing may be planned for this owner."""

    async def read_accessible(self, ctx: Context, read: ReadBlocks) -> list[StoredBlock]:
        """Return the blocks that `read` reads, if the caller may access this owner. Raises NotFound or Forbidden.

        `read` receives a stage with which the same command reads the owner, or None.
        """
        blocks: list[StoredBlock]
        _, blocks = await gather_reads(ctx, self.require_access(ctx), read(None))
        return blocks

    def has(self, block: Mapping[str, Any]) -> bool:
        """Return whether a block is one of the owner's."""
        return all(block[name] == value for name, value in self.block_filter.items())

    async def get_block(self, ctx: Context, block_id: ObjectId) -> StoredBlock:
        """Return a block of the owner, whose access has been checked. Raises NotFound."""
        return require_found(await self.find_block(ctx, block_id), "workout block")

    async def find_block(self, ctx: Context, block_id: ObjectId) -> StoredBlock | None:
        """Return a block of the owner, whose access has been checked, or None."""
        return await store.blocks.find_one(ctx, self.block_filter | {"_id": block_id})

    async def has_item(self, ctx: Context, item_id: ObjectId) -> bool:
        """Return whether any of the owner's blocks has an item."""
        return await store.blocks.find_one(ctx, self.block_filter | {"items._id": item_id}, ("_id",)) is not None

    async def push_item(self, ctx: Context, block_id: ObjectId, item: WorkItem) -> StoredBlock | None:
        """Append a new item, with nothing done, to a block that has room for it and is not of a check-in.

        Returns only `version`, `date`, `createdBy`, and `_id` and `isCompleted` of each item of the block, or None if
        there is no such block with room.
        """
        has_room = {f"items.{MAX_ITEMS - 1}": {"$exists": False}, "checkInId": None}
        fields = ("version", "date", "createdBy", "items._id", "items.isCompleted")
        where = self.block_filter | {"_id": block_id} | has_room
        return await store.blocks.update(ctx, where, {"$push": {"items": item}}, fields=fields)

    async def set_items(self, ctx: Context, block: StoredBlock, items: Sequence[WorkItem]) -> StoredBlock:
        """Replace the items of a block, and return it. Raises Conflict if it has changed since it was read."""
        [changed] = await store.set_items_each(ctx, [(block, items)])
        return changed

    @abstractmethod
    async def after_schedule_change(self, ctx: Context, *, added_until: str | None = None) -> None:
        """Update what depends on the schedule, in the transaction that changed it.

        `added_until` is the last date of new blocks, if nothing but adding them changed the schedule.
        """

    async def after_completed_work_change(  # noqa: B027  # only clients complete items
        self, ctx: Context, items: Sequence[WorkItem], block: StoredBlock | None = None
    ) -> None:
        """Update what depends on completed work, in the transaction that changed it.

        `items` were added, removed or changed (before and after), or got another date; `block` holds all of them now.
        """


@dataclass(frozen=True)
class ClientCalendar(ScheduleOwner):
    """The calendar of a client."""

    day_field: ClassVar[DayField] = "date"
    customer_id: ObjectId

    @property
    def client_id(self) -> ObjectId:
        """The client."""
        return self.customer_id

    @property
    def block_filter(self) -> Filter:
        """The filter that finds the client's blocks."""
        return {"customerId": self.customer_id}

    async def require_access(self, ctx: Context) -> None:
        """Raise NotFound or Forbidden if the caller may not access the client."""
        await customers.get_visible(ctx, self.customer_id)

    async def authorize_and_lock(self, ctx: Context) -> None:
        """Lock the client. Raises NotFound or Forbidden if the caller may not access the client."""
        await customers.authorize_and_lock(ctx, self.customer_id)

    async def require_open(self, ctx: Context) -> None:
        """Raise Conflict (CUSTOMER_ARCHIVED) if the client is archived."""
        if await customers.is_archived(ctx, self.customer_id):
            raise Conflict(
                "The client is archived: restore the client before you plan workouts", code="CUSTOMER_ARCHIVED"
            )

    async def read_accessible(self, ctx: Context, read: ReadBlocks) -> list[StoredBlock]:
        """Return the blocks that `read` reads together with the client. Raises NotFound or Forbidden."""
        if ctx.session is not None:  # a transaction has no `$unionWith`
            return await super().read_accessible(ctx, read)
        return customers.take_visible(ctx, await read(customers.add_visible(ctx, self.customer_id)))

    async def after_schedule_change(self, ctx: Context, *, added_until: str | None = None) -> None:
        """Store the date of the client's last block, and publish ScheduleChanged."""
        if added_until is not None:
            await customers.extend_last_workout_date(ctx, self.customer_id, added_until)
        else:
            last_date = await store.find_last_date(ctx, self.block_filter)
            await customers.set_last_workout_date(ctx, self.customer_id, last_date)
        await ctx.publish(block_models.ScheduleChanged(self.customer_id))

    async def after_completed_work_change(
        self, ctx: Context, items: Sequence[WorkItem], block: StoredBlock | None = None
    ) -> None:
        """Publish CompletedWorkChanged for the items with completed exercises, one change of a client at a time."""
        if changed := [item for item in items if item["doneExerciseIds"]]:
            await customers.lock_and_mark_figures(ctx, self.customer_id)
            if any(map(has_added_loads, changed)):  # they count with the body weight of the date
                await recompute_items(ctx, self.customer_id, [item["_id"] for item in changed])
                block = None
            await ctx.publish(block_models.CompletedWorkChanged(self.customer_id, changed, block))


def block_not_found() -> NotFound:
    """Return the error for a block that the owner does not have."""
    return NotFound("workout block")


# --- Stored blocks as they are read -----------------------------------------------------------------------------------


_NULLS = nulls_of(block_models.WorkoutBlock)  # of fields that older blocks do not have
_LABELS = labels_of(block_models.BlockSettings)


def is_completed(block_items: Sequence[WorkItem]) -> bool:
    """Return whether a block has items and all of them are completed."""
    return bool(block_items) and all(item["isCompleted"] for item in block_items)


def describe_settings(block: Mapping[str, Any], write: Callable[[str], str] = str) -> list[str]:
    """Return what is set for a block or template in words, such as `rest day`; `write` writes text of a person."""
    words = []
    for name in names_of(block_models.BlockSettings):
        label, value = _LABELS.get(name, name).lower(), block.get(name)
        if value not in (None, False):
            words.append(label if value is True else f"{label} {write(value) if isinstance(value, str) else value}")
    return words


def presented_volume(items: Iterable[WorkItem]) -> float:
    """Return the volume load of items as they are read, without loads that are assistance."""
    total = 0.0
    for item in items:
        swap = item.get("swappedFor")
        exercises = [swap["exercise"]] if swap else []
        if item["type"] == "CIRCUIT":
            exercises += [entry["exercise"] for entry in item["circuitExercises"]]
        elif item["type"] == "EXERCISE":
            exercises.append(item["exercise"])
        assisted = {exercise["_id"] for exercise in exercises if exercise.get("loadType") == ASSISTANCE}
        total += sum(volume_load(done) for exercise_id, done in working_sets(item) if exercise_id not in assisted)
    return round_total(total)


async def present_block(ctx: Context, owner: ScheduleOwner, block: StoredBlock | None) -> Block:
    """Return a stored block as it is read. Raises NotFound if it is None."""
    block = require_found(block, "workout block")
    siblings: list[ObjectId] = []
    if (day := block[owner.day_field]) is not None:
        where = owner.block_filter | {owner.day_field: day}
        of_day = await store.blocks.find(ctx, where, sort=("position", "_id"), fields=("_id",))
        siblings = [each["_id"] for each in of_day]
    order = siblings.index(block["_id"]) if block["_id"] in siblings else len(siblings)
    return (await present_blocks(ctx, [block], [order]))[0]


async def present_blocks(ctx: Context, blocks: Sequence[StoredBlock], orders: Sequence[int]) -> list[Block]:
    """Return stored blocks of one schedule as they are read, each with its position among the blocks of its day."""
    customer_id = blocks[0]["customerId"] if blocks else None  # they are all on one schedule
    all_items = [item for block in blocks for item in block["items"]]
    references = await load_references(ctx, all_items, customer_id, dates=[block["date"] for block in blocks])
    return [
        {
            **_NULLS,
            **block,
            **present_identity(block),
            "order": order,
            "isCompleted": is_completed(block["items"]),
            "items": items.present_items(block["items"], block["version"], references, ctx.caller, block["date"]),
        }
        for block, order in zip(blocks, orders, strict=True)
    ]


# --- Program copies ---------------------------------------------------------------------------------------------------
# What a client's block remembers of the program's block that it is a copy of: enough to see whether it was changed.


def summarize_plan(block: Mapping[str, Any]) -> str:
    """Return a short text that is the same for blocks in which the same is planned, whatever was done of it.

    A field without a value counts like one that is absent, so that a field added later changes no summary.
    """
    items = [_plan_of_item(item) for item in block["items"]]
    plan = {**{name: block.get(name) for name in names_of(block_models.PlannedBlock)}, "items": items}
    return hashlib.sha256(_as_text(plan)).hexdigest()[:24]


def summarize_copy(block: Mapping[str, Any], plan: str | None = None) -> str:
    """Return the program's date and the summary of the plan of a client's block, to be stored with it (`programCopy`).

    `plan`: the summary of its plan, if it is known.
    """
    return f"{find_program_date(block)} {plan or summarize_plan(block)}"


def find_program_date(block: Mapping[str, Any]) -> str:
    """Return the date of a client's block without moves of the client and shifts of the schedule.

    It is the date that the program gave it, unless a coach has moved it by hand.
    """
    planned = date.fromisoformat(block.get("plannedDate") or block["date"]).toordinal()
    day = planned - block.get("shiftedDays", 0)
    return str(date.fromordinal(min(max(day, date.min.toordinal()), date.max.toordinal())))  # an import may have any


def renew_items(copied: Sequence[WorkItem], source: Sequence[WorkItem]) -> list[WorkItem]:
    """Return items with nothing done and the plan of `source`: those that `copied` has too, or a changed one, stay.

    So a device that logs sets of an item without a connection still finds it.
    """
    before, after = ([_as_text(_plan_of_item(item)) for item in items] for items in (copied, source))
    renewed: list[WorkItem] = []
    for tag, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            renewed += copied[first:last]
        elif tag != "delete":
            pairs = zip_longest(copied[first:last], source[start:end])
            for old, new in pairs:
                if new is not None:
                    renewed.append(create_item(new))
                    if old is not None and old["type"] == new["type"]:
                        renewed[-1] |= {"_id": old["_id"], "createdAt": old["createdAt"]}
    return renewed


def _plan_of_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item.get(name) for name in ("type", *PLANNED_FIELDS[item["type"]])}


def _as_text(plan: Mapping[str, Any]) -> bytes:
    return _comparable_text(orjson.dumps(plan, default=str))


@lru_cache(4096)  # copies of a program for many clients have the same texts
def _comparable_text(text: bytes) -> bytes:
    return orjson.dumps(_comparable(orjson.loads(text)), option=orjson.OPT_SORT_KEYS)


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        fields = ((name, _comparable(each)) for name, each in value.items())
        return {name: each for name, each in fields if each is not None and each is not False and each not in ("", [])}
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


# --- Which blocks the operations on a schedule leave alone: with work that has been done, or of check-ins -------------


B = TypeVar("B", bound=Mapping[str, Any])


def has_nothing_done(block: Mapping[str, Any]) -> bool:
    """Return whether nothing was logged of a block: neither of the session nor of any of its items.

    An empty comment does not count as a log.
    """
    session = (block.get(name) for name in block_models.SESSION_FIELDS)
    return all(value in (None, "") for value in session) and not any(is_recorded(item) for item in block["items"])


def regular_blocks(blocks: Iterable[B]) -> list[B]:
    """Return the blocks that a coach scheduled, without blocks of recurring check-ins (`checkInId`).

    Copying, clearing, shifting, adjusting and assigning ignore the blocks of check-ins.
    """
    return [block for block in blocks if block.get("checkInId") is None]


@on_worker_thread
async def list_blocks(
    ctx: Context,
    owner: ScheduleOwner,
    first: str | int,
    last: str | int,
    *,
    external_id: str | None = None,
    updated_since: datetime | None = None,
    metadata: Mapping[str, str] | None = None,
) -> list[Block]:
    """Return the owner's blocks from `first` to `last` (dates or days, both included), in order, with their items.

    `external_id`: only the one with this identifier in another system; `updated_since` (UTC): only those created or
    changed at this time or later; `metadata`: only those with these texts. Raises NotFound or Forbidden for the owner.
    """
    if external_id is not None:
        await owner.require_access(ctx)
        block = await store.find_by_external_id(ctx, owner.block_filter, external_id)
        if block is None or not first <= cast("Any", block[owner.day_field]) <= last:
            return []
        if updated_since is not None and block["updatedAt"] < updated_since:
            return []
        if not (metadata or {}).items() <= present_identity(block)["metadata"].items():
            return []
        return [await present_block(ctx, owner, block)]

    def read(added: PipelineStage | None) -> Awaitable[list[StoredBlock]]:
        where, day = owner.block_filter | MetadataFilter.condition(metadata or {}), owner.day_field
        return store.find_between(ctx, where, day, first, last, updated_since=updated_since, added=added)

    blocks = await owner.read_accessible(ctx, read)
    if updated_since is None and not metadata:
        orders = store.orders_within_days((block["_id"], block[owner.day_field]) for block in blocks)
    else:
        days = list({block[owner.day_field] for block in blocks})
        in_order = (owner.day_field, "position", "_id")
        where = owner.block_filter | {owner.day_field: {"$in": days}}
        of_days = await store.blocks.find(ctx, where, sort=in_order, fields=(owner.day_field,)) if days else []
        orders = store.orders_within_days((block["_id"], block[owner.day_field]) for block in of_days)
    # A block that has just been deleted or moved has none.
    return await present_blocks(ctx, blocks, [orders.get(block["_id"], 0) for block in blocks])


async def find_of_clients(
    ctx: Context,
    customer_ids: Sequence[ObjectId],
    dates: tuple[str, str],
    *,
    exercise_ids: Collection[ObjectId] | None,
    words: Sequence[str],
    is_done: bool | None,
    skip: int,
    limit: int,
) -> list[Block]:
    """Return at most `limit` blocks of clients in a range of dates, by date, after the first `skip`.

    Only those with one of the exercises (None: any) and with all words in names or notes; `is_done`: with it done, or
    not done. Access to the clients is not checked.
    """
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "date": {"$gte": dates[0], "$lte": dates[1]}}
    if exercise_ids is not None:
        where["items.exerciseIds"] = {"$in": list(exercise_ids)}
        if is_done is not None:
            has_done = {"items.doneExerciseIds": {"$in": list(exercise_ids)}}
            where |= has_done if is_done else {"$nor": [has_done]}
    elif is_done is not None:
        where["items.isCompleted"] = True if is_done else {"$ne": True}
    texts = ("name", "items.exerciseInstructions", "items.taskFields.title", "items.circuitName")
    where |= (
        {"$and": [{"$or": [{text: {"$regex": re.escape(word), "$options": "i"}} for text in texts]} for word in words]}
        if words
        else {}
    )
    stored = await store.blocks.find(ctx, where, sort=("date", "_id"), limit=skip + limit, hint=store.BY_DATE)
    presented: dict[ObjectId, Block] = {}
    for customer_id in {block["customerId"] for block in stored[skip:]}:
        of_client = [block for block in stored[skip:] if block["customerId"] == customer_id]
        presented |= {each["_id"]: each for each in await present_blocks(ctx, of_client, [0] * len(of_client))}
    return [presented[block["_id"]] for block in stored[skip:]]


async def get(ctx: Context, owner: ScheduleOwner, block_id: ObjectId) -> Block:
    """Return a block. Raises NotFound, Forbidden."""
    return await present_block(ctx, owner, await _read_accessible(ctx, owner, block_id))


async def get_named(
    ctx: Context, owner: ScheduleOwner, block_id: ObjectId | None, external_id: str | None
) -> StoredBlock:
    """Return a block of an owner whose access has been checked by its identifier, here or in another system.

    Raises NotFound.
    """
    if block_id is not None:
        return await owner.get_block(ctx, block_id)
    found = await store.find_by_external_id(ctx, owner.block_filter, external_id or "")
    return require_found(found, "workout block")


async def get_plan(ctx: Context, owner: ScheduleOwner, block_id: ObjectId) -> block_models.BlockPlan:
    """Return what a block plans, as new items with nothing done. Raises NotFound, Forbidden."""
    block = await _read_accessible(ctx, owner, block_id)
    return block_models.plan_of(block, [items.create_item(item) for item in block["items"]])


async def _read_accessible(ctx: Context, owner: ScheduleOwner, block_id: ObjectId) -> StoredBlock:
    block: StoredBlock | None
    _, block = await gather_reads(ctx, owner.require_access(ctx), owner.find_block(ctx, block_id))
    if block is None:
        raise block_not_found()
    return block


async def get_date(ctx: Context, owner: ScheduleOwner, block_id: ObjectId) -> str | None:
    """Return the date of a block of an owner whose access has been checked; None without one. Raises NotFound."""
    block = await store.blocks.find_one(ctx, owner.block_filter | {"_id": block_id}, ("date",))
    return require_found(block, "workout block")["date"]


async def list_stored_blocks(ctx: Context, owner: ScheduleOwner) -> list[StoredBlock]:
    """Return every block of an owner whose access has been checked, as stored, in order."""
    return await store.blocks.find(ctx, owner.block_filter, sort=(owner.day_field, "position", "_id"))


async def has_program_block(ctx: Context, customer_id: ObjectId, program_id: ObjectId, first: str, last: str) -> bool:
    """Return whether a client whose access has been checked has a block of a program from `first` to `last`."""
    where: Filter = {"programId": program_id, "customerId": customer_id, "date": {"$gte": first, "$lte": last}}
    return bool(await store.blocks.find(ctx, where, limit=1, fields=("_id",)))


@transactional
async def update(ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, body: block_models.BlockChange) -> Block:
    """Change a workout block.

    On another day it goes after the blocks that are already there, or to the position `order`.
    """
    # The day that it is on already is not a change: the block keeps its position, and the date that it was planned on.
    await owner.require_access(ctx)
    sent = {name: value for name, value in body.items() if name not in ("order", "version")}
    if (day := body.get(owner.day_field)) is not None:
        where = owner.block_filter | {"_id": wblock_id, owner.day_field: day}
        if await store.blocks.find_one(ctx, where, ("_id",)) is not None:
            del sent[owner.day_field]
    fields = cast("block_models.BlockFields", stored_fields(sent))
    version = body.get("version")
    if fields:
        block = await store_change(ctx, owner, wblock_id, fields, version)
    else:
        stored = await owner.get_block(ctx, wblock_id)
        if version not in (None, stored["version"]):
            raise version_conflict()
        block = await present_block(ctx, owner, stored)
    if "order" not in body:
        return block
    placed, order = await owner.get_block(ctx, wblock_id), body["order"]
    of_day = await store.find_days(ctx, owner.block_filter, owner.day_field, {"$eq": placed[owner.day_field]})
    others = [each for each in of_day if each["_id"] != wblock_id]
    moved = next(each for each in of_day if each["_id"] == wblock_id)
    previous = -1
    for position, each in zip(
        (each["position"] for each in of_day), [*others[:order], moved, *others[order:]], strict=True
    ):
        previous = max(position, previous + 1)  # two blocks may have the same position
        if each["position"] != previous:
            await store.update(ctx, owner.block_filter, each["_id"], {"position": previous}, None)
    return await get(ctx, owner, wblock_id)


async def store_change(
    ctx: Context, owner: ScheduleOwner, block_id: ObjectId, fields: block_models.BlockFields, version: int | None
) -> Block:
    """Set fields of a block, and what follows from them, in the caller's transaction.

    The owner's access has been checked. Raises NotFound, and Conflict if the block has changed since `version`.
    """
    if (day := fields.get(owner.day_field)) is not None:
        fields["position"] = await store.next_position(ctx, owner.block_filter, owner.day_field, day)
    block = require_found(await store.update(ctx, owner.block_filter, block_id, fields, version), "workout block")
    if fields.keys() & {owner.day_field, "isRest", "items"}:
        await owner.after_schedule_change(ctx)
    if day is not None:
        await owner.after_completed_work_change(ctx, block["items"])
        await publish_rescheduled_items(ctx, block, block["items"])
    return await present_block(ctx, owner, block)


async def publish_rescheduled_items(ctx: Context, block: StoredBlock, moved: Sequence[WorkItem]) -> None:
    """Publish that the logged ones of `moved` items are now on the date of `block`."""
    recorded = [item["_id"] for item in moved if items.is_recorded(item)]
    if recorded and block["customerId"] is not None and block["date"] is not None:
        await ctx.publish(block_models.RecordedItemsRescheduled(block["customerId"], recorded, block["date"]))


@transactional
async def delete(ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId) -> None:
    """Delete a workout block with its items."""
    await owner.require_access(ctx)
    block = require_found(await store.blocks.delete(ctx, owner.block_filter | {"_id": wblock_id}), "workout block")
    await owner.after_schedule_change(ctx)
    await owner.after_completed_work_change(ctx, block["items"])


async def delete_all(ctx: Context, owner: ScheduleOwner) -> None:
    """Delete every block of an owner whose access has been checked."""
    await store.blocks.delete_many(ctx, owner.block_filter)


async def count_program_workout_days(ctx: Context, program_ids: Sequence[ObjectId]) -> dict[ObjectId, int]:
    """Return on how many days each program has a workout; 0 is left out."""
    if not program_ids:
        return {}
    where = {"programId": {"$in": list(program_ids)}, "customerId": None, "isRest": False} | store.HAS_WORKOUT_ITEM
    days = {"$group": {"_id": {"program": "$programId", "day": "$day"}}}
    counts = {"$group": {"_id": "$_id.program", "days": {"$sum": 1}}}
    return {program["_id"]: program["days"] for program in await store.blocks.aggregate(ctx, where, days, counts)}


@transactional
async def shift(ctx: Context, owner: ClientCalendar, first: str, days: int) -> int:
    """Move every block without a log from the date `first` on by a number of days, negative for earlier.

    Returns how many were moved. Raises NotFound, Forbidden, and InvalidFields if a date would leave the calendar.
    """
    await owner.require_access(ctx)
    moved, _ = await shift_accessible(ctx, owner, first, days)
    return len(moved)


@transactional
async def shift_accessible(
    ctx: Context, owner: ClientCalendar, first: str, days: int, *, dry_run: bool = False
) -> tuple[list[block_models.DayBlock], list[block_models.DayBlock]]:
    """Move the blocks of an owner whose access has been checked; see `shift`.

    Returns the blocks that move, as they were, and those that stay because something of them is done; none for 0 days.
    """
    if days == 0:
        return [], []
    upcoming = regular_blocks(await store.find_days(ctx, owner.block_filter, owner.day_field, {"$gte": first}))
    moved = [block for block in upcoming if has_nothing_done(block)]
    for block in moved:
        shift_date(str(block["date"]), days, "days")
    if not dry_run:
        await move_all(ctx, owner, moved, first, days)
    return moved, [block for block in upcoming if not has_nothing_done(block)]


async def move_all(
    ctx: Context, owner: ClientCalendar, blocks: Sequence[block_models.DayBlock | StoredBlock], first: str, days: int
) -> None:
    """Move the blocks with nothing done from the date `first` on, in the caller's transaction."""
    await store.shift_dates(ctx, owner.block_filter, [block["_id"] for block in blocks], days)
    if assignment_ids := {each for block in blocks if (each := block.get("assignmentId")) is not None}:
        await ctx.publish(block_models.ScheduleShifted(owner.customer_id, sorted(assignment_ids), first, days))
    await owner.after_schedule_change(ctx)


def shift_date(day: str, days: int, field: str) -> str:
    """Return the date that is `days` later. Raises InvalidFields, naming `field`, if it leaves the calendar."""
    first, last = CalendarDate.bounds()
    with suppress(OverflowError):
        if first <= (moved := str(date.fromisoformat(day) + timedelta(days=days))) <= last:
            return moved
    message = f"leaves the calendar, which is from {first} to {last}: {day} moved by {days} days"
    raise invalid_field(field, message, code="DATE_OUT_OF_RANGE")


def new_block(owner: ScheduleOwner, plan: block_models.BlockPlan) -> block_models.BlockContent:
    """Return a new block; one assigned from a program has both `date` and `day`."""
    content = {
        "customerId": None,
        "programId": plan.get("programId"),
        "assignmentId": plan.get("assignmentId"),
        **take(block_models.PlannedBlock, plan),
        "date": plan.get("date"),
        "day": plan.get("day"),
        "startTime": plan.get("startTime"),
        **block_models.no_session(),
        "items": [items.create_item(item) for item in plan["items"]],
        "checkInId": plan.get("checkInId"),
        "createdBy": plan.get("createdBy"),
        "source": None,
    }
    if plan.get("programBlockId") is not None:
        content |= take(block_models.ProgramCopy, plan)
        content["programCopy"] = summarize_copy(content)
    # The filter has the identifier of the owner.
    return cast("block_models.BlockContent", {**content, **stored_identity(plan), **owner.block_filter})
