"""Exercises that can be done in place of another one."""

from __future__ import annotations

from collections.abc import Mapping

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import store
from coaching_service.library.exercises.models import ExerciseKind
from coaching_service.library.exercises.use_counts import load_use_counts


async def list_alternatives(ctx: Context, exercise_id: ObjectId, count: int) -> list[ExerciseKind]:
    """Return at most `count` exercises with the movement pattern or a primary muscle of an exercise, best first.

    First those with both, then those with the pattern; among these, those that the company plans most, then by name.
    Empty for an exercise of another company.
    """
    exercise = await store.find_kind(ctx, exercise_id)
    if exercise is None:
        return []
    muscles = _primary_muscles(exercise)
    pattern = exercise.get("movementPattern")
    similar, uses = await gather_reads(
        ctx, store.find_similar(ctx, exercise_id, pattern, list(muscles)), load_use_counts(ctx)
    )

    def rank(each: ExerciseKind) -> tuple[int, int, str]:
        has_pattern = pattern is not None and each.get("movementPattern") == pattern
        has_muscle = bool(muscles & _primary_muscles(each))
        return -(2 * has_pattern + has_muscle), -_count(uses, each), each["name"].casefold()

    return sorted(similar, key=rank)[:count]


def _primary_muscles(exercise: ExerciseKind) -> set[ObjectId]:
    return {muscle["_id"] for muscle in exercise["muscleGroups"] if muscle["role"] == "primary"}


def _count(uses: Mapping[ObjectId, int], exercise: ExerciseKind) -> int:
    return uses.get(exercise["_id"], 0)
