"""Checks of the stored totals of workout blocks."""

from __future__ import annotations

from collections.abc import AsyncIterator

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.training.workouts.blocks import _stale_totals as totals_store


async def find_wrong_totals(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find blocks whose stored totals of sets, repetitions and volume differ from their items."""
    occurrences = Occurrences()
    async for block_id in totals_store.iterate_wrong(services, {}):
        occurrences.add(block_id)
        count_read(1)
    for finding in occurrences.finding(
        "Workouts with wrong totals", "Run doctor --repair; until then reports are wrong"
    ):
        yield finding


async def correct_totals(services: Services) -> None:
    """Compute the totals of these blocks again."""
    async for block_id in totals_store.iterate_wrong(services, {}):
        await totals_store.correct(services, block_id)


CHECKS = (Check("workout-totals", "The totals of workouts are right", find_wrong_totals, correct_totals),)
