"""Requests and responses of the operations on a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from marshmallow import fields, validates_schema

from coaching_service.core.query import DateRange
from coaching_service.core.validation import (
    Choice,
    Date,
    DryRun,
    Identifier,
    Input,
    Integer,
    ListOf,
    Number,
    Output,
    Text,
)
from coaching_service.core.validation_messages import invalid
from coaching_service.library.exercises.models import LOAD_TYPES
from coaching_service.training.programs.models import LAST_DAY
from coaching_service.training.schedule.models import OnConflict
from coaching_service.training.workouts.blocks.schemas import ScheduledWorkoutBlock, WorkoutBlock
from coaching_service.training.workouts.sets.schemas import MAX_LOAD, MAX_REPS, MAX_SETS

MAX_DAYS = 366
MAX_REPEAT = 12


def require_add_or_percent(change: Mapping[str, Any]) -> None:
    """Raise ValidationError unless a change has exactly one of `add` and `percent`."""
    if len(change) != 1:
        raise invalid("must have either add or percent", "INVALID")


class LoadProgression(Input):
    """How loads change: by an amount, or by a percentage; of assisted exercises as of all others."""

    add = Number(
        minimum=-MAX_LOAD,
        maximum=MAX_LOAD,
        metadata={
            "description": "In the company's unit; negative lowers loads, which makes an exercise whose `loadType` is "
            "`assistance` harder."
        },
    )
    percent = Number(minimum=-100, maximum=1_000, metadata={"description": "Percent of the load; negative lowers it."})

    @validates_schema
    def is_one_change(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require exactly one of `add` and `percent`."""
        require_add_or_percent(data)


class RepsProgression(Input):
    """How planned repetitions change."""

    add = Integer(
        minimum=-MAX_REPS,
        maximum=MAX_REPS,
        required=True,
        metadata={"description": "Added to minimum and maximum, which do not fall below 1."},
    )


