"""The HTTP server below the application.

Errors it raises by itself have the service's error shape and never repeat parts of the request (aiohttp's own error
pages quote the offending line, including credentials).
"""

from __future__ import annotations

import asyncio
import resource
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import structlog
from aiohttp import HttpVersion10, HttpVersion11, hdrs, web
from aiohttp.http_exceptions import BadHttpMethod, LineTooLong
from aiohttp.typedefs import Handler, Middleware
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_runner import AppRunner

from coaching_service.core.budgets import Budget
from coaching_service.core.database.connection import Interruption
from coaching_service.core.database.context import Services
from coaching_service.core.errors import Unavailable
from coaching_service.core.http.responses import to_json

# --- Limits of HTTP connections: how many, how long for request headers, and the file descriptors they need -----------


log = structlog.get_logger("coaching_service")

_MAX_DESCRIPTORS = 65_536
_RESERVED_DESCRIPTORS = 128  # for the database, temporary files and the media worker; also in the rule DescriptorsLow
_WARNING_SHARE, _CALM_SHARE = 0.8, 0.7


@dataclass
class ConnectionLimits:
    """The connections of one server, and their limits.

    `maximum`: open connections in total. `per_address`: open connections of one network address, None for no limit
    (behind a proxy all of them share one). `header_seconds`: time for the headers of a request.
    `keepalive_seconds`: time a connection may be idle between requests.
    """

    maximum: int = 4000
    per_address: int | None = 256
    header_seconds: float = 10.0
    keepalive_seconds: float = 75.0
    _addresses: Counter[str] = field(default_factory=Counter, init=False)
    _open: int = field(default=0, init=False)
    _has_warned: bool = field(default=False, init=False)

    def admit(self, address: str) -> bool:
        """Count a new connection and return True, or return False if a limit is reached."""
        if self._open >= self.maximum or (
            self.per_address is not None and self._addresses[address] >= self.per_address
        ):
            return False
        self._open += 1
        self._addresses[address] += 1
        self._warn_when_nearly_full()
        return True

    def release(self, address: str) -> None:
        """Count an admitted connection as closed."""
        self._open -= 1
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]
        if self._open < self.maximum * _CALM_SHARE:
            self._has_warned = False

    def _warn_when_nearly_full(self) -> None:
        if not self._has_warned and self._open >= self.maximum * _WARNING_SHARE:
            self._has_warned = True
            log.warning("connections near their limit", open=self._open, maximum=self.maximum)


