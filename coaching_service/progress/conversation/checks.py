"""Checks of the numbers of unread messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Context, Services, in_transaction, reading_snapshot
from coaching_service.core.ids import ObjectId
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
        await in_transaction(Context(services), partial(_count_again, ids=wrong[start : start + _BATCH]))


async def _count_again(ctx: Context, ids: Sequence[ObjectId]) -> None:
    conversations = store.conversations.across_companies(ctx.services)
    for wrong in await store.find_wrong_counts(ctx.services, ids, ctx.session):
        change = {"$set": {"unread": wrong["actual"], "isUnread": wrong["actual"]["company"] > 0}}
        await conversations.update_one({"_id": wrong["_id"]}, change, session=ctx.session)


CHECKS = (Check("unread-messages", "The numbers of unread messages are right", find_wrong_counts, correct_counts),)
