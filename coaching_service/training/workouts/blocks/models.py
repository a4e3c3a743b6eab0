"""Workout blocks as they are sent, stored and read; see also items/models.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast

from marshmallow import fields

from coaching_service.core import external_identity, validation
from coaching_service.core import fields as core_fields
from coaching_service.core.database.declared import Stored
from coaching_service.core.events import DomainEvent
from coaching_service.core.external_identity import IdentityFields, IdentityResult
from coaching_service.core.fields import Description, input_of, output_of, query_of
from coaching_service.core.ids import NameOrId, ObjectId
from coaching_service.core.list_selection import UpdatedSince
from coaching_service.core.query import Period, SearchedRange
from coaching_service.core.validation import DryRun
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items.service import MAX_ITEMS
from coaching_service.training.workouts.sets import BlockTotals

# --- What a session consists of: the fields of a block that its client or a coach reports, declared once --------------


class SessionFields(TypedDict):
    """What is reported about a session; `feeling` is missing in blocks that are older than it is."""

    durationMinutes: Annotated[
        float | None,
        validation.Number(minimum=0, maximum=1_440),
        Description(argument="Of the session."),
        core_fields.Label("Duration"),
    ]
    sessionRpe: Annotated[
        float | None,
        validation.Number(minimum=0, maximum=10),
        Description(argument="Of the session, 0 to 10."),
        core_fields.Label("Session RPE"),
    ]
    feeling: NotRequired[
        Annotated[
            int | None,
            validation.Integer(minimum=1, maximum=5),
            Description(
                "How the client felt in the session, 1 (bad) to 5 (good).",
                request="How the client felt, 1 (bad) to 5 (good). Default: null in a client's log, the stored value "
                "in a coach's.",
                argument="How the client felt, 1 (bad) to 5 (good).",
            ),
        ]
    ]
    comment: Annotated[
        str | None,
        validation.Text(max_length=validation.TEXT_LENGTH, allow_blank=True),
        Description(argument="About the session."),
    ]


SESSION_FIELDS = core_fields.names_of(SessionFields)


def no_session() -> SessionFields:
    """Return the fields of a session without a report."""
    return {"durationMinutes": None, "sessionRpe": None, "feeling": None, "comment": None}


# --- Groups of fields ------------------------------------------------------------------------------------------------


class BlockName(TypedDict):
    """The name of a block."""

    name: Annotated[str, validation.Text()]


class WorkoutSettings(TypedDict):
    """What a coach sets for a workout or template as a whole: its fields are shown and copied wherever workouts are.

    Each is `NotRequired` and may be null, since older workouts do not have it; see docs/adding-a-resource.md.
    """


class BlockSettings(WorkoutSettings):
    """What a coach sets for a block as a whole."""

    isRest: Annotated[
        bool,
        core_fields.Default(False),
        Description(request="A day of rest, without work.", argument="A day of rest, without text."),
        core_fields.Label("Rest day"),
    ]


class PlannedBlock(BlockName, BlockSettings):
    """What a coach plans of a block, apart from its items: every copy of a block has it."""


class BlockItems(TypedDict):
    """The items of a new block."""

    items: Annotated[
        list[item_models.ItemInput],
        validation.ListOf(item_models.NEW_ITEM, maximum=MAX_ITEMS),
        core_fields.Default(list),
        Description("The items, in order. Default: none."),
    ]


class BlockOwner(TypedDict):
    """The client who has a block on their calendar."""

    customerId: Annotated[ObjectId | None, Description("The client of the calendar; null for a block of a program.")]


class BlockDay(TypedDict):
    """When a block is: of a client (`date`), of a program (`day`), or of a client from a program (both)."""

    date: Annotated[
        str | None,
        validation.CalendarDate(),
        Description("The date of a client's block; null for a block of a program."),
        core_fields.Label("Date"),
    ]
    day: Annotated[int | None, Description("The program's day, from 1."), core_fields.Label("Day")]


class BlockStart(TypedDict):
    """When a client's block began; absent in blocks that are older than the field."""

    startTime: NotRequired[
        Annotated[
            str | None,
            validation.TimeOfDay(),
            Description(
                "The time of day at which the session began, `HH:MM` in the client's time zone; null if unknown."
            ),
            core_fields.Label("Start time"),
        ]
    ]


