"""Notifying the requests that wait for new changes of a company."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from coaching_service.core.ids import ObjectId


class Listener:
    """A request that waits. `event` is set when there may be something new; `is_ended` when waiting is over."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.is_ended = False

    async def wait(self, seconds: float) -> bool:
        """Wait until there may be something new, at most `seconds`; returns whether there may be."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.event.wait()
        return self.event.is_set() and not self.is_ended


class CompanySignals:
    """Which requests wait for which company; `is_needed` is set while any request waits."""

    def __init__(self) -> None:
        self._waiting: defaultdict[ObjectId, set[Listener]] = defaultdict(set)
        self.is_needed = asyncio.Event()

    @asynccontextmanager
    async def listen(self, company_id: ObjectId) -> AsyncIterator[Listener]:
        """Listen for new changes of a company; the caller clears the event of the listener."""
        listener = Listener()
        self._waiting[company_id].add(listener)
        self.is_needed.set()
        try:
            yield listener
        finally:
            self._waiting[company_id].discard(listener)
            if not self._waiting[company_id]:
                del self._waiting[company_id]
            if not self._waiting:
                self.is_needed.clear()

    def count(self, company_id: ObjectId) -> int:
        """How many requests wait for a company."""
        return len(self._waiting.get(company_id, ()))

    def notify(self, company_id: ObjectId) -> None:
        """Notify the requests that wait for a company."""
        for listener in self._waiting.get(company_id, ()):
            listener.event.set()

    def notify_all(self) -> None:
        """Notify all waiting requests."""
        for company_id in list(self._waiting):
            self.notify(company_id)

    def end_waiting(self) -> None:
        """Stop all waiting requests, because the service stops."""
        for listeners in self._waiting.values():
            for listener in listeners:
                listener.is_ended = True
        self.notify_all()
