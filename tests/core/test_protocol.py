"""HTTP below the application: malformed requests, slow and idle connections, and connection limits."""

from __future__ import annotations

import asyncio
import json
import re
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web

from coaching_service.http_server import ConnectionLimits, Runner, raise_descriptor_limit
from tests.support.logs import recorded_logs

KEY = "cs_ak_very-secret-indeed"


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A small application on the server that `serve` uses."""
    async with listening(ConnectionLimits()) as number:
        yield number


@asynccontextmanager
async def listening(limits: ConnectionLimits) -> AsyncIterator[int]:
    """The port of a small application with these limits."""
    application = web.Application()
    application.router.add_get("/hello", _hello)
    application.router.add_post("/read", _read)
    runner = Runner(application, limits=limits, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def _hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


async def _read(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


async def exchange(port: int, text: bytes) -> tuple[bytes, bytes]:
    """Send raw bytes and return the head and the body of the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    response = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = response.partition(b"\r\n\r\n")
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
        b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: " + KEY.encode() + b"\xff\r\n\r\n",
    ],
)
async def test_malformed_http_gets_the_service_error_shape(port: int, broken: bytes) -> None:
    head, body = await exchange(port, broken)

    status = int(head.split()[1])
    assert status in (400, 404, 414, 417, 501)
    if status != 404:  # aiohttp's own page, as this application has no middleware
        assert json.loads(body)["statusCode"] == status
        assert b"X-Request-Id: " in head
    assert KEY.encode() not in head + body
    assert b"aiohttp" not in body


async def test_valid_http_is_answered(port: int) -> None:
    head, body = await exchange(port, b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body == b"hello"


@pytest.mark.parametrize("method", [b"FOO", b"G@T", b"get"])
async def test_unknown_method_is_not_implemented(port: int, method: bytes) -> None:
    head, body = await exchange(port, method + b" /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    assert head.split()[1] == b"501"
    assert json.loads(body) == {"statusCode": 501, "message": "The method is not supported", "error": "Not Implemented"}


async def test_malformed_http_has_a_code(port: int) -> None:
    _, body = await exchange(port, b"GET /hello HTTP/1.1\r\nHost : x\r\n\r\n")
    assert json.loads(body)["code"] == "MALFORMED_HTTP"


async def test_an_address_that_is_too_long_has_a_status_of_its_own(port: int) -> None:
    head, body = await exchange(port, b"GET /hello?" + b"a" * 8200 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (head.split()[1], json.loads(body)["code"]) == (b"414", "URI_TOO_LONG")
    head, body = await exchange(port, b"GET /hello HTTP/1.1\r\nHost: x\r\nReferer: " + b"/" * 8300 + b"\r\n\r\n")
    assert (head.split()[1], json.loads(body)["code"]) == (b"400", "MALFORMED_HTTP")


@pytest.mark.parametrize("sent", [b"", b"GET /hel", b"GET /hello HTTP/1.1\r\nHost: x\r\n"])
async def test_connection_without_complete_headers_is_closed(sent: bytes) -> None:
    async with listening(ConnectionLimits(header_seconds=0.1)) as port, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        assert await reader.read() == b""
        writer.close()


async def test_headers_that_arrive_byte_by_byte_have_the_same_time_limit() -> None:
    async with listening(ConnectionLimits(header_seconds=0.1)) as port, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /hello HTTP/1.1\r\nX: ")
        closed = asyncio.create_task(reader.read())
        while not closed.done():
            writer.write(b"a")
            await asyncio.wait([closed], timeout=0.01)
        with suppress(ConnectionResetError):
            assert closed.result() == b""
        writer.close()


async def test_a_thousand_slow_connections_are_held_while_others_are_served() -> None:
    """Half send their headers byte by byte, half their body."""
    connections = 1_000
    assert raise_descriptor_limit(3 * connections) >= 2 * connections + 100, "both ends are in this process"
    starts = (b"GET /hello HTTP/1.1\r\nX: ", b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
    limits = ConnectionLimits(maximum=connections + 10, per_address=None, header_seconds=600)
    async with listening(limits) as port, asyncio.timeout(120):
        slow = []
        for number in range(connections):
            slow.append(await asyncio.open_connection("127.0.0.1", port))
            slow[-1][1].write(starts[number % 2])
        for _ in range(3):
            for _, writer in slow:
                writer.write(b"a")
            head, body = await exchange(port, b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert (head[:12], body) == (b"HTTP/1.1 200", b"hello")
        assert not any(reader.at_eof() for reader, _ in slow)
        for _, writer in slow:
            writer.transport.abort()


async def test_headers_of_a_second_request_have_the_same_time_limit() -> None:
    async with listening(ConnectionLimits(header_seconds=0.1)) as port, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /hel")
        assert await reader.read() == b""
        writer.close()


async def test_idle_connection_is_closed_after_the_keepalive_timeout() -> None:
    async with listening(ConnectionLimits(keepalive_seconds=0.1)) as port, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200")
        assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize("limits", [{"maximum": 2}, {"per_address": 2}])
async def test_connections_over_a_limit_get_503_until_others_close(limits: dict[str, int]) -> None:
    async with listening(ConnectionLimits(**limits)) as port, asyncio.timeout(30):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        refusal = await reader.read()
        assert refusal.startswith(b"HTTP/1.1 503")
        head, _, body = refusal.partition(b"\r\n\r\n")
        assert b"\r\nRetry-After: 10\r\n" in head
        assert re.search(rb"\r\nX-Request-Id: [0-9a-f]{32}\r\n", head)
        assert json.loads(body) == {
            "statusCode": 503,
            "message": "Too many connections; try again shortly",
            "error": "Service Unavailable",
            "code": "UNAVAILABLE",
        }
        writer.close()

        for _, silent_writer in silent:
            silent_writer.close()
            await silent_writer.wait_closed()
        head = b""
        while not head.startswith(b"HTTP/1.1 200"):  # the server counts a closed connection once it learns of it
            head, _ = await exchange(port, b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")


def test_limit_of_open_files_is_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        connections = raise_descriptor_limit(400)
        raised, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert raised > 256
    assert connections == 400


def test_connections_are_limited_to_the_open_files_allowed() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with recorded_logs() as logs:
        connections = raise_descriptor_limit(hard + 1)
    assert connections < hard
    assert [entry["log_level"] for entry in logs] == ["warning"]


def test_nearly_reached_limit_is_logged_once() -> None:
    limits = ConnectionLimits(maximum=10, per_address=None)
    with recorded_logs() as logs:
        for number in range(11):
            limits.admit(str(number))
    assert [entry["event"] for entry in logs] == ["connections near their limit"]


@pytest.mark.parametrize(
    "request_line",
    [b"GET /hello", b"GET /hello HTTP/0.9", b"GET /hello HTTP/0.9\r\nConnection: keep-alive", b"GET /hello HTTP/2.0"],
)
async def test_other_versions_of_http_are_refused_and_closed(port: int, request_line: bytes) -> None:
    """The exchange ends only when the service closes the connection."""
    head, body = await exchange(port, request_line + b"\r\n\r\n")
    assert int(head.split()[1]) == 400
    assert json.loads(body)["code"] == "MALFORMED_HTTP"
