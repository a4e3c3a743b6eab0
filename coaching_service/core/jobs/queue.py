"""Background jobs in bounded, resumable steps, claimed in MongoDB so that any number of processes can share the queue.

A job is stored in the transaction of the change that causes it. A worker claims it for a limited time (a lease), runs
one bounded step, and releases or removes it; when a process dies during a step, the job is claimed again after the
lease. All times come from the clock of the database, so a wrong clock of a process neither delays nor repeats work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, NotRequired, TypedDict, cast

import structlog

from coaching_service.core.auth.secrets import new_token
from coaching_service.core.background import running_in_background
from coaching_service.core.database.connection import Index, as_service_error
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.tracing import Span

LEASE = timedelta(seconds=60)
POLL_SECONDS = 2.0
_AFTER_COMMIT_SECONDS = 0.05
_LONGEST_PAUSE = timedelta(hours=1)  # of a standing job
_RETRY_SECONDS = (1, 5, 30, 120, 600)
_SHARED_SLOT = "shared"

log = structlog.get_logger("coaching_service.jobs")


class StoredJob(TypedDict):
    """A job as it is stored.

    `runAfter` is the time it is due, or the end of its lease while a worker has it; `lease` identifies that worker,
    and is None when no worker has it;
    `attempts` counts the claims since the last step that succeeded; `about` is the client it concerns, if any.
    `isPaused`: the company is suspended.
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


_jobs = Documents[StoredJob](
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
    or was interrupted. `about` is the client, if any.
    """

    id: ObjectId
    arguments: Document
    attempts: int
    company_id: ObjectId | None = None
    about: ObjectId | None = None


@dataclass(frozen=True)
class RunAgain:
    """Returned by a step that has to run again after a while; `progress` is added to the arguments of the next step.

    `is_pause`: the step has not begun, because the company is suspended; `continue_paused` ends the pause.
    """

    after: timedelta = timedelta(0)
    progress: Document | None = None
    is_pause: bool = False


def _from_now(delay: timedelta) -> Document:
    """An expression for the database's time plus `delay`."""
    return {"$add": ["$$NOW", round(delay.total_seconds() * 1000)]}


# A claimed job waits for the end of its lease, or for its next attempt.
_BLOCKED: Document = {
    "attempts": {"$gt": 0},
    "isPaused": {"$ne": True},
    "$expr": {"$gt": ["$runAfter", _from_now(2 * timedelta(seconds=_RETRY_SECONDS[-1]))]},
}
JobOutcome = Literal["done", "continued", "interrupted", "failed"]
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


async def enqueue_many(
    ctx: Context,
    kind: str,
    arguments: Sequence[Document],
    *,
    after: timedelta = timedelta(0),
    about: ObjectId | None = None,
) -> list[ObjectId]:
    """Queue a job for each of `arguments` in the caller's transaction and return their identifiers."""
    jobs = {ObjectId(): (each, about) for each in arguments}
    await enqueue_each(ctx, kind, jobs, after=after)
    return list(jobs)


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
        identifier: _new_job(kind, arguments, after, company_id, about)
        for identifier, (arguments, about) in jobs.items()
    }
    await _jobs.insert_computed(ctx, new_jobs)
    # Workers see the job once the transaction has committed.
    delay = 0.0 if ctx.session is None else _AFTER_COMMIT_SECONDS
    loop = asyncio.get_running_loop() if ctx.thread is None else ctx.thread.loop
    loop.call_soon_threadsafe(loop.call_later, delay, ctx.services.job_available.set)


async def cancel(ctx: Context, identifier: ObjectId) -> None:
    """Remove a queued job of the company in the caller's transaction; a step that is running is not stopped."""
    await _jobs.delete(ctx, {"_id": identifier})


async def continue_paused(ctx: Context) -> None:
    """Make the paused jobs of the company due, in the caller's transaction."""
    await _jobs.set_derived(ctx, {"isPaused": True}, [{"$set": {"runAfter": "$$NOW"}}, {"$unset": "isPaused"}])


