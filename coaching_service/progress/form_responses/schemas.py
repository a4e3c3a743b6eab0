"""Requests and responses of the form responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.validation import Date, DateTime, Identifier, Input, Output
from coaching_service.library.forms.schemas import AnswerValue


class OpenRange(Input):
    """`from` and `to`, both included; either can be omitted."""

    class Meta(Input.Meta):
        include = {"from": Date()}

    to = Date()

    @validates_schema
    def in_order(self, data: Mapping[str, str], **_: Any) -> None:
        """The end is not before the start."""
        if "from" in data and "to" in data and data["to"] < data["from"]:
            raise ValidationError("must not be before from", "to")


class FormResponseAnswer(Output):
    """An answer with the text of its question at the time."""

    questionId = Identifier()
    label = fields.String()
    value = AnswerValue()


class FormResponse(Output):
    """A client's response to a form."""

    _id = Identifier()
    formId = Identifier(allow_none=True, metadata={"description": "null if the form was made for the workout item."})
    formName = fields.String()
    date = Date()
    answers = fields.List(fields.Nested(FormResponseAnswer))
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
