"""What a program as it is now would change on the calendars of the clients who are on it."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict, get_args

from marshmallow import fields

from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Default, Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Identifier, ListOf
from coaching_service.people.customers.models import NamedCustomer

SyncState = Literal["same", "changed", "new", "removed", "customised", "done", "past"]
Syncable = Literal["changed", "new", "removed", "customised"]
SYNCABLE: tuple[Syncable, ...] = get_args(Syncable)
DEFAULT_INCLUDE: tuple[Syncable, ...] = ("changed", "new", "removed")
RunningStatus = Literal["current", "upcoming"]


_From = TypedDict(  # `from` is no name in Python
    "_From",
    {
        "from": NotRequired[
            Annotated[
                str | None,
                Date(),
                Description("Nothing before this date is changed. Default: the client's local date."),
            ]
        ]
    },
)


class ProgramSyncRequest(_From):
    """What to bring to the calendars of the clients who are on a program."""

    assignmentIds: NotRequired[
        Annotated[
            list[ObjectId],
            ListOf(Identifier(), minimum=1, maximum=500),
            Description("The assignments to bring up to date. Default: all current and upcoming ones."),
        ]
    ]
    include: Annotated[
        list[Syncable],
        ListOf(Choice(*SYNCABLE), minimum=1, maximum=len(SYNCABLE)),
        Default(lambda: list(DEFAULT_INCLUDE)),
        Description("The states to bring up to date. Default: `changed`, `new` and `removed`."),
    ]


class SyncCounts(TypedDict):
    """How many workouts were brought up to date."""

    changed: Annotated[int, Description("Workouts that have been replaced by what the program has now.")]
    created: Annotated[int, Description("Workouts that have been added to calendars.")]
    removed: Annotated[int, Description("Workouts that have been removed from calendars.")]


class SyncResult(SyncCounts):
    """What was done, or with `dryRun` would be."""

    kept: Annotated[int, Description("All other workouts of the assignments: they stay as they are.")]

    dryRun: Annotated[bool, Description("Whether nothing was written.")]
    changeId: Annotated[ObjectId | None, Description("The change to undo; null in a dry run, and without a change.")]


class SyncBlock(TypedDict):
    """A workout of a program for a client, and how it differs from the program."""

    date: Annotated[
        str,
        Date(),
        Description("The date that the program has for it now, shifted with the schedule; of a removed one, its own."),
    ]
    wblockId: Annotated[ObjectId | None, Description("The client's workout; null if there is none.")]
    state: Annotated[
        SyncState,
        Description(
            "`changed`: the program has moved on. `new`: the client does not have it. `removed`: the program no longer "
            "has it. `customised`: changed or deleted by hand on the calendar. `done`: something of it has been done. "
            "`past`: before the client's local date. `same`: nothing to do."
        ),
    ]
    name: Annotated[str, Description("The name in the program; of a removed, done or past workout, its own.")]


class AssignmentSync(TypedDict):
    """The workouts of an assignment, by date."""

    assignmentId: ObjectId
    customer: Annotated[NamedCustomer, Description("The client.")]
    blocks: Annotated[list[SyncBlock], fields.List(fields.Nested(output_of(SyncBlock)))]


class RunningAssignment(TypedDict):
    """A client who is on a program, and where: the week from 1 (0: not begun), of how many."""

    assignmentId: ObjectId
    customer: NamedCustomer
    startDate: str
    endDate: str
    status: RunningStatus
    week: int
    weeks: int