class BlockMove(TypedDict):
    """Where the coach had planned a block that the client has moved; absent in all others."""

    plannedDate: NotRequired[
        Annotated[
            str | None,
            validation.CalendarDate(),
            Description("The coach's date of a block that the client has moved; null otherwise."),
            core_fields.Label("Planned date"),
        ]
    ]


class BlockSource(TypedDict):
    """Where a block was imported from: the format of the file, and the job that imported it."""

    format: Annotated[str, Description("The format of the file, such as `hevy`.")]
    importId: Annotated[ObjectId, Description("The job that imported it.")]


class ProgramCopy(TypedDict):
    """Which block of a program a client's block is a copy of; absent in blocks that are older than these fields.

    `shiftedDays`: by how many days shifts of the schedule have moved it from the program's date; absent for 0.
    """

    programBlockId: NotRequired[
        Annotated[
            ObjectId | None,
            Description("The workout of the program that a client's workout is a copy of; null otherwise."),
        ]
    ]
    programBlockVersion: NotRequired[
        Annotated[
            int | None, Description("The version of that workout of the program when it was copied; null otherwise.")
        ]
    ]
    shiftedDays: NotRequired[Annotated[int, core_fields.Private]]


class BlockOrigin(ProgramCopy):
    """What a block came from; absent in blocks that are older than these fields."""

    programId: ObjectId | None
    assignmentId: NotRequired[
        Annotated[ObjectId | None, Description("The assignment of a program that the block came from; null otherwise.")]
    ]
    checkInId: NotRequired[
        Annotated[
            ObjectId | None,
            Description(
                "The recurring check-in that scheduled it; null otherwise. Compliance, sessions and operations on the "
                "schedule ignore blocks of check-ins."
            ),
        ]
    ]
    createdBy: NotRequired[
        Annotated[
            Literal["client"] | None,
            Description(
                "`client`: the client added it; null otherwise. It makes a workout day in compliance only when it is "
                "completed."
            ),
        ]
    ]
    source: NotRequired[
        Annotated[
            BlockSource | None,
            Description(
                "Of a session that was imported from a file: its format, such as `hevy`, and the job that imported it; "
                "null otherwise. Its exercises may have no planned sets. Compliance ignores it."
            ),
        ]
    ]


class BlockContents(TypedDict):
    """The items of a block: with the fields that are stored, or as they are read.

    `clientTexts` has the names of the texts of its log that the client wrote; `fingerprint` of an imported session is
    what another file with the same session has in common with it; `programCopy` of a copy of a program's block is what
    was copied, as `summarize_copy` returns it.
    """

    items: Annotated[list[item_models.WorkItem], fields.List(item_models.ITEM_RESPONSE)]
    clientTexts: NotRequired[Annotated[list[NameOrId], core_fields.Private]]
    fingerprint: NotRequired[Annotated[str, core_fields.Private]]
    programCopy: NotRequired[Annotated[str, core_fields.Private]]


# --- Requests --------------------------------------------------------------------------------------------------------


class WorkoutBlockCopy(TypedDict):
    """The date of a copy."""

    date: Annotated[str, validation.CalendarDate()]


class WorkoutBlockFields(BlockName, WorkoutBlockCopy, BlockStart, BlockSettings):
    """The fields of a workout block on a client's calendar."""


class ScheduledWorkoutBlock(WorkoutBlockFields, BlockItems):
    """A workout block with items for a client's calendar."""


class NewWorkoutBlock(ScheduledWorkoutBlock):
    """A workout block with items for a client's calendar, created all or nothing."""


class SentDay(TypedDict, total=False):
    """The day that a coach sends: a `date` for a client, a `day` for a program."""

    date: str
    day: int


class _Sent(SentDay, total=False):
    startTime: str | None


class BlockInput(PlannedBlock, _Sent, external_identity.IdentityInput):
    """A new block as a coach sends it: with a `date` for a client, with a `day` for a program."""


class NewBlock(BlockInput, BlockItems):
    """A new block as a coach sends it, with its items."""


class _Version(TypedDict):
    version: int | None


