"""The background task that sends deliveries: one process at a time, the holder of a lease.

A delivery is stored before its first attempt, and its result after each: when a process is killed between a response
and the record of it, the next process sends it again.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, suppress

import structlog

from coaching_service.core.auth.secrets import new_token
from coaching_service.core.background import running_in_background
from coaching_service.core.database import leases
from coaching_service.core.database.connection import as_service_error, unreachable
from coaching_service.core.database.context import Services
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import read_backlog
from coaching_service.people.account import suspension
from coaching_service.people.webhooks import store
from coaching_service.people.webhooks._endpoint import Endpoint
from coaching_service.people.webhooks._pace import AttemptSlots

_LEASE_NAME = "webhooks"
_RENEW_SECONDS = 3.0
_RETRY_SECONDS = 1.0
_RELEASE_SECONDS = 1.0
_DEFECT_SECONDS = 30.0
_LIST_SECONDS = 1.0  # between two looks at which webhooks there are
_MAX_COUNT = 10_000  # of pending deliveries that metrics report

log = structlog.get_logger("coaching_service.webhooks")


def delivering(services: Services, *, start: asyncio.Event | None = None) -> AbstractAsyncContextManager[None]:
    """Send deliveries in the background while the context is open; with `start`, not before that event."""
    return running_in_background(Dispatcher(services).run, start=start)


class Dispatcher:
    """Sends the deliveries of all companies while it holds the lease."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._holder = new_token()
        self._slots = AttemptSlots()
        self._endpoints: dict[ObjectId, tuple[Endpoint, asyncio.Task[None]]] = {}
        self._requested: dict[ObjectId, int] = {}
        self._is_failing = False

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            while True:
                try:
                    if await leases.acquire(self._services, _LEASE_NAME, self._holder):
                        await self._deliver()
                except* leases.LeaseLost:
                    log.info("another process sends webhooks")
                except* Exception as errors:  # noqa: BLE001 - the dispatcher has to survive the loss of the database
                    self._report_failure(errors.exceptions[0])
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(_RELEASE_SECONDS):
                    await leases.release(self._services, _LEASE_NAME, self._holder)

    def _report_failure(self, error: BaseException) -> None:
        """Log a failure, only the first until webhooks are sent again."""
        if not self._is_failing:
            self._is_failing = True
            _log_failure(error)

    async def _deliver(self) -> None:
        self._endpoints.clear()
        self._requested.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew_lease())
            while True:
                await self._follow_webhooks(tasks)
                self._is_failing = False
                await asyncio.sleep(_LIST_SECONDS)

    async def _renew_lease(self) -> None:
        """Renew the lease; raises LeaseLost, or Unavailable before it expires, which cancels all attempts."""
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                async with asyncio.timeout(leases.LEASE.total_seconds() - 2 * _RENEW_SECONDS):
                    is_holder = await leases.acquire(self._services, _LEASE_NAME, self._holder)
            except TimeoutError:
                raise unreachable() from None
            if not is_holder:
                raise leases.LeaseLost

    async def _follow_webhooks(self, tasks: asyncio.TaskGroup) -> None:
        """Begin with webhooks that have become active, end with inactive ones, and notify the others.

        Webhooks of suspended companies pause: deliveries and the position in the change log stay as they are.
        """
        suspended = await suspension.list_suspended(self._services)
        active = {
            webhook["_id"]: webhook
            for webhook in await store.list_active(self._services)
            if webhook["companyId"] not in suspended
        }
        for webhook_id, (endpoint, task) in list(self._endpoints.items()):
            if webhook_id not in active or task.done():
                task.cancel()
                del self._endpoints[webhook_id]
            elif active[webhook_id]["requested"] != self._requested[webhook_id]:
                endpoint.look_again()
        for webhook_id, webhook in active.items():
            if webhook_id not in self._endpoints:
                endpoint = Endpoint(self._services, webhook["companyId"], webhook_id, self._slots)
                self._endpoints[webhook_id] = endpoint, tasks.create_task(_run(endpoint))
            self._requested[webhook_id] = webhook["requested"]


async def _run(endpoint: Endpoint) -> None:
    """Run until cancelled or failed: then the dispatcher starts it again, after a defect not at once."""
    try:
        await endpoint.run()
    except* NotFound:  # the webhook is no longer active, or the company is deleted
        pass
    except* Exception as errors:  # noqa: BLE001 - the others go on
        if not _log_failure(errors.exceptions[0]):
            await asyncio.sleep(_DEFECT_SECONDS)


def _log_failure(error: BaseException) -> bool:
    """Log why nothing is sent; returns whether the reason is known, and passes."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    known = as_service_error(error) if isinstance(error, Exception) else None
    if known is None:
        log.error("webhooks are not sent", exc_info=error)
    else:
        log.warning("webhooks are not sent at the moment", reason=known.message)
    return known is not None


async def read_metrics(services: Services) -> None:
    """Read the pending deliveries of the active webhooks of all companies, at most 10,000.

    They are not a number while the database does not respond.
    """
    metrics, pending = services.metrics, store.find_pending(services, _MAX_COUNT)
    await read_backlog(pending, metrics.deliveries_pending, metrics.oldest_delivery_seconds, "webhook deliveries")
