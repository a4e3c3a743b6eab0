"""The background tasks that number changes, and notify the requests that wait for the next ones, in every process.

One process at a time, the holder of a lease, reads the changes without a number by their index. It numbers a batch of
them and renews the lease in one transaction, so that a process that is killed, or that has lost its lease without
noticing, leaves nothing missing and numbers nothing twice. What wakes it, a stream or a timer, has no position.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import structlog

from coaching_service.core.auth import new_token
from coaching_service.core.background import running_in_background
from coaching_service.core.changes.numbering import store
from coaching_service.core.changes.numbering.batches import counters
from coaching_service.core.database import across_companies
from coaching_service.core.database.connection import allow_seconds, as_service_error
from coaching_service.core.database.context import Services
from coaching_service.core.metrics import Backlog

_RENEW_SECONDS = 3.0
_INTERVAL_SECONDS = 0.05
_LONG_INTERVAL_SECONDS = 0.2
_FEW = 4
# After a change the stream is not read for a moment, so that the next round trip returns all changes of that time.
_PAUSE_SECONDS = 0.04
_READING_SECONDS = 0.005
_RETRY_SECONDS = 1.0
_RELEASE_SECONDS = 1.0

T = TypeVar("T")
log = structlog.get_logger("coaching_service.changes")


def sequencing(services: Services, *, start: asyncio.Event | None = None) -> AbstractAsyncContextManager[None]:
    """Number changes in the background while the context is open; with `start`, not before that event."""
    return running_in_background(Sequencer(services).run, start=start)


async def is_running(services: Services) -> bool:
    """Return whether a process of the service numbers changes, or was killed less than ten seconds ago."""
    return await across_companies.is_held(services, store.LEASE)


async def count_pending(services: Services, limit: int) -> Backlog:
    """Count the changes that have no number yet, at most `limit`, and find the age of the oldest."""
    return await store.count_pending(services, limit)


class Sequencer:
    """Numbers changes while it holds the lease."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._holder = new_token()
        self._is_failing = False
        self._operation: asyncio.Future[Any] | None = None

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            while True:
                try:
                    if await self._completed(across_companies.acquire(self._services, store.LEASE, self._holder)):
                        await self._number()
                except across_companies.LeaseLost:
                    log.info("another process numbers the changes")
                except Exception as error:  # noqa: BLE001 - the sequencer has to survive the loss of the database
                    if not self._is_failing:
                        self._is_failing = True
                        _log_failure(error)
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(_RELEASE_SECONDS):
                    await self._release()

    async def _completed(self, operation: Coroutine[Any, Any, T]) -> T:
        """Return the result of an operation that takes or renews the lease; it continues if its caller is cancelled."""
        self._operation = asyncio.ensure_future(operation)
        return await asyncio.shield(self._operation)

    async def _release(self) -> None:
        """Release the lease, once nothing takes or renews it any more."""
        if self._operation is not None:
            await asyncio.wait([self._operation])
        await across_companies.release(self._services, store.LEASE, self._holder)

    async def _number(self) -> None:
        """Number what is pending whenever a stream or the timer wakes it, until the lease or the database is lost.

        After a batch the next one waits, longer while changes are frequent: one transaction then serves many of them.
        """
        clock = asyncio.get_running_loop().time
        async with _waking(self._services) as is_woken:
            while True:
                is_woken.clear()
                began = clock()
                count = await self._completed(store.number(self._services, self._holder))
                if self._is_failing:
                    self._is_failing = False
                    log.info("changes are numbered again")
                if count == store.BATCH:
                    continue
                if count:
                    interval = _INTERVAL_SECONDS if count <= _FEW else _LONG_INTERVAL_SECONDS
                    await asyncio.sleep(interval - (clock() - began))
                with suppress(TimeoutError):
                    async with asyncio.timeout(_RENEW_SECONDS):
                        await is_woken.wait()


@asynccontextmanager
async def _waking(services: Services) -> AsyncIterator[asyncio.Event]:
    """Set the event whenever there may be new changes to number, while the context is open.

    They are followed on a thread, a daemon: the process does not wait for the database when it ends.
    """
    is_woken, is_ended, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()
    rested = 0.0

    def wake() -> None:
        """Wake up, and pause if changes have been read for some milliseconds: the next round trip returns many."""
        nonlocal rested
        if not is_woken.is_set():
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(is_woken.set)
        if time.monotonic() - rested > _READING_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            rested = time.monotonic()

    def watch() -> None:
        while not is_ended.is_set():
            with suppress(Exception):  # whatever ends the stream, the changes are found by their index meanwhile
                store.watch_new_changes(services, wake, is_ended.is_set)
            is_ended.wait(_RETRY_SECONDS)
            wake()

    threading.Thread(target=watch, name="changes", daemon=True).start()
    try:
        yield is_woken
    finally:
        is_ended.set()


def _log_failure(error: Exception) -> None:
    if (known := as_service_error(error)) is None:
        log.error("changes are not numbered", exc_info=error)
    else:
        log.warning("changes are not numbered at the moment", reason=known.message)


# --- Notifying -------------------------------------------------------------------------------------------------------


def signalling(services: Services) -> AbstractAsyncContextManager[None]:
    """Notify waiting requests while the context is open; the database is watched only while a request waits."""
    return running_in_background(partial(_signal, services))


async def _signal(services: Services) -> None:
    signals = services.number_signals
    while True:
        await signals.is_needed.wait()
        try:
            await _watch(services)
        except Exception as error:  # noqa: BLE001 - waiting has to survive the loss of the database
            known = as_service_error(error)
            log.warning("waiting for changes is interrupted", reason=known.message if known else repr(error))
            signals.notify_all()
            await asyncio.sleep(_RETRY_SECONDS)


async def _watch(services: Services) -> None:
    """Notify the requests of companies whose changes have been numbered, while any request waits."""
    signals, counted = services.number_signals, counters.across_companies(services)
    async with counted.watch([{"$project": {"documentKey": 1}}], max_await_time_ms=store.WAIT_MS) as stream:
        signals.notify_all()  # changes may have been numbered before the stream was opened
        while signals.is_needed.is_set():
            with allow_seconds(store.READ_SECONDS):
                event = await stream.try_next()
            if event is not None:
                signals.notify(event["documentKey"]["_id"])
            elif not stream.alive:
                raise store.StreamEnded
