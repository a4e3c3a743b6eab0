"""Workout blocks that another system sends by its own identifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Conflict
from coaching_service.core.external_identity import Upserted, upsert
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.training.workouts import block_batches, items, service, store
from coaching_service.training.workouts.done_work import has_nothing_done
from coaching_service.training.workouts.models import Block, BlockChange, ItemInput, NewBlock
from coaching_service.training.workouts.new_items import create_items
from coaching_service.training.workouts.schedule_owners import ScheduleOwner


async def upsert_external(
    ctx: Context, owner: ScheduleOwner, external_id: str, sent: dict[str, Any], complete: Callable[[], NewBlock]
) -> Upserted:
    """Change the owner's block with this identifier in another system, or create one of what `complete` returns.

    `items` that are sent replace those of the block. Raises NotFound, Forbidden, Conflict if the block has changed
    since `version`, if its items are to be replaced and something of it is done, or if it is of a check-in, and
    ExternalIdTaken if the identifier is that of a block of another owner.
    """

    async def find(tx: Context) -> ObjectId | None:
        await owner.require_access(tx)
        block = await store.find_by_external_id(tx, owner.block_filter, external_id)
        return None if block is None else block["_id"]

    async def create(tx: Context) -> Block:
        return await block_batches.create_block(tx, owner, {**complete(), "externalId": external_id})

    return await upsert(ctx, find, lambda tx, block_id: _change(tx, owner, block_id, sent), create)


@transactional
async def _change(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, sent: dict[str, Any]) -> Block:
    fields = {name: value for name, value in sent.items() if name != "items"}
    changed = await service.change(ctx, owner, block_id, cast("BlockChange", fields))
    return await _replace_items(ctx, owner, block_id, sent["items"]) if "items" in sent else changed


async def _replace_items(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, details: list[ItemInput]) -> Block:
    block = await store.find_one(ctx, owner.block_filter, block_id)
    if block is None:
        raise service.block_not_found()
    if block.get("checkInId") is not None:
        raise Conflict(
            "The workout block belongs to a recurring check-in and takes no other items", code="CHECK_IN_BLOCK"
        )
    if not has_nothing_done(block):
        message = "Something of this workout block is done: its items are not replaced; send it without items"
        raise Conflict(message, code="WORKOUT_LOGGED")
    new_items = await create_items(ctx, details)
    await service.fix_load_unit(ctx, new_items)
    block = await store.set_items(ctx, owner.block_filter, block, new_items)
    await exercises.count_uses(ctx, items.exercise_ids(new_items))
    await owner.after_schedule_change(ctx)
    return await service.present_block(ctx, owner, block)
