"""What files that people bring are called, and what they leave open or have wrong."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.fields import Description, Optional

Format = Literal[
    "hevy",
    "strong",
    "fitnotes",
    "stronglifts",
    "gravl",
    "fitbod",
    "liftosaur",
    "jefit",
    "trainheroic",
    "workouts",
    "sets",
]
QuestionCode = Literal[
    "LOAD_UNIT", "DISTANCE_UNIT", "DURATION_UNIT", "DECIMAL_SIGN", "DATE_ORDER", "CUSTOMER", "COLUMN", "METRIC"
]


class FileProblem(TypedDict):
    """Why a row or a value of it was left out, as jobs report it."""

    entry: Annotated[str, Description("Where: a line, with the name of its sheet.")]
    line: Annotated[int, Description("The line of the file, or the row of the sheet, from 1.")]
    field: Annotated[str | None, Description("The field; null: the whole row.")]
    code: Annotated[str, Description("A stable code, such as `VALUE_LEFT_OUT`.")]
    message: Annotated[str, Description("What is wrong, as the continuation of the field's name.")]


Problem: TypeAlias = FileProblem


class ProblemKind(TypedDict):
    """A kind of problem, and how often a file has it."""

    code: Annotated[str, Description("The code, as in `errors`.")]
    column: Annotated[str | None, Description("The field, or the heading of a column; null: whole rows.")]
    count: Annotated[int, Description("How often the file has it.")]
    lines: Annotated[list[int], Description("The first 20 lines that have it.")]


# Problems of rows that are left out as they should be, and of columns: of other kinds the most frequent comes first.
LAST_CODES = ("NOT_A_SET", "REPEATED_COLUMN", "UNKNOWN_COLUMN")
_MOST_LINES = 20


def count_one(kind: ProblemKind, line: int) -> None:
    """Count a problem of a kind."""
    kind["count"] += 1
    if len(kind["lines"]) < _MOST_LINES:
        kind["lines"].append(line)


def count_kinds(kinds: Sequence[ProblemKind], problems: Iterable[Problem]) -> list[ProblemKind]:
    """Return kinds of problems with more of them: rests and columns last, of others the most frequent first."""
    new: list[ProblemKind] = [
        {"code": each["code"], "column": each["field"], "count": 1, "lines": [each["line"]]} for each in problems
    ]
    return merge_kinds(kinds, new)


def merge_kinds(*parts: Iterable[ProblemKind]) -> list[ProblemKind]:
    """Return the kinds of problems of several parts of a file, in the same order."""
    counted: dict[tuple[str, str | None], ProblemKind] = {}
    for each in itertools.chain(*parts):
        key = (each["code"], each["column"])
        known: ProblemKind = counted.get(key, {**each, "count": 0, "lines": []})
        lines = [*known["lines"], *each["lines"]][:_MOST_LINES]
        counted[key] = {**known, "count": known["count"] + each["count"], "lines": lines}
    return sorted(counted.values(), key=lambda each: (each["code"] in LAST_CODES, -each["count"]))


class ImportQuestion(TypedDict):
    """What the file does not decide; `options` are the possible answers."""

    code: Annotated[QuestionCode, Description("What is asked for.")]
    message: Annotated[str, Description("The question.")]
    options: Annotated[list[str], Description("The possible answers, as they are sent.")]
    name: NotRequired[
        Annotated[str, Optional, Description("The client, field, heading or measurement that it is about.")]
    ]
    labels: NotRequired[Annotated[list[str], Optional, Description("The possible answers in words.")]]


Question: TypeAlias = ImportQuestion
