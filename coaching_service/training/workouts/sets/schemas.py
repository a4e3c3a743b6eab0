"""Planned sets: the schemas of each type, and what is derived from a set on read."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema

from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.schemas_by_type import Variant
from coaching_service.core.validation import Choice, Input, ListOf, Output
from coaching_service.training.workouts.sets import models
from coaching_service.training.workouts.sets.models import (
    MAX_SETS,
    ExactValue,
    PlannedSet,
    RangeValue,
    SetType,
    SetVariable,
)

# The smallest usual difference between two loads, of the plates of a gym, by unit.
STEPS = {"kg": Decimal("2.5"), "lb": Decimal(5)}
_ENDS = (("minPlannedReps", "maxPlannedReps"), ("minPlannedSeconds", "maxPlannedSeconds"))


class _EndsInOrder(Input):
    @validates_schema
    def ends_in_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require each minimum to be at most its maximum."""
        for minimum, maximum in _ENDS:
            low, high = data.get(minimum), data.get(maximum)
            if low is not None and high is not None and low > high:
                raise ValidationError(f"must not be greater than {maximum}", minimum)


_ANY = input_of(models.AnySet, _EndsInOrder)
_LOADED = input_of(models.PlannedLoad, _ANY)


def _schema_of(set_type: SetType, quantity: type, base: type[Schema], name: str, about: str) -> type[Schema]:
    """Return the schema of the sets of a type: a schema with what all of them have, and what is planned of them."""
    typed = type(name, (base,), {"type": Choice(set_type, required=True)})
    return input_of(quantity, typed, name=name, description=about)


_SETS: tuple[tuple[SetType, type, type[Schema], str, str], ...] = (
    ("reps_load", models.PlannedReps, _LOADED, "RepsLoadSet", "Repetitions with a load."),
    ("reps", models.PlannedReps, _ANY, "RepsSet", "Repetitions."),
    ("time", models.PlannedTime, _ANY, "TimeSet", "Work for a time."),
    ("time_load", models.PlannedTime, _LOADED, "TimeLoadSet", "Work for a time with a load."),
    ("distance", models.PlannedDistance, _ANY, "DistanceSet", "Work over a distance."),
    (
        "distance_load",
        models.PlannedDistance,
        _LOADED,
        "DistanceLoadSet",
        "Work over a distance with a load, such as a carry or a sled.",
    ),
)
_BY_TYPE: dict[str, type[Schema]] = {each[0]: _schema_of(*each) for each in _SETS}


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


def _response_schema(schema: type[Schema]) -> type[Schema]:
    """Return the schema of a planned set in a response: all its fields and the variables derived from them."""
    extra = {"variables": fields.List(fields.Nested(output_of(SetVariable)))}
    built: type[Schema] = type(f"Planned{schema.__name__}", (Output, schema), extra)
    return built


PLANNED_SET_RESPONSE = Variant({set_type: _response_schema(schema) for set_type, schema in _BY_TYPE.items()})


def present_set(
    planned: PlannedSet, load_unit: str, training_max: float | None = None, body_weight: float = 0
) -> PlannedSet:
    """Return a planned set as it is read: with a computed load, and with its `variables`.

    `training_max` (in `load_unit`, `kg` or `lb`) is what `loadPercent` refers to; None if it is not known. It includes
    `body_weight`, to which the load is added. The units of the variables are `count`, `load_unit`, `s`, `m` and `rpe`.
    """
    presented = planned.copy()  # faster than a dict display, and there are hundreds of sets in a week
    presented.setdefault("isAmrap", False)  # these three are missing in sets that are older than they are
    presented.setdefault("perSide", False)
    presented.setdefault("setKind", "normal")
    if presented["type"] in _LOADED_TYPES:
        percent = presented.setdefault("loadPercent", None)
        if percent is not None:
            presented["load"] = (
                None if training_max is None else percent_of(training_max, percent, load_unit, body_weight)
            )
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


_LOADED_TYPES = frozenset(set_type for set_type, _, base, *_ in _SETS if base is _LOADED)


def round_to_step(load: Decimal, step: Decimal) -> Decimal:
    """Return the multiple of `step` nearest to `load`, half up, in the same unit."""
    return (load / step).quantize(Decimal(1), ROUND_HALF_UP) * step


def percent_of(maximum: float, percent: float, load_unit: str, body_weight: float = 0) -> float:
    """Return a percentage of a maximum in `load_unit` (`kg` or `lb`), to the nearest 2.5 kg or 5 lb, half up.

    Less the body weight that the maximum includes, if it does; not below 0.
    """
    load = Decimal(str(maximum)) * Decimal(str(percent)) / 100 - Decimal(str(body_weight))
    return float(round_to_step(max(load, Decimal(0)), STEPS[load_unit]))


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
) -> tuple[SetVariable, ...]:
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


def _variable(key: str, unit: str, minimum: Any, maximum: Any = None) -> SetVariable | None:
    ends = [end for end in (minimum, maximum) if end is not None]
    if not ends:
        return None
    value: ExactValue | RangeValue = {"type": "exact", "value": ends[0]}
    if ends[0] != ends[-1]:
        value = {"type": "range", "min": ends[0], "max": ends[1]}
    return {"key": key, "unit": unit, "value": value}


def _amrap_variable(minimum: Any, maximum: Any) -> SetVariable | None:
    """Return the repetitions of an AMRAP set: at least `minimum`, or `maximum` if only that is planned."""
    lowest = maximum if minimum is None else minimum
    if lowest is None:
        return None
    return {"key": "reps", "unit": "count", "value": {"type": "range", "min": lowest, "max": None}}
