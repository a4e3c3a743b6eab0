"""POST /mcp: who may knock, what is taken in, and how it is answered."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import orjson
from aiohttp import hdrs, web
from mcp.server import Server

from coaching_service.core.auth.principal import Principal
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import InvalidApiKey, Unauthorized
from coaching_service.core.http.middleware import PRINCIPAL, REQUEST_ID
from coaching_service.core.http.request_parsing import network_address, read_bytes
from coaching_service.core.http.responses import to_json
from coaching_service.mcp.transport import Reply, answer, unreadable

PATH = "/mcp"
Authenticate = Callable[[Services, web.Request], Awaitable[Principal]]

_JSON = "application/json"
_EVENTS = "text/event-stream"
_ALLOWED_HEADERS = "Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name, X-API-Key"
_THIS_MACHINE = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?(?![^/])", re.ASCII)
_NOT_AT_ALL = re.compile(r";\s*q=0(\.0*)?\s*(;|$)")


@dataclass(frozen=True)
class McpEndpoint:
    """The endpoint of `server`. `origins`: web pages of these origins may call it from a browser."""

    server: Server[Any]
    services: Services
    authenticate: Authenticate
    body_limit: int
    proxies: int = 0
    origins: frozenset[str] = frozenset()

    def routes(self) -> Iterable[web.RouteDef]:
        """What to serve: every method of one path."""
        return [web.route(hdrs.METH_ANY, PATH, self.handle)]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Any request to /mcp."""
        origin = request.headers.get(hdrs.ORIGIN)
        foreign = origin is not None and not self._is_welcome(origin)
        if request.method == hdrs.METH_OPTIONS:
            response = web.Response(status=204)
        elif foreign:
            response = _refused(403, "invalid_request", "This web page may not call the service")
        else:
            response = await self._admitted(request)
        if origin is not None and not foreign:
            response.headers.update(_cors(origin))
        return response

    def _is_welcome(self, origin: str) -> bool:
        """Our own pages, those the operator names, and pages of this machine where we serve only it."""
        if origin in self.origins or origin == _origin_of(self.services.base_url):
            return True
        return bool(_THIS_MACHINE.fullmatch(origin) and _THIS_MACHINE.match(self.services.base_url))

    async def _admitted(self, request: web.Request) -> web.Response:
        try:
            principal = request[PRINCIPAL] = await self.authenticate(self.services, request)
        except (Unauthorized, InvalidApiKey):
            return self._challenge(request)
        if request.method != hdrs.METH_POST:
            headers = {"Allow": "POST"}
            return _refused(405, "invalid_request", "There are no sessions and no streams here: send POST", headers)
        if request.content_type != _JSON:
            return _refused(415, "invalid_request", "The body must be JSON, sent with Content-Type: application/json")
        if (form := _form(",".join(request.headers.getall(hdrs.ACCEPT, ())))) is None:
            return _refused(406, "invalid_request", "Accept application/json and text/event-stream")
        body = await read_bytes(request, self.body_limit)
        try:
            decoded = orjson.loads(body)
        except orjson.JSONDecodeError:
            return _response(unreadable(body), _JSON)
        ctx = Context(
            self.services,
            principal,
            request_id=request[REQUEST_ID],
            network_address=network_address(request, self.proxies),
        )
        return _response(await answer(self.server, ctx, decoded, request.headers), form)

    def _challenge(self, request: web.Request) -> web.Response:
        """401 that tells where to find out how to get in; `error` only when something was sent."""
        metadata = f"{self.services.base_url}/.well-known/oauth-protected-resource{PATH}"
        challenge = f'Bearer resource_metadata="{metadata}", scope="mcp"'
        if hdrs.AUTHORIZATION in request.headers or "X-API-Key" in request.headers:
            challenge += ', error="invalid_token"'
            about = "The credential is unknown, revoked or expired"
        else:
            about = "Send X-API-Key, or an access token of this server's OAuth"
        return _refused(401, "invalid_token", about, {hdrs.WWW_AUTHENTICATE: challenge})


@lru_cache(64)  # an assistant says the same every time
def _form(accept: str) -> str | None:
    """The form of the answer that an `Accept` header lets us choose: JSON where it may be; None for neither."""
    kinds = {part.split(";")[0].strip() for part in accept.lower().split(",") if not _NOT_AT_ALL.search(part)} - {""}
    if not accept:
        return _JSON
    if kinds & {"*/*", "application/*", _JSON}:
        return _JSON
    return _EVENTS if kinds & {_EVENTS, "text/*"} else None


def _response(reply: Reply, form: str) -> web.Response:
    if reply.body is None:
        return web.Response(status=reply.status)
    body = to_json(reply.body)
    if form == _EVENTS:
        body = b"event: message\ndata: " + body + b"\n\n"
    return web.Response(body=body, status=reply.status, headers={hdrs.CONTENT_TYPE: form})


def _refused(status: int, error: str, about: str, headers: Mapping[str, str] | None = None) -> web.Response:
    body = to_json({"error": error, "error_description": about})
    return web.Response(body=body, status=status, headers={hdrs.CONTENT_TYPE: _JSON, **(headers or {})})


def _cors(origin: str) -> dict[str, str]:
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
        "Access-Control-Expose-Headers": "WWW-Authenticate, X-Request-Id",
        "Access-Control-Max-Age": "600",
        "Vary": "Origin",
    }


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
