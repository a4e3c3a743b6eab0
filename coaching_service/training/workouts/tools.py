"""MCP tools for workouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import paged
from coaching_service.core.mcp.tools import Tools
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts import block_batches, item_service, service
from coaching_service.training.workouts.models import Block
from coaching_service.training.workouts.schedule_owners import ClientCalendar
from coaching_service.training.workouts.tool_schemas import (
    CalendarDates,
    NewWorkout,
    NewWorkoutItem,
    ToolExerciseArguments,
    WorkoutMove,
    to_exercise_item,
    to_item,
)

tools = Tools()
# Of planned sets, which assistants read only where they differ.
_DEFAULTS: dict[str, Any] = {"isAmrap": False, "perSide": False, "setKind": "normal"}


@tools.tool("Read workouts", access=coach(CUSTOMERS.VIEW), takes=CalendarDates())
async def get_workouts(
    ctx: Context, customer_id: ObjectId, start_date: str, end_date: str, page: int, page_size: int
) -> dict[str, Any]:
    """Read the workouts on a client's calendar from startDate to endDate (at most three months), in order, a page at a
    time: what is planned, with items, exercises and sets, and what the client did (customerSets, isCompleted). A set
    planned with loadPercent has the load that results from it today. Returns docs, the units of loads, times and
    distances, totalDocs, hasNextPage and nextPage."""
    customer, blocks = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.list_blocks(ctx, ClientCalendar(customer_id), start_date, end_date),
    )
    workouts = paged(blocks, page, page_size)
    return {
        "customer": customer,
        "units": _units(ctx),
        **workouts,
        "docs": [_workout(each) for each in workouts["docs"]],
    }


def _units(ctx: Context) -> dict[str, str]:
    return {"load": ctx.caller.company.load_unit, "rest": "s", "seconds": "s", "meters": "m", "durationMinutes": "min"}


def _workout(block: Block) -> dict[str, Any]:
    """Return a block as assistants read it: without fields that are unset or derived."""
    items = [_compact(item, ("createdAt", "updatedAt", "exerciseId", "version")) for item in block["items"]]
    return {**_compact(block, ("customerId", "day", "createdAt", "updatedAt", "items")), "items": items}


def _compact(fields: Mapping[str, Any], omitted: tuple[str, ...]) -> dict[str, Any]:
    return {name: _without_unset(value) for name, value in fields.items() if name not in omitted and value is not None}


def _without_unset(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_unset(inner)
            for name, inner in value.items()
            if name not in ("variables", "defaultInstructions") and inner is not None and inner != _DEFAULTS.get(name)
        }
    return [_without_unset(each) for each in value] if isinstance(value, list) else value


@tools.tool("Create a workout", access=coach(CUSTOMERS.EDIT), takes=NewWorkout(), writes=True)
async def create_workout(
    ctx: Context, customer_id: ObjectId, date: str, name: str, exercises: list[ToolExerciseArguments]
) -> dict[str, Any]:
    """Schedule a new workout with its exercises, sets and supersets on a client's calendar, in one call: all or
    nothing. Find exerciseIds with list_exercises. Each call schedules one more workout, so do not repeat it
    blindly. Returns the workout as stored."""
    items = [to_exercise_item(exercise) for exercise in exercises]
    block = await block_batches.create_block(
        ctx,
        ClientCalendar(customer_id),
        {"name": name, "date": date, "isRest": False, "items": items},
        items_field="exercises",
    )
    return await _result(ctx, customer_id, block)


async def _result(ctx: Context, customer_id: ObjectId, block: Block) -> dict[str, Any]:
    return {
        "customer": await customers.get_visible_reference(ctx, customer_id),
        "units": _units(ctx),
        "workout": _workout(block),
    }


@tools.tool("Add to a workout", access=coach(CUSTOMERS.EDIT), takes=NewWorkoutItem(), writes=True, alias=True)
async def add_workout_item(
    ctx: Context, customer_id: ObjectId, workout_id: ObjectId, **arguments: Any
) -> dict[str, Any]:
    """Add one exercise, task or reminder to the end of a workout that is on a client's calendar. Returns the workout
    with the new item."""
    owner = ClientCalendar(customer_id)
    await item_service.add_item(ctx, owner, workout_id, to_item(**arguments))
    return await _result(ctx, customer_id, await service.read(ctx, owner, workout_id))


@tools.tool("Move a workout item", access=coach(CUSTOMERS.EDIT), takes=WorkoutMove(), writes=True, alias=True)
async def move_workout_item(
    ctx: Context,
    customer_id: ObjectId,
    item_id: ObjectId,
    from_workout_id: ObjectId,
    to_workout_id: ObjectId,
    index: int,
) -> dict[str, Any]:
    """Move an item within a workout or to another of the same client's; its log moves with it. Returns the workout
    that contains it now."""
    block = await item_service.move_item(
        ctx,
        ClientCalendar(customer_id),
        {"wblockId": from_workout_id, "witemId": item_id},
        {"wblockId": to_workout_id, "index": index},
    )
    return await _result(ctx, customer_id, block)
