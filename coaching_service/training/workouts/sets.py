"""Planned and logged sets as they are sent, stored and read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict, cast, get_args

from marshmallow import Schema, ValidationError, fields, validates_schema

from coaching_service.core import validation
from coaching_service.core.fields import UNSET, Default, Description, Optional, Variant, input_of, output_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import LoggedTime
from coaching_service.people.activity import models as activity_models

MAX_SETS = 100
MAX_EXERCISE_SETS, MAX_CIRCUIT_SETS = 200, 2_000  # in the log of an item
MAX_REPS, MAX_SECONDS, MAX_METERS, MAX_LOAD = 100_000, 86_400, 10_000_000, 100_000
MAX_PERCENT = 200
SetType = Literal["reps_load", "reps", "time", "time_load", "distance", "distance_load"]
SetKind = Literal["normal", "drop", "failure"]
SET_KINDS: tuple[SetKind, ...] = get_args(SetKind)
_WARMUP = "A warm-up set: it counts in no figure."
_KIND = "`drop`: with less load, directly after the set before; `failure`: until no further repetition was possible."


class ExactValue(TypedDict):
    """A planned quantity of one value."""

    type: Literal["exact"]
    value: float


class RangeValue(TypedDict):
    """A planned quantity between two values, both included; without an upper end if `max` is null."""

    type: Literal["range"]
    min: float
    max: Annotated[
        float | None,
        Description("The largest value, in the unit of the variable; null for the repetitions of an AMRAP set."),
    ]


class SetVariable(TypedDict):
    """One planned quantity of a set with its unit."""

    key: Annotated[str, validation.Choice("reps", "load", "time", "distance", "rest", "rir", "rpe")]
    unit: Annotated[str, validation.Choice("count", "kg", "lb", "s", "m", "rpe")]
    value: ExactValue | RangeValue


class _Position(TypedDict):
    index: Annotated[
        int,
        validation.Integer(minimum=1, maximum=1000),
        Default(UNSET),
        Description("Position of the set, from 1. Default: its position in the list."),
    ]


class SetOptions(TypedDict):
    """What is planned of sets of every type."""

    rest: Annotated[float | None, validation.Seconds(minimum=0, maximum=MAX_SECONDS), Description("Seconds.")]
    rpe: Annotated[float | None, validation.Number(minimum=1, maximum=10)]
    rir: Annotated[float | None, validation.Number(minimum=0, maximum=100), Description("Reps in reserve.")]
    tempo: Annotated[str | None, validation.Text(max_length=20, metadata={"example": "3-1-1-0"})]
    isWarmup: Annotated[bool, Default(False)]
    isAmrap: NotRequired[
        Annotated[
            bool,
            Default(False),
            Description("As many repetitions as possible: the planned repetitions are a minimum. Default: false."),
        ]
    ]
    perSide: NotRequired[
        Annotated[
            bool,
            Default(False),
            Description(
                "The planned repetitions, time or distance are for each side. Figures count what was logged, once. "
                "Default: false."
            ),
        ]
    ]
    setKind: NotRequired[
        Annotated[
            SetKind,
            Default("normal"),
            Description(
                "`drop`: with less load, directly after the set before; `failure`: until no further repetition is "
                "possible. Each counts as a set. Default: `normal`."
            ),
        ]
    ]


class PlannedLoad(TypedDict):
    """The load of a set."""

    load: NotRequired[
        Annotated[
            float | None,
            validation.Number(minimum=0, maximum=MAX_LOAD),
            Default(None),
            Description("In the company's unit. With `loadPercent` it is computed on read, and ignored in requests."),
        ]
    ]
    loadPercent: NotRequired[
        Annotated[
            float | None,
            validation.Number(minimum=0, maximum=MAX_PERCENT),
            Default(None),
            Description(
                "Percent of the client's training maximum for the exercise, else of the estimated 1RM (highest of the "
                "records). `load` is then this percentage to the nearest 2.5 kg or 5 lb, half up; null without either, "
                "and in programs and templates. Where loads are added to the body's (`loadType` `added`), a percentage "
                "of the estimated 1RM is of the whole weight, and `load` is it less the body weight, not below 0; null "
                "without a body weight of the last 30 days."
            ),
        ]
    ]


_Reps: TypeAlias = Annotated[int | None, validation.Integer(minimum=0, maximum=MAX_REPS), Default(None)]
_Seconds: TypeAlias = Annotated[float | None, validation.Seconds(minimum=0, maximum=MAX_SECONDS), Default(None)]
_Meters: TypeAlias = Annotated[float | None, validation.Number(minimum=0, maximum=MAX_METERS), Default(None)]


class PlannedReps(TypedDict):
    """How many repetitions a set has."""

    minPlannedReps: NotRequired[_Reps]
    maxPlannedReps: NotRequired[_Reps]


class PlannedTime(TypedDict):
    """How long a set takes."""

    minPlannedSeconds: NotRequired[_Seconds]
    maxPlannedSeconds: NotRequired[_Seconds]


class PlannedDistance(TypedDict):
    """How far a set goes."""

    plannedMeters: NotRequired[_Meters]


class AnySet(_Position, SetOptions):
    """The fields of every planned set."""


class PlannedSet(AnySet, PlannedReps, PlannedLoad, PlannedTime, PlannedDistance):
    """A planned set; its `type` decides which of the optional quantities it has. `variables` is added on read.

    Times are in seconds, distances in meters, loads in the company's unit. With `loadPercent` (of the client's training
    maximum) `load` is stored as null and computed on read. Sets stored before they had `isAmrap`, `perSide`, `setKind`
    and `loadPercent` get them on read.
    """

    type: SetType
    variables: NotRequired[tuple[SetVariable, ...]]


class PerformedSet(TypedDict):
    """What a client did in a set; sets stored before they had `isWarmup` and `setKind` get them on read."""

    reps: Annotated[int | None, validation.Integer(minimum=0, maximum=MAX_REPS)]
    load: Annotated[float | None, validation.Number(minimum=0, maximum=MAX_LOAD)]
    seconds: Annotated[float | None, validation.Seconds(minimum=0, maximum=MAX_SECONDS)]
    meters: Annotated[float | None, validation.Number(minimum=0, maximum=MAX_METERS)]
    rpe: Annotated[float | None, validation.Number(minimum=1, maximum=10)]
    rir: Annotated[float | None, validation.Number(minimum=0, maximum=100)]
    isWarmup: NotRequired[
        Annotated[
            bool,
            Description(
                request=f"{_WARMUP} Default: as the set was logged, else false.",
                response=_WARMUP,
            ),
        ]
    ]
    setKind: NotRequired[
        Annotated[
            SetKind,
            Description(
                request=f"{_KIND} Default: as the set was logged, else `normal`.",
                response=f"{_KIND} Each counts as a set.",
            ),
        ]
    ]
    isCompleted: Annotated[bool, Default(True)]


class _Number(TypedDict):
    index: Annotated[
        int,
        validation.Integer(minimum=1, maximum=1000),
        Description(request="Number of the set from 1, in a circuit within exercise and round."),
    ]


class CustomerSet(_Number, PerformedSet):
    """A set as the client did it; `exerciseId` is set in circuits, and in items with `swappedFor`."""

    exerciseId: Annotated[
        ObjectId | None,
        Description(
            request="The exercise of the set, required in a circuit. Default: the one in `swappedFor`, else the "
            "planned one.",
            response="The exercise of the set: in a circuit, and in an item with `swappedFor`.",
        ),
    ]
    round: Annotated[
        int | None,
        validation.Integer(minimum=1, maximum=1000),
        Description(
            request="In a circuit: the round, from 1. Default: 1.",
            response="In a circuit: the round of the set, from 1.",
        ),
    ]
    loggedAt: NotRequired[
        Annotated[
            datetime,
            LoggedTime(),
            Description(
                request="When the client did the set. The later one of the same set wins. A time in the future counts "
                "as now. Default: now.",
                response="When the client did the set. Only of sets that were logged one by one.",
            ),
            Optional,
        ]
    ]


# --- Totals of completed sets, and best sets, as they are stored with items and blocks --------------------------------


class Totals(TypedDict):
    """Totals of completed sets that are not warm-up; `volumeLoad` is the sum of reps x load."""

    sets: int
    reps: int
    volumeLoad: float


class ExerciseTotals(Totals):
    """The totals of one exercise."""

    exerciseId: ObjectId


class ItemTally(Totals):
    """The totals of an item, and of each of its exercises."""

    exercises: list[ExerciseTotals]


class Best(TypedDict):
    """The best set of a client for an exercise and a type of record; `witemId` is the item it was logged with.

    `isImported`: it is of a session that was imported from a file.
    """

    value: float
    reps: int | None
    date: str
    witemId: ObjectId
    isImported: NotRequired[bool]


class BlockBest(TypedDict):
    """The best set of a block for an exercise and a type of record; `meters` is the distance of the fastest one."""

    kind: activity_models.RecordType
    meters: NotRequired[float]
    value: float
    reps: int | None
    witemId: ObjectId


class BlockExerciseTotals(ExerciseTotals):
    """The totals of one exercise in a block, with its best sets."""

    bests: list[BlockBest]


class BlockTotals(Totals):
    """The totals of a block, stored with it so that reports over years need not read its items."""

    exercises: list[BlockExerciseTotals]


# --- What a set is worth: its estimated one-repetition maximum, the records it may hold, and which set is better ------


EPLEY, EPLEY_RIR, EPLEY_RPE, LOAD = "epley", "epley_rir", "epley_rpe", "load"
_BODY_WEIGHT = "_body_weight"
_OF_LOADS = (EPLEY, EPLEY_RIR, EPLEY_RPE, LOAD)
FORMULAS = (*_OF_LOADS, *(f"{each}{_BODY_WEIGHT}" for each in _OF_LOADS))
COUNT = "count"
_MAX_REPS = 12
_HIGHEST_RPE = 10
_KILOMETER, _COARSE_METERS = 1_000, 100
_AMOUNTS = ("reps", "load", "seconds", "meters")
RECORD_UNITS = ("kg", "lb", COUNT, "s", "m")
_UNITS: dict[activity_models.RecordType, str] = {
    activity_models.MOST_REPS: COUNT,
    activity_models.LONGEST_TIME: "s",
    activity_models.FARTHEST_DISTANCE: "m",
    activity_models.FASTEST: "s",
}


class RecordKey(NamedTuple):
    """What a record is of: its type, and for `fastest` the distance in meters."""

    type: activity_models.RecordType
    meters: float | None = None

    @property
    def order(self) -> tuple[int, float]:
        """The position among the records of an exercise."""
        return activity_models.RECORD_TYPES.index(self.type), self.meters or 0


class Estimate(NamedTuple):
    """An estimated one-repetition maximum, in the unit of the load, and the formula used."""

    value: float
    formula: str


class LoadMeaning(NamedTuple):
    """What the loads of an exercise mean: help, or added to the body's weight (None: it is not known), or neither."""

    is_assistance: bool = False
    is_added: bool = False
    body_weight: float | None = None


