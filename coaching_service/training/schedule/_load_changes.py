"""Which planned loads a progression has changed, before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import LOAD
from coaching_service.training.schedule._set_counts import Item, sets_by_exercise
from coaching_service.training.schedule.models import LoadChange


async def list_load_changes(ctx: Context, pairs: Iterable[tuple[Item, Item]]) -> list[LoadChange]:
    """Return how the loads of items have changed, by exercise and load; `pairs` are items before and after."""
    counts = Counter(change for before, after in pairs for change in _find_changes(before, after))
    names = await exercises.get_names(ctx, {exercise_id for exercise_id, _, _ in counts})
    changes: list[LoadChange] = [
        {
            "exerciseId": exercise_id,
            "exerciseName": names[exercise_id]["name"],
            "loadType": names[exercise_id].get("loadType", LOAD),
            "before": before,
            "after": after,
            "sets": count,
        }
        for (exercise_id, before, after), count in counts.items()
    ]
    return sorted(changes, key=lambda change: (change["exerciseName"], change["before"], change["after"]))


def _find_changes(before: Item, after: Item) -> Iterator[tuple[ObjectId, float, float]]:
    """Yield exercise, old and new load of each planned set whose load is different; added and removed sets have none.

    Sets are compared with those of their kind, since working sets may be added before warm-up sets.
    """
    for (exercise_id, old_sets), (_, new_sets) in zip(sets_by_exercise(before), sets_by_exercise(after), strict=True):
        for is_warmup in (True, False):
            old_loads, new_loads = [
                [each.get("load") for each in sets if each["isWarmup"] is is_warmup] for sets in (old_sets, new_sets)
            ]
            for old, new in zip(old_loads, new_loads, strict=False):
                if old is not None and new is not None and old != new:
                    yield exercise_id, old, new
