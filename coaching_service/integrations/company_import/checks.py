"""The check of imports that do not continue."""

from __future__ import annotations

from collections.abc import AsyncIterator

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.integrations.company_import import service


async def find_abandoned(services: Services, _: CountRead) -> AsyncIterator[Finding]:
    """Find imports that have not ended and that no job continues: their company cannot begin another one."""
    occurrences = Occurrences()
    for job_id in await service.list_abandoned(services):
        occurrences.add(job_id)
    advice = "Run doctor --repair, which ends them with an error, so that the owner can import again"
    for finding in occurrences.finding("Imports that no job continues", advice):
        yield finding


CHECKS = (Check("imports", "Imports continue", find_abandoned, service.end_abandoned),)
