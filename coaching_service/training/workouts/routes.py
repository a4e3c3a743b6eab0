"""A client's workout blocks and items over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.kernel.auth.access import coach
from coaching_service.kernel.auth.permissions import CUSTOMERS
from coaching_service.kernel.query import DateRange
from coaching_service.kernel.rest.routes import Routes, list_of
from coaching_service.kernel.storage.context import Context
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.validation import patch_of
from coaching_service.training.workouts import service
from coaching_service.training.workouts.owners import ClientCalendar
from coaching_service.training.workouts.schemas import ITEM_CHANGE, NEW_ITEM, Block, BlockDetails, item_answer

routes = Routes("/coach/customers/{customerId}", tag="Workouts")

_ITEM_EXAMPLE = {
    "type": "EXERCISE",
    "exerciseId": "66f0c0ffee0000000000abcd",
    "exerciseSets": [{"type": "reps_load", "index": 1, "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60}],
}


@routes.get("/wblock", access=coach(CUSTOMERS.VIEW), query=DateRange(), returns=list_of(Block))
async def calendar(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> list[dict[str, Any]]:
    """Read a client's calendar.

    Every block from `startDate` to `endDate`, both included, with its items, in the order they are done.
    """
    return await service.calendar(ctx, ClientCalendar(customer_id), query["startDate"], query["endDate"])


@routes.post(
    "/wblocks",
    access=coach(CUSTOMERS.EDIT),
    body=BlockDetails(),
    returns=Block,
    example={"name": "Lower body", "date": "2026-03-02"},
)
async def create_block(ctx: Context, customer_id: ObjectId, body: dict[str, Any]) -> dict[str, Any]:
    """Schedule a workout block."""
    return await service.create(ctx, ClientCalendar(customer_id), body)


@routes.get("/wblocks/{wblockId}", access=coach(CUSTOMERS.VIEW), returns=Block)
async def get_block(ctx: Context, customer_id: ObjectId, wblock_id: ObjectId) -> dict[str, Any]:
    """Read a workout block with its items."""
    return await service.read(ctx, ClientCalendar(customer_id), wblock_id)


@routes.patch(
    "/wblocks/{wblockId}",
    access=coach(CUSTOMERS.EDIT),
    body=patch_of(BlockDetails, name="BlockChange"),
    returns=Block,
    example={"date": "2026-03-03", "version": 0},
)
async def change_block(
    ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, body: dict[str, Any]
) -> dict[str, Any]:
    """Change a workout block.

    On another date it goes after the blocks that are there already.
    """
    return await service.change(ctx, ClientCalendar(customer_id), wblock_id, body)


@routes.delete("/wblocks/{wblockId}", access=coach(CUSTOMERS.EDIT))
async def delete_block(ctx: Context, customer_id: ObjectId, wblock_id: ObjectId) -> None:
    """Delete a workout block with its items."""
    await service.remove(ctx, ClientCalendar(customer_id), wblock_id)


@routes.post(
    "/wblocks/{wblockId}/witems",
    access=coach(CUSTOMERS.EDIT),
    body=NEW_ITEM,
    returns=item_answer(),
    example=_ITEM_EXAMPLE,
)
async def add_item(ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, body: dict[str, Any]) -> dict[str, Any]:
    """Add an item to a workout block.

    It goes to the end; the answer is the item.
    """
    return await service.add_item(ctx, ClientCalendar(customer_id), wblock_id, body)


@routes.patch(
    "/wblocks/{wblockId}/witems/{witemId}",
    access=coach(CUSTOMERS.EDIT),
    body=ITEM_CHANGE,
    returns=item_answer(),
    example={"exerciseInstructions": "Pause at the bottom", "version": 1},
)
async def change_item(
    ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, witem_id: ObjectId, body: dict[str, Any]
) -> dict[str, Any]:
    """Change a workout item.

    Its type stays; fields of other types are ignored. `version` is the block's.
    """
    return await service.change_item(ctx, ClientCalendar(customer_id), wblock_id, witem_id, body)


@routes.delete("/wblocks/{wblockId}/witems/{witemId}", access=coach(CUSTOMERS.EDIT))
async def delete_item(ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, witem_id: ObjectId) -> None:
    """Take an item out of a workout block."""
    await service.remove_item(ctx, ClientCalendar(customer_id), wblock_id, witem_id)
