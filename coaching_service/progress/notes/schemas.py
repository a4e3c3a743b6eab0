"""Requests and responses of the note operations."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Boolean, DateTime, Identifier, Input, Output, Text

_PINNED = "Whether the note is shown first"
_HEALTH = "Whether the note is about the client's health"


class NewNote(Input):
    """A note to add."""

    content = Text(max_length=50_000, required=True, metadata={"description": "HTML; sanitised before it is stored."})
    isPinned = Boolean(metadata={"description": f"{_PINNED}; default false."})
    isHealth = Boolean(metadata={"description": f"{_HEALTH}; default false."})


class NoteAuthor(Output):
    """Who wrote a note."""

    _id = Identifier()
    name = fields.String()


class Note(Output):
    """A coach's note on a client."""

    _id = Identifier()
    customerId = Identifier()
    author = fields.Nested(
        NoteAuthor, allow_none=True, metadata={"description": "Who wrote it; null for notes older than this field."}
    )
    content = fields.String(metadata={"description": "HTML without scripts, styles, pictures or forms."})
    isPinned = fields.Boolean(metadata={"description": f"{_PINNED}."})
    isHealth = fields.Boolean(metadata={"description": f"{_HEALTH}."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
