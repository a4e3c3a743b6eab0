"""Requests and results of operations on a schedule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast, get_args

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import validation
from coaching_service.core.external_identity import ExternalId
from coaching_service.core.fields import Default, Description, Optional, input_of, output_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.independent_entries import IndependentEntries, InvalidEntry
from coaching_service.core.query import DateRange, Period
from coaching_service.core.validation import DryRun, Input, Integer, invalid
from coaching_service.library.exercises.models import LoadType
from coaching_service.training.programs import LAST_DAY
from coaching_service.training.workouts.blocks.models import (
    SCHEDULED_WORKOUT_BLOCK,
    BlockUpsert,
    NewBlock,
    ScheduleChange,
)
from coaching_service.training.workouts.sets import MAX_LOAD, MAX_REPS, MAX_SETS

# A date (`YYYY-MM-DD`) of a client's calendar, or a day of a program, from 1.
Day = str | int
# What happens on a target day that has blocks: the new ones are added, the day is left out, or blocks of which nothing
# is done are removed from every day of the target range.
OnConflict = Literal["add", "skip", "replace"]
# What becomes of the planned loads of an exercise that another one replaces.
ReplacedLoad: TypeAlias = Literal["keep", "clear"] | dict[Literal["percent"], float]
_ON_CONFLICT = (
    "On a target day that has blocks: `add` adds the new ones after them; `skip` leaves the day as it is. `replace` "
    "first removes the blocks with nothing done from every day of the target range."
)


def on_conflict(default: OnConflict = "add", about: str = _ON_CONFLICT) -> validation.Choice:
    """Return the field that states what happens on days that have blocks."""
    return validation.Choice(*get_args(OnConflict), load_default=default, metadata={"description": about})


# --- Progressions ----------------------------------------------------------------------------------------------------


class _OneChange(Input):
    @validates_schema
    def is_one_change(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require exactly one of `add` and `percent`."""
        if len(data) != 1:
            raise validation.invalid("must have either add or percent", "INVALID")


class LoadProgression(TypedDict, total=False):
    """How loads change: by an amount, or by a percentage; of assisted exercises as of all others."""

    add: Annotated[
        float,
        validation.Number(minimum=-MAX_LOAD, maximum=MAX_LOAD),
        Description(
            request="In the company's unit; negative lowers loads, which makes an exercise whose `loadType` is "
            "`assistance` harder.",
            argument="Added to loads, in the client's unit.",
        ),
    ]
    percent: Annotated[
        float,
        validation.Number(minimum=-100, maximum=1_000),
        Description(
            request="Percent of the load; negative lowers it.", argument="Percent of the load, instead of addLoad."
        ),
    ]


class RepsProgression(TypedDict):
    """How planned repetitions change."""

    add: Annotated[
        int,
        Integer(minimum=-MAX_REPS, maximum=MAX_REPS),
        Description(
            request="Added to minimum and maximum, which do not fall below 1.", argument="Added to repetitions."
        ),
    ]


class SetsProgression(TypedDict, total=False):
    """How the number of planned sets changes; warm-up sets stay, and at least one other set."""

    add: Annotated[
        int,
        Integer(minimum=-MAX_SETS, maximum=MAX_SETS),
        Description(
            request="Sets to add, like the last one; negative removes the last ones.",
            argument="Working sets added; at least one stays.",
        ),
    ]
    percent: Annotated[
        float,
        validation.Number(minimum=-100, maximum=1_000),
        Description(
            request="Percent of the sets, rounded half up to whole sets.",
            argument="Instead of addSets, relative: -33 takes off a third, rounded; at least one stays.",
        ),
    ]


