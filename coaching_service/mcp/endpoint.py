"""The HTTP endpoint /mcp: origin and credential checks, request parsing and the response format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

import orjson
from aiohttp import hdrs, web

from coaching_service.core.auth import Principal
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import BadRequest, InvalidApiKey, Unauthorized
from coaching_service.core.http.middleware import PRINCIPAL, REQUEST_ID, Authenticate
from coaching_service.core.http.request_parsing import decode_body, network_address, read_json_bytes
from coaching_service.core.http.responses import to_json
from coaching_service.core.http.server import interruptible
from coaching_service.mcp import replies
from coaching_service.mcp.message_handler import MessageHandler
from coaching_service.mcp.narrowing import Narrowing, read_narrowing, require_client

PATH = "/mcp"

_JSON = "application/json"
_EVENT_STREAM = "text/event-stream"
_ALLOWED_HEADERS = (
    f"Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name, {replies.SESSION_HEADER}, X-API-Key"
)
_EXPOSED_HEADERS = f"{replies.SESSION_HEADER}, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id"
_LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?(?![^/])", re.ASCII)
_EXCLUDED = re.compile(r";\s*q=0(\.0*)?\s*(;|$)")


@dataclass(frozen=True)
class McpEndpoint:
    """The endpoint of the messages. `origins`: further web origins that may call it from a browser."""

    messages: MessageHandler
    services: Services
    authenticate: Authenticate
    body_limit: int
    proxies: int = 0
    origins: frozenset[str] = frozenset()

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the aiohttp routes: some applications append a slash to the URL that they were given."""
        handler = interruptible(self.services, self.handle)
        return [web.route(hdrs.METH_ANY, path, handler) for path in (PATH, f"{PATH}/")]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond to a request of any method."""
        origin = request.headers.get(hdrs.ORIGIN)
        is_foreign = origin is not None and not self._is_allowed_origin(origin)
        if request.method == hdrs.METH_OPTIONS:
            response = web.Response(status=204)
        elif is_foreign:
            response = _error(403, "invalid_request", "This web page may not call the service")
        else:
            response = await self._authenticate_and_respond(request)
        if origin is not None and not is_foreign:
            response.headers.update(_cors(origin))
        return response

    def _is_allowed_origin(self, origin: str) -> bool:
        """Return whether `origin` is the service's, a configured one, or loopback while the service is on loopback."""
        if origin in self.origins or origin == _origin_of(self.services.base_url):
            return True
        return bool(_LOOPBACK_ORIGIN.fullmatch(origin) and _LOOPBACK_ORIGIN.match(self.services.base_url))

    async def _authenticate_and_respond(self, request: web.Request) -> web.Response:
        try:
            request[PRINCIPAL] = await self.authenticate(self.services, request)
        except (Unauthorized, InvalidApiKey):
            return self._challenge(request)
        if request.method != hdrs.METH_POST:
            headers = {"Allow": "POST"}
            return _error(405, "invalid_request", "There are no sessions and no streams here: send POST", headers)
        if request.content_type != _JSON:
            return _error(415, "invalid_request", "The body must be JSON, sent with Content-Type: application/json")
        if (content_type := _negotiate(",".join(request.headers.getall(hdrs.ACCEPT, ())))) is None:
            return _error(406, "invalid_request", "Accept application/json and text/event-stream")
        try:
            ctx = self._context(request)
            await require_client(ctx)
        except BadRequest as error:
            return _error(400, "invalid_request", str(error.message))
        try:
            body = await read_json_bytes(ctx, request, self.body_limit)
            decoded = await decode_body(ctx, body)
        except orjson.JSONDecodeError:
            return _response(replies.malformed_body(body), _JSON)
        except BadRequest as error:
            return _response(replies.failure(replies.PARSE_ERROR, str(error.message), 400), _JSON)
        return _response(await self.messages.handle(ctx, decoded, request.headers), content_type)

    def _context(self, request: web.Request) -> Context:
        """Return the context of a request, narrowed by its address. Raises BadRequest as read_narrowing."""
        narrowing = read_narrowing(request.query)
        return Context(
            self.services,
            narrowing.narrow(request[PRINCIPAL]),
            request_id=request[REQUEST_ID],
            network_address=network_address(request, self.proxies),
            interface="assistant",
            load_caller=partial(self._load_caller, narrowing, request),
        )

    async def _load_caller(self, narrowing: Narrowing, request: web.Request) -> Principal:
        return narrowing.narrow(await self.authenticate(self.services, request))

    def _challenge(self, request: web.Request) -> web.Response:
        """Return the 401 that names the resource metadata; with `error` only when a credential was sent."""
        metadata = f"{self.services.base_url}/.well-known/oauth-protected-resource{PATH}"
        challenge = f'Bearer resource_metadata="{metadata}", scope="mcp"'
        if hdrs.AUTHORIZATION in request.headers or "X-API-Key" in request.headers:
            challenge += ', error="invalid_token"'
            description = "The credential is unknown, revoked or expired"
        else:
            description = "Send X-API-Key, or an access token of this server's OAuth"
        return _error(401, "invalid_token", description, {hdrs.WWW_AUTHENTICATE: challenge})


def _negotiate(accept: str) -> str | None:
    """Return the content type of the response for an `Accept` header, preferably JSON; None if neither is accepted."""
    accepted = {part.split(";")[0].strip() for part in accept.lower().split(",") if not _EXCLUDED.search(part)} - {""}
    if not accept:
        return _JSON
    if accepted & {"*/*", "application/*", _JSON}:
        return _JSON
    return _EVENT_STREAM if accepted & {_EVENT_STREAM, "text/*"} else None


def _response(reply: replies.Reply, content_type: str) -> web.Response:
    if reply.body is None:
        return web.Response(status=reply.status)
    body = to_json(reply.body)
    if content_type == _EVENT_STREAM:
        body = b"event: message\ndata: " + body + b"\n\n"
    headers: dict[str, str] = {hdrs.CONTENT_TYPE: content_type}
    if reply.session is not None:
        headers[replies.SESSION_HEADER] = reply.session
    return web.Response(body=body, status=reply.status, headers=headers)


def _error(status: int, error: str, description: str, headers: Mapping[str, str] | None = None) -> web.Response:
    body = to_json({"error": error, "error_description": description})
    return web.Response(body=body, status=status, headers={hdrs.CONTENT_TYPE: _JSON, **(headers or {})})


def _cors(origin: str) -> dict[str, str]:
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
        "Access-Control-Expose-Headers": _EXPOSED_HEADERS,
        "Access-Control-Max-Age": "600",
        "Vary": "Origin",
    }


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
