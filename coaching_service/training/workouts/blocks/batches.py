"""Many blocks of one schedule, read and written together.

Every operation on a schedule first decides which blocks to create, change and remove; a preview ends there.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict, cast

from coaching_service.core.changes.log import DocumentsWritten
from coaching_service.core.changes.undo import DocumentsRestored, RestoredDocument
from coaching_service.core.database.checks import check_of
from coaching_service.core.database.context import (
    Context,
    Services,
    external_id_taken,
    in_transaction,
    transactional,
    version_conflict,
)
from coaching_service.core.database.documents import Filter
from coaching_service.core.database.recording import ChangeRecorder, DocumentChange
from coaching_service.core.errors import Conflict
from coaching_service.core.external_identity import find_differences, stored_fields
from coaching_service.core.fields import names_of
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.independent_entries import (
    BatchResult,
    InvalidEntry,
    Saved,
    repetitions,
    result_of,
    save_each,
)
from coaching_service.core.mcp import CopiedDays, Source
from coaching_service.library.exercises import service as exercises
from coaching_service.people import searched_texts
from coaching_service.people.activity import service as activity
from coaching_service.people.activity.models import ActivityType
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service
from coaching_service.training.workouts.blocks.models import BlockPlan, DayBlock, NewBlock, StoredBlock
from coaching_service.training.workouts.blocks.service import ClientCalendar, ScheduleOwner, is_completed
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import WORKOUT_TYPES, WorkItem
from coaching_service.training.workouts.items.service import create_items, match_items, resolve_items, summarize_block
from coaching_service.training.workouts.sets import CustomerSet
from coaching_service.training.workouts.store import blocks

Day = str | int


@dataclass(frozen=True)
class Batch:
    """What to do to a schedule: blocks to create, blocks with their new items, and identifiers of blocks to remove.

    `rewritten`: blocks, read with their `position`, and their new fields. On another day they follow its blocks.
    `is_copy`: the exercises of the new blocks were chosen before, so that they do not count as used again.
    """

    created: Sequence[BlockPlan] = ()
    changed: Sequence[tuple[StoredBlock, Sequence[WorkItem]]] = ()
    removed: Sequence[ObjectId] = ()
    rewritten: Sequence[tuple[StoredBlock, block_models.BlockFields]] = ()
    is_copy: bool = False


async def read_between(ctx: Context, owner: ScheduleOwner, first: Day, last: Day, limit: int) -> list[StoredBlock]:
    """Return at most `limit` blocks from `first` to `last` of an owner whose access has been checked, in order.

    Blocks of recurring check-ins are left out.
    """
    where = owner.block_filter | {owner.day_field: {"$gte": first, "$lte": last}, "checkInId": None}
    return await store.blocks.find(ctx, where, sort=(owner.day_field, "position", "_id"), limit=limit)


async def read_with_exercise(
    ctx: Context, owner: ScheduleOwner, exercise_id: ObjectId, first: Day, last: Day | None, limit: int
) -> list[StoredBlock]:
    """Return at most `limit` blocks with an exercise from `first` on, in order of day; `last` None for no end."""
    days = {"$gte": first} | ({} if last is None else {"$lte": last})
    where = owner.block_filter | {"items.exerciseIds": exercise_id, owner.day_field: days}
    return await store.blocks.find(ctx, where, sort=(owner.day_field, "_id"), limit=limit)


async def read_days(ctx: Context, owner: ScheduleOwner, days: Filter, limit: int = 0) -> list[DayBlock]:
    """Return the blocks on days that satisfy a filter, of an owner whose access has been checked, in order."""
    return await store.find_days(ctx, owner.block_filter, owner.day_field, days, limit)


async def read_assigned_days(
    ctx: Context, owner: ScheduleOwner, program_id: ObjectId, assignment_id: ObjectId, days: Filter
) -> list[DayBlock]:
    """Return the blocks of an assignment on days that satisfy a filter; the owner's access has been checked."""
    assigned = owner.block_filter | {"programId": program_id, "assignmentId": assignment_id}
    return await store.find_days(ctx, assigned, owner.day_field, days, hint=store.BY_PROGRAM)


