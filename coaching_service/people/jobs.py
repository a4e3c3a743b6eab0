"""Long-running work of a company: its progress is stored with what each step writes, and read while it goes on.

An import, its undo and a conversion of loads are one at a time. Bulk operations and undos of changes are batches: each
step claims what it changes, so a step that was interrupted is repeated safely.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast, get_args

from marshmallow import fields

from coaching_service.core import errors as core_errors
from coaching_service.core import fields as core_fields
from coaching_service.core.auth import (
    CUSTOMERS,
    Access,
    Via,
    check_access,
    coach,
    even_while_converting,
    find_denial,
    owner,
)
from coaching_service.core.database.context import AlreadyClaimed, Context, Services, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.recording import Interface
from coaching_service.core.events import Accepted
from coaching_service.core.fields import output_of
from coaching_service.core.idempotency import Claim, IdempotencyKeyReused
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain, Step
from coaching_service.core.list_selection import CursorPage, ListPart, PartQuery
from coaching_service.core.validation import Choice
from coaching_service.people import api_keys, assistants, team
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers

# --- Long-running work of a company as it is stored -------------------------------------------------------------------


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
        str,
        core_fields.Description("Where: an entry of the archive with the number of its line, or a line of the CSV."),
    ]
    line: NotRequired[
        Annotated[
            int | None,
            core_fields.Optional,
            core_fields.Description("Of a table: the line of the row; null: the whole file."),
        ]
    ]
    field: Annotated[str | None, core_fields.Description("The path of the field; null: the whole record.")]
    code: Annotated[
        str,
        core_fields.Optional,
        core_fields.Description("A stable code, such as `EXTERNAL_ID_TAKEN`. Absent in old jobs."),
    ]
    message: Annotated[str, core_fields.Description("What is wrong, as the continuation of the field's name.")]


class JobError(_Problem):
    """A problem that a job has found."""

    _id: NotRequired[
        Annotated[
            ObjectId,
            core_fields.Optional,
            core_fields.Description(
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

    kind: Annotated[
        JobKind, Choice("import", "load_unit", "bulk", "undo"), core_fields.Description("What the job does.")
    ]
    status: Annotated[
        JobStatus,
        core_fields.Description(
            "`failed`, `cancelled`: it ended before everything was processed; what it had stored stays."
        ),
    ]
    done: Annotated[
        int,
        core_fields.Description(
            "Number of records processed; of a conversion: of clients, programs and templates; of a bulk operation: of "
            "clients; of an undo: of changes."
        ),
    ]
    total: Annotated[int, core_fields.Description("Number of records; 0 until they are counted.")]
    result: Annotated[Mapping[str, Any] | None, fields.Raw(), core_fields.Description("null until the job has ended.")]
    errors: Annotated[
        list[JobError],
        fields.List(fields.Nested(output_of(JobError, output_of(_Problem), name="BackgroundJobError"))),
        core_fields.Description(
            "The first 100 problems, of a table 1,000; then `MORE_PROBLEMS` with the number of others."
        ),
    ]
    work: NotRequired[Annotated[Mapping[str, Any], core_fields.Private]]
    caller: NotRequired[Annotated[StoredCaller | None, core_fields.Private]]
    requestedBy: NotRequired[Annotated[ObjectId | None, core_fields.Private]]
    customerId: NotRequired[Annotated[ObjectId | None, core_fields.Private]]
    batchId: NotRequired[Annotated[ObjectId, core_fields.Private]]
    changeId: NotRequired[Annotated[ObjectId, core_fields.Private]]


class JobQuery(PartQuery):
    """Which jobs are listed."""

    kind: Annotated[
        JobKind | None,
        Choice("import", "load_unit", "bulk", "undo"),
        core_fields.Description("Only jobs that do this."),
    ]
    status: Annotated[JobStatus | None, core_fields.Description("Only jobs with this status.")]


NewJob: TypeAlias = core_fields.Part[StoredJob, Literal["kind", "work", "requestedBy", "customerId"]]


class BatchWork(TypedDict):
    """What the next step needs: `ids` are identifiers of 12 bytes each; the steps are claimed as `claimId` says.

    `arguments` are the fields of the request without the selection, `permissions` what it needs; `ok`, `failed`,
    `results` and `skipped` are the result so far.
    """

    operation: str
    arguments: dict[str, Any]
    ids: bytes
    claimId: ObjectId
    fingerprint: str
    permissions: NotRequired[list[str]]
    ok: int
    failed: list[Mapping[str, Any]]
    results: NotRequired[list[Mapping[str, Any]]]
    skipped: NotRequired[list[Mapping[str, Any]]]


@dataclass(frozen=True)
class Outcome:
    """What became of some clients or changes: how many succeeded, and what failed.

    `results` say what changed of each client, `skipped` who was left alone; None of an operation that does not say it.
    """

    ok: int
    failed: Sequence[Mapping[str, Any]] = field(default_factory=list)
    results: Sequence[Mapping[str, Any]] | None = None
    skipped: Sequence[Mapping[str, Any]] | None = None


# --- Long-running work of companies in the database -------------------------------------------------------------------


MAX_ERRORS, MAX_ROW_ERRORS = 100, 1_000  # of a table with history each row that is not imported is a problem
RETENTION = timedelta(days=30)
# The clients of an import, whose erasure deletes its job.
_CLIENTS = "work.plan.customers.answer"
NEWEST_FIRST = ("-createdAt", "-_id")
_STATES = list(get_args(JobStatus))
_OF_UNFINISHED = (("status", {"$gte": "queued"}),)  # in the alphabet: cancelled, done, failed, queued, running
_UNFINISHED = {"status": {"$in": list(UNFINISHED)}}

jobs = Documents[StoredJob](
    "companyJobs",
    (
        Index(("_id",)),
        Index(("kind", "status", "-createdAt")),
        Index(("kind", "customerId", "batchId"), unique=True, partial_filter=_OF_UNFINISHED),
        Index(NEWEST_FIRST),
        Index(("requestedBy", *NEWEST_FIRST)),
        Index(("changeId", "createdAt"), partial_filter=(("changeId", {"$exists": True}),)),
        Index((_CLIENTS,)),
    ),
    private=core_fields.private_of(StoredJob),
    client_field=_CLIENTS,
    expire=("createdAt", int(RETENTION.total_seconds())),
    cross_company_reason="the check of the stored data looks for those that do not continue",
    transfer=NotExported("work in progress"),
    has_files=True,
)
_READERS = (
    *("kind", "caller", "requestedBy", "customerId", "batchId"),
    *("work.answers.customerId", "work.importId", "work.permissions"),
)
_SHOWN = ("createdAt", "updatedAt", "version", "kind", "status", "done", "total", "result", "errors")
COMPLETE = (*_SHOWN, *core_fields.private_of(StoredJob))


def new(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job that has not begun, with `job` in place of its other fields."""
    about = {"caller": None, "requestedBy": None, "customerId": None}
    return {**about, "status": "queued", "done": 0, "total": 0, "result": None, "errors": [], **job}


