"""What differs between two versions of a stored workout: its plan, the planned loads, and what was done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

from coaching_service.core.fields import names_of
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.models import SESSION_FIELDS, PlannedBlock
from coaching_service.training.workouts.blocks.service import has_nothing_done
from coaching_service.training.workouts.items.models import PLANNED, WorkItem
from coaching_service.training.workouts.items.service import RECORDED_FIELDS, is_recorded
from coaching_service.training.workouts.items.totals import planned_sets

Workout = Mapping[str, Any]
# An item, None for those of one version only; an exercise; a unit; and whether the sets are warm-up sets.
_Place: TypeAlias = tuple[ObjectId | None, ObjectId, str, bool]
_PLANNED_FIELDS = ("date", *names_of(PlannedBlock), "position")


class LoadChange(NamedTuple):
    """A planned load of an exercise before and after a change.

    `unit` is `load`, in the company's unit, or `percent` of the training maximum.
    """

    exercise_id: ObjectId
    unit: str
    before: float
    after: float


class DayLoads(NamedTuple):
    """The planned loads of an exercise, of each set, on the date of a workout; `unit` as in LoadChange."""

    exercise_id: ObjectId
    unit: str
    date: str
    loads: list[float]


def is_plan_changed(before: Workout, after: Workout) -> bool:
    """Return whether two versions of a workout differ in what is planned; what was done of it does not count."""
    return _plan_of(before) != _plan_of(after)


def _plan_of(workout: Workout) -> list[object]:
    items: list[WorkItem] = workout["items"]
    planned = [[item["_id"], *(item.get(name) for name in names_of(PLANNED[item["type"]]))] for item in items]
    return [planned, *(workout.get(name) for name in _PLANNED_FIELDS)]


def is_done_work_changed(before: Workout, after: Workout | None) -> bool:
    """Return whether something done of a workout is changed, removed, or moved to another day."""
    if has_nothing_done(before):
        return False
    if after is None or before.get("date") != after.get("date"):
        return True
    items = {item["_id"]: item for item in after["items"]}
    recorded = [item for item in before["items"] if is_recorded(item)]
    return any(before.get(name) not in (None, "", after.get(name)) for name in SESSION_FIELDS) or any(
        item["_id"] not in items or any(item.get(name) != items[item["_id"]].get(name) for name in RECORDED_FIELDS)
        for item in recorded
    )


def list_load_changes(before: Workout, after: Workout) -> list[LoadChange]:
    """Return the planned loads that differ between two versions of a workout.

    The sets of an exercise of an item are compared in their order, warm-up sets with warm-up sets; one without a
    counterpart is compared with the highest load of the version before. A new item is compared with removed ones.
    """
    common = {item["_id"] for item in before["items"]} & {item["_id"] for item in after["items"]}
    old, new = _loads_of(before, common), _loads_of(after, common)
    changes: list[LoadChange] = []
    for key, loads in new.items():
        if not (known := old.get(key)):
            continue
        _, exercise_id, unit, _ = key
        for was, becomes in zip_longest(known, loads):
            if becomes is not None and (compared := max(known) if was is None else was) != becomes:
                changes.append(LoadChange(exercise_id, unit, compared, becomes))
    return changes


def list_moved_loads(before: Workout | None, after: Workout | None) -> tuple[list[DayLoads], list[DayLoads]]:
    """Return the planned loads of exercises that are removed from a workout, and those that are added to it.

    `before` or `after` is None where the workout does not exist. A workout that is moved keeps its loads.
    """
    ids = [{item["_id"] for item in workout["items"]} if workout else set() for workout in (before, after)]
    common = ids[0] & ids[1]
    old, new = (_loads_of(workout, common) if workout else {} for workout in (before, after))
    return _of_day(before, old, new), _of_day(after, new, old)


def _of_day(
    workout: Workout | None, loads: Mapping[_Place, list[float]], others: Mapping[_Place, list[float]]
) -> list[DayLoads]:
    """Return the loads of a workout that the other version does not have."""
    return [
        DayLoads(exercise_id, unit, workout["date"], sorted(values))
        for (item_id, exercise_id, unit, is_warmup), values in loads.items()
        if workout is not None and (item_id is None or (item_id, exercise_id, unit, is_warmup) not in others)
    ]


def _loads_of(workout: Workout, common: Set[ObjectId]) -> dict[_Place, list[float]]:
    loads: defaultdict[_Place, list[float]] = defaultdict(list)
    items: list[WorkItem] = workout["items"]
    for item in items:
        item_id = item["_id"] if item["_id"] in common else None
        for exercise_id, planned in planned_sets(item):
            for unit, value in (("load", planned.get("load")), ("percent", planned.get("loadPercent"))):
                if value is not None:
                    loads[item_id, exercise_id, unit, planned["isWarmup"]].append(value)
    return loads
