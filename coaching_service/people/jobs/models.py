"""Long-running work of a company as it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.auth.principal import Via
from coaching_service.core.database.models import Stored
from coaching_service.core.database.recording import Interface
from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Description, Optional, Part, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice

JobKind = Literal["import", "load_unit", "bulk", "undo"]
JobStatus = Literal["queued", "running", "done", "failed", "cancelled"]
UNFINISHED: tuple[JobStatus, ...] = ("queued", "running")


class StoredCaller(TypedDict):
    """Who requested a job, with the rights of the request."""

    coachId: ObjectId
    via: Via
    interface: NotRequired[Interface | None]
    credentialId: ObjectId
    permissions: list[str]
    isAssigned: bool
    restricted: bool
    application: str | None


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


class StoredJob(Stored):
    """A job. `work` is what its next step needs, `caller` the coach who acts in it.

    `requestedBy` is the coach who may read it besides the owner, `customerId` the client who imports the own history.
    A bulk operation or the undo of changes has `batchId`, the batch of the changes that it makes; the undo has
    `changeId`, the batch that it undoes.
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
    result: Annotated[Mapping[str, Any] | None, fields.Raw(), Description("null until the job has ended.")]
    errors: Annotated[
        list[JobError],
        fields.List(fields.Nested(output_of(JobError, output_of(_Problem), name="BackgroundJobError"))),
        Description("The first 100 problems, of a table 1,000; then `MORE_PROBLEMS` with the number of others."),
    ]
    work: NotRequired[Annotated[Mapping[str, Any], Private]]
    caller: NotRequired[Annotated[StoredCaller | None, Private]]
    requestedBy: NotRequired[Annotated[ObjectId | None, Private]]
    customerId: NotRequired[Annotated[ObjectId | None, Private]]
    batchId: NotRequired[Annotated[ObjectId, Private]]
    changeId: NotRequired[Annotated[ObjectId, Private]]


NewJob: TypeAlias = Part[StoredJob, Literal["kind", "work", "requestedBy", "customerId"]]

# A client who was not changed, or a document that was not restored.
StoredFailure = Mapping[str, Any]
# What an operation on schedules changed of a client.
StoredResult = Mapping[str, Any]


class BatchWork(TypedDict):
    """What the next step needs: `ids` are identifiers of 12 bytes each; the steps are claimed as `claimId` says.

    `arguments` are the fields of the request without the selection, `permissions` what it needs; `ok`, `failed` and
    `results` are the result so far.
    """

    operation: str
    arguments: dict[str, Any]
    ids: bytes
    claimId: ObjectId
    fingerprint: str
    permissions: NotRequired[list[str]]
    ok: int
    failed: list[StoredFailure]
    results: NotRequired[list[StoredResult]]


@dataclass(frozen=True)
class Outcome:
    """What became of some clients or changes: how many succeeded, and what failed.

    `results` say what changed of each client, None of an operation that does not say it.
    """

    ok: int
    failed: Sequence[StoredFailure] = field(default_factory=list)
    results: Sequence[StoredResult] | None = None
