"""Background jobs of a company as they are stored and returned."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Part, Private
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.history_import.models import (
    HistoryPlan,
    HistoryResult,
    ImportAnswers,
    StoredAnswers,
    UndoResult,
    UndoWork,
)
from coaching_service.people.account.models import LoadUnit
from coaching_service.people.bulk_jobs.models import StoredBulkJob, StoredCaller
from coaching_service.people.customers.models import OnConflict

JobKind = Literal["import", "load_unit", "undo"]
JobStatus = Literal["queued", "running", "done", "failed", "cancelled"]


class JobError(TypedDict):
    """A problem: where (`entry`, such as `records/notes.jsonl:12`), which field, and what is wrong with it.

    `line`: of a table; None: the whole file. `_id`: the record that has the identifier in another system, or the client
    who is here already.
    """

    entry: str
    line: NotRequired[int | None]
    field: str | None
    code: str
    message: str
    _id: NotRequired[ObjectId]


class ImportResult(TypedDict):
    """What an import stored, or with `dryRun` would have stored: records by collection; `failed` were left out."""

    dryRun: bool
    imported: dict[str, int]
    failed: int


class ImportOptions(TypedDict):
    """How a file is imported."""

    dryRun: bool
    onConflict: OnConflict
    answers: ImportAnswers


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


class ConversionResult(TypedDict):
    """How many documents were converted, or with `dryRun` would be, by kind, and how many loads they have."""

    dryRun: bool
    loadUnit: str
    converted: dict[str, int]


class ConversionWork(TypedDict):
    """What the next step of a conversion of loads needs.

    `entry` and `record` are its position: what is converted (clients, programs, templates) and how many of it have
    been; `last` is the last of them.
    """

    isDryRun: bool
    loadUnit: LoadUnit
    entry: int
    record: int
    last: ObjectId | None
    converted: dict[str, int]


AnyWork: TypeAlias = ImportWork | ConversionWork | UndoWork


class NewJob(TypedDict):
    """A job to store; see StoredCompanyJob."""

    kind: JobKind
    work: AnyWork
    requestedBy: NotRequired[ObjectId | None]
    customerId: NotRequired[ObjectId | None]
    caller: NotRequired[StoredCaller | None]


class StoredCompanyJob(Stored):
    """A background job. `done` and `total` count records, or what is converted.

    `work` is what its next step needs, `caller` the coach who acts in it. `requestedBy` is the coach who may read it as
    the owner may; `customerId` is the client who imports the own history.
    """

    kind: JobKind
    status: JobStatus
    done: int
    total: int
    result: ImportResult | ConversionResult | HistoryResult | UndoResult | None
    errors: list[JobError]
    work: NotRequired[Annotated[AnyWork, Private]]
    caller: NotRequired[Annotated[StoredCaller | None, Private]]
    requestedBy: NotRequired[Annotated[ObjectId | None, Private]]
    customerId: NotRequired[Annotated[ObjectId | None, Private]]


AnyJob = StoredCompanyJob | StoredBulkJob


# What a job has to do, and what it has done.
JobWork: TypeAlias = Part[
    StoredCompanyJob,
    Literal[
        "_id",
        "updatedAt",
        "kind",
        "status",
        "done",
        "total",
        "result",
        "errors",
        "work",
        "caller",
        "requestedBy",
        "customerId",
    ],
]

# Who requested a job of the company; of `work` only the client or the import that it is about.
JobReaders: TypeAlias = Part[StoredCompanyJob, Literal["_id", "kind", "work", "caller", "requestedBy", "customerId"]]