async def read_check_in_days(
    ctx: Context, owner: ScheduleOwner, check_in_id: ObjectId | None, days: Filter
) -> list[DayBlock]:
    """Return the blocks of a check-in (None: of all) on days that satisfy a filter; access has been checked."""
    of_check_in = owner.block_filter | {"checkInId": check_in_id or {"$ne": None}}
    return await store.find_days(ctx, of_check_in, owner.day_field, days)


async def create_block(
    ctx: Context, owner: ScheduleOwner, block: NewBlock, *, items_field: str = "items", dry_run: bool = False
) -> block_models.Block:
    """Create a block with items: all or nothing.

    With `dry_run`, returns what would be created, without identifiers. Raises NotFound and Forbidden for the owner,
    and NotFound for documents that items refer to, naming the entry of `items_field`.
    """
    await owner.require_access(ctx)
    return (await _create(ctx, owner, {items_field: block}, dry_run=dry_run))["created"][0]


async def create_blocks(
    ctx: Context, owner: ScheduleOwner, blocks: Sequence[NewBlock], *, dry_run: bool = False
) -> block_models.ScheduleChange:
    """Create blocks with items: all or nothing. Raises as `create_block`."""
    await owner.require_access(ctx)
    by_path = {f"blocks.{index}.items": block for index, block in enumerate(blocks)}
    return await _create(ctx, owner, by_path, dry_run=dry_run)


@transactional
async def copy(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, day: Day) -> block_models.Block:
    """Copy a block to another date or day, with nothing done. Raises NotFound, Forbidden."""
    return await add_to_day(ctx, owner, await service.get_plan(ctx, owner, block_id), day)


@transactional
async def add_to_day(ctx: Context, owner: ScheduleOwner, plan: BlockPlan, day: Day) -> block_models.Block:
    """Add a planned block to a date or day of an owner whose access has been checked."""
    days = await read_days(ctx, owner, {"$eq": day})
    placed = cast("BlockPlan", {**plan, owner.day_field: day})
    return (await apply(ctx, owner, Batch(created=[placed]), days))["created"][0]


@transactional
async def _create(
    ctx: Context, owner: ScheduleOwner, blocks: Mapping[str, NewBlock], *, dry_run: bool
) -> block_models.ScheduleChange:
    """Create blocks, by the path of their items in the request."""
    item_lists = await resolve_items(ctx, {path: block["items"] for path, block in blocks.items()})
    plans = [
        cast("BlockPlan", {**block, "items": block_items})
        for block, block_items in zip(blocks.values(), item_lists, strict=True)
    ]
    days = await read_days(ctx, owner, {"$in": list({plan[owner.day_field] for plan in plans})})
    return await apply(ctx, owner, Batch(created=plans), days, dry_run=dry_run)


@transactional
async def apply(
    ctx: Context, owner: ScheduleOwner, batch: Batch, days: Sequence[DayBlock], *, dry_run: bool = False
) -> block_models.ScheduleChange:
    """Do what the batch says to the schedule of an owner whose access has been checked, and return the blocks.

    `days` are all blocks that are on the days of its blocks, in order. With `dry_run`, writes nothing; new blocks and
    their items then have no identifiers. Raises Conflict if a block to change has changed since it was read, or new
    ones are for an archived client (CUSTOMER_ARCHIVED), and ExternalIdTaken.
    """
    if batch.created:
        await owner.require_open(ctx)
    if dry_run:
        created = await store.preview_many(
            ctx, [service.new_block(owner, plan) for plan in batch.created], batch.removed
        )
        changed: list[StoredBlock] = [{**block, "items": list(new_items)} for block, new_items in batch.changed]
    else:
        created, changed = await write(ctx, owner, batch, days)
    gone = set(batch.removed)
    after = [*(day for day in days if day["_id"] not in gone), *created]
    orders = store.orders_within_days((block["_id"], block[owner.day_field]) for block in after)
    blocks = [*changed, *created]
    presented = await service.present_blocks(ctx, blocks, [orders[block["_id"]] for block in blocks])
    new = presented[len(changed) :]
    if dry_run:  # neither the blocks nor their items have an identifier
        for each in [*new, *(item for block in new for item in block["items"])]:
            cast("dict[str, Any]", each)["_id"] = None
    return {
        "created": new,
        "changed": presented[: len(changed)],
        "removed": list(batch.removed),
    }


