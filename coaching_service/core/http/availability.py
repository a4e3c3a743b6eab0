"""When the service accepts requests: not while it starts, and not more than it can process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Literal

from aiohttp import web
from aiohttp.typedefs import Middleware

from coaching_service.core.errors import Unavailable
from coaching_service.core.metrics import Metrics, QueueMetrics

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_ALWAYS_AVAILABLE = ("/healthz", "/metrics")


class Availability:
    """Whether the service starts, accepts requests or stops.

    `message` is the reason in 503 responses while it starts; `ready` is set once it accepts requests.
    """

    def __init__(self, state: Literal["starting", "ready"] = "ready") -> None:
        self.ready = asyncio.Event()
        self.message = "The service is starting"
        self._is_stopping = False
        if state == "ready":
            self.ready.set()

    def stop(self) -> None:
        """Report that the service stops, so that load balancers send requests elsewhere; it still responds."""
        self._is_stopping = True

    def middleware(self) -> Middleware:
        """The middleware that responds 503 to all but health checks while the service starts, and to /readyz while
        it stops."""

        @web.middleware
        async def check_availability(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not self.ready.is_set() and request.path not in _ALWAYS_AVAILABLE:
                raise Unavailable(self.message)
            if self._is_stopping and request.path == "/readyz":
                raise Unavailable("The service is stopping")
            return await handler(request)

        return check_availability


class RequestSlots(asyncio.Semaphore):
    """A semaphore for one class of requests whose queue is limited in length and time.

    `running` requests hold it at once, `queued` others wait, none of them longer than `seconds`. `acquire` raises
    Unavailable for the rest, so that callers learn early that the service is overloaded. `metrics` are those to
    report to.
    """

    def __init__(self, running: int, queued: int, seconds: float, metrics: QueueMetrics | None = None) -> None:
        super().__init__(running)
        self._max_queued, self._seconds = queued, seconds
        self._metrics = metrics or Metrics().queue("database")
        self._queued = 0

    @asynccontextmanager
    async def holding(self, waited: float) -> AsyncIterator[None]:
        """Hold a slot during the block; `waited` is as in `acquire`."""
        await self.acquire(waited)
        try:
            yield
        finally:
            self.release()

    async def acquire(self, waited: float = 0.0) -> Literal[True]:
        """Wait for a slot. `waited`: the seconds that the request has waited before, which count.

        Raises Unavailable if the queue is full or the wait too long.
        """
        if not self.locked():
            self._metrics.seconds.observe(0)
            return await super().acquire()
        if self._queued >= self._max_queued:
            self._metrics.full.inc()
            raise _overloaded()
        self._queued += 1
        try:
            with self._metrics.waiting.track_inprogress(), self._metrics.seconds.time():
                async with asyncio.timeout(self._seconds - waited):
                    return await super().acquire()
        except TimeoutError:
            self._metrics.timed_out.inc()
            raise _overloaded() from None
        finally:
            self._queued -= 1


def _overloaded() -> Unavailable:
    return Unavailable("The service is busy; try again shortly")
