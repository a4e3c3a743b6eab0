"""The background tasks that number changes, and notify the requests that wait for the next ones, in every process.

One process at a time, the holder of a lease, follows the change stream of the collection. It numbers a batch of
changes, stores its position in the stream and renews the lease in one transaction, so that a process that is killed,
or that has lost its lease without noticing, leaves nothing missing and numbers nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, TypeVar

import structlog

from coaching_service.core.auth.secrets import new_token
from coaching_service.core.background import running_in_background
from coaching_service.core.changes.numbering import store
from coaching_service.core.changes.numbering.batches import counters
from coaching_service.core.changes.numbering.models import NewChange, Start
from coaching_service.core.changes.numbering.reading import ChangeReader
from coaching_service.core.database.connection import allow_seconds, as_service_error
from coaching_service.core.database.context import Services
from coaching_service.core.metrics import Backlog

_RENEW_SECONDS = 3.0
_INTERVAL_SECONDS = 0.05
_LONG_INTERVAL_SECONDS = 0.2
_FEW = 4
_RETRY_SECONDS = 1.0
_RELEASE_SECONDS = 1.0

T = TypeVar("T")
log = structlog.get_logger("coaching_service.changes")


def sequencing(services: Services, *, start: asyncio.Event | None = None) -> AbstractAsyncContextManager[None]:
    """Number changes in the background while the context is open; with `start`, not before that event."""
    return running_in_background(Sequencer(services).run, start=start)


async def is_running(services: Services) -> bool:
    """Return whether a process of the service numbers changes, or was killed less than ten seconds ago."""
    return await store.is_leased(services)


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
                    if await self._completed(store.acquire_lease(self._services, self._holder)):
                        await self._follow()
                except store.LeaseLost:
                    log.info("another process numbers the changes")
                except Exception as error:  # noqa: BLE001 - the sequencer has to survive the loss of the database
                    await self._handle(error)
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
        await store.release_lease(self._services, self._holder)

    async def _handle(self, error: Exception) -> None:
        """Report a failure, only the first until changes are numbered again."""
        if isinstance(error, store.StreamEnded):
            log.warning("the collection of changes has been dropped or renamed")
            with suppress(Exception):  # then the same happens again
                await store.forget_position(self._services, self._holder)
        elif not self._is_failing:
            self._is_failing = True
            _log_failure(error)

    def _report_success(self) -> None:
        if self._is_failing:
            self._is_failing = False
            log.info("changes are numbered again")

    async def _follow(self) -> None:
        """Number changes as they are committed, until the lease is lost or the database fails."""
        position = await store.read_position(self._services)
        if position is not None and not await store.can_resume(self._services, position):
            log.warning("the database no longer has all changes since the last one numbered; searching for the others")
            position = None
        if position is not None:
            await self._number_from({"resume_after": position})
            return
        now = await store.current_time(self._services)
        while pending := await self._find_pending():
            for first in range(0, len(pending), store.BATCH):
                batch = pending[first : first + store.BATCH]
                await self._completed(store.number(self._services, self._holder, batch, None))
        await store.finish_search(self._services, self._holder, now)
        await self._number_from(now)

    async def _find_pending(self) -> list[NewChange]:
        """Search for changes without a number; the lease is renewed meanwhile."""
        search = asyncio.create_task(store.find_pending(self._services))
        try:
            while not (await asyncio.wait([search], timeout=_RENEW_SECONDS))[0]:
                await self._completed(store.number(self._services, self._holder, [], None))
            return await search
        finally:
            search.cancel()

    async def _number_from(self, start: Start) -> None:
        """Number the changes that a stream returns, as many at a time as there are.

        After a batch the next one waits, longer while changes are frequent: one transaction then serves many of them.
        """
        clock = asyncio.get_running_loop().time
        renewed = clock()
        async with ChangeReader(self._services, start) as reader:
            while True:
                received = await reader.take()
                batch = [change for change, _ in received if change is not None]
                if not batch and clock() - renewed <= _RENEW_SECONDS:
                    continue
                began = clock()
                _, position = received[-1]
                await self._completed(store.number(self._services, self._holder, batch, position))
                self._report_success()
                renewed = clock()
                if batch:
                    interval = _INTERVAL_SECONDS if len(batch) <= _FEW else _LONG_INTERVAL_SECONDS
                    await asyncio.sleep(interval - (renewed - began))


def _log_failure(error: Exception) -> None:
    if (known := as_service_error(error)) is None:
        log.error("changes are not numbered", exc_info=error)
    else:
        log.warning("changes are not numbered at the moment", reason=known.message)


# --- notifying -------------------------------------------------------------------------------------------------------


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
