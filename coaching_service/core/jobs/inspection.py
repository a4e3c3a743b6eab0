"""The jobs of all companies, for the operator and the metrics, and the checks of them and of the mail in them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from datetime import timedelta
from functools import partial
from typing import cast

from coaching_service.core.auth.secrets import SecretUnreadable
from coaching_service.core.database.checks import Check, Repair, check_of
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.queue import StoredJob, from_now, stored_jobs
from coaching_service.core.jobs.worker import RETRY_SECONDS

_MOST_MAILS = 10_000
_FAILING_ATTEMPTS = 6  # then every ten minutes
_LATE: Document = {"$expr": {"$lt": ["$runAfter", from_now(timedelta(minutes=-10))]}}
# Claimed jobs that no process has, and that none can claim for longer than they wait on purpose, for the end of a lease
# or for the next attempt: the clock of the database was ahead.
_BLOCKED: Document = {
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


async def iterate_arguments(services: Services, kinds: Sequence[str]) -> AsyncIterator[Document]:
    """Iterate over the arguments of the queued jobs of these kinds, of all companies."""
    where = {"kind": {"$in": list(kinds)}}
    async for job in stored_jobs.across_companies(services).find(where, {"arguments": 1}, hint="kind_runAfter"):
        yield job["arguments"]


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


async def find_mail_age(services: Services) -> float:
    """Return how many seconds ago the oldest mail was queued that is due, or was tried in vain; 0 without one."""
    tried_or_due: Document = {"$or": [{"runAfter": {"$lte": now()}}, {"arguments.tries": {"$gt": 0}}]}
    where = {"kind": mail.SEND, "isPaused": {"$ne": True}, **tried_or_due}
    cursor = stored_jobs.across_companies(services).find(where, {"createdAt": 1}, hint="kind_runAfter")
    oldest = min([job["createdAt"] async for job in cursor.limit(_MOST_MAILS)], default=None)
    return 0.0 if oldest is None else max(0.0, (now() - oldest).total_seconds())


# --- checks ----------------------------------------------------------------------------------------------------------


async def _iterate_matching(services: Services, where: Document) -> AsyncIterator[str]:
    """Iterate over the jobs of all companies that match `where`: the identifier and the kind of each."""
    cursor = stored_jobs.across_companies(services).find(where, {"kind": 1}, batch_size=200)
    async for job in cursor:
        yield f"{job['_id']} {job['kind']}"


async def _release_blocked(services: Services) -> None:
    """Make the blocked jobs due now."""
    await stored_jobs.across_companies(services).update_many(_BLOCKED, [{"$set": {"runAfter": "$$NOW"}}])


async def _iterate_unreadable_mail(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the queued mail that no master key opens."""
    where, fields = {"kind": mail.SEND}, {"arguments.sealed": 1}
    async for job in stored_jobs.across_companies(services).find(where, fields, hint="kind_runAfter"):
        try:
            mail.open_content(services.vault, job["_id"], job["arguments"]["sealed"])
        except SecretUnreadable:
            yield job["_id"]


def _check_jobs(
    name: str, title: str, where: Document, problem: str, advice: str, repair: Repair | None = None
) -> Check:
    """Return the check that finds the jobs that match `where`."""
    iterate = partial(_iterate_matching, where=where)
    return check_of(name, title, iterate, problem, advice, repair, counts=True)


def job_checks(kinds: Collection[str]) -> tuple[Check, ...]:
    """Return the checks of the jobs of a service that runs these kinds."""
    return (
        _check_jobs(
            "jobs-late",
            "Jobs run when they are due",
            _LATE,
            "Jobs that have been due for over ten minutes",
            "Start the service, which runs them. If it runs, it has too much to do: add processes, or wait",
        ),
        _check_jobs(
            "jobs-failing",
            "Jobs succeed",
            {"attempts": {"$gte": _FAILING_ATTEMPTS}},
            "Jobs that fail again and again",
            'The log says why: search for "job failed" with this identifier. They are repeated every ten minutes',
        ),
        _check_jobs(
            "jobs-blocked",
            "Claimed jobs run",
            _BLOCKED,
            "Claimed jobs that no process runs",
            "Run doctor --repair. The clock of the database was wrong when they were claimed",
            _release_blocked,
        ),
        _check_jobs(
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
