"""What a progression has changed of planned sets, before and after: loads, repetitions, and numbers of sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import LOAD
from coaching_service.training.schedule.models import LoadChange, ProgressionChanges, SetCountChange
from coaching_service.training.workouts.items.input_models import ItemInput
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.sets.models import PlannedSet

Item = ItemInput | WorkItem


class RepChange(NamedTuple):
    """The planned repetitions of sets of an exercise before and after, such as `8-10` and `9-11`."""

    exercise_id: ObjectId
    before: str
    after: str


async def list_changes(ctx: Context, pairs: Iterable[tuple[Item, Item]]) -> ProgressionChanges:
    """Return how loads and numbers of sets have changed, by exercise; `pairs` are items before and after."""
    compared = list(_compare_exercises(pairs))
    loads = Counter(change for each in compared for change in _find_load_changes(*each))
    counts = Counter((each, len(old), len(new)) for each, old, new in compared if len(old) != len(new))
    names = await exercises.get_names(ctx, {exercise_id for exercise_id, _, _ in (*loads, *counts)})
    load_changes: list[LoadChange] = [
        {
            "exerciseId": exercise_id,
            "exerciseName": names[exercise_id]["name"],
            "loadType": names[exercise_id].get("loadType", LOAD),
            "before": before,
            "after": after,
            "sets": count,
        }
        for (exercise_id, before, after), count in loads.items()
    ]
    set_changes: list[SetCountChange] = [
        {
            "exerciseId": exercise_id,
            "exerciseName": names[exercise_id]["name"],
            "before": before,
            "after": after,
            "items": count,
        }
        for (exercise_id, before, after), count in counts.items()
    ]
    return {
        "loadChanges": sorted(load_changes, key=lambda each: (each["exerciseName"], each["before"], each["after"])),
        "setChanges": sorted(set_changes, key=lambda each: (each["exerciseName"], each["before"], each["after"])),
    }


def list_rep_changes(pairs: Iterable[tuple[Item, Item]]) -> list[RepChange]:
    """Return the repetitions that differ, each once; `pairs` are items before and after."""
    changes = [
        RepChange(exercise_id, _describe_reps(old), _describe_reps(new))
        for exercise_id, old_sets, new_sets in _compare_exercises(pairs)
        for old, new in _compare_sets(old_sets, new_sets)
    ]
    return list(dict.fromkeys(change for change in changes if change.before != change.after))


def _find_load_changes(
    exercise_id: ObjectId, old_sets: Sequence[PlannedSet], new_sets: Sequence[PlannedSet]
) -> Iterator[tuple[ObjectId, float, float]]:
    """Yield exercise, old and new load of each set whose load is different; added and removed sets have none."""
    for old, new in _compare_sets(old_sets, new_sets):
        before, after = old.get("load"), new.get("load")
        if before is not None and after is not None and before != after:
            yield exercise_id, before, after


def _describe_reps(planned: PlannedSet) -> str:
    ends = (planned.get("minPlannedReps"), planned.get("maxPlannedReps"))
    return "-".join(dict.fromkeys(str(reps) for reps in ends if reps is not None))


def _compare_exercises(
    pairs: Iterable[tuple[Item, Item]],
) -> Iterator[tuple[ObjectId, list[PlannedSet], list[PlannedSet]]]:
    """Yield the exercises of items with their planned sets before and after."""
    for before, after in pairs:
        for (exercise_id, old), (_, new) in zip(_sets_by_exercise(before), _sets_by_exercise(after), strict=True):
            yield exercise_id, old, new


def _sets_by_exercise(item: Item) -> list[tuple[ObjectId, list[PlannedSet]]]:
    """Return the planned sets of an item for each of its exercises in order, of a circuit in one round."""
    if item["type"] == "EXERCISE":
        return [(item["exerciseId"], item["exerciseSets"])]
    if item["type"] == "CIRCUIT":
        return [(entry["exerciseId"], entry["sets"]) for entry in item["circuitExercises"]]
    return []


def _compare_sets(
    old_sets: Sequence[PlannedSet], new_sets: Sequence[PlannedSet]
) -> Iterator[tuple[PlannedSet, PlannedSet]]:
    """Yield sets before and after with those of their kind, since working sets may be added before warm-up sets."""
    for is_warmup in (True, False):
        old, new = ([each for each in sets if each["isWarmup"] is is_warmup] for sets in (old_sets, new_sets))
        yield from zip(old, new, strict=False)
