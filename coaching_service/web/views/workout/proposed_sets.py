"""The sets proposed for an exercise that is added to a workout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from coaching_service.core.database.documents import Document
from coaching_service.core.validation import Integer, Number
from coaching_service.library.exercises.models import Exercise
from coaching_service.training.workouts.sets.models import MAX_LOAD, MAX_SECONDS, MAX_SETS
from coaching_service.web.views.workout.planned_set_rows import SET_ROW, planned_sets

PROPOSED_SETS = 3
_PROPOSED_SETS_PER_ROUND = 1
_PROPOSED_RANGES = {"reps": (8, 10), "time": (30, 45)}
_UNITS = {"reps": "reps", "time": "s"}
_TIMED_TYPES = ("cardio", "stretching")
_TIMED_TAG = "isometric"
_SET_ROW = SET_ROW()


class SetChoice(TypedDict):
    """The equal sets to plan of an exercise; the number of sets and the range are proposed where they are None."""

    sets: Annotated[int | None, Integer(minimum=1, maximum=MAX_SETS)]
    low: Annotated[float | None, Number(minimum=0)]
    high: Annotated[float | None, Number(minimum=0)]
    load: Annotated[float | None, Number(minimum=0, maximum=MAX_LOAD)]
    rest: Annotated[float | None, Number(minimum=0, maximum=MAX_SECONDS)]


def _set_type(exercise: Mapping[str, Any]) -> str:
    """Return the type of an exercise's sets: `time` for cardio, stretches and isometric holds, else `reps`."""
    is_timed = exercise["type"] in _TIMED_TYPES or _TIMED_TAG in exercise["tags"]
    return "time" if is_timed else "reps"


def describe_proposed_range(exercise: Mapping[str, Any]) -> str:
    """Return the range proposed for an exercise with its unit, seconds or reps."""
    set_type = _set_type(exercise)
    low, high = _PROPOSED_RANGES[set_type]
    return f"{low}–{high} {_UNITS[set_type]}"


def with_proposed_ranges(exercises: Sequence[Exercise]) -> list[Document]:
    """Exercises with `proposed_range`, the range proposed for each."""
    return [{**exercise, "proposed_range": describe_proposed_range(exercise)} for exercise in exercises]


def plan_sets(exercise: Mapping[str, Any], wanted: SetChoice, *, in_circuit: bool) -> list[Document]:
    """Plan equal sets of an exercise. Raises ValidationError if the range does not match the exercise."""
    set_type = _set_type(exercise)
    low, high = wanted["low"], wanted["high"]
    if low is None and high is None:
        low, high = _PROPOSED_RANGES[set_type]
    row = _SET_ROW.load({"type": set_type, "low": low, "high": high, "load": wanted["load"], "rest": wanted["rest"]})
    count = wanted["sets"] or (_PROPOSED_SETS_PER_ROUND if in_circuit else PROPOSED_SETS)
    return planned_sets([row] * count)
