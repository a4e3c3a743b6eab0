"""From a request's credential to the principal it is evaluated as."""

from __future__ import annotations

from aiohttp import web

from coaching_service.kernel.auth.principal import Principal
from coaching_service.kernel.errors import Unauthorized
from coaching_service.kernel.storage.context import Services
from coaching_service.people.api_keys import service as api_keys


async def authenticate(services: Services, request: web.Request) -> Principal:
    """The principal of a REST request.

    An `Authorization` header decides alone, even beside a good key. Raises Unauthorized without a credential or with
    a bad bearer, InvalidApiKey with a bad key.
    """
    if "Authorization" in request.headers:
        raise Unauthorized()
    if key := request.headers.get("X-API-Key"):
        return await api_keys.principal_of(services, key)
    raise Unauthorized()
