"""Running jobs: a worker claims a due job for a limited time (a lease), runs one step, and releases or removes the job.

When a process dies during a step, the job is claimed again after the lease. Companies take turns: whose job of a kind
has been claimed waits for the others that have one. All times come from the clock of the database, so a wrong clock of
a process neither delays nor repeats work.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, TypedDict, cast, get_args

import structlog
from opentelemetry.trace import SpanKind

from coaching_service.core.auth import SecretUnreadable, new_token
from coaching_service.core.background import running_in_background
from coaching_service.core.database.checks import Check, Repair, check_of
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.jobs import mail, queue
from coaching_service.core.metrics import reading_in_time
from coaching_service.core.tracing import fail, measure

LEASE = timedelta(seconds=60)
POLL_SECONDS = 2.0
RETRY_SECONDS = (1, 5, 30, 120, 600)
_LONGEST_PAUSE = timedelta(hours=1)  # of a standing job
_LOOK_SECONDS = 1.0
_PROCESS = new_token()

JobOutcome = Literal["done", "continued", "interrupted", "failed"]

log = structlog.get_logger("coaching_service.jobs")


async def ensure_standing_jobs(services: Services, kinds: Collection[str]) -> None:
    """Store one job of each of these kinds, unless it exists; such jobs are repeated indefinitely.

    A job that is due in more than an hour, because the clock of the database was ahead, is due in an hour.
    """
    for kind in kinds:
        stages: list[Document] = [
            {"$replaceWith": {"$mergeObjects": [queue.new_job(kind, {}), "$$ROOT"]}},
            {"$set": {"runAfter": {"$min": ["$runAfter", queue.from_now(_LONGEST_PAUSE)]}}},
        ]
        await queue.stored_jobs.across_companies(services).update_one(
            {"_id": stable_id("job", kind)}, stages, upsert=True
        )


async def run_due(
    services: Services, steps: queue.Steps, *, at: datetime | None = None, limit: int | None = None
) -> int:
    """Run one step of every job that is due (at `at`, by default now) until none is, and return how many steps ran.

    At most `limit` steps, if given.
    """
    count, turns = 0, _Turns()
    while count != limit and (job := await turns.claim(services, steps, at)) is not None:
        await _run_step(services, steps[job["kind"]], job)
        count += 1
    return count


def working(
    services: Services,
    steps: queue.Steps,
    standing_kinds: Collection[str] = (),
    places: Mapping[str, int] | None = None,
    *,
    start: asyncio.Event | None = None,
) -> AbstractAsyncContextManager[None]:
    """Run jobs in the background while the context is open, and store the jobs of the `standing_kinds`.

    One job of each kind runs at a time, or as many as `places` has for the kind; kinds do not wait for each other. With
    `start`, no job runs before that event.
    """
    worker = _Worker(services, steps, places or {})
    return running_in_background(partial(worker.run, standing_kinds), start=start)


class _Worker:
    """Claims due jobs and runs their steps, each kind in places of its own."""

    def __init__(self, services: Services, steps: queue.Steps, places: Mapping[str, int]) -> None:
        self._services, self._steps, self._places = services, steps, places
        self._running: dict[str, set[asyncio.Task[None]]] = {kind: set() for kind in steps}
        self._turns = _Turns()

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
            tasks = [task for running in self._running.values() for task in running]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(Exception):  # the database may be gone: others take the jobs after a lease
                held = queue.stored_jobs.across_companies(self._services)
                own = {"holder": _holder(), "kind": {"$in": [*self._steps]}}
                await held.update_many(own, [{"$unset": "holder"}])

    async def _start_next(self) -> bool:
        """Start the next job of a kind that has a free place; returns False if there is none."""
        kinds = [kind for kind in self._steps if len(self._running[kind]) < self._places.get(kind, 1)]
        job = await self._turns.claim(self._services, kinds) if kinds else None
        if job is None:
            return False
        running = self._running[job["kind"]]

        async def run() -> None:
            try:
                await _run_step(self._services, self._steps[job["kind"]], job)
            except Exception as error:  # noqa: BLE001 - the job is claimed again after its lease
                _log_failure(error)

        def release_place(task: asyncio.Task[None]) -> None:
            running.discard(task)
            self._services.job_available.set()

        task = asyncio.create_task(run())
        running.add(task)
        task.add_done_callback(release_place)
        return True


def _log_failure(error: Exception) -> None:
    if (known := _as_unavailable(error)) is None:
        log.error("worker failed", exc_info=error)
    else:
        log.warning("worker waits", reason=known.message)


def _as_unavailable(error: Exception) -> Unavailable | None:
    """Return the reason why the database could not be used; None for other failures."""
    known = as_service_error(error)
    return known if isinstance(known, Unavailable) else None


class _Turns:
    """Whose jobs of each kind have been claimed since those of all other companies that have one were."""

    def __init__(self) -> None:
        self._served: defaultdict[str, set[ObjectId]] = defaultdict(set)
        self._looks_again = 0.0  # for other companies: a queue of one company is not read through for each of its jobs

    async def claim(
        self, services: Services, kinds: Collection[str], at: datetime | None = None
    ) -> queue.StoredJob | None:
        """Claim the next due job of these kinds."""
        served = {kind: self._served[kind] for kind in kinds if kind in self._served}
        is_new = not served or time.monotonic() >= self._looks_again
        job = await _claim(services, kinds, at, served if is_new else {})
        if job is None and served and is_new:
            for kind in served:
                del self._served[kind]
            self._looks_again = time.monotonic() + _LOOK_SECONDS
            job = await _claim(services, kinds, at, {})
        if job is not None and job["companyId"] is not None:
            self._served[job["kind"]].add(job["companyId"])
        return job


async def _claim(
    services: Services, kinds: Collection[str], at: datetime | None, served: Mapping[str, Collection[ObjectId]]
) -> queue.StoredJob | None:
    """Claim the next due job of these kinds, but of no company that has been `served`.

    One indexed condition covers new jobs and jobs without a lease. Those that another process holds are left to it.
    """
    due = {"$expr": {"$lte": ["$runAfter", "$$NOW"]}} if at is None else {"runAfter": {"$lte": at}}
    others = [{"kind": kind, "companyId": {"$in": [*companies]}} for kind, companies in served.items()]
    is_free = {
        "$or": [{"holder": {"$in": [None, _holder()]}}, {"$expr": {"$lt": ["$runAfter", queue.from_now(-LEASE)]}}]
    }
    claimed = await queue.stored_jobs.across_companies(services).find_one_and_update(
        {**due, "kind": {"$in": list(kinds)}, **is_free, **({"$nor": others} if others else {})},
        [{"$set": {"runAfter": queue.from_now(LEASE), "lease": new_token(), "attempts": {"$add": ["$attempts", 1]}}}],
        sort=[("runAfter", 1)],
        hint="kind_runAfter",
        return_document=True,
    )
    return cast("queue.StoredJob | None", claimed)


def _holder() -> str:
    """Return what names this process, also after a fork."""
    return f"{_PROCESS} {os.getpid()}"


async def _run_step(services: Services, step: queue.Step, job: queue.StoredJob) -> None:
    own = {"_id": job["_id"], "lease": job["lease"]}
    jobs, metrics, started = queue.stored_jobs.across_companies(services), services.metrics, time.perf_counter()
    outcome: JobOutcome = "interrupted"  # also when the service stops
    claimed = queue.Job(job["_id"], job["arguments"], job["attempts"], job["companyId"], job["about"], job["lease"])
    with measure(services.tracer, "job " + job["kind"], SpanKind.CONSUMER) as span:
        try:
            again = await step(services, claimed)
            outcome = "done" if again is None else "continued"
        except Exception as error:
            fail(span, type(error).__name__)
            details = {"kind": job["kind"], "job": str(job["_id"]), "attempts": job["attempts"]}
            if (known := _as_unavailable(error)) is None:
                outcome = "failed"
                log.exception("job failed", **details)
            else:
                log.warning("job interrupted", reason=known.message, **details)
            delay = timedelta(seconds=RETRY_SECONDS[min(job["attempts"], len(RETRY_SECONDS)) - 1])
            await jobs.update_one(own, [{"$set": {"runAfter": queue.from_now(delay), "lease": None}}])
            return
        finally:
            metrics.job_seconds.labels(job["kind"]).observe(time.perf_counter() - started)
            metrics.job_runs.labels(job["kind"], outcome).inc()
        if again is None:
            await jobs.delete_one(own)
            return
        holder = _holder() if again.is_held else "$$REMOVE"
        change: Document = {"runAfter": queue.from_now(again.after), "attempts": 0, "lease": None, "holder": holder}
        if again.is_pause:  # this claim does not count: an interrupted attempt is still the last one
            change |= {"attempts": job["attempts"] - 1, "isPaused": True}
        if again.progress is not None:
            change["arguments"] = {"$literal": job["arguments"] | again.progress}
        await jobs.update_one(own, [{"$set": change}])


# --- Working through many so that one whose work fails delays no other: only that one waits, longer each time ---------


FailingKind = Literal["figures", "digests", "check-ins", "notifications", "tombstones", "training-load", "search"]
_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=6)
# Until when the failure of what no longer exists is known: what exists is tried again before.
_KEPT_SECONDS = round(timedelta(days=2).total_seconds())
alone_log = structlog.get_logger("coaching_service.alone")


class StoredFailure(TypedDict):
    """That work on the `subject` has failed since a time, and how often; it is tried again after `waitsUntil`."""

    _id: ObjectId
    companyId: ObjectId | None
    kind: FailingKind
    subject: ObjectId
    attempts: int
    since: datetime
    waitsUntil: datetime


_failures = Documents[StoredFailure](
    "failures",
    (Index(("kind", "subject")),),
    secret=True,
    expire=("waitsUntil", _KEPT_SECONDS),
    global_indexes=(Index(("kind", "since")),),
    cross_company_reason="background jobs work for any company, and the operator sees what fails",
    transfer=NotExported("work in progress"),
    process_state=True,
)


async def for_each_alone(
    services: Services,
    kind: FailingKind,
    company_id: ObjectId | None,
    subjects: Iterable[ObjectId],
    work: Callable[[Sequence[ObjectId]], Awaitable[None]],
    *,
    skips_waiting: bool = False,
) -> dict[ObjectId, timedelta]:
    """Do work on all subjects of a company together; if it fails, on each half, down to those alone that fail.

    Those that failed before are alone from the start. Returns how long each of those that failed has to wait; the
    caller makes them due by then, or calls this again with `skips_waiting`, which leaves them out until then. The work
    may be repeated, with at most 1,000 subjects at a time. Raises Unavailable while the database cannot be used.
    """
    stored, everything = _failures.across_companies(services), list(subjects)
    where: Document = {"companyId": company_id, "kind": kind, "subject": {"$in": everything}}
    index = _failures.index_name("kind", "subject")
    before: dict[ObjectId, StoredFailure] = {each["subject"]: each async for each in stored.find(where, hint=index)}
    if skips_waiting:
        everything = [each for each in everything if each not in before or before[each]["waitsUntil"] <= now()]
    usual = [each for each in everything if each not in before]
    parts = [[each] for each in everything if each in before]
    parts += [usual[start : start + 1_000] for start in range(0, len(usual), 1_000)]
    waits: dict[ObjectId, timedelta] = {}
    while parts:
        part = parts.pop()
        try:
            await work(part)
        except Exception as error:
            if isinstance(error if isinstance(error, Unavailable) else as_service_error(error), Unavailable):
                raise
            if (middle := len(part) // 2) > 0:
                parts += [part[:middle], part[middle:]]
                continue
            [subject] = part
            alone_log.exception("work fails", kind=kind, company=str(company_id), subject=str(subject))
            attempts = before[subject]["attempts"] + 1 if subject in before else 1
            waits[subject] = min(_FIRST_WAIT * 2.0 ** min(attempts - 1, 20), _LONGEST_WAIT)
            own: Document = {"companyId": company_id, "_id": stable_id("failure", kind, str(subject))}
            failure: Document = {"kind": kind, "subject": subject, "attempts": attempts}
            failure["waitsUntil"] = now() + waits[subject]
            await stored.update_one(own, {"$set": failure, "$setOnInsert": {"since": now()}}, upsert=True)
    if succeeded := [each["_id"] for subject, each in before.items() if subject in {*everything} - waits.keys()]:
        await stored.delete_many({"companyId": company_id, "_id": {"$in": succeeded}})
    return waits


async def forget(services: Services, company_id: ObjectId, subject: ObjectId) -> None:
    """Forget all failures of a subject that no longer exists."""
    own: Document = {"companyId": company_id, "kind": {"$in": get_args(FailingKind)}, "subject": subject}
    await _failures.across_companies(services).delete_many(own, hint=_failures.index_name("kind", "subject"))


async def read_metrics(services: Services) -> None:
    """Read how much work fails, by kind; it is not a number while the database does not respond."""

    kinds = get_args(FailingKind)

    async def count_each() -> dict[str, float]:
        stages: list[Document] = [{"$sort": {"kind": 1}}, {"$group": {"_id": "$kind", "count": {"$sum": 1}}}]
        cursor = _failures.across_companies(services).aggregate(stages, hint="kind_since")
        return dict.fromkeys(kinds, 0.0) | {each["_id"]: each["count"] async for each in cursor}

    counts = await reading_in_time(count_each(), dict.fromkeys(kinds, float("nan")), "failing work")
    for kind, count in counts.items():
        services.metrics.work_failing.labels(kind).set(count)


CHECKS = (
    check_of(
        "work-failing",
        "Work in the background succeeds for everyone",
        lambda services: (
            f"{each['kind']} {each['subject']}"
            async for each in _failures.across_companies(services).find({}, hint="kind_since")
        ),
        "Clients, coaches or records whose work in the background fails",
        'The log says why: search for "work fails" with this identifier. It is often a document that another check '
        "names. The work of others goes on; this is tried again, at the latest after six hours",
        counts=True,
    ),
)


# --- The jobs of all companies, for the operator and the metrics, and the checks of them and of the mail in them ------


_MOST_MAILS = 10_000
_FAILING_ATTEMPTS = 6  # then every ten minutes
_LATE: Document = {"$expr": {"$lt": ["$runAfter", queue.from_now(timedelta(minutes=-10))]}}
# Claimed jobs that no process has, and that none can claim for longer than they wait on purpose, for the end of a lease
# or for the next attempt: the clock of the database was ahead.
_BLOCKED: Document = {
    "attempts": {"$gt": 0},
    "isPaused": {"$ne": True},
    "$expr": {"$gt": ["$runAfter", queue.from_now(2 * timedelta(seconds=RETRY_SECONDS[-1]))]},
}


async def iterate(services: Services, kind: str | None = None) -> AsyncIterator[queue.StoredJob]:
    """Yield the jobs of all companies, or of a kind: by kind, and when they are due."""
    where = {} if kind is None else {"kind": kind}
    order = [("kind", 1), ("runAfter", 1)]
    cursor = queue.stored_jobs.across_companies(services).find(where, sort=order, hint="kind_runAfter")
    async for job in cursor:
        yield cast("queue.StoredJob", job)


async def find(services: Services, identifier: ObjectId) -> queue.StoredJob | None:
    """Return a job of any company, or None."""
    return cast(
        "queue.StoredJob | None", await queue.stored_jobs.across_companies(services).find_one({"_id": identifier})
    )


async def make_due(ctx: Context, job: queue.StoredJob) -> bool:
    """Make a job of any company due, unless a worker has claimed it since it was read; returns whether it is."""
    jobs, change = queue.stored_jobs.across_companies(ctx.services), [{"$set": {"runAfter": "$$NOW"}}]
    return (await jobs.update_one(_unclaimed(job), change, session=ctx.session)).matched_count == 1


async def remove(ctx: Context, job: queue.StoredJob) -> bool:
    """Remove a job of any company, unless a worker has claimed it since it was read; returns whether it is removed."""
    jobs = queue.stored_jobs.across_companies(ctx.services)
    return (await jobs.delete_one(_unclaimed(job), session=ctx.session)).deleted_count == 1


def _unclaimed(job: queue.StoredJob) -> Document:
    return {"_id": job["_id"], "lease": job["lease"], "runAfter": job["runAfter"]}


async def iterate_arguments(services: Services, kinds: Sequence[str]) -> AsyncIterator[Document]:
    """Iterate over the arguments of the queued jobs of these kinds, of all companies."""
    where = {"kind": {"$in": list(kinds)}}
    async for job in queue.stored_jobs.across_companies(services).find(where, {"arguments": 1}, hint="kind_runAfter"):
        yield job["arguments"]


async def count_due(services: Services, kinds: Collection[str]) -> dict[str, tuple[int, float]]:
    """Return how many jobs are due that no worker runs, and for how many seconds the first has been, by their kind."""
    stages: list[Document] = [
        # Not compared with $$NOW, for which each job would be read: the index has all that is needed.
        {"$match": {"kind": {"$in": list(kinds)}, "runAfter": {"$lte": now()}}},
        {"$group": {"_id": "$kind", "count": {"$sum": 1}, "first": {"$min": "$runAfter"}}},
        {"$project": {"count": 1, "seconds": {"$divide": [{"$subtract": ["$$NOW", "$first"]}, 1000]}}},
    ]
    cursor = queue.stored_jobs.across_companies(services).aggregate(stages, hint="kind_runAfter")
    return {each["_id"]: (each["count"], each["seconds"]) async for each in cursor}


async def find_mail_age(services: Services) -> float:
    """Return how many seconds ago the oldest mail was queued that is due, or was tried in vain; 0 without one."""
    tried_or_due: Document = {"$or": [{"runAfter": {"$lte": now()}}, {"arguments.tries": {"$gt": 0}}]}
    where = {"kind": mail.SEND, "isPaused": {"$ne": True}, **tried_or_due}
    cursor = queue.stored_jobs.across_companies(services).find(where, {"createdAt": 1}, hint="kind_runAfter")
    oldest = min([job["createdAt"] async for job in cursor.limit(_MOST_MAILS)], default=None)
    return 0.0 if oldest is None else max(0.0, (now() - oldest).total_seconds())


# --- Checks ----------------------------------------------------------------------------------------------------------


async def _iterate_unreadable_mail(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the queued mail that no master key opens."""
    where, fields = {"kind": mail.SEND}, {"arguments.sealed": 1}
    async for job in queue.stored_jobs.across_companies(services).find(where, fields, hint="kind_runAfter"):
        try:
            mail.open_content(services.vault, job["_id"], job["arguments"]["sealed"])
        except SecretUnreadable:
            yield job["_id"]


