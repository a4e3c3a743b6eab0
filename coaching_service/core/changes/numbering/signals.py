"""Notifies the requests that wait for the next changes of a company, in every process."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import partial

import structlog

from coaching_service.core.background import running_in_background
from coaching_service.core.changes.numbering import store
from coaching_service.core.database.connection import as_service_error
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
            async with store.open_counter_stream(services) as stream:
                signals.notify_all()  # changes may have been numbered before the stream was opened
                while signals.is_needed.is_set():
                    if (company_id := await store.read_next_company(stream)) is not None:
                        signals.notify(company_id)
        except Exception as error:  # noqa: BLE001 - waiting has to survive the loss of the database
            known = as_service_error(error)
            log.warning("waiting for changes is interrupted", reason=known.message if known else repr(error))
            signals.notify_all()
            await asyncio.sleep(_RETRY_SECONDS)
