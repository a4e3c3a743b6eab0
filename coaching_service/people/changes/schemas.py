"""Requests and responses of the history and of undo."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.database.recording import Approver
from coaching_service.core.field_schemas import output_of
from coaching_service.core.pagination import CursorQuery
from coaching_service.core.query import QueryBoolean, QueryTime
from coaching_service.core.validation import Choice, DateTime, Identifier, Output

INTERFACES = ("session", "apiKey", "assistant", "client", "system")
ACTORS = ("coach", "client", "assistant", "key", "system")


class HistoryQuery(CursorQuery):
    """Filters of the history; they combine with AND."""

    customerId = Identifier(load_default=None, metadata={"description": "Changes about this client."})
    via = Choice(*INTERFACES, load_default=None, metadata={"description": "Changes through this interface."})
    actorId = Identifier(load_default=None, metadata={"description": "Changes by this coach or client."})
    since = QueryTime(load_default=None, metadata={"description": "Changes made at this time or later."})
    mine = QueryBoolean(
        load_default=False,
        metadata={"description": "true: only what was done with the key, grant or session of this request."},
    )


class Actor(Output):
    """The author of a change."""

    type = Choice(*ACTORS, metadata={"description": "In which role: `system` for background work."})
    _id = Identifier(allow_none=True, metadata={"description": "The coach or client; null for `system`."})
    name = fields.String(metadata={"description": "Their name."})


class DocumentReference(Output):
    """A document that a change created, changed or deleted."""

    kind = fields.String(metadata={"description": "The kind of document, such as `workout`."})
    _id = Identifier()
    action = Choice("created", "changed", "deleted", metadata={"description": "What happened to it."})


class DocumentValues(DocumentReference):
    """A document of a change with the touched fields before and after."""

    before = fields.Dict(
        allow_none=True,
        metadata={"description": "The touched fields before; null if it was created, or the values are not stored."},
    )
    after = fields.Dict(
        allow_none=True,
        metadata={"description": "The touched fields after; null if it was deleted, or the values are not stored."},
    )


class Change(Output):
    """One operation that changed coaching data."""

    _id = Identifier()
    at = DateTime(metadata={"description": "When it was made."})
    actor = fields.Nested(
        Actor, allow_none=True, metadata={"description": "Who made it; null if that was not recorded at the time."}
    )
    via = Choice(*INTERFACES, metadata={"description": "The interface."})
    approvedBy = fields.Nested(
        output_of(Approver),
        allow_none=True,
        metadata={"description": "The coach who approved what an assistant proposed; null for other changes."},
    )
    operation = fields.String(
        metadata={"description": "The operationId, the name of the assistant's tool or of the form."}
    )
    summary = fields.String(metadata={"description": "What was changed, such as `3 workouts created`."})
    customerId = Identifier(allow_none=True, metadata={"description": "The client it is about, if any."})
    batchId = Identifier(allow_none=True, metadata={"description": "Shared by the changes of one bulk operation."})
    documents = fields.List(
        fields.Nested(DocumentReference), metadata={"description": "The documents it created, changed or deleted."}
    )
    undoableUntil = DateTime(
        allow_none=True, metadata={"description": "Until when it can be undone; null if it cannot."}
    )
    undoneBy = Identifier(allow_none=True, metadata={"description": "The change that undid it."})


class ChangeDetails(Change):
    """A change with the values before and after."""

    documents = fields.List(
        fields.Nested(DocumentValues), metadata={"description": "The documents with their values before and after."}
    )


class ChangeList(Output):
    """Changes, newest first."""

    docs = fields.List(fields.Nested(Change))
    nextCursor = fields.String(allow_none=True, metadata={"description": "Where to continue; null at the end."})
    hasMore = fields.Boolean(metadata={"description": "Whether there are older changes."})


class UndoFailure(Output):
    """A document that could not be restored."""

    documentId = Identifier(metadata={"description": "The document."})
    code = fields.String(metadata={"description": "`VERSION_CONFLICT`: it has been changed since."})
    message = fields.String()


class UndoResult(Output):
    """What an undo has restored."""

    changeId = Identifier(allow_none=True, metadata={"description": "The change, or batch, that restored documents."})
    ok = fields.Integer(metadata={"description": "How many documents were restored."})
    failed = fields.List(fields.Nested(UndoFailure))
