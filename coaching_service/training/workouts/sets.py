"""Planned sets: what each type plans, and the variables derived from it for reading."""

from __future__ import annotations

from typing import Any

from coaching_service.kernel.storage.documents import Document

# The planned fields of each type, beside those every set has.
PLANNED: dict[str, tuple[str, ...]] = {
    "reps_load": ("minPlannedReps", "maxPlannedReps", "load"),
    "reps": ("minPlannedReps", "maxPlannedReps"),
    "time": ("minPlannedSeconds", "maxPlannedSeconds"),
    "time_load": ("minPlannedSeconds", "maxPlannedSeconds", "load"),
    "distance": ("plannedMeters",),
}


def with_variables(planned: Document, load_unit: str) -> Document:
    """A planned set as it is read: with `variables`, each `{key, unit, value}`.

    A value is `{type: "exact", value}`, or `{type: "range", min, max}` where the plan gives two different ends.
    Units: `count`, `load_unit` (`kg` or `lb`), `s`, `m`.
    """
    found = (
        _between("reps", "count", planned.get("minPlannedReps"), planned.get("maxPlannedReps")),
        _between("load", load_unit, planned.get("load")),
        _between("time", "s", planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds")),
        _between("distance", "m", planned.get("plannedMeters")),
        _between("rest", "s", planned.get("rest")),
    )
    return {**planned, "variables": [variable for variable in found if variable is not None]}


def _between(key: str, unit: str, least: Any, most: Any = None) -> Document | None:
    ends = [end for end in (least, most) if end is not None]
    if not ends:
        return None
    if ends[0] == ends[-1]:
        return {"key": key, "unit": unit, "value": {"type": "exact", "value": ends[0]}}
    return {"key": key, "unit": unit, "value": {"type": "range", "min": ends[0], "max": ends[1]}}
