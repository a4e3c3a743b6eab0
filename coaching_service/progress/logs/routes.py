"""Logs over REST: by coaches, and by clients in their own session."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.fields import DeferredChange, input_of
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.independent_entries import BatchResult
from coaching_service.core.query import Period, SearchedRange
from coaching_service.core.validation import DryRun
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import ITEM_LOG, SET_LOG, LogUpserts, WorkoutBlockLog
from coaching_service.training.workouts.blocks.models import WORKOUT_BLOCK, Block, BlockLog
from coaching_service.training.workouts.items.models import ITEM_RESPONSE, WorkItem
from coaching_service.training.workouts.sets import CustomerSet

routes = Routes("/coach/customers/{customerId}/wblocks/{wblockId}", tag="Logs", locks="customer")

_ITEM_EXAMPLE = {"isCompleted": True, "customerSets": [{"index": 1, "reps": 8, "load": 60}], "comment": "Felt light"}
_SET_EXAMPLE = {"index": 1, "reps": 8, "load": 60, "loggedAt": "2026-03-02T08:30:00.000Z"}
_BLOCK_EXAMPLE = {"durationMinutes": 55, "sessionRpe": 7, "comment": "Short of time"}


@routes.put(
    "/witems/{witemId}/log", access=coach(CUSTOMERS.EDIT), body=ITEM_LOG, returns=ITEM_RESPONSE, example=_ITEM_EXAMPLE
)
async def log_workout_item(
    ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, witem_id: ObjectId, body: DeferredChange
) -> WorkItem:
    """Log an item.

    Replaces the previous log; `isCompleted: false` marks the item as not completed. Metric values, the form response,
    personal records and the activity feed are updated in the same transaction, and a new text in `pain` becomes a
    health note. Texts that the client wrote (`comment`, `pain` and text answers) stay as they are if they are left out
    or null; other texts are 409 `CLIENT_TEXT`.
    """
    return await logs.log_sent_item(ctx, customer_id, wblock_id, witem_id, body)


@routes.put("/log", access=coach(CUSTOMERS.EDIT), body=WorkoutBlockLog(), returns=WORKOUT_BLOCK, example=_BLOCK_EXAMPLE)
async def log_workout_block(ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, body: BlockLog) -> Block:
    """Log a session: its duration, RPE and comment.

    A comment that the client wrote stays as it is if it is left out or null; another one is 409 `CLIENT_TEXT`.
    """
    return await logs.log_block(ctx, customer_id, wblock_id, body)


upsert_routes = Routes("/coach/customers/{customerId}/logs", tag="Logs", locks="customer")


@upsert_routes.post(
    "/upsert",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=input_of(LogUpserts, DryRun)(),
    rolls_back=True,
    rejects_unknown_fields=True,
    request_class="bulk",
    example={
        "logs": [
            {
                "wblockId": "66f0c0ffee0000000000abcd",
                "items": [{"witemId": "66f0c0ffee0000000000abce", "isCompleted": True, "comment": "Felt light"}],
            }
        ]
    },
)
async def upsert_logs(ctx: Context, customer_id: ObjectId, body: LogUpserts) -> BatchResult:
    """Log items of up to 100 workouts.

    Each entry is saved whole or not at all, whatever the others are: each log replaces the one of its item, and those
    that are stored already are no change. `created` counts the workouts of whose items nothing was logged. `results`
    has the version of each workout, or the errors of its entry. Unknown fields are 400.
    """
    return await logs.upsert_logs(ctx, customer_id, body["logs"])


own_routes = Routes("/customer", tag="The client's own")


@own_routes.get(
    "/wblock", access=customer(), query=SearchedRange(), returns=list_of(WORKOUT_BLOCK), on_worker_thread=True
)
async def list_own_workout_blocks(ctx: Context, query: Period) -> list[Block]:
    """List my workout blocks.

    Only those on days that are visible to the client.
    """
    return await logs.list_own_blocks(ctx, query["startDate"], query["endDate"])


@own_routes.put(
    "/wblocks/{wblockId}/witems/{witemId}/log",
    access=customer(),
    body=ITEM_LOG,
    returns=ITEM_RESPONSE,
    example=_ITEM_EXAMPLE,
)
async def log_own_workout_item(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, body: DeferredChange) -> WorkItem:
    """Log an item of mine."""
    return await logs.log_sent_item(ctx, ctx.caller.id, wblock_id, witem_id, body)


@own_routes.put(
    "/wblocks/{wblockId}/witems/{witemId}/sets",
    access=customer(),
    body=SET_LOG(),
    returns=ITEM_RESPONSE,
    errors=(Conflict,),
    example=_SET_EXAMPLE,
)
async def log_own_set(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, body: CustomerSet) -> WorkItem:
    """Log one set of mine.

    It takes the place of the set of the same exercise, round and index, and of no other; the later `loggedAt` wins, so
    sending it again, or in another order, changes nothing. The item is completed when every planned set has a
    completed one. An item that has been removed, or is in another workout now, is 409 `ITEM_GONE`.
    """
    return await logs.log_own_set(ctx, wblock_id, witem_id, body)


@own_routes.put(
    "/wblocks/{wblockId}/log", access=customer(), body=WorkoutBlockLog(), returns=WORKOUT_BLOCK, example=_BLOCK_EXAMPLE
)
async def log_own_workout_block(ctx: Context, wblock_id: ObjectId, body: BlockLog) -> Block:
    """Log a session of mine: its duration, RPE and comment."""
    return await logs.log_block(ctx, ctx.caller.id, wblock_id, body)
