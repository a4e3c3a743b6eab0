"""Background jobs of a company: their progress is stored with what each of their steps writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.background_jobs import store
from coaching_service.integrations.background_jobs.models import JobError, JobKind, NewJob, StoredCompanyJob


class Superseded(Exception):
    """Another process has continued the job, or it has ended."""


async def create(ctx: Context, job: NewJob) -> StoredCompanyJob:
    """Store a job, in the transaction that queues its first step.

    Raises Conflict while another one of its kind is not finished.
    """
    if await store.has_unfinished(ctx, job["kind"]):
        raise Conflict("Another import of this company is not finished yet", code="JOB_RUNNING")
    return await store.insert(ctx, job)


async def read(ctx: Context, job_id: ObjectId) -> StoredCompanyJob:
    """Return a job of the company. Raises NotFound."""
    if (job := await store.find_one(ctx, job_id)) is None:
        raise NotFound("job")
    return job


async def read_with_work(ctx: Context, job_id: ObjectId) -> StoredCompanyJob:
    """Return a job of the company with what its steps need. Raises NotFound."""
    if (job := await store.find_with_work(ctx, job_id)) is None:
        raise NotFound("job")
    return job


async def list_latest(ctx: Context, kind: JobKind, limit: int) -> list[StoredCompanyJob]:
    """Return the latest jobs of a kind with what their steps need, newest first."""
    return await store.find_latest(ctx, kind, limit)


async def find_unfinished(ctx: Context, job_id: ObjectId) -> StoredCompanyJob | None:
    """Return a job with what its next step needs; None if it has ended or been removed."""
    job = await store.find_with_work(ctx, job_id)
    return job if job is not None and job["status"] in ("queued", "running") else None


async def list_unfinished(services: Services, kind: JobKind) -> dict[ObjectId, ObjectId]:
    """Return the jobs of a kind, of all companies, that have not ended, with their companies."""
    return await store.list_unfinished(services, kind)


async def update(
    ctx: Context,
    job: StoredCompanyJob,
    fields: Mapping[str, Any],
    *,
    done: int = 0,
    errors: Sequence[JobError] = (),
) -> None:
    """Store the progress of a job that is at the position in `job`, which is changed after the commit by the caller.

    `done` records more were processed. Raises Superseded if the job is at another position.
    """
    position = (job["work"]["entry"], job["work"]["record"])
    if not await store.update(ctx, job["_id"], position, fields, done=done, errors=errors):
        raise Superseded
