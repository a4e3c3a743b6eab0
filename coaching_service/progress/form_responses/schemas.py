"""Requests and responses of the form responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.pagination import CursorQuery
from coaching_service.core.query import QueryBoolean
from coaching_service.core.validation import Boolean, Date, DateTime, Identifier, Input, Output
from coaching_service.library.forms.schemas import AnswerValue
from coaching_service.people.customers.schemas import NamedCustomer


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
    reviewedAt = DateTime(
        allow_none=True, metadata={"description": "When a coach reviewed it; null until then, and after other answers."}
    )
    reviewedBy = Identifier(allow_none=True, metadata={"description": "The coach who reviewed it."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class ReceivedResponse(FormResponse):
    """A response to a form with its client."""

    customer = fields.Nested(NamedCustomer, metadata={"description": "The client."})


class InboxQuery(OpenRange, CursorQuery):
    """Filters of the responses of all clients; they combine with AND."""

    reviewed = QueryBoolean(metadata={"description": "`true`: only reviewed ones; `false`: only the others."})
    formId = Identifier(metadata={"description": "Only responses to this form."})
    customerId = Identifier(metadata={"description": "Only responses of this client."})


class Review(Input):
    """Whether a response is reviewed."""

    reviewed = Boolean(required=True, metadata={"description": "`false` takes the mark away."})
