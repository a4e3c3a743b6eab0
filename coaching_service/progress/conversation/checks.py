"""Checks of the numbers of unread messages."""

from __future__ import annotations

from collections.abc import AsyncIterator

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.core.database.transactions import reading_snapshot
from coaching_service.progress.conversation import store

_BATCH = 100


async def find_wrong_counts(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find conversations that store other numbers of unread messages than there are."""
    occurrences = Occurrences()
    suspects = [wrong["_id"] for wrong in await store.find_wrong_counts(services)]
    for start in range(0, len(suspects), _BATCH):
        async with reading_snapshot(services) as session:
            for wrong in await store.find_wrong_counts(services, suspects[start : start + _BATCH], session):
                occurrences.add(wrong["_id"])
                count_read(1)
    yield occurrences.finding("Conversations with a wrong number of unread messages", "Run doctor --repair")


async def correct_counts(services: Services) -> None:
    """Count the unread messages of these conversations again."""
    wrong = [each["_id"] for each in await store.find_wrong_counts(services)]
    for start in range(0, len(wrong), _BATCH):
        await store.correct_counts(services, wrong[start : start + _BATCH])


CHECKS = (Check("unread-messages", "The numbers of unread messages are right", find_wrong_counts, correct_counts),)
