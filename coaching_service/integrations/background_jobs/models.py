"""Background jobs of a company as they are stored and returned."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Stored
from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Description, Optional, Part, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Identifier, Output
from coaching_service.integrations.history_import.models import (
    FileResult,
    HistoryPlan,
    HistoryResult,
    Removed,
    SessionDates,
    StoredAnswers,
    UndoResult,
    UndoWork,
)
from coaching_service.lifecycle.customer_bulk.models import ClientChange
from coaching_service.people.account.models import LoadUnit
from coaching_service.people.bulk_jobs.models import StoredBulkJob, StoredCaller
from coaching_service.people.customers.models import OnConflict

# --- The results of background jobs in responses ----------------------------------------------------------------------


_OPTIONAL = {"optional": True}
_IDENTIFIER = {"type": "string", "pattern": "^[0-9a-fA-F]{24}$"}
_FAILURE = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
        "customerId": _IDENTIFIER,
        "documentId": _IDENTIFIER,
        "code": {"type": "string"},
        "message": {"type": "string"},
    },
}


class _JobResult(Output):
    """What an import stored, a conversion of loads converted, or a bulk operation or an undo changed."""

    dryRun = fields.Boolean(metadata={"description": "Whether nothing was stored.", **_OPTIONAL})
    imported = fields.Raw(
        metadata={
            "description": "Of an export or clients: number of records by collection. Of history: number of rows that "
            "were imported.",
            "anyOf": [{"type": "integer"}, {"type": "object", "additionalProperties": {"type": "integer"}}],
            **_OPTIONAL,
        }
    )
    failed = fields.Raw(
        metadata={
            "description": "Of an import: number of records that were left out, each with an error. Of a bulk "
            "operation or an undo: the clients who were not changed, or the documents that were not restored.",
            "anyOf": [{"type": "integer"}, {"type": "array", "items": _FAILURE}],
            **_OPTIONAL,
        }
    )
    requested = fields.Integer(metadata={"description": "Of a bulk operation: number of clients.", **_OPTIONAL})
    ok = fields.Integer(
        metadata={"description": "Number of clients that were changed, or documents that were restored.", **_OPTIONAL}
    )
    results = fields.List(
        fields.Nested(output_of(ClientChange)),
        metadata={"description": "Of an operation on schedules: what changed of each client.", **_OPTIONAL},
    )
    batchId = Identifier(metadata={"description": "The batch of the changes, to undo them.", **_OPTIONAL})
    changeId = Identifier(
        allow_none=True,
        metadata={"description": "Of an undo: its own batch; null if nothing was restored.", **_OPTIONAL},
    )
    loadUnit = Choice("kg", "lb", metadata={"description": "The unit of loads after a conversion.", **_OPTIONAL})
    converted = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(),
        metadata={
            "description": "Number of converted `workouts` (programs included), `templates`, `trainingMaxes` and "
            "`personalRecords` with loads, and of `loads`.",
            **_OPTIONAL,
        },
    )


class _ImportJobResult(FileResult, Removed, SessionDates):
    """What a job did; of an import of history also what the file has."""


RESULT = output_of(_ImportJobResult, _JobResult, name="ImportJobResult")

JobKind = Literal["import", "load_unit", "undo"]
JobStatus = Literal["queued", "running", "done", "failed", "cancelled"]


class _Problem(TypedDict):
    entry: Annotated[
        str, Description("Where: an entry of the archive with the number of its line, or a line of the CSV.")
    ]
    line: NotRequired[
        Annotated[int | None, Optional, Description("Of a table: the line of the row; null: the whole file.")]
    ]
    field: Annotated[str | None, Description("The path of the field; null: the whole record.")]
    code: Annotated[str, Optional, Description("A stable code, such as `EXTERNAL_ID_TAKEN`. Absent in old jobs.")]
    message: Annotated[str, Description("What is wrong, as the continuation of the field's name.")]


class JobError(_Problem):
    """A problem that a job has found."""

    _id: NotRequired[
        Annotated[
            ObjectId,
            Optional,
            Description(
                "Of a CSV file. With `EXTERNAL_ID_TAKEN`: the client who has the identifier. With `ALREADY_EXISTS`: "
                "the client with the same e-mail address or full name."
            ),
        ]
    ]


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


class StoredCompanyJob(Stored):
    """A background job.

    `work` is what its next step needs, `caller` the coach who acts in it. `requestedBy` is the coach who may read it as
    the owner may; `customerId` is the client who imports the own history.
    """

    kind: Annotated[JobKind, Choice("import", "load_unit", "bulk", "undo"), Description("What the job does.")]
    status: Annotated[
        JobStatus,
        Description("`failed`, `cancelled`: it ended before everything was processed; what it had stored stays."),
    ]
    done: Annotated[
        int,
        Description(
            "Number of records processed; of a conversion: of clients, programs and templates; of a bulk operation: of "
            "clients; of an undo: of changes."
        ),
    ]
    total: Annotated[int, Description("Number of records; 0 until they are counted.")]
    result: Annotated[
        ImportResult | ConversionResult | HistoryResult | UndoResult | None,
        fields.Nested(RESULT),
        Description("null until the job has ended."),
    ]
    errors: Annotated[
        list[JobError],
        fields.List(fields.Nested(output_of(JobError, output_of(_Problem), name="BackgroundJobError"))),
        Description("The first 100 problems, of a table 1,000; then `MORE_PROBLEMS` with the number of others."),
    ]
    work: NotRequired[Annotated[AnyWork, Private]]
    caller: NotRequired[Annotated[StoredCaller | None, Private]]
    requestedBy: NotRequired[Annotated[ObjectId | None, Private]]
    customerId: NotRequired[Annotated[ObjectId | None, Private]]


AnyJob = StoredCompanyJob | StoredBulkJob
BACKGROUND_JOB = output_of(
    StoredCompanyJob, name="BackgroundJob", description="Work that continues after the response."
)


NewJob: TypeAlias = Part[StoredCompanyJob, Literal["kind", "work", "caller", "requestedBy", "customerId"]]

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
