"""The forms with the planned sets of an exercise, on its card and on a page of its own, and saving what they plan."""

from __future__ import annotations

from typing import Annotated

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Text
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.content import find_index
from coaching_service.training.workouts.items.models import CircuitItem, WorkItem
from coaching_service.training.workouts.items.schemas import ITEM_CHANGE
from coaching_service.web.views.far_values import Confirmation
from coaching_service.web.views.workout.circuits import (
    CircuitExercise,
    Versioned,
    find_circuit,
    position_of,
    replace_exercises,
    with_replaced,
)
from coaching_service.web.views.workout.owner_pages import OpenedWorkout
from coaching_service.web.views.workout.unusual_loads import loads_of, loads_of_item, require_confirmed_loads, row_loads


class SetsForm(Versioned, Confirmation):
    """The planned sets and instructions of an exercise; the schemas of the forms declare the rows of their `sets`."""

    sets: list[Document]
    instructions: Annotated[str | None, Text(max_length=TEXT_LENGTH, allow_blank=True)]


class ExerciseForm(SetsForm):
    """What is planned of an exercise that is not in a circuit."""

    supersetId: Annotated[str | None, Text()]


async def save_exercise(
    ctx: Context, workout: OpenedWorkout, item_id: ObjectId, form: ExerciseForm, sets: list[Document]
) -> WorkItem:
    """Change what an exercise plans, to `sets`. Raises InvalidFields for loads that are unusual and not confirmed."""
    items = (await workout.read(ctx))["items"]
    _require_confirmed(ctx, form, loads_of_item(items[find_index(items, item_id)]))
    change = {
        "exerciseSets": sets,
        "exerciseInstructions": form["instructions"],
        "supersetId": form["supersetId"],
        "version": form["version"],
    }
    return await item_service.update_item(ctx, workout.owner, workout.block_id, item_id, ITEM_CHANGE.load(change))


async def save_circuit_exercise(
    ctx: Context,
    workout: OpenedWorkout,
    item_id: ObjectId,
    exercise_id: ObjectId,
    form: SetsForm,
    sets: list[Document],
) -> CircuitItem:
    """Change what an exercise of a circuit plans, to `sets`; returns the circuit. Raises as save_exercise."""
    circuit = find_circuit(await workout.read(ctx), item_id)
    _require_confirmed(ctx, form, loads_of(circuit["circuitExercises"][position_of(circuit, exercise_id)]["sets"]))
    entry: CircuitExercise = {"exerciseId": str(exercise_id), "sets": sets, "instructions": form["instructions"]}
    entries = with_replaced(circuit, exercise_id, [entry])
    return await replace_exercises(ctx, workout, circuit, entries, form["version"])


def _require_confirmed(ctx: Context, form: SetsForm, known: list[float | None]) -> None:
    require_confirmed_loads(ctx, row_loads("sets", form["sets"]), known, confirmed=form["confirmed"])
