"""Changes and events as interfaces return them."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from coaching_service.core.database.models import DocumentFields
from coaching_service.core.database.recording import Action, Actor, Approver, Interface
from coaching_service.core.events import EventType, EventValue
from coaching_service.core.ids import ObjectId


class DocumentReference(TypedDict):
    """A document that a change created, changed or deleted."""

    kind: str
    _id: ObjectId
    action: Action


class DocumentValues(DocumentReference):
    """A document of a change with the touched fields before and after; None where there are none."""

    before: DocumentFields | None
    after: DocumentFields | None


class ChangeSummary(TypedDict):
    """A change without its values."""

    _id: ObjectId
    at: datetime
    actor: Actor | None
    via: Interface
    approvedBy: Approver | None
    operation: str
    summary: str
    customerId: ObjectId | None
    batchId: ObjectId | None
    documents: list[DocumentReference]
    undoableUntil: datetime | None
    undoneBy: ObjectId | None


class ChangeDetails(ChangeSummary):
    """A change with the values before and after; `documents` have them too."""

    documents: list[DocumentValues]  # type: ignore[misc]  # more of each document


class EventActor(TypedDict):
    """The author of an event, with the API key or the application (an assistant's grant) that was used, if any."""

    type: str
    _id: ObjectId | None
    keyId: ObjectId | None
    applicationId: ObjectId | None


class Event(TypedDict):
    """A typed event; `seq` is its number within the company, `changeId` the change that it is part of."""

    id: str
    seq: int
    changeId: ObjectId
    type: EventType
    createdAt: datetime
    customerId: ObjectId | None
    actor: EventActor
    data: dict[str, EventValue]


class EventPage(TypedDict):
    """Events, oldest first; `nextCursor` is where to continue, also at the end."""

    docs: list[Event]
    nextCursor: str
    hasMore: bool


class UndoFailure(TypedDict):
    """A document that could not be restored."""

    documentId: ObjectId
    code: str
    message: str


class UndoResult(TypedDict):
    """The result of an undo: the change that restored the documents, how many, and those that failed."""

    changeId: ObjectId | None
    ok: int
    failed: list[UndoFailure]
