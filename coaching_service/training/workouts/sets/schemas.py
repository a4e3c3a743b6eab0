"""Planned sets: the schemas of each type, and what is derived from a set on read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema

from coaching_service.core.schemas_by_type import Variant
from coaching_service.core.validation import Boolean, Choice, Input, Integer, ListOf, Number, Output, Text
from coaching_service.training.workouts.sets._rounding import percent_of
from coaching_service.training.workouts.sets.models import PlannedSet, VariableValue
from coaching_service.training.workouts.sets.models import SetVariable as SetVariableFields

MAX_SETS = 100
MAX_REPS, MAX_SECONDS, MAX_METERS, MAX_LOAD = 100_000, 86_400, 10_000_000, 100_000
MAX_PERCENT = 200
SET_KINDS = ("normal", "drop", "failure")
_ENDS = (("minPlannedReps", "maxPlannedReps"), ("minPlannedSeconds", "maxPlannedSeconds"))


class AnySet(Input):
    """The fields of every planned set."""

    index = Integer(
        minimum=1,
        maximum=1000,
        metadata={"description": "Position of the set, from 1. Default: its position in the list."},
    )
    rest = Number(
        minimum=0, maximum=MAX_SECONDS, allow_none=True, load_default=None, metadata={"description": "Seconds."}
    )
    rpe = Number(minimum=1, maximum=10, allow_none=True, load_default=None)
    rir = Number(
        minimum=0, maximum=100, allow_none=True, load_default=None, metadata={"description": "Reps in reserve."}
    )
    tempo = Text(max_length=20, allow_none=True, load_default=None, metadata={"example": "3-1-1-0"})
    isWarmup = Boolean(load_default=False)
    isAmrap = Boolean(
        load_default=False,
        metadata={
            "description": "As many repetitions as possible: the planned repetitions are a minimum. Default: false."
        },
    )
    perSide = Boolean(
        load_default=False,
        metadata={
            "description": "The planned repetitions, time or distance are for each side. Figures count what was "
            "logged, once. Default: false."
        },
    )
    setKind = Choice(
        *SET_KINDS,
        load_default="normal",
        metadata={
            "description": "`drop`: with less load, directly after the set before; `failure`: until no further "
            "repetition is possible. Each counts as a set. Default: `normal`."
        },
    )

    @validates_schema
    def ends_in_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require each minimum to be at most its maximum."""
        for minimum, maximum in _ENDS:
            low, high = data.get(minimum), data.get(maximum)
            if low is not None and high is not None and low > high:
                raise ValidationError(f"must not be greater than {maximum}", minimum)


def _reps() -> Integer:
    return Integer(minimum=0, maximum=MAX_REPS, allow_none=True, load_default=None)


def _seconds() -> Number:
    return Number(minimum=0, maximum=MAX_SECONDS, allow_none=True, load_default=None)


