"""Exercises that can be done in place of another one."""

from __future__ import annotations

from typing import Final

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import ExerciseKind
from coaching_service.library.exercises.store import BY_NAME, exercises
from coaching_service.library.exercises.use_counts import load_use_counts

_FIELDS: Final = ("name", "muscleGroups", "movementPattern")


async def list_alternatives(ctx: Context, exercise_id: ObjectId, count: int) -> list[ExerciseKind]:
    """Return at most `count` exercises with the movement pattern or a primary muscle of an exercise, best first.

    First those with both, then those with the pattern; among these, those that the company plans most, then by name.
    Empty for an exercise of another company.
    """
    exercise = await exercises.find_one(ctx, {"_id": exercise_id}, _FIELDS)
    if exercise is None:
        return []
    muscles = _primary_muscles(exercise)
    pattern = exercise.get("movementPattern")
    alike: list[Filter] = [
        {"muscleGroups": {"$elemMatch": {"_id": {"$in": list(muscles)}, "role": "primary"}}},
        *([{"movementPattern": pattern}] if pattern else []),
    ]
    others = {"deletedAt": None, "_id": {"$ne": exercise_id}, "$or": alike}
    similar, uses = await gather_reads(
        ctx, exercises.find(ctx, others, fields=_FIELDS, hint=BY_NAME), load_use_counts(ctx)
    )

    def rank(each: ExerciseKind) -> tuple[int, int, str]:
        has_pattern = pattern is not None and each.get("movementPattern") == pattern
        has_muscle = bool(muscles & _primary_muscles(each))
        return -(2 * has_pattern + has_muscle), -uses.get(each["_id"], 0), each["name"].casefold()

    return sorted(similar, key=rank)[:count]


async def list_training(ctx: Context, muscle_id: ObjectId) -> set[ObjectId]:
    """Return the exercises that train a muscle most."""
    where: Filter = {"deletedAt": None, "muscleGroups": {"$elemMatch": {"_id": muscle_id, "role": "primary"}}}
    return {each["_id"] for each in await exercises.find(ctx, where, fields=("_id",), hint=BY_NAME)}


async def find_movement(ctx: Context, exercise_id: ObjectId) -> tuple[str, str] | None:
    """Return the movement pattern and the equipment of an exercise, None unless both are known."""
    exercise = await exercises.find_one(ctx, {"_id": exercise_id}, ("movementPattern", "equipment"))
    if exercise is None or not exercise.get("movementPattern") or not exercise["equipment"]:
        return None
    return str(exercise.get("movementPattern")), exercise["equipment"]


def _primary_muscles(exercise: ExerciseKind) -> set[ObjectId]:
    return {muscle["_id"] for muscle in exercise["muscleGroups"] if muscle["role"] == "primary"}
