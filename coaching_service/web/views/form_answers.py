"""The answers to a form as they are submitted, by a coach or by the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from marshmallow import fields

from coaching_service.core.database.documents import Document
from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Integer, ListOf, Number, Text
from coaching_service.library.forms.models import QuestionType
from coaching_service.progress.logs.schemas import TaskItemLog
from coaching_service.web.forms import parse_value

_NUMBER_FIELDS: dict[str, fields.Field[Any]] = {"number": Number(), "rating": Integer()}


class AnswerRow(TypedDict):
    """The answer to a question: a text in `value`, or the options `chosen`, one of them unless its type is multi."""

    questionId: ObjectId
    type: QuestionType
    required: Annotated[bool, Default(False)]
    value: Annotated[str, Text(max_length=TEXT_LENGTH, allow_blank=True), Default("")]
    chosen: Annotated[list[str], ListOf(Text(max_length=1_000)), Default(list)]


class FormAnswers(TypedDict):
    """The log of a form item as it is submitted; see TaskItemLog."""

    isCompleted: bool
    comment: str | None
    answers: Annotated[list[AnswerRow], Default(list)]


ANSWERS_FORM = input_of(FormAnswers, TaskItemLog)()


def answer_requests(form: FormAnswers) -> list[Document]:
    """Return submitted answers as the REST interface receives them, without empty ones.

    Raises InvalidFields if the form is completed and a required question has no answer.
    """
    answers = [_parse_answer(row) for row in form["answers"]]
    missing: list[FieldError] = [
        {"field": f"answers.{position}.value", "code": "REQUIRED", "message": "must be answered"}
        for position, row in enumerate(form["answers"])
        if row["required"] and answers[position] is None
    ]
    if form["isCompleted"] and missing:
        raise InvalidFields(missing)
    return [
        {"questionId": str(row["questionId"]), "value": answer}
        for row, answer in zip(form["answers"], answers, strict=True)
        if answer is not None
    ]


def _parse_answer(row: AnswerRow) -> Any:
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
