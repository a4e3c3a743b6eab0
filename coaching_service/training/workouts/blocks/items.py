"""The items of workout blocks, what is logged of them and of whole blocks, and their loads in another unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from coaching_service.core import errors
from coaching_service.core.database.context import Context, transactional, version_conflict
from coaching_service.core.database.documents import Document, Filter, now
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.fields import DeferredChange
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ExerciseName
from coaching_service.people import account
from coaching_service.people.account import Conversion, Convert, LoadCount
from coaching_service.training import body_weights
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service
from coaching_service.training.workouts.blocks.models import Block, BlockFields, BlockLog, StoredBlock
from coaching_service.training.workouts.blocks.service import (
    ScheduleOwner,
    present_block,
    publish_rescheduled_items,
    summarize_copy,
)
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.service import derive_fields
from coaching_service.training.workouts.sets import MAX_LOAD


@on_worker_thread
async def create_item(ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, body: item_models.ItemInput) -> WorkItem:
    """Add an item to a workout block.

    It goes to the end; the response is the item. A form is copied as it is now.
    """
    block, item, linked = await _append(ctx, owner, wblock_id, body)
    linked = await items.load_references(ctx, [item], owner.client_id, linked.exercises, [block["date"]])
    order = items.find_index(block["items"], item["_id"])
    return items.present_item(item, order, block["version"], linked, ctx.caller, block["date"])


@transactional
async def _append(
    ctx: Context, owner: ScheduleOwner, block_id: ObjectId, details: item_models.ItemInput
) -> tuple[StoredBlock, WorkItem, items.References]:
    """Append an item; returns the block, the item as it is stored, and what it refers to."""
    await owner.authorize_and_lock(ctx)
    resolved, linked = await items.resolve(ctx, details)
    item = items.create_item(resolved)
    await items.fix_load_unit(ctx, [item], owner.client_id)
    if (block := await owner.push_item(ctx, block_id, item)) is None:
        _require_regular(await owner.get_block(ctx, block_id))
        raise _block_is_full()
    exercises.count_uses(ctx, items.exercise_ids([item]))
    is_planned = item["type"] in item_models.WORKOUT_TYPES and block.get("createdBy") is None
    await owner.after_schedule_change(ctx, added_until=block["date"] if is_planned else None)
    return block, item, linked


@transactional
async def update_item(
    ctx: Context,
    owner: ScheduleOwner,
    wblock_id: ObjectId,
    witem_id: ObjectId,
    body: DeferredChange,
    *,
    only_differences: bool = False,
) -> WorkItem:
    """Change a workout item.

    Its type cannot be changed; fields of other types are ignored. `version` is the block's.
    """
    await owner.require_access(ctx)
    block = await owner.get_block(ctx, wblock_id)
    item = block["items"][items.find_index(block["items"], witem_id)]
    # With `only_differences`, fields that have these values already are not changes.
    change = cast("item_models.ItemChange", body.validate_as(item["type"]))
    if change.get("version") not in (None, block["version"]):
        raise version_conflict()
    if only_differences:
        change = items.find_differences(item, change)
    change, _ = await items.resolve(ctx, change, item)
    await items.fix_load_unit(ctx, [change], owner.client_id)
    changed = items.change_item(item, change)
    known = await items.load_exercises(ctx, [changed])
    if changed is not item:
        changed = items.with_load_types(changed, known)
        block = await owner.set_items(ctx, block, _replace(block, changed))
        await owner.after_completed_work_change(ctx, [item, changed])
        if changed["type"] == "REMINDER":  # the time at which it is sent
            await owner.after_schedule_change(ctx)
    return await present_item(ctx, block, witem_id, known)


@transactional
async def delete_item(ctx: Context, owner: ScheduleOwner, wblock_id: ObjectId, witem_id: ObjectId) -> None:
    """Remove an item from a workout block."""
    await owner.authorize_and_lock(ctx)
    block = await owner.get_block(ctx, wblock_id)
    item = block["items"][items.find_index(block["items"], witem_id)]
    await owner.set_items(ctx, block, _without(block, item))
    await owner.after_schedule_change(ctx)
    await owner.after_completed_work_change(ctx, [item])


@transactional
async def move_item(
    ctx: Context,
    owner: ScheduleOwner,
    source: item_models.ItemMoveSource | None,
    target: item_models.ItemMoveTarget | None,
    version: int | None = None,
) -> Block:
    """Move an item within its block or to another block of the owner, and return the target block.

    A target index past the end means the end. Raises LegacyFailure if `source` or `target` is missing, NotFound if a
    block or the item does not exist, Conflict if the item is no longer in the source block, the target block has
    changed since `version` or is another block and belongs to a recurring check-in, InvalidFields if it is full.
    """
    await owner.require_access(ctx)
    if source is None or target is None:
        raise errors.LegacyFailure("WITEM_MOVE_INCOMPLETE", "A move needs a source and a target")
    block = await owner.get_block(ctx, source["wblockId"])
    item = next((each for each in block["items"] if each["_id"] == source["witemId"]), None)
    if item is None and await owner.has_item(ctx, source["witemId"]):
        raise errors.Conflict("The item is no longer in the source block; read the calendar again", code="ITEM_MOVED")
    if item is None:
        raise errors.NotFound("workout item")
    target_block = block if target["wblockId"] == block["_id"] else await owner.get_block(ctx, target["wblockId"])
    if version not in (None, target_block["version"]):
        raise version_conflict()
    if target_block is not block:
        _require_regular(target_block)
    others = _without(target_block, item)
    if len(others) >= items.MAX_ITEMS:
        raise _block_is_full()
    if target_block is not block:
        await owner.set_items(ctx, block, _without(block, item))
        if target_block.get("source") is None:  # only imported sessions have exercises without planned sets
            item = items.with_planned_sets(item)
    index = target["index"]
    target_block = await owner.set_items(ctx, target_block, [*others[:index], item, *others[index:]])
    if target_block["_id"] != block["_id"]:
        await owner.after_schedule_change(ctx)
    await owner.after_completed_work_change(ctx, [item])
    if target_block["date"] != block["date"]:
        await publish_rescheduled_items(ctx, target_block, [item])
    return await present_block(ctx, owner, target_block)


async def log_items(
    ctx: Context,
    owner: ScheduleOwner,
    block: StoredBlock,
    logs: Sequence[tuple[WorkItem, item_models.ItemLog]],
) -> tuple[StoredBlock, list[WorkItem]]:
    """Store what was done for items of a block, in the transaction that has read it.

    Returns the block as stored, and these items as they are read. Raises Conflict if a log has another version of the
    block.
    """
    if any(log.get("version") not in (None, block["version"]) for _, log in logs):
        raise version_conflict()
    logged = [items.log_item(item, log) for item, log in logs]
    known = await items.load_exercises(ctx, logged)
    logged = [items.with_load_types(item, known) for item in logged]
    await items.fix_load_unit(ctx, logged, owner.client_id)
    block = await owner.set_items(ctx, block, _replace(block, *logged))
    await owner.after_completed_work_change(ctx, [*(item for item, _ in logs), *logged], block)
    return block, await _present_items(ctx, block, [item["_id"] for item, _ in logs], known)


async def get_item(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, item_id: ObjectId) -> WorkItem:
    """Return an item of an owner whose access has been checked. Raises NotFound."""
    return await present_item(ctx, await owner.get_block(ctx, block_id), item_id)


async def present_item(
    ctx: Context, block: StoredBlock, item_id: ObjectId, known: Mapping[ObjectId, ExerciseName] | None = None
) -> WorkItem:
    """Return an item of a stored block as it is read; `known`: its exercises, if they were read. Raises NotFound."""
    return (await _present_items(ctx, block, [item_id], known))[0]


async def _present_items(
    ctx: Context, block: StoredBlock, item_ids: Sequence[ObjectId], known: Mapping[ObjectId, ExerciseName] | None
) -> list[WorkItem]:
    orders = [items.find_index(block["items"], item_id) for item_id in item_ids]
    found = [block["items"][order] for order in orders]
    linked = await items.load_references(ctx, found, block["customerId"], known, [block["date"]])
    return [
        items.present_item(item, order, block["version"], linked, ctx.caller, block["date"])
        for item, order in zip(found, orders, strict=True)
    ]


def _replace(block: StoredBlock, *changed: WorkItem) -> list[WorkItem]:
    new = {item["_id"]: item for item in changed}
    return [new.get(item["_id"], item) for item in block["items"]]


def _without(block: StoredBlock, removed: WorkItem) -> list[WorkItem]:
    return [item for item in block["items"] if item["_id"] != removed["_id"]]


def _require_regular(block: StoredBlock) -> None:
    """Raise Conflict if a block belongs to a recurring check-in: it holds nothing else."""
    if block.get("checkInId") is not None:
        message = "The workout block belongs to a recurring check-in and takes no other items; use another block"
        raise errors.Conflict(message, code="CHECK_IN_BLOCK")


def _block_is_full() -> errors.InvalidFields:
    message = f"must not hold more than {items.MAX_ITEMS} entries: the workout block is full"
    return errors.invalid_field("items", message, code="TOO_MANY")


# --- Logs of sessions: what clients reported about whole blocks, and blocks to add with their logs --------------------


@transactional
async def add_logged_blocks(
    ctx: Context, owner: ScheduleOwner, logged: Sequence[block_models.LoggedBlock]
) -> list[StoredBlock]:
    """Add blocks with what was done in them to the schedule of an owner whose access has been checked.

    Returns the stored blocks. What follows from the logs is up to the caller.
    """
    new: list[block_models.BlockContent] = [
        {**new_logged_block(owner, block), "clientTexts": block.get("clientTexts", [])} for block in logged
    ]
    stored = await store.create_many(ctx, await complete_logged_blocks(ctx, owner, new))
    await owner.after_schedule_change(ctx)
    return stored


async def complete_logged_blocks(
    ctx: Context, owner: ScheduleOwner, new: Sequence[block_models.BlockContent]
) -> list[block_models.BlockContent]:
    """Return blocks to add with the figures that follow from what loads of their exercises mean, and fix their unit."""
    known = await items.load_exercises(ctx, [item for block in new for item in block["items"]])
    typed = [[items.with_load_types(item, known) for item in block["items"]] for block in new]
    weighed = {
        str(block["date"]) for block, each in zip(new, typed, strict=True) if any(map(items.has_added_loads, each))
    }
    client_id, unit = owner.client_id, ctx.caller.company.load_unit
    weights = {} if client_id is None else await body_weights.find_on_dates(ctx, client_id, weighed, unit)
    blocks: list[block_models.BlockContent] = [
        {**block, "items": [items.with_body_weight(item, weights.get(str(block["date"]))) for item in each]}
        for block, each in zip(new, typed, strict=True)
    ]
    await items.fix_load_unit(ctx, [item for block in blocks for item in block["items"]], owner.client_id)
    return blocks


def new_logged_block(owner: ScheduleOwner, logged: block_models.LoggedBlock) -> block_models.BlockContent:
    """Return a new block with what was done in it."""
    block = service.new_block(owner, logged["plan"])
    logged_items = []
    for item, log in zip(block["items"], logged["logs"], strict=True):
        logged_item = items.log_item(item, log) if log else item
        completed_at = logged["loggedAt"] if logged_item["isCompleted"] else None
        logged_items.append(cast("WorkItem", {**logged_item, "completedAt": completed_at}))
    report = cast("block_models.SessionFields", {name: logged.get(name) for name in block_models.SESSION_FIELDS})
    return {**block, "items": logged_items, **report}


async def read_texts(ctx: Context, owner: ScheduleOwner, block_id: ObjectId) -> block_models.LogTexts:
    """Return date and comment of a block of an owner whose access has been checked, and which texts the client wrote.

    Raises NotFound.
    """
    fields = ("date", "comment", "clientTexts", "items._id", "items.clientTexts")
    found = await store.blocks.find_one(ctx, owner.block_filter | {"_id": block_id}, fields)
    block = errors.require_found(found, "workout block")
    return {
        "date": block["date"],
        "comment": block["comment"],
        "clientTexts": block.get("clientTexts", []),
        "ofItems": {item["_id"]: item.get("clientTexts", []) for item in block["items"]},
    }


async def log_block(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, log: BlockLog) -> Block:
    """Store what was reported about a session.

    Raises NotFound, Forbidden, and Conflict if the block has changed since `version`.
    """
    await owner.require_access(ctx)
    report = cast("BlockFields", {name: value for name, value in log.items() if name in block_models.SESSION_FIELDS})
    fields: BlockFields = {**report, "clientTexts": log.get("clientTexts", [])}
    block = await store.update(ctx, owner.block_filter, block_id, fields, log.get("version"))
    return await service.present_block(ctx, owner, block)


async def remove_value(ctx: Context, owner: ScheduleOwner, item_id: ObjectId, metric_id: ObjectId) -> None:
    """Remove the value of a metric from the log of an item, if the item still has it, in the caller's transaction."""
    if (block := await store.blocks.find_one(ctx, owner.block_filter | {"items._id": item_id})) is None:
        return
    changed: list[WorkItem] = []
    for item in block["items"]:
        if item["_id"] == item_id and item["type"] == "METRICS":
            values = [value for value in item["values"] or () if value["metricId"] != metric_id]
            changed.append({**item, "values": values})
        else:
            changed.append(item)
    await owner.set_items(ctx, block, changed)


