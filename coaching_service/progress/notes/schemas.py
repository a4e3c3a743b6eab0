"""Requests and responses of the note operations."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import DateTime, Identifier, Input, Output, Text


class NewNote(Input):
    """A note to add."""

    content = Text(max_length=50_000, required=True, metadata={"description": "HTML; sanitised before it is stored."})


class Note(Output):
    """A coach's note on a client."""

    _id = Identifier()
    customerId = Identifier()
    content = fields.String(metadata={"description": "HTML without scripts, styles, pictures or forms."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
