"""Changing a workout block together with its items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.conflicts import version_conflict
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Conflict
from coaching_service.core.external_identity import Upserted, find_differences, stored_fields, upsert
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks import service
from coaching_service.training.workouts.blocks.done_work import has_nothing_done
from coaching_service.training.workouts.blocks.models import Block, BlockFields, BlockUpsert, NewBlock, StoredBlock
from coaching_service.training.workouts.blocks.owners import ScheduleOwner
from coaching_service.training.workouts.blocks.presentation import present_block
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.content import match_items
from coaching_service.training.workouts.items.creation import create_items
from coaching_service.training.workouts.items.input_models import ItemInput
from coaching_service.training.workouts.items.models import WorkItem


async def upsert_external(
    ctx: Context, owner: ScheduleOwner, external_id: str, sent: BlockUpsert, complete: Callable[[], NewBlock]
) -> Upserted:
    """Change the owner's block with this identifier in another system, or create one of what `complete` returns.

    `items` that are sent replace the block's, except for equal ones at the same position. What is stored already
    is not a change. Raises NotFound, Forbidden, Conflict if the block has changed since `version`, if its items change
    and something in it is done, or if it is of a check-in, and ExternalIdTaken if the identifier belongs to a block of
    another owner.
    """

    async def find(tx: Context) -> ObjectId | None:
        await owner.require_access(tx)
        block = await store.find_by_external_id(tx, owner.block_filter, external_id)
        return None if block is None else block["_id"]

    async def create(tx: Context) -> Block:
        return await block_batches.create_block(tx, owner, {**complete(), "externalId": external_id})

    permissions = (CUSTOMERS.EDIT, CUSTOMERS.EDIT)
    return await upsert(ctx, find, lambda tx, block_id: change_block(tx, owner, block_id, sent), create, permissions)


@transactional
async def change_block(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, sent: Mapping[str, Any]) -> Block:
    """Change what differs of a block of an owner whose access has been checked; nothing if nothing does.

    `items` replace the block's, except for equal ones at the same position. Raises NotFound, Conflict if the block has
    changed since `version`, if its items change and something in it is done, or if it is of a check-in.
    """
    block = await owner.get_block(ctx, block_id)
    if sent.get("version") not in (None, block["version"]):
        raise version_conflict()
    details = {name: value for name, value in sent.items() if name not in ("items", "version")}
    fields = cast("BlockFields", find_differences(block, stored_fields(details)))
    if "items" in sent and (new_items := await _replace_items(ctx, owner, block, sent["items"])) is not None:
        fields |= store.item_fields(new_items)
    if not fields:
        return await present_block(ctx, owner, block)
    return await service.store_change(ctx, owner, block_id, fields, block["version"])


async def _replace_items(
    ctx: Context, owner: ScheduleOwner, block: StoredBlock, details: list[ItemInput]
) -> list[WorkItem] | None:
    """Return the items to store in place of the block's; None if these have the same plan."""
    unchanged = match_items(block["items"], details)
    if len(unchanged) == len(block["items"]) and None not in unchanged:
        return None
    if block.get("checkInId") is not None:
        raise Conflict(
            "The workout block belongs to a recurring check-in and takes no other items", code="CHECK_IN_BLOCK"
        )
    if not has_nothing_done(block):
        message = "Something of this workout block is done: its items are not replaced; send it without items"
        raise Conflict(message, code="WORKOUT_LOGGED")
    new = {index: item for index, item in enumerate(details) if unchanged[index] is None}
    added = await create_items(ctx, new, block["items"])
    await service.fix_load_unit(ctx, added, owner)
    exercises.count_uses(ctx, items.exercise_ids(added))
    left = iter(added)
    return [previous or next(left) for previous in unchanged]