def job_checks(kinds: Collection[str]) -> tuple[Check, ...]:
    """Return the checks of the jobs of a service that runs these kinds."""

    def check(name: str, title: str, where: Document, problem: str, advice: str, repair: Repair | None = None) -> Check:
        async def iterate(services: Services) -> AsyncIterator[str]:
            cursor = queue.stored_jobs.across_companies(services).find(where, {"kind": 1}, batch_size=200)
            async for job in cursor:
                yield f"{job['_id']} {job['kind']}"

        return check_of(name, title, iterate, problem, advice, repair, counts=True)

    async def release_blocked(services: Services) -> None:
        jobs = queue.stored_jobs.across_companies(services)
        await jobs.update_many(_BLOCKED, [{"$set": {"runAfter": "$$NOW"}}])

    return (
        check(
            "jobs-late",
            "Jobs run when they are due",
            _LATE,
            "Jobs that have been due for over ten minutes",
            "Start the service, which runs them. If it runs, it has too much to do: add processes, or wait",
        ),
        check(
            "jobs-failing",
            "Jobs succeed",
            {"attempts": {"$gte": _FAILING_ATTEMPTS}},
            "Jobs that fail again and again",
            'The log says why: search for "job failed" with this identifier. They are repeated every ten minutes',
        ),
        check(
            "jobs-blocked",
            "Claimed jobs run",
            _BLOCKED,
            "Claimed jobs that no process runs",
            "Run doctor --repair. The clock of the database was wrong when they were claimed",
            release_blocked,
        ),
        check(
            "jobs-unknown",
            "This version knows all jobs",
            {"kind": {"$nin": list(kinds)}},
            "Jobs that this version does not know",
            "Another version of the service has stored them, and has to run until they are done",
        ),
        check_of(
            "secrets-mail",
            "Queued mail can be read",
            _iterate_unreadable_mail,
            "Queued mail that no master key opens",
            "Add the master key that it was encrypted with to SECRET_KEYS, after the newest; else it is never sent",
        ),
    )
