"""Totals of completed sets, and best sets, as they are stored with items and blocks."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.people.activity.record_types import RecordType


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

    kind: RecordType
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
