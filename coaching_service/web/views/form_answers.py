"""The answers to a form as they are submitted, by a coach or by the client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.database.documents import Document
from coaching_service.core.validation import TEXT_LENGTH, Choice, Identifier, Input, Integer, ListOf, Number, Text
from coaching_service.library.forms.models import QUESTION_TYPES
from coaching_service.progress.logs.schemas import TaskItemLog
from coaching_service.web.forms import parse_value

_NUMBER_FIELDS: dict[str, fields.Field[Any]] = {"number": Number(), "rating": Integer()}


class _AnswerRow(Input):
    """The answer to a question: a text in `value`, or the options `chosen`, one of them unless its type is multi."""

    questionId = Identifier(required=True)
    type = Choice(*QUESTION_TYPES, required=True)
    required = fields.Boolean(load_default=False)
    value = Text(max_length=TEXT_LENGTH, allow_blank=True, load_default="")
    chosen = ListOf(Text(max_length=1_000), load_default=list)


class AnswersForm(TaskItemLog):
    """The log of a form item as it is submitted."""

    answers = ListOf(fields.Nested(_AnswerRow), load_default=list)

    @validates_schema
    def require_answers(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError if the form is completed and a required question has no answer."""
        missing = [
            position for position, row in enumerate(data["answers"]) if row["required"] and _parse_answer(row) is None
        ]
        if data["isCompleted"] and missing:
            raise ValidationError({"answers": {position: {"value": ["must be answered"]} for position in missing}})


def answer_requests(rows: Iterable[Mapping[str, Any]]) -> list[Document]:
    """Return submitted answers as the REST interface receives them, without empty ones."""
    return [
        {"questionId": str(row["questionId"]), "value": answer}
        for row in rows
        if (answer := _parse_answer(row)) is not None
    ]


def _parse_answer(row: Mapping[str, Any]) -> Any:
    """Return the answer in the type of its question; None if there is none."""
    if row["type"] == "multi":
        return row["chosen"] or None
    text = row["chosen"][0] if row["chosen"] else row["value"]
    if not text:
        return None
    return parse_value(_NUMBER_FIELDS[row["type"]], text) if row["type"] in _NUMBER_FIELDS else text


def recorded_answers(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded answers of an item by the identifier of the question; none unless it is a form."""
    return {str(answer["questionId"]): answer["value"] for answer in item.get("answers") or ()}