def raise_descriptor_limit(connections: int) -> int:
    """Raise the soft limit of open files as far as allowed, and return how many connections fit into it.

    Logs a warning if fewer than `connections` fit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    available = connections if soft == resource.RLIM_INFINITY else max(1, soft - _RESERVED_DESCRIPTORS)
    if available < connections:
        log.warning("the limit of open files is below MAX_CONNECTIONS", open_files=soft, max_connections=connections)
    return min(available, connections)


# Of requests that never reach the application.
PROTOCOL_ERRORS: dict[int, dict[str, str]] = {
    400: {"message": "The request is not valid HTTP", "error": "Bad Request", "code": "MALFORMED_HTTP"},
    414: {"message": "The address must not be longer than 8 kB", "error": "URI Too Long", "code": "URI_TOO_LONG"},
    417: {"message": "The expectation cannot be met", "error": "Expectation Failed", "code": "EXPECTATION_FAILED"},
    500: {"message": "Internal server error", "error": "Internal Server Error"},
    501: {"message": "The method is not supported", "error": "Not Implemented"},
    503: {"message": "Too many connections; try again shortly", "error": "Service Unavailable", "code": "UNAVAILABLE"},
}
_MAX_ADDRESS_BYTES = 8190
_MAX_HEADER_BYTES = _MAX_ADDRESS_BYTES + 1  # so that the error says which of both is too long
_READS = ("GET", "HEAD")
_VERSIONS = (HttpVersion10, HttpVersion11)
_RETRY_SECONDS = 10
_CLOSING_CHECK_SECONDS = 0.02


def protocol_error(status: int) -> web.Response:
    """Return the response to a request that never reached the application."""
    status = status if status in PROTOCOL_ERRORS else 500
    return web.Response(status=status, body=_error_body(status), headers=_error_headers())


def _error_body(status: int) -> bytes:
    return to_json({"statusCode": status, **PROTOCOL_ERRORS[status]})


def _error_headers() -> dict[str, str]:
    return {
        "Content-Type": "application/json; charset=utf-8",
        "X-Request-Id": uuid.uuid4().hex,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "Server": "coaching-service",
    }


def _refusal() -> bytes:
    """Return the 503 of a connection that no request is read from."""
    body = _error_body(503)
    headers = _error_headers() | {
        "Retry-After": str(_RETRY_SECONDS),
        "Connection": "close",
        "Content-Length": str(len(body)),
    }
    lines = ["HTTP/1.1 503 Service Unavailable", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class _ConnectionHandler(RequestHandler):
    """One connection: counted, and closed if the headers of a request do not arrive in time."""

    def __init__(self, manager: web.Server, *, limits: ConnectionLimits, **options: Any) -> None:
        line = {"max_line_size": _MAX_ADDRESS_BYTES, "max_field_size": _MAX_HEADER_BYTES}
        super().__init__(manager, keepalive_timeout=limits.keepalive_seconds, **(options | line))
        self._limits = limits
        self._admitted_address: str | None = None
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else "-"
        if not self._limits.admit(address):
            refused = cast("asyncio.Transport", transport)
            refused.write(_refusal())
            refused.close()
            self._manager = None  # connection_lost then does nothing
            return
        self._admitted_address = address
        super().connection_made(transport)
        self._start_header_timer()

    def data_received(self, data: bytes) -> None:
        if self._admitted_address is None:
            return
        if self._header_timer is None and self._is_waiting_for_headers():
            self._start_header_timer()
        super().data_received(data)
        if not self._is_waiting_for_headers():
            self._stop_header_timer()

    def eof_received(self) -> None:
        if self._admitted_address is not None:
            super().eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_header_timer()
        if self._admitted_address is not None:
            self._limits.release(self._admitted_address)
            self._admitted_address = None
        request, task = self._current_request, self._task_handler
        super().connection_lost(exc)
        # No caller reads the response. A write is carried out: its caller may have gone after sending it.
        if request is not None and task is not None and request.method in _READS:
            task.cancel()

    def log_exception(self, *args: Any, **options: Any) -> None:
        # Reading the rest of a body whose encoding is broken fails once more after the response is sent.
        if not isinstance(options.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **options)

    def _is_waiting_for_headers(self) -> bool:
        return not self._messages and self._current_request is None

    def _start_header_timer(self) -> None:
        self._header_timer = self._loop.call_later(self._limits.header_seconds, self._close_without_headers)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def close_if_idle(self) -> None:
        """Close the connection unless it has a request."""
        if self._is_waiting_for_headers():
            self.force_close()

    def _close_without_headers(self) -> None:
        self._header_timer = None
        if self._is_waiting_for_headers():
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already started")
        if isinstance(exc, LineTooLong) and exc.args[1] == _MAX_ADDRESS_BYTES:
            status = web.HTTPRequestURITooLong.status_code
        response = protocol_error(501 if isinstance(exc, BadHttpMethod) else status)
        response.force_close()
        return response


class _Server(web.Server):
    limits: ConnectionLimits

    def __call__(self) -> RequestHandler:
        return _ConnectionHandler(self, limits=self.limits, loop=self._loop, **self._kwargs)


class Runner(AppRunner):
    """Runs the application on a server that limits connections, and whose own errors have the service's shape."""

    def __init__(self, app: web.Application, *, limits: ConnectionLimits | None = None, **options: Any) -> None:
        super().__init__(app, **options)
        self._limits = limits or ConnectionLimits()
        self._is_leaving = False

    def leave(self) -> None:
        """Close each connection after its next response, which says so: callers continue on new connections."""
        self._is_leaving = True

    async def answer_until_closed(self, idle_seconds: float, seconds: float, end_waiting: Callable[[], None]) -> None:
        """Accept no connections, and wait until open ones are closed, at most `seconds`.

        After `idle_seconds`, connections without a request are closed. `end_waiting` ends requests that wait for
        events.
        """
        self.leave()
        for site in list(self.sites):
            await site.stop()
        loop = asyncio.get_running_loop()
        began = loop.time()
        while (open_connections := cast("_Server", self.server).connections) and loop.time() - began < seconds:
            end_waiting()
            if loop.time() - began >= idle_seconds:
                for connection in open_connections:
                    cast("_ConnectionHandler", connection).close_if_idle()
            await asyncio.sleep(_CLOSING_CHECK_SECONDS)

    async def _make_server(self) -> Any:
        server = await super()._make_server()
        server.__class__ = _Server  # aiohttp has no setting for the class of its connections
        cast("_Server", server).limits = self._limits
        handle_request = server.request_handler

        async def handle(request: Any) -> web.StreamResponse:
            if request.version not in _VERSIONS:
                refusal = protocol_error(web.HTTPBadRequest.status_code)
                refusal.force_close()
                return refusal
            if not request.headers.get(hdrs.EXPECT, "").isascii():  # aiohttp fails to refuse it
                return protocol_error(web.HTTPExpectationFailed.status_code)
            try:
                response = await handle_request(request)
            except web.HTTPException as error:  # raised before the middlewares, e.g. for an unknown Expect
                response = protocol_error(error.status)
            if self._is_leaving and not response.prepared:
                response.force_close()
            return response

        server.request_handler = handle
        return server


# --- When the service accepts requests: not while it starts -----------------------------------------------------------


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


# --- What ends a request: a database that does not respond (see DatabaseMonitor), and its budget of processor time ----


BUDGET = web.RequestKey("budget", Budget)
_INTERRUPTION = web.RequestKey("interruption", Interruption)


def interrupting(services: Services, request: web.Request) -> Interruption:
    """Return a context that raises Unavailable when the database is lost, unless the response has begun by then."""
    interruption = request[_INTERRUPTION] = services.monitor.interrupting()
    return interruption


def interruptible(services: Services, handler: Handler) -> Handler:
    """Return the aiohttp handler that runs `handler` in `interrupting`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        async with interrupting(services, request):
            return await handler(request)

    return handle


async def end_interruption(request: web.Request, _: web.StreamResponse) -> None:
    """Handle `on_response_prepare`: a response that has begun cannot become a 503."""
    if (budget := request.get(BUDGET)) is not None:
        budget.end()
    if (interruption := request.get(_INTERRUPTION)) is not None:
        interruption.end()
