"""Requests and results of bulk operations."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from marshmallow import RAISE, fields

from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default, Description, Optional, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, Date, Identifier, Input, Integer, ListOf, StringList
from coaching_service.people.customers.models import CustomerFilter
from coaching_service.progress.conversation.models import MessageField
from coaching_service.training.schedule.models import OnConflict, SkipReason, on_conflict

_MAXIMUM = 20_000


class Strict(Input):
    """The base of a request in which unknown fields are rejected."""

    class Meta:
        unknown = RAISE


class CustomerSelection(TypedDict):
    """Which clients: `ids`, or `filter` with optional `excludeIds`. `dryRun` writes nothing."""

    ids: NotRequired[Annotated[list[ObjectId], ListOf(Identifier(), maximum=_MAXIMUM)]]
    filter: NotRequired[Annotated[CustomerFilter, fields.Nested(input_of(CustomerFilter, Strict))]]
    excludeIds: NotRequired[Annotated[list[ObjectId], ListOf(Identifier(), maximum=_MAXIMUM)]]
    dryRun: Annotated[bool, Default(False)]


class Selection(CustomerSelection):
    """The clients of an operation on schedules: also everyone a program runs for."""

    assignedProgramId: NotRequired[
        Annotated[
            ObjectId,
            Description(
                "In place of `ids` and `filter`: the active clients for whom this program is current or upcoming."
            ),
        ]
    ]


class BulkGroupsChange(CustomerSelection):
    """Groups to add or to remove."""

    groups: Annotated[list[str], StringList(allow_none=False)]


class BulkTrainerAssignment(CustomerSelection):
    """The coach to assign; null: none."""

    coachId: Annotated[ObjectId | None, Identifier(required=True)]


class BulkProgramAssignment(CustomerSelection):
    """The program to assign, and the date of its first day."""

    programId: ObjectId
    startDate: Annotated[str, CalendarDate()]
    weekdays: Annotated[
        list[int] | None,
        ListOf(Integer(minimum=1, maximum=7), minimum=1, maximum=7),
        Description("As in assigning a program to one client."),
    ]
    onConflict: Annotated[OnConflict, on_conflict()]


class BulkMetricsSetAssignment(CustomerSelection):
    """The metric set to assign."""

    metricsSetId: ObjectId


class BulkMessage(CustomerSelection):
    """The message to send to each client."""

    text: Annotated[str, MessageField(), Description("Plain text.")]


class BulkFailure(TypedDict):
    """A client who was not changed, and why."""

    customerId: ObjectId
    code: Annotated[str, Description("NOT_FOUND, FORBIDDEN, CONFLICT or BAD_REQUEST.")]
    message: str


class SkippedWorkout(TypedDict):
    """A workout that was left alone, and why."""

    wblockId: ObjectId
    code: Annotated[
        SkipReason,
        Description(
            "`DONE`: work of it is done. `PARTLY_DONE`: work of some of its items is done, the others are changed. "
            "`DAY_TAKEN`: the day to which it would be copied has workouts."
        ),
    ]


class ClientChange(TypedDict):
    """What changed of a client's schedule, or in a dry run would."""

    customerId: ObjectId
    changed: Annotated[int, Description("The number of workouts that were changed, moved, added or removed.")]
    skipped: Annotated[list[SkippedWorkout], Description("The workouts that were left alone.")]
    moreSkipped: NotRequired[
        Annotated[
            int,
            Description(
                "The number of skipped workouts that are not listed, if any: all clients together list at most 100,000."
            ),
            Optional,
        ]
    ]


class BulkResult(TypedDict):
    """The result: inspect `failed` even though the status is 200."""

    requested: Annotated[int, Description("Distinct clients requested.")]
    ok: Annotated[int, Description("Clients changed, or who would be changed in a dry run.")]
    failed: list[BulkFailure]
    results: NotRequired[  # of operations on schedules
        Annotated[list[ClientChange], Private, Description("What changed of each client who is counted in `ok`.")]
    ]


class CustomerConflict(TypedDict):
    """A block that a client had on a day to which the program is assigned."""

    customerId: ObjectId
    date: Annotated[str, Date()]
    wblockId: ObjectId
    name: str


class BulkAssignmentResult(BulkResult):
    """The result of assigning a program to many clients."""

    conflicts: NotRequired[
        Annotated[
            list[CustomerConflict],
            Description("In a dry run, if any: the blocks on the days of the program, of at most 1,000 clients."),
            Optional,
        ]
    ]
