"""Responses of the nutrition plan operations."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import DateTime, Identifier, Output


class PlanVersion(Output):
    """A version of a client's nutrition plan."""

    _id = Identifier()
    customerId = Identifier()
    number = fields.Integer(metadata={"description": "From 1; a number is never used twice."})
    fileName = fields.String()
    contentType = fields.String()
    size = fields.Integer(metadata={"description": "Bytes."})
    url = fields.Url(metadata={"description": "Expires after two hours."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
