"""Checks of the numbers of plan versions."""

from __future__ import annotations

from collections.abc import AsyncIterator

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.core.database.transactions import reading_snapshot
from coaching_service.progress.nutrition_plans import store


async def find_low_counters(services: Services, _: CountRead) -> AsyncIterator[Finding]:
    """Find clients whose next plan version would have a number that is used already, which fails."""
    occurrences = Occurrences()
    if await store.find_low_counters(services):
        async with reading_snapshot(services) as session:
            for low in await store.find_low_counters(services, session):
                occurrences.add(low["_id"]["customerId"])
    problem = "Clients whose counter of nutrition plans is too low"
    yield occurrences.finding(problem, "Run doctor --repair; until then no plan can be uploaded for them")


async def raise_counters(services: Services) -> None:
    """Raise these counters to the highest number in use."""
    for low in await store.find_low_counters(services):
        await store.raise_counter(services, low)


CHECKS = (Check("plan-numbers", "The numbers of plan versions are right", find_low_counters, raise_counters),)
