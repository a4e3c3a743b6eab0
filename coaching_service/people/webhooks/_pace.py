"""How many attempts run at the same time: limits for each webhook and in total, lower for slow receivers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

SLOW_SECONDS = 2.0
_TOTAL = 128


class Slots:
    """Attempts that run at the same time, at most `total` begun here; those that move here later are in addition."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a slot, in turn."""
        if self._free > 0 and not self._waiting:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def take_now(self) -> None:
        """Take a slot even if none is free: others wait until enough are released."""
        self._free -= 1

    def release(self) -> None:
        """Give a slot to the next that waits."""
        self._free += 1
        while self._waiting and self._free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                self._free -= 1
                turn.set_result(None)


class AttemptSlots:
    """The attempts of one process. One that takes two seconds becomes a slow one, and leaves its slot to the others."""

    def __init__(self) -> None:
        self.fast, self.slow = Slots(_TOTAL), Slots(_TOTAL)


class Pace:
    """How a webhook responds: not known at first, quickly, or slowly, which is when an attempt takes two seconds."""

    def __init__(self, slots: AttemptSlots) -> None:
        self._slots = slots
        self.is_slow = False
        self.is_known = False

    @asynccontextmanager
    async def attempting(self) -> AsyncIterator[None]:
        """Run an attempt when there is a slot for it, and measure it."""
        slots = self._slots.slow if self.is_slow else self._slots.fast
        await slots.take()
        loop = asyncio.get_running_loop()
        began = loop.time()

        def become_slow() -> None:
            nonlocal slots
            self.is_slow = self.is_known = True
            if slots is self._slots.fast:
                slots.release()
                slots = self._slots.slow
                slots.take_now()

        alarm = loop.call_later(SLOW_SECONDS, become_slow)
        try:
            yield
        finally:
            alarm.cancel()
            slots.release()
            self.is_slow, self.is_known = loop.time() - began >= SLOW_SECONDS, True


class Lane:
    """Attempts of one kind for one webhook: `limit` at a time, fewer while it is not known to respond quickly."""

    def __init__(self, pace: Pace, limit: int, cautious_limit: int) -> None:
        self._pace, self._limit, self._cautious_limit = pace, limit, cautious_limit
        self._running = 0
        self._has_left = asyncio.Event()

    async def enter(self) -> None:
        """Wait until another attempt may run, and count it."""
        while self._running >= self._current_limit():
            self._has_left.clear()
            await self._has_left.wait()
        self._running += 1

    def leave(self) -> None:
        """Count an attempt that has ended."""
        self._running -= 1
        self._has_left.set()

    def _current_limit(self) -> int:
        return self._limit if self._pace.is_known and not self._pace.is_slow else self._cautious_limit
