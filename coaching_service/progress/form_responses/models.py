"""Clients' responses to forms as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class LabelledAnswer(TypedDict):
    """An answer with the text of its question at the time; `value` is a text, a number, a list of options or null."""

    questionId: ObjectId
    label: str
    value: Any


class ResponseFields(TypedDict):
    """The content of a response; `formId` is null if the form was made for the item, `date` is that of the session."""

    formId: ObjectId | None
    formName: str
    date: str
    answers: list[LabelledAnswer]


class StoredResponse(Stored, ResponseFields):
    """A stored response to the form of the workout item `witemId`."""

    customerId: ObjectId
    witemId: ObjectId


class FormResponse(ResponseFields):
    """A response as it is returned."""

    _id: ObjectId
    createdAt: datetime
    updatedAt: datetime
    version: int
