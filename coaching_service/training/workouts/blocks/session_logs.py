"""Logs of sessions: what clients reported about whole blocks, and blocks to add with their logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.database.context import Context, transactional
from coaching_service.core.ids import ObjectId
from coaching_service.training import body_weights
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import WorkItem


@transactional
async def add_logged_blocks(
    ctx: Context, owner: service.ScheduleOwner, logged: Sequence[block_models.LoggedBlock]
) -> list[block_models.StoredBlock]:
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
    ctx: Context, owner: service.ScheduleOwner, new: Sequence[block_models.BlockContent]
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


def new_logged_block(owner: service.ScheduleOwner, logged: block_models.LoggedBlock) -> block_models.BlockContent:
    """Return a new block with what was done in it."""
    block = service.new_block(owner, logged["plan"])
    logged_items = []
    for item, log in zip(block["items"], logged["logs"], strict=True):
        logged_item = items.log_item(item, log) if log else item
        completed_at = logged["loggedAt"] if logged_item["isCompleted"] else None
        logged_items.append(cast("WorkItem", {**logged_item, "completedAt": completed_at}))
    report = cast("block_models.SessionFields", {name: logged.get(name) for name in block_models.SESSION_FIELDS})
    return {**block, "items": logged_items, **report}


async def read_texts(ctx: Context, owner: service.ScheduleOwner, block_id: ObjectId) -> block_models.LogTexts:
    """Return date and comment of a block of an owner whose access has been checked, and which texts the client wrote.

    Raises NotFound.
    """
    fields = ("date", "comment", "clientTexts", "items._id", "items.clientTexts")
    block = await store.blocks.find_one(ctx, owner.block_filter | {"_id": block_id}, fields)
    if block is None:
        raise service.block_not_found()
    return {
        "date": block["date"],
        "comment": block["comment"],
        "clientTexts": block.get("clientTexts", []),
        "ofItems": {item["_id"]: item.get("clientTexts", []) for item in block["items"]},
    }


async def log_block(
    ctx: Context, owner: service.ScheduleOwner, block_id: ObjectId, log: block_models.BlockLog
) -> block_models.Block:
    """Store what was reported about a session.

    Raises NotFound, Forbidden, and Conflict if the block has changed since `version`.
    """
    await owner.require_access(ctx)
    report = cast(
        "block_models.BlockFields", {name: value for name, value in log.items() if name in block_models.SESSION_FIELDS}
    )
    fields: block_models.BlockFields = {**report, "clientTexts": log.get("clientTexts", [])}
    block = await store.update(ctx, owner.block_filter, block_id, fields, log.get("version"))
    return await service.present_block(ctx, owner, block)


async def remove_value(ctx: Context, owner: service.ScheduleOwner, item_id: ObjectId, metric_id: ObjectId) -> None:
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
