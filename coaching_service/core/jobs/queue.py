"""Queued work in bounded, resumable steps: claimed in MongoDB, so that any number of processes share it safely.

A job is stored in the transaction of the change that causes it. A worker claims it for a while (a lease), does one
bounded step, and gives it back; a process that dies mid-step loses only its lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from coaching_service.core.auth.secrets import new_token
from coaching_service.core.database.connection import Index, as_service_error
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.ids import ObjectId, stable_id

LEASE = timedelta(seconds=60)
POLL_SECONDS = 2.0
_SOON_SECONDS = 0.05
_SEEN = ("_id", "arguments", "attempts", "companyId", "about")
_RETRY_AFTER = (1, 5, 30, 120, 600)

_jobs = Documents[Document](
    "jobs",
    (Index(("about",)),),
    client_field="about",
    secret=True,
    global_indexes=(Index(("runAfter",)),),
    cross_company_reason="workers claim the next job of any company",
)
log = structlog.get_logger("coaching_service.jobs")


@dataclass(frozen=True)
class Job:
    """A claimed job as its step sees it. `attempts` counts the claims since the last step that ended well: more than
    one means that an earlier try failed or died half-way. `about`: the client, if any."""

    id: ObjectId
    arguments: Document
    attempts: int
    company_id: ObjectId | None = None
    about: ObjectId | None = None


@dataclass(frozen=True)
class RunAgain:
    """What a step gives back: run me again, now or after a while (`progress` is remembered for the next step)."""

    after: timedelta = timedelta(0)
    progress: Document | None = None


Step = Callable[[Services, Job], Awaitable[RunAgain | None]]
Steps = dict[str, Step]


async def enqueue(
    ctx: Context,
    kind: str,
    arguments: Document,
    *,
    after: timedelta = timedelta(0),
    about: ObjectId | None = None,
) -> ObjectId:
    """Queue a job in the caller's transaction; gives its identifier.

    It goes when the client it is `about` is erased.
    """
    (identifier,) = await enqueue_many(ctx, kind, [arguments], after=after, about=about)
    return identifier


async def enqueue_many(
    ctx: Context,
    kind: str,
    arguments: Sequence[Document],
    *,
    after: timedelta = timedelta(0),
    about: ObjectId | None = None,
) -> list[ObjectId]:
    """Queue a job for each of `arguments` in the caller's transaction; gives their identifiers."""
    at = now()
    company_id = ctx.principal.company.id if ctx.principal else None
    queued: list[Document] = [
        {
            "_id": ObjectId(),
            "companyId": company_id,
            "about": about,
            "kind": kind,
            "arguments": each,
            "runAfter": at + after,
            "attempts": 0,
            "lease": None,
            "createdAt": at,
        }
        for each in arguments
    ]
    if queued:
        await _jobs.across_companies(ctx.services).insert_many(queued, session=ctx.session)
    if ctx.session is None:
        ctx.services.job_available.set()
    else:  # the worker sees it once the transaction has ended
        asyncio.get_running_loop().call_later(_SOON_SECONDS, ctx.services.job_available.set)
    return [job["_id"] for job in queued]


async def ensure_standing_jobs(services: Services, kinds: Sequence[str]) -> None:
    """Keep exactly one job of each of these kinds in the queue: work that comes back for ever."""
    at = now()
    for kind in kinds:
        job: Document = {"kind": kind, "companyId": None, "about": None, "arguments": {}, "runAfter": at, "attempts": 0}
        fresh = {**job, "lease": None, "createdAt": at}
        await _jobs.across_companies(services).update_one(
            {"_id": stable_id("job", kind)}, {"$setOnInsert": fresh}, upsert=True
        )


async def run_due(services: Services, steps: Steps, *, at: datetime | None = None) -> int:
    """Run one step of every job that is due (at `at`, else now), until none is; gives how many steps ran."""
    ran = 0
    while (job := await _claim(services, steps, at or now())) is not None:
        await _step(services, steps[job["kind"]], job)
        ran += 1
    return ran


@asynccontextmanager
async def working(services: Services, steps: Steps, standing: Sequence[str] = ()) -> AsyncIterator[None]:
    """Work on the queue in the background while the context is open; `standing` kinds are kept in it for ever."""
    task = asyncio.create_task(_work(services, steps, standing))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _work(services: Services, steps: Steps, standing: Sequence[str]) -> None:
    kept = False
    while True:
        services.job_available.clear()
        try:
            if not kept:
                await ensure_standing_jobs(services, standing)
                kept = True
            await run_due(services, steps)
        except Exception as error:  # a lost database must not end the worker
            if (known := as_service_error(error)) is None:
                log.exception("worker")
            else:
                log.warning("worker waits", reason=known.message)
        # Not asyncio.wait_for, which on Python 3.11 loses a cancellation that meets the wake-up.
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await services.job_available.wait()


async def _claim(services: Services, steps: Steps, at: datetime) -> Document | None:
    # A running job's runAfter is the end of its lease: one indexed condition finds both new and abandoned ones.
    claimed: Document | None = await _jobs.across_companies(services).find_one_and_update(
        {"runAfter": {"$lte": at}, "kind": {"$in": list(steps)}},
        {"$set": {"runAfter": now() + LEASE, "lease": new_token()}, "$inc": {"attempts": 1}},
        sort=[("runAfter", 1)],
        return_document=True,
    )
    return claimed


async def _step(services: Services, step: Step, job: Document) -> None:
    mine = {"_id": job["_id"], "lease": job["lease"]}
    try:
        again = await step(services, Job(*(job[name] for name in _SEEN)))
    except Exception:
        log.exception("job failed", kind=job["kind"], job=str(job["_id"]), attempts=job["attempts"])
        wait = _RETRY_AFTER[min(job["attempts"], len(_RETRY_AFTER)) - 1]
        await _jobs.across_companies(services).update_one(mine, {"$set": {"runAfter": now() + timedelta(seconds=wait)}})
        return
    if again is None:
        await _jobs.across_companies(services).delete_one(mine)
        return
    change: dict[str, Any] = {"runAfter": now() + again.after, "attempts": 0}
    if again.progress is not None:
        change["arguments"] = job["arguments"] | again.progress
    await _jobs.across_companies(services).update_one(mine, {"$set": change})
