"""Many blocks of one schedule, read and written together.

Every operation on a schedule first decides which blocks to create, change and remove; a preview ends there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.database.transactions import transactional
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.done_work import is_work, regular_blocks
from coaching_service.training.workouts.blocks.models import (
    Block,
    BlockFields,
    BlockPlan,
    DayBlock,
    NewBlock,
    ScheduleChange,
    StoredBlock,
)
from coaching_service.training.workouts.blocks.owners import ClientCalendar, ScheduleOwner
from coaching_service.training.workouts.blocks.presentation import present_blocks
from coaching_service.training.workouts.blocks.service import fix_load_unit, get_plan, move_all, new_block, shift_date
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.creation import resolve_items
from coaching_service.training.workouts.items.models import WorkItem

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
    rewritten: Sequence[tuple[StoredBlock, BlockFields]] = ()
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
) -> Block:
    """Create a block with items: all or nothing.

    With `dry_run`, returns what would be created, without identifiers. Raises NotFound and Forbidden for the owner,
    and NotFound for documents that items refer to, naming the entry of `items_field`.
    """
    await owner.require_access(ctx)
    return (await _create(ctx, owner, {items_field: block}, dry_run=dry_run))["created"][0]


async def create_blocks(
    ctx: Context, owner: ScheduleOwner, blocks: Sequence[NewBlock], *, dry_run: bool = False
) -> ScheduleChange:
    """Create blocks with items: all or nothing. Raises as `create_block`."""
    await owner.require_access(ctx)
    by_path = {f"blocks.{index}.items": block for index, block in enumerate(blocks)}
    return await _create(ctx, owner, by_path, dry_run=dry_run)


@transactional
async def copy(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, day: Day) -> Block:
    """Copy a block to another date or day, with nothing done. Raises NotFound, Forbidden."""
    return await add_to_day(ctx, owner, await get_plan(ctx, owner, block_id), day)


@transactional
async def add_to_day(ctx: Context, owner: ScheduleOwner, plan: BlockPlan, day: Day) -> Block:
    """Add a planned block to a date or day of an owner whose access has been checked."""
    days = await read_days(ctx, owner, {"$eq": day})
    placed = cast("BlockPlan", {**plan, owner.day_field: day})
    return (await apply(ctx, owner, Batch(created=[placed]), days))["created"][0]


@transactional
async def _create(
    ctx: Context, owner: ScheduleOwner, blocks: Mapping[str, NewBlock], *, dry_run: bool
) -> ScheduleChange:
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
) -> ScheduleChange:
    """Do what the batch says to the schedule of an owner whose access has been checked, and return the blocks.

    `days` are all blocks that are on the days of its blocks, in order. With `dry_run`, writes nothing; new blocks and
    their items then have no identifiers. Raises Conflict if a block to change has changed since it was read, or new
    ones are for an archived client (CUSTOMER_ARCHIVED), and ExternalIdTaken.
    """
    if batch.created:
        await owner.require_open(ctx)
    if dry_run:
        created = await store.preview_many(ctx, [new_block(owner, plan) for plan in batch.created], batch.removed)
        changed: list[StoredBlock] = [{**block, "items": list(new_items)} for block, new_items in batch.changed]
    else:
        created, changed = await write(ctx, owner, batch, days)
    gone = set(batch.removed)
    after = [*(day for day in days if day["_id"] not in gone), *created]
    orders = store.orders_within_days((block["_id"], block[owner.day_field]) for block in after)
    blocks = [*changed, *created]
    presented = await present_blocks(ctx, blocks, [orders[block["_id"]] for block in blocks])
    new = presented[len(changed) :]
    return {
        "created": [_without_identifiers(block) for block in new] if dry_run else new,
        "changed": presented[: len(changed)],
        "removed": list(batch.removed),
    }


@transactional
async def write(
    ctx: Context, owner: ScheduleOwner, batch: Batch, days: Sequence[DayBlock]
) -> tuple[list[StoredBlock], list[StoredBlock]]:
    """Do what `apply` does, and return the stored blocks: created ones, and changed ones."""
    new_blocks = [new_block(owner, plan) for plan in batch.created]
    written = [
        *(block["items"] for block in new_blocks),
        *(new_items for _, new_items in batch.changed),
        *(new["items"] for _, new in batch.rewritten),
    ]
    await fix_load_unit(ctx, [item for block_items in written for item in block_items], owner)
    if batch.removed:
        await store.blocks.delete_many(ctx, owner.block_filter | {"_id": {"$in": list(batch.removed)}})
    after = max((day["position"] for day in days), default=0)
    moved = store.next_positions(len(batch.rewritten), after)
    rewritten: list[tuple[StoredBlock, BlockFields]] = [
        (block, new if new[owner.day_field] == block[owner.day_field] else {**new, "position": position})
        for (block, new), position in zip(batch.rewritten, moved, strict=True)
    ]
    changed = await store.set_items_each(ctx, batch.changed)
    changed += await store.set_fields_each(ctx, rewritten)
    created = await store.create_many(ctx, new_blocks, after=max([after, *moved]))
    if created and not batch.is_copy:
        exercises.count_uses(ctx, items.exercise_ids(item for block in created for item in block["items"]))
    if created or batch.removed or rewritten:
        planned = [block for block in regular_blocks(created) if block.get("createdBy") is None and is_work(block)]
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
) -> list[Block]:
    """Move blocks of a client, whose access has been checked, by a number of days, and return them afterwards.

    `moved` are all with nothing done from the date `first` on. With `dry_run`, writes nothing. Raises
    InvalidFields, naming `field`, if a date would leave the calendar.
    """
    dates = {block["_id"]: shift_date(str(block["date"]), days, field) for block in moved}
    if not dates:
        return []
    there = await read_days(ctx, calendar, {"$in": [str(block["date"]) for block in moved] + list(dates.values())})
    places = sorted((dates.get(each["_id"], str(each["date"])), each["position"], each["_id"]) for each in there)
    orders = store.orders_within_days((block_id, day) for day, _, block_id in places)
    after: list[StoredBlock] = [{**block, "date": dates[block["_id"]], "plannedDate": None} for block in moved]
    if not dry_run:
        await move_all(ctx, calendar, moved, first, days)
        period = min(dates.values()), max(dates.values())
        on_days = await store.find_between(ctx, calendar.block_filter, calendar.day_field, *period)
        after = [block for block in on_days if block["_id"] in dates]
    return await present_blocks(ctx, after, [orders[block["_id"]] for block in after])


def _without_identifiers(block: Block) -> Block:
    """Return a block that is not stored: neither it nor its items have an identifier."""
    return cast("Block", {**block, "_id": None, "items": [{**item, "_id": None} for item in block["items"]]})
