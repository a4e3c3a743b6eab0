"""Waking those who wait for new changes of a company."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coaching_service.core.ids import ObjectId


class CompanySignals:
    """Who waits for which company; `is_needed` is set while anyone waits."""

    def __init__(self) -> None:
        self._waiting: defaultdict[ObjectId, set[asyncio.Event]] = defaultdict(set)
        self.is_needed = asyncio.Event()

    @asynccontextmanager
    async def listen(self, company_id: ObjectId) -> AsyncIterator[asyncio.Event]:
        """An event that is set when there may be something new for a company; its user clears it."""
        event = asyncio.Event()
        self._waiting[company_id].add(event)
        self.is_needed.set()
        try:
            yield event
        finally:
            self._waiting[company_id].discard(event)
            if not self._waiting[company_id]:
                del self._waiting[company_id]
            if not self._waiting:
                self.is_needed.clear()

    def wake(self, company_id: ObjectId) -> None:
        """Wake those who wait for a company."""
        for event in self._waiting.get(company_id, ()):
            event.set()

    def wake_all(self) -> None:
        """Wake everyone who waits."""
        for company_id in list(self._waiting):
            self.wake(company_id)
