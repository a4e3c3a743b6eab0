"""Progression of the number of planned sets: working sets that are added or removed."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import cast

from coaching_service.training.schedule.models import SetsProgression
from coaching_service.training.workouts.sets.models import MAX_SETS, PlannedSet


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
