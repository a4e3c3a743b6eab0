"""Imports of training history: what the pages say about a file, and what their forms answer."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypedDict, cast

from marshmallow import fields

from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV
from coaching_service.core.text import write_rows
from coaching_service.core.validation import ListOf, Text
from coaching_service.integrations.background_jobs.models import ImportWork, JobError, JobWork
from coaching_service.integrations.company_import.schemas import find_wrong_columns
from coaching_service.integrations.history_files.models import ProblemKind, Question
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign
from coaching_service.integrations.history_import import undoing
from coaching_service.integrations.history_import.answers import by_name
from coaching_service.integrations.history_import.models import (
    DistanceUnit,
    DurationUnit,
    HistoryResult,
    ImportAnswers,
    KeptDocument,
    UndoResult,
    list_problems,
    table_result,
)
from coaching_service.library.exercises.listing import suggest_exercises
from coaching_service.library.exercises.models import Exercise
from coaching_service.library.imported_names.models import CREATE, SKIP, NameInFile, read_answers
from coaching_service.people.account.models import LoadUnit
from coaching_service.web.formatting import SOURCES
from coaching_service.web.page_queries import KeywordQuery

MOST_NAMES = 300
_SHOWN_REASONS, _SHOWN_PROBLEMS, _SHOWN_ENTRIES, _SHOWN_LINES = 3, 50, 3, 5
_KINDS = {
    "VALUE_LEFT_OUT": "Values that could not be read: the rows are imported without them",
    "ALREADY_THERE": "Workouts that are there already",
    "IN_THE_FUTURE": "Days after today",
    "INVALID_DATE": "No such day",
    "REQUIRED": "Empty cells without which a row cannot be imported",
    "SKIPPED": "Left out by your answers",
    "OTHER_CLIENT": "Rows of other clients",
    "OTHER_VALUE": "Days that have another value already",
    "NOT_ASSIGNED": "Metric sets that the client is no longer assigned",
    "NOT_A_SET": "Rests, and rows without a set",
    "UNKNOWN_COLUMN": "A column that is not read",
    "REPEATED_COLUMN": "A column that has what another one has",
    "UNKNOWN_SHEET": "A sheet without a table of sets",
    "DATE_ORDER": "Dates whose order is not known yet",
    "DISTANCE_UNIT": "Distances without a unit",
    "DURATION_UNIT": "Durations without a unit",
    "PERMISSION_MISSING": "Exercises that are not in the library",
}
_FORMATS = {
    **{source: f"An export of {name}" for source, name in SOURCES.items()},
    "workouts": "Workouts of this service",
    "sets": "A table of sets",
    "customers": "A list of clients",
    "measurements": "A table of body measurements",
}
_FIELDS = {
    "LOAD_UNIT": "loadUnit",
    "DISTANCE_UNIT": "distanceUnit",
    "DURATION_UNIT": "durationUnit",
    "DATE_ORDER": "dateOrder",
    "DECIMAL_SIGN": "decimalSign",
}
_NAMED = {"CUSTOMER": "customers", "COLUMN": "columns", "METRIC": "names"}
_REMOVED = {
    "customers": "clients removed",
    "sessions": "workouts removed",
    "exercises": "exercises removed",
    "values": "measurements removed",
}
_OPTIONS = {
    "kg": "Kilograms",
    "lb": "Pounds",
    "km": "Kilometers",
    "mi": "Miles",
    "m": "Meters",
    "yd": "Yards",
    "cm": "Centimeters",
    "in": "Inches",
    "s": "Seconds",
    "min": "Minutes",
    "h": "Hours",
    ".": "A point: 1.5 is one and a half",
    ",": "A comma: 1,5 is one and a half",
    "dmy": "Day first: 03/04 is 3 April",
    "mdy": "Month first: 03/04 is March 4",
    "ymd": "Year first",
    "create": "Create this client",
    "skip": "Leave these rows out",
}


class ShownQuestion(TypedDict):
    """A question with the field of the form that answers it; `named`: the name that it is about.

    `isOfColumn`: it asks for the field of a column, not for the column of a field.
    """

    field: str
    isOfColumn: bool
    named: str
    message: str
    options: list[tuple[str, str]]


class ShownName(TypedDict):
    """A name of an exercise with what it may become, and what is chosen."""

    name: str
    sets: int
    chosen: str
    options: list[tuple[str, str]]


class ShownProblem(TypedDict):
    """A kind of problem: how many rows have it, and where the first are."""

    count: int
    field: str
    message: str
    where: str


def describe(job: JobWork) -> dict[str, Any]:
    """Return what the page of an import, or of its undo, shows."""
    if job["kind"] == "undo":
        return _describe_undo(job)
    work = cast("ImportWork", job["work"])
    result = table_result(job["result"])
    has_ended = job["status"] not in ("queued", "running")
    is_dry_run = work["isDryRun"]
    # Those that an answer is needed for first.
    names = sorted([] if result is None else result["names"], key=lambda each: each["match"] is not None)
    may_create = work.get("mayCreateExercises", True)
    return {
        **job,
        "title": f"Import of {work['fileName'] or 'a file'}",
        "isDryRun": is_dry_run,
        "isUnfinished": not has_ended,
        "result": result,
        "formatName": "" if result is None or result["format"] is None else _FORMATS[result["format"]],
        "facts": [] if result is None else _facts(result),
        "isEmpty": result is None or not result["imported"],
        "questions": []
        if result is None
        else [_question(each, number) for number, each in enumerate(result["questions"])],
        "isChecking": result is not None and any(each["code"] == "COLUMN" for each in result["questions"]),
        "names": [show_name(each, may_create=may_create) for each in names[:MOST_NAMES]],
        "mayCreate": may_create,
        "nameCount": len(names),
        "knownCount": sum(each["match"] is not None for each in names),
        "reasons": [_sentence(each) for each in job["errors"][:_SHOWN_REASONS]],
        "kinds": [] if result is None else [_show_kind(each) for each in result.get("problems", ())],
        "problems": _group(job["errors"]),
        "canRun": is_dry_run and job["status"] == "done" and work["fileId"] is not None,
        "canUndo": not is_dry_run and has_ended and result is not None and undoing.has_stored(result),
    }


def _describe_undo(job: JobWork) -> dict[str, Any]:
    result = cast("UndoResult | None", job["result"])
    removed: Mapping[str, Any] = {} if result is None else result["removed"]
    return {
        **job,
        "title": "Undo of an import",
        "isDryRun": False,
        "isUnfinished": job["status"] in ("queued", "running"),
        "facts": [(_REMOVED[name], count) for name, count in removed.items() if count],
        "isEmpty": not removed,
        "questions": [],
        "names": [],
        "kinds": [],
        "problems": _group_remaining([] if result is None else result["failed"]),
        "canRun": False,
        "canUndo": False,
    }


def _group_remaining(failed: Sequence[KeptDocument]) -> list[ShownProblem]:
    counts = Counter(each["message"] for each in failed)
    return [{"count": count, "field": "", "message": message, "where": ""} for message, count in counts.most_common()]


def _group(errors: Sequence[JobError]) -> list[ShownProblem]:
    """Return the problems of rows by kind, the most frequent first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in errors:
        groups.setdefault((each["field"] or "", each["message"]), []).append(each["entry"])
    problems: list[ShownProblem] = [
        {
            "count": len(entries),
            "field": field,
            "message": message,
            "where": ", ".join(entries[:_SHOWN_ENTRIES]) + (", …" if len(entries) > _SHOWN_ENTRIES else ""),
        }
        for (field, message), entries in groups.items()
    ]
    return sorted(problems, key=lambda each: -each["count"])[:_SHOWN_PROBLEMS]


