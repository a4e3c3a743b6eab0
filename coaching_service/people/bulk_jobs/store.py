"""Jobs of bulk operations in the database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.portable import NotExported
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.bulk_jobs.models import UNFINISHED, Outcome, StoredBulkJob

RETENTION = timedelta(days=30)
_WITH_WORK = ("kind", "status", "done", "total", "coachId", "batchId", "work")

jobs = Documents[StoredBulkJob](
    "bulkJobs",
    (
        Index(("_id",)),
        Index(("coachId", "-createdAt")),
        Index(("changeId", "createdAt"), partial_filter=(("changeId", {"$exists": True}),)),
    ),
    private=private_of(StoredBulkJob),
    expire=("createdAt", int(RETENTION.total_seconds())),
    transfer=NotExported("work in progress"),
)


async def find_with_work(ctx: Context, job_id: ObjectId) -> StoredBulkJob | None:
    """Return a job with its private fields, or None."""
    return await jobs.find_one(ctx, {"_id": job_id}, _WITH_WORK)


async def find_latest(ctx: Context, limit: int) -> list[StoredBulkJob]:
    """Return the latest jobs that the caller has requested, newest first; of `work` only the operation."""
    fields = ("kind", "status", "done", "total", "result", "createdAt", "work.operation")
    return await jobs.find(ctx, {"coachId": ctx.caller.id}, sort=("-createdAt",), limit=limit, fields=fields)


async def find_last_undo(ctx: Context, change_id: ObjectId) -> StoredBulkJob | None:
    """Return the last job, of any coach, that undoes a batch; None if there is none."""
    fields = ("status", "done", "total", "coachId", "batchId", "result")
    latest = await jobs.find(ctx, {"changeId": change_id}, sort=("-createdAt",), limit=1, fields=fields)
    return latest[0] if latest else None


async def advance(ctx: Context, job: StoredBulkJob, count: int, outcome: Outcome) -> StoredBulkJob | None:
    """Store what became of the next `count` identifiers; returns the job after it, None if it is not there any more."""
    lists = {"work.failed": outcome.failed}
    if outcome.results is not None:
        lists["work.results"] = outcome.results
    change: dict[str, Any] = {
        "$set": {"status": "running"},
        "$inc": {"done": count, "work.ok": outcome.ok},
        "$push": {name: {"$each": list(entries)} for name, entries in lists.items()},
    }
    return await jobs.update(ctx, unchanged(job), change, fields=_WITH_WORK)


def unchanged(job: StoredBulkJob) -> Filter:
    """Return the filter of a job that has not ended or advanced since it was read."""
    return {"_id": job["_id"], "done": job["done"], "status": {"$in": list(UNFINISHED)}}
