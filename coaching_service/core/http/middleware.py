"""The outermost middleware: request id, log line, metrics, and the response shape of every error."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from opentelemetry.trace import SpanKind

from coaching_service.core import errors
from coaching_service.core.auth import Principal
from coaching_service.core.budgets import READ_SECONDS, WRITE_SECONDS, Budget, metered
from coaching_service.core.database import outcome
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Services
from coaching_service.core.http.docs_page import ERRORS_PATH
from coaching_service.core.http.request_parsing import list_applied, network_address
from coaching_service.core.http.responses import compress, to_json
from coaching_service.core.http.routes import Route, deprecation_headers
from coaching_service.core.http.server import BUDGET
from coaching_service.core.rate_limits import RateLimitExceeded, TokenBuckets
from coaching_service.core.tracing import NO_TRACER, fail, measure

REQUEST_ID = web.RequestKey("request_id", str)
PRINCIPAL = web.RequestKey("principal", Principal)

_VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
_SECURITY_HEADERS = {"Server": "coaching-service", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_CLIENT_CLOSED_REQUEST = 499  # never sent; the customary status in logs and metrics
_UNKNOWN_ROUTE = "unknown"
_PROBES = ("/healthz", "/readyz", "/metrics")  # not traced
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
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
        budget = request[BUDGET] = Budget(READ_SECONDS if request.method in _READS else WRITE_SECONDS)
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
            _add_headers(request, response)
            await compress(request, response)
        record(request, response.status, started)
        return response

    def record(request: web.Request, status: int, started: float) -> None:
        """Count the request and write its log line."""
        seconds = time.perf_counter() - started
        method, route = _method_and_route(request)
        metrics.observe_request(method, route, status, seconds)
        (log.warning if status >= 500 else log.info)(
            "request",
            method=method,
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            address=network_address(request, proxies),
            **_caller(request.get(PRINCIPAL)),
            request_id=request[REQUEST_ID],
        )

    return middleware


def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["X-Request-Id"] = request[REQUEST_ID]
    if applied := list_applied(request, response.status):
        response.headers["Preference-Applied"] = ", ".join(applied)
    response.headers.update(deprecation_headers(request))
    for name, value in _SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)


def _error_response(request: web.Request, error: Exception, base_url: str) -> web.StreamResponse:
    if isinstance(error, errors.ClientDisconnected):
        return web.Response(status=_CLIENT_CLOSED_REQUEST)
    service_error = error if isinstance(error, errors.ServiceError) else _to_service_error(request, error)
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


def reported(request: web.Request, error: errors.ServiceError) -> errors.ServiceError:
    """Return the error to report: OutcomeUnknown if the request may have changed something."""
    return error if request.method in _READS else outcome.reported(error)


def _to_service_error(request: web.Request, error: Exception) -> errors.ServiceError | None:
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return errors.MethodNotAllowed(f"Cannot {request.method} {request.path}", {"Allow": allowed})
    if isinstance(error, web.HTTPNotFound):
        return errors.RouteNotFound(f"Cannot {request.method} {request.path}")
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return errors.TooLarge("The body is too large", {"Connection": "close"})
    return as_service_error(error)


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else _UNKNOWN_ROUTE


def _method_and_route(request: web.Request) -> tuple[str, str]:
    """Return the method and the declared path: few values, whatever callers send."""
    route = _route(request)
    return request.method if route != _UNKNOWN_ROUTE and request.method in _METHODS else "other", route


def _caller(principal: Principal | None) -> dict[str, str]:
    """Return who sent a request, in identifiers: the person, and the key, session or grant of an assistant."""
    if principal is None:
        return {}
    return {
        "company": str(principal.company.id),
        "coach" if principal.is_coach else "client": str(principal.id),
        "via": principal.via,
        "credential": str(principal.credential_id),
    }


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
        headers["Cross-Origin-Resource-Policy"] = (
            "cross-origin" if request.path.startswith(_EMBEDDABLE) else "same-origin"
        )
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

    def middleware(self) -> Middleware:
        """Return the middleware that answers preflight requests."""

        @web.middleware
        async def answer_preflight(request: web.Request, handler: Handler) -> web.StreamResponse:
            is_preflight = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
            if not is_preflight or not self._is_allowed(request):
                return await handler(request)
            allowed = {
                "Access-Control-Allow-Methods": _CROSS_ORIGIN_METHODS,
                "Access-Control-Allow-Headers": _REQUEST_HEADERS,
                "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
            }
            return web.Response(status=204, headers=allowed)

        return answer_preflight

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


# --- Request limits ---------------------------------------------------------------------------------------------------
# The limit of requests for each API key, session and grant (RATE_LIMIT_PER_MINUTE), and the headers that report it.
#
# The headers follow draft-ietf-httpapi-ratelimit-headers-10.


Authenticate = Callable[[Services, web.Request], Awaitable[Principal]]

_STATE = web.RequestKey("rate_limit", str)


class RequestLimits:
    """Counts the requests of each credential: `per_minute` at once, and as many a minute in the long run."""

    def __init__(self, services: Services, per_minute: int) -> None:
        self._buckets = TokenBuckets(services, per_minute)
        self._exceeded = services.metrics.rate_limited.labels("requests")
        self._policy = f'"requests";q={per_minute};w=60'

    def applied_to(self, authenticate: Authenticate) -> Authenticate:
        """Authentication that also counts the request, the first time. It raises RateLimitExceeded as well."""

        async def authenticate_and_count(services: Services, request: web.Request) -> Principal:
            principal = request[PRINCIPAL] = await authenticate(services, request)
            if _STATE not in request:
                await self.count(request, principal)
            return principal

        return authenticate_and_count

    async def count(self, request: web.Request, principal: Principal) -> None:
        """Count a request of this credential. Raises RateLimitExceeded."""
        try:
            remaining = await self._buckets.take(principal.credential_id)
        except RateLimitExceeded as error:
            request[_STATE] = f'"requests";r=0;t={error.seconds}'
            self._exceeded.inc()
            raise
        request[_STATE] = f'"requests";r={remaining};t={self._buckets.seconds_per_token}'

    async def add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Handle `on_response_prepare`: report the limit to callers whose request was counted."""
        if (state := request.get(_STATE)) is not None:
            response.headers["RateLimit-Policy"] = self._policy
            response.headers["RateLimit"] = state
