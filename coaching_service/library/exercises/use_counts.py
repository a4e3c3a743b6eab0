"""How often each company has planned each exercise: counted in memory, and stored every second.

The counts only order search results. As part of a transaction they would make two coaches conflict who plan the same
exercise at the same time, and a write for each item would cost as much as two reads.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial

import structlog

from coaching_service.core.background import running_in_background
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import store
from coaching_service.people.account import service as companies

_SECONDS = 1.0
log = structlog.get_logger("coaching_service")


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

    When the database does not respond within a second, the counts are lost: a process that ends must not wait for it.
    """
    if not (counted := services.exercise_uses.take()):
        return
    try:
        async with asyncio.timeout(_SECONDS):
            existing = await companies.find_existing(services, list(counted))
            await store.add_uses(services, {company: counted[company] for company in existing})
    except TimeoutError:
        log.warning("uses of exercises not stored", reason="The database does not respond")
    except Exception as error:
        if (known := as_service_error(error)) is None:
            raise
        log.warning("uses of exercises not stored", reason=known.message)
    finally:
        services.exercise_uses.end_storing()


@asynccontextmanager
async def storing(services: Services, *, start: asyncio.Event) -> AsyncIterator[None]:
    """Store the counts every second while the context is open, and once more at its end; not before `start`."""
    async with running_in_background(lambda: _store_repeatedly(services), start=start):
        yield
    await store_counts(services)


async def _store_repeatedly(services: Services) -> None:
    while True:
        await asyncio.sleep(_SECONDS)
        try:
            await store_counts(services)
        except Exception:
            log.exception("uses of exercises not stored")
