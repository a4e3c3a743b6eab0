"""Editing what an item plans: sets, circuits, tasks and reminders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from marshmallow import fields

from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Input, ListOf, Text
from coaching_service.training.set_text.planned import parse_planned, write_planned
from coaching_service.training.set_text.scanner import SetTextError
from coaching_service.training.workout_text.lines import Problem, TextError
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.descriptions import describe_item, describe_sets
from coaching_service.training.workouts.items.models import ITEM_CHANGE, PlannedReminder, TaskFields, WorkItem
from coaching_service.training.workouts.sets import MAX_SETS, PlannedSet
from coaching_service.web.pages import Redirect
from coaching_service.web.views.unusual_values import Confirmation
from coaching_service.web.views.workout.item_changes import (
    CircuitForm,
    ExerciseForm,
    SetsForm,
    Versioned,
    find_circuit,
    position_of,
    replace_exercises,
    save_circuit_exercise,
    save_exercise,
    with_replaced,
)
from coaching_service.web.views.workout.owner_pages import CIRCUIT_EXERCISE, ITEM, OpenedWorkout, WorkoutPages
from coaching_service.web.views.workout.planned_set_rows import (
    BLANK_ROWS,
    SET_KINDS,
    SET_ROW,
    SET_TYPES,
    planned_sets,
    set_rows,
)

pages = WorkoutPages()
T = TypeVar("T", bound=Versioned)


class _TaskForm(Versioned, TaskFields):
    """A task."""


class _ReminderForm(Versioned, PlannedReminder):
    """A reminder."""


class _SetTextForm(Versioned, Confirmation):
    setText: Annotated[str, Text(max_length=TEXT_LENGTH)]


class _SetRows(Input):
    sets = ListOf(fields.Nested(SET_ROW), maximum=MAX_SETS + BLANK_ROWS, load_default=list)


@pages.get(ITEM, template="workout/item.html")
async def item_page(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId) -> dict[str, Any]:
    """The form that edits an item."""
    variables = await workout.load_variables(ctx)
    item, unit = _find_item(variables["block"], witem_id), ctx.caller.company.load_unit
    entries = item["circuitExercises"] if item["type"] == "CIRCUIT" else []
    planned = item["exerciseSets"] if item["type"] == "EXERCISE" else []
    return {
        **variables,
        **_set_variables(ctx, planned),
        "version": variables["block"]["version"],
        "item": item,
        "entries": [{**entry, "lines": describe_sets(entry["sets"], unit)} for entry in entries],
        "title": describe_item(item, unit)["title"],
        "set_text": write_planned(planned, unit),
        "item_path": f"{variables['block_path']}/items/{witem_id}",
    }


def _declare_form(path: str, name: str, model: type[T], change_of: Callable[[T], Mapping[str, object]]) -> None:
    async def change_item(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: T) -> Redirect:
        """Change what an item plans."""
        change = ITEM_CHANGE.load({"version": form["version"], **change_of(form)})
        await item_service.update_item(ctx, workout.owner, workout.block_id, witem_id, change)
        return Redirect(workout.path, "Changes saved.")

    change_item.__name__ = name
    pages.post(f"{ITEM}/{path}", form=model, on=item_page)(change_item)


_declare_form("circuit", "change_circuit", CircuitForm, lambda form: form)
_declare_form("task", "change_task", _TaskForm, lambda form: {"taskFields": take(TaskFields, form)})
_declare_form(
    "reminder", "change_reminder", _ReminderForm, lambda form: {"reminderFields": take(PlannedReminder, form)}
)


@pages.post(f"{ITEM}/sets", form=input_of(ExerciseForm, _SetRows)(), on=item_page)
async def change_sets(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: ExerciseForm) -> Redirect:
    """Change the planned sets, the instructions and the superset of an exercise."""
    await save_exercise(ctx, workout, witem_id, form, planned_sets(form["sets"]))
    return Redirect(workout.path, "Changes saved.")


@pages.post(f"{ITEM}/set-text", form=_SetTextForm, on=item_page)
async def change_set_text(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: _SetTextForm) -> Redirect:
    """Replace the planned sets of an exercise by the sets of a text."""
    try:
        sets = parse_planned(form["setText"], ctx.caller.company.load_unit)
    except SetTextError as error:
        raise TextError([Problem("setText", None, str(error), error.problem)]) from None
    change = ITEM_CHANGE.load({"exerciseSets": sets, "version": form["version"]})
    await item_service.update_item(ctx, workout.owner, workout.block_id, witem_id, change)
    return Redirect(workout.path, "Changes saved.")


@pages.get(CIRCUIT_EXERCISE, template="workout/circuit_exercise.html")
async def circuit_exercise_page(
    ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, exercise_id: ObjectId
) -> dict[str, Any]:
    """The form that edits an exercise of a circuit."""
    variables = await workout.load_variables(ctx)
    circuit = find_circuit(variables["block"], witem_id)
    entry = circuit["circuitExercises"][position_of(circuit, exercise_id)]
    return {
        **variables,
        **_set_variables(ctx, entry["sets"]),
        "version": variables["block"]["version"],
        "circuit": circuit,
        "entry": entry,
        "item_path": f"{variables['block_path']}/items/{witem_id}",
    }


@pages.post(CIRCUIT_EXERCISE, form=input_of(SetsForm, _SetRows)(), on=circuit_exercise_page)
async def change_circuit_exercise(
    ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, exercise_id: ObjectId, form: SetsForm
) -> Redirect:
    """Change the sets and instructions of an exercise in a circuit."""
    await save_circuit_exercise(ctx, workout, witem_id, exercise_id, form, planned_sets(form["sets"]))
    return Redirect(f"{workout.path}/items/{witem_id}", "Changes saved.")


@pages.post(f"{CIRCUIT_EXERCISE}/remove", on=item_page, deletes=True)
async def remove_circuit_exercise(
    ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, exercise_id: ObjectId
) -> Redirect:
    """Remove an exercise from a circuit; its logged sets are not deleted."""
    block = await workout.read(ctx)
    circuit = find_circuit(block, witem_id)
    await replace_exercises(ctx, workout, circuit, with_replaced(circuit, exercise_id, []), block["version"])
    return Redirect(f"{workout.path}/items/{witem_id}", "Exercise removed.", part=workout.path)


def _set_variables(ctx: Context, sets: Sequence[PlannedSet]) -> dict[str, Any]:
    unit = ctx.caller.company.load_unit
    return {"rows": set_rows(sets), "set_types": SET_TYPES, "set_kinds": SET_KINDS, "unit": unit}


def _find_item(block: Block, item_id: ObjectId) -> WorkItem:
    return block["items"][items.find_index(block["items"], item_id)]
