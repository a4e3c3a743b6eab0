"""Workout blocks as they are sent, stored and read; see also item_models.py."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.external_identity import Identity, IdentityInput, StoredIdentity
from coaching_service.core.ids import NameOrId, ObjectId
from coaching_service.training.workouts.blocks.session_fields import SessionFields
from coaching_service.training.workouts.items.models import ItemInput, ItemLog, WorkItem
from coaching_service.training.workouts.sets.totals_models import BlockTotals


class _BlockContent(SessionFields):
    """The content of a block: of a client (`date`), of a program (`day`), or of a client from a program (both).

    `checkInId` is the recurring check-in that scheduled it, if any (missing in blocks that are older than check-ins).
    """

    customerId: ObjectId | None
    programId: ObjectId | None
    assignmentId: NotRequired[ObjectId | None]
    name: str
    date: str | None
    day: int | None
    isRest: bool
    clientTexts: NotRequired[list[NameOrId]]
    items: list[WorkItem]
    checkInId: NotRequired[ObjectId | None]


class BlockContent(_BlockContent, StoredIdentity):
    """The content of a stored block."""


class StoredBlock(BlockContent, Stored):
    """A stored block; `clientTexts` (private) has the names of the texts of its log that the client wrote."""


class DayBlock(SessionFields):
    """A block of a day as operations on the schedule read it: when it is, and whether anything of it is done.

    Its items have only the fields that a log sets. `position` orders the blocks of a day.
    """

    _id: ObjectId
    name: str
    date: str | None
    day: int | None
    position: int
    items: list[dict[str, Any]]
    checkInId: NotRequired[ObjectId | None]


class BlockFields(StoredIdentity, total=False):
    """The fields of a stored block to set; `position` orders the blocks of a day, `done` are the totals of `items`."""

    name: str
    date: str
    day: int
    isRest: bool
    position: int
    durationMinutes: float | None
    sessionRpe: float | None
    feeling: int | None
    comment: str | None
    clientTexts: list[NameOrId]
    items: list[WorkItem]
    done: BlockTotals | None


class Block(_BlockContent, Stored, Identity):
    """A block as it is read; `order` counts the blocks of a day from 0."""

    order: int
    isCompleted: bool


class BlockInput(IdentityInput):
    """A new block as a coach sends it: with a `date` for a client, with a `day` for a program."""

    name: str
    isRest: bool
    date: NotRequired[str]
    day: NotRequired[int]


class NewBlock(BlockInput):
    """A new block as a coach sends it, with its items."""

    items: list[ItemInput]


class BlockChange(IdentityInput, total=False):
    """The fields of a block to change, and the version that the change is based on."""

    name: str
    isRest: bool
    date: str
    day: int
    version: int | None


class BlockPlan(IdentityInput):
    """A block to put on a schedule with its items, new or copied; whatever was done for them is left out."""

    name: str
    isRest: bool
    items: Sequence[ItemInput | WorkItem]
    date: NotRequired[str | None]
    day: NotRequired[int | None]
    programId: NotRequired[ObjectId | None]
    assignmentId: NotRequired[ObjectId | None]
    checkInId: NotRequired[ObjectId | None]


class ScheduleChange(TypedDict):
    """What an operation did to a schedule, or would do: blocks created and changed, identifiers of those removed."""

    created: list[Block]
    changed: list[Block]
    removed: list[ObjectId]


class BlockLog(SessionFields):
    """What a client reports about a session; `version` is the version of the block it is based on.

    Without `feeling` the stored one stays.
    """

    clientTexts: NotRequired[list[NameOrId]]
    version: NotRequired[int | None]


class LogTexts(TypedDict):
    """The comment of a session, and the names of the texts that the client wrote: of the session, and of each item."""

    comment: str | None
    clientTexts: list[NameOrId]
    ofItems: dict[ObjectId, list[str]]


class LoggedBlock(SessionFields):
    """A block to add with what was done in it: a log (or null) for each of its items, and of the session.

    `loggedAt` is the time of the logs, in UTC.
    """

    plan: BlockPlan
    logs: list[ItemLog | None]
    loggedAt: datetime
    clientTexts: NotRequired[list[NameOrId]]
