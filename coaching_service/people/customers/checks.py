"""Checks of the stored numbers of clients."""

from __future__ import annotations

from collections.abc import AsyncIterator

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.core.database.transactions import reading_snapshot
from coaching_service.people.customers import _group_totals, counters


async def find_wrong_numbers(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find companies whose stored numbers of active and archived clients differ from how many there are."""
    occurrences = Occurrences()
    for suspect in await counters.find_suspects(services):
        async with reading_snapshot(services) as session:
            difference = await counters.find_difference(services, suspect["_id"], session)
        if difference["active"] or difference["archived"]:
            occurrences.add(suspect["_id"])
        count_read(1)
    yield occurrences.finding("Companies with a wrong number of clients", "Run doctor --repair")


async def correct_numbers(services: Services) -> None:
    """Count the clients of these companies again."""
    for suspect in await counters.find_suspects(services):
        await counters.correct(services, suspect["_id"])


async def find_wrong_groups(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find companies where stored numbers of clients in groups differ from how many there are."""
    occurrences = Occurrences()
    for company_id in await _group_totals.list_suspects(services):
        async with reading_snapshot(services) as session:
            if await _group_totals.find_differences(services, company_id, session):
                occurrences.add(company_id)
        count_read(1)
    yield occurrences.finding("Companies with a wrong number of clients in a group", "Run doctor --repair")


async def correct_groups(services: Services) -> None:
    """Count the clients in the groups of these companies again."""
    for company_id in await _group_totals.list_suspects(services):
        await counters.correct_groups(services, company_id)


CHECKS = (
    Check("client-numbers", "The numbers of clients are right", find_wrong_numbers, correct_numbers),
    Check("group-numbers", "The numbers of clients in groups are right", find_wrong_groups, correct_groups),
)
