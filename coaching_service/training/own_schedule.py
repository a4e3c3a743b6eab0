"""What clients change of their calendar: workouts that they move, and workouts of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.auth import customer
from coaching_service.core.database.context import Context, gather_reads, transactional, version_conflict
from coaching_service.core.errors import Conflict, Forbidden, NotFound, invalid_field
from coaching_service.core.fields import Change, Default, Description, input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, ListOf, Version, patch_of
from coaching_service.people import account
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import service as customers
from coaching_service.training import visibility
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import WORKOUT_BLOCK, Block, BlockName, BlockPlan, StoredBlock
from coaching_service.training.workouts.blocks.service import ClientCalendar, block_not_found, has_nothing_done
from coaching_service.training.workouts.items.models import NEW_WORKOUT_ITEM, ItemInput
from coaching_service.training.workouts.items.service import MAX_ITEMS, resolve_items
from coaching_service.training.workouts.shared_routes import ITEM_EXAMPLE

# --- Changes of clients to their calendar as they are sent ------------------------------------------------------------


class WorkoutDate(TypedDict):
    """The day of a workout."""

    date: Annotated[str, CalendarDate()]


class WorkoutMove(WorkoutDate):
    """The day to move a workout to."""

    version: NotRequired[Annotated[int, Version()]]


class NewOwnWorkout(BlockName, WorkoutDate):
    """A workout that a client adds to the own calendar."""

    items: Annotated[
        list[ItemInput],
        ListOf(NEW_WORKOUT_ITEM, maximum=MAX_ITEMS),
        Default(list),
        Description("Exercises, circuits and tasks, in order. Default: none."),
    ]


OwnWorkoutChange: TypeAlias = Change[NewOwnWorkout]

DAYS_TO_MOVE = 7
_Right = Literal["clientsMayMove", "clientsMayAdd"]
own_routes = Routes("/customer/wblocks", tag="The client's own")


@own_routes.put(
    "/{wblockId}/date",
    access=customer(),
    returns=WORKOUT_BLOCK,
    errors=(Conflict,),
    example={"date": "2026-03-02"},
    operation_id="moveOwnWorkoutBlock",
)
@transactional
async def move(ctx: Context, wblock_id: ObjectId, body: WorkoutMove) -> Block:
    """Move a workout of mine to another day.

    To a visible day at most 7 days from the coach's, which `plannedDate` states afterwards; it goes after the workouts
    of that day. Something done in it is 409 `WORKOUT_LOGGED`; 403 `CLIENT_MOVES_OFF` if the account has no
    `clientsMayMove`.
    """
    day = body["date"]
    calendar, block = await _begin(ctx, wblock_id, body.get("version"))
    is_own = block.get("createdBy") == "client"
    await _require_right(ctx, "clientsMayAdd" if is_own else "clientsMayMove")
    await _require_visible(ctx, day)
    if block.get("checkInId") is not None:
        raise Conflict("The workout block belongs to a recurring check-in and stays on its day", code="CHECK_IN_BLOCK")
    if not has_nothing_done(block):
        raise Conflict("Something of this workout is done: it stays on its day", code="WORKOUT_LOGGED")
    current = str(block["date"])
    if is_own:
        return await _change_own(ctx, calendar, wblock_id, {"date": day})
    planned = block.get("plannedDate") or current
    if abs((date.fromisoformat(day) - date.fromisoformat(planned)).days) > DAYS_TO_MOVE:
        raise invalid_field("date", f"must be within {DAYS_TO_MOVE} days of {planned}", code="TOO_FAR")
    if day == current:
        return await workouts.get(ctx, calendar, wblock_id)
    if day == planned:  # it counts as not moved
        await activity.delete_events(ctx, calendar.customer_id, wblock_id, "workout_moved")
        return await workouts.store_change(ctx, calendar, wblock_id, {"date": day}, None)
    fields = ("date", "order") if block.get("plannedDate") else ("date", "order", "plannedDate")
    await activity.record_event(
        *(ctx, "workout_moved", calendar.customer_id, wblock_id, "new", fields),
        wblockId=wblock_id,
        blockName=block["name"],
        day=day,
        plannedDate=planned,
    )
    return await workouts.store_change(ctx, calendar, wblock_id, {"date": day, "plannedDate": planned}, None)


@own_routes.post(
    "",
    access=customer(),
    returns=WORKOUT_BLOCK,
    errors=(NotFound,),
    example={"name": "Run with friends", "date": "2026-03-07", "items": [ITEM_EXAMPLE]},
    operation_id="createOwnWorkoutBlock",
)
@transactional
async def create(ctx: Context, body: NewOwnWorkout) -> Block:
    """Add a workout of my own.

    `createdBy` is `client`; compliance counts its day only when it is completed. 403 `CLIENT_WORKOUTS_OFF` if the
    account has no `clientsMayAdd`.
    """
    calendar = ClientCalendar(ctx.caller.id)
    await customers.lock_active(ctx, calendar.customer_id)
    await _require_right(ctx, "clientsMayAdd")
    await _require_visible(ctx, body["date"])
    [items] = await resolve_items(ctx, {"items": body["items"]})
    plan: BlockPlan = {
        "name": body["name"],
        "isRest": False,
        "date": body["date"],
        "items": items,
        "createdBy": "client",
    }
    days = await batches.read_days(ctx, calendar, {"$eq": body["date"]})
    block = (await batches.apply(ctx, calendar, batches.Batch(created=[plan]), days))["created"][0]
    await activity.record_event(ctx, "workout_added", calendar.customer_id, block["_id"], **_feed_data(block))
    return block


@own_routes.patch(
    "/{wblockId}",
    access=customer(),
    body=patch_of(input_of(NewOwnWorkout), name="OwnWorkoutChange"),
    returns=WORKOUT_BLOCK,
    errors=(Conflict,),
    example={"name": "Run in the park", "version": 0},
    operation_id="updateOwnWorkoutBlock",
)
@transactional
async def update(ctx: Context, wblock_id: ObjectId, body: OwnWorkoutChange) -> Block:
    """Change a workout that I added.

    `items` replace its items: 409 `WORKOUT_LOGGED` if something in it is done. A workout of a coach is 403
    `PLANNED_BY_COACH`.
    """
    calendar, _ = await _begin_own(ctx, wblock_id)
    if "date" in body:
        await _require_visible(ctx, body["date"])
    return await _change_own(ctx, calendar, wblock_id, body)


@own_routes.delete("/{wblockId}", access=customer(), operation_id="deleteOwnWorkoutBlock")
@transactional
async def delete(ctx: Context, wblock_id: ObjectId) -> None:
    """Delete a workout that I added, with what was logged in it."""
    calendar, _ = await _begin_own(ctx, wblock_id)
    await workouts.delete(ctx, calendar, wblock_id)
    await activity.delete_events(ctx, calendar.customer_id, wblock_id, "workout_added")


@transactional
async def add_items(ctx: Context, block_id: ObjectId, items: Sequence[ItemInput]) -> None:
    """Add items to a workout that the caller, a client, has added. Raises as `update`."""
    calendar, _ = await _begin_own(ctx, block_id)
    for item in items:
        await block_items.create_item(ctx, calendar, block_id, item)


@transactional
async def delete_item(ctx: Context, block_id: ObjectId, item_id: ObjectId) -> None:
    """Remove an item from a workout that the caller, a client, has added. Raises as `update`."""
    calendar, _ = await _begin_own(ctx, block_id)
    await block_items.delete_item(ctx, calendar, block_id, item_id)


async def get_own(ctx: Context, block_id: ObjectId) -> Block:
    """Return a workout that the caller, a client, has added. Raises NotFound, Forbidden as `update`."""
    block: Block
    _, block = await gather_reads(
        ctx, _require_right(ctx, "clientsMayAdd"), workouts.get(ctx, ClientCalendar(ctx.caller.id), block_id)
    )
    if not await _is_visible(ctx, str(block["date"])):
        raise block_not_found()
    _require_own(block)
    return block


async def list_days_to_move(ctx: Context, blocks: Sequence[Block]) -> dict[ObjectId, list[str]]:
    """Return the other days to which the caller, a client, may move each of their blocks; none for those that stay."""
    rights = await account.get_account(ctx)
    dates: dict[ObjectId, list[str]] = {}
    for block in blocks:
        right: _Right = "clientsMayAdd" if block.get("createdBy") == "client" else "clientsMayMove"
        if block.get("checkInId") is None and rights[right] and has_nothing_done(block):
            middle = date.fromisoformat(str(block.get("plannedDate") or block["date"])).toordinal()
            near = range(max(1, middle - DAYS_TO_MOVE), min(date.max.toordinal(), middle + DAYS_TO_MOVE) + 1)
            dates[block["_id"]] = [str(date.fromordinal(number)) for number in near]
    if not dates:
        return {}
    known = [day for days in dates.values() for day in days]
    visible = await visibility.find_visibility(ctx, ctx.caller.id, min(known), max(known))
    return {
        block["_id"]: [day for day in dates[block["_id"]] if day != block["date"] and visible.allows(day=day)]
        for block in blocks
        if block["_id"] in dates
    }


async def _begin(ctx: Context, block_id: ObjectId, version: int | None = None) -> tuple[ClientCalendar, StoredBlock]:
    """Lock the caller, a client, and return their calendar with a block of it. Raises NotFound for a hidden day."""
    calendar = ClientCalendar(ctx.caller.id)
    await customers.lock_active(ctx, calendar.customer_id)
    block = await calendar.find_block(ctx, block_id)
    if block is None or not await _is_visible(ctx, str(block["date"])):
        raise block_not_found()
    if version not in (None, block["version"]):
        raise version_conflict()
    return calendar, block


async def _begin_own(ctx: Context, block_id: ObjectId) -> tuple[ClientCalendar, StoredBlock]:
    """Do what `_begin` does for a block that the client has added. Raises Forbidden for another one."""
    calendar, block = await _begin(ctx, block_id)
    _require_own(block)
    await _require_right(ctx, "clientsMayAdd")
    return calendar, block


async def _change_own(ctx: Context, calendar: ClientCalendar, block_id: ObjectId, change: OwnWorkoutChange) -> Block:
    """Change a workout that its client has added, and the entry in the feed about it."""
    block = await batches.change_block(ctx, calendar, block_id, change)
    await activity.correct_events(ctx, ["workout_added"], calendar.customer_id, [block_id], **_feed_data(block))
    return block


def _require_own(block: Mapping[str, Any]) -> None:
    if block.get("createdBy") != "client":
        raise Forbidden("Your coach has planned this workout: it is theirs to change", code="PLANNED_BY_COACH")


async def _require_right(ctx: Context, right: _Right) -> None:
    if (await account.get_account(ctx))[right]:
        return
    if right == "clientsMayMove":
        raise Forbidden("Your coach has turned off moving workouts", code="CLIENT_MOVES_OFF")
    raise Forbidden("Your coach has turned off adding workouts", code="CLIENT_WORKOUTS_OFF")


async def _require_visible(ctx: Context, day: str) -> None:
    if not await _is_visible(ctx, day):
        raise invalid_field("date", "is not a day of your calendar", code="HIDDEN_DAY")


async def _is_visible(ctx: Context, day: str) -> bool:
    return (await visibility.find_visibility(ctx, ctx.caller.id, day, day)).allows(day=day)


def _feed_data(block: Block) -> dict[str, object]:
    return {"wblockId": block["_id"], "blockName": block["name"], "day": block["date"]}