def with_kind(done: CustomerSet) -> CustomerSet:
    """Return a done set with the fields that say what it was, which older sets do not have."""
    return done if "setKind" in done and "isWarmup" in done else {"isWarmup": False, "setKind": "normal", **done}


def plan_of_done(sets: Iterable[CustomerSet]) -> list[PlannedSet]:
    """Return planned sets of the amounts that done sets have."""
    plans: list[PlannedSet] = []
    for index, done in enumerate(map(with_kind, sets), start=1):
        amounts: dict[str, float | None] = {"minPlannedReps": done["reps"], "maxPlannedReps": done["reps"]}
        set_type, loads = "reps", dict[str, float | None]()
        if done["reps"] is None and done["meters"] is not None:
            set_type, amounts = "distance", {"plannedMeters": done["meters"]}
        elif done["reps"] is None and done["seconds"] is not None:
            set_type, amounts = "time", {"minPlannedSeconds": done["seconds"], "maxPlannedSeconds": done["seconds"]}
        if done["load"] is not None:
            set_type, loads = f"{set_type}_load", {"load": done["load"], "loadPercent": None}
        plan = {"index": index, "type": set_type, "rest": None, "rpe": done["rpe"], "rir": done["rir"], "tempo": None}
        kind = {"isWarmup": done["isWarmup"], "setKind": done["setKind"]}
        plans.append(cast("PlannedSet", {**plan, **kind, **loads, **amounts}))
    return plans


