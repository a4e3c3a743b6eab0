"""Clients' responses to forms as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import CustomerReference


class LabelledAnswer(TypedDict):
    """An answer with the text of its question at the time; `value` is a text, a number, a list of options or null."""

    questionId: ObjectId
    label: str
    value: Any


class ResponseFields(TypedDict):
    """The content of a response; `formId` is null if the form was made for the item; `date` is the session's."""

    formId: ObjectId | None
    formName: str
    date: str
    answers: list[LabelledAnswer]


class ReviewFields(TypedDict):
    """When a coach marked a response as reviewed (UTC), and which coach; None until then."""

    reviewedAt: datetime | None
    reviewedBy: ObjectId | None


class StoredResponse(Stored, ResponseFields):
    """A stored response to the form of the workout item `witemId`; the review is missing in old responses."""

    customerId: ObjectId
    witemId: ObjectId
    reviewedAt: NotRequired[datetime | None]
    reviewedBy: NotRequired[ObjectId | None]


class FormResponse(ResponseFields, ReviewFields):
    """A response as it is returned."""

    _id: ObjectId
    createdAt: datetime
    updatedAt: datetime
    version: int


class ReceivedResponse(FormResponse):
    """A response of any client, with the client."""

    customer: CustomerReference


class Review(TypedDict):
    """Whether a response is reviewed."""

    reviewed: bool
