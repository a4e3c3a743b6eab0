"""Reading the stream of new changes on a thread of its own, on which a change costs no switch of threads."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from threading import BoundedSemaphore, Event, Thread

from coaching_service.core.changes.numbering import store
from coaching_service.core.changes.numbering.models import NewChange, Position, Start
from coaching_service.core.database.context import Services

_MAX_UNREAD = 2 * store.BATCH
_CHECK_SECONDS = 1.0
# After a change the reader waits, so that the next round trip returns all changes of that time: longer while they are
# frequent, and not at all if a round trip returned many.
_PAUSE_SECONDS = 0.04
_LONG_PAUSE_SECONDS = 0.15
_READING_SECONDS = 0.005
_FEW, _MANY = 4, 100

# A change, or None after a second without one, and the position in the stream after it.
Received = tuple[NewChange | None, Position | None]


class ChangeReader:
    """Reads new changes ahead, two batches at most, while it is open as an asynchronous context."""

    def __init__(self, services: Services, start: Start) -> None:
        self._services, self._start = services, start
        self._loop = asyncio.get_running_loop()
        self._received: deque[Received] = deque()
        self._room = BoundedSemaphore(_MAX_UNREAD)
        self._available = asyncio.Event()
        self._is_ended = Event()
        self._failure: Exception | None = None
        self._read_since = 0.0
        self._read_count = 0

    async def __aenter__(self) -> ChangeReader:
        # A daemon, as the process does not wait for the database when it ends.
        Thread(target=self._read, name="changes", daemon=True).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_ended.set()

    async def take(self) -> list[Received]:
        """Return what has been received, at most a batch; waits for the first. Raises what `store.follow` raises."""
        while not self._received:
            if self._failure is not None:
                raise self._failure
            self._available.clear()
            await self._available.wait()
        taken = [self._received.popleft() for _ in range(min(len(self._received), store.BATCH))]
        self._room.release(len(taken))
        return taken

    def _read(self) -> None:
        try:
            store.follow(self._services, self._start, self._deliver, self._is_ended.is_set)
        except Exception as error:  # noqa: BLE001 - raised by `take`
            self._failure = error
        self._wake()

    def _deliver(self, change: NewChange | None, position: Position | None) -> None:
        while not self._room.acquire(timeout=_CHECK_SECONDS):
            if self._is_ended.is_set():
                return
        self._received.append((change, position))
        self._wake()
        if change is not None:
            self._pause()

    def _pause(self) -> None:
        """Wait if changes have been read for some milliseconds, and they were few."""
        self._read_count += 1
        if time.monotonic() - self._read_since < _READING_SECONDS:
            return
        if self._read_count < _MANY:
            time.sleep(_PAUSE_SECONDS if self._read_count <= _FEW else _LONG_PAUSE_SECONDS)
        self._read_since, self._read_count = time.monotonic(), 0

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(self._available.set)