def _show_kind(kind: ProblemKind) -> ShownProblem:
    lines = ", ".join(map(str, kind["lines"][:_SHOWN_LINES]))
    return {
        "count": kind["count"],
        "field": kind["column"] or "",
        "message": _KINDS.get(kind["code"], kind["code"]),
        "where": f"{lines}, …" if kind["count"] > _SHOWN_LINES else lines,
    }


def is_history(work: ImportWork) -> bool:
    """Return whether an import is of training history, not of clients or of a company."""
    return "plan" in work and work["plan"]["result"]["format"] != "customers"


def is_other_import(job: JobWork) -> bool:
    """Return whether a job has ended that turned out not to be of training history."""
    if job["kind"] == "undo":
        return False
    return job["kind"] != "import" or (job["status"] == "done" and not is_history(cast("ImportWork", job["work"])))


def chosen_answer(name: NameInFile) -> str:
    """Return what a name becomes unless another answer is sent: an identifier, `create` or `skip`; empty: nothing."""
    return str(name["match"]["_id"]) if name["match"] is not None else name["answer"] or ""


def client_of(job: JobWork) -> ObjectId | None:
    """Return the client whose history an import is, if it is of one."""
    answers = cast("ImportWork", job["work"]).get("answers") if job["kind"] == "import" else None
    return None if answers is None else answers["customerId"]