async def find_readers(ctx: Context, job_id: ObjectId) -> StoredJob | None:
    """Return who requested a job and whom it is about, and of `work` only that; None without such a job."""
    return await jobs.find_one(ctx, {"_id": job_id}, _READERS)


async def find_complete(ctx: Context, job_id: ObjectId) -> StoredJob | None:
    """Return a job with its private fields, or None."""
    return await jobs.find_one(ctx, {"_id": job_id}, COMPLETE)


async def find_of_clients(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[StoredJob]:
    """Return the jobs of imports for some clients, that ask about them, or that they requested, with private fields."""
    of_clients = {"$in": list(customer_ids)}
    planned = await jobs.find(ctx, {_CLIENTS: of_clients}, fields=COMPLETE)
    asked = {"$in": [str(each) for each in customer_ids]}
    about = [
        {"customerId": of_clients},
        {"work.answers.customerId": of_clients},
        {"result.questions.options": asked},
    ]
    where = {"kind": {"$in": ["import", "undo"]}, "status": {"$in": _STATES}, "$or": about}
    own = await jobs.find(ctx, where, fields=COMPLETE)
    return list({job["_id"]: job for job in (*planned, *own)}.values())


async def list_latest(ctx: Context, kind: str, limit: int) -> list[StoredJob]:
    """Return the latest jobs of a kind with private fields, newest first."""
    where = {"kind": kind, "status": {"$in": _STATES}}
    return await jobs.find(ctx, where, sort=("-createdAt",), limit=limit, fields=COMPLETE)


async def list_latest_batches(ctx: Context, limit: int) -> list[StoredJob]:
    """Return the latest bulk operations and undos of the caller, newest first; of `work` only the operation."""
    where = {"requestedBy": ctx.caller.id, "batchId": {"$exists": True}}
    fields = ("kind", "status", "done", "total", "result", "createdAt", "work.operation")
    return await jobs.find(ctx, where, sort=("-createdAt",), limit=limit, fields=fields)


async def find_last_undo(ctx: Context, change_id: ObjectId) -> StoredJob | None:
    """Return the last job, of any coach, that undoes a batch; None if there is none."""
    fields = ("status", "done", "total", "requestedBy", "batchId", "result")
    latest = await jobs.find(ctx, {"changeId": change_id}, sort=("-createdAt",), limit=1, fields=fields)
    return latest[0] if latest else None


async def has_unfinished(ctx: Context, kind: str, owner: Filter) -> bool:
    """Return whether a job of a kind whose owner satisfies a filter, and that is no batch, is queued or running."""
    where = {"kind": kind, "batchId": None, **_UNFINISHED, **owner}
    return await jobs.find_one(ctx, where, ("_id",)) is not None


async def _update(
    ctx: Context, job: StoredJob, change: dict[str, Any], *, fields: Sequence[str] = ("_id",)
) -> StoredJob | None:
    """Apply update operators to a job that has not ended, and is where it was when `job` was read; None otherwise."""
    work = job["work"]
    place = {f"work.{name}": work[name] for name in ("entry", "record") if name in work} or {"done": job["done"]}
    return await jobs.update(ctx, {"_id": job["_id"], **place, **_UNFINISHED}, change, fields=fields)


async def forget_file(ctx: Context, job_id: ObjectId, file_id: ObjectId) -> bool:
    """Remove the file from an ended dry run; returns whether it had it."""
    where = {"_id": job_id, "status": "done", "work.fileId": file_id}
    return await jobs.update(ctx, where, {"$set": {"work.fileId": None}}, fields=("_id",)) is not None


async def list_unfinished(services: Services, kind: str) -> dict[ObjectId, ObjectId]:
    """Return the jobs of a kind, of all companies, that are queued or running, with their companies."""
    cursor = jobs.across_companies(services).find({"kind": kind, **_UNFINISHED}, {"companyId": 1})
    return {job["_id"]: job["companyId"] async for job in cursor}


async def set_unchanged(ctx: Context, job_id: ObjectId, fields: Mapping[str, Any]) -> None:
    """Set fields of a job, but not the time of its last change, which says when it has ended."""
    await jobs.set_derived(ctx, {"_id": job_id}, {"$set": dict(fields)})


async def delete(ctx: Context, job_id: ObjectId) -> None:
    """Delete a job."""
    await jobs.delete(ctx, {"_id": job_id})


_NAMES = {"import": "import", "load_unit": "conversion of loads", "undo": "undo of an import"}


class Superseded(Exception):
    """Another process has continued the job, or it has ended."""


# --- What reading a job needs, and what controlling it needs: cancelling it, and undoing what it has changed ----------


@dataclass(frozen=True)
class JobAccess:
    """The access rules of a kind of job; `control` is also what requesting such a job needs."""

    reading: Access
    control: Access


def of_clients(*permissions: str) -> JobAccess:
    """Return the access to a job about clients, which needs these permissions to change them."""
    return JobAccess(even_while_converting(coach(CUSTOMERS.VIEW)), coach(*permissions))


_OF_OWNER = JobAccess(even_while_converting(owner()), owner())
_OF_CLIENT = of_clients(CUSTOMERS.EDIT)


def access_to_import(customer_id: ObjectId | None) -> JobAccess:
    """Return the access to an import that a coach requests: of the history of one client, or None: of the company."""
    return _OF_OWNER if customer_id is None else _OF_CLIENT


def is_batch(job: StoredJob) -> bool:
    """Return whether a job, read with its private fields, is a bulk operation or an undo of changes."""
    return "batchId" in job


def is_unfinished(job: StoredJob) -> bool:
    """Return whether a job has not ended."""
    return job["status"] in UNFINISHED


async def require(ctx: Context, job: StoredJob, *, writes: bool) -> None:
    """Raise an error unless the caller may read a job, or with `writes` cancel it and undo it.

    Raises NotFound for another client's, and for another coach's batch unless the caller is the owner; Forbidden
    without the permission, for a coach who has not requested it unless the caller is the owner, and if its client is
    not in the caller's scope.
    """
    if not ctx.caller.is_coach:
        if ctx.caller.id != job.get("customerId"):
            raise core_errors.NotFound("job")
        return
    is_own = ctx.caller.id == job.get("requestedBy")  # of a batch, an import of one client, or its undo
    if is_batch(job):
        if not is_own and ctx.caller.role != "OWNER":
            raise core_errors.NotFound("job")
        require_readable(ctx)
    needed = _access_to_batch(job) if is_batch(job) else _OF_CLIENT if is_own else _OF_OWNER
    check_access(needed.control if writes else needed.reading, ctx.caller, writes=writes)
    if is_own and (customer_id := await _find_client(ctx, job)) is not None:
        await customers.get_visible(ctx, customer_id)


def require_readable(ctx: Context) -> None:
    """Raise Forbidden if the caller may not read what jobs do with clients."""
    check_access(of_clients().reading, ctx.caller, writes=False)


def _access_to_batch(job: StoredJob) -> JobAccess:
    """Return the access to a batch; one of an older version does not name what it needs."""
    return of_clients(*job["work"].get("permissions", [CUSTOMERS.EDIT]))


def may_control_batch(ctx: Context, job: StoredJob) -> bool:
    """Return whether the caller may cancel a batch that the caller may read, and undo it."""
    return find_denial(_access_to_batch(job).control, ctx.caller, writes=True) is None


async def _find_client(ctx: Context, job: StoredJob) -> ObjectId | None:
    """Return the client whose history a job imports, or removes again; None if that import has been removed."""
    work = job["work"]
    if (import_id := work.get("importId")) is not None:
        undone = await find_readers(ctx, import_id)
        return None if undone is None else await _find_client(ctx, undone)
    return cast("ObjectId | None", work["answers"]["customerId"]) if "answers" in work else None


# --- Reading ----------------------------------------------------------------------------------------------------------


async def get(ctx: Context, job_id: ObjectId) -> StoredJob:
    """Return a job. Raises NotFound, and as `require`."""
    if (job := await find_readers(ctx, job_id)) is None:
        raise core_errors.NotFound("job")
    await require(ctx, job, writes=False)
    if (public := await jobs.find_one(ctx, {"_id": job_id})) is None:
        raise core_errors.NotFound("job")
    return public


async def list_jobs(
    ctx: Context, *, limit: int, after: str | None = None, kind: JobKind | None = None, status: JobStatus | None = None
) -> CursorPage[StoredJob]:
    """Return the jobs that the caller may read, newest first: at most `limit`, after a cursor.

    All of the company for the owner by session or unrestricted key, else those that the caller has requested, without
    those about clients outside of the caller's scope. Raises Forbidden without the permission to see clients, and
    InvalidFields for a text that is not a cursor.
    """
    require_readable(ctx)
    where: Filter = {name: value for name, value in (("kind", kind), ("status", status)) if value is not None}
    part = ListPart(ctx, "jobs", where, NEWEST_FIRST, size=limit, after=after)
    if ctx.caller.role != "OWNER" or find_denial(_OF_OWNER.reading, ctx.caller, writes=False) is not None:
        where["requestedBy"] = ctx.caller.id
    fields = (*_SHOWN, *_READERS)
    stored = await jobs.find(ctx, part.within(where), sort=part.sort, limit=part.limit, fields=fields)
    clients = {job["_id"]: await _find_client(ctx, job) for job in stored if "requestedBy" in where}
    accessible = await bulk.find_accessible(ctx, [each for each in clients.values() if each is not None])
    private = core_fields.private_of(StoredJob)
    page = part.by_cursor(
        stored, lambda job: cast("StoredJob", {name: value for name, value in job.items() if name not in private})
    )
    page["docs"] = [job for job in page["docs"] if (of := clients.get(job["_id"])) is None or accessible.get(of)]
    return page


async def get_complete(
    ctx: Context, job_id: ObjectId, *, writes: bool = False, batch: bool | None = False
) -> StoredJob:
    """Return a job with its private fields, to change it with `writes`: a `batch`, or one that is not, or None: any.

    Raises NotFound, and as `require`.
    """
    job = await find_complete(ctx, job_id)
    if job is None or batch not in (None, is_batch(job)):
        raise core_errors.NotFound("job")
    await require(ctx, job, writes=writes)
    return job


async def find_unfinished(ctx: Context, job_id: ObjectId) -> StoredJob | None:
    """Return a job with what its next step needs; None if it has ended or been removed."""
    job = await find_complete(ctx, job_id)
    return job if job is not None and is_unfinished(job) else None


# --- Who requested work that goes on after the response: stored with a job, and loaded again for each of its steps ----


# What the jobs of a credential end with; the work that a session has begun continues when its user signs out.
_CREDENTIALS: Mapping[Via, Callable[[Context, ObjectId], Awaitable[bool]]] = {
    "apiKey": api_keys.is_usable,
    "mcp": assistants.is_connected,
    "application": assistants.is_connected,
}


async def is_credential_usable(ctx: Context, via: Via, credential_id: ObjectId) -> bool:
    """Return whether the API key or the assistant that began something still has access; a session's work goes on."""
    usable = _CREDENTIALS.get(via)
    return usable is None or await usable(ctx, credential_id)


def _to_stored(ctx: Context) -> StoredCaller:
    """Return the coach who calls, and through which interface, as a job keeps them."""
    caller = ctx.caller
    return {
        "coachId": caller.id,
        "via": caller.via,
        "interface": ctx.interface,
        "credentialId": caller.credential_id,
        "permissions": sorted(caller.permissions),
        "isAssigned": caller.customers_scope == "assigned",
        "restricted": caller.restricted,
        "application": caller.application,
    }


async def as_requested(ctx: Context, job: StoredJob | None) -> Context | None:
    """Return a copy of the owner's context in which the coach who requested a job acts as then.

    A client who requested it is the author of its changes. None if that coach may no longer do it; a step of a batch
    checks what it needs itself. Raises CompanySuspended.
    """
    if job is not None and (caller := job.get("caller")) is not None:
        # With the rights of then that still exist, unless the API key or the assistant has no access any more.
        principal = await api_keys.load_actor(ctx.services, caller["coachId"], caller["via"], caller["credentialId"])
        if principal is None or principal.company.id != ctx.company_id:
            return None
        if not await is_credential_usable(ctx, caller["via"], caller["credentialId"]):
            return None
        principal = replace(
            principal,
            via=caller["via"],
            credential_id=caller["credentialId"],
            permissions=principal.permissions & frozenset(caller["permissions"]),
            customers_scope="assigned" if caller["isAssigned"] else principal.customers_scope,
            restricted=caller["restricted"],
            application=caller["application"],
        )
        acting = replace(ctx, principal=principal, interface=caller.get("interface"))
        if not is_batch(job):
            try:
                await require(acting, job, writes=True)
            except (core_errors.Forbidden, core_errors.NotFound):
                return None
        return acting
    if job is None or (customer_id := job.get("customerId")) is None:
        return ctx
    author = await customers.load_principal(ctx.services, ctx.company_id, customer_id, is_author=True)
    return replace(ctx, author=author)


async def get_step(
    services: Services,
    job: Job,
    operation: str,
    end: Callable[[Context, StoredJob], Awaitable[None]],
    *,
    has_own_batch: bool = False,
) -> tuple[Context, StoredJob] | None:
    """Return what the next step of the queued `job` needs, with a context of the coach who requested it.

    `has_own_batch`: the changes of the job share its identifier. A conversion of loads is of the owner; a client is the
    author of the changes of the own import. None if the company has been deleted, or the job has ended; `end` ends one
    whose coach, API key or assistant may no longer do it.
    """
    job_id: ObjectId = job.arguments["jobId"]
    try:
        owner_of_company = await team.get_owner(services, job.company_id or ObjectId())
    except core_errors.NotFound:
        return None
    ctx = Context(services, operation=operation, batch_id=job_id if has_own_batch else None)
    ctx = ctx.acting_as(owner_of_company)
    stored = await find_unfinished(ctx, job_id)
    if stored is None:
        return None
    if (acting := await as_requested(ctx, stored)) is None:
        await end(ctx, stored)
        return None
    return acting, stored


# --- One at a time ----------------------------------------------------------------------------------------------------


async def create(ctx: Context, job: NewJob, *, job_id: ObjectId | None = None) -> StoredJob:
    """Store a job, in the transaction that queues its first step; with the identifier `job_id` if given.

    Raises Conflict while another one of its kind is not finished, of the company or of the same client.
    """
    await require_none_unfinished(ctx, job["kind"], {"customerId": job.get("customerId")})
    is_of_coach = ctx.caller.is_coach and job["kind"] != "load_unit"  # which has to reach its end
    caller = _to_stored(ctx) if is_of_coach else None
    return await jobs.insert(ctx, new({**job, "caller": caller, "_id": job_id or ObjectId()}))


async def record_ended(
    ctx: Context, job_id: ObjectId, job: NewJob, count: int, result: Mapping[str, Any], errors: Sequence[JobError]
) -> None:
    """Store a job with `count` records that has been done at once, in the caller's transaction."""
    ended = {"status": "done", "done": count, "total": count, "result": result}
    await jobs.insert(ctx, new({**job, **ended, "_id": job_id, "errors": list(errors[:MAX_ROW_ERRORS])}))


async def require_none_unfinished(ctx: Context, kind: JobKind, owner: Filter | None = None) -> None:
    """Raise Conflict while a job of a kind is not finished whose owner satisfies a filter; None: of any owner."""
    if await has_unfinished(ctx, kind, owner or {}):
        raise core_errors.Conflict(f"Another {_NAMES[kind]} of this company is not finished yet", code="JOB_RUNNING")


async def update(
    ctx: Context,
    job: StoredJob,
    fields: Mapping[str, Any],
    *,
    done: int = 0,
    errors: Sequence[JobError] = (),
    is_end: bool = False,
) -> None:
    """Store the progress of a job that is where `job` is, which is changed after the commit by the caller.

    `done` records more were processed. At its end a job takes all errors. Raises Superseded if the job is elsewhere.
    """
    change: dict[str, Any] = {"$set": dict(fields)}
    if done:
        change["$inc"] = {"done": done}
    if errors:
        limit = most_errors(job) + (len(errors) if is_end else 0)
        change["$push"] = {"errors": {"$each": list(errors), "$slice": limit}}
    if await _update(ctx, job, change) is None:
        raise Superseded


def most_errors(job: StoredJob) -> int:
    """Return how many errors a job lists: more of a table, where each row that is not imported is one."""
    return MAX_ROW_ERRORS if "answers" in job["work"] else MAX_ERRORS


# --- Batches ----------------------------------------------------------------------------------------------------------


MAX_AT_ONCE = 500  # of clients or changes that a request processes before its response
_WAIT, _ID_BYTES = timedelta(seconds=5), 12

_ENDED = "The API key, the assistant or the coach that began this has no access any more"

# Processes some of the identifiers of a job with its claim; what was done under the claim before counts as done.
Work = Callable[[Context, StoredJob, list[ObjectId], Claim], Awaitable[Outcome]]


def is_job(ctx: Context, count: int) -> bool:
    """Return whether so many clients or changes are processed by a job: many, or the caller prefers it."""
    return count > MAX_AT_ONCE or ctx.prefers_job


async def begin_batch(
    ctx: Context,
    kind: JobKind,
    ids: Sequence[ObjectId],
    arguments: Mapping[str, Any],
    claim: Claim | None,
    *,
    permissions: Collection[str],
    change_id: ObjectId | None = None,
) -> Accepted:
    """Queue a job for `ids`, once for a claim, and return it; the changes it makes have the batch `ctx.change_ids`.

    `permissions` are what the request needs, `change_id` is the batch that it undoes. Raises IdempotencyKeyReused if
    the claim is of another request.
    """
    job_id = ObjectId() if claim is None else stable_id(str(claim.id), "job")
    claim = claim or Claim(job_id, "job")
    work: BatchWork = {
        "operation": ctx.operation,
        "arguments": dict(arguments),
        "ids": b"".join(each.binary for each in ids),
        "claimId": claim.id,
        "fingerprint": claim.fingerprint,
        "permissions": sorted(permissions),
        "ok": 0,
        "failed": [],
    }
    batch = {"_id": job_id, "kind": kind, "total": len(ids), "batchId": batch_of(claim), "work": work}
    undoes = {} if change_id is None else {"changeId": change_id}
    caller = {"requestedBy": ctx.caller.id, "caller": _to_stored(ctx)}
    try:
        await _store_batch(ctx, new({**batch, **undoes, **caller}))
    except AlreadyClaimed:  # the same request, whose response has been lost
        stored = await find_complete(ctx, job_id)
        if stored is None or stored["work"]["fingerprint"] != claim.fingerprint:
            raise IdempotencyKeyReused("This Idempotency-Key was used with another body") from None
    ctx.change_ids.append(batch_of(claim))
    return Accepted(job_id)


@transactional
async def _store_batch(ctx: Context, job: Mapping[str, Any]) -> None:
    await jobs.claim(ctx, job)
    await queue.enqueue(ctx, kind_of_step(job["kind"]), {"jobId": job["_id"]})


def batch_of(claim: Claim) -> ObjectId:
    """Return the batch of the changes that are made under a claim."""
    return stable_id(str(claim.id), "batch")


def kind_of_step(kind: JobKind) -> str:
    """Return the kind of the queued job that runs the steps of a batch."""
    return f"{kind}_job"


def join(ctx: Context, job: StoredJob) -> Accepted:
    """Return a batch that does already what the caller requests. Raises Conflict if the caller may not see it."""
    require_visible(ctx, job)
    ctx.change_ids.append(job["batchId"])
    return Accepted(job["_id"])


def require_visible(ctx: Context, job: StoredJob) -> None:
    """Raise Conflict (JOB_RUNNING) if another coach has begun a batch, unless the caller is the owner; Forbidden."""
    require_readable(ctx)
    if ctx.caller.role != "OWNER" and job.get("requestedBy") != ctx.caller.id:
        raise core_errors.Conflict("Another coach has begun this already", code="JOB_RUNNING")


def step_of(work: Work, at_once: int, slow: Mapping[str, int] | None = None) -> Step:
    """Return the step of a batch that processes at most `at_once` identifiers at a time, for a moment.

    `slow` has the operations that process fewer, and how many.
    """

    async def run(services: Services, job: Job) -> RunAgain | None:
        if (step := await get_step(services, job, "", _end_without_requester)) is None:
            return None
        ctx, stored = step
        operation = stored["work"]["operation"]
        count = (slow or {}).get(operation, at_once)
        ctx = replace(ctx, operation=operation)
        claim = Claim(stored["work"]["claimId"], stored["work"]["fingerprint"])
        until = time.monotonic() + queue.STEP_SECONDS
        while stored["done"] < stored["total"]:
            packed, first = stored["work"]["ids"], stored["done"]
            last = min(first + count, stored["total"])
            ids = [ObjectId(packed[_ID_BYTES * each : _ID_BYTES * (each + 1)]) for each in range(first, last)]
            try:
                outcome = await work(ctx, stored, ids, claim)
            except core_errors.Unavailable:
                raise
            except core_errors.ServiceError as error:
                known: JobError = {
                    "entry": "",
                    "field": None,
                    "code": error.code or error.reason,
                    "message": str(error),
                }
                await end_batch(ctx, stored, "failed", [known])
                return None
            if (advanced := await _advance(ctx, stored, len(ids), outcome)) is None:
                return RunAgain(_WAIT)  # it was cancelled, or a step whose lease had ended has continued it
            stored = advanced
            if time.monotonic() > until:
                return RunAgain()
        await end_batch(ctx, stored, "done")
        return None

    return run


async def _end_without_requester(ctx: Context, job: StoredJob) -> None:
    await end_batch(ctx, job, "failed", [{"entry": "", "field": None, "code": "FORBIDDEN", "message": _ENDED}])


async def _advance(ctx: Context, job: StoredJob, count: int, outcome: Outcome) -> StoredJob | None:
    """Store what became of the next `count` identifiers; returns the job after it, None if it is not there any more."""
    lists = {"failed": outcome.failed, "results": outcome.results, "skipped": outcome.skipped}
    change: dict[str, Any] = {
        "$set": {"status": "running"},
        "$inc": {"done": count, "work.ok": outcome.ok},
        "$push": {f"work.{name}": {"$each": list(each)} for name, each in lists.items() if each is not None},
    }
    return await _update(ctx, job, change, fields=COMPLETE)


async def end_batch(ctx: Context, job: StoredJob, status: JobStatus, errors: Sequence[JobError] = ()) -> None:
    """Store the result of a batch, unless it has ended or advanced since it was read."""
    work = job["work"]
    result: dict[str, Any] = {"ok": work["ok"], "failed": work["failed"], "batchId": job["batchId"]}
    if job["kind"] == "bulk":
        reported = {name: work[name] for name in ("results", "skipped") if name in work}
        result = {"requested": job["total"], **result, **reported}
    else:
        result = {"changeId": job["batchId"] if work["ok"] else None, **result}
    last = {"status": status, "result": result, "errors": list(errors), "work.ids": b""}
    await _update(ctx, job, {"$set": last})
