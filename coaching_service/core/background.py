"""Running background work as long as the service, or a test, needs it, and tasks that outlive their callers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any


@asynccontextmanager
async def running_in_background(
    work: Callable[[], Awaitable[None]], *, start: asyncio.Event | None = None
) -> AsyncIterator[None]:
    """Run `work` in a task while the context is open, then cancel it; with `start`, not before that event."""

    async def run() -> None:
        if start is not None:
            await start.wait()
        await work()

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def retrieve_failure(task: asyncio.Future[Any]) -> None:
    """Retrieve the exception of a task that may have no caller any more, so that it is not logged as forgotten."""
    if not task.cancelled():
        task.exception()
