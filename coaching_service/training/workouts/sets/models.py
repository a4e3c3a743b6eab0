"""Planned and logged sets as they are sent, stored and read."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict, get_args

from coaching_service.core.fields import UNSET, Default, Description, Optional
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import LoggedTime
from coaching_service.core.validation import Choice, Integer, Number, Text

MAX_SETS = 100
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

    key: Annotated[str, Choice("reps", "load", "time", "distance", "rest", "rir", "rpe")]
    unit: Annotated[str, Choice("count", "kg", "lb", "s", "m", "rpe")]
    value: ExactValue | RangeValue


class _Position(TypedDict):
    index: Annotated[
        int,
        Integer(minimum=1, maximum=1000),
        Default(UNSET),
        Description("Position of the set, from 1. Default: its position in the list."),
    ]


class SetOptions(TypedDict):
    """What is planned of sets of every type."""

    rest: Annotated[float | None, Number(minimum=0, maximum=MAX_SECONDS), Description("Seconds.")]
    rpe: Annotated[float | None, Number(minimum=1, maximum=10)]
    rir: Annotated[float | None, Number(minimum=0, maximum=100), Description("Reps in reserve.")]
    tempo: Annotated[str | None, Text(max_length=20, metadata={"example": "3-1-1-0"})]
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
            Number(minimum=0, maximum=MAX_LOAD),
            Default(None),
            Description("In the company's unit. With `loadPercent` it is computed on read, and ignored in requests."),
        ]
    ]
    loadPercent: NotRequired[
        Annotated[
            float | None,
            Number(minimum=0, maximum=MAX_PERCENT),
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


_Reps: TypeAlias = Annotated[int | None, Integer(minimum=0, maximum=MAX_REPS), Default(None)]
_Seconds: TypeAlias = Annotated[float | None, Number(minimum=0, maximum=MAX_SECONDS), Default(None)]
_Meters: TypeAlias = Annotated[float | None, Number(minimum=0, maximum=MAX_METERS), Default(None)]


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

    reps: Annotated[int | None, Integer(minimum=0, maximum=MAX_REPS)]
    load: Annotated[float | None, Number(minimum=0, maximum=MAX_LOAD)]
    seconds: Annotated[float | None, Number(minimum=0, maximum=MAX_SECONDS)]
    meters: Annotated[float | None, Number(minimum=0, maximum=MAX_METERS)]
    rpe: Annotated[float | None, Number(minimum=1, maximum=10)]
    rir: Annotated[float | None, Number(minimum=0, maximum=100)]
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
        Integer(minimum=1, maximum=1000),
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
        Integer(minimum=1, maximum=1000),
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
