"""The HTTP server below the application, and the outermost middlewares of every request.

Errors it raises by itself have the service's error shape and never repeat parts of the request (aiohttp's own error
pages quote the offending line, including credentials).
"""

from __future__ import annotations

import asyncio
import random
import re
import resource
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import structlog
from aiohttp import HttpVersion10, HttpVersion11, hdrs, web
from aiohttp.http_exceptions import BadHttpMethod, LineTooLong
from aiohttp.typedefs import Handler, Middleware
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_runner import AppRunner
from opentelemetry.trace import SpanKind

from coaching_service.core import errors
from coaching_service.core.budgets import READ_SECONDS, WRITE_SECONDS, Budget, metered
from coaching_service.core.database import outcome
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Services
from coaching_service.core.errors import Unavailable
from coaching_service.core.http.handlers import BUDGET, PRINCIPAL, READS, REQUEST_ID, reported
from coaching_service.core.http.request_parsing import list_applied, network_address
from coaching_service.core.http.responses import compress, to_json
from coaching_service.core.http.routes import Route, deprecation_headers
from coaching_service.core.tracing import NO_TRACER, fail, measure

# --- Limits of HTTP connections: how many, how long for request headers, and the file descriptors they need -----------


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
        is_full = self.per_address is not None and self._addresses[address] >= self.per_address
        if is_full or self._open >= self.maximum:
            return False
        self._open += 1
        self._addresses[address] += 1
        if not self._has_warned and self._open >= self.maximum * _WARNING_SHARE:
            self._has_warned = True
            log.warning("connections near their limit", open=self._open, maximum=self.maximum)
        return True

    def release(self, address: str) -> None:
        """Count an admitted connection as closed."""
        self._open -= 1
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]
        if self._open < self.maximum * _CALM_SHARE:
            self._has_warned = False


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