class BlockPosition(TypedDict):
    """Where among the blocks of its day a block goes."""

    order: Annotated[
        int,
        validation.Integer(minimum=0, maximum=1000),
        Description("Position among the blocks of the day, from 0; past the end is the end."),
    ]


class _BlockChange(PlannedBlock, _Sent, external_identity.IdentityInput, BlockPosition, _Version):
    pass


# The fields of a block to change, and the version that the change is based on; the same with the items.
BlockChange: TypeAlias = core_fields.Partial[_BlockChange]
BlockUpsert: TypeAlias = core_fields.Change[NewBlock]


# `from` is a keyword of Python, so this type has the functional form.
_Shift = TypedDict(
    "_Shift",
    {
        "days": Annotated[int, validation.Integer(minimum=-3_660, maximum=3_660)],
        "from": Annotated[str, validation.Date()],
    },
)


class WorkoutBlockShift(_Shift):
    """The first date of the blocks to shift, and the number of days."""


class ItemMove(TypedDict):
    """The move of an item; without `source` or `target` it is the documented 500."""

    source: item_models.ItemMoveSource | None
    target: item_models.ItemMoveTarget | None
    version: NotRequired[Annotated[int, validation.Version()]]


class BlockFilters(UpdatedSince, external_identity.ExternalIdFilter):
    """The filters of a list of blocks, apart from the days."""


class CalendarQuery(BlockFilters, Period):
    """The blocks of a calendar to read."""


class WorkoutBlockQuery(TypedDict):
    """What to add to a workout block."""

    include: NotRequired[
        Annotated[
            Literal["lastTime"],
            Description(
                "`lastTime`: adds to each exercise what the client did in its latest session before the date of the "
                "block."
            ),
        ]
    ]


# --- Documents -------------------------------------------------------------------------------------------------------


class BlockContent(
    PlannedBlock,
    BlockOwner,
    BlockDay,
    BlockMove,
    BlockStart,
    BlockOrigin,
    SessionFields,
    BlockContents,
    external_identity.StoredIdentity,
):
    """The content of a stored block."""


class StoredBlock(BlockContent, Stored):
    """A stored block."""


class _BlockFields(PlannedBlock, _Sent, SessionFields, external_identity.StoredIdentity, ProgramCopy):
    programCopy: str
    plannedDate: str
    position: int
    clientTexts: list[NameOrId]
    items: list[item_models.WorkItem]
    done: BlockTotals | None


# The fields of a stored block to set; `position` orders the blocks of a day, `done` are the totals of `items`.
BlockFields: TypeAlias = core_fields.Partial[_BlockFields]


class DayBlock(BlockName, BlockDay, SessionFields):
    """A block of a day as operations on the schedule read it: when it is, and whether anything of it is done.

    Its items have only the fields that a log sets. `position` orders the blocks of a day.
    """

    _id: ObjectId
    position: int
    items: list[dict[str, Any]]
    checkInId: NotRequired[ObjectId | None]
    assignmentId: NotRequired[ObjectId | None]


class _Order(TypedDict):
    order: Annotated[int, Description("Position among the blocks of the day, from 0.")]


class _Completion(TypedDict):
    isCompleted: Annotated[bool, Description("Whether the block has items and all of them are completed.")]


class WorkoutBlock(
    BlockOwner,
    BlockName,
    BlockDay,
    BlockMove,
    BlockStart,
    _Order,
    BlockSettings,
    _Completion,
    SessionFields,
    BlockOrigin,
    BlockContents,
    Stored,
):
    """A workout block with its items in order."""


class Block(WorkoutBlock, external_identity.Identity):
    """A workout block with its items in order, as it is read."""


class BlockPlan(PlannedBlock, external_identity.IdentityInput, ProgramCopy):
    """A block to put on a schedule with its items, new or copied; whatever was done for them is left out."""

    items: Sequence[item_models.ItemInput | item_models.WorkItem]
    date: NotRequired[str | None]
    day: NotRequired[int | None]
    startTime: NotRequired[str | None]
    programId: NotRequired[ObjectId | None]
    assignmentId: NotRequired[ObjectId | None]
    checkInId: NotRequired[ObjectId | None]
    createdBy: NotRequired[Literal["client"] | None]


class WorkoutBlockShiftResult(TypedDict):
    """How many blocks were shifted."""

    shifted: int


