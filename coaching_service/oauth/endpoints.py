"""The addresses clients call: discovery, registration, tokens, revocation. Browsers of any origin may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import orjson
from aiohttp import hdrs, web
from multidict import MultiDict

from coaching_service.core import rate_limits
from coaching_service.core.database.context import Services
from coaching_service.core.errors import ServiceError
from coaching_service.core.http.request_parsing import network_address, read_bytes
from coaching_service.core.http.responses import to_json
from coaching_service.oauth import clients, metadata, tokens
from coaching_service.oauth.errors import OAuthError, invalid_request

Handler = Callable[[web.Request], Awaitable[web.Response]]

_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
_LARGEST = 64 * 1024
_MAX_FIELDS = 50
# In 15 minutes from one address: a hosted assistant registers anew for each sign-in, for all its users from a few.
_MAX_REGISTRATIONS = 600
_RESOURCE, _SERVER = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"


@dataclass(frozen=True)
class Endpoints:
    """The authorization server's endpoints; `proxies` of ours stand between the caller and the service."""

    services: Services
    proxies: int = 0

    def routes(self) -> list[web.RouteDef]:
        """What to serve. Each document is there for the resource's path and for the server as a whole."""
        documents = {
            _RESOURCE: metadata.protected_resource(self.services.base_url),
            _SERVER: metadata.authorization_server(self.services.base_url),
        }
        found = [
            _open(web.get, path + suffix, _document(body))
            for path, body in documents.items()
            for suffix in ("", "/mcp")
        ]
        found += [
            _open(web.post, "/oauth/register", self.register),
            _open(web.post, "/oauth/token", self.token),
            _open(web.post, "/oauth/revoke", self.revoke),
        ]
        return [each for pair in found for each in pair]

    async def register(self, request: web.Request) -> web.Response:
        """RFC 7591: anybody may register a client, so many times from one address."""
        address = network_address(request, self.proxies)
        count, seconds = await rate_limits.count(self.services, "register", address)
        if count > _MAX_REGISTRATIONS:
            about = "Too many registrations; try again later"
            raise OAuthError("temporarily_unavailable", about, 429, {"Retry-After": str(seconds)})
        if request.content_type != _JSON:
            raise OAuthError("invalid_client_metadata", "The body must be JSON", 415)
        try:
            asked = orjson.loads(await read_bytes(request, _LARGEST))
        except orjson.JSONDecodeError:
            asked = None
        if not isinstance(asked, dict):
            raise OAuthError("invalid_client_metadata", "The body must be a JSON object")
        return _json(await clients.register(self.services, asked), 201)

    async def token(self, request: web.Request) -> web.Response:
        """A code, or a refresh token, for tokens."""
        return _json(await tokens.issue(self.services, await _form(request)))

    async def revoke(self, request: web.Request) -> web.Response:
        """RFC 7009."""
        await tokens.revoke(self.services, await _form(request))
        return _json({})


async def _form(request: web.Request) -> tokens.Form:
    if request.content_type != _FORM:
        raise OAuthError("invalid_request", f"The body must be a form, sent with Content-Type: {_FORM}", 415)
    try:
        text = (await read_bytes(request, _LARGEST)).decode()
        # A parameter without a value counts as left out (RFC 6749, 3.2).
        fields = MultiDict(parse_qsl(text, keep_blank_values=False, max_num_fields=_MAX_FIELDS))
    except ValueError:
        raise invalid_request("The body is not a form") from None
    return tokens.Form(fields, request.headers.get(hdrs.AUTHORIZATION))


def _document(body: dict[str, Any]) -> Handler:
    async def document(_: web.Request) -> web.Response:
        headers = {hdrs.CONTENT_TYPE: _JSON, hdrs.CACHE_CONTROL: "public, max-age=300"}
        return web.Response(body=to_json(body), headers=headers)

    return document


def _open(method: Callable[..., web.RouteDef], path: str, handler: Handler) -> tuple[web.RouteDef, web.RouteDef]:
    """A route that scripts of any origin may call (no cookie is looked at), and its preflight."""

    async def handle(request: web.Request) -> web.Response:
        try:
            response = await handler(request)
        except OAuthError as error:
            response = _json(error.body(), error.status)
            response.headers.update(error.headers)
        except ServiceError as error:
            about = error.message if isinstance(error.message, str) else "; ".join(error.message)
            response = _json({"error": "invalid_request", "error_description": about}, error.status)
            response.headers.update(error.headers)
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


def _json(body: dict[str, Any], status: int = 200) -> web.Response:
    headers = {hdrs.CONTENT_TYPE: _JSON, hdrs.CACHE_CONTROL: "no-store", "Pragma": "no-cache"}
    return web.Response(body=to_json(body), status=status, headers=headers)
