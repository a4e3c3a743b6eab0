"""Running background work as long as the service, or a test, needs it, and tasks that outlive their callers."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from coaching_service.core.ids import ObjectId


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


# --- Counts that are collected in memory and stored together, for statistics that may be lost -------------------------


class PendingCounts:
    """How often something of a company was used since the counts were stored; for any thread."""

    def __init__(self) -> None:
        self._counts: dict[ObjectId, Counter[ObjectId]] = {}
        self._taken: dict[ObjectId, Counter[ObjectId]] = {}
        self._lock = threading.Lock()

    def add(self, company_id: ObjectId, ids: Iterable[ObjectId]) -> None:
        """Count one more use of each."""
        with self._lock:
            self._counts.setdefault(company_id, Counter()).update(ids)

    def of(self, company_id: ObjectId) -> Mapping[ObjectId, int]:
        """Return the counts of a company that are not stored yet, or are being stored."""
        with self._lock:
            return self._counts.get(company_id, Counter()) + self._taken.get(company_id, Counter())

    def take(self) -> Mapping[ObjectId, Mapping[ObjectId, int]]:
        """Return the counts of all companies to store them, and begin again with none; `end_storing` forgets them."""
        with self._lock:
            self._taken, self._counts = self._counts, {}
            return self._taken

    def end_storing(self) -> None:
        """Forget the counts that were taken: they are stored, or lost."""
        with self._lock:
            self._taken = {}


class PendingEntries:
    """Documents with a `count` that are collected in memory and stored together, each by a key; for any thread."""

    MOST = 100_000

    def __init__(self) -> None:
        self._entries: dict[Hashable, Any] = {}
        self._lock = threading.Lock()
        self.storing = asyncio.Lock()  # who stores what is left waits for what is being stored

    def count(self, key: Hashable, make: Callable[[], Any]) -> None:
        """Add 1 to the count of a document; `make` returns a new one, whose count is 1."""
        with self._lock:
            if (entry := self._entries.get(key)) is not None:
                entry["count"] += 1
            elif len(self._entries) < self.MOST:
                self._entries[key] = make()

    def take(self) -> dict[Hashable, Any]:
        """Return the documents, and begin again with none."""
        with self._lock:
            taken, self._entries = self._entries, {}
            return taken

    def put_back(self, entries: Mapping[Hashable, Any]) -> None:
        """Collect documents again that could not be stored."""
        with self._lock:
            for key, entry in entries.items():
                if (newer := self._entries.get(key)) is not None:
                    entry["count"] += newer["count"]
                self._entries[key] = entry
