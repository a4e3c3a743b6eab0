"""The check of sandboxes."""

from __future__ import annotations

from collections.abc import AsyncIterator

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.people.account import store


async def find_lost_sandboxes(services: Services, _: CountRead) -> AsyncIterator[Finding]:
    """Find sandboxes that are not the sandbox of an existing company: they are not deleted with one."""
    occurrences = Occurrences()
    for company_id in await store.list_lost_sandboxes(services):
        occurrences.add(company_id)
    advice = "Erase each with admin companies erase and its identifier, if its company is not missing by mistake"
    for finding in occurrences.finding("Sandboxes that are not the sandbox of a company", advice):
        yield finding


CHECKS = (Check("sandboxes", "Sandboxes belong to a company", find_lost_sandboxes),)