# --- Converting the planned and done loads of workouts to another unit ------------------------------------------------


T = TypeVar("T")
# What is a load in workouts and in the figures that follow from them.
_LOADS = {"load", "volumeLoad", "estimatedOneRepMax"}


class ConvertedItems(NamedTuple):
    """Items with converted loads, and the number of loads among them."""

    items: list[WorkItem]
    loads: int


def convert_items(items: Sequence[WorkItem], convert: Convert) -> ConvertedItems:
    """Return items with the loads of planned and done sets converted, and the totals that follow from them."""
    converted: list[WorkItem] = []
    total = 0
    for item in items:
        changed, loads = _convert_sets(item, convert)
        if (body_weight := item.get("bodyWeight")) is not None:
            changed["bodyWeight"] = convert(body_weight)
        is_changed = loads or body_weight is not None
        converted.append(cast("WorkItem", {**changed, **derive_fields(changed)}) if is_changed else item)
        total += loads
    return ConvertedItems(converted, total)


def _convert_sets(value: Any, convert: Convert) -> tuple[Any, int]:
    """Return an item, or a part of it, with the loads in its sets converted, and their number."""
    if isinstance(value, list):
        entries = [_convert_sets(entry, convert) for entry in value]
        return [entry for entry, _ in entries], sum(loads for _, loads in entries)
    changed, total = dict(value), 0
    if isinstance(value.get("load"), int | float):
        changed["load"], total = min(convert(value["load"]), float(MAX_LOAD)), 1
    for name in ("exerciseSets", "circuitExercises", "sets", "customerSets"):
        if isinstance(value.get(name), list):
            changed[name], loads = _convert_sets(value[name], convert)
            total += loads
    return changed, total


