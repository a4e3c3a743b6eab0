"""Requests and responses of the assignments of programs."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Boolean, Choice, Date, DryRun, Identifier, Input, Integer, ListOf, Output
from coaching_service.training.schedule.schemas import on_conflict


class ProgramAssignment(DryRun):
    """The client that a program is assigned to, and the dates."""

    customerId = Identifier(required=True)
    startDate = Date(required=True)
    weekdays = ListOf(
        Integer(minimum=1, maximum=7),
        minimum=1,
        maximum=7,
        metadata={
            "description": "Weekdays from 1 (Monday) to 7 (Sunday): the days with work go onto the next dates of "
            "these weekdays, in order, and rest days are left out. Default: day 1 on `startDate`, day 8 a week later."
        },
    )
    onConflict = on_conflict()


class AssignmentConflict(Output):
    """A block that was on the calendar before."""

    date = Date()
    wblockId = Identifier()
    name = fields.String()


class ProgramAssignmentResult(Output):
    """What was added to the calendar, or with `dryRun` would be."""

    blocks = fields.Integer(metadata={"description": "The number of blocks that were added."})
    assignmentId = Identifier(
        allow_none=True, metadata={"description": "The identifier of the assignment; null in a dry run."}
    )
    dates = fields.List(Date(), metadata={"description": "The date of each block that was added, in order."})
    conflicts = fields.List(
        fields.Nested(AssignmentConflict),
        metadata={
            "description": "The blocks that were on the days to which the program is assigned; with `replace`, on "
            "every day from the start to the last block."
        },
    )
    dryRun = fields.Boolean(metadata={"description": "Whether nothing was written."})
    changeId = Identifier(allow_none=True, metadata={"description": "The change to undo; null in a dry run."})


class ClientProgram(Output):
    """A program that was assigned to a client."""

    _id = Identifier(metadata={"description": "The identifier of the assignment."})
    programId = Identifier()
    name = fields.String(metadata={"description": "The name of the program when it was assigned."})
    startDate = Date(metadata={"description": "The date of day 1."})
    endDate = Date(metadata={"description": "The date of its last block, or on which it was ended, if that is before."})
    blocks = fields.Integer(metadata={"description": "The number of its blocks that are on the calendar."})
    completedBlocks = fields.Integer(metadata={"description": "The number of them that are completed."})
    status = Choice(
        "current", "ended", "upcoming", metadata={"description": "Where it is, on the client's local date."}
    )


class ProgramEnd(Input):
    """Whether to remove the workouts that are still to come."""

    removeUpcoming = Boolean(
        load_default=False,
        metadata={"description": "Remove its blocks with nothing done, from the client's local date on."},
    )


class ProgramEndResult(Output):
    """How many blocks were removed."""

    removed = fields.Integer(metadata={"description": "The number of blocks that were removed."})
