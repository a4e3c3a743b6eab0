"""HTTP endpoints of the authorization server: discovery, registration, tokens, revocation. CORS is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

import orjson
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from multidict import MultiDict

from coaching_service.core import rate_limits
from coaching_service.core.database.context import Services
from coaching_service.core.errors import CompanySuspended, OutcomeUnknown, ServiceError, Unavailable
from coaching_service.core.http.interruption import interruptible
from coaching_service.core.http.middleware import reported
from coaching_service.core.http.request_parsing import network_address, read_bytes
from coaching_service.core.http.responses import to_json
from coaching_service.oauth import clients, metadata, tokens
from coaching_service.oauth.errors import OAuthError, invalid_request

_ERRORS: dict[type[ServiceError], str] = {
    Unavailable: "temporarily_unavailable",
    OutcomeUnknown: "temporarily_unavailable",
    CompanySuspended: "access_denied",
}
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
_MAX_BODY_BYTES = 64 * 1024
_MAX_FIELDS = 50
# Per network address in 15 minutes: hosted assistants register for each sign-in, all their users from few addresses.
_MAX_REGISTRATIONS = 600
_RESOURCE, _SERVER = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"


@dataclass(frozen=True)
class Endpoints:
    """The authorization server's endpoints. `proxies`: number of our own reverse proxies in front of the service."""

    services: Services
    proxies: int = 0

    def routes(self) -> list[web.RouteDef]:
        """Return the aiohttp routes. Each document is served for the path of the resource and for the root."""
        documents = {
            _RESOURCE: metadata.protected_resource(self.services.base_url),
            _SERVER: metadata.authorization_server(self.services.base_url, documents=self.services.client_documents),
        }
        pairs = [
            _with_cors(web.get, path + suffix, _document(body))
            for path, body in documents.items()
            for suffix in ("", "/mcp")
        ]
        pairs += [
            _with_cors(web.post, "/oauth/register", interruptible(self.services, self.register)),
            _with_cors(web.post, "/oauth/token", interruptible(self.services, self.token)),
            _with_cors(web.post, "/oauth/revoke", interruptible(self.services, self.revoke)),
        ]
        return [route for pair in pairs for route in pair]

    async def register(self, request: web.Request) -> web.Response:
        """Register a client (RFC 7591), limited per network address."""
        address = network_address(request, self.proxies)
        count, seconds = await rate_limits.count(self.services, "register", address)
        if count > _MAX_REGISTRATIONS:
            description = "Too many registrations; try again later"
            self.services.metrics.rate_limited.labels("register").inc()
            raise OAuthError("temporarily_unavailable", description, 429, {"Retry-After": str(seconds)})
        if request.content_type != _JSON:
            raise OAuthError("invalid_client_metadata", "The body must be JSON", 415)
        try:
            metadata_sent = orjson.loads(await read_bytes(request, _MAX_BODY_BYTES))
        except orjson.JSONDecodeError:
            metadata_sent = None
        if not isinstance(metadata_sent, dict):
            raise OAuthError("invalid_client_metadata", "The body must be a JSON object")
        return _json(await clients.register(self.services, metadata_sent), 201)

    async def token(self, request: web.Request) -> web.Response:
        """Exchange a code or a refresh token for tokens."""
        return _json(await tokens.issue(self.services, await _read_form(request)))

    async def revoke(self, request: web.Request) -> web.Response:
        """Revoke a token (RFC 7009)."""
        await tokens.revoke(self.services, await _read_form(request))
        return _json({})


async def _read_form(request: web.Request) -> tokens.TokenRequest:
    if request.content_type != _FORM:
        raise OAuthError("invalid_request", f"The body must be a form, sent with Content-Type: {_FORM}", 415)
    try:
        text = (await read_bytes(request, _MAX_BODY_BYTES)).decode()
        # A parameter without a value counts as omitted (RFC 6749, 3.2).
        fields = MultiDict(parse_qsl(text, keep_blank_values=False, max_num_fields=_MAX_FIELDS))
    except ValueError:
        raise invalid_request("The body is not a form") from None
    return tokens.TokenRequest(fields, request.headers.get(hdrs.AUTHORIZATION))


def _document(body: Mapping[str, object]) -> Handler:
    async def document(_: web.Request) -> web.Response:
        headers = {hdrs.CONTENT_TYPE: _JSON, hdrs.CACHE_CONTROL: "public, max-age=300"}
        return web.Response(body=to_json(body), headers=headers)

    return document


def _with_cors(method: Callable[..., web.RouteDef], path: str, handler: Handler) -> tuple[web.RouteDef, web.RouteDef]:
    """Return a route that pages of any origin may call, and its preflight. It uses no cookies."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response: web.StreamResponse
        try:
            response = await handler(request)
        except OAuthError as error:
            response = _json(error.body(), error.status)
            response.headers.update(error.headers)
        except ServiceError as error:
            failure = reported(request, error)
            description = failure.message if isinstance(failure.message, str) else "; ".join(failure.message)
            code = _ERRORS.get(type(failure), "invalid_request")
            response = _json({"error": code, "error_description": description}, failure.status)
            response.headers.update(failure.headers)
        response.headers["Access-Control-Allow-Origin"] = "*"
        return response

    async def preflight(_: web.Request) -> web.Response:
        return web.Response(
            status=204,
            headers={
                "Access-Control-Allow-Origin": "*",
                "Access-Control-Allow-Methods": "GET, POST",
                "Access-Control-Allow-Headers": "Authorization, Content-Type, MCP-Protocol-Version",
                "Access-Control-Max-Age": "600",
            },
        )

    return method(path, handle), web.options(path, preflight)


def _json(body: Mapping[str, object], status: int = 200) -> web.Response:
    headers = {hdrs.CONTENT_TYPE: _JSON, hdrs.CACHE_CONTROL: "no-store", "Pragma": "no-cache"}
    return web.Response(body=to_json(body), status=status, headers=headers)
