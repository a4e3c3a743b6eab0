"""What an import of training history is asked for, keeps between its steps, and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict, cast, get_args

from marshmallow import fields

from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Default, Description, Optional
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import FormObject
from coaching_service.core.validation import Choice, Date
from coaching_service.integrations.history_files.models import LAST_CODES, Format, ProblemKind, Question
from coaching_service.integrations.history_files.rosters import Column
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign
from coaching_service.library.imported_names import NameAnswer, NameInFile
from coaching_service.people.account import LoadUnit
from coaching_service.people.customers.models import OnConflict
from coaching_service.people.jobs import JobError

# The formats in which clients import their own history.
OWN_FORMATS = ("hevy", "strong", "fitnotes", "stronglifts", "gravl", "fitbod", "liftosaur", "jefit", "sets")
ImportFormat: TypeAlias = Format | Literal["customers", "measurements"]
DistanceUnit: TypeAlias = Literal["km", "mi", "m", "yd", "cm", "in"]
DurationUnit: TypeAlias = Literal["s", "min", "h"]


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


def break_off(result: HistoryResult) -> HistoryResult:
    """Return the result of an import that has ended before: rows that are left are reported."""
    return {**result, "reported": result["reported"] + count_left(result)}