@transactional
async def write(
    ctx: Context, owner: ScheduleOwner, batch: Batch, days: Sequence[DayBlock]
) -> tuple[list[StoredBlock], list[StoredBlock]]:
    """Do what `apply` does, and return the stored blocks: created ones, and changed ones."""
    new_blocks = [service.new_block(owner, plan) for plan in batch.created]
    written = [
        *(block["items"] for block in new_blocks),
        *(new_items for _, new_items in batch.changed),
        *(new["items"] for _, new in batch.rewritten),
    ]
    await items.fix_load_unit(ctx, [item for block_items in written for item in block_items], owner.client_id)
    if batch.removed:
        await store.blocks.delete_many(ctx, owner.block_filter | {"_id": {"$in": list(batch.removed)}})
    after = max((day["position"] for day in days), default=0)
    moved = store.next_positions(len(batch.rewritten), after)
    rewritten: list[tuple[StoredBlock, block_models.BlockFields]] = [
        (block, new if new[owner.day_field] == block[owner.day_field] else {**new, "position": position})
        for (block, new), position in zip(batch.rewritten, moved, strict=True)
    ]
    changed = await store.set_items_each(ctx, batch.changed)
    changed += await store.set_fields_each(ctx, rewritten)
    created = await store.create_many(ctx, new_blocks, after=max([after, *moved]))
    if created and not batch.is_copy:
        exercises.count_uses(ctx, items.exercise_ids(item for block in created for item in block["items"]))
    if created or batch.removed or rewritten:
        planned = [
            block
            for block in service.regular_blocks(created)
            # More than forms, measurements and reminders; one without items yet is.
            if block.get("createdBy") is None
            and (not block["items"] or any(item["type"] in WORKOUT_TYPES for item in block["items"]))
        ]
        dates = [block["date"] for block in planned if block["date"] is not None]
        only_more = not batch.removed and not rewritten
        await owner.after_schedule_change(ctx, added_until=max(dates, default=None) if only_more else None)
    return created, changed


@transactional
async def shift(
    ctx: Context,
    calendar: ClientCalendar,
    moved: Sequence[StoredBlock],
    first: str,
    days: int,
    field: str,
    *,
    dry_run: bool = False,
) -> list[block_models.Block]:
    """Move blocks of a client, whose access has been checked, by a number of days, and return them afterwards.

    `moved` are all with nothing done from the date `first` on. With `dry_run`, writes nothing. Raises
    InvalidFields, naming `field`, if a date would leave the calendar.
    """
    dates = {block["_id"]: service.shift_date(str(block["date"]), days, field) for block in moved}
    if not dates:
        return []
    there = await read_days(ctx, calendar, {"$in": [str(block["date"]) for block in moved] + list(dates.values())})
    places = sorted((dates.get(each["_id"], str(each["date"])), each["position"], each["_id"]) for each in there)
    orders = store.orders_within_days((block_id, day) for day, _, block_id in places)
    after: list[StoredBlock] = [{**block, "date": dates[block["_id"]], "plannedDate": None} for block in moved]
    if not dry_run:
        await service.move_all(ctx, calendar, moved, first, days)
        period = min(dates.values()), max(dates.values())
        on_days = await store.find_between(ctx, calendar.block_filter, calendar.day_field, *period)
        after = [block for block in on_days if block["_id"] in dates]
    return await service.present_blocks(ctx, after, [orders[block["_id"]] for block in after])


# --- Changing a workout block together with its items -----------------------------------------------------------------


@transactional
async def change_block(
    ctx: Context, owner: ScheduleOwner, block_id: ObjectId, sent: Mapping[str, Any]
) -> block_models.Block:
    """Change what differs of a block of an owner whose access has been checked; nothing if nothing does.

    `items` replace the block's, except for equal ones at the same position. Raises NotFound, Conflict if the block has
    changed since `version`, if its items change and something in it is done, or if it is of a check-in.
    """
    block = await owner.get_block(ctx, block_id)
    if fields := await _find_changes(ctx, owner, block, sent):
        return await service.store_change(ctx, owner, block_id, fields, block["version"])
    return await service.present_block(ctx, owner, block)


