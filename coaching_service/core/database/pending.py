"""Storing what a process has collected in memory: again and again, and once more before it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog

from coaching_service.core.background import running_in_background
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Services

_DEADLINE_SECONDS = 1.0
log = structlog.get_logger("coaching_service")
Store = Callable[[Services], Awaitable[None]]


@asynccontextmanager
async def storing(services: Services, store: Store, seconds: float, *, start: asyncio.Event) -> AsyncIterator[None]:
    """Call `store` every so many seconds while the context is open, not before `start`, and once more at its end."""

    async def store_repeatedly() -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await store_now(services, store)
            except Exception:
                log.exception("what was collected is not stored", what=store.__name__)

    async with running_in_background(store_repeatedly, start=start):
        yield
    await store_now(services, store)


async def store_now(services: Services, store: Store) -> None:
    """Call `store`, and log it if the database does not respond: a process that ends must not wait for it."""
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            await store(services)
    except TimeoutError:
        log.warning("what was collected is not stored", what=store.__name__, reason="The database does not respond")
    except Exception as error:
        if (known := as_service_error(error)) is None:
            raise
        log.warning("what was collected is not stored", what=store.__name__, reason=known.message)
