"""Long-running work of companies in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, get_args

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.portable import NotExported
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.jobs.models import UNFINISHED, JobStatus, StoredJob

MAX_ERRORS = 100
MAX_ROW_ERRORS = 1_000  # of a table with history, where each row that is not imported is a problem
RETENTION = timedelta(days=30)
# The clients of an import, whose erasure deletes its job.
_CLIENTS = "work.plan.customers.answer"
_STATES = list(get_args(JobStatus))
_OF_UNFINISHED = (("status", {"$gte": "queued"}),)  # in the alphabet: cancelled, done, failed, queued, running
_UNFINISHED = {"status": {"$in": list(UNFINISHED)}}

jobs = Documents[StoredJob](
    "companyJobs",
    (
        Index(("_id",)),
        Index(("kind", "status", "-createdAt")),
        Index(("kind", "customerId", "batchId"), unique=True, partial_filter=_OF_UNFINISHED),
        Index(("requestedBy", "-createdAt")),
        Index(("changeId", "createdAt"), partial_filter=(("changeId", {"$exists": True}),)),
        Index((_CLIENTS,)),
    ),
    private=private_of(StoredJob),
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
COMPLETE = (
    *("createdAt", "updatedAt", "kind", "status", "done", "total", "result", "errors"),
    *private_of(StoredJob),
)


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


async def find_latest(ctx: Context, kind: str, limit: int) -> list[StoredJob]:
    """Return the latest jobs of a kind with private fields, newest first."""
    where = {"kind": kind, "status": {"$in": _STATES}}
    return await jobs.find(ctx, where, sort=("-createdAt",), limit=limit, fields=COMPLETE)


async def find_latest_batches(ctx: Context, limit: int) -> list[StoredJob]:
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


async def update(
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
