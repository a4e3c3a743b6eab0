"""Background jobs of companies in the database."""

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
from coaching_service.integrations.background_jobs.models import (
    JobError,
    JobReaders,
    JobStatus,
    JobWork,
    NewJob,
    StoredCompanyJob,
)

MAX_ERRORS = 100
MAX_ROW_ERRORS = 1_000  # of a table with history, where each row that is not imported is a problem
RETENTION = timedelta(days=30)
# The clients of an import, whose erasure deletes its job.
_CLIENTS = "work.plan.customers.answer"
_STATES = list(get_args(JobStatus))
_FIRST_UNFINISHED = "queued"  # in the alphabet: cancelled, done, failed, queued, running

jobs = Documents[StoredCompanyJob](
    "companyJobs",
    (
        Index(("_id",)),
        Index(("kind", "status", "-createdAt")),
        Index(("kind", "customerId"), unique=True, partial_filter=(("status", {"$gte": _FIRST_UNFINISHED}),)),
        Index((_CLIENTS,)),
    ),
    private=private_of(StoredCompanyJob),
    client_field=_CLIENTS,
    expire=("createdAt", int(RETENTION.total_seconds())),
    cross_company_reason="the check of the stored data looks for those that do not continue",
    transfer=NotExported("work in progress"),
    has_files=True,
)
_READERS = ("kind", "caller", "requestedBy", "customerId", "work.answers.customerId", "work.importId")
_WITH_WORK = ("updatedAt", "kind", "status", "done", "total", "result", "errors", *private_of(StoredCompanyJob))


async def create(ctx: Context, job: NewJob, job_id: ObjectId) -> StoredCompanyJob:
    """Store a new job."""
    about = {"caller": None, "requestedBy": None, "customerId": None}
    return await jobs.insert(
        ctx, {**about, **job, "_id": job_id, "status": "queued", "done": 0, "total": 0, "result": None, "errors": []}
    )


async def find_readers(ctx: Context, job_id: ObjectId) -> JobReaders | None:
    """Return who requested a job and whom it is about; None without such a job."""
    return await jobs.find_one(ctx, {"_id": job_id}, _READERS)


async def find_with_work(ctx: Context, job_id: ObjectId) -> JobWork | None:
    """Return a job with its private fields, or None."""
    return await jobs.find_one(ctx, {"_id": job_id}, _WITH_WORK)


async def find_of_clients(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[StoredCompanyJob]:
    """Return the jobs of imports for some clients, that ask about them, or that they requested, with private fields."""
    of_clients = {"$in": list(customer_ids)}
    planned = await jobs.find(ctx, {_CLIENTS: of_clients}, fields=_WITH_WORK)
    asked = {"$in": [str(each) for each in customer_ids]}
    about = [
        {"customerId": of_clients},
        {"work.answers.customerId": of_clients},
        {"result.questions.options": asked},
    ]
    where = {"kind": {"$in": ["import", "undo"]}, "status": {"$in": _STATES}, "$or": about}
    own = await jobs.find(ctx, where, fields=_WITH_WORK)
    return list({job["_id"]: job for job in (*planned, *own)}.values())


async def find_latest(ctx: Context, kind: str, limit: int) -> list[StoredCompanyJob]:
    """Return the latest jobs of a kind with the private field `work`, newest first."""
    fields = ("kind", "status", "done", "total", "result", "errors", "work", "createdAt")
    return await jobs.find(
        ctx, {"kind": kind, "status": {"$in": _STATES}}, sort=("-createdAt",), limit=limit, fields=fields
    )


async def has_unfinished(ctx: Context, kind: str, owner: Filter) -> bool:
    """Return whether a job of a kind whose owner satisfies a filter is queued or running."""
    where = {"kind": kind, "status": {"$in": ["queued", "running"]}} | owner
    return await jobs.find_one(ctx, where, ("_id",)) is not None


async def update(
    ctx: Context,
    job_id: ObjectId,
    position: tuple[int, int],
    fields: Mapping[str, Any],
    *,
    done: int = 0,
    errors: Sequence[JobError] = (),
    max_errors: int = MAX_ERRORS,
) -> bool:
    """Set fields of a running job, count `done` records more and add errors, up to `max_errors` in all.

    Returns whether it was at `position`.
    """
    where = {
        "_id": job_id,
        "work.entry": position[0],
        "work.record": position[1],
        "status": {"$in": ["queued", "running"]},
    }
    change: dict[str, Any] = {"$set": dict(fields)}
    if done:
        change["$inc"] = {"done": done}
    if errors:
        change["$push"] = {"errors": {"$each": list(errors), "$slice": max_errors}}
    return await jobs.update(ctx, where, change, fields=("_id",)) is not None


async def forget_file(ctx: Context, job_id: ObjectId, file_id: ObjectId) -> bool:
    """Remove the file from an ended dry run; returns whether it had it."""
    where = {"_id": job_id, "status": "done", "work.fileId": file_id}
    return await jobs.update(ctx, where, {"$set": {"work.fileId": None}}, fields=("_id",)) is not None


async def list_unfinished(services: Services, kind: str) -> dict[ObjectId, ObjectId]:
    """Return the jobs of a kind, of all companies, that are queued or running, with their companies."""
    where = {"kind": kind, "status": {"$in": ["queued", "running"]}}
    cursor = jobs.across_companies(services).find(where, {"companyId": 1})
    return {job["_id"]: job["companyId"] async for job in cursor}
