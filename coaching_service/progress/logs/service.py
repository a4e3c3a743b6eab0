"""What a client did, and all that follows from it in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import NAME_LENGTH
from coaching_service.core.variants import DeferredChange
from coaching_service.people.activity import service as activity
from coaching_service.people.activity.models import ActivityType
from coaching_service.people.customers import service as customers
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.progress.logs.events import ItemLogged
from coaching_service.progress.metrics import service as metrics
from coaching_service.training.visibility import service as visibility
from coaching_service.training.workouts import item_service
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.items import exercise_ids
from coaching_service.training.workouts.models import (
    Block,
    BlockLog,
    CircuitItem,
    CustomerSet,
    ItemLog,
    StoredBlock,
    WorkItem,
)
from coaching_service.training.workouts.schedule_owners import ClientCalendar

_EVENT: dict[str, ActivityType] = {"FORM": "form_submitted", "METRICS": "metric_recorded"}


async def log_item(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, item_id: ObjectId, log: DeferredChange
) -> WorkItem:
    """Record what was done of an item, in place of what was recorded before; gives the item.

    What it implies follows or is taken back with it: metric values, the form's response, the activity feed. Raises
    InvalidFields, NotFound, Forbidden, and Conflict when the block has moved on since the log's `version`.
    """
    calendar = ClientCalendar(customer_id)
    await calendar.require_access(ctx)
    await _require_shown(ctx, customer_id, block_id)

    def read_log(item: WorkItem) -> ItemLog:
        done = cast("ItemLog", log.as_type(item["type"]))
        if item["type"] == "FORM":
            form_responses.checked(item["form"], done["answers"], whole=done["isCompleted"])
        if item["type"] == "CIRCUIT":
            _require_of_circuit(item, done["customerSets"])
        return done

    async def logged(tx: Context) -> WorkItem:
        # First, so that logs of one client at the same time meet here, before any other work is done twice.
        await customers.record_activity(tx, customer_id)
        block, _ = await item_service.log_item(tx, calendar, block_id, item_id, read_log)
        item = await item_service.present_item(tx, block, item_id)
        await _follow(tx, customer_id, block, item)
        await tx.publish(ItemLogged(customer_id))
        return item

    return await in_transaction(ctx, logged)


async def _follow(ctx: Context, customer_id: ObjectId, block: StoredBlock, item: WorkItem) -> None:
    item_id, day = item["_id"], str(block["date"])
    of_item: Document = {"witemId": item_id, "itemType": item["type"], "itemName": _item_name(item)}
    if item["type"] == "METRICS":
        set_id = item["metricsFields"]["metricsSetId"]
        of_item["measured"] = await metrics.record_logged_values(ctx, customer_id, item_id, set_id, day, item["values"])
    if item["type"] == "FORM":
        await form_responses.log(ctx, customer_id, item_id, item["form"], day, item["answers"])
    event = _EVENT.get(item["type"], "item_logged")
    about = {"wblockId": block["_id"], "blockName": block["name"], "day": day}
    if item["isCompleted"]:
        await activity.record_event(ctx, event, customer_id, item_id, **about, **of_item)
    else:
        await activity.remove_events(ctx, customer_id, item_id, event)
    if workouts.is_completed(block):
        await activity.record_event(ctx, "workout_completed", customer_id, block["_id"], **about)
    else:
        await activity.remove_events(ctx, customer_id, block["_id"], "workout_completed")


def _item_name(item: WorkItem) -> str:
    """The name of an item in the activity feed, at most 200 characters."""
    if item["type"] == "EXERCISE":
        name = item["exercise"]["name"]
    elif item["type"] == "CIRCUIT":
        name = item["circuitName"]
    elif item["type"] == "TASK":
        name = item["taskFields"]["title"]
    elif item["type"] == "FORM":
        name = item["form"]["name"]
    elif item["type"] == "METRICS":
        name = item["metricsFields"]["name"]
    else:
        name = item["reminderFields"]["message"]
    return name[:NAME_LENGTH]


def _require_of_circuit(item: CircuitItem, done: Sequence[CustomerSet]) -> None:
    known = exercise_ids([item])
    for at, each in enumerate(done):
        if each["exerciseId"] not in known:
            raise invalid_field(
                f"customerSets.{at}.exerciseId", "must be an exercise of the circuit", code="UNKNOWN_EXERCISE"
            )
        if each["round"] is not None and each["round"] > item["rounds"]:
            raise invalid_field(
                f"customerSets.{at}.round", f"must not be greater than {item['rounds']}", code="TOO_LARGE"
            )


async def log_block(ctx: Context, customer_id: ObjectId, block_id: ObjectId, done: BlockLog) -> Block:
    """Record what was noted of a session: durationMinutes, sessionRpe (0 to 10), comment; gives the block.

    Raises NotFound, Forbidden, and Conflict when the block has moved on since `version`.
    """
    calendar = ClientCalendar(customer_id)
    await calendar.require_access(ctx)
    await _require_shown(ctx, customer_id, block_id)

    async def logged(tx: Context) -> Block:
        await customers.record_activity(tx, customer_id)
        return await workouts.log_block(tx, calendar, block_id, done)

    return await in_transaction(ctx, logged)


async def own_calendar(ctx: Context, first: str, last: str) -> list[Block]:
    """The asking client's own blocks from `first` to `last` on the days they may see."""
    hidden = await visibility.find_hidden_days(ctx, ctx.caller.id, first, last)
    blocks = await workouts.list_blocks(ctx, ClientCalendar(ctx.caller.id), first, last)
    return [block for block in blocks if block["date"] not in hidden]


async def _require_shown(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> None:
    """A client does not find a block on a day that is hidden from them."""
    if ctx.caller.is_coach:
        return
    block = await workouts.read(ctx, ClientCalendar(customer_id), block_id)
    if await visibility.find_hidden_days(ctx, customer_id, str(block["date"]), str(block["date"])):
        raise workouts.block_not_found()