def report(job: JobWork) -> Download:
    """Return the problems of an import as CSV."""
    errors = list_problems(job["errors"], table_result(job["result"]))
    rows = [(each.get("line"), each["entry"], each["field"], each["code"], each["message"]) for each in errors]
    content = codecs.BOM_UTF8 + write_rows([("line", "entry", "field", "code", "message"), *rows])

    async def read(start: int, end: int) -> AsyncGenerator[bytes, None]:
        yield content[start:end]

    return Download(CSV, "import-report.csv", read, len(content))


def _facts(result: HistoryResult) -> list[tuple[str, int]]:
    created = result["created"]
    counts = (
        ("rows", result["rows"]),
        ("workouts", created["sessions"]),
        ("sets", created["sets"]),
        ("measurements", created.get("values", 0)),
        ("new exercises", created["exercises"]),
        ("new clients", created["customers"]),
        ("rows left out", result["reported"]),
    )
    return [(label, count) for label, count in counts if count]


def _question(question: Question, number: int) -> ShownQuestion:
    named = question.get("name", "")
    if question["code"] == "CUSTOMER" and not named:  # the page has the clients
        message = "Whose history is it?"
        return {"field": "customerId", "isOfColumn": False, "named": "", "message": message, "options": []}
    words = {} if question["code"] == "COLUMN" else _OPTIONS
    labels = question.get("labels") or [words.get(each, each) for each in question["options"]]
    return {
        "field": _FIELDS.get(question["code"], f"{_NAMED.get(question['code'])}.{number}"),
        "isOfColumn": question["code"] == "COLUMN" and "labels" in question,
        "named": named,
        "message": question["message"],
        "options": list(zip(question["options"], labels, strict=True)),
    }


def show_name(name: NameInFile, *, may_create: bool) -> ShownName:
    """Return a name with the exercises that it may mean."""
    exercises = [each for each in (name["match"], *name["alternatives"]) if each is not None]
    options = [(str(each["_id"]), each["name"]) for each in exercises]
    if may_create:
        options.append((CREATE, f"New exercise: {name['name']}"))
    return {
        "name": name["name"],
        "sets": name["sets"],
        "chosen": chosen_answer(name),
        "options": [*options, (SKIP, "Leave out")],
    }


def _sentence(error: JobError) -> str:
    field = f"{error['field']} " if error["field"] else ""
    return f"{error['entry']}: {field}{error['message']}"


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
    durationUnit: Annotated[DurationUnit | None, Default(None)]
    dateOrder: Annotated[DateOrder | None, Default(None)]
    decimalSign: Annotated[DecimalSign | None, Default(None)]
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
        "durationUnit": form["durationUnit"] or known.get("durationUnit"),
        "dateOrder": form["dateOrder"] or known["dateOrder"],
        "decimalSign": form["decimalSign"] or known.get("decimalSign"),
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
