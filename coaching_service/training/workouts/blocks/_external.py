"""Workout blocks that another system sends by its own identifier."""

from __future__ import annotations

from collections.abc import Callable

from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.external_identity import Upserted, upsert
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks.contents import change_block
from coaching_service.training.workouts.blocks.models import Block, BlockUpsert, NewBlock
from coaching_service.training.workouts.blocks.owners import ScheduleOwner


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
