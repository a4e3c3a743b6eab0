"""Notifies the requests that wait for the next changes of a company, in every process."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import partial

import structlog

from coaching_service.core.background import running_in_background
from coaching_service.core.changes.numbering import store
from coaching_service.core.changes.numbering.batches import counters
from coaching_service.core.database.connection import allow_seconds, as_service_error
from coaching_service.core.database.context import Services

_RETRY_SECONDS = 1.0
log = structlog.get_logger("coaching_service.changes")


def signalling(services: Services) -> AbstractAsyncContextManager[None]:
    """Notify waiting requests while the context is open; the database is watched only while a request waits."""
    return running_in_background(partial(_follow, services))


async def _follow(services: Services) -> None:
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
