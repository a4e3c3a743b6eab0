"""Planned sets: what each type plans, and the variables derived from it for reading."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from coaching_service.core.database.documents import Document

# The planned fields of each type, beside those every set has.
PLANNED: dict[str, tuple[str, ...]] = {
    "reps_load": ("minPlannedReps", "maxPlannedReps", "load"),
    "reps": ("minPlannedReps", "maxPlannedReps"),
    "time": ("minPlannedSeconds", "maxPlannedSeconds"),
    "time_load": ("minPlannedSeconds", "maxPlannedSeconds", "load"),
    "distance": ("plannedMeters",),
}

_QUANTITIES = (
    *("minPlannedReps", "maxPlannedReps", "load"),
    *("minPlannedSeconds", "maxPlannedSeconds", "plannedMeters", "rest"),
)


def with_variables(planned: Document, load_unit: str) -> Document:
    """A planned set as it is read: with `variables`, each `{key, unit, value}`.

    A value is `{type: "exact", value}`, or `{type: "range", min, max}` where the plan gives two different ends.
    Units: `count`, `load_unit` (`kg` or `lb`), `s`, `m`.
    """
    return {**planned, "variables": _variables(load_unit, *map(planned.get, _QUANTITIES))}


@lru_cache(4096, typed=True)  # the sets of a plan are much the same
def _variables(
    load_unit: str, reps: Any, most_reps: Any, load: Any, seconds: Any, most_seconds: Any, meters: Any, rest: Any
) -> tuple[Document, ...]:
    found = (
        _between("reps", "count", reps, most_reps),
        _between("load", load_unit, load),
        _between("time", "s", seconds, most_seconds),
        _between("distance", "m", meters),
        _between("rest", "s", rest),
    )
    return tuple(variable for variable in found if variable is not None)


def _between(key: str, unit: str, minimum: Any, maximum: Any = None) -> Document | None:
    ends = [end for end in (minimum, maximum) if end is not None]
    if not ends:
        return None
    if ends[0] == ends[-1]:
        return {"key": key, "unit": unit, "value": {"type": "exact", "value": ends[0]}}
    return {"key": key, "unit": unit, "value": {"type": "range", "min": ends[0], "max": ends[1]}}
