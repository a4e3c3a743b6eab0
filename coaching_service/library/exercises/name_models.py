"""What names of exercises mean, as it is returned."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import ExerciseReference


class ExerciseMatch(TypedDict):
    """An exercise that a name may mean; `score` from 0 to 100 states how much its name or an alias resembles it."""

    _id: ObjectId
    name: str
    score: float


class ResolvedName(TypedDict):
    """A name as it was sent, the exercise that it means, or None if that is not sure, and up to three others."""

    name: str
    match: ExerciseMatch | None
    alternatives: list[ExerciseMatch]


class MatchedName(TypedDict):
    """A name, and the exercise that it means; without one the nearest exercises."""

    name: str
    match: ExerciseReference | None
    nearest: NotRequired[list[ExerciseReference]]


class Suggestions(TypedDict):
    """The nearest exercises to a search without a match; `archived` has the names of deleted ones that match."""

    hint: str
    nearest: list[ExerciseReference]
    archived: NotRequired[list[str]]