@transactional
async def upsert_many(
    ctx: Context,
    owner: ScheduleOwner,
    entries: Sequence[block_models.BlockUpsert | InvalidEntry],
    on_conflict: Literal["error", "update"],
    complete: Callable[[block_models.BlockUpsert], NewBlock],
) -> BatchResult:
    """Change the owner's blocks with the identifiers of entries in another system, or create them, each by itself.

    An entry fails as the PUT of one block, if an earlier one has its identifier, if its day would hold too much, or
    with the conflict `error` if there is a block. Raises NotFound and Forbidden for the owner, and what storing all
    new blocks raises.
    """
    await owner.authorize_and_lock(ctx)
    ids = [each["externalId"] for each in entries if not isinstance(each, InvalidEntry) and each["externalId"]]
    where: Filter = {"externalId": {"$in": ids}}
    found = await store.blocks.find(ctx, where, hint=store.BY_ID_ELSEWHERE) if ids else []
    known = {block["externalId"]: block for block in found}
    first = repetitions("externalId")
    room: store.DayRoom | None = None
    if (client_id := owner.client_id) is not None:
        sent_dates = (entry.get("date") for entry in entries if not isinstance(entry, InvalidEntry))
        dates = {str(each) for each in (*sent_dates, *(block["date"] for block in known.values())) if each is not None}
        room = store.DayRoom(await store.count_days(ctx, {(client_id, each) for each in dates}))
    new: list[tuple[Saved, BlockPlan]] = []

    async def save(entry: block_models.BlockUpsert) -> Saved:
        first(entry["externalId"])
        if (block := known.get(entry["externalId"])) is None:
            await owner.require_open(ctx)
            sent = complete(entry)
            [block_items] = await resolve_items(ctx, {"items": sent["items"]})
            if room is not None and client_id is not None:
                room.take(client_id, None, {**sent, "items": block_items})
            new.append((Saved(None, "created"), cast("BlockPlan", {**sent, "items": block_items})))
            return new[-1][0]
        if on_conflict == "error" or not owner.has(block):
            raise external_id_taken(ctx, block["_id"])
        if fields := await _find_changes(ctx, owner, block, entry):
            changed = await service.store_change(ctx, owner, block["_id"], fields, block["version"])
            if room is not None and client_id is not None:
                room.take(client_id, block, {**block, **fields})
            return Saved(block["_id"], "updated", changed["version"])
        return Saved(block["_id"], "unchanged", block["version"])

    saved = await save_each(ctx, entries, save)
    plans = [plan for _, plan in new]
    days = await read_days(ctx, owner, {"$in": list({plan[owner.day_field] for plan in plans})}) if plans else []
    created, _ = await write(ctx, owner, Batch(created=plans), days)
    for (record, _), block in zip(new, created, strict=True):
        record.id = block["_id"]
    return result_of(ctx, entries, saved)


async def _find_changes(
    ctx: Context, owner: ScheduleOwner, block: StoredBlock, sent: Mapping[str, Any]
) -> block_models.BlockFields:
    """Return what differs of a block: the fields to set. Raises as `change_block`."""
    if sent.get("version") not in (None, block["version"]):
        raise version_conflict()
    details = {name: value for name, value in sent.items() if name not in ("items", "version")}
    fields = cast("block_models.BlockFields", find_differences(block, stored_fields(details)))
    unchanged = match_items(block["items"], sent["items"]) if "items" in sent else block["items"]
    if len(unchanged) == len(block["items"]) and None not in unchanged:
        return fields
    if block.get("checkInId") is not None:
        message = "The workout block belongs to a recurring check-in and takes no other items"
        raise Conflict(message, code="CHECK_IN_BLOCK")
    if not service.has_nothing_done(block):
        message = "Something of this workout block is done: its items are not replaced; send it without items"
        raise Conflict(message, code="WORKOUT_LOGGED")
    new = {index: item for index, item in enumerate(sent["items"]) if unchanged[index] is None}
    added = await create_items(ctx, new, block["items"])
    await items.fix_load_unit(ctx, added, owner.client_id)
    exercises.count_uses(ctx, items.exercise_ids(added))
    left = iter(added)
    return fields | store.item_fields([previous or next(left) for previous in unchanged])


# --- Sessions that were imported from files: stored without an event of each, found again, and removed ----------------


_BY_IMPORT = store.blocks.index_name("source.importId", "_id")


class DoneExercise(TypedDict):
    """What was done of an exercise in a session."""

    exerciseId: ObjectId
    supersetId: str | None
    comment: str | None
    customerSets: list[CustomerSet]


