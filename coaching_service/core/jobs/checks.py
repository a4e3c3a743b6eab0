"""Checks of the job queue, and of the mail in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from functools import partial

from coaching_service.core.auth.secrets import SecretUnreadable
from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.core.jobs import inspection, mail

LATE_SECONDS = 600.0
_FAILING_ATTEMPTS = 6  # then every ten minutes


async def find_late(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find jobs that have been due for over ten minutes."""
    occurrences = Occurrences()
    async for job in inspection.iterate_late(services, LATE_SECONDS):
        occurrences.add(f"{job['_id']} {job['kind']}")
        count_read(1)
    advice = "Start the service, which runs them. If it runs, it has too much to do: add processes, or wait"
    for finding in occurrences.finding("Jobs that have been due for over ten minutes", advice):
        yield finding


async def find_failing(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find jobs that fail again and again."""
    occurrences = Occurrences()
    async for job in inspection.iterate_failing(services, _FAILING_ATTEMPTS):
        occurrences.add(f"{job['_id']} {job['kind']}")
        count_read(1)
    advice = 'The log says why: search for "job failed" with this identifier. They are repeated every ten minutes'
    for finding in occurrences.finding("Jobs that fail again and again", advice):
        yield finding


async def find_blocked(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find jobs that a process had claimed, and that wait for longer than any attempt does."""
    occurrences = Occurrences()
    async for job in inspection.iterate_blocked(services):
        occurrences.add(f"{job['_id']} {job['kind']}")
        count_read(1)
    advice = "Run doctor --repair. The clock of the database was wrong when they were claimed"
    for finding in occurrences.finding("Claimed jobs that no process runs", advice):
        yield finding


async def find_unknown(services: Services, count_read: CountRead, kinds: Collection[str]) -> AsyncIterator[Finding]:
    """Find jobs of other kinds than this version runs."""
    occurrences = Occurrences()
    async for job in inspection.iterate_of_other_kinds(services, kinds):
        occurrences.add(f"{job['_id']} {job['kind']}")
        count_read(1)
    advice = "Another version of the service has stored them, and has to run until they are done"
    for finding in occurrences.finding("Jobs that this version does not know", advice):
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
