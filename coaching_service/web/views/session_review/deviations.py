"""How a logged set differs from the planned one, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypedDict

from coaching_service.training.workouts.items.descriptions import EFFORT_FIELDS, format_number
from coaching_service.training.workouts.sets.models import CustomerSet, PlannedSet
from coaching_service.web.formatting import quantity

DeviationKind = Literal["less", "more", "missed", "extra", "swapped"]
_Bounds = tuple[float | None, float | None]
_UNLIMITED = float("inf")


class Deviation(TypedDict):
    """A difference in words; `less` and `more` than planned, `missed` for a set that was not completed.

    Less assistance than planned is `more`. `swapped` is a set of another exercise.
    """

    kind: DeviationKind
    text: str


def find_deviations(
    planned: PlannedSet | None,
    logged: CustomerSet | None,
    unit: str,
    *,
    same_exercise: bool = True,
    is_assisted: bool = False,
) -> list[Deviation]:
    """Return how a set differs from its plan; loads are in `unit`, and help if the exercise `is_assisted`.

    Amounts that were not logged are taken as planned; amounts of another exercise are not compared.
    """
    if logged is None:
        return [{"kind": "missed", "text": "Not done"}]
    if planned is None:
        return [{"kind": "extra", "text": "Extra set"}]
    differing: list[Deviation] = (
        [*_amounts(planned, logged, unit, is_assisted=is_assisted)]
        if same_exercise
        else [{"kind": "swapped", "text": "Another exercise"}]
    )
    if not logged["isCompleted"]:
        return [{"kind": "missed", "text": "Not completed" if _has_amounts(logged) else "Not done"}, *differing]
    return [*differing, *_efforts(planned, logged)] if same_exercise else differing


def _has_amounts(logged: CustomerSet) -> bool:
    return any((logged["reps"], logged["seconds"], logged["meters"], logged["load"]))


def _amounts(planned: PlannedSet, logged: CustomerSet, unit: str, *, is_assisted: bool) -> Iterator[Deviation]:
    if (reps := _outside(logged["reps"], _reps_of(planned))) is not None:
        yield {"kind": "less" if reps < 0 else "more", "text": f"{quantity(int(abs(reps)), 'rep')} {_word(reps)}"}
    meters, load = planned.get("plannedMeters"), planned.get("load")
    amounts = (
        (logged["seconds"], _bounds(planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds")), "s"),
        (logged["meters"], (meters, meters), "m"),
    )
    for value, bounds, of_value in amounts:
        if (by := _outside(value, bounds)) is not None:
            yield {"kind": "less" if by < 0 else "more", "text": f"{format_number(abs(by), of_value)} {_word(by)}"}
    if (by := _outside(logged["load"], (load, load))) is not None:
        text = f"{format_number(abs(by), unit)} {_word(by)}{' assistance' if is_assisted else ''}"
        yield {"kind": "less" if (by < 0) != is_assisted else "more", "text": text}


def _efforts(planned: PlannedSet, logged: CustomerSet) -> Iterator[Deviation]:
    """RPE and RIR that differ: a higher RPE or a lower RIR is more effort than planned."""
    for name, key in EFFORT_FIELDS:
        value, target = logged[key], planned[key]
        if value is not None and target is not None and value != target:
            is_harder = (value > target) == (key == "rpe")
            text = f"{name} {format_number(value)} instead of {format_number(target)}"
            yield {"kind": "more" if is_harder else "less", "text": text}


def _reps_of(planned: PlannedSet) -> _Bounds:
    low, high = _bounds(planned.get("minPlannedReps"), planned.get("maxPlannedReps"))
    return (low, _UNLIMITED) if planned.get("isAmrap") else (low, high)


def _bounds(low: float | None, high: float | None) -> _Bounds:
    """Return the lowest and the highest value as planned; one alone is both."""
    return (high if low is None else low), (low if high is None else high)


def _outside(value: float | None, bounds: _Bounds) -> float | None:
    """Return by how much a value is below (negative) or above its bounds; None if it is not, or either is missing."""
    low, high = bounds
    if value is None:
        return None
    if low is not None and value < low:
        return value - low
    return value - high if high is not None and value > high else None


def _word(by: float) -> str:
    return "less" if by < 0 else "more"