class ScheduleChange(TypedDict):
    """What an operation did to a schedule, or would do."""

    created: Annotated[list[Block], _block_list(), Description("The new blocks.")]
    changed: Annotated[list[Block], _block_list(), Description("The blocks that changed, afterwards.")]
    removed: Annotated[list[ObjectId], Description("The identifiers of the blocks that were removed.")]


def _block_list() -> fields.List[Any]:
    return fields.List(fields.Nested(output_of(WorkoutBlock, IdentityResult)))


# A block with logged sets as it is compared with a session to import.
KnownSession: TypeAlias = core_fields.Part[
    StoredBlock, Literal["_id", "date", "name", "startTime", "fingerprint", "items"]
]
# An imported session as its undo reads it.
ImportedSession: TypeAlias = core_fields.Part[StoredBlock, Literal["_id", "customerId", "date", "version", "items"]]


# --- What was done in a workout block, as it is sent ------------------------------------------------------------------


class BlockLog(SessionFields):
    """What a client reports about a session; `version` is the version of the block it is based on.

    Without `feeling` the stored one stays.
    """

    clientTexts: NotRequired[list[NameOrId]]
    version: NotRequired[int | None]


class LogTexts(TypedDict):
    """The comment of a session, and the names of the texts that the client wrote: of the session, and of each item."""

    date: str | None
    comment: str | None
    clientTexts: list[NameOrId]
    ofItems: dict[ObjectId, list[str]]


class LoggedBlock(SessionFields):
    """A block to add with what was done in it: a log (or null) for each of its items, and of the session.

    `loggedAt` is the time of the logs, in UTC.
    """

    plan: BlockPlan
    logs: list[item_models.ItemLog | None]
    loggedAt: datetime
    clientTexts: NotRequired[list[NameOrId]]


# --- Events about clients' schedules and workouts, for the features that build on them --------------------------------


@dataclass(frozen=True)
class ScheduleChanged(DomainEvent):
    """A client's schedule changed: blocks or items were added, changed, moved, copied, shifted, assigned or removed."""

    customer_id: ObjectId


@dataclass(frozen=True)
class ScheduleShifted(DomainEvent):
    """Blocks of these assignments were moved by a number of days, with all others from the date `first` on."""

    customer_id: ObjectId
    assignment_ids: list[ObjectId]
    first: str
    days: int


@dataclass(frozen=True)
class CompletedWorkChanged(DomainEvent):
    """What a client has done in exercises changed.

    `items` are the stored items that were added, removed, changed (before and after) or moved to another date.
    `block` is the block that holds all of them, as it is now, if there is only one.
    """

    customer_id: ObjectId
    items: list[item_models.WorkItem]
    block: StoredBlock | None = None


@dataclass(frozen=True)
class RecordedItemsRescheduled(DomainEvent):
    """Items with recorded results moved to another date (`YYYY-MM-DD`)."""

    customer_id: ObjectId
    item_ids: list[ObjectId]
    date: str


# --- What a copy of a block takes from it -----------------------------------------------------------------------------


def plan_of(source: Mapping[str, Any], items: Sequence[item_models.ItemInput | item_models.WorkItem]) -> BlockPlan:
    """Return what is planned in a block, a template or a request, with these items and without a day."""
    return cast("BlockPlan", {"isRest": False, **core_fields.take(PlannedBlock, source), "items": items})


# --- Schemas ----------------------------------------------------------------------------------------------------------


CALENDAR_QUERY = query_of(CalendarQuery, SearchedRange, query_of(BlockFilters))
WORKOUT_BLOCK_QUERY = query_of(WorkoutBlockQuery)
# The items come before the other fields, as in earlier API documents.
_BLOCK = (IdentityFields, input_of(BlockItems))
SCHEDULED_WORKOUT_BLOCK = input_of(ScheduledWorkoutBlock, *_BLOCK)
NEW_WORKOUT_BLOCK = input_of(NewWorkoutBlock, *_BLOCK, DryRun)
WORKOUT_BLOCK = output_of(WorkoutBlock, IdentityResult)
WORKOUT_BLOCK_COPY = input_of(WorkoutBlockCopy)
WORKOUT_BLOCK_SHIFT = input_of(WorkoutBlockShift, DryRun)