class DoneSession(TypedDict):
    """A session to store: `completedAt` is the time (UTC) at which it ended, `fingerprint` what finds it again."""

    name: str
    date: str
    startTime: str | None
    durationMinutes: float | None
    comment: str | None
    exercises: list[DoneExercise]
    completedAt: datetime
    fingerprint: str


async def add_sessions(
    ctx: Context, customer_id: ObjectId, source: block_models.BlockSource, sessions: Sequence[DoneSession]
) -> list[StoredBlock]:
    """Store done sessions of a client whose access has been checked, in the caller's transaction.

    Neither the change log nor events have them: the caller reports them together.
    """
    calendar = ClientCalendar(customer_id)
    new: list[block_models.BlockContent] = []
    for session in sessions:
        log: block_models.LoggedBlock = {
            "plan": {
                "name": session["name"],
                "date": session["date"],
                "startTime": session["startTime"],
                "isRest": False,
                "items": [
                    {
                        "type": "EXERCISE",
                        "exerciseId": each["exerciseId"],
                        "exerciseSets": [],
                        "exerciseInstructions": None,
                        "supersetId": each["supersetId"],
                    }
                    for each in session["exercises"]
                ],
            },
            "logs": [
                {"isCompleted": True, "comment": each["comment"], "customerSets": each["customerSets"]}
                for each in session["exercises"]
            ],
            "loggedAt": session["completedAt"],
            "durationMinutes": session["durationMinutes"],
            "sessionRpe": None,
            "comment": session["comment"],
        }
        logged = block_items.new_logged_block(calendar, log)
        new.append({**logged, "source": source, "fingerprint": session["fingerprint"]})
    blocks = await block_items.complete_logged_blocks(ctx, calendar, new)
    stored = await store.blocks.insert_many(ctx, store.with_positions(blocks, 0), recorded=False)
    await searched_texts.store_entries(ctx, store.blocks, stored)
    return stored


async def list_new(ctx: Context, import_id: ObjectId) -> list[DocumentChange]:
    """Return the sessions that an import has stored in the caller's transaction, as a change of each would be."""
    recorder = ChangeRecorder()
    where = {"source.importId": import_id}
    recorder.add_created(store.blocks, await store.blocks.find(ctx, where, sort=("_id",), hint=_BY_IMPORT))
    return list(recorder.documents.values())


async def find_done_on(ctx: Context, customer_id: ObjectId, dates: Sequence[str]) -> list[block_models.KnownSession]:
    """Return the blocks with logged sets of a client on some dates."""
    where: Filter = {"customerId": customer_id, "date": {"$in": list(dates)}, "items.customerSets.0": {"$exists": True}}
    fields = ("date", "name", "startTime", "fingerprint", "items.exerciseId", "items.type", "items.customerSets")
    return cast(
        "list[block_models.KnownSession]", await store.blocks.find(ctx, where, fields=fields, hint=store.BY_DATE)
    )


async def find_imported(
    ctx: Context, import_id: ObjectId, after: ObjectId | None, limit: int
) -> list[block_models.ImportedSession]:
    """Return at most `limit` blocks of an import after an identifier, in order."""
    where: Filter = {"source.importId": import_id} | ({} if after is None else {"_id": {"$gt": after}})
    fields = ("customerId", "date", "version", "items.type", "items.customerSets.index")
    listed = await store.blocks.find(ctx, where, sort=("_id",), limit=limit, fields=fields, hint=_BY_IMPORT)
    return cast("list[block_models.ImportedSession]", listed)


async def remove_unchanged(ctx: Context, import_id: ObjectId, ids: Sequence[ObjectId]) -> int:
    """Delete blocks of an import that have not changed since, without a record of each; returns how many."""
    where: Filter = {"source.importId": import_id, "_id": {"$in": list(ids)}, "version": 0}
    removed = await store.blocks.delete_many(ctx, where, recorded=False)
    await searched_texts.renew_entries(ctx, store.blocks, ids)
    return removed


# --- Sources of copies: days of a calendar, or a program, and whether they have changed since a proposal was made -----


_PLANNED = (*names_of(block_models.PlannedBlock), "items")


async def read_calendar(ctx: Context, customer_id: ObjectId, first: str, last: str) -> Source:
    """Return days of a client whose access has been checked, as what a call copies."""
    return await _read(ctx, {"customerId": customer_id, "programId": None, "first": first, "last": last})


