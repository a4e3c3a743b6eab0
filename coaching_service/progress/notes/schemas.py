"""What the note operations read and answer."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.kernel.validation import Answer, Identifier, Input, Moment, Text


class NewNote(Input):
    """A note to add."""

    content = Text(longest=50_000, required=True, metadata={"description": "HTML; made harmless on the way in."})


class Note(Answer):
    """A coach's note on a client."""

    _id = Identifier()
    customerId = Identifier()
    content = fields.String(metadata={"description": "HTML without scripts, styles, pictures or forms."})
    createdAt = Moment()
    updatedAt = Moment()
    version = fields.Integer()
