"""Changes as they are stored."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NotRequired, TypeAlias, TypedDict

from coaching_service.core.database import recording
from coaching_service.core.database.declared import Action, DocumentFields, Stored
from coaching_service.core.database.recording import FieldChange
from coaching_service.core.events import EventType, EventValue
from coaching_service.core.ids import ObjectId

# What an entry of the activity feed says. It depends on the type: people/activity/service.py declares each.
FeedData: TypeAlias = dict[str, Any]


class NamedDocument(TypedDict):
    """A document of a kind."""

    kind: str
    _id: ObjectId


class ChangedDocument(NamedDocument):
    """A document that a change created, changed or deleted.

    `toVersion` is its version afterwards, or when it was deleted. `restoredVersion`: an undo has restored the state
    that the document had at that version. `softDeleted`: the change marked the document as deleted.
    """

    collection: str
    action: Action
    fromVersion: int
    toVersion: int
    restoredVersion: NotRequired[int]
    softDeleted: NotRequired[bool]


class DocumentPatch(TypedDict):
    """The values of a changed document before and after: all of a deleted or created one, else `fields`."""

    _id: ObjectId
    before: DocumentFields | None
    after: DocumentFields | None
    fields: list[FieldChange]


class StoredEvent(TypedDict):
    """A typed event of the log. `source` is not returned: where what it is about came from."""

    type: EventType
    customerId: ObjectId | None
    data: dict[str, EventValue]
    source: NotRequired[str]


class StoredFeedEntry(TypedDict):
    """An entry of the activity feed. `hiddenBy` is the change since which it is no longer true, if any."""

    _id: ObjectId
    type: EventType
    sourceId: ObjectId
    data: FeedData
    hiddenBy: ObjectId | None


class ChangeContent(TypedDict):
    """One operation, about at most one client.

    `via` is the interface, and `credentialId` the key, grant or session; `hasKey` if an assistant used a key.
    `approvedBy` is the coach who approved what the assistant proposed, and `decidedIn` where; `confirmsItself` if the
    program may have confirmed it without a person. `batchId` is shared by
    the changes of one bulk operation. `documents` and `patch` are parallel; a patch of more than 8 MB is stored in
    `parts` documents of the collection changeParts, and no patch is stored for what cannot be undone, or after 30 days
    (`patchUntil`). `seq` and `lastSeq` are the numbers of the first and the last event within the company; a change has
    at least one number. `pending` is the logical time of the database at which it was stored, until it has its number.
    `undoneBy` and `undoOf` are the changes that undid it and that it undid.
    """

    actor: recording.Actor | None
    via: recording.Interface
    credentialId: ObjectId | None
    hasKey: NotRequired[bool]
    approvedBy: NotRequired[recording.Approver]
    decidedIn: NotRequired[recording.DecidedIn]
    confirmsItself: NotRequired[bool]
    operation: str
    customerId: ObjectId | None
    batchId: NotRequired[ObjectId]
    documents: list[ChangedDocument]
    patch: NotRequired[list[DocumentPatch]]
    parts: NotRequired[int]
    patchUntil: NotRequired[datetime]
    undoable: bool
    events: list[StoredEvent]
    eventCount: int
    feed: list[StoredFeedEntry]
    feedCount: int
    feedAt: datetime
    pending: NotRequired[object]
    seq: NotRequired[int]
    lastSeq: NotRequired[int]
    undoneBy: ObjectId | None
    undoOf: ObjectId | None


class NewChangeDocument(ChangeContent):
    """A change that is about to be stored."""

    _id: ObjectId


class StoredChange(Stored, ChangeContent):
    """A change; `createdAt` is its time."""


class NumberedChange(TypedDict):
    """A change with its numbers, as its events are read; one from before the change log has no author and no events."""

    _id: ObjectId
    createdAt: datetime
    actor: recording.Actor | None
    via: recording.Interface
    credentialId: ObjectId | None
    hasKey: NotRequired[bool]
    events: list[StoredEvent]
    seq: int
    lastSeq: int


class CompanyFeedItem(TypedDict):
    """An entry of a client's activity feed as a change `_id` stores it, with its time and author."""

    _id: ObjectId
    customerId: ObjectId
    feedAt: datetime
    feed: StoredFeedEntry
    actor: recording.Actor | None
    batchId: NotRequired[ObjectId]


class StoredPart(Stored):
    """A part of a patch that is too large for the document of its change."""

    changeId: ObjectId
    customerId: ObjectId | None
    number: int
    patch: list[DocumentPatch]
    patchUntil: datetime
