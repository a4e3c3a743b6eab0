"""A client's history of an exercise, as it is asked for and returned."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.fields import Default, Description, Part
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import PageFields
from coaching_service.core.query import Period
from coaching_service.core.validation import Choice, Date
from coaching_service.library.exercises.models import ExerciseReference
from coaching_service.people.activity.record_types import RecordType
from coaching_service.training.workouts.items.models import CUSTOMER_SET
from coaching_service.training.workouts.sets import FORMULAS, RECORD_UNITS, CustomerSet

GroupBy = Literal["session", "week"]
SESSION: GroupBy = "session"
WEEK: GroupBy = "week"
_BEST_SET = (
    "Highest estimated 1RM, else highest load (lowest assistance), else most reps, else farthest distance and its "
    "shortest time, else longest time."
)


class HistoryQuery(PageFields):
    """A page of the history, and whether it includes sessions that were scheduled and not done."""

    includeIncomplete: Annotated[bool, Default(False)]


class ProgressQuery(Period):
    """The date range (less than 3,700 days), and how its sessions are grouped."""

    groupBy: Annotated[
        GroupBy,
        Default(SESSION),
        Description("`session`: each session; `week`: the weeks with a session. Default: `session`."),
    ]


class OneRepMaxEstimate(TypedDict):
    """An estimated one-repetition maximum, in the company's unit of load."""

    value: float
    formula: Annotated[
        str,
        Choice(*FORMULAS),
        Description(
            "`epley`: load x (1 + reps / 30); `epley_rir`, `epley_rpe`: with the repetitions in reserve (RIR, or 10 - "
            "RPE) added to the reps; `load`: one repetition. With `_body_weight`: of the whole weight, as the load is "
            "added to the body's."
        ),
    ]
    setIndex: Annotated[int, Description("The index of the set it is computed from: `bestSet`.")]


class ProgressBest(TypedDict):
    """The best value of a type of record in a session or a week."""

    type: RecordType
    value: Annotated[float, Description("In `unit`.")]
    unit: Annotated[str, Choice(*RECORD_UNITS)]
    reps: int | None
    meters: Annotated[float | None, Description("The distance of `fastest`; null otherwise.")]


class ProgressPoint(TypedDict):
    """What was done for an exercise in a session or a week, without warm-up sets."""

    date: Annotated[str, Date(), Description("The date of the session, or the Monday of the week.")]
    bestSet: Annotated[CustomerSet | None, fields.Nested(CUSTOMER_SET), Description(_BEST_SET)]
    estimatedOneRepMax: Annotated[
        OneRepMaxEstimate | None,
        Description("The estimate of `bestSet`; null above 12 reps, and of added loads without a body weight."),
    ]
    bests: Annotated[list[ProgressBest], Description("The best value of each type of record that it has.")]
    volumeLoad: Annotated[float, Description("Sum of reps x load, in the company's unit.")]
    sets: Annotated[int, Description("Completed sets; a drop set counts as a set.")]
    reps: int


DoneSets: TypeAlias = Part[ProgressPoint, Literal["bestSet", "estimatedOneRepMax", "volumeLoad", "sets", "reps"]]


class DoneExercise(TypedDict):
    """An exercise that a client has done."""

    exercise: ExerciseReference
    lastDate: Annotated[str, Date(), Description("The date of the latest session.")]
    sessions: Annotated[int, Description("Sessions with a completed set of the exercise that is not warm-up.")]


class ExerciseSession(TypedDict):
    """A session of one exercise."""

    date: Annotated[str, Date()]
    wblockId: ObjectId
    isCompleted: bool
    sets: Annotated[list[CustomerSet], fields.List(fields.Nested(CUSTOMER_SET))]
    volumeLoad: Annotated[
        float, Description("Sum of reps x load over completed sets that are not warm-up, in `loadUnit`.")
    ]
    loadUnit: Annotated[str, Choice("kg", "lb")]
    bestSet: Annotated[
        CustomerSet | None,
        fields.Nested(CUSTOMER_SET),
        Description(f"{_BEST_SET} Without warm-up sets."),
    ]
    estimatedOneRepMax: Annotated[
        OneRepMaxEstimate | None,
        Description(
            "The highest of its sets: the estimate of `bestSet`; null above 12 reps, and of added loads without "
            "a body weight."
        ),
    ]


class SessionText(TypedDict):
    """A session of an exercise as assistants read it: `sets` and `bestSet` are text, loads in the company's unit."""

    date: str
    workoutId: ObjectId
    isCompleted: bool
    sets: str
    volumeLoad: float
    bestSet: NotRequired[str]
    estimatedOneRepMax: NotRequired[float]


class WeekSummary(TypedDict):
    """A week of an exercise as assistants read it, without warm-up sets; `date` is its Monday."""

    date: str
    volumeLoad: float
    sets: int
    estimatedOneRepMax: NotRequired[float]
    bests: NotRequired[str]
