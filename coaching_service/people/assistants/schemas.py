"""What the operations on connected assistants answer."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import DateTime, Identifier, Output


class Assistant(Output):
    """An assistant that a coach has let in."""

    _id = Identifier()
    coachId = Identifier(metadata={"description": "The coach on whose behalf it acts."})
    clientId = fields.String(metadata={"description": "The program, as it registered."})
    clientName = fields.String(metadata={"description": "What the program calls itself."})
    redirectHost = fields.String(metadata={"description": "Where it was let in from."})
    readOnly = fields.Boolean()
    lastUsedAt = DateTime(allow_none=True, metadata={"description": "To the minute."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
