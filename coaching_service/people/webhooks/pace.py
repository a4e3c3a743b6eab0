"""How many attempts run at the same time: limits for each webhook and in total, lower for those that respond slowly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SLOW_SECONDS = 2.0
_TOTAL = 128


@dataclass(frozen=True)
class AttemptSlots:
    """The attempts of one process that run at the same time: slow webhooks do not take the slots of the others."""

    fast: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_TOTAL))
    slow: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_TOTAL))


class Pace:
    """Whether a webhook is slow: its last attempt took two seconds or longer, or the current one does."""

    def __init__(self, slots: AttemptSlots) -> None:
        self._slots = slots
        self.is_slow = False

    @asynccontextmanager
    async def attempting(self) -> AsyncIterator[None]:
        """Run an attempt when there is a slot for it, and measure it."""
        async with self._slots.slow if self.is_slow else self._slots.fast:
            loop = asyncio.get_running_loop()
            began, alarm = loop.time(), loop.call_later(SLOW_SECONDS, self._set_slow)
            try:
                yield
            finally:
                alarm.cancel()
                self.is_slow = loop.time() - began >= SLOW_SECONDS

    def _set_slow(self) -> None:
        self.is_slow = True


class Lane:
    """Attempts of one kind for one webhook: at most `limit` at the same time, `slow_limit` while it is slow."""

    def __init__(self, pace: Pace, limit: int, slow_limit: int) -> None:
        self._pace, self._limit, self._slow_limit = pace, limit, slow_limit
        self._running = 0
        self._is_free = asyncio.Event()

    async def enter(self) -> None:
        """Wait until another attempt may run, and count it."""
        while self._running >= (self._slow_limit if self._pace.is_slow else self._limit):
            self._is_free.clear()
            await self._is_free.wait()
        self._running += 1

    def leave(self) -> None:
        """Count an attempt that has ended."""
        self._running -= 1
        self._is_free.set()
