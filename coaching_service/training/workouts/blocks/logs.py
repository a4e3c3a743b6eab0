"""Logs of sessions: what clients reported about whole blocks, and blocks to add with their logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.ids import ObjectId
from coaching_service.training.body_weights import service as body_weights
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks import service
from coaching_service.training.workouts.blocks.log_models import BlockLog, LoggedBlock, LogTexts
from coaching_service.training.workouts.blocks.models import Block, BlockContent, BlockFields, StoredBlock
from coaching_service.training.workouts.blocks.owners import ScheduleOwner, block_not_found
from coaching_service.training.workouts.blocks.presentation import present_block
from coaching_service.training.workouts.blocks.session_fields import SESSION_FIELDS, SessionFields
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.references import load_exercises


@transactional
async def add_logged_blocks(ctx: Context, owner: ScheduleOwner, logged: Sequence[LoggedBlock]) -> list[StoredBlock]:
    """Add blocks with what was done in them to the schedule of an owner whose access has been checked.

    Returns the stored blocks. What follows from the logs is up to the caller.
    """
    new: list[BlockContent] = [
        {**new_logged_block(owner, block), "clientTexts": block.get("clientTexts", [])} for block in logged
    ]
    stored = await store.create_many(ctx, await complete_logged_blocks(ctx, owner, new))
    await owner.after_schedule_change(ctx)
    return stored


async def complete_logged_blocks(ctx: Context, owner: ScheduleOwner, new: Sequence[BlockContent]) -> list[BlockContent]:
    """Return blocks to add with the figures that follow from what loads of their exercises mean, and fix their unit."""
    known = await load_exercises(ctx, [item for block in new for item in block["items"]])
    typed = [[items.with_load_types(item, known) for item in block["items"]] for block in new]
    weighed = {
        str(block["date"]) for block, each in zip(new, typed, strict=True) if any(map(items.has_added_loads, each))
    }
    customer_id, unit = owner.block_filter.get("customerId"), ctx.caller.company.load_unit
    weights = {} if customer_id is None else await body_weights.find_on_dates(ctx, customer_id, weighed, unit)
    blocks: list[BlockContent] = [
        {**block, "items": [items.with_body_weight(item, weights.get(str(block["date"]))) for item in each]}
        for block, each in zip(new, typed, strict=True)
    ]
    await service.fix_load_unit(ctx, [item for block in blocks for item in block["items"]], owner)
    return blocks


def new_logged_block(owner: ScheduleOwner, logged: LoggedBlock) -> BlockContent:
    """Return a new block with what was done in it."""
    block = service.new_block(owner, logged["plan"])
    logged_items = []
    for item, log in zip(block["items"], logged["logs"], strict=True):
        logged_item = items.log_item(item, log) if log else item
        completed_at = logged["loggedAt"] if logged_item["isCompleted"] else None
        logged_items.append(cast("WorkItem", {**logged_item, "completedAt": completed_at}))
    report = cast("SessionFields", {name: logged.get(name) for name in SESSION_FIELDS})
    return {**block, "items": logged_items, **report}


async def read_texts(ctx: Context, owner: ScheduleOwner, block_id: ObjectId) -> LogTexts:
    """Return the comment of a block of an owner whose access has been checked, and which texts the client wrote.

    Raises NotFound.
    """
    fields = ("comment", "clientTexts", "items._id", "items.clientTexts")
    block = await store.blocks.find_one(ctx, owner.block_filter | {"_id": block_id}, fields)
    if block is None:
        raise block_not_found()
    return {
        "comment": block["comment"],
        "clientTexts": block.get("clientTexts", []),
        "ofItems": {item["_id"]: item.get("clientTexts", []) for item in block["items"]},
    }


async def log_block(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, log: BlockLog) -> Block:
    """Store what was reported about a session.

    Raises NotFound, Forbidden, and Conflict if the block has changed since `version`.
    """
    await owner.require_access(ctx)
    report = cast("BlockFields", {name: value for name, value in log.items() if name in SESSION_FIELDS})
    fields: BlockFields = {**report, "clientTexts": log.get("clientTexts", [])}
    block = await store.update(ctx, owner.block_filter, block_id, fields, log.get("version"))
    return await present_block(ctx, owner, block)


async def remove_value(ctx: Context, owner: ScheduleOwner, item_id: ObjectId, metric_id: ObjectId) -> None:
    """Remove the value of a metric from the log of an item, if the item still has it, in the caller's transaction."""
    block = await store.blocks.find_one(ctx, owner.block_filter | {"items._id": item_id})
    if block is None:
        return
    changed: list[WorkItem] = []
    for item in block["items"]:
        if item["_id"] == item_id and item["type"] == "METRICS":
            values = [value for value in item["values"] or () if value["metricId"] != metric_id]
            changed.append({**item, "values": values})
        else:
            changed.append(item)
    await owner.set_items(ctx, block, changed)