class SetsProgression(Input):
    """How the number of planned sets changes; warm-up sets stay, and at least one other set."""

    add = Integer(
        minimum=-MAX_SETS,
        maximum=MAX_SETS,
        metadata={"description": "Sets to add, like the last one; negative removes the last ones."},
    )
    percent = Number(
        minimum=-100, maximum=1_000, metadata={"description": "Percent of the sets, rounded half up to whole sets."}
    )

    @validates_schema
    def is_one_change(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require exactly one of `add` and `percent`."""
        require_add_or_percent(data)


class Progression(Input):
    """How planned sets change. Sets without a load remain without one; loads do not fall below 0."""

    load = fields.Nested(  # type: ignore[assignment]  # a field of this name does not affect marshmallow's own method
        LoadProgression, allow_none=True, metadata={"description": "How loads change. Default: not at all."}
    )
    reps = fields.Nested(
        RepsProgression, allow_none=True, metadata={"description": "How repetitions change. Default: not at all."}
    )
    sets = fields.Nested(
        SetsProgression, allow_none=True, metadata={"description": "How the number of sets changes. Default: not."}
    )
    rounding = Number(
        minimum=0.01,
        maximum=1_000,
        allow_none=True,
        metadata={
            "description": "Changed loads are rounded half up to its nearest multiple, in the company's unit; a "
            "change smaller than it is exact. Null: every change is exact. Default: 2.5 kg or 5 lb."
        },
    )
    exerciseIds = ListOf(
        Identifier(), minimum=1, metadata={"description": "The exercises whose sets change. Default: all."}
    )

    @validates_schema
    def changes_something(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a change of loads, repetitions or sets."""
        if all(data.get(name) is None for name in ("load", "reps", "sets")):
            raise invalid("must change load, reps or sets", "REQUIRED")


class ScheduleRange(DateRange):
    """`startDate` and `endDate`, both included, at most 366 days."""

    @validates_schema
    def is_at_most_a_year(self, data: Mapping[str, str], **_: Any) -> None:
        """Require at most 366 days."""
        require_at_most_a_year(data["startDate"], data["endDate"])


def require_at_most_a_year(first: str, last: str) -> None:
    """Raise ValidationError if there are more than 366 days from `first` to `last`, both included."""
    if (date.fromisoformat(last) - date.fromisoformat(first)).days >= MAX_DAYS:
        raise invalid(f"must be within {MAX_DAYS} days of startDate", "RANGE_TOO_LONG", "endDate")


def on_conflict(default: OnConflict = "add") -> Choice:
    """Return the field that states what happens on days that have blocks."""
    about = (
        "On a target day that has blocks: `add` adds the new ones after them; `skip` leaves the day as it is. "
        "`replace` first removes the blocks with nothing done from every day of the target range."
    )
    return Choice("add", "skip", "replace", load_default=default, metadata={"description": about})


def _repeat() -> Integer:
    about = "How many copies, one after another; copy k applies the progression k times."
    return Integer(minimum=1, maximum=MAX_REPEAT, load_default=1, metadata={"description": about})


class WorkoutBlockBatch(DryRun):
    """Workout blocks with items for a client's calendar, created all or nothing."""

    blocks = ListOf(
        fields.Nested(ScheduledWorkoutBlock),
        minimum=1,
        maximum=100,
        required=True,
        metadata={"description": "The blocks; blocks of one day are in order."},
    )


class ScheduleCopy(ScheduleRange, DryRun):
    """The days of a calendar to copy, and the date on which the first copy begins."""

    targetDate = Date(required=True, metadata={"description": "The date on which the first copy begins."})
    repeat = _repeat()
    progression = fields.Nested(
        Progression, allow_none=True, load_default=None, metadata={"description": "How the sets of the copies change."}
    )
    onConflict = on_conflict()


class ProgramDays(Input):
    """The days of a program to copy, and the day on which the first copy begins."""

    startDay = Integer(minimum=1, maximum=LAST_DAY, required=True)
    endDay = Integer(minimum=1, maximum=LAST_DAY, required=True)
    targetDay = Integer(
        minimum=1,
        maximum=LAST_DAY,
        required=True,
        metadata={"description": "The day of the program on which the first copy begins."},
    )

    @validates_schema
    def is_at_most_a_year(self, data: Mapping[str, int], **_: Any) -> None:
        """Require the end not to be before the start, and at most 366 days."""
        if data["endDay"] < data["startDay"]:
            raise invalid("must not be before startDay", "BEFORE_START", "endDay")
        if data["endDay"] - data["startDay"] >= MAX_DAYS:
            raise invalid(f"must be within {MAX_DAYS} days of startDay", "RANGE_TOO_LONG", "endDay")


class ProgramDaysCopy(ProgramDays, DryRun):
    """The days of a program to copy, and the day on which the first copy begins."""

    repeat = _repeat()
    progression = fields.Nested(
        Progression, allow_none=True, load_default=None, metadata={"description": "How the sets of the copies change."}
    )
    onConflict = on_conflict()


class ScheduleAdjustment(ScheduleRange, DryRun):
    """The days of a calendar whose items change, and how."""

    progression = fields.Nested(
        Progression, required=True, metadata={"description": "How the sets of the items change."}
    )


class ExerciseReplacement(DryRun):
    """The exercise to replace, the one that takes its place, and the days."""

    exerciseId = Identifier(required=True)
    withExerciseId = Identifier(required=True, metadata={"description": "The exercise that takes its place."})
    startDate = Date(required=True)
    endDate = Date(allow_none=True, load_default=None, metadata={"description": "The last date. Default: no end."})

    @validates_schema
    def is_at_most_a_year(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require the end not to be before the start, and at most 366 days."""
        if data["endDate"] is None:
            return
        if data["endDate"] < data["startDate"]:
            raise invalid("must not be before startDate", "BEFORE_START", "endDate")
        require_at_most_a_year(data["startDate"], data["endDate"])


class ScheduleClearing(ScheduleRange, DryRun):
    """The days of a calendar to clear."""


class ProgramFromCalendar(ScheduleRange):
    """The days of a client's calendar that become a program, and its name; the first day is day 1."""

    customerId = Identifier(required=True)
    name = Text(required=True)


class ScheduleChange(Output):
    """What an operation did to a schedule, or with `dryRun` would do."""

    dryRun = fields.Boolean(metadata={"description": "Whether nothing was written."})
    changeId = Identifier(allow_none=True, metadata={"description": "The change to undo; null in a dry run."})
    created = fields.List(fields.Nested(WorkoutBlock), metadata={"description": "The new blocks."})
    changed = fields.List(fields.Nested(WorkoutBlock), metadata={"description": "The blocks that changed, afterwards."})
    removed = fields.List(Identifier(), metadata={"description": "The identifiers of the blocks that were removed."})


class ScheduleConflict(Output):
    """A block that was on a target day."""

    date = Date(metadata={"description": "Its date on a calendar.", "optional": True})
    day = fields.Integer(metadata={"description": "Its day in a program, from 1.", "optional": True})
    wblockId = Identifier()
    name = fields.String()


class LoadChange(Output):
    """Planned sets of an exercise whose load is different."""

    exerciseId = Identifier()
    exerciseName = fields.String()
    loadType = Choice(
        *LOAD_TYPES, metadata={"description": "`assistance`: the load of an assisted machine, a higher one is easier."}
    )
    before = fields.Float(metadata={"description": "In the company's unit."})
    after = fields.Float(metadata={"description": "In the company's unit."})
    sets = fields.Integer(metadata={"description": "How many planned sets, of a circuit in one round."})


class SetCountChange(Output):
    """Items in which an exercise has another number of planned sets."""

    exerciseId = Identifier()
    exerciseName = fields.String()
    before = fields.Integer(metadata={"description": "Sets before, of a circuit in one round, warm-up included."})
    after = fields.Integer(metadata={"description": "Sets afterwards."})
    items = fields.Integer(metadata={"description": "How many items."})


class _Copied(Output):
    """What only copies state."""

    conflicts = fields.List(
        fields.Nested(ScheduleConflict),
        metadata={
            "description": "The blocks that were on the days of the copies; with `replace`, on every day of the "
            "target range."
        },
    )
    loadChanges = fields.List(
        fields.Nested(LoadChange), metadata={"description": "The loads of the copies that differ from the source."}
    )
    setChanges = fields.List(
        fields.Nested(SetCountChange),
        metadata={"description": "The numbers of sets of the copies that differ from the source."},
    )


class CopiedSchedule(_Copied, ScheduleChange):
    """What copying days did, or with `dryRun` would do."""


class AdjustedSchedule(ScheduleChange):
    """What changed of items with nothing done."""

    items = fields.Integer(metadata={"description": "The number of items that changed."})


class AdjustedLoads(AdjustedSchedule):
    """What changed of items with nothing done, and of their loads and numbers of sets."""

    loadChanges = fields.List(fields.Nested(LoadChange), metadata={"description": "The loads that changed."})
    setChanges = fields.List(
        fields.Nested(SetCountChange), metadata={"description": "The numbers of sets that changed."}
    )


class ClearedSchedule(ScheduleChange):
    """What was removed from a calendar."""

    class Meta(ScheduleChange.Meta):
        include = {
            "kept": fields.Integer(
                required=True, metadata={"description": "The number of blocks that remain because work was done."}
            )
        }