def show_loads(value: T, ctx: Context, load_unit: str) -> T:
    """Return workouts, items, sets or figures of the company with their loads in a unit of display, rounded to 0.1."""
    if (unit := ctx.caller.company.load_unit) == load_unit:
        return value
    return cast("T", _show(value, partial(account.convert_stored_load, unit=unit, target=load_unit)))


def _show(value: Any, convert: Convert) -> Any:
    if isinstance(value, list):
        return [_show(each, convert) for each in value]
    if not isinstance(value, dict):
        return value
    shown: dict[str, Any] = {}
    for name, each in value.items():
        if name in _LOADS and isinstance(each, int | float):
            shown[name] = convert(each)
        elif name == "estimatedOneRepMax" and each is not None:
            shown[name] = {**each, "value": convert(each["value"])}
        else:
            shown[name] = _show(each, convert)
    return shown


def store_loads(value: T, ctx: Context) -> T:
    """Return items or sets with loads in the caller's unit of display as they are stored, rounded to 0.01.

    They are changed in place, because what a text names is resolved in them later.
    """
    unit, stored_unit = ctx.caller.load_unit, ctx.caller.company.load_unit
    if unit != stored_unit:
        _store(value, partial(account.convert_entered_load, unit=unit, target=stored_unit))
    return value


