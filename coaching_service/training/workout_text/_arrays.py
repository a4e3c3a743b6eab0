"""Items from the arrays that tools also accept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from coaching_service.core.database.context import Context
from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.training.workout_text.lines import read_planned
from coaching_service.training.workout_text.mentions import resolve_exercises
from coaching_service.training.workout_text.tool_schemas import ToolExerciseArguments, ToolSetArguments
from coaching_service.training.workouts.blocks.load_conversion import store_loads
from coaching_service.training.workouts.items.input_models import ItemInput
from coaching_service.training.workouts.sets.models import PlannedSet, SetOptions


async def to_exercise_items(
    ctx: Context, customer_id: ObjectId, entries: Sequence[ToolExerciseArguments]
) -> list[ItemInput]:
    """Return exercises with their sets as items. Raises InvalidFields for names and sets that cannot be read."""
    exercises = {f"exercises.{index}": each for index, each in enumerate(entries)}  # by their path in the request
    errors: list[FieldError] = []
    sets: dict[str, list[PlannedSet]] = {}
    for path, each in exercises.items():
        try:
            sets[path] = _read_sets(each["sets"], ctx.caller.load_unit, f"{path}.sets")
        except InvalidFields as error:
            errors += error.errors
    named = {path: str(each["name"]) for path, each in exercises.items() if each["exerciseId"] is None}
    try:
        resolved = await resolve_exercises(ctx, {f"{path}.name": name for path, name in named.items()}, customer_id)
    except InvalidFields as error:
        errors += error.errors
    if errors:
        raise InvalidFields(errors)
    ids = dict(zip(named, resolved, strict=True))
    read = [_to_item(each, each["exerciseId"] or ids[path], sets[path]) for path, each in exercises.items()]
    return store_loads(read, ctx)


def _to_item(exercise: ToolExerciseArguments, exercise_id: ObjectId, sets: list[PlannedSet]) -> ItemInput:
    return {
        "type": "EXERCISE",
        "exerciseId": exercise_id,
        "exerciseSets": sets,
        "exerciseInstructions": exercise["instructions"],
        "supersetId": exercise["superset"],
    }


def _read_sets(sets: str | list[ToolSetArguments], load_unit: str, path: str) -> list[PlannedSet]:
    return read_planned(sets, load_unit, path) if isinstance(sets, str) else _planned_sets(sets)


def _planned_sets(sets: Iterable[ToolSetArguments]) -> list[PlannedSet]:
    repeated = [each for each in sets for _ in range(each["count"])]
    return [_planned_set(index, each) for index, each in enumerate(repeated, 1)]


def _planned_set(index: int, sent: ToolSetArguments) -> PlannedSet:
    planned = cast("PlannedSet", {"index": index, "type": "reps", **take(SetOptions, sent)})
    has_load = sent["load"] is not None or sent["loadPercent"] is not None
    if has_load:
        planned["load"], planned["loadPercent"] = sent["load"], sent["loadPercent"]
    if sent["meters"] is not None:
        planned["type"] = "distance_load" if has_load else "distance"
        return {**planned, "plannedMeters": sent["meters"]}
    if sent["seconds"] is not None:
        planned["type"] = "time_load" if has_load else "time"
        return {**planned, "minPlannedSeconds": sent["seconds"], "maxPlannedSeconds": sent["seconds"]}
    planned["type"] = "reps_load" if has_load else "reps"
    return {**planned, "minPlannedReps": sent["reps"], "maxPlannedReps": sent["repsMax"] or sent["reps"]}
