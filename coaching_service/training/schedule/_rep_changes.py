"""Which planned repetitions a progression has changed, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coaching_service.core.ids import ObjectId
from coaching_service.training.schedule._set_counts import Item, sets_by_exercise
from coaching_service.training.workouts.sets.models import PlannedSet


class RepChange(NamedTuple):
    """The planned repetitions of sets of an exercise before and after, such as `8-10` and `9-11`."""

    exercise_id: ObjectId
    before: str
    after: str


def list_rep_changes(pairs: Iterable[tuple[Item, Item]]) -> list[RepChange]:
    """Return the repetitions that differ, each once; `pairs` are items before and after."""
    changes = [
        RepChange(exercise_id, old, new)
        for before, after in pairs
        for (exercise_id, old_sets), (_, new_sets) in zip(
            sets_by_exercise(before), sets_by_exercise(after), strict=True
        )
        for is_warmup in (True, False)
        for old, new in zip(_list_reps(old_sets, is_warmup), _list_reps(new_sets, is_warmup), strict=False)
        if old != new
    ]
    return list(dict.fromkeys(changes))


def _list_reps(sets: Sequence[PlannedSet], is_warmup: bool) -> list[str]:
    """Return the repetitions of the sets of one kind: working sets may be added before warm-up sets."""
    ranges = [
        (each.get("minPlannedReps"), each.get("maxPlannedReps")) for each in sets if each["isWarmup"] is is_warmup
    ]
    return ["-".join(dict.fromkeys(str(reps) for reps in each if reps is not None)) for each in ranges]
