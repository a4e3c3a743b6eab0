"""Training maximums for assistants."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, format_figure
from coaching_service.core.mcp.results import RaisedLoad, Written, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Number, Text
from coaching_service.library.exercises import service as exercises
from coaching_service.people.account import convert_entered_load, convert_stored_load
from coaching_service.people.customers import service as customers
from coaching_service.training import training_maxes
from coaching_service.training.training_maxes import ReferenceLoads, load_of
from coaching_service.training.workout_text.argument_checks import check_names
from coaching_service.training.workout_text.finding import describe_readings, resolve_exercises
from coaching_service.training.workouts.items.service import load_percent_bases
from coaching_service.training.workouts.sets import MAX_LOAD

tools = Tools()


class TrainingMaxToSet(CustomerArgument):
    """The exercise, and its training maximum."""

    exercise = Text(required=True, metadata={"description": "Its name or _id."})
    value = Number(
        minimum=0.1, maximum=MAX_LOAD, required=True, metadata={"description": "The load, in the client's unit."}
    )


@tools.tool(
    "Set a training maximum",
    access=coach(CUSTOMERS.EDIT),
    takes=TrainingMaxToSet(),
    writes=True,
    locks="customer",
    destructive=True,
    idempotent=True,
    check=check_names,
)
async def set_training_max(ctx: Context, customer_id: ObjectId, exercise: str, value: float) -> Written:
    """Set the load to which a client's planned percentages (`@70%`) of an exercise refer, as in 5/3/1; without it they
    refer to the estimated 1RM."""
    [exercise_id] = await resolve_exercises(ctx, {"exercise": exercise}, customer_id)
    unit, stored_unit = ctx.caller.load_unit, ctx.caller.company.load_unit
    before = (await training_maxes.load_reference_loads(ctx, customer_id, [exercise_id])).get(exercise_id)
    base = (await load_percent_bases(ctx, customer_id, [exercise_id])).get(exercise_id)
    stored = convert_entered_load(value, unit, stored_unit)
    is_set = before is not None and before["trainingMax"] == stored
    if not is_set:
        await training_maxes.set_by_coach(ctx, customer_id, exercise_id, stored)
    customer = await customers.get_visible_reference(ctx, customer_id)
    name = (await exercises.get_names(ctx, [exercise_id]))[exercise_id]["name"]
    raised = [] if base is None else [RaisedLoad(customer_id, exercise_id, base.load_of(100), stored, unit="maximum")]
    about = f"the training maximum of {typed(name)} of {typed(customer['name'])}"
    shown = format_figure(value, f" {unit}")
    line = f"Set {about}: {_describe(before, stored_unit, unit)} → {shown}."
    return Written(
        f"{f'Nothing changed: {about} is {shown} already.' if is_set else line}{describe_readings([exercise], [name])}",
        {"customerId": customer_id, "exerciseId": exercise_id},
        raised=raised,
        details={"value": value},
    )


def _describe(loads: ReferenceLoads | None, unit: str, target: str) -> str:
    """Return the load to which percentages have referred, in the unit `target`."""
    if loads is None or (load := load_of(loads)) is None:
        return "none"
    shown = format_figure(convert_stored_load(load, unit, target), f" {target}")
    return f"{shown} (estimated)" if loads["trainingMax"] is None else shown
