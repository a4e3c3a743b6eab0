"""A client's workout blocks and items over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import DateRange
from coaching_service.core.validation import patch_of
from coaching_service.training.workouts import service
from coaching_service.training.workouts.declaring import Kind, declare_blocks, declare_items
from coaching_service.training.workouts.owners import ClientCalendar
from coaching_service.training.workouts.schemas import (
    NewWorkoutBlock,
    WorkoutBlockCopy,
    WorkoutBlockShift,
    WorkoutBlockShiftResult,
)

routes = Routes("/coach/customers/{customerId}", tag="Workouts")

_CLIENT = Kind(
    noun="Workout",
    owner=ClientCalendar,
    view=coach(CUSTOMERS.VIEW),
    edit=coach(CUSTOMERS.EDIT),
    between=DateRange(),
    when=("startDate", "endDate"),
    new=NewWorkoutBlock(),
    change=patch_of(NewWorkoutBlock, name="WorkoutBlockChange"),
    place=WorkoutBlockCopy(),
    example={"name": "Lower body", "date": "2026-03-02"},
)
declare_blocks(routes, _CLIENT)
declare_items(routes, _CLIENT)


@routes.post(
    "/wblocks/shift",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=WorkoutBlockShift(),
    returns=WorkoutBlockShiftResult,
    example={"from": "2026-03-02", "days": 7},
)
async def shift_workout_blocks(ctx: Context, customer_id: ObjectId, body: dict[str, Any]) -> dict[str, Any]:
    """Shift a client's blocks.

    Every block from that date on that has nothing done moves by so many days, back where the number is negative.
    """
    return {"shifted": await service.shift(ctx, ClientCalendar(customer_id), body["from"], body["days"])}
