"""Requests of web pages of other origins to the REST interface (CORS), without cookies and never with an API key."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from coaching_service.core.http.middleware import PRINCIPAL
from coaching_service.core.http.routes import Route

_PREFLIGHT_SECONDS = 600
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
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
                "Access-Control-Allow-Methods": _METHODS,
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
