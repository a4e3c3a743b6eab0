"""The queue of background jobs in MongoDB, which any number of processes share.

A job is stored in the transaction of the change that causes it. Workers (`worker`) run it in bounded, resumable steps;
`inspection` reads the jobs of all companies. All times come from the clock of the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NotRequired, TypedDict

from coaching_service.core.database.across_companies import insert_computed
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported, Unsharded
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.ids import ObjectId, stable_id

STEP_SECONDS = 2.0  # after which a step ends, so that the jobs of other companies come in between
_AFTER_COMMIT_SECONDS = 0.05


class StoredJob(TypedDict):
    """A job as it is stored.

    `runAfter` is the time it is due, or the end of its lease while a worker has it; `lease` identifies that worker,
    and is None when no worker has it; `attempts` counts the claims since the last step that succeeded; `about` is the
    client it concerns, if any. `isPaused`: the company is suspended. `holder`: the process that has what the next step
    needs, which others leave the job to while it does not wait for longer than a lease.
    """

    _id: ObjectId
    companyId: ObjectId | None
    about: ObjectId | None
    kind: str
    arguments: Document
    runAfter: datetime
    attempts: int
    lease: str | None
    createdAt: datetime
    isPaused: NotRequired[bool]
    holder: NotRequired[str]


stored_jobs = Documents[StoredJob](
    "jobs",
    (Index(("about",)),),
    client_field="about",
    secret=True,
    global_indexes=(Index(("kind", "runAfter")),),
    cross_company_reason="workers claim the next job of any company",
    placement=Unsharded("the next job of any company is claimed by one update, and a job is deleted when it is done"),
    transfer=NotExported("work in progress"),
)


@dataclass(frozen=True)
class Job:
    """A claimed job as its step receives it.

    `attempts` counts the claims since the last step that succeeded: more than one means that an earlier attempt failed
    or was interrupted. `about` is the client, if any. `lease` identifies the worker that runs the step.
    """

    id: ObjectId
    arguments: Document
    attempts: int
    company_id: ObjectId | None = None
    about: ObjectId | None = None
    lease: str | None = None


@dataclass(frozen=True)
class RunAgain:
    """Returned by a step that has to run again after a while; `progress` is added to the arguments of the next step.

    `is_pause`: the step has not begun, because the company is suspended; `continue_paused` ends the pause. `is_held`:
    this process keeps what the next step needs.
    """

    after: timedelta = timedelta(0)
    progress: Document | None = None
    is_pause: bool = False
    is_held: bool = False


def from_now(delay: timedelta) -> Document:
    """Return an expression for the database's time plus `delay`."""
    return {"$add": ["$$NOW", round(delay.total_seconds() * 1000)]}


Step = Callable[[Services, Job], Awaitable[RunAgain | None]]
Steps = dict[str, Step]


async def enqueue(
    ctx: Context,
    kind: str,
    arguments: Document,
    *,
    after: timedelta = timedelta(0),
    about: ObjectId | None = None,
    identifier: ObjectId | None = None,
) -> ObjectId:
    """Queue a job in the caller's transaction and return its identifier.

    The job is removed when the client it is `about` is erased.
    """
    identifier = identifier or ObjectId()
    await enqueue_each(ctx, kind, {identifier: (arguments, about)}, after=after)
    return identifier


async def enqueue_each(
    ctx: Context,
    kind: str,
    jobs: Mapping[ObjectId, tuple[Document, ObjectId | None]],
    *,
    after: timedelta = timedelta(0),
) -> None:
    """Queue jobs in the caller's transaction by their identifiers: the arguments, and the client it is about, of each.

    A job is removed when the client it is about is erased.
    """
    company_id = ctx.principal.company.id if ctx.principal else None
    new_jobs = {
        identifier: new_job(kind, arguments, after, company_id, about)
        for identifier, (arguments, about) in jobs.items()
    }
    await insert_computed(stored_jobs, ctx, new_jobs)
    # Workers see the job once the transaction has committed.
    delay = 0.0 if ctx.session is None else _AFTER_COMMIT_SECONDS
    loop = asyncio.get_running_loop() if ctx.thread is None else ctx.thread.loop
    loop.call_soon_threadsafe(loop.call_later, delay, ctx.services.job_available.set)


async def enqueue_for_companies(
    services: Services, kind: str, company_ids: Sequence[ObjectId], arguments: Document
) -> None:
    """Queue one job for each of these companies, unless it has one of this kind under the same identifier."""
    jobs = {
        stable_id("job", kind, str(company_id)): new_job(kind, arguments, company_id=company_id)
        for company_id in company_ids
    }
    if not jobs:
        return
    stored = stored_jobs.across_companies(services).find({"_id": {"$in": list(jobs)}}, {"_id": 1})
    known = {each["_id"] async for each in stored}  # most of them, and an update of one costs more
    new = {key: job for key, job in jobs.items() if key not in known}
    if await insert_computed(stored_jobs, Context(services), new, keeps_stored=True):
        services.job_available.set()


async def mark(services: Services, job: Job, name: str) -> bool:
    """Set an argument of a job to true while its step runs; returns False if another worker has claimed it since."""
    where = {"_id": job.id, "lease": job.lease}
    marked = await stored_jobs.across_companies(services).update_one(where, {"$set": {f"arguments.{name}": True}})
    return marked.matched_count == 1


def company_of(job: Job) -> ObjectId:
    """Return the company of a job. Raises RuntimeError if it has none."""
    if job.company_id is None:
        raise RuntimeError("the job names no company")
    return job.company_id


async def cancel(ctx: Context, identifier: ObjectId) -> None:
    """Remove a queued job of the company in the caller's transaction; a step that is running is not stopped."""
    await stored_jobs.delete(ctx, {"_id": identifier})


async def is_queued(ctx: Context, identifier: ObjectId) -> bool:
    """Return whether a job is still to be done, or being done."""
    return await ctx.collection(stored_jobs.name).find_one({"_id": identifier}, {"_id": 1}) is not None


async def continue_paused(ctx: Context) -> None:
    """Make the paused jobs of the company due, in the caller's transaction."""
    await stored_jobs.set_derived(ctx, {"isPaused": True}, [{"$set": {"runAfter": "$$NOW"}}, {"$unset": "isPaused"}])


def new_job(
    kind: str,
    arguments: Document,
    after: timedelta = timedelta(0),
    company_id: ObjectId | None = None,
    about: ObjectId | None = None,
) -> Document:
    """Return the fields of a new job, as expressions: its times are set by the database."""
    return {
        "companyId": company_id,
        "about": about,
        "kind": {"$literal": kind},
        "arguments": {"$literal": arguments},
        "runAfter": from_now(after),
        "attempts": 0,
        "lease": None,
        "createdAt": "$$NOW",
    }
