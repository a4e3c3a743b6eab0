"""Checks of the job queue, and of the mail in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from functools import partial

from coaching_service.core.auth.secrets import SecretUnreadable
from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.core.jobs import inspection, mail
from coaching_service.core.jobs.queue import StoredJob

LATE_SECONDS = 600.0
_FAILING_ATTEMPTS = 6  # then every ten minutes


def find_late(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find jobs that have been due for over ten minutes."""
    advice = "Start the service, which runs them. If it runs, it has too much to do: add processes, or wait"
    jobs = inspection.iterate_late(services, LATE_SECONDS)
    return _report(jobs, count_read, "Jobs that have been due for over ten minutes", advice)


def find_failing(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find jobs that fail again and again."""
    advice = 'The log says why: search for "job failed" with this identifier. They are repeated every ten minutes'
    jobs = inspection.iterate_failing(services, _FAILING_ATTEMPTS)
    return _report(jobs, count_read, "Jobs that fail again and again", advice)


def find_blocked(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find jobs that a process had claimed, and that wait for longer than any attempt does."""
    advice = "Run doctor --repair. The clock of the database was wrong when they were claimed"
    return _report(inspection.iterate_blocked(services), count_read, "Claimed jobs that no process runs", advice)


def find_unknown(services: Services, count_read: CountRead, kinds: Collection[str]) -> AsyncIterator[Finding]:
    """Find jobs of other kinds than this version runs."""
    advice = "Another version of the service has stored them, and has to run until they are done"
    jobs = inspection.iterate_of_other_kinds(services, kinds)
    return _report(jobs, count_read, "Jobs that this version does not know", advice)


async def _report(
    jobs: AsyncIterator[StoredJob], count_read: CountRead, problem: str, advice: str
) -> AsyncIterator[Finding]:
    occurrences = Occurrences()
    async for job in jobs:
        occurrences.add(f"{job['_id']} {job['kind']}")
        count_read(1)
    for finding in occurrences.finding(problem, advice):
        yield finding


async def find_unreadable_mail(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find queued mail that no master key opens."""
    occurrences = Occurrences()
    async for job_id, sealed in inspection.iterate_sealed(services, mail.SEND):
        count_read(1)
        try:
            mail.open_content(services.vault, job_id, sealed)
        except SecretUnreadable:
            occurrences.add(job_id)
    advice = "Add the master key that it was encrypted with to SECRET_KEYS, after the newest; else it is never sent"
    for finding in occurrences.finding("Queued mail that no master key opens", advice):
        yield finding


def job_checks(kinds: Collection[str]) -> tuple[Check, ...]:
    """The checks of the jobs of a service that runs these kinds."""
    return (
        Check("jobs-late", "Jobs run when they are due", find_late),
        Check("jobs-failing", "Jobs succeed", find_failing),
        Check("jobs-blocked", "Claimed jobs run", find_blocked, inspection.release_blocked),
        Check("jobs-unknown", "This version knows all jobs", partial(find_unknown, kinds=kinds)),
        Check("secrets-mail", "Queued mail can be read", find_unreadable_mail),
    )