class SentProgression(TypedDict):
    """How planned sets change. Sets without a load remain without one; loads do not fall below 0."""

    load: NotRequired[
        Annotated[
            LoadProgression | None,
            fields.Nested(input_of(LoadProgression, _OneChange)),
            Description("How loads change. Default: not at all."),
        ]
    ]
    reps: NotRequired[Annotated[RepsProgression | None, Description("How repetitions change. Default: not at all.")]]
    sets: NotRequired[
        Annotated[
            SetsProgression | None,
            fields.Nested(input_of(SetsProgression, _OneChange)),
            Description("How the number of sets changes. Default: not."),
        ]
    ]
    rounding: NotRequired[
        Annotated[
            float | None,
            validation.Number(minimum=0.01, maximum=1_000),
            Description(
                "Changed loads are rounded half up to its nearest multiple, in the company's unit; a change smaller "
                "than it is exact. Null: every change is exact. Default: 2.5 kg or 5 lb."
            ),
        ]
    ]
    exerciseIds: NotRequired[
        Annotated[
            list[ObjectId],
            validation.ListOf(validation.Identifier(), minimum=1),
            Description("The exercises whose sets change. Default: all."),
        ]
    ]


class Progression(SentProgression):
    """How planned sets change; loads change, and are rounded, in `loadUnit`, by default the company's unit."""

    loadUnit: NotRequired[str]


