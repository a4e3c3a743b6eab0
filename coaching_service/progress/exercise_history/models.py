"""A client's history of an exercise."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.models import CustomerSet


class HistoryQuery(TypedDict):
    """A page of the history, and whether it includes sessions that were scheduled and not done."""

    pageSize: int
    pageNum: int
    includeIncomplete: bool


class OneRepMaxEstimate(TypedDict):
    """An estimated one-repetition maximum in the company's load unit, from the set with index `setIndex`."""

    value: float
    formula: str
    setIndex: int


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
