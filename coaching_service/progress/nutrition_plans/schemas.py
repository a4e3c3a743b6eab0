"""What the nutrition-plan operations answer."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.kernel.validation import Answer, Identifier, Moment


class PlanVersion(Answer):
    """A version of a client's nutrition plan."""

    _id = Identifier()
    customerId = Identifier()
    number = fields.Integer(metadata={"description": "From 1, never given twice."})
    fileName = fields.String()
    contentType = fields.String()
    size = fields.Integer(metadata={"description": "Bytes."})
    url = fields.Url(metadata={"description": "Ends after two hours."})
    createdAt = Moment()
    updatedAt = Moment()
    version = fields.Integer()
