"""A client's history of an exercise."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import ExerciseReference
from coaching_service.people.activity.record_types import RecordType
from coaching_service.training.workouts.sets.models import CustomerSet

SESSION, WEEK = "session", "week"


class HistoryQuery(TypedDict):
    """A page of the history, and whether it includes sessions that were scheduled and not done."""

    pageSize: int
    pageNum: int
    after: str | None
    includeIncomplete: bool


class OneRepMaxEstimate(TypedDict):
    """An estimated one-repetition maximum in the company's load unit, from the set with index `setIndex`."""

    value: float
    formula: str
    setIndex: int


class DoneSets(TypedDict):
    """What was done for an exercise, without warm-up sets; `bestSet` is the best of it, loads in the company's unit."""

    bestSet: CustomerSet | None
    estimatedOneRepMax: OneRepMaxEstimate | None
    volumeLoad: float
    sets: int
    reps: int


class ProgressBest(TypedDict):
    """The best value of a type of record in a session or a week; `meters` is the distance of the fastest time."""

    type: RecordType
    value: float
    unit: str
    reps: int | None
    meters: float | None


class ProgressPoint(DoneSets):
    """What was done for an exercise in a session or a week, whose first day is `date`."""

    date: str
    bests: list[ProgressBest]


class DoneExercise(TypedDict):
    """An exercise that a client did: in how many sessions, and the date of the latest."""

    exercise: ExerciseReference
    lastDate: str
    sessions: int


class ExerciseSession(TypedDict):
    """A session of an exercise; `volumeLoad` is the sum of reps x load over its working sets, in `loadUnit`."""

    date: str
    wblockId: ObjectId
    isCompleted: bool
    sets: list[CustomerSet]
    volumeLoad: float
    loadUnit: str
    bestSet: CustomerSet | None
    estimatedOneRepMax: OneRepMaxEstimate | None


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
