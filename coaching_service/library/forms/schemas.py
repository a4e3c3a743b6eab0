"""Request and response schemas of forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.validation import (
    Boolean,
    Choice,
    DateTime,
    Identifier,
    Input,
    ListOf,
    Output,
    StringList,
    Text,
)

QUESTION_TYPES = ("text", "number", "rating", "choice", "multi")
WITH_OPTIONS = ("choice", "multi")
_QUESTION_LENGTH = 1_000


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


class NewQuestion(Input):
    """A question; `choice` and `multi` need options. `_id` refers to one that the form already has."""

    _id = Identifier()
    label = Text(max_length=_QUESTION_LENGTH, required=True)
    type = Choice(*QUESTION_TYPES, load_default="text")
    options = StringList(max_length=_QUESTION_LENGTH, load_default=list)
    required = Boolean(load_default=False)

    @validates_schema
    def has_options(self, data: Mapping[str, Any], **_: Any) -> None:
        """Questions with a choice have options."""
        if data["type"] in WITH_OPTIONS and not data["options"]:
            raise ValidationError("should not be empty", "options")


def questions_field(**options: Any) -> ListOf:
    """Return a field of at least one question."""
    return ListOf(fields.Nested(NewQuestion), minimum=1, **options)


class NewForm(Input):
    """A form to create."""

    name = Text(required=True)
    questions = questions_field(required=True)


class Question(Output):
    """A question of a form."""

    _id = Identifier()
    label = fields.String()
    type = Choice(*QUESTION_TYPES)
    options = fields.List(fields.String())
    required = fields.Boolean()


class Form(Output):
    """A form with its questions."""

    _id = Identifier()
    name = fields.String()
    questions = fields.List(fields.Nested(Question))
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
