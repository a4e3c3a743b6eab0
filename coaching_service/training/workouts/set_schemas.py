"""Planned sets, as they are read and answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema

from coaching_service.core.validation import Boolean, Choice, Input, Integer, ListOf, Number, Output, Text
from coaching_service.core.variants import Variant

MAX_SETS = 100
MAX_REPS, MAX_SECONDS, MAX_METERS, MAX_LOAD = 100_000, 86_400, 10_000_000, 100_000
_ENDS = (("minPlannedReps", "maxPlannedReps"), ("minPlannedSeconds", "maxPlannedSeconds"))


class AnySet(Input):
    """What any planned set may say."""

    index = Integer(minimum=1, maximum=1000, metadata={"description": "Position of the set, from 1; absent: as sent."})
    rest = Number(
        minimum=0, maximum=MAX_SECONDS, allow_none=True, load_default=None, metadata={"description": "Seconds."}
    )
    rpe = Number(minimum=1, maximum=10, allow_none=True, load_default=None)
    rir = Number(
        minimum=0, maximum=100, allow_none=True, load_default=None, metadata={"description": "Reps in reserve."}
    )
    tempo = Text(max_length=20, allow_none=True, load_default=None, metadata={"example": "3-1-1-0"})
    isWarmup = Boolean(load_default=False)

    @validates_schema
    def ends_in_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """No minimum above its maximum."""
        for minimum, maximum in _ENDS:
            low, high = data.get(minimum), data.get(maximum)
            if low is not None and high is not None and low > high:
                raise ValidationError(f"must not be greater than {maximum}", minimum)


def _reps() -> Integer:
    return Integer(minimum=0, maximum=MAX_REPS, allow_none=True, load_default=None)


def _seconds() -> Number:
    return Number(minimum=0, maximum=MAX_SECONDS, allow_none=True, load_default=None)


class LoadedSet(AnySet):
    """What any planned set with a load may say."""

    load = Number(  # type: ignore[assignment]  # a field may be called so: marshmallow keeps its own method
        minimum=0,
        maximum=MAX_LOAD,
        allow_none=True,
        load_default=None,
        metadata={"description": "In the company's unit."},
    )


class RepsLoadSet(LoadedSet):
    """Repetitions with a load."""

    type = Choice("reps_load", required=True)
    minPlannedReps = _reps()
    maxPlannedReps = _reps()


class RepsSet(AnySet):
    """Repetitions."""

    type = Choice("reps", required=True)
    minPlannedReps = _reps()
    maxPlannedReps = _reps()


class TimeSet(AnySet):
    """Work for a time."""

    type = Choice("time", required=True)
    minPlannedSeconds = _seconds()
    maxPlannedSeconds = _seconds()


class TimeLoadSet(LoadedSet):
    """Work for a time with a load."""

    type = Choice("time_load", required=True)
    minPlannedSeconds = _seconds()
    maxPlannedSeconds = _seconds()


class DistanceSet(AnySet):
    """Work over a distance."""

    type = Choice("distance", required=True)
    plannedMeters = Number(minimum=0, maximum=MAX_METERS, allow_none=True, load_default=None)


_BY_TYPE: dict[str, type[Schema]] = {
    "reps_load": RepsLoadSet,
    "reps": RepsSet,
    "time": TimeSet,
    "time_load": TimeLoadSet,
    "distance": DistanceSet,
}


class PlannedSets(ListOf):
    """At least one planned set; each index once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Variant(_BY_TYPE), minimum=1, maximum=MAX_SETS, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        planned = super()._deserialize(value, attr, data, **kwargs)
        numbered = [{**each, "index": each.get("index", at)} for at, each in enumerate(planned, 1)]
        if len({each["index"] for each in numbered}) < len(numbered):
            raise ValidationError("must have each index only once")
        return sorted(numbered, key=lambda each: int(each["index"]))


class ExactValue(Output):
    """A planned quantity of one value."""

    type = Choice("exact")
    value = fields.Float()


class RangeValue(Output):
    """A planned quantity between two values, both included."""

    type = Choice("range")
    min = fields.Float()
    max = fields.Float()


class SetVariable(Output):
    """One planned quantity of a set with its unit."""

    key = Choice("reps", "load", "time", "distance", "rest")
    unit = Choice("count", "kg", "lb", "s", "m")
    value = Variant({"exact": ExactValue, "range": RangeValue})


def _read(schema: type[Schema]) -> type[Schema]:
    """The schema of a planned set in an answer: all its fields, and the variables derived from them."""
    extra = {"variables": fields.List(fields.Nested(SetVariable))}
    built: type[Schema] = type(f"Planned{schema.__name__}", (Output, schema), extra)
    return built


def planned_set_answer() -> Variant:
    """A planned set in an answer."""
    return Variant({kind: _read_schemas[kind] for kind in _BY_TYPE})


_read_schemas = {kind: _read(schema) for kind, schema in _BY_TYPE.items()}
