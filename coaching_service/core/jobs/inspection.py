"""The jobs of all companies, for the operator, the checks of the stored data and the metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from datetime import timedelta
from typing import Any, cast

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import StoredJob, from_now, stored_jobs
from coaching_service.core.jobs.worker import RETRY_SECONDS

# Claimed jobs that no process has, and that none can claim for longer than they wait on purpose, for the end of a lease
# or for the next attempt: the clock of the database was ahead.
BLOCKED: Document = {
    "attempts": {"$gt": 0},
    "isPaused": {"$ne": True},
    "$expr": {"$gt": ["$runAfter", from_now(2 * timedelta(seconds=RETRY_SECONDS[-1]))]},
}


async def iterate(services: Services, kind: str | None = None) -> AsyncIterator[StoredJob]:
    """Yield the jobs of all companies, or of a kind: by kind, and when they are due."""
    where = {} if kind is None else {"kind": kind}
    order = [("kind", 1), ("runAfter", 1)]
    cursor = stored_jobs.across_companies(services).find(where, sort=order, hint="kind_runAfter")
    async for job in cursor:
        yield cast("StoredJob", job)


async def find(services: Services, identifier: ObjectId) -> StoredJob | None:
    """Return a job of any company, or None."""
    return cast("StoredJob | None", await stored_jobs.across_companies(services).find_one({"_id": identifier}))


async def make_due(ctx: Context, job: StoredJob) -> bool:
    """Make a job of any company due, unless a worker has claimed it since it was read; returns whether it is."""
    jobs, change = stored_jobs.across_companies(ctx.services), [{"$set": {"runAfter": "$$NOW"}}]
    return (await jobs.update_one(_unclaimed(job), change, session=ctx.session)).matched_count == 1


async def remove(ctx: Context, job: StoredJob) -> bool:
    """Remove a job of any company, unless a worker has claimed it since it was read; returns whether it is removed."""
    jobs = stored_jobs.across_companies(ctx.services)
    return (await jobs.delete_one(_unclaimed(job), session=ctx.session)).deleted_count == 1


def _unclaimed(job: StoredJob) -> Document:
    return {"_id": job["_id"], "lease": job["lease"], "runAfter": job["runAfter"]}


async def count_of_company(ctx: Context) -> int:
    """Return how many jobs of the company are in the queue."""
    return await stored_jobs.count(ctx, {}, hint="companyId_about")


async def iterate_arguments(services: Services, kinds: Sequence[str]) -> AsyncIterator[Document]:
    """Iterate over the arguments of the queued jobs of these kinds, of all companies."""
    where = {"kind": {"$in": list(kinds)}}
    async for job in stored_jobs.across_companies(services).find(where, {"arguments": 1}, hint="kind_runAfter"):
        yield job["arguments"]


async def iterate_matching(services: Services, where: Document) -> AsyncIterator[str]:
    """Iterate over the jobs of all companies that match `where`: the identifier and the kind of each."""
    cursor = stored_jobs.across_companies(services).find(where, {"kind": 1}, batch_size=200)
    async for job in cursor:
        yield f"{job['_id']} {job['kind']}"


async def release_blocked(services: Services) -> None:
    """Make the blocked jobs due now."""
    await stored_jobs.across_companies(services).update_many(BLOCKED, [{"$set": {"runAfter": "$$NOW"}}])


async def iterate_sealed(services: Services, kind: str) -> AsyncIterator[tuple[ObjectId, bytes]]:
    """Iterate over the identifiers and the encrypted arguments `sealed` of the jobs of a kind."""
    cursor: Any = stored_jobs.across_companies(services).find(
        {"kind": kind}, {"arguments.sealed": 1}, hint="kind_runAfter"
    )
    async for job in cursor:
        yield job["_id"], job["arguments"]["sealed"]


async def count_due(services: Services, kinds: Collection[str]) -> dict[str, tuple[int, float]]:
    """Return how many jobs are due that no worker runs, and for how many seconds the first has been, by their kind."""
    stages: list[Document] = [
        # Not compared with $$NOW, for which each job would be read: the index has all that is needed.
        {"$match": {"kind": {"$in": list(kinds)}, "runAfter": {"$lte": now()}}},
        {"$group": {"_id": "$kind", "count": {"$sum": 1}, "first": {"$min": "$runAfter"}}},
        {"$project": {"count": 1, "seconds": {"$divide": [{"$subtract": ["$$NOW", "$first"]}, 1000]}}},
    ]
    cursor = stored_jobs.across_companies(services).aggregate(stages, hint="kind_runAfter")
    return {each["_id"]: (each["count"], each["seconds"]) async for each in cursor}