async def read_program(ctx: Context, program_id: ObjectId) -> Source:
    """Return a program that is there, as what a call copies."""
    return await _read(ctx, {"customerId": None, "programId": program_id, "first": None, "last": None})


async def has_changed(ctx: Context, source: Source) -> bool:
    """Return whether what is planned on the days of a source differs; what was done may."""
    if await _digest_versions(ctx, source) == source["versions"]:
        return False
    return await _digest_plans(ctx, source) != source["plans"]


async def _read(ctx: Context, days: CopiedDays) -> Source:
    return {**days, "versions": await _digest_versions(ctx, days), "plans": await _digest_plans(ctx, days)}


def _where(source: CopiedDays) -> Filter:
    owner = {"customerId": source["customerId"], "checkInId": None}
    if source["programId"] is not None:
        return owner | {"programId": source["programId"]}
    return owner | {"date": {"$gte": source["first"], "$lte": source["last"]}}


async def _digest_versions(ctx: Context, source: CopiedDays) -> str:
    found = await store.blocks.find(ctx, _where(source), fields=("version",))
    return _digest(sorted([str(each["_id"]), each["version"]] for each in found))


async def _digest_plans(ctx: Context, source: CopiedDays) -> str:
    found: list[Any] = await store.blocks.find(ctx, _where(source), fields=("date", "day", "position", *_PLANNED))
    planned: list[list[Any]] = [
        [
            *(str(block.get("date")), block.get("day") or 0, block["position"], str(block["_id"])),
            *(block.get(name) for name in names_of(block_models.PlannedBlock)),
            [
                [each["type"], *(each.get(name) for name in items.PLANNED_FIELDS[each["type"]])]
                for each in map(items.with_planned_sets, block["items"])
            ],
        ]
        for block in found
    ]
    planned.sort(key=lambda each: each[:4])
    return _digest(planned)


def _digest(values: Iterable[object]) -> str:
    return hashlib.sha256(to_json(list(values))).hexdigest()


# --- The check of the stored totals of workout blocks -----------------------------------------------------------------


_SETS = ("customerSets", "exerciseSets", "circuitExercises.sets")
_TOTALS = ("sets", "reps", "volumeLoad")
_TOLERANCE = 0.01  # of sums in another order


