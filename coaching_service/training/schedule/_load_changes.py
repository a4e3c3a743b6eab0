"""Which planned loads a progression has changed, before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import cast

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import LOAD
from coaching_service.training.schedule.models import LoadChange
from coaching_service.training.workouts.items.models import ItemInput, WorkItem
from coaching_service.training.workouts.items.totals import planned_sets

Item = ItemInput | WorkItem


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
    """Yield exercise, old and new load of each planned set whose load is different."""
    # What is planned is in the same fields of a new item and of a stored one.
    pairs = zip(planned_sets(cast("WorkItem", before)), planned_sets(cast("WorkItem", after)), strict=True)
    for (exercise_id, old), (_, new) in pairs:
        old_load, new_load = old.get("load"), new.get("load")
        if old_load is not None and new_load is not None and old_load != new_load:
            yield exercise_id, old_load, new_load
