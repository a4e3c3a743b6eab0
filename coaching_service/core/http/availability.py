"""When the service accepts requests: not while it starts."""

from __future__ import annotations

import asyncio
from typing import Literal

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from coaching_service.core.errors import Unavailable

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
        """Return the middleware that responds 503 to all but health checks while the service starts, and to /readyz
        while it stops."""

        @web.middleware
        async def check_availability(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not self.ready.is_set() and request.path not in _ALWAYS_AVAILABLE:
                raise Unavailable(self.message)
            if self._is_stopping and request.path == "/readyz":
                raise Unavailable("The service is stopping")
            return await handler(request)

        return check_availability