def unit_of(record_type: activity_models.RecordType) -> str | None:
    """Return the unit of a type of record; None for the company's unit of load."""
    return _UNITS.get(record_type)


def estimate_one_rep_max(
    reps: int | None, load: float | None, *, rir: float | None = None, rpe: float | None = None
) -> Estimate | None:
    """Return the estimated one-repetition maximum of a set.

    Repetitions in reserve (`rir`, else 10 - `rpe`) are added to the repetitions first. Then Epley (1985), load x (1 +
    repetitions / 30), up to 12 repetitions (`epley`; `epley_rir` and `epley_rpe` with repetitions in reserve), and the
    load itself for 1 (`load`). None without a load or above 12 repetitions, where the estimate is unreliable.
    """
    if not reps or not load:
        return None
    reserve = rir if rir is not None else _HIGHEST_RPE - rpe if rpe is not None else 0
    if (possible := reps + reserve) > _MAX_REPS:
        return None
    if possible == 1:
        return Estimate(load, LOAD)
    formula = EPLEY_RIR if rir is not None else EPLEY_RPE if rpe is not None else EPLEY
    return Estimate(load * (1 + possible / 30), formula)


def estimate_of_set(done: CustomerSet, meaning: LoadMeaning) -> Estimate | None:
    """Return the estimated one-repetition maximum of a logged set; none where the load is assistance.

    Where the load is added to the body's weight it is of the whole, and none if the body weight is not known.
    """
    if meaning.is_assistance:
        return None
    if not meaning.is_added:
        return estimate_one_rep_max(done["reps"], done["load"], rir=done["rir"], rpe=done["rpe"])
    if meaning.body_weight is None:
        return None
    whole = meaning.body_weight + (done["load"] or 0)
    estimate = estimate_one_rep_max(done["reps"], whole, rir=done["rir"], rpe=done["rpe"])
    return estimate and Estimate(estimate.value, f"{estimate.formula}{_BODY_WEIGHT}")


