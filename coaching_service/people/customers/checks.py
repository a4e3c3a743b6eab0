"""Checks of the stored numbers of clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.core.database.transactions import reading_snapshot
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import _group_totals, counters


def _check(
    name: str,
    title: str,
    problem: str,
    list_suspects: Callable[[Services], Awaitable[Sequence[ObjectId]]],
    find_differences: Callable[[Services, ObjectId, Any], Awaitable[Mapping[str, Any]]],
    correct: Callable[[Services, ObjectId], Awaitable[None]],
) -> Check:
    """Return the check whether stored numbers of companies differ from how many clients there are."""

    async def find_wrong_numbers(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
        occurrences = Occurrences()
        for company_id in await list_suspects(services):
            async with reading_snapshot(services) as session:
                if await find_differences(services, company_id, session):
                    occurrences.add(company_id)
            count_read(1)
        yield occurrences.finding(problem, "Run doctor --repair")

    async def correct_numbers(services: Services) -> None:
        for company_id in await list_suspects(services):
            await correct(services, company_id)

    return Check(name, title, find_wrong_numbers, correct_numbers)


CHECKS = (
    _check(
        "client-numbers",
        "The numbers of clients are right",
        "Companies with a wrong number of clients",
        counters.list_suspects,
        counters.find_differences,
        counters.correct,
    ),
    _check(
        "group-numbers",
        "The numbers of clients in groups are right",
        "Companies with a wrong number of clients in a group",
        _group_totals.list_suspects,
        _group_totals.find_differences,
        counters.correct_groups,
    ),
)