def _store(value: Any, convert: Convert) -> None:
    for each in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        _store(each, convert)
    if isinstance(value, dict) and isinstance(value.get("load"), int | float):
        value["load"] = min(convert(value["load"]), float(MAX_LOAD))


async def convert_blocks(ctx: Context, owner: ScheduleOwner, conversion: Conversion) -> LoadCount:
    """Convert the workouts of a client, who is locked, or of a program, in the caller's transaction."""
    writes: list[tuple[Filter, Document | list[Document]]] = []
    total, at = 0, now()
    in_order, private = (owner.day_field, "position", "_id"), ("programCopy", "shiftedDays")
    for block in await store.blocks.find(ctx, owner.block_filter, sort=in_order, including=private):
        items, loads = convert_items(block["items"], conversion.convert)
        if items != block["items"]:
            fields = store.item_fields(items)
            if block.get("programCopy") and block["programCopy"] == summarize_copy(block):
                fields["programCopy"] = summarize_copy({**block, "items": items})
            change = {"$set": {**fields, "updatedAt": at}, "$inc": {"version": 1}}  # that is not one of the history
            writes.append(({"_id": block["_id"]}, change))
            total += loads
    if conversion.is_stored:
        await store.blocks.set_derived_each(ctx, writes)
    return LoadCount(len(writes), total)


async def find_with_load(ctx: Context, without: Sequence[ObjectId]) -> tuple[ObjectId | None] | None:
    """Return the client of a workout with a load, but none of the clients `without`; None if there is none.

    The client is None for a workout of a program.
    """
    sets = ("exerciseSets", "circuitExercises.sets", "customerSets")
    where: Filter = {"$or": [{f"items.{name}.load": {"$type": "number"}} for name in sets]}
    found = await store.blocks.find_one(ctx, where | {"customerId": {"$nin": list(without)}}, ("customerId",))
    return None if found is None else (found["customerId"],)