def best_set(sets: Iterable[tuple[CustomerSet, LoadMeaning]]) -> tuple[CustomerSet, LoadMeaning] | None:
    """Return the set with the highest estimated one-repetition maximum, else the highest load, else the most reps.

    Each set comes with what its load means. Then the farthest distance, in the shortest time, and the longest time
    without a distance. Where the load is assistance, the lowest load is the best. The first of equal sets; None if no
    set has any of these amounts.
    """

    def value(each: tuple[CustomerSet, LoadMeaning]) -> tuple[float, ...]:
        done, meaning = each
        estimate = estimate_of_set(done, meaning)
        load, seconds, meters = done["load"], done["seconds"], done["meters"] or 0
        if meaning.is_assistance:
            load = float("-inf") if load is None else -load
        time = -(seconds or float("inf")) if meters else seconds or 0
        return (estimate.value if estimate else 0, load or 0, done["reps"] or 0, meters, time)

    return max((each for each in sets if any(each[0][name] for name in _AMOUNTS)), key=value, default=None)  # type: ignore[literal-required]  # names of amounts


def record_values(done: CustomerSet, meaning: LoadMeaning) -> dict[RecordKey, float]:
    """Return the value of a set for each record that it may hold.

    A load counts with repetitions, a time or a distance. The longest time is the time of a set without repetitions (or
    one) and without a distance, as a distance is covered in the shortest time.
    """
    reps, load, seconds, meters = done["reps"], done["load"], done["seconds"], done["meters"]
    values: dict[RecordKey, float] = {}
    if load is not None and (reps or seconds or meters):
        if meaning.is_assistance:
            values[RecordKey(activity_models.LEAST_ASSISTANCE)] = load
        elif load:
            values[RecordKey(activity_models.HEAVIEST_LOAD)] = load
    if reps:
        values[RecordKey(activity_models.MOST_REPS)] = reps
    if estimate := estimate_of_set(done, meaning):
        values[RecordKey(activity_models.ESTIMATED_ONE_REP_MAX)] = round(estimate.value, 2)
    if seconds and not meters and (reps or 0) <= 1:
        values[RecordKey(activity_models.LONGEST_TIME)] = seconds
    if meters:
        values[RecordKey(activity_models.FARTHEST_DISTANCE)] = meters
        if seconds:
            values[RecordKey(activity_models.FASTEST, record_distance(meters))] = seconds
    return values


