"""Clients' responses to forms as they are asked for, stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict

from marshmallow import ValidationError, validates_schema

from coaching_service.core.database.models import Returned, Stored
from coaching_service.core.field_schemas import query_of
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import PartQuery
from coaching_service.core.validation import CalendarDate, Input, SearchedDate, Text
from coaching_service.library.forms.models import AnswerValue
from coaching_service.people.customers.models import NamedCustomer


class FormResponseAnswer(TypedDict):
    """An answer with the text of its question at the time."""

    questionId: ObjectId
    label: str
    value: Annotated[Any | None, AnswerValue()]


class ResponseFields(TypedDict):
    """The content of a response; `date` is the session's."""

    formId: Annotated[ObjectId | None, Description("null if the form was made for the workout item.")]
    formName: Annotated[str, Text()]
    date: Annotated[str, CalendarDate()]
    answers: list[FormResponseAnswer]


class ReviewFields(TypedDict):
    """When a coach marked a response as reviewed (UTC), and which coach."""

    reviewedAt: Annotated[
        datetime | None, Description("When a coach reviewed it; null until then, and after other answers.")
    ]
    reviewedBy: Annotated[ObjectId | None, Description("The coach who reviewed it.")]


class StoredResponse(Stored, ResponseFields):
    """A stored response to the form of the workout item `witemId`; the review is missing in old responses."""

    customerId: ObjectId
    witemId: ObjectId
    reviewedAt: NotRequired[datetime | None]
    reviewedBy: NotRequired[ObjectId | None]


class FormResponse(ResponseFields, ReviewFields, Returned):
    """A client's response to a form."""


class ReceivedResponse(FormResponse):
    """A response to a form with its client."""

    customer: Annotated[NamedCustomer, Description("The client.")]


# From `from` to `to`, both included. `from` is a keyword of Python, so this type has the functional form.
OpenRange = TypedDict(
    "OpenRange",
    {"to": NotRequired[Annotated[str, SearchedDate()]], "from": NotRequired[Annotated[str, SearchedDate()]]},
)


class InboxQuery(PartQuery, OpenRange):
    """Filters of the responses of all clients; they combine with AND."""

    reviewed: NotRequired[Annotated[bool, Description("`true`: only reviewed ones; `false`: only the others.")]]
    formId: NotRequired[Annotated[ObjectId, Description("Only responses to this form.")]]
    customerId: NotRequired[Annotated[ObjectId, Description("Only responses of this client.")]]


class _InOrder(Input):
    @validates_schema
    def in_order(self, data: OpenRange, **_: Any) -> None:
        """The end is not before the start."""
        if "from" in data and "to" in data and data["to"] < data["from"]:
            raise ValidationError("must not be before from", "to")


OPEN_RANGE = query_of(OpenRange, _InOrder)
INBOX_QUERY = query_of(InboxQuery, _InOrder)


class Review(TypedDict):
    """Whether a response is reviewed."""

    reviewed: Annotated[bool, Description("`false` takes the mark away.")]
