"""Forms as they are sent, stored and read."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId

QuestionType = Literal["text", "number", "rating", "choice", "multi"]


class QuestionInput(TypedDict):
    """A question as it is sent; with `_id` it is one that the form already has."""

    _id: NotRequired[ObjectId]
    label: str
    type: QuestionType
    options: list[str]
    required: bool


class Question(TypedDict):
    """A question of a form; `options` is empty unless the type is `choice` or `multi`."""

    _id: ObjectId
    label: str
    type: QuestionType
    options: list[str]
    required: bool


class FormInput(TypedDict):
    """A form to create."""

    name: str
    questions: list[QuestionInput]


class FormChange(TypedDict, total=False):
    """The fields of a form to change, and the version the change is based on."""

    name: str
    questions: list[QuestionInput]
    version: int | None


class FormFields(TypedDict, total=False):
    """The fields of a stored form to set."""

    name: str
    questions: list[Question]


class Form(Stored):
    """A stored form."""

    name: str
    questions: list[Question]