class LoadedSet(AnySet):
    """The fields of every planned set with a load."""

    load = Number(  # type: ignore[assignment]  # a field of this name does not affect marshmallow's own method
        minimum=0,
        maximum=MAX_LOAD,
        allow_none=True,
        load_default=None,
        metadata={
            "description": "In the company's unit. With `loadPercent` it is computed on read, and ignored in requests."
        },
    )
    loadPercent = Number(
        minimum=0,
        maximum=MAX_PERCENT,
        allow_none=True,
        load_default=None,
        metadata={
            "description": "Percent of the client's training maximum for the exercise, else of the estimated 1RM "
            "(highest of the records). `load` is then this percentage to the nearest 2.5 kg or 5 lb, half up; null "
            "without either, and in programs and templates."
        },
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


def _meters() -> Number:
    return Number(minimum=0, maximum=MAX_METERS, allow_none=True, load_default=None)


class DistanceSet(AnySet):
    """Work over a distance."""

    type = Choice("distance", required=True)
    plannedMeters = _meters()


class DistanceLoadSet(LoadedSet):
    """Work over a distance with a load, such as a carry or a sled."""

    type = Choice("distance_load", required=True)
    plannedMeters = _meters()


_BY_TYPE: dict[str, type[Schema]] = {
    "reps_load": RepsLoadSet,
    "reps": RepsSet,
    "time": TimeSet,
    "time_load": TimeLoadSet,
    "distance": DistanceSet,
    "distance_load": DistanceLoadSet,
}


class PlannedSets(ListOf):
    """At least one planned set; each index once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Variant(_BY_TYPE), minimum=1, maximum=MAX_SETS, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        planned = super()._deserialize(value, attr, data, **kwargs)
        numbered = [{**_without_computed(each), "index": each.get("index", at)} for at, each in enumerate(planned, 1)]
        if len({each["index"] for each in numbered}) < len(numbered):
            raise ValidationError("must have each index only once")
        return sorted(numbered, key=lambda each: int(each["index"]))


def _without_computed(planned: dict[str, Any]) -> dict[str, Any]:
    """Return a set without the load that is computed on read, so that a set can be sent as it was read."""
    return planned if planned.get("loadPercent") is None else {**planned, "load": None}


class ExactValue(Output):
    """A planned quantity of one value."""

    type = Choice("exact")
    value = fields.Float()


class RangeValue(Output):
    """A planned quantity between two values, both included; without an upper end if `max` is null."""

    type = Choice("range")
    min = fields.Float()
    max = fields.Float(
        allow_none=True,
        metadata={
            "description": "The largest value, in the unit of the variable; null for the repetitions of an AMRAP set."
        },
    )


class SetVariable(Output):
    """One planned quantity of a set with its unit."""

    key = Choice("reps", "load", "time", "distance", "rest", "rir", "rpe")
    unit = Choice("count", "kg", "lb", "s", "m", "rpe")
    value = Variant({"exact": ExactValue, "range": RangeValue})


def _response_schema(schema: type[Schema]) -> type[Schema]:
    """Return the schema of a planned set in a response: all its fields and the variables derived from them."""
    extra = {"variables": fields.List(fields.Nested(SetVariable))}
    built: type[Schema] = type(f"Planned{schema.__name__}", (Output, schema), extra)
    return built


_RESPONSE_SCHEMAS = {set_type: _response_schema(schema) for set_type, schema in _BY_TYPE.items()}


def planned_set_response() -> Variant:
    """Return the field of a planned set in a response."""
    return Variant(_RESPONSE_SCHEMAS)


def present_set(planned: PlannedSet, load_unit: str, training_max: float | None = None) -> PlannedSet:
    """Return a planned set as it is read: with a computed load, and with its `variables`.

    `training_max` (in `load_unit`, `kg` or `lb`) is what `loadPercent` refers to; None if it is not known. The units of
    the variables are `count`, `load_unit`, `s`, `m` and `rpe`.
    """
    presented = planned.copy()  # faster than a dict display, and there are hundreds of sets in a week
    presented.setdefault("isAmrap", False)  # these three are missing in sets that are older than they are
    presented.setdefault("perSide", False)
    presented.setdefault("setKind", "normal")
    if presented["type"] in _LOADED_TYPES:
        percent = presented.setdefault("loadPercent", None)
        if percent is not None:
            presented["load"] = None if training_max is None else percent_of(training_max, percent, load_unit)
    value = presented.get
    presented["variables"] = _variables(
        load_unit,
        value("isAmrap"),
        value("minPlannedReps"),
        value("maxPlannedReps"),
        value("load"),
        value("minPlannedSeconds"),
        value("maxPlannedSeconds"),
        value("plannedMeters"),
        value("rest"),
        value("rir"),
        value("rpe"),
    )
    return presented


_LOADED_TYPES = frozenset(name for name, schema in _BY_TYPE.items() if issubclass(schema, LoadedSet))


@lru_cache(4096, typed=True)  # plans repeat the same sets
def _variables(
    load_unit: str,
    is_amrap: Any,
    min_reps: Any,
    max_reps: Any,
    load: Any,
    min_seconds: Any,
    max_seconds: Any,
    meters: Any,
    rest: Any,
    rir: Any,
    rpe: Any,
) -> tuple[SetVariableFields, ...]:
    variables = (
        _amrap_variable(min_reps, max_reps) if is_amrap else _variable("reps", "count", min_reps, max_reps),
        _variable("load", load_unit, load),
        _variable("time", "s", min_seconds, max_seconds),
        _variable("distance", "m", meters),
        _variable("rest", "s", rest),
        _variable("rir", "count", rir),
        _variable("rpe", "rpe", rpe),
    )
    return tuple(variable for variable in variables if variable is not None)


def _variable(key: str, unit: str, minimum: Any, maximum: Any = None) -> SetVariableFields | None:
    ends = [end for end in (minimum, maximum) if end is not None]
    if not ends:
        return None
    value: VariableValue = {"type": "exact", "value": ends[0]}
    if ends[0] != ends[-1]:
        value = {"type": "range", "min": ends[0], "max": ends[1]}
    return {"key": key, "unit": unit, "value": value}


def _amrap_variable(minimum: Any, maximum: Any) -> SetVariableFields | None:
    """Return the repetitions of an AMRAP set: at least `minimum`, or `maximum` if only that is planned."""
    lowest = maximum if minimum is None else minimum
    if lowest is None:
        return None
    return {"key": "reps", "unit": "count", "value": {"type": "range", "min": lowest, "max": None}}
