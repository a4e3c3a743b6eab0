"""Authenticates requests: from the credential to the principal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from coaching_service.core.auth import API_KEY_PREFIXES, APPLICATION_PREFIX, Principal
from coaching_service.core.database.context import Services
from coaching_service.core.errors import KeyMcpOnly, Unauthorized
from coaching_service.people import api_keys, assistants
from coaching_service.people.sessions import service as sessions


async def authenticate(services: Services, request: web.Request) -> Principal:
    """Return the principal of a REST request.

    An `Authorization` header alone decides, even next to a valid key; its bearer may be an API key. Raises Unauthorized
    for a missing credential or an invalid bearer, InvalidApiKey for an invalid key, KeyMcpOnly for one of an assistant.
    """
    principal = await _authenticate(services, request, _authenticate_rest)
    if principal.mcp_only:
        raise KeyMcpOnly
    return principal


async def _authenticate_rest(services: Services, token: str) -> Principal:
    if token.startswith(APPLICATION_PREFIX):
        return await assistants.authenticate_application(services, token)
    return await sessions.authenticate(services, token)


async def authenticate_assistant(services: Services, request: web.Request) -> Principal:
    """Return the principal of a request to /mcp: by API key or OAuth access token, never by session.

    Raises what `authenticate` raises.
    """
    return await _authenticate(services, request, assistants.authenticate)


async def _authenticate(
    services: Services, request: web.Request, authenticate_bearer: Callable[[Services, str], Awaitable[Principal]]
) -> Principal:
    if (authorization := request.headers.get("Authorization")) is not None:
        scheme, _, token = authorization.partition(" ")
        if scheme.casefold() != "bearer" or not token.strip():
            raise Unauthorized()
        if token.strip().startswith(API_KEY_PREFIXES):
            return await api_keys.authenticate(services, token.strip())
        return await authenticate_bearer(services, token.strip())
    if key := request.headers.get("X-API-Key"):
        return await api_keys.authenticate(services, key)
    raise Unauthorized()
