"""What files that people bring are called, and what they leave open or have wrong."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.fields import Description, Optional

Format = Literal["hevy", "strong", "fitnotes", "stronglifts", "gravl", "trainheroic", "workouts", "sets"]
QuestionCode = Literal["LOAD_UNIT", "DISTANCE_UNIT", "DATE_ORDER", "CUSTOMER", "COLUMN"]


class FileProblem(TypedDict):
    """Why a row or a value of it was left out, as jobs report it."""

    entry: Annotated[str, Description("Where: a line, with the name of its sheet.")]
    line: Annotated[int, Description("The line of the file, or the row of the sheet, from 1.")]
    field: Annotated[str | None, Description("The field; null: the whole row.")]
    code: Annotated[str, Description("A stable code, such as `VALUE_LEFT_OUT`.")]
    message: Annotated[str, Description("What is wrong, as the continuation of the field's name.")]


Problem: TypeAlias = FileProblem


class ImportQuestion(TypedDict):
    """What the file does not decide; `options` are the possible answers."""

    code: Annotated[QuestionCode, Description("What is asked for.")]
    message: Annotated[str, Description("The question.")]
    options: Annotated[list[str], Description("The possible answers, as they are sent.")]
    name: NotRequired[Annotated[str, Optional, Description("The client, field or heading that it is about.")]]
    labels: NotRequired[Annotated[list[str], Optional, Description("The possible answers in words.")]]


Question: TypeAlias = ImportQuestion