def record_distance(meters: float) -> float:
    """Return the distance over which a set may have the fastest time: at most what was covered.

    From a kilometer on in steps of 100 m, so that 5,013 m and 5,048 m as a watch measures them compare as 5,000 m.
    """
    return meters if meters < _KILOMETER else meters // _COARSE_METERS * _COARSE_METERS


def is_better(record_type: activity_models.RecordType, value: float, than: float) -> bool:
    """Return whether a value is a better record of a type than another."""
    return value < than if record_type in activity_models.LOWER_IS_BETTER else value > than


def rank_best(record_type: activity_models.RecordType, best: Best) -> tuple[Any, ...]:
    """Return a sort key of best sets of a type, best first: better value, earlier date, more reps, a stable order."""
    value = best["value"] if record_type in activity_models.LOWER_IS_BETTER else -best["value"]
    return (value, best["date"], -(best["reps"] or 0), best["witemId"])


# --- Planned sets: the schemas of each type, and what is derived from a set on read -----------------------------------


# The smallest usual difference between two loads, of the plates of a gym, by unit.
STEPS = {"kg": Decimal("2.5"), "lb": Decimal(5)}
_ENDS = (("minPlannedReps", "maxPlannedReps"), ("minPlannedSeconds", "maxPlannedSeconds"))


class _EndsInOrder(validation.Input):
    @validates_schema
    def ends_in_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require each minimum to be at most its maximum."""
        for minimum, maximum in _ENDS:
            low, high = data.get(minimum), data.get(maximum)
            if low is not None and high is not None and low > high:
                raise ValidationError(f"must not be greater than {maximum}", minimum)


_ANY = input_of(AnySet, _EndsInOrder)
_LOADED = input_of(PlannedLoad, _ANY)


def _schema_of(set_type: SetType, quantity: type, base: type[Schema], name: str, about: str) -> type[Schema]:
    """Return the schema of the sets of a type: a schema with what all of them have, and what is planned of them."""
    typed = type(name, (base,), {"type": validation.Choice(set_type, required=True)})
    return input_of(quantity, typed, name=name, description=about)


_SETS: tuple[tuple[SetType, type, type[Schema], str, str], ...] = (
    ("reps_load", PlannedReps, _LOADED, "RepsLoadSet", "Repetitions with a load."),
    ("reps", PlannedReps, _ANY, "RepsSet", "Repetitions."),
    ("time", PlannedTime, _ANY, "TimeSet", "Work for a time."),
    ("time_load", PlannedTime, _LOADED, "TimeLoadSet", "Work for a time with a load."),
    ("distance", PlannedDistance, _ANY, "DistanceSet", "Work over a distance."),
    (
        "distance_load",
        PlannedDistance,
        _LOADED,
        "DistanceLoadSet",
        "Work over a distance with a load, such as a carry or a sled.",
    ),
)
_BY_TYPE: dict[str, type[Schema]] = {each[0]: _schema_of(*each) for each in _SETS}


class PlannedSets(validation.ListOf):
    """At least one planned set; each index once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Variant(_BY_TYPE), minimum=1, maximum=MAX_SETS, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        planned = super()._deserialize(value, attr, data, **kwargs)
        numbered = [
            {**(each if each.get("loadPercent") is None else {**each, "load": None}), "index": each.get("index", at)}
            for at, each in enumerate(planned, 1)
        ]
        if len({each["index"] for each in numbered}) < len(numbered):
            raise ValidationError("must have each index only once")
        return sorted(numbered, key=lambda each: int(each["index"]))


