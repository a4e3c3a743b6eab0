"""Concurrent downloads: chunks are read in turns, so that a slow download does not delay the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pymongo.errors import AutoReconnect

from coaching_service.app import authenticate
from coaching_service.core.auth import public
from coaching_service.core.database.context import Context, Services
from coaching_service.core.http.handlers import HandlerDependencies, mount
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import Routes
from coaching_service.core.slots import RequestSlots
from coaching_service.http_server import request_middleware

AT_ONCE = 2
CHUNK = b"x" * 1_000_000


@dataclass
class Source:
    """A source of chunks; records how many were read at once. `failure` is raised by the first read."""

    chunks: int
    reading: int = 0
    maximum: int = 0
    failure: Exception | None = None

    async def read(self, _start: int, _end: int) -> AsyncGenerator[bytes]:
        if self.failure is not None:
            raise self.failure
        for _ in range(self.chunks):
            self.reading += 1
            self.maximum = max(self.maximum, self.reading)
            await asyncio.sleep(0)  # lets other downloads read
            self.reading -= 1
            yield CHUNK


@pytest.fixture
async def source() -> Source:
    return Source(chunks=5)


@pytest.fixture
async def address(services: Services, source: Source) -> AsyncIterator[str]:
    """The URL of a route that downloads the source."""
    routes = Routes("/download", tag="Files")

    @routes.get("", access=public(), returns=bytes)
    async def download(_: Context) -> Download:
        """Download the source."""
        return Download("application/octet-stream", "it", source.read, etag='"1"')

    app = web.Application(middlewares=[request_middleware(services)])
    slots, bulk = [RequestSlots(number, queued=100, seconds=60) for number in (8, 2)]
    dependencies = HandlerDependencies(services, authenticate, slots, bulk, RequestSlots(AT_ONCE), body_limit=1)
    mount(app, routes.declared, dependencies)
    async with TestServer(app) as server:
        yield str(server.make_url("/download"))


async def download_size(http: aiohttp.ClientSession, address: str) -> int:
    async with http.get(address) as response:
        return len(await response.read())


async def test_concurrent_downloads_respect_the_limit(address: str, source: Source) -> None:
    async with aiohttp.ClientSession() as http:
        sizes = await asyncio.gather(*(download_size(http, address) for _ in range(10)))
    assert sizes == [5 * len(CHUNK)] * 10
    assert source.maximum == AT_ONCE


@pytest.mark.parametrize(
    ("failure", "status"), [(AutoReconnect("away"), 503), (ConnectionResetError("the file was removed"), 404)]
)
async def test_failure_of_the_first_read_is_an_error_response(
    address: str, source: Source, failure: Exception, status: int
) -> None:
    source.failure = failure
    async with aiohttp.ClientSession() as http, http.get(address) as response:
        assert (response.status, response.content_type) == (status, "application/json")


async def test_slow_receivers_do_not_block_other_downloads(address: str, source: Source) -> None:
    source.chunks = 100  # more than all buffers on the way hold
    async with aiohttp.ClientSession() as http, asyncio.timeout(60):
        slow_downloads = [await http.get(address) for _ in range(AT_ONCE + 1)]
        for each in slow_downloads:
            await each.content.readexactly(1)
        source.chunks = 5
        assert await download_size(http, address) == 5 * len(CHUNK)
        for each in slow_downloads:
            each.close()
