"""Planned sets as a form has them: a row each, whose kind says what `low` and `high` count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.database.documents import Document
from coaching_service.core.validation import Choice, Integer, Number
from coaching_service.training.workouts.set_schemas import MAX_METERS, MAX_REPS, MAX_SECONDS, LoadedSet

KINDS = (
    ("reps_load", "repetitions with a load"),
    ("reps", "repetitions"),
    ("time_load", "seconds with a load"),
    ("time", "seconds"),
    ("distance", "meters"),
)
SPARE = 2
_ENDS = {"reps": ("minPlannedReps", "maxPlannedReps"), "time": ("minPlannedSeconds", "maxPlannedSeconds")}
_MAXIMUM = {"reps": MAX_REPS, "time": MAX_SECONDS, "distance": MAX_METERS}
_AS_THEY_ARE = ("rest", "rpe", "rir", "tempo", "isWarmup")


def _end() -> Number:
    return Number(minimum=0, maximum=MAX_METERS, allow_none=True, load_default=None)


class SetRow(LoadedSet):
    """A planned set; one that is there already has its `index`."""

    index = Integer(minimum=1, maximum=1_000, allow_none=True, load_default=None)
    type = Choice(*(kind for kind, _ in KINDS), required=True)
    low = _end()
    high = _end()
    out = fields.Boolean(load_default=False)

    @validates_schema
    def fits_together(self, data: Mapping[str, Any], **_: Any) -> None:
        """Counts are whole, ends in order, and nothing is carried over a distance."""
        counted, low, high = data["type"].partition("_")[0], data["low"], data["high"]
        for name in ("low", "high"):
            if data[name] is not None and data[name] > _MAXIMUM[counted]:
                raise ValidationError(f"must not be greater than {_MAXIMUM[counted]}", name)
            if counted == "reps" and data[name] is not None and data[name] % 1:
                raise ValidationError("must be a whole number", name)
        if counted == "distance" and data["load"] is not None:
            raise ValidationError("does not go with meters", "load")
        if counted == "distance" and high is not None:
            raise ValidationError("does not go with meters", "high")
        if low is not None and high is not None and high < low:
            raise ValidationError("must not be less than what it goes up from", "high")


def rows(sets: list[Document]) -> list[Document]:
    """Planned sets as rows, and some spare ones like the last."""
    found = [_row(planned) for planned in sets]
    spare = dict.fromkeys(SetRow().fields) | {"type": found[-1]["type"] if found else "reps_load"}
    return [*found, *[spare] * SPARE]


def _row(planned: Document) -> Document:
    counted = planned["type"].partition("_")[0]
    low, high = (planned[name] for name in _ENDS[counted]) if counted in _ENDS else (planned["plannedMeters"], None)
    kept = {name: planned[name] for name in ("index", "type", *_AS_THEY_ARE)}
    return {**kept, "low": low, "high": high, "load": planned.get("load")}


def planned_sets(sent: list[Document]) -> list[Document]:
    """Rows as planned sets of an item: those taken out, and spare ones without a number, left away."""
    kept = [row for row in sent if not row["out"] and (row["index"] or _says(row))]
    last = max((row["index"] or 0 for row in sent), default=0)
    new = iter(range(last + 1, last + 1 + len(kept)))
    return [_planned(row) | {"index": row["index"] or next(new)} for row in kept]


def _says(row: Document) -> bool:
    return any(row[name] not in (None, "", False) for name in ("low", "high", "load", *_AS_THEY_ARE))


def _planned(row: Document) -> Document:
    kind, low, high = row["type"], row["low"], row["high"]
    counted = kind.partition("_")[0]
    shared = {name: row[name] for name in _AS_THEY_ARE}
    if counted == "distance":
        return {"type": kind, "plannedMeters": low, **shared}
    if counted == "reps":
        low, high = (None if end is None else int(end) for end in (low, high))
    ends = dict(zip(_ENDS[counted], (low, high), strict=True))
    if row["load"] is None and not kind.endswith("_load"):
        return {"type": kind, **ends, **shared}
    return {"type": f"{counted}_load", **ends, "load": row["load"], **shared}
