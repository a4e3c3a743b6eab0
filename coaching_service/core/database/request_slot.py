"""The slot in which a request uses the database, released before a wait for the caches of processes."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from coaching_service.core.database.context import Context
from coaching_service.core.slots import RequestSlots

if TYPE_CHECKING:
    from types import TracebackType


class RequestSlot(AbstractAsyncContextManager[None]):
    """Holds one of `slots` for the caller of `ctx`, who has waited for `waited` seconds before.

    A request that has changed what processes cache waits at the end, without the slot (see CacheWait). This is a class
    because a generator would cost each request more time. Raises Unavailable if the queue is full or the wait too long.
    """

    __slots__ = ("_ctx", "_holding")

    def __init__(self, slots: RequestSlots, ctx: Context, waited: float = 0.0) -> None:
        self._ctx, self._holding = ctx, slots.holding(ctx.slot_holder, waited)

    async def __aenter__(self) -> None:
        """Wait for the slot."""
        await self._holding.__aenter__()
        self._ctx.cache_wait.is_deferred = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release the slot, and wait unless the request is cancelled."""
        await self._holding.__aexit__(kind, error, traceback)
        if kind is None or not issubclass(kind, asyncio.CancelledError):
            await self._ctx.cache_wait.end()
