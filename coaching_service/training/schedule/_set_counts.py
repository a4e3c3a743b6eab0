"""Progression of the number of planned sets: working sets that are added or removed, and how many there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import cast

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.training.schedule.models import SetCountChange, SetsProgression
from coaching_service.training.workouts.items.input_models import ItemInput
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.sets.models import MAX_SETS, PlannedSet

Item = ItemInput | WorkItem


def change_set_count(sets: Sequence[PlannedSet], change: SetsProgression) -> list[PlannedSet]:
    """Return planned sets with more or fewer working sets, numbered again; warm-up sets stay.

    New ones repeat the last working set and follow it; the last ones are removed, but not the first. A percentage is
    rounded half up to whole sets. Without a working set, all stay as they are.
    """
    working = [position for position, planned in enumerate(sets) if not planned["isWarmup"]]
    if not working:
        return [*sets]
    count = len(working)
    wanted = count + change["add"] if "add" in change else _add_percent(count, change["percent"])
    wanted = min(max(wanted, 1), MAX_SETS - (len(sets) - count))
    if wanted == count:
        return [*sets]
    removed = {*working[wanted:]}
    changed = [planned for position, planned in enumerate(sets) if position not in removed]
    if wanted > count:
        after = working[-1] + 1
        changed[after:after] = [sets[working[-1]]] * (wanted - count)
    return [cast("PlannedSet", {**planned, "index": index}) for index, planned in enumerate(changed, 1)]


def _add_percent(count: int, percent: float) -> int:
    exact = Decimal(count) * (100 + Decimal(str(percent))) / 100
    return int(exact.to_integral_value(ROUND_HALF_UP))


def sets_by_exercise(item: Item) -> list[tuple[ObjectId, list[PlannedSet]]]:
    """Return the planned sets of an item for each of its exercises in order, of a circuit in one round."""
    if item["type"] == "EXERCISE":
        return [(item["exerciseId"], item["exerciseSets"])]
    if item["type"] == "CIRCUIT":
        return [(entry["exerciseId"], entry["sets"]) for entry in item["circuitExercises"]]
    return []


async def list_set_changes(ctx: Context, pairs: Iterable[tuple[Item, Item]]) -> list[SetCountChange]:
    """Return how the numbers of planned sets have changed, by exercise; `pairs` are items before and after."""
    counts = Counter(
        (exercise_id, len(before), len(after))
        for old, new in pairs
        for (exercise_id, before), (_, after) in zip(sets_by_exercise(old), sets_by_exercise(new), strict=True)
        if len(before) != len(after)
    )
    names = await exercises.get_names(ctx, {exercise_id for exercise_id, _, _ in counts})
    changes: list[SetCountChange] = [
        {
            "exerciseId": exercise_id,
            "exerciseName": names[exercise_id]["name"],
            "before": before,
            "after": after,
            "items": count,
        }
        for (exercise_id, before, after), count in counts.items()
    ]
    return sorted(changes, key=lambda change: (change["exerciseName"], change["before"], change["after"]))