async def iterate(services: Services, kind: str | None = None) -> AsyncIterator[StoredJob]:
    """Yield the jobs of all companies, or those of a kind: by kind, and when they are due."""
    where = {} if kind is None else {"kind": kind}
    order = [("kind", 1), ("runAfter", 1)]
    cursor = _jobs.across_companies(services).find(where, sort=order, hint="kind_runAfter")
    async for job in cursor:
        yield cast("StoredJob", job)


async def find(services: Services, identifier: ObjectId) -> StoredJob | None:
    """Return a job of any company, or None."""
    return cast("StoredJob | None", await _jobs.across_companies(services).find_one({"_id": identifier}))


async def make_due(ctx: Context, job: StoredJob) -> bool:
    """Make a job of any company due, unless a worker has claimed it since it was read; returns whether it is."""
    where = {"_id": job["_id"], "lease": job["lease"], "runAfter": job["runAfter"]}
    change = [{"$set": {"runAfter": "$$NOW"}}]
    jobs = _jobs.across_companies(ctx.services)
    return (await jobs.update_one(where, change, session=ctx.session)).matched_count == 1


async def remove(ctx: Context, job: StoredJob) -> bool:
    """Remove a job of any company, unless a worker has claimed it since it was read; returns whether it is removed."""
    where = {"_id": job["_id"], "lease": job["lease"], "runAfter": job["runAfter"]}
    jobs = _jobs.across_companies(ctx.services)
    return (await jobs.delete_one(where, session=ctx.session)).deleted_count == 1


async def count_of_company(ctx: Context) -> int:
    """Return how many jobs of the company are in the queue."""
    return await _jobs.count(ctx, {}, hint="companyId_about")


async def iterate_arguments(services: Services, kinds: Sequence[str]) -> AsyncIterator[Document]:
    """Iterate over the arguments of the queued jobs of these kinds, of all companies."""
    where = {"kind": {"$in": list(kinds)}}
    async for job in _jobs.across_companies(services).find(where, {"arguments": 1}, hint="kind_runAfter"):
        yield job["arguments"]


async def iterate_late(services: Services, seconds: float) -> AsyncIterator[StoredJob]:
    """Iterate over the jobs that have been due for longer than `seconds`."""
    late = {"$expr": {"$lt": ["$runAfter", _from_now(timedelta(seconds=-seconds))]}}
    async for job in _iterate(services, late):
        yield job


async def iterate_failing(services: Services, attempts: int) -> AsyncIterator[StoredJob]:
    """Iterate over the jobs of which that many attempts, or more, have failed since the last step that succeeded."""
    async for job in _iterate(services, {"attempts": {"$gte": attempts}}):
        yield job


async def iterate_of_other_kinds(services: Services, kinds: Collection[str]) -> AsyncIterator[StoredJob]:
    """Iterate over the jobs that are of none of these kinds."""
    async for job in _iterate(services, {"kind": {"$nin": list(kinds)}}):
        yield job


async def iterate_blocked(services: Services) -> AsyncIterator[StoredJob]:
    """Iterate over the claimed jobs that no process has, and that none can claim for longer than they wait on purpose.

    The clock of the database was ahead when they were claimed, or waited for another attempt.
    """
    async for job in _iterate(services, _BLOCKED):
        yield job


async def release_blocked(services: Services) -> None:
    """Make these jobs due now."""
    await _jobs.across_companies(services).update_many(_BLOCKED, [{"$set": {"runAfter": "$$NOW"}}])


async def iterate_sealed(services: Services, kind: str) -> AsyncIterator[tuple[ObjectId, bytes]]:
    """Iterate over the identifiers and the encrypted arguments `sealed` of the jobs of a kind."""
    cursor: Any = _jobs.across_companies(services).find({"kind": kind}, {"arguments.sealed": 1}, hint="kind_runAfter")
    async for job in cursor:
        yield job["_id"], job["arguments"]["sealed"]


def _iterate(services: Services, where: Document) -> AsyncIterator[Any]:
    fields = {"kind": 1, "attempts": 1, "runAfter": 1}
    cursor: Any = _jobs.across_companies(services).find(where, fields, batch_size=200)
    return cast("AsyncIterator[Any]", cursor)