async def iterate_wrong(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the blocks whose totals of sets, repetitions and volume are not the sums of their items."""
    differences = [
        {"$abs": {"$subtract": [{"$sum": f"$items.tally.{name}"}, {"$ifNull": [f"$done.{name}", 0]}]}}
        for name in _TOTALS
    ]
    condition = {"$expr": {"$gt": [{"$max": differences}, _TOLERANCE]}}
    async for block in blocks.across_companies(services).find(condition, {"_id": 1}):
        yield block["_id"]


async def correct(services: Services, block_id: ObjectId) -> None:
    """Compute the totals of a block again."""

    async def compute(tx: Context) -> None:
        collection = blocks.across_companies(services)
        block = await collection.find_one({"_id": block_id}, {"items": 1}, session=tx.session)
        if block is not None:
            done = summarize_block(block["items"])
            await collection.update_one({"_id": block_id}, {"$set": {"done": done}}, session=tx.session)

    await in_transaction(Context(services), compute)


async def correct_totals(services: Services) -> None:
    """Compute the totals of these blocks again."""
    async for block_id in iterate_wrong(services):
        await correct(services, block_id)


async def iterate_negative(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the blocks with a set whose planned or done load is below zero."""
    condition = {"$or": [{f"items.{path}.load": {"$lt": 0}} for path in _SETS]}
    async for block in blocks.across_companies(services).find(condition, {"_id": 1}):
        yield block["_id"]


CHECKS = (
    check_of(
        "workout-loads",
        "No load is negative",
        iterate_negative,
        "Workouts with a load below zero",
        "Correct the sets by hand: reports and records are wrong",
        counts=True,
    ),
    check_of(
        "workout-totals",
        "The totals of workouts are right",
        iterate_wrong,
        "Workouts with wrong totals",
        "Run doctor --repair; until then reports are wrong",
        correct_totals,
        counts=True,
    ),
)


# --- The consequences of writes of workouts, by whatever operation, and of an undo that restores them -----------------


# The entries of the feed about a workout, or an item of one.
_ENTRIES: tuple[ActivityType, ...] = ("workout_completed", "item_logged", "form_submitted", "metric_recorded")


async def record_written_workouts(ctx: Context, event: DocumentsWritten) -> None:
    """Record that workouts of clients are completed, or take it back, and the log of items that are gone.

    An answered check-in is no completed workout. A new block with a log was imported with its entries in the feed; an
    undo restores the entries that its change had taken back. Entries about what was moved or renamed follow it.
    """
    items = [(each, *_items_of(each)) for each in event.documents if each.collection == store.blocks.name]
    present = {item["_id"] for _, _, after in items for item in after}
    for document, before, after in items:
        if (customer_id := document.client_id) is None:
            continue
        for item in before:
            if item["isCompleted"] and item["_id"] not in present:
                await activity.delete_events(ctx, customer_id, item["_id"], "item_logged")
        is_check_in = isinstance(document.known["checkInId"], ObjectId)
        if is_check_in or is_completed(before) == is_completed(after):
            continue
        if not is_completed(after):
            await activity.delete_events(ctx, customer_id, document.id, "workout_completed")
        elif document.action == "changed" or ctx.changes.undoes:
            how: Literal["new", "restored"] = "restored" if ctx.changes.undoes else "new"
            about = {"wblockId": document.id, "blockName": document.known["name"], "day": document.known["date"]}
            await activity.record_event(ctx, "workout_completed", customer_id, document.id, how, **about)
    of_clients = [(each, before, after) for each, before, after in items if each.client_id is not None]
    await _correct_entries(ctx, of_clients)


async def _correct_entries(
    ctx: Context, written: Sequence[tuple[DocumentChange, list[WorkItem], list[WorkItem]]]
) -> None:
    """Correct the entries about workouts that have another day or name, and about items that have another workout."""
    left = {item["_id"] for _, before, _ in written for item in before}
    done: dict[ObjectId, set[ObjectId]] = {}
    for document, before, after in written:
        known = {item["_id"] for item in before}
        done[document.id] = {item["_id"] for item in after if item["isCompleted"] and item["_id"] in left - known}
    renamed = [each.id for each, _, _ in written if each.action == "changed" and each.values.keys() & {"date", "name"}]
    if renamed:
        has_done = {"_id": {"$in": renamed}, "items.isCompleted": True}
        for block in await store.blocks.find(ctx, has_done, fields=("items._id", "items.isCompleted")):
            done[block["_id"]] |= {block["_id"], *(each["_id"] for each in block["items"] if each["isCompleted"])}
    for document, _, _ in written:
        if done[document.id] and document.client_id is not None:
            about = {"wblockId": document.id, "blockName": document.known["name"], "day": document.known["date"]}
            await activity.correct_events(ctx, _ENTRIES, document.client_id, done[document.id], **about)


def _items_of(document: DocumentChange) -> tuple[list[WorkItem], list[WorkItem]]:
    """Return the items of a block before and after a transaction: neither if they were not written."""
    if document.action != "changed":
        return (document.before or {}).get("items", []), (document.after or {}).get("items", [])
    return document.values.get("items", ([], []))


async def update_restored_workouts(ctx: Context, event: DocumentsRestored) -> None:
    """Update what depends on restored workouts, as the operations that change workouts do."""
    restored = event.of_kind("workout")
    for document in restored:
        if document.after is not None:
            block = cast("StoredBlock", document.after)
            done = {"$set": {"done": summarize_block(block["items"])}}  # it is derived from the items
            await store.blocks.set_derived(ctx, {"_id": block["_id"]}, done)
    for customer_id in dict.fromkeys(_customer_of(document) for document in restored):
        if customer_id is None:
            continue
        calendar = ClientCalendar(customer_id)
        await calendar.after_schedule_change(ctx)
        items: list[WorkItem] = []
        for document in (each for each in restored if _customer_of(each) == customer_id):
            before, after = cast("StoredBlock | None", document.before), cast("StoredBlock | None", document.after)
            items += [item for version in (before, after) if version is not None for item in version["items"]]
            if before is not None and after is not None and before["date"] != after["date"]:
                await service.publish_rescheduled_items(ctx, after, after["items"])
        await calendar.after_completed_work_change(ctx, items)


def _customer_of(document: RestoredDocument) -> ObjectId | None:
    return cast("StoredBlock", document.after or document.before)["customerId"]