def _response_schema(schema: type[Schema]) -> type[Schema]:
    """Return the schema of a planned set in a response: all its fields and the variables derived from them."""
    extra = {"variables": fields.List(fields.Nested(output_of(SetVariable)))}
    built: type[Schema] = type(f"Planned{schema.__name__}", (validation.Output, schema), extra)
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
        if (percent := presented.setdefault("loadPercent", None)) is not None:
            presented["load"] = None
        if percent is not None and training_max is not None:
            # To the nearest 2.5 kg or 5 lb, half up, less the body weight that the maximum includes; not below 0.
            load = Decimal(str(training_max)) * Decimal(str(percent)) / 100 - Decimal(str(body_weight))
            presented["load"] = float(round_to_step(min(max(load, Decimal(0)), Decimal(MAX_LOAD)), STEPS[load_unit]))
    presented["variables"] = _variables(load_unit, *map(presented.get, _IN_VARIABLES))
    return presented


_IN_VARIABLES = (
    *("isAmrap", "minPlannedReps", "maxPlannedReps", "load", "minPlannedSeconds", "maxPlannedSeconds"),
    *("plannedMeters", "rest", "rir", "rpe"),
)
_LOADED_TYPES = frozenset(set_type for set_type, _, base, *_ in _SETS if base is _LOADED)


def round_to_step(load: Decimal, step: Decimal) -> Decimal:
    """Return the multiple of `step` nearest to `load`, half up, in the same unit."""
    return (load / step).quantize(Decimal(1), ROUND_HALF_UP) * step


@lru_cache(4096, typed=True)  # plans repeat the same sets
def _variables(load_unit: str, *planned: Any) -> tuple[SetVariable, ...]:
    is_amrap, min_reps, max_reps, load, min_seconds, max_seconds, meters, rest, rir, rpe = planned
    reps = _variable("reps", "count", min_reps, max_reps)
    if is_amrap and reps is not None:  # at least the minimum, or the maximum if only that is planned
        reps["value"] = {"type": "range", "min": max_reps if min_reps is None else min_reps, "max": None}
    variables = (
        reps,
        _variable("load", load_unit, load),
        _variable("time", "s", min_seconds, max_seconds),
        _variable("distance", "m", meters),
        _variable("rest", "s", rest),
        _variable("rir", "count", rir),
        _variable("rpe", "rpe", rpe),
    )
    return tuple(variable for variable in variables if variable is not None)


def _variable(key: str, unit: str, minimum: Any, maximum: Any = None) -> SetVariable | None:
    if not (ends := [end for end in (minimum, maximum) if end is not None]):
        return None
    value: ExactValue | RangeValue = {"type": "exact", "value": ends[0]}
    if ends[0] != ends[-1]:
        value = {"type": "range", "min": ends[0], "max": ends[1]}
    return {"key": key, "unit": unit, "value": value}
