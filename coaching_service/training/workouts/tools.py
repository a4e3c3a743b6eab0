"""Workouts for assistants."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import paged
from coaching_service.core.mcp.tools import Tools
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts import item_service, service
from coaching_service.training.workouts.owners import ClientCalendar
from coaching_service.training.workouts.tool_schemas import (
    CalendarDates,
    NewWorkout,
    NewWorkoutItem,
    WorkoutMove,
    as_item,
)

tools = Tools()


@tools.tool("Read workouts", access=coach(CUSTOMERS.VIEW), takes=CalendarDates())
async def get_workouts(
    ctx: Context, customer_id: ObjectId, start_date: str, end_date: str, page: int, page_size: int
) -> Document:
    """Read the workouts on a client's calendar from startDate to endDate (at most three months), in order, a page at a
    time: what is planned, with items, exercises and sets, and what the client did (customerSets, isCompleted). Gives
    docs, the units of loads, times and distances, totalDocs, hasNextPage and nextPage."""
    client, blocks = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.calendar(ctx, ClientCalendar(customer_id), start_date, end_date),
    )
    found = paged(blocks, page, page_size)
    return {"customer": client, "units": _units(ctx), **found, "docs": [_workout(block) for block in found["docs"]]}


def _units(ctx: Context) -> Document:
    return {"load": ctx.caller.company.load_unit, "rest": "s", "seconds": "s", "meters": "m", "durationMinutes": "min"}


def _workout(block: Document) -> Document:
    """A block as assistants read one: nothing that is unset or derived."""
    items = [_told(item, ("createdAt", "updatedAt", "exerciseId", "version")) for item in block["items"]]
    return {**_told(block, ("customerId", "day", "createdAt", "updatedAt")), "items": items}


def _told(value: Any, but: tuple[str, ...] = ()) -> Any:
    if isinstance(value, dict):
        left_out = {*but, "variables", "defaultInstructions"}
        return {key: _told(of) for key, of in value.items() if key not in left_out and of is not None}
    return [_told(each) for each in value] if isinstance(value, list) else value


@tools.tool("Create a workout", access=coach(CUSTOMERS.EDIT), takes=NewWorkout(), writes=True)
async def create_workout(
    ctx: Context, customer_id: ObjectId, date: str, name: str, exercises: list[Document]
) -> Document:
    """Schedule a new workout with its exercises, sets and supersets on a client's calendar, in one call: all or
    nothing. Find exerciseIds with list_exercises. Each call schedules one more workout, so do not repeat it
    blindly. Gives the workout as stored."""
    items = [as_item("exercise", each) for each in exercises]
    block = await item_service.create_block_with(
        ctx, ClientCalendar(customer_id), {"name": name, "date": date, "isRest": False}, items
    )
    return await _answer(ctx, customer_id, block)


async def _answer(ctx: Context, customer_id: ObjectId, block: Document) -> Document:
    return {
        "customer": await customers.get_visible_reference(ctx, customer_id),
        "units": _units(ctx),
        "workout": _workout(block),
    }


@tools.tool("Add to a workout", access=coach(CUSTOMERS.EDIT), takes=NewWorkoutItem(), writes=True)
async def add_workout_item(
    ctx: Context, customer_id: ObjectId, workout_id: ObjectId, **item: Document | None
) -> Document:
    """Add one exercise, task or reminder to the end of a workout that is on a client's calendar. Gives the workout
    with the new item."""
    owner = ClientCalendar(customer_id)
    for kind, given in item.items():
        if given is not None:
            await item_service.add_item(ctx, owner, workout_id, as_item(kind, given))
    return await _answer(ctx, customer_id, await service.read(ctx, owner, workout_id))


@tools.tool("Move a workout item", access=coach(CUSTOMERS.EDIT), takes=WorkoutMove(), writes=True)
async def move_workout_item(
    ctx: Context,
    customer_id: ObjectId,
    item_id: ObjectId,
    from_workout_id: ObjectId,
    to_workout_id: ObjectId,
    index: int,
) -> Document:
    """Move an item within a workout or to another of the same client's; what was logged goes with it. Gives the
    workout it is in now."""
    source = {"wblockId": from_workout_id, "witemId": item_id}
    target = {"wblockId": to_workout_id, "index": index}
    return await _answer(
        ctx, customer_id, await item_service.move_item(ctx, ClientCalendar(customer_id), source, target)
    )
