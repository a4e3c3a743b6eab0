"""Checks of the job queue, and of the mail in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from datetime import timedelta
from functools import partial

from coaching_service.core.auth.secrets import SecretUnreadable
from coaching_service.core.database.checks import Check, Repair, check_of
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import inspection, mail
from coaching_service.core.jobs.queue import from_now

LATE_SECONDS = 600.0
_FAILING_ATTEMPTS = 6  # then every ten minutes
_LATE: Document = {"$expr": {"$lt": ["$runAfter", from_now(timedelta(seconds=-LATE_SECONDS))]}}


async def _iterate_unreadable_mail(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the queued mail that no master key opens."""
    async for job_id, sealed in inspection.iterate_sealed(services, mail.SEND):
        try:
            mail.open_content(services.vault, job_id, sealed)
        except SecretUnreadable:
            yield job_id


def _check_jobs(
    name: str, title: str, where: Document, problem: str, advice: str, repair: Repair | None = None
) -> Check:
    """Return the check that finds the jobs that match `where`."""
    iterate = partial(inspection.iterate_matching, where=where)
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
            inspection.BLOCKED,
            "Claimed jobs that no process runs",
            "Run doctor --repair. The clock of the database was wrong when they were claimed",
            inspection.release_blocked,
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
