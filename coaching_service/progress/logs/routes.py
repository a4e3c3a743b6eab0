"""Logs over REST: by the coach, and by clients themselves in their own session."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach, customer
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import DateRange
from coaching_service.core.variants import DeferredChange
from coaching_service.progress.logs import service
from coaching_service.progress.logs.schemas import ITEM_LOG, WorkoutBlockLog
from coaching_service.training.workouts.models import Block, BlockLog, WorkItem
from coaching_service.training.workouts.schemas import WorkoutBlock, item_response

routes = Routes("/coach/customers/{customerId}/wblocks/{wblockId}", tag="Logs")

_ITEM_EXAMPLE = {"isCompleted": True, "customerSets": [{"index": 1, "reps": 8, "load": 60}], "comment": "Felt light"}
_BLOCK_EXAMPLE = {"durationMinutes": 55, "sessionRpe": 7, "comment": "Short of time"}


@routes.put(
    "/witems/{witemId}/log", access=coach(CUSTOMERS.EDIT), body=ITEM_LOG, returns=item_response(), example=_ITEM_EXAMPLE
)
async def log_workout_item(
    ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, witem_id: ObjectId, body: DeferredChange
) -> WorkItem:
    """Record what was done of an item.

    It replaces what was recorded before; `isCompleted: false` takes it back. Values enter the metrics' history,
    answers become a form response, and the activity feed gets its event, all at once.
    """
    return await service.log_item(ctx, customer_id, wblock_id, witem_id, body)


@routes.put("/log", access=coach(CUSTOMERS.EDIT), body=WorkoutBlockLog(), returns=WorkoutBlock, example=_BLOCK_EXAMPLE)
async def log_workout_block(ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, body: BlockLog) -> Block:
    """Record what was noted of a session."""
    return await service.log_block(ctx, customer_id, wblock_id, body)


own_routes = Routes("/customer", tag="The client's own")


@own_routes.get("/wblock", access=customer(), query=DateRange(), returns=list_of(WorkoutBlock))
async def list_own_workout_blocks(ctx: Context, query: dict[str, Any]) -> list[Block]:
    """Read my calendar.

    A client's own blocks on the days they may see.
    """
    return await service.own_calendar(ctx, query["startDate"], query["endDate"])


@own_routes.put(
    "/wblocks/{wblockId}/witems/{witemId}/log",
    access=customer(),
    body=ITEM_LOG,
    returns=item_response(),
    example=_ITEM_EXAMPLE,
)
async def log_own_workout_item(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, body: DeferredChange) -> WorkItem:
    """Record what I did of an item."""
    return await service.log_item(ctx, ctx.caller.id, wblock_id, witem_id, body)


@own_routes.put(
    "/wblocks/{wblockId}/log", access=customer(), body=WorkoutBlockLog(), returns=WorkoutBlock, example=_BLOCK_EXAMPLE
)
async def log_own_workout_block(ctx: Context, wblock_id: ObjectId, body: BlockLog) -> Block:
    """Record how a session of mine was."""
    return await service.log_block(ctx, ctx.caller.id, wblock_id, body)