_VERSIONS = (HttpVersion10, HttpVersion11)
_RETRY_SECONDS = 10
_SECURITY_HEADERS = {"Server": "coaching-service", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_CLOSING_CHECK_SECONDS = 0.02


def protocol_error(status: int) -> web.Response:
    """Return the response to a request that never reached the application."""
    status = status if status in PROTOCOL_ERRORS else 500
    headers = {"Content-Type": "application/json; charset=utf-8", "X-Request-Id": uuid.uuid4().hex, **_SECURITY_HEADERS}
    return web.Response(status=status, body=to_json({"statusCode": status, **PROTOCOL_ERRORS[status]}), headers=headers)


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
            refused, response = cast("asyncio.Transport", transport), protocol_error(503)
            body = cast("bytes", response.body)
            response.headers.update({"Retry-After": str(_RETRY_SECONDS), "Connection": "close"})
            response.headers["Content-Length"] = str(len(body))
            lines = ["HTTP/1.1 503 Service Unavailable", *(f"{name}: {it}" for name, it in response.headers.items())]
            refused.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
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
        if request is not None and task is not None and request.method in READS:
            task.cancel()

    def log_exception(self, *args: Any, **options: Any) -> None:
        # Reading the rest of a body whose encoding is broken fails once more after the response is sent.
        if not isinstance(options.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **options)

    def _is_waiting_for_headers(self) -> bool:
        return not self._messages and self._current_request is None

    def _start_header_timer(self) -> None:
        self._header_timer = self._loop.call_later(self._limits.header_seconds, self.close_if_idle)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def close_if_idle(self) -> None:
        """Close the connection unless it has a request."""
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

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Respond 503 to all but health checks while the service starts, and to /readyz while it stops."""
        if not self.ready.is_set() and request.path not in _ALWAYS_AVAILABLE:
            raise Unavailable(self.message)
        if self._is_stopping and request.path == "/readyz":
            raise Unavailable("The service is stopping")
        return await handler(request)


# --- The outermost middleware: request id, log line, metrics, and the response shape of every error -------------------


GUIDES_PATH = "/docs/guides"
ERRORS_PATH = f"{GUIDES_PATH}/errors"

_VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
_CLIENT_CLOSED_REQUEST = 499  # never sent; the customary status in logs and metrics
_UNKNOWN_ROUTE = "unknown"
_PROBES = ("/healthz", "/readyz", "/metrics")  # not traced
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log = structlog.get_logger("coaching_service")


def request_middleware(services: Services, proxies: int = 0) -> Middleware:
    """Return the outermost middleware, through which every response passes. `proxies` is as in `network_address`."""
    metrics, tracer = services.metrics, services.tracer

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.perf_counter()
        sent_id = request.headers.get("X-Request-Id", "")
        # A new one is not a secret, so not from the system's slower generator.
        request[REQUEST_ID] = sent_id if _VALID_REQUEST_ID.fullmatch(sent_id) else f"{random.getrandbits(128):032x}"
        with metrics.requests_in_flight.track_inprogress():
            if tracer is NO_TRACER or request.path in _PROBES:
                return await respond(request, handler, started)
            method, route = _method_and_route(request)
            attributes = {"http.request.method": method, "http.route": route}
            with measure(tracer, f"{method} {route}", SpanKind.SERVER, attributes, request.headers) as span:
                response = await respond(request, handler, started)
                span.set_attribute("http.response.status_code", response.status)
                if response.status >= 500:
                    fail(span, str(response.status))
                return response

    async def respond(request: web.Request, handler: Handler, started: float) -> web.StreamResponse:
        outcome.begin()
        budget = request[BUDGET] = Budget(READ_SECONDS if request.method in READS else WRITE_SECONDS)
        budget.begin()
        try:
            response = await metered(handler(request))
        except asyncio.CancelledError:  # the caller of a read has gone, or the service is shutting down
            record(request, _CLIENT_CLOSED_REQUEST, started)
            raise
        except Exception as error:  # noqa: BLE001 - every failure is converted to an error response here
            response = _error_response(request, error, services.base_url)
        finally:
            budget.end()  # what has begun by now, such as a task that several requests share, is not theirs to end
        if not response.prepared:
            response.headers["X-Request-Id"] = request[REQUEST_ID]
            if applied := list_applied(request, response.status):
                response.headers["Preference-Applied"] = ", ".join(applied)
            response.headers.update(deprecation_headers(request))
            for name, value in _SECURITY_HEADERS.items():
                response.headers.setdefault(name, value)
            await compress(request, response)
        record(request, response.status, started)
        return response

    def record(request: web.Request, status: int, started: float) -> None:
        """Count the request and write its log line."""
        seconds = time.perf_counter() - started
        method, route = _method_and_route(request)
        metrics.requests.labels(method, route, str(status)).inc()
        metrics.request_seconds.labels(method, route).observe(seconds)
        caller = {}  # in identifiers: the person, and the key, session or grant of an assistant
        if (principal := request.get(PRINCIPAL)) is not None:
            person = "coach" if principal.is_coach else "client"
            caller = {"company": str(principal.company.id), person: str(principal.id)}
            caller |= {"via": principal.via, "credential": str(principal.credential_id)}
        (log.warning if status >= 500 else log.info)(
            "request",
            method=method,
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            address=network_address(request, proxies),
            **caller,
            request_id=request[REQUEST_ID],
        )

    return middleware


def _error_response(request: web.Request, error: Exception, base_url: str) -> web.StreamResponse:
    if isinstance(error, errors.ClientDisconnected):
        return web.Response(status=_CLIENT_CLOSED_REQUEST)
    service_error: errors.ServiceError | None
    if isinstance(error, errors.ServiceError):
        service_error = error
    elif isinstance(error, web.HTTPMethodNotAllowed):
        allowed = {"Allow": ", ".join(sorted(error.allowed_methods))}
        service_error = errors.MethodNotAllowed(f"Cannot {request.method} {request.path}", allowed)
    elif isinstance(error, web.HTTPNotFound):
        service_error = errors.RouteNotFound(f"Cannot {request.method} {request.path}")
    elif isinstance(error, web.HTTPRequestEntityTooLarge):
        service_error = errors.TooLarge("The body is too large", {"Connection": "close"})
    else:
        service_error = as_service_error(error)
    if service_error is None:
        log.error("unexpected error", request_id=request[REQUEST_ID], route=_route(request), exc_info=error)
        service_error = errors.InternalError()
    service_error = reported(request, service_error)
    body = service_error.body()
    is_fixed = isinstance(service_error, errors.RouteNotFound)  # the specification states all of its fields
    if "statusCode" in body and (code := body.get("code")) and not is_fixed:
        body["docs"] = f"{base_url}{ERRORS_PATH}#{code}"
    response = web.Response(
        body=to_json(body),
        status=service_error.status,
        headers={"Content-Type": "application/json; charset=utf-8", **service_error.headers},
    )
    if service_error.headers.get("Connection") == "close":  # aiohttp does not act on the header
        response.force_close()
    return response


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else _UNKNOWN_ROUTE


def _method_and_route(request: web.Request) -> tuple[str, str]:
    """Return the method and the declared path: few values, whatever callers send."""
    route = _route(request)
    return request.method if route != _UNKNOWN_ROUTE and request.method in _METHODS else "other", route


# --- Headers that protect browsers, added to every response before it is sent -----------------------------------------


_STRICT_TRANSPORT_SECURITY = "max-age=31536000"
# What pages and their libraries do not use; the rest timer keeps the screen on, and buttons write to the clipboard.
_PERMISSIONS_POLICY = (
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), "
    "midi=(), payment=(), usb=()"
)
# Pages of other sites may show these: files by their signed links, and the icon of the MCP server.
_EMBEDDABLE = ("/files/", "/app/static/")
_OAUTH = "/oauth/"


def adding_security_headers(base_url: str) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """Return the signal handler that adds the headers; over https browsers must not use http for a year."""
    is_secure = base_url.startswith("https:")

    async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
        headers = response.headers
        if is_secure:
            headers["Strict-Transport-Security"] = _STRICT_TRANSPORT_SECURITY
        policy = "cross-origin" if request.path.startswith(_EMBEDDABLE) else "same-origin"
        headers["Cross-Origin-Resource-Policy"] = policy
        if "token" in request.query:
            headers["Referrer-Policy"] = "no-referrer"
        if response.content_type == "text/html":
            headers["Permissions-Policy"] = _PERMISSIONS_POLICY
            # An application that asks for access may have opened the page, and waits for its window.
            if not (request.path.startswith(_OAUTH) or request.query.get("next", "").startswith(_OAUTH)):
                headers["Cross-Origin-Opener-Policy"] = "same-origin"

    return add_headers


# --- Cross origin -----------------------------------------------------------------------------------------------------
# Requests of web pages of other origins to the REST interface (CORS), without cookies and never with an API key.


_PREFLIGHT_SECONDS = 600
_CROSS_ORIGIN_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
# X-API-Key is left out on purpose: a key in a web page is public.
_REQUEST_HEADERS = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Prefer, Range, X-Request-Id"
_RESPONSE_HEADERS = (
    "Content-Disposition, Deprecation, ETag, Idempotent-Replayed, Preference-Applied, RateLimit, RateLimit-Policy, "
    "Retry-After, Sunset, X-As-Of, X-Change-Id, X-Request-Id"
)


class CrossOrigin:
    """Answers preflight requests of the pages of `origins` for `routes`, and lets these pages read the responses."""

    def __init__(self, origins: Collection[str], routes: Iterable[Route]) -> None:
        self._origins = frozenset(origins)
        self._paths = frozenset(route.path for route in routes)

    @web.middleware
    async def answer_preflight(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer preflight requests, as a middleware."""
        is_preflight = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        if not is_preflight or not self._is_allowed(request):
            return await handler(request)
        allowed = {
            "Access-Control-Allow-Methods": _CROSS_ORIGIN_METHODS,
            "Access-Control-Allow-Headers": _REQUEST_HEADERS,
            "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
        }
        return web.Response(status=204, headers=allowed)

    async def add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Handle `on_response_prepare`: let the page read the response, unless a key was sent."""
        if not self._origins or not self._is_rest(request):
            return
        response.headers.add("Vary", "Origin")
        if self._is_allowed(request):
            response.headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
            response.headers["Access-Control-Expose-Headers"] = _RESPONSE_HEADERS

    def _is_rest(self, request: web.Request) -> bool:
        resource = request.match_info.route.resource
        return resource is not None and resource.canonical in self._paths

    def _is_allowed(self, request: web.Request) -> bool:
        principal = request.get(PRINCIPAL)
        has_key = "X-API-Key" in request.headers or (principal is not None and principal.via == "apiKey")
        return request.headers.get("Origin") in self._origins and not has_key and self._is_rest(request)
