"""How often each company has planned each exercise: counted in memory, and stored every second.

The counts only order search results. As part of a transaction they would make two coaches conflict who plan the same
exercise at the same time, and a write for each item would cost as much as two reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial

from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import store
from coaching_service.people import account as companies


def count(ctx: Context, exercise_ids: Iterable[ObjectId]) -> None:
    """Count one more use of each exercise once the transaction is committed: it moves up in search results."""
    ctx.changes.after_commit.append(partial(ctx.services.exercise_uses.add, ctx.company_id, list(set(exercise_ids))))


async def load_use_counts(ctx: Context) -> dict[ObjectId, int]:
    """Return how often the company has planned each exercise that it uses.

    Other processes are a second behind. Uses that are being stored at this moment may count twice, but are not missing.
    """
    pending = Counter(ctx.services.exercise_uses.of(ctx.company_id))
    return pending + Counter(await store.find_uses(ctx))


async def store_counts(services: Services) -> None:
    """Store what has been counted since the last time, except of companies that have been deleted meanwhile.

    What cannot be stored is lost.
    """
    if not (counted := services.exercise_uses.take()):
        return
    try:
        existing = await companies.find_existing(services, list(counted))
        await store.add_uses(services, {company: counted[company] for company in existing})
    finally:
        services.exercise_uses.end_storing()