class _SomeChange(Input):
    @validates_schema
    def changes_something(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a change of loads, repetitions or sets."""
        if all(data.get(name) is None for name in ("load", "reps", "sets")):
            raise validation.invalid("must change load, reps or sets", "REQUIRED")


_PROGRESSION = fields.Nested(input_of(SentProgression, _SomeChange, name="Progression"))

# --- Requests --------------------------------------------------------------------------------------------------------


class Repetition(TypedDict):
    """How often days are copied."""

    repeat: Annotated[
        int,
        Integer(minimum=1, maximum=12),
        Default(1),
        Description(
            request="How many copies, one after another; copy k applies the progression k times.",
            argument="Copies, one after another.",
        ),
    ]


class _CopyOptions(Repetition):
    progression: Annotated[Progression | None, _PROGRESSION, Description("How the sets of the copies change.")]
    onConflict: Annotated[OnConflict, on_conflict()]


class TargetDate(TypedDict):
    """The day of a client's calendar on which copies begin."""

    targetDate: Annotated[
        str,
        validation.CalendarDate(),
        Description(request="The date on which the first copy begins.", argument="First day of the copy."),
    ]


class ScheduleCopy(validation.DryRunField, Period, TargetDate, _CopyOptions):
    """The days of a calendar to copy, and the date on which the first copy begins."""


class ProgramDays(TypedDict):
    """The days of a program to copy, both included, and the day on which the first copy begins."""

    startDay: Annotated[int, Integer(minimum=1, maximum=LAST_DAY)]
    endDay: Annotated[int, Integer(minimum=1, maximum=LAST_DAY)]
    targetDay: Annotated[
        int, Integer(minimum=1, maximum=LAST_DAY), Description("The day of the program on which the first copy begins.")
    ]


class ProgramDaysCopy(validation.DryRunField, ProgramDays, _CopyOptions):
    """The days of a program to copy, and the day on which the first copy begins."""


class ScheduleAdjustment(validation.DryRunField, Period):
    """The days of a calendar whose items change, and how."""

    progression: Annotated[Progression, _PROGRESSION, Description("How the sets of the items change.")]


class ReplacedLoadField(fields.Field[ReplacedLoad]):
    """`keep`, `clear`, or `{percent}` of the old load; as text also the percentage alone."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> ReplacedLoad:
        if value in ("keep", "clear"):
            return cast("ReplacedLoad", value)
        percent = value.get("percent") if isinstance(value, dict) and len(value) == 1 else value
        if isinstance(value, str):
            number = value.removesuffix("%").strip()
            percent = float(number) if _PERCENT.fullmatch(number) else None
        if isinstance(percent, int | float) and not isinstance(percent, bool) and 1 <= percent <= 200:
            return {"percent": percent}
        raise ValidationError(
            [validation.Message("must be keep, clear or a percentage from 1 to 200", "INVALID_CHOICE")]
        )


_PERCENT = re.compile(r"\d{1,3}(\.\d{1,2})?")
REPLACED_LOAD: dict[str, Any] = {
    "oneOf": [
        {"type": "string", "enum": ["keep", "clear"]},
        {
            "type": "object",
            "properties": {"percent": {"type": "number", "minimum": 1, "maximum": 200}},
            "required": ["percent"],
            "additionalProperties": False,
        },
    ]
}


class ExerciseReplacement(validation.DryRunField):
    """The exercise to replace, the one that takes its place, and the days."""

    exerciseId: ObjectId
    withExerciseId: Annotated[ObjectId, Description("The exercise that takes its place.")]
    startDate: Annotated[str, validation.Date()]
    endDate: Annotated[str | None, validation.Date(), Description("The last date. Default: no end.")]
    load: Annotated[
        ReplacedLoad,
        ReplacedLoadField(metadata=REPLACED_LOAD),
        Default("keep"),
        Description(
            "What becomes of planned loads and percentages: `keep`, `clear`, or `{percent}` of the old ones, rounded "
            "as by a progression, percentages to whole numbers. Default: keep."
        ),
    ]


class ScheduleClearing(validation.DryRunField, Period):
    """The days of a calendar to clear."""


class WorkoutBlockBatch(validation.DryRunField):
    """Workout blocks with items for a client's calendar, created all or nothing."""

    blocks: Annotated[
        list[NewBlock],
        validation.ListOf(fields.Nested(SCHEDULED_WORKOUT_BLOCK), minimum=1, maximum=100),
        Description("The blocks; blocks of one day are in order."),
    ]


_ENTRY = type(validation.patch_of(SCHEDULED_WORKOUT_BLOCK, name="NewWorkoutBlockEntry"))


class WorkoutBlockEntry(_ENTRY):  # type: ignore[misc,valid-type]  # a schema that is made from another one
    """A workout block to create, or the fields of the existing one to change."""

    externalId = ExternalId(required=True)


class WorkoutBlockUpserts(TypedDict):
    """Workout blocks to create or change."""

    blocks: Annotated[
        Sequence[BlockUpsert | InvalidEntry],
        IndependentEntries(WorkoutBlockEntry, maximum=100),
        Description(
            "1 to 100 blocks with their `externalId`, each validated by itself. A new one needs `name` and `date`; "
            "`items` replace those of a known one, if they are sent."
        ),
    ]
    onConflict: Annotated[
        Literal["error", "update"],
        Default("update"),
        Description("What becomes of an entry whose block is there: it is changed, or with `error` not valid."),
    ]


class ProgramFromCalendar(Period):
    """The days of a client's calendar that become a program, and its name; the first day is day 1."""

    customerId: ObjectId
    name: Annotated[str, validation.Text()]


# --- Operations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CopyRequest:
    """Days to copy, from `first` to `last`, and where: the first copy begins on `target`, the others follow it."""

    first: Day
    last: Day
    target: Day
    repeat: int = 1
    progression: Progression | None = None
    on_conflict: OnConflict = "add"


class _Run(TypedDict):
    dryRun: Annotated[bool, Description("Whether nothing was written.")]
    changeId: Annotated[ObjectId | None, Description("The change to undo; null in a dry run.")]


class ScheduleResult(_Run, ScheduleChange):
    """What an operation did to a schedule, or with `dryRun` would do."""


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
    """A block that was on a target day."""

    date: NotRequired[Annotated[str, validation.Date(), Description("Its date on a calendar."), Optional]]
    day: NotRequired[Annotated[int, Description("Its day in a program, from 1."), Optional]]
    wblockId: ObjectId
    name: str


class LoadChange(TypedDict):
    """Planned sets of an exercise whose load is different."""

    exerciseId: ObjectId
    exerciseName: str
    loadType: Annotated[LoadType, Description("`assistance`: the load of an assisted machine, a higher one is easier.")]
    before: Annotated[float, Description("In the company's unit.")]
    after: Annotated[float, Description("In the company's unit.")]
    sets: Annotated[int, Description("How many planned sets, of a circuit in one round.")]


class SetCountChange(TypedDict):
    """Items in which an exercise has another number of planned sets."""

    exerciseId: ObjectId
    exerciseName: str
    before: Annotated[int, Description("Sets before, of a circuit in one round, warm-up included.")]
    after: Annotated[int, Description("Sets afterwards.")]
    items: Annotated[int, Description("How many items.")]


class CopiedSchedule(ScheduleResult):
    """What copying days did, or with `dryRun` would do."""

    conflicts: Annotated[
        list[ScheduleConflict],
        Description(
            "The blocks that were on the days of the copies; with `replace`, on every day of the target range."
        ),
    ]
    loadChanges: Annotated[list[LoadChange], Description("The loads of the copies that differ from the source.")]
    setChanges: Annotated[
        list[SetCountChange], Description("The numbers of sets of the copies that differ from the source.")
    ]


class ChangedItems(ScheduleResult):
    """What changed of items with nothing done."""

    items: Annotated[int, Description("The number of items that changed.")]


class NamedExercise(TypedDict):
    """An exercise by its name."""

    _id: ObjectId
    name: str


class ReplacedExercise(ChangedItems):
    """What replacing an exercise did, or with `dryRun` would do."""

    exercise: Annotated[NamedExercise, Description("The exercise that was replaced.")]
    withExercise: Annotated[NamedExercise, Description("The exercise in its place.")]


class ProgressionChanges(TypedDict):
    """What a progression has changed: loads, and numbers of sets."""

    loadChanges: Annotated[list[LoadChange], Description("The loads that changed.")]
    setChanges: Annotated[list[SetCountChange], Description("The numbers of sets that changed.")]


class AdjustedSchedule(ChangedItems, ProgressionChanges):
    """What changed of items with nothing done, and of their loads and numbers of sets."""


class ClearedSchedule(ScheduleResult):
    """What was removed from a calendar."""

    kept: Annotated[int, Description("The number of blocks that remain because work was done.")]


# --- Schemas of requests, with the checks that concern several fields -------------------------------------------------


_MAX_DAYS = 366


class ScheduleRange(DateRange):
    """`startDate` and `endDate`, both included, at most 366 days."""

    @validates_schema
    def is_at_most_a_year(self, data: Mapping[str, str], **_: Any) -> None:
        """Require at most 366 days."""
        require_at_most_a_year(data["startDate"], data["endDate"])


def require_at_most_a_year(first: str, last: str) -> None:
    """Raise ValidationError if there are more than 366 days from `first` to `last`, both included."""
    if (date.fromisoformat(last) - date.fromisoformat(first)).days >= _MAX_DAYS:
        raise invalid(f"must be within {_MAX_DAYS} days of startDate", "RANGE_TOO_LONG", "endDate")


class ProgramRange(Input):
    """The checks of `startDay` and `endDay`."""

    @validates_schema
    def is_at_most_a_year(self, data: Mapping[str, int], **_: Any) -> None:
        """Require the end not to be before the start, and at most 366 days."""
        if data["endDay"] < data["startDay"]:
            raise invalid("must not be before startDay", "BEFORE_START", "endDay")
        if data["endDay"] - data["startDay"] >= _MAX_DAYS:
            raise invalid(f"must be within {_MAX_DAYS} days of startDay", "RANGE_TOO_LONG", "endDay")


class _OpenRange(Input):
    @validates_schema
    def is_at_most_a_year(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require the end not to be before the start, and at most 366 days."""
        if data["endDate"] is None:
            return
        if data["endDate"] < data["startDate"]:
            raise invalid("must not be before startDate", "BEFORE_START", "endDate")
        require_at_most_a_year(data["startDate"], data["endDate"])


WORKOUT_BLOCK_BATCH = input_of(WorkoutBlockBatch, DryRun)
WORKOUT_BLOCK_UPSERTS = input_of(WorkoutBlockUpserts, DryRun)
SCHEDULE_COPY = input_of(ScheduleCopy, ScheduleRange, DryRun)
PROGRAM_DAYS_COPY = input_of(ProgramDaysCopy, ProgramRange, DryRun)
SCHEDULE_ADJUSTMENT = input_of(ScheduleAdjustment, ScheduleRange, DryRun)
EXERCISE_REPLACEMENT = input_of(ExerciseReplacement, _OpenRange, DryRun)
SCHEDULE_CLEARING = input_of(ScheduleClearing, ScheduleRange, DryRun)
PROGRAM_FROM_CALENDAR = input_of(ProgramFromCalendar, ScheduleRange)
SCHEDULE_CHANGE = output_of(ScheduleResult, name="ScheduleChange")
REPLACED_EXERCISE = output_of(ReplacedExercise)
ADJUSTED_LOADS = output_of(AdjustedSchedule, name="AdjustedLoads")
