"""What an import of training history is asked for, keeps between its steps, and returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast, get_args

from marshmallow import ValidationError, fields, post_load

from coaching_service.core.auth import new_token
from coaching_service.core.errors import InvalidFields
from coaching_service.core.fields import Default, Description, Optional, Part, input_of, output_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import FormBoolean, FormObject
from coaching_service.core.validation import Choice, Date, Input
from coaching_service.integrations.history_files.rosters import COLUMNS, JOINED, Column
from coaching_service.integrations.history_files.set_files import FIELDS
from coaching_service.integrations.history_files.set_rows import Answers
from coaching_service.integrations.history_files.tables import LAST_CODES, Format, ProblemKind, Question
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign
from coaching_service.library.imported_names import NameAnswer, NameInFile, read_answers
from coaching_service.people.account import LoadUnit
from coaching_service.people.customers.models import OnConflict
from coaching_service.people.jobs import JobError


class ImportRefused(Exception):
    """A file cannot be imported, or not as it was requested; nothing more of it is read or stored."""

    def __init__(self, message: str, entry: str = "", code: str = "INVALID_FILE", *, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.entry, self.code, self.line = message, entry, code, line


# The formats in which clients import their own history.
OWN_FORMATS = ("hevy", "strong", "fitnotes", "stronglifts", "gravl", "fitbod", "liftosaur", "jefit", "sets")
ImportFormat: TypeAlias = Format | Literal["customers", "measurements"]
DistanceUnit: TypeAlias = Literal["km", "mi", "m", "yd", "cm", "in"]
DurationUnit: TypeAlias = Literal["s", "min", "h"]
# What names in a file stand for; None: what has it is left out.
Meanings: TypeAlias = Mapping[str, NameAnswer | None]


class FileAnswers(TypedDict):
    """What the caller says about all of a file; None: the file decides, or the import asks."""

    format: Annotated[
        ImportFormat | None,
        Choice(*get_args(Format), "customers", "measurements"),
        Description("What the file is. Default: as its headings say."),
    ]
    customerId: Annotated[
        ObjectId | None,
        Description(
            "The client of a file without a column of clients. With it, a coach with the permission `customers.edit` "
            "may import. Of a file with several clients, rows of others are reported."
        ),
    ]
    loadUnit: Annotated[LoadUnit | None, Description("The unit of loads that the file has without one.")]
    distanceUnit: Annotated[DistanceUnit | None, Description("The unit of distances that the file has without one.")]
    durationUnit: Annotated[DurationUnit | None, Description("The unit of durations that the file has without one.")]
    dateOrder: Annotated[
        DateOrder | None,
        Description("The order of dates such as 03/04/2026. Default: what all dates of the file fit."),
    ]
    decimalSign: Annotated[
        DecimalSign | None,
        Description("The sign before decimals: whether 1.500 is 1500 or 1.5. Default: as other numbers of the file."),
    ]


class ImportAnswers(FileAnswers):
    """What the caller says about a file; without an answer the file decides, or the import asks."""

    names: Annotated[
        Mapping[str, NameAnswer],
        FormObject(),
        Default(dict),
        Description(
            "JSON object: name of an exercise in the file to the `_id` of an exercise, `create` or `skip`. Answers are "
            "remembered for the next import. Of measurements: name of one to the `_id` of a metric, or `skip`."
        ),
    ]
    customers: Annotated[
        Mapping[str, NameAnswer],
        FormObject(),
        Default(dict),
        Description("JSON object: client in the file to the `_id` of a client, `create` or `skip`."),
    ]
    columns: Annotated[
        Mapping[str, str | Column],
        FormObject(),
        Default(dict),
        Description(
            "JSON object: heading to the field that its column has, such as `date`, `exercise`, `reps`, `load`; an "
            "empty text: the column is not read."
        ),
    ]


NO_ANSWERS: ImportAnswers = {
    "format": None,
    "customerId": None,
    "loadUnit": None,
    "distanceUnit": None,
    "durationUnit": None,
    "dateOrder": None,
    "decimalSign": None,
    "names": {},
    "customers": {},
    "columns": {},
}


def find_wrong_columns(columns: Mapping[str, str]) -> str | None:
    """Return what is wrong with answers about columns: a field that is not known, or that two columns have."""
    counts = Counter(columns.values())
    if unknown := sorted(counts.keys() - {*FIELDS, *COLUMNS, ""}):
        return f"must be fields of sets or clients: {', '.join(unknown)[:100]}"
    repeated = [name for name, count in counts.items() if count > 1 and name not in ("", *JOINED)]
    return f"must name one column for each field: {', '.join(repeated)}" if repeated else None


class StoredAnswer(TypedDict):
    """What a name in a file stands for; None: what has it is left out. Names are no keys of stored documents."""

    name: str
    answer: NameAnswer | None


class StoredColumn(TypedDict):
    """The field of a heading."""

    heading: str
    field: str


class StoredAnswers(FileAnswers):
    """The answers about a file as a job keeps them."""

    names: list[StoredAnswer]
    customers: list[StoredAnswer]
    columns: list[StoredColumn]


class CreatedCounts(TypedDict):
    """How many records an import of history created, or would create."""

    customers: Annotated[int, Description("Number of clients.")]
    sessions: Annotated[int, Description("Number of workouts that were done.")]
    sets: Annotated[int, Description("Number of sets that were done.")]
    exercises: Annotated[int, Description("Number of exercises of the company.")]
    values: NotRequired[Annotated[int, Optional, Description("Of measurements: number of values of metrics.")]]


class FileResult(TypedDict):
    """What an import of a table found and created; of other jobs responses do not have it."""

    dryRun: bool
    imported: int
    format: Annotated[
        ImportFormat | None,
        fields.String(),
        Optional,
        Description("Of a table: its format; null if it ended before the file was read."),
    ]
    rows: Annotated[int, Optional, Description("Of history: number of data rows.")]
    reported: Annotated[
        int, Optional, Description("Of history: number of rows that were not imported, each with an error.")
    ]
    created: Annotated[CreatedCounts, fields.Nested(output_of(CreatedCounts, name="HistoryCounts")), Optional]
    questions: Annotated[list[Question], Optional, Description("Of history: what the file and the request leave open.")]
    problems: Annotated[
        list[ProblemKind],
        Optional,
        Description(
            "Of a table: the problems by kind, also those that are only counted: rests, repeated columns and columns "
            "that are not read, which are the last."
        ),
    ]
    names: Annotated[
        list[NameInFile], Optional, Description("Of history: the names of exercises, the most frequent first.")
    ]


# `from` is a keyword of Python, so this type has the functional form.
SessionDates = TypedDict(
    "SessionDates",
    {
        "from": Annotated[str | None, Date(), Optional, Description("Of history: the date of the first session.")],
        "to": Annotated[str | None, Date(), Optional, Description("Of history: the date of the last session.")],
    },
)


class HistoryResult(FileResult, SessionDates):
    """The result of an import of a table."""


ImportedPeriod = TypedDict(
    "ImportedPeriod",
    {"customerId": ObjectId, "sessions": int, "sets": int, "from": str, "to": str, "format": NotRequired[str]},
)


class HistoryPlan(TypedDict):
    """What an import of history has decided at its start, and where it is.

    `exercises` (of measurements: metrics) and `customers` are what names in the file stand for (`create`: a dry run
    would create it). `current` is
    what was stored for the client whose sessions are being stored, and has no event yet. `problems` counts those of
    rows, also those that the job does not list.
    """

    exercises: list[StoredAnswer]
    customers: list[StoredAnswer]
    dateOrder: DateOrder | None
    decimalSign: NotRequired[DecimalSign | None]
    current: ImportedPeriod | None
    result: HistoryResult
    problems: NotRequired[int]


class ImportResult(TypedDict):
    """What an import stored, or with `dryRun` would have stored: records by collection; `failed` were left out."""

    dryRun: bool
    imported: dict[str, int]
    failed: int


class ImportWork(TypedDict):
    """What the next step of an import needs.

    `fileId` is None once the import has ended, and the file is deleted. `entry` and `record` are the position in the
    file; `onConflict` is for clients of a CSV file; identifiers are mapped with `seed`. `isStarted` once the whole file
    has been checked and its records have been counted. `answers` are about a table; `plan` is of one with history.
    `mayImportAll`: not only sessions of one client; `isOwn`: the client imports the own history. `keepsFile`: after a
    dry run the file is kept for a day, in which it can be imported. `mayCreateExercises`: those that names need.
    """

    fileId: ObjectId | None
    fileName: str
    contentType: str
    isDryRun: bool
    onConflict: NotRequired[OnConflict]
    seed: str
    entry: int
    record: int
    isStarted: bool
    imported: dict[str, int]
    failed: int
    answers: NotRequired[StoredAnswers]
    mayImportAll: NotRequired[bool]
    isOwn: NotRequired[bool]
    mayCreateExercises: NotRequired[bool]
    keepsFile: NotRequired[bool]
    plan: NotRequired[HistoryPlan]


class RemovedCounts(TypedDict):
    """How many records the undo of an import removed."""

    customers: Annotated[int, Description("Number of clients.")]
    sessions: Annotated[int, Description("Number of workouts that were done.")]
    exercises: Annotated[int, Description("Number of exercises of the company.")]
    values: NotRequired[Annotated[int, Optional, Description("Of measurements: number of values of metrics.")]]


class Removed(TypedDict):
    """What the undo of an import removed."""

    removed: Annotated[RemovedCounts, Optional]


class KeptDocument(TypedDict):
    """A record that stays, and why."""

    documentId: ObjectId
    code: str
    message: str


class UndoResult(Removed):
    """What the undo of an import removed (`ok` records), and the first of those that stay."""

    ok: int
    failed: list[KeptDocument]


class UndoWork(TypedDict):
    """What the next step of an undo needs; the job of the import may be gone by then.

    `entry` is the kind of records that it goes through, `record` how many of them it has seen, and `last` the last one.
    `clients` are those of whom sessions were removed.
    """

    importId: ObjectId
    importEndedAt: datetime
    isOfClients: bool
    entry: int
    record: int
    last: ObjectId | None
    clients: list[ImportedPeriod]
    result: UndoResult


# --- Results of imports of tables: the same shape, whether they are done, cancelled or failed -------------------------


def empty_result(form: ImportFormat | None, *, is_dry_run: bool, rows: int = 0) -> HistoryResult:
    """Return the result of an import that has done nothing yet; the format is None until the file has been read."""
    return {
        "dryRun": is_dry_run,
        "format": form,
        "rows": rows,
        "imported": 0,
        "reported": 0,
        "created": {"customers": 0, "sessions": 0, "sets": 0, "exercises": 0},
        "from": None,
        "to": None,
        "questions": [],
        "problems": [],
        "names": [],
    }


def new_plan(
    result: HistoryResult,
    problems: int,
    exercises: Meanings = MappingProxyType({}),
    customers: Meanings = MappingProxyType({}),
) -> HistoryPlan:
    """Return the plan of an import at its start."""
    return {
        "exercises": list_answers(exercises),
        "customers": list_answers(customers),
        "dateOrder": None,
        "current": None,
        "result": result,
        "problems": problems,
    }


def table_result(result: Mapping[str, object] | None) -> HistoryResult | None:
    """Return the result of a job if it is of a table: training history, or clients; else None."""
    return cast("HistoryResult", result) if result is not None and "rows" in result else None


def list_problems(errors: Sequence[JobError], result: HistoryResult | None) -> list[JobError]:
    """Return the problems of a job, and a line for each kind that is only counted."""
    kinds = () if result is None else result.get("problems", ())
    listed = {(each.get("code"), each["field"]) for each in errors}
    counted: list[JobError] = [
        {
            "entry": f"line {kind['lines'][0]}",
            "line": kind["lines"][0],
            "field": kind["column"],
            "code": kind["code"],
            "message": f"{kind['count']:,} in this file",
        }
        for kind in kinds
        if kind["code"] in LAST_CODES and (kind["code"], kind["column"]) not in listed
    ]
    return [*errors, *counted]


def count_left(result: HistoryResult) -> int:
    """Return how many rows are neither imported nor reported yet."""
    return result["rows"] - result["imported"] - result["reported"]


def complete(result: HistoryResult) -> HistoryResult:
    """Return the result of an import that has reached its end.

    Rows that are left depend on open questions, which a dry run may have. Raises RuntimeError for a run with such rows.
    """
    left = count_left(result)
    if left and not result["dryRun"]:
        raise RuntimeError(f"{left} rows of an import are neither imported nor reported, or both")
    return {**result, "imported": result["imported"] + left}


# --- Answers about a file as a job keeps them: names of the file are no keys of stored documents ----------------------


def new_work(answers: ImportAnswers, *, file_name: str, content_type: str, dry_run: bool) -> ImportWork:
    """Return what the first step of an import needs, without a file; identifiers of the file get a new seed."""
    return {
        "fileId": None,
        "fileName": file_name,
        "contentType": content_type,
        "isDryRun": dry_run,
        "seed": new_token(),
        "entry": 0,
        "record": 0,
        "isStarted": False,
        "imported": {},
        "failed": 0,
        "answers": {
            **take(FileAnswers, answers),
            "names": list_answers(answers["names"]),
            "customers": list_answers(answers["customers"]),
            "columns": [{"heading": heading, "field": field} for heading, field in answers["columns"].items()],
        },
    }


def list_answers(answers: Meanings) -> list[StoredAnswer]:
    """Return what names stand for as a list."""
    return [{"name": name, "answer": answer} for name, answer in answers.items()]


def by_name(answers: list[StoredAnswer]) -> dict[str, NameAnswer]:
    """Return what names stand for, without those that are left out."""
    return {each["name"]: each["answer"] for each in answers if each["answer"] is not None}


def exercise_ids(answers: list[StoredAnswer]) -> dict[str, ObjectId | None]:
    """Return the exercise of each name; None: what has it is left out, or the exercise would be created."""
    return {each["name"]: each["answer"] if isinstance(each["answer"], ObjectId) else None for each in answers}


def reading_answers(
    answers: StoredAnswers,
    date_order: DateOrder | None = None,
    decimal_sign: DecimalSign | None = None,
) -> Answers:
    """Return what the reading of the file needs; `date_order` and `decimal_sign` are what the file has decided."""
    form = answers["format"]
    return Answers(
        format=cast("Format", form) if form in get_args(Format) else None,
        load_unit=answers["loadUnit"],
        distance_unit=answers["distanceUnit"],
        duration_unit=answers.get("durationUnit"),  # absent in jobs of older versions
        date_order=answers["dateOrder"] or date_order,
        decimal_sign=answers.get("decimalSign") or decimal_sign,
        columns={each["heading"]: cast("Any", each["field"]) for each in answers["columns"]},
    )


# --- The text fields sent with a file ---------------------------------------------------------------------------------


class DryRunField(TypedDict):
    """Whether a file is only checked."""

    dryRun: Annotated[
        bool,
        FormBoolean(),
        Default(False),
        Description("`true`: check everything, report the problems, and store nothing. Default: `false`."),
    ]


class _FieldsOfAllFiles(DryRunField):
    """What every file may have, also an archive; first, as clients pass them that are generated in order."""

    onConflict: Annotated[
        OnConflict,
        Default("error"),
        Description(
            "What becomes of a row of clients whose external identifier a client has: it is left out with an error, or "
            "the client gets what its cells have; empty cells change nothing. Default: `error`."
        ),
    ]


class ImportOptions(_FieldsOfAllFiles):
    """How a file is imported."""

    answers: ImportAnswers


class _ImportFields(_FieldsOfAllFiles, ImportAnswers):
    """How to import a file."""


class AnswersTogether(Input):
    """The base of forms with the fields of ImportAnswers: they become `answers`."""

    @post_load
    def as_answers(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Gather the answers in `answers`."""
        if problem := find_wrong_columns(data["columns"]):
            raise ValidationError(problem, "columns")
        sent = {name: data.pop(name, default) for name, default in NO_ANSWERS.items()}
        fields: tuple[Literal["names", "customers"], ...] = ("names", "customers")
        for name in fields:
            try:
                sent[name] = read_answers(sent[name], name)
            except InvalidFields as error:
                raise ValidationError(error.errors[0]["message"], name) from None
        return {**data, "answers": cast("ImportAnswers", sent)}


IMPORT_FIELDS = input_of(_ImportFields, AnswersTogether)


class OwnImportOptions(DryRunField):
    """How a file of the own history is imported."""

    answers: ImportAnswers


class _OwnFormat(AnswersTogether):
    format = Choice(
        *OWN_FORMATS, load_default=None, metadata={"description": "What the file is. Default: as its headings say."}
    )


_Answers: TypeAlias = Part[
    ImportAnswers,
    Literal["loadUnit", "distanceUnit", "durationUnit", "dateOrder", "decimalSign", "names", "columns"],
]
OWN_IMPORT_FIELDS = input_of(_Answers, _OwnFormat, input_of(DryRunField))
