"""From a request's credential to the principal it is evaluated as."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from coaching_service.core.auth.principal import Principal
from coaching_service.core.database.context import Services
from coaching_service.core.errors import Unauthorized
from coaching_service.core.ids import parse_id
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.assistants import service as assistants
from coaching_service.people.sessions import service as sessions


async def authenticate(services: Services, request: web.Request) -> Principal:
    """The principal of a REST request.

    An `Authorization` header decides alone, even beside a good key. Raises Unauthorized without a credential or with
    a bad bearer, InvalidApiKey with a bad key.
    """
    return await _principal(services, request, sessions.authenticate)


async def authenticate_assistant(services: Services, request: web.Request) -> Principal:
    """The principal of a request to /mcp: by a key, or by an access token of its OAuth, never by a session.

    Raises as `authenticate`.
    """
    return await _principal(services, request, assistants.authenticate)


async def _principal(
    services: Services, request: web.Request, by_bearer: Callable[[Services, str], Awaitable[Principal]]
) -> Principal:
    if (authorization := request.headers.get("Authorization")) is not None:
        scheme, _, token = authorization.partition(" ")
        if scheme.casefold() != "bearer" or not token.strip():
            raise Unauthorized()
        return await by_bearer(services, token.strip())
    if key := request.headers.get("X-API-Key"):
        # Once the whole request is here: while the rest of it is on its way the client may be erased.
        client_id = parse_id(request.match_info.get("customerId")) if request.content.is_eof() else None
        return await api_keys.authenticate(services, key, client_id)
    raise Unauthorized()
