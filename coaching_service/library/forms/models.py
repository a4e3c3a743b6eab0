"""Forms as they are sent, stored and read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.database.models import Stored
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Change, Default, Partial
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Input, ListOf, StringList, Text

QuestionType = Literal["text", "number", "rating", "choice", "multi"]
WITH_OPTIONS = ("choice", "multi")
QUESTION_LENGTH = 1_000


class AnswerValue(fields.Raw):
    """An answer: a text or an option, a number or rating, a list of options; null for none."""

    def __init__(self, **options: Any) -> None:
        metadata = {
            "description": "Text, or an option, as a string; a number, or a rating from 1 to 10, as a number; several "
            "options as an array; null for no answer.",
            "anyOf": [
                {"type": "string"},
                {"type": "number"},
                {"type": "array", "items": {"type": "string"}},
                {"type": "null"},
            ],
        }
        super().__init__(allow_none=True, metadata=metadata, **options)


class _KnownQuestion(TypedDict):
    _id: NotRequired[ObjectId]


class QuestionDetails(TypedDict):
    """The fields of a question without its identifier; `options` is empty unless the type is `choice` or `multi`."""

    label: Annotated[str, Text(max_length=QUESTION_LENGTH)]
    type: Annotated[QuestionType, Default("text")]
    options: Annotated[list[str], StringList(max_length=QUESTION_LENGTH), Default(list)]
    required: Annotated[bool, Default(False)]


class QuestionInput(_KnownQuestion, QuestionDetails):
    """A question; `choice` and `multi` need options. `_id` refers to one that the form already has."""


class Question(QuestionDetails):
    """A question of a form."""

    _id: ObjectId


class _OptionsOfChoice(Input):
    @validates_schema
    def has_options(self, data: Mapping[str, Any], **_: Any) -> None:
        """Questions with a choice have options."""
        if data["type"] in WITH_OPTIONS and not data["options"]:
            raise ValidationError("should not be empty", "options")


def questions_field(**options: Any) -> ListOf:
    """Return a field of at least one question."""
    return ListOf(fields.Nested(input_of(QuestionInput, _OptionsOfChoice, name="NewQuestion")), minimum=1, **options)


class FormName(TypedDict):
    """The name of a form."""

    name: Annotated[str, Text()]


class NewForm(FormName):
    """A form to create."""

    questions: Annotated[list[QuestionInput], questions_field()]


class FormContent(FormName):
    """The content of a stored form."""

    questions: list[Question]


class Form(FormContent, Stored):
    """A form with its questions."""


FormChange: TypeAlias = Change[NewForm]
FormFields: TypeAlias = Partial[FormContent]
