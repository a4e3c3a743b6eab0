"""Assignments of programs as they are stored and returned."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Stored
from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Default, Description, Partial
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, Date, DryRunField, Integer, ListOf, Text
from coaching_service.training.schedule.models import OnConflict, ScheduleConflict, on_conflict

Status = Literal["current", "ended", "upcoming"]


class Shift(TypedDict):
    """What was planned from a date on has been moved by a number of days, negative for earlier.

    `first` is a date as the shifts before have moved it.
    """

    first: Annotated[str, Date()]
    days: int


class AssignmentContent(TypedDict):
    """A program assigned to a client; the blocks are stored by training/workouts and name it (`assignmentId`).

    `programName` is the name at that time. `startDate` is the date of day 1, `endDate` of the last block when it
    was assigned. `endedDate` is the client's local date on which a coach ended it; None until then. `programBlockIds`
    are the blocks of the program that were taken over; one that the client no longer has was deleted, and does not come
    back. `groupName` is the group that the client joined to get the program. `shifts` of the schedule have moved its
    blocks, in order; absent without one. The three before it are absent in older ones.
    """

    customerId: ObjectId
    programId: ObjectId
    programName: Annotated[str, Text()]
    startDate: Annotated[str, CalendarDate()]
    endDate: Annotated[str, CalendarDate()]
    endedDate: Annotated[str | None, Date()]
    weekdays: NotRequired[Annotated[list[int] | None, ListOf(Integer(minimum=1, maximum=7), maximum=7)]]
    programBlockIds: NotRequired[list[ObjectId]]
    groupName: NotRequired[Annotated[str | None, Text(max_length=100)]]
    shifts: NotRequired[list[Shift]]


class StoredAssignment(AssignmentContent, Stored):
    """A stored assignment."""


# The fields of a stored assignment to set.
AssignmentFields: TypeAlias = Partial[AssignmentContent]


class _Dated(TypedDict):
    date: str


class AssignmentsEnd(TypedDict):
    """The latest `endDate` of the `assignments` of a client (`_id`), and the last block that is left, if any."""

    _id: ObjectId
    endDate: str
    assignments: list[ObjectId]
    lastBlock: list[_Dated]


class ProgramAssignment(DryRunField):
    """The client that a program is assigned to, and the dates."""

    customerId: ObjectId
    startDate: Annotated[str, CalendarDate(), Description(argument="Date of day 1, YYYY-MM-DD.")]
    weekdays: NotRequired[
        Annotated[
            list[int],
            ListOf(Integer(minimum=1, maximum=7), minimum=1, maximum=7),
            Description(
                request="Weekdays from 1 (Monday) to 7 (Sunday): the days with work go onto the next dates of these "
                "weekdays, in order, and rest days are left out. Default: day 1 on `startDate`, day 8 a week later.",
                argument="1 Monday to 7: days with work go onto the next such dates, rest days are left out.",
            ),
        ]
    ]
    onConflict: Annotated[OnConflict, on_conflict()]


class AssignmentConflict(TypedDict):
    """A block that was on the calendar before."""

    date: Annotated[str, Date()]
    wblockId: ObjectId
    name: str


class ProgramAssignmentResult(TypedDict):
    """What was added to the calendar, or with `dryRun` would be."""

    blocks: Annotated[int, Description("The number of blocks that were added.")]
    assignmentId: Annotated[ObjectId | None, Description("The identifier of the assignment; null in a dry run.")]
    dates: Annotated[list[str], ListOf(Date()), Description("The date of each block that was added, in order.")]
    conflicts: Annotated[
        list[ScheduleConflict],
        fields.List(fields.Nested(output_of(AssignmentConflict))),
        Description(
            "The blocks that were on the days to which the program is assigned; with `replace`, on every day from the "
            "start to the last block."
        ),
    ]
    dryRun: Annotated[bool, Description("Whether nothing was written.")]
    changeId: Annotated[ObjectId | None, Description("The change to undo; null in a dry run.")]


class ClientProgram(TypedDict):
    """A program that was assigned to a client."""

    _id: Annotated[ObjectId, Description("The identifier of the assignment.")]
    programId: ObjectId
    name: Annotated[str, Description("The name of the program when it was assigned.")]
    startDate: Annotated[str, Date(), Description("The date of day 1.")]
    endDate: Annotated[
        str, Date(), Description("The date of its last block, or on which it was ended, if that is before.")
    ]
    blocks: Annotated[int, Description("The number of its blocks that are on the calendar.")]
    completedBlocks: Annotated[int, Description("The number of them that are completed.")]
    status: Annotated[Status, Description("Where it is, on the client's local date.")]


class ProgramProgress(ClientProgram):
    """A program of a client with its week from 1, of how many; 0 before it begins."""

    week: int
    weeks: int


class ProgramEnd(TypedDict):
    """Whether to remove the workouts that are still to come."""

    removeUpcoming: Annotated[
        bool,
        Default(False),
        Description("Remove its blocks with nothing done, from the client's local date on."),
    ]


class ProgramEndResult(TypedDict):
    """How many blocks were removed."""

    removed: Annotated[int, Description("The number of blocks that were removed.")]
