"""Responses of the operations on connected assistants."""

from __future__ import annotations

from marshmallow import fields
from marshmallow.validate import OneOf

from coaching_service.core.validation import DateTime, Identifier, Output
from coaching_service.people.assistants.models import SCOPES


class Assistant(Output):
    """An assistant that a coach has connected."""

    _id = Identifier()
    coachId = Identifier(metadata={"description": "The coach on whose behalf it acts."})
    clientId = fields.String(metadata={"description": "The identifier of the registered OAuth application."})
    clientName = fields.String(metadata={"description": "The name of the OAuth application, as it registered."})
    redirectHost = fields.String(metadata={"description": "The host to which the authorization code was sent."})
    readOnly = fields.Boolean()
    scopes = fields.List(
        fields.String(validate=OneOf(SCOPES)),
        metadata={
            "description": "What the coach allows. `outreach`: sending mail and messages, and changing several clients "
            "at once."
        },
    )
    lastUsedAt = DateTime(allow_none=True, metadata={"description": "To the minute."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
