"""The rows of planned sets on the card of an exercise: one field for each quantity, in which `8-10` is a range."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.database.documents import Document
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.validation import Input, Integer, Number
from coaching_service.training.workouts.sets.models import (
    MAX_METERS,
    MAX_REPS,
    MAX_SECONDS,
    PlannedLoad,
    PlannedSet,
    SetOptions,
    SetType,
)
from coaching_service.web.views.workout.planned_set_rows import with_indexes

Bounds = tuple[float | None, float | None]
_NUMBER = r"\d{1,15}(?:[.,]\d{1,15})?"
_RANGE = re.compile(rf"({_NUMBER})?(?:\s*([-–])\s*({_NUMBER})?)?", re.ASCII)
_MEASURES = ("reps", "time", "distance")
_MARKS: tuple[Literal["isWarmup", "isAmrap", "perSide", "setKind"], ...] = (
    "isWarmup",
    "isAmrap",
    "perSide",
    "setKind",
)
_EFFORTS: tuple[Literal["rest", "rpe", "rir"], ...] = ("rest", "rpe", "rir")
# The columns of a card in their order: the name of the field, its label, and the keys that a phone shows.
COLUMNS = (
    ("reps", "Reps", "text"),
    ("time", "Time, s", "text"),
    ("distance", "Distance, m", "decimal"),
    ("load", "Load", "decimal"),
    ("loadPercent", "% of max", "decimal"),
    ("rest", "Rest, s", "decimal"),
    ("rpe", "RPE", "decimal"),
    ("rir", "RIR", "decimal"),
    ("tempo", "Tempo", "text"),
)
_FIRST_COLUMNS = ("reps", "load", "rest")


class Range(fields.Field[Bounds]):
    """A number or a range: `8`, `8-10`, `-10` for at most ten. `is_integer`: without decimals."""

    def __init__(self, maximum: float, *, is_integer: bool = False) -> None:
        self.maximum, self.is_integer = maximum, is_integer
        super().__init__(allow_none=True, load_default=None)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> Bounds:
        match = _RANGE.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None or (match[1] is None and match[3] is None):
            raise ValidationError("must be a number such as 8, or a range such as 8-10")
        low, high = (None if text is None else float(text.replace(",", ".")) for text in (match[1], match[3]))
        for bound in (low, high):
            if bound is not None and bound > self.maximum:
                raise ValidationError(f"must not be greater than {self.maximum}")
            if self.is_integer and bound is not None and bound % 1:
                raise ValidationError("must be whole numbers")
        if low is not None and high is not None and high < low:
            raise ValidationError("must end with the greater number")
        return low, high


class _Row(PlannedLoad, SetOptions):
    """A planned set on a card; an existing one has its `index` and its stored `type`, `out` removes it."""

    index: Annotated[int | None, Integer(minimum=1, maximum=1_000)]
    type: Annotated[SetType, Default("reps_load")]
    reps: Annotated[Bounds | None, Range(MAX_REPS, is_integer=True)]
    time: Annotated[Bounds | None, Range(MAX_SECONDS)]
    distance: Annotated[float | None, Number(minimum=0, maximum=MAX_METERS)]
    out: Annotated[bool, Default(False)]


class _OneQuantity(Input):
    @validates_schema
    def measures_one_quantity(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a set with two of reps, time and distance, or two loads."""
        measures = [name for name in _MEASURES if data[name] is not None]
        if len(measures) > 1:
            raise ValidationError(f"must be empty for a set with {measures[0]}", measures[1])
        if data["load"] is not None and data["loadPercent"] is not None:
            raise ValidationError("must be empty if there is a load", "loadPercent")


CARD_ROW = input_of(_Row, _OneQuantity)


def card_rows(sets: Sequence[PlannedSet]) -> list[Document]:
    """Return the rows of planned sets, each value as the text in its field."""
    return [_row(planned) for planned in sets]


def used_columns(rows: Sequence[Mapping[str, Any]], wrong: Collection[str] = ()) -> set[str]:
    """Return the columns with a value in one of the `rows`, or an error: `wrong` has the names of invalid fields."""
    names = {name for name, _, _ in COLUMNS}
    used = {name for name in names if any(row.get(name) for row in rows)}
    used |= names & {field.rpartition(".")[2] for field in wrong}
    return used if used & {*_MEASURES} else {*used, "reps"} if used else {*_FIRST_COLUMNS}


def _row(planned: PlannedSet) -> Document:
    percent = planned.get("loadPercent")
    row: Document = {"index": planned["index"], "type": planned["type"], "loadPercent": number_text(percent)}
    row["resultingLoad"] = resulting_load(planned)
    row["load"] = number_text(planned.get("load") if percent is None else None)  # else it is computed, not entered
    row["reps"] = _range_text(planned.get("minPlannedReps"), planned.get("maxPlannedReps"))
    row["time"] = _range_text(planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds"))
    row["distance"] = number_text(planned.get("plannedMeters"))
    row |= {name: number_text(planned.get(name)) for name in _EFFORTS}
    return row | {"tempo": planned.get("tempo") or ""} | {name: planned.get(name) for name in _MARKS}


def resulting_load(planned: PlannedSet) -> str:
    """Return the load that the percentage of a set means for its client; empty without a percentage or a maximum."""
    return "" if planned.get("loadPercent") is None else number_text(planned.get("load"))


def number_text(value: float | None) -> str:
    """Return a number as a person types it, without thousands separators; empty for None."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else str(value)


def _range_text(low: float | None, high: float | None) -> str:
    return number_text(low) + (f"-{number_text(high)}" if high is not None else "")


def planned_sets_of(rows: Sequence[Document]) -> list[Document]:
    """Return the planned sets of submitted rows, without removed ones; new sets follow the last index."""
    return with_indexes([_with_range(row) for row in rows])


def with_last_repeated(sets: Sequence[Document]) -> list[Document]:
    """Planned sets followed by a copy of the last one."""
    if not sets:
        return []
    return [*sets, sets[-1] | {"index": max(planned["index"] for planned in sets) + 1}]


def _with_range(row: Document) -> Document:
    """Return a row as the form of the page has it: with `low` and `high` of what its type counts."""
    stored_measure = row["type"].partition("_")[0]
    measure = next((name for name in _MEASURES if row[name] is not None), stored_measure)
    low, high = (row["distance"], None) if measure == "distance" else row[measure] or (None, None)
    return {**row, "type": row["type"] if measure == stored_measure else measure, "low": low, "high": high}
