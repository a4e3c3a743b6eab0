"""The rows of the form that edits planned sets, whose type says what `low` and `high` count, and proposed sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Annotated, Any, Literal, TypedDict

from marshmallow import ValidationError, validates_schema

from coaching_service.core.database.documents import Document
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default, names_of, take
from coaching_service.core.validation import Input, Integer, Number
from coaching_service.library.exercises.models import Exercise
from coaching_service.training.workouts.sets import (
    MAX_LOAD,
    MAX_METERS,
    MAX_REPS,
    MAX_SECONDS,
    MAX_SETS,
    PlannedLoad,
    PlannedSet,
    SetOptions,
    SetType,
)

SET_TYPES = (
    ("reps_load", "reps with load"),
    ("reps", "reps"),
    ("time_load", "seconds with load"),
    ("time", "seconds"),
    ("distance_load", "meters with load"),
    ("distance", "meters"),
)
SET_KINDS = (("normal", "normal"), ("drop", "drop set"), ("failure", "to failure"))
BLANK_ROWS = 2
_RangeField = Literal["minPlannedReps", "maxPlannedReps", "minPlannedSeconds", "maxPlannedSeconds"]
_RANGE_FIELDS: dict[str, tuple[_RangeField, _RangeField]] = {
    "reps": ("minPlannedReps", "maxPlannedReps"),
    "time": ("minPlannedSeconds", "maxPlannedSeconds"),
}
_MAXIMUM = {"reps": MAX_REPS, "time": MAX_SECONDS, "distance": MAX_METERS}
_COMMON_FIELDS = names_of(SetOptions)
_DEFAULT_VALUES = (None, "", False, "normal")


class _Row(PlannedLoad, SetOptions):
    """A planned set in the form; an existing one has its `index`, `out` removes it."""

    index: Annotated[int | None, Integer(minimum=1, maximum=1_000)]
    type: SetType
    low: Annotated[float | None, Number(minimum=0, maximum=MAX_METERS)]
    high: Annotated[float | None, Number(minimum=0, maximum=MAX_METERS)]
    out: Annotated[bool, Default(False)]


class _RangeOfType(Input):
    @validates_schema
    def validate_range(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a range or load that does not match the type."""
        measure, low, high = _measure(data["type"]), data["low"], data["high"]
        for name in ("low", "high"):
            if data[name] is not None and data[name] > _MAXIMUM[measure]:
                raise ValidationError(f"must not be greater than {_MAXIMUM[measure]}", name)
            if measure == "reps" and data[name] is not None and data[name] % 1:
                raise ValidationError("must be a whole number", name)
        for name in ("load", "loadPercent"):
            if data["type"] == "distance" and data[name] is not None:
                raise ValidationError("must be empty for a set in meters; choose meters with load", name)
        if data["load"] is not None and data["loadPercent"] is not None:
            raise ValidationError("must be empty if there is a load", "loadPercent")
        if measure == "distance" and high is not None:
            raise ValidationError("must be empty for a set in meters", "high")
        if low is not None and high is not None and high < low:
            raise ValidationError("must not be less than the minimum", "high")


SET_ROW = input_of(_Row, _RangeOfType)


def _measure(set_type: str) -> str:
    """Return what a type of set counts: `reps`, `time` or `distance`."""
    return set_type.partition("_")[0]


def set_rows(sets: Sequence[PlannedSet]) -> list[Document]:
    """Return the rows of planned sets, followed by blank rows of the last set's type."""
    rows = [_row(planned) for planned in sets]
    blank = dict.fromkeys(names_of(_Row)) | {"type": rows[-1]["type"] if rows else "reps_load"}
    return [*rows, *[blank] * BLANK_ROWS]


def _row(planned: PlannedSet) -> Document:
    percent = planned.get("loadPercent")
    load = planned.get("load") if percent is None else None  # else it is computed, not entered
    row: Document = {"index": planned["index"], "type": planned["type"], "load": load, "loadPercent": percent}
    row |= {**dict.fromkeys(_COMMON_FIELDS), **take(SetOptions, planned)}
    if range_fields := _RANGE_FIELDS.get(_measure(planned["type"])):
        low, high = range_fields
        return row | {"low": planned.get(low), "high": planned.get(high)}
    return row | {"low": planned.get("plannedMeters"), "high": None}


def planned_sets(rows: Sequence[Document]) -> list[Document]:
    """Return the planned sets of submitted rows, without removed and blank ones; new sets follow the last index."""
    return with_indexes([row for row in rows if row["index"] or _has_value(row)])


def with_indexes(rows: Sequence[Document]) -> list[Document]:
    """Return the planned sets of rows, without removed ones; new sets follow the last index."""
    new_indexes = count(max((row["index"] or 0 for row in rows), default=0) + 1)
    return [_planned_set(row) | {"index": row["index"] or next(new_indexes)} for row in rows if not row["out"]]


def _has_value(row: Document) -> bool:
    names: Iterable[str] = ("low", "high", "load", "loadPercent", *_COMMON_FIELDS)
    return any(row[name] not in _DEFAULT_VALUES for name in names)


def _planned_set(row: Document) -> Document:
    set_type, low, high = row["type"], row["low"], row["high"]
    measure = _measure(set_type)
    common = take(SetOptions, row)
    if measure == "reps":
        low, high = (None if bound is None else int(bound) for bound in (low, high))
    planned_range: Document = {"plannedMeters": low}
    if range_fields := _RANGE_FIELDS.get(measure):
        planned_range = dict(zip(range_fields, (low, high), strict=True))
    loads: Document = {name: row[name] for name in ("load", "loadPercent")}
    if loads == dict.fromkeys(loads) and not set_type.endswith("_load"):
        return {"type": set_type, **planned_range, **common}
    return {"type": f"{measure}_load", **planned_range, **loads, **common}


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
