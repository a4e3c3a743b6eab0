"""Requests and results of operations on a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import LoadType
from coaching_service.training.workouts.blocks.models import ScheduleChange

# A date (`YYYY-MM-DD`) of a client's calendar, or a day of a program, from 1.
Day = str | int
# What happens on a target day that has blocks: the new ones are added, the day is left out, or blocks of which nothing
# is done are removed from every day of the target range.
OnConflict = Literal["add", "skip", "replace"]


class LoadProgression(TypedDict, total=False):
    """A change of loads: `add` in the unit of the progression, or `percent`."""

    add: float
    percent: float


class RepsProgression(TypedDict):
    """A change of the planned repetitions, minimum and maximum."""

    add: int


class SetsProgression(TypedDict, total=False):
    """A change of the number of working sets: `add`, or `percent`."""

    add: int
    percent: float


class Progression(TypedDict):
    """A change of planned sets; `exerciseIds` None for all.

    Loads are changed in `loadUnit`, by default the company's unit. `rounding` in this unit, None for exact changes, the
    default of the unit if it is missing.
    """

    load: NotRequired[LoadProgression | None]
    reps: NotRequired[RepsProgression | None]
    sets: NotRequired[SetsProgression | None]
    rounding: NotRequired[float | None]
    loadUnit: NotRequired[str]
    exerciseIds: NotRequired[list[ObjectId] | None]


@dataclass(frozen=True)
class CopyRequest:
    """Days to copy, from `first` to `last`, and where: the first copy begins on `target`, the others follow it."""

    first: Day
    last: Day
    target: Day
    repeat: int = 1
    progression: Progression | None = None
    on_conflict: OnConflict = "add"


class ScheduleResult(ScheduleChange):
    """What an operation did, or with `dryRun` would do, to a schedule."""

    dryRun: bool
    changeId: ObjectId | None


# Why a block is left alone: work of it is done; work of some of its items is, and the others are changed; or the day to
# which it would be copied has workouts.
SkipReason = Literal["DONE", "PARTLY_DONE", "DAY_TAKEN"]


class PlacedBlock(TypedDict):
    """A block that an operation created, changed or removed: its name, and the day it is on or was on."""

    day: Day
    name: str


class SkippedBlock(PlacedBlock):
    """A block that an operation left alone, and why."""

    wblockId: ObjectId
    code: SkipReason


class ScheduleConflict(TypedDict):
    """A block that was on a target day: on a `date` of a calendar, or a `day` of a program."""

    date: NotRequired[str]
    day: NotRequired[int]
    wblockId: ObjectId
    name: str


class LoadChange(TypedDict):
    """How many planned sets of an exercise have another load, in the company's unit.

    With the `loadType` `assistance` a higher load is easier.
    """

    exerciseId: ObjectId
    exerciseName: str
    loadType: LoadType
    before: float
    after: float
    sets: int


class SetCountChange(TypedDict):
    """How many items have another number of planned sets of an exercise, of a circuit in one round."""

    exerciseId: ObjectId
    exerciseName: str
    before: int
    after: int
    items: int


class ProgressionChanges(TypedDict):
    """What a progression has changed: loads, and numbers of sets."""

    loadChanges: list[LoadChange]
    setChanges: list[SetCountChange]


class CopiedSchedule(ScheduleResult, ProgressionChanges):
    """The result of copying days: the blocks that target days had, and what is different in the copies."""

    conflicts: list[ScheduleConflict]


class ChangedItems(ScheduleResult):
    """The result of changing items; `items` is the number of items that changed."""

    items: int


class AdjustedSchedule(ChangedItems, ProgressionChanges):
    """The result of a progression, with the loads and the numbers of sets that changed."""


class ClearedSchedule(ScheduleResult):
    """The result of clearing days; `kept` is the number of blocks that remain because work was done."""

    kept: int