def _new_job(
    kind: str,
    arguments: Document,
    after: timedelta = timedelta(0),
    company_id: ObjectId | None = None,
    about: ObjectId | None = None,
) -> Document:
    """The fields of a new job, as expressions: its times are those of the database."""
    return {
        "companyId": company_id,
        "about": about,
        "kind": {"$literal": kind},
        "arguments": {"$literal": arguments},
        "runAfter": _from_now(after),
        "attempts": 0,
        "lease": None,
        "createdAt": "$$NOW",
    }


async def ensure_standing_jobs(services: Services, kinds: Collection[str]) -> None:
    """Store one job of each of these kinds, unless it exists; such jobs are repeated indefinitely.

    A job that is due in more than an hour, because the clock of the database was ahead, is due in an hour.
    """
    for kind in kinds:
        stages: list[Document] = [
            {"$replaceWith": {"$mergeObjects": [_new_job(kind, {}), "$$ROOT"]}},
            {"$set": {"runAfter": {"$min": ["$runAfter", _from_now(_LONGEST_PAUSE)]}}},
        ]
        await _jobs.across_companies(services).update_one({"_id": stable_id("job", kind)}, stages, upsert=True)


async def run_due(services: Services, steps: Steps, *, at: datetime | None = None, limit: int | None = None) -> int:
    """Run one step of every job that is due (at `at`, by default now) until none is, and return how many steps ran.

    At most `limit` steps, if given.
    """
    count = 0
    while count != limit and (job := await _claim(services, steps, at)) is not None:
        await _run_step(services, steps[job["kind"]], job)
        count += 1
    return count


async def count_due(services: Services, kinds: Collection[str]) -> dict[str, tuple[int, float]]:
    """Return how many jobs are due that no worker runs, and for how many seconds the first has been, by their kind."""
    stages: list[Document] = [
        {"$match": {"kind": {"$in": list(kinds)}, "$expr": {"$lte": ["$runAfter", "$$NOW"]}}},
        {"$group": {"_id": "$kind", "count": {"$sum": 1}, "first": {"$min": "$runAfter"}}},
        {"$project": {"count": 1, "seconds": {"$divide": [{"$subtract": ["$$NOW", "$first"]}, 1000]}}},
    ]
    cursor = _jobs.across_companies(services).aggregate(stages, hint="kind_runAfter")
    return {each["_id"]: (each["count"], each["seconds"]) async for each in cursor}


def working(
    services: Services,
    steps: Steps,
    standing_kinds: Collection[str] = (),
    dedicated: Mapping[str, int] | None = None,
    *,
    start: asyncio.Event | None = None,
) -> AbstractAsyncContextManager[None]:
    """Run jobs in the background while the context is open, and store those of the `standing_kinds`.

    Jobs run one at a time, except the kinds in `dedicated`: each of these runs that many at a time, independently of
    all others. With `start`, no job runs before that event.
    """
    worker = _Worker(services, steps, dedicated or {})
    return running_in_background(partial(worker.run, standing_kinds), start=start)


