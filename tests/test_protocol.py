"""What never reaches the application: broken HTTP is refused in our shape, and nothing of it is repeated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from coaching_service.core.http.server import Runner

KEY = "cs_ak_very-secret-indeed"


@pytest.fixture
async def port(app: web.Application) -> AsyncIterator[int]:
    """The application on the server that `serve` runs it on."""
    inner = web.Application()
    inner.router.add_get("/hello", _hello)
    runner = Runner(inner, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def _hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


async def say(port: int, text: bytes) -> tuple[bytes, bytes]:
    """The head and the body of the answer to raw bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


@pytest.mark.parametrize(
    "broken",
    [
        b"FOO BAR BAZ\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nHost: x\r\nX-API-Key: " + KEY.encode() + b"\x01\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nHost: x\r\nX-API-Key : " + KEY.encode() + b"\r\n\r\n",
        b"GET /" + KEY.encode() + b"?" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nX-API-Key: "
        + KEY.encode()
        + b"\r\n\r\nzz\r\n",
        b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: " + KEY.encode() + b"\r\n\r\n",
    ],
)
async def test_malformed_http_gets_the_service_error_shape(port: int, broken: bytes) -> None:
    head, body = await say(port, broken)

    status = int(head.split()[1])
    assert status in (400, 404, 417)
    if status != 404:  # plain aiohttp's own, as this little application has no middleware
        assert json.loads(body)["statusCode"] == status
        assert b"X-Request-Id: " in head
    assert KEY.encode() not in head + body
    assert b"aiohttp" not in body


async def test_valid_http_is_answered(port: int) -> None:
    head, body = await say(port, b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body == b"hello"
