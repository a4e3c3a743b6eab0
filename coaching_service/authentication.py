"""From a request's credential to the principal it is evaluated as."""

from __future__ import annotations

from aiohttp import web

from coaching_service.kernel.auth.principal import Principal
from coaching_service.kernel.errors import Unauthorized
from coaching_service.kernel.storage.context import Services
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.sessions import service as sessions


async def authenticate(services: Services, request: web.Request) -> Principal:
    """The principal of a REST request.

    An `Authorization` header decides alone, even beside a good key. Raises Unauthorized without a credential or with
    a bad bearer, InvalidApiKey with a bad key.
    """
    if (authorization := request.headers.get("Authorization")) is not None:
        scheme, _, token = authorization.partition(" ")
        if scheme.casefold() != "bearer" or not token.strip():
            raise Unauthorized()
        return await sessions.principal_of(services, token.strip())
    if key := request.headers.get("X-API-Key"):
        return await api_keys.principal_of(services, key)
    raise Unauthorized()