class _Worker:
    """Claims due jobs and runs their steps in slots: one that all kinds share, and those of the dedicated kinds."""

    def __init__(self, services: Services, steps: Steps, dedicated: Mapping[str, int]) -> None:
        self._services, self._steps, self._dedicated = services, steps, dedicated
        self._running: dict[str, set[asyncio.Task[None]]] = {name: set() for name in (_SHARED_SLOT, *dedicated)}

    async def run(self, standing_kinds: Collection[str]) -> None:
        """Work until cancelled."""
        has_standing_jobs = False
        try:
            while True:
                self._services.job_available.clear()
                try:
                    if not has_standing_jobs:
                        await ensure_standing_jobs(self._services, standing_kinds)
                        has_standing_jobs = True
                    while await self._start_next():
                        pass
                except Exception as error:  # noqa: BLE001 - the worker has to survive the loss of the database
                    _log_failure(error)
                # Not asyncio.wait_for, which on Python 3.11 loses a cancellation that coincides with the event.
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._services.job_available.wait()
        finally:
            await self._cancel_all()

    async def _start_next(self) -> bool:
        """Start the next job that has a free slot; returns False if there is none."""
        kinds = [kind for kind in self._steps if self._has_free_slot(kind)]
        job = await _claim(self._services, kinds) if kinds else None
        if job is None:
            return False
        running = self._running[self._slot(job["kind"])]

        def release_slot(task: asyncio.Task[None]) -> None:
            running.discard(task)
            self._services.job_available.set()

        task = asyncio.create_task(self._run(job))
        running.add(task)
        task.add_done_callback(release_slot)
        return True

    async def _run(self, job: StoredJob) -> None:
        try:
            await _run_step(self._services, self._steps[job["kind"]], job)
        except Exception as error:  # noqa: BLE001 - the job is claimed again after its lease
            _log_failure(error)

    def _slot(self, kind: str) -> str:
        return kind if kind in self._dedicated else _SHARED_SLOT

    def _has_free_slot(self, kind: str) -> bool:
        return len(self._running[self._slot(kind)]) < self._dedicated.get(kind, 1)

    async def _cancel_all(self) -> None:
        tasks = [task for running in self._running.values() for task in running]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _log_failure(error: Exception) -> None:
    if (known := _as_unavailable(error)) is None:
        log.error("worker failed", exc_info=error)
    else:
        log.warning("worker waits", reason=known.message)


def _as_unavailable(error: Exception) -> Unavailable | None:
    """The reason why the database could not be used; None for other failures."""
    known = error if isinstance(error, Unavailable) else as_service_error(error)
    return known if isinstance(known, Unavailable) else None


async def _claim(services: Services, kinds: Collection[str], at: datetime | None = None) -> StoredJob | None:
    """Claim the next due job of these kinds. One indexed condition covers new jobs and those whose lease has ended."""
    due = {"$expr": {"$lte": ["$runAfter", "$$NOW"]}} if at is None else {"runAfter": {"$lte": at}}
    claimed: Any = await _jobs.across_companies(services).find_one_and_update(
        {**due, "kind": {"$in": list(kinds)}},
        [{"$set": {"runAfter": _from_now(LEASE), "lease": new_token(), "attempts": {"$add": ["$attempts", 1]}}}],
        sort=[("runAfter", 1)],
        hint="kind_runAfter",
        return_document=True,
    )
    job: StoredJob | None = claimed
    return job


async def _run_step(services: Services, step: Step, job: StoredJob) -> None:
    with services.tracer.span("job " + job["kind"], "consumer") as span:
        await _run_observed(services, step, job, span)


async def _run_observed(services: Services, step: Step, job: StoredJob, span: Span) -> None:
    own = {"_id": job["_id"], "lease": job["lease"]}
    jobs, metrics, started = _jobs.across_companies(services), services.metrics, time.perf_counter()
    outcome: JobOutcome = "interrupted"  # also when the service stops
    try:
        again = await step(services, Job(job["_id"], job["arguments"], job["attempts"], job["companyId"], job["about"]))
    except Exception as error:
        span.fail(type(error).__name__)
        details = {"kind": job["kind"], "job": str(job["_id"]), "attempts": job["attempts"]}
        if (known := _as_unavailable(error)) is None:
            outcome = "failed"
            log.exception("job failed", **details)
        else:
            log.warning("job interrupted", reason=known.message, **details)
        delay = timedelta(seconds=_RETRY_SECONDS[min(job["attempts"], len(_RETRY_SECONDS)) - 1])
        await jobs.update_one(own, [{"$set": {"runAfter": _from_now(delay), "lease": None}}])
        return
    else:
        outcome = "done" if again is None else "continued"
    finally:
        metrics.job_seconds.labels(job["kind"]).observe(time.perf_counter() - started)
        metrics.job_runs.labels(job["kind"], outcome).inc()
    if again is None:
        await jobs.delete_one(own)
        return
    change: Document = {"runAfter": _from_now(again.after), "attempts": 0, "lease": None}
    if again.is_pause:  # this claim does not count: an interrupted attempt is still the last one
        change |= {"attempts": job["attempts"] - 1, "isPaused": True}
    if again.progress is not None:
        change["arguments"] = {"$literal": job["arguments"] | again.progress}
    await jobs.update_one(own, [{"$set": change}])
