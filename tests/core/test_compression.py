"""ETags and gzip: what a caller has is not sent again, and JSON is sent in fewer bytes (contract 14, bytes)."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp.test_utils import TestServer

from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient
from tests.support.oauth_flow import signed_in


@pytest.fixture
async def raw(server: TestServer, coach: CoachClient) -> AsyncIterator[aiohttp.ClientSession]:
    """Sends the coach's key, and leaves responses as they were sent."""
    session = aiohttp.ClientSession(
        server.make_url("/"),
        headers={"X-API-Key": coach.key or ""},
        skip_auto_headers=["Accept-Encoding"],
        auto_decompress=False,
    )
    yield session
    await session.close()


async def fetch(raw: aiohttp.ClientSession, path: str, **headers: str) -> tuple[int, Any, bytes]:
    """The status, headers and body of a response as they were sent."""
    async with raw.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()}) as response:
        return response.status, response.headers, await response.read()


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        ("gzip", True),
        ("br;q=1, GZIP;q=0.5", True),
        ("*", True),
        ("identity;q=0.5, gzip", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*;q=0", False),
        ("identity, gzip;q=0.5", False),
        ("gzip;q=many", False),
        ("br, deflate", False),
        ("", False),
    ],
)
async def test_json_is_compressed_for_those_who_accept_it(
    raw: aiohttp.ClientSession, accepted: str, *, is_compressed: bool
) -> None:
    _, plain_headers, plain = await fetch(raw, "/exercises/unified?pageSize=20&pageNum=1")
    status, headers, body = await fetch(raw, "/exercises/unified?pageSize=20&pageNum=1", Accept_Encoding=accepted)
    assert (status, headers.get("Content-Encoding")) == (200, "gzip" if is_compressed else None)
    assert headers["Vary"] == plain_headers["Vary"] == "Accept-Encoding"
    assert int(headers["Content-Length"]) == len(body)
    if is_compressed:
        assert len(body) < len(plain) / 2
        body = gzip.decompress(body)
    assert orjson.loads(body)["docs"] == orjson.loads(plain)["docs"]


async def test_small_bodies_streams_and_pages_opened_by_other_sites_are_not_compressed(
    raw: aiohttp.ClientSession, server: TestServer, coach: CoachClient
) -> None:
    _, headers, _ = await fetch(raw, "/me", Accept_Encoding="gzip")
    assert not {"Content-Encoding", "Vary"} & set(headers)
    browser = await signed_in(server, coach)
    elsewhere = {"Accept-Encoding": "gzip", "Sec-Fetch-Site": "cross-site"}
    page = await browser.get("/app/customers", headers=elsewhere)
    assert len(page.html) > 1024
    assert 'name="csrf"' in page.html
    assert "Content-Encoding" not in page.headers
    await browser.close()
    async with McpHttpClient(server, {"X-API-Key": coach.key or "", "Accept-Encoding": "gzip"}) as mcp:
        assert (await mcp.request("tools/list")).headers["Content-Encoding"] == "gzip"
        stream = await mcp.request("tools/list", Accept="text/event-stream")
    assert stream.headers["Content-Type"].startswith("text/event-stream")
    assert "Content-Encoding" not in stream.headers


async def test_the_api_document_is_sent_again_only_when_it_has_changed(raw: aiohttp.ClientSession) -> None:
    _, headers, body = await fetch(raw, "/swagger-json")
    tag = headers["ETag"]
    assert tag == f'"{hashlib.sha256(body).hexdigest()}"'
    assert headers["Cache-Control"] == "no-cache"
    _, compressed_headers, compressed = await fetch(raw, "/swagger-json", Accept_Encoding="gzip")
    assert compressed_headers["ETag"] == f"W/{tag}", "other bytes have no equal strong tag"
    assert gzip.decompress(compressed) == body
    for known in (tag, f"W/{tag}", "*", f'"other", W/{tag}, "more, of them"'):
        for accepted in ("gzip", "identity"):
            status, headers, sent = await fetch(raw, "/swagger-json", If_None_Match=known, Accept_Encoding=accepted)
            assert (status, sent, headers["Vary"]) == (304, b"", "Accept-Encoding"), known
            assert headers["ETag"].removeprefix("W/") == tag
    for other in ('"other"', tag.strip('"'), f'"{tag.strip(chr(34))}x"', ""):
        assert (await fetch(raw, "/swagger-json", If_None_Match=other))[0] == 200, other
