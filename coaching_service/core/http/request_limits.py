"""The limit of requests for each API key, session and grant (RATE_LIMIT_PER_MINUTE), and the headers that report it.

The headers follow draft-ietf-httpapi-ratelimit-headers-10.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from coaching_service.core.auth.principal import Principal
from coaching_service.core.database.context import Services
from coaching_service.core.http.middleware import PRINCIPAL
from coaching_service.core.token_buckets import RateLimitExceeded, TokenBuckets

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
