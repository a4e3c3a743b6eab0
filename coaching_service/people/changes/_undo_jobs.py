"""What assistants read about the job that undoes a large batch: they begin it and see its progress with one tool."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from coaching_service.core.changes.models import StoredChange
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.confirmation import find_reasons
from coaching_service.core.mcp.results import Written
from coaching_service.people.bulk_jobs import service as bulk_jobs
from coaching_service.people.bulk_jobs.models import StoredBulkJob
from coaching_service.people.changes.undo import begin_job

_CALL_AGAIN = "Call undo again with the same changeId to see its progress."
_WAIT_SECONDS, _POLL_SECONDS = 2.0, 0.1


async def wait_for_end(ctx: Context, change_id: ObjectId) -> None:
    """Wait up to two seconds until the job that undoes a batch, if there is one, has ended."""
    deadline = asyncio.get_running_loop().time() + _WAIT_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        job = await bulk_jobs.find_last_undo(ctx, change_id)
        if job is None or not bulk_jobs.is_unfinished(job):
            return
        await asyncio.sleep(_POLL_SECONDS)


async def begin_or_describe(
    ctx: Context, change_id: ObjectId, changes: Sequence[StoredChange], described: str
) -> Written:
    """Begin a job that undoes the complete batch `changes`, or return how far the current job is.

    `described` is what undoing them does. Raises what begin_job raises, and Forbidden.
    """
    job = await bulk_jobs.find_last_undo(ctx, change_id)
    if job is not None:
        bulk_jobs.require_readable(ctx)
    if job is not None and job["status"] == "done":
        return Written(_describe_result(job), _identifiers(job["_id"], job["batchId"]))
    if job is not None and bulk_jobs.is_unfinished(job):
        bulk_jobs.require_visible(ctx, job)
        line = f"A job is undoing this: {job['done']:,} of {job['total']:,} changes are processed. {_CALL_AGAIN}"
        return Written(line, _identifiers(job["_id"], job["batchId"]))
    accepted = await begin_job(ctx, change_id)
    return Written(
        f"Began a job that undoes {len(changes):,} changes: {described}. {_CALL_AGAIN}",
        _identifiers(accepted.job_id, ctx.change_ids[-1]),
        find_reasons(clients=len({change["customerId"] for change in changes})),
        details={"progressUrl": f"{ctx.services.base_url}/app/jobs/{accepted.job_id}"},
    )


def _describe_result(job: StoredBulkJob) -> str:
    result = job["result"] or {}
    left = f"; {len(result['failed']):,} could not be, because of later changes" if result["failed"] else ""
    return f"A job has undone this: {result['ok']:,} records are as they were before{left}."


def _identifiers(job_id: ObjectId, batch_id: ObjectId) -> dict[str, ObjectId]:
    return {"changeId": batch_id, "jobId": job_id}
