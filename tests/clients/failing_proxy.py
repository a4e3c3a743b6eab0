"""A proxy in front of the service that fails: the same request succeeds only after some attempts.

Below `/busy` the first attempt is answered 503 without the service, the second 429, the third is forwarded. Below `/cut` the first
attempt is forwarded, but the connection is cut before the response. Below any other name all is forwarded. Attempts are counted by method, path and query.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL


@dataclass
class Attempt:
    """One received request: what it asks for, when (in seconds), and with which idempotency key."""

    operation: str
    at: float
    key: str | None


@dataclass
class FailingProxy:
    """The proxy at `address`, and the requests it has received."""

    service: URL
    http: aiohttp.ClientSession
    address: str = ""
    attempts: list[Attempt] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Fail or forward a request."""
        operation = f"{request.method} {request.rel_url}"
        self.counts[operation] += 1
        self.attempts.append(Attempt(operation, time.monotonic(), request.headers.get("Idempotency-Key")))
        failure, count = request.match_info["failure"], self.counts[operation]
        if failure == "busy" and count <= 2:
            return web.Response(status=503 if count == 1 else 429, headers={"Retry-After": "1"})
        response = await self._forward(request)
        if failure == "cut" and count == 1:
            assert request.transport is not None
            request.transport.abort()
        return response

    async def _forward(self, request: web.Request) -> web.Response:
        target = self.service.join(URL(f"/{request.match_info['path']}")).with_query(request.query)
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        body = await request.read()
        async with self.http.request(request.method, target, headers=headers, data=body) as response:
            content_type = response.headers.get("Content-Type", "application/json")
            raw = await response.read()
            return web.Response(status=response.status, body=raw, headers={"Content-Type": content_type})

    def received(self, part: str) -> list[Attempt]:
        """The attempts of the operations whose method and path contain a text."""
        return [attempt for attempt in self.attempts if part in attempt.operation]


@asynccontextmanager
async def failing_proxy(service: URL) -> AsyncIterator[FailingProxy]:
    """Start a proxy of the service."""
    async with aiohttp.ClientSession() as http:
        proxy = FailingProxy(service, http)
        app = web.Application()
        app.router.add_route("*", "/{failure}/{path:.*}", proxy.handle)
        async with TestServer(app, host="127.0.0.1") as server:
            proxy.address = str(server.make_url("")).rstrip("/")
            yield proxy
