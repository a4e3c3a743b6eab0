"""What forms say about a file that is imported, and the exercises that a name in it may mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias, TypedDict, cast

from marshmallow import fields

from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import ListOf, Text
from coaching_service.integrations.background_jobs.models import ImportWork, JobWork
from coaching_service.integrations.company_import.schemas import find_wrong_columns
from coaching_service.integrations.history_files.values import DateOrder
from coaching_service.integrations.history_import.answers import by_name
from coaching_service.integrations.history_import.models import DistanceUnit, ImportAnswers
from coaching_service.integrations.history_import.results import table_result
from coaching_service.library.exercises.models import Exercise
from coaching_service.library.exercises.suggestions import suggest_exercises
from coaching_service.library.imported_names.answers import read_answers
from coaching_service.library.imported_names.models import NameInFile
from coaching_service.people.account.models import LoadUnit
from coaching_service.web.page_queries import KeywordQuery
from coaching_service.web.views.import_presentation import chosen_answer

_LONGEST_NAME = 500
_MAX_ROWS = 1_000  # as many as the numbers of rows in forms tell apart
_SUGGESTIONS = 12


class NameRow(TypedDict):
    """What becomes of a name in the file: an identifier, `create` or `skip`."""

    name: Annotated[str, Text(max_length=_LONGEST_NAME, trim=False)]
    answer: Annotated[str, Text(max_length=24)]


NameRows: TypeAlias = Annotated[
    list[NameRow], ListOf(fields.Nested(input_of(NameRow)), maximum=_MAX_ROWS), Default(list)
]


class ColumnRow(TypedDict):
    """The heading of the column that has a field."""

    name: Annotated[str, Text(max_length=24)]
    answer: Annotated[str, Text(max_length=_LONGEST_NAME, trim=False)]


class AnswersForm(TypedDict):
    """The answers to the questions of a check, and what the names in the file become."""

    customerId: Annotated[ObjectId | None, Default(None)]
    loadUnit: Annotated[LoadUnit | None, Default(None)]
    distanceUnit: Annotated[DistanceUnit | None, Default(None)]
    dateOrder: Annotated[DateOrder | None, Default(None)]
    names: NameRows
    customers: NameRows
    columns: Annotated[list[ColumnRow], Default(list)]


def with_answers(checked: JobWork, form: AnswersForm) -> ImportAnswers:
    """Return the answers that a check had, completed by those of a form.

    Raises InvalidFields.
    """
    known = cast("ImportWork", checked["work"])["answers"]
    result = table_result(checked["result"])
    changed = changed_answers(result["names"] if result else (), form["names"])
    return {
        "format": known["format"],
        "customerId": known["customerId"] or form["customerId"],
        "loadUnit": form["loadUnit"] or known["loadUnit"],
        "distanceUnit": form["distanceUnit"] or known["distanceUnit"],
        "dateOrder": form["dateOrder"] or known["dateOrder"],
        "names": {**by_name(known["names"]), **read_answers(changed)},
        "customers": {**by_name(known["customers"]), **read_answers(_by_name(form["customers"]), "customers")},
        "columns": {**{each["heading"]: each["field"] for each in known["columns"]}, **_columns_of(form["columns"])},
    }


def changed_answers(names: Sequence[NameInFile], rows: Sequence[NameRow]) -> Mapping[str, str]:
    """Return the answers about names: what was proposed and not changed is none, which would be remembered."""
    proposed = {each["name"]: chosen_answer(each) for each in names}
    return _by_name([row for row in rows if proposed.get(row["name"]) != row["answer"]])


async def search_exercises(ctx: Context, query: KeywordQuery) -> Sequence[Exercise]:
    """Return the exercises that match what was typed."""
    return await suggest_exercises(ctx, query["keywords"], _SUGGESTIONS)


def _columns_of(rows: Sequence[ColumnRow]) -> Mapping[str, str]:
    """Return the fields by heading. Raises InvalidFields for a field that does not exist, or a heading with two."""
    columns = {row["answer"]: row["name"] for row in rows}
    if len(columns) < len(rows):
        raise invalid_field("columns", "must be another column for each question", code="INVALID_ANSWER")
    if problem := find_wrong_columns(columns):
        raise invalid_field("columns", problem, code="INVALID_ANSWER")
    return columns


def _by_name(rows: Sequence[NameRow]) -> Mapping[str, str]:
    return {row["name"]: row["answer"] for row in rows}
