"""Jobs of bulk operations as they are stored and returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from coaching_service.core.auth.principal import Via
from coaching_service.core.database.models import Stored
from coaching_service.core.database.recording import Interface
from coaching_service.core.fields import Private
from coaching_service.core.ids import ObjectId

BulkJobKind = Literal["bulk", "undo"]
BulkJobStatus = Literal["queued", "running", "done", "failed", "cancelled"]
UNFINISHED: tuple[BulkJobStatus, ...] = ("queued", "running")
# A client who was not changed, or a document that was not restored.
StoredFailure = Mapping[str, Any]
# What an operation on schedules changed of a client.
StoredResult = Mapping[str, Any]


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


class BulkWork(TypedDict):
    """What the next step needs: `ids` are identifiers of 12 bytes each; the steps are claimed as `claimId` says.

    `arguments` are the fields of the request without the selection, `permissions` what it needs; `ok`, `failed` and
    `results` are the result so far.
    """

    operation: str
    arguments: dict[str, Any]
    ids: bytes
    claimId: ObjectId
    fingerprint: str
    caller: StoredCaller
    permissions: NotRequired[list[str]]
    ok: int
    failed: list[StoredFailure]
    results: NotRequired[list[StoredResult]]


class BulkJobError(TypedDict):
    """Why a job has failed."""

    entry: str
    field: None
    code: str
    message: str


class StoredBulkJob(Stored):
    """A job. `done` of `total` clients, or changes to undo, have been processed; `coachId` requested it.

    `batchId` is the batch of the changes that it makes, `changeId` the batch that it undoes.
    """

    kind: BulkJobKind
    status: BulkJobStatus
    done: int
    total: int
    coachId: Annotated[ObjectId, Private]
    batchId: Annotated[ObjectId, Private]
    changeId: NotRequired[Annotated[ObjectId, Private]]
    result: dict[str, Any] | None
    errors: list[BulkJobError]
    work: NotRequired[Annotated[BulkWork, Private]]


@dataclass(frozen=True)
class Outcome:
    """What became of some clients or changes: how many succeeded, and what failed.

    `results` say what changed of each client, None of an operation that does not say it.
    """

    ok: int
    failed: Sequence[StoredFailure] = field(default_factory=list)
    results: Sequence[StoredResult] | None = None
