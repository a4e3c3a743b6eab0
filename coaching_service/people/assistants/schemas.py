"""Responses of the operations on connected assistants."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import DateTime, Identifier, Output


class Assistant(Output):
    """An assistant that a coach has connected."""

    _id = Identifier()
    coachId = Identifier(metadata={"description": "The coach on whose behalf it acts."})
    clientId = fields.String(metadata={"description": "The identifier of the registered OAuth application."})
    clientName = fields.String(metadata={"description": "The name of the OAuth application, as it registered."})
    redirectHost = fields.String(metadata={"description": "The host to which the authorization code was sent."})
    readOnly = fields.Boolean()
    lastUsedAt = DateTime(allow_none=True, metadata={"description": "To the minute."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
