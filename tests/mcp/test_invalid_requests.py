"""Responses of /mcp to invalid requests: each error states the actual cause."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestServer

from benchmarks.mcp_messages import MODERN, envelope
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient

PREFIX = "io.modelcontextprotocol/"


@pytest.mark.parametrize(
    "value",
    [b"9" * 10_000, b"1e999", b"-1e999", b'"\\ud800"', b'{"\\udc00": 1}'],
    ids=["10,000 digits", "1e999", "-1e999", "half a pair", "half a pair as a name"],
)
async def test_unsupported_json_value_is_named_in_the_error(mcp: McpHttpClient, value: bytes) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": ' + value + b"}}"
    reply = await mcp.send(data=body, headers={"Content-Type": "application/json"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32600)
    assert "a value that is not supported" in reply.json["error"]["message"]


@pytest.mark.parametrize("unsupported", [b"NaN", b"-Infinity", b'"\xff"', b"1e999]", b"01"], ids=str)
async def test_malformed_json_with_an_unsupported_value_is_a_parse_error(
    mcp: McpHttpClient, unsupported: bytes
) -> None:
    body = b'{"a": 1e999, "b": ' + unsupported + b"}"
    reply = await mcp.send(data=body, headers={"Content-Type": "application/json"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32700)


@pytest.mark.parametrize(
    "value", [b'{"a": 1, "a": 2}', b"[" * 100 + b"]" * 100], ids=["name twice", "nested too deeply"]
)
async def test_ambiguous_json_is_a_parse_error(mcp: McpHttpClient, value: bytes) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": ' + value + b"}}"
    reply = await mcp.send(data=body, headers={"Content-Type": "application/json"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32700)


async def test_version_header_that_is_not_utf8_is_an_unknown_revision(
    public_server: TestServer, coach: CoachClient
) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    reader, writer = await asyncio.open_connection(public_server.host, public_server.port)
    lines = [
        b"POST /mcp HTTP/1.1",
        b"Host: " + f"{public_server.host}:{public_server.port}".encode(),
        b"X-API-Key: " + str(coach.key).encode(),
        b"Content-Type: application/json",
        b"MCP-Protocol-Version: 20\xe9\xff",
        b"Connection: close",
        b"Content-Length: " + str(len(body)).encode(),
    ]
    writer.write(b"\r\n".join([*lines, b"", body]))
    head, _, answer = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert b" 400 " in head.splitlines()[0]
    error = orjson.loads(answer)["error"]
    assert (error["code"], error["data"]["requested"]) == (-32022, "20\ufffd\ufffd")


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "no/such/method"])
async def test_headers_are_checked_before_the_method(mcp: McpHttpClient, method: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": envelope()}}
    for headers in ({}, {"Mcp-Method": "tools/call"}):
        reply = await mcp.post_json(body, **{"MCP-Protocol-Version": MODERN, **headers})
        assert (reply.status, reply.json["error"]["code"]) == (400, -32020)
        assert "mcp-method header" in reply.json["error"]["message"]


@pytest.mark.parametrize("name", ["=?base64?é?=", "=?base64?!?=", "=?base64?/w==?="])
async def test_name_that_is_not_base64_is_refused(mcp: McpHttpClient, name: str) -> None:
    params = {"name": "list_customers", "arguments": {}, "_meta": envelope()}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}
    reply = await mcp.post_json(body, **headers)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32020)
    assert "mcp-name header" in reply.json["error"]["message"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({f"{PREFIX}clientCapabilities": 5}, f"params._meta.{PREFIX}clientCapabilities is not"),
        ({f"{PREFIX}clientCapabilities": {"sampling": 5}}, f"params._meta.{PREFIX}clientCapabilities is not"),
        ({f"{PREFIX}clientInfo": {"name": "<script>"}}, f"params._meta.{PREFIX}clientInfo is not"),
        ({"progressToken": {}}, "params._meta.progressToken is not"),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "server/discover"])
async def test_malformed_meta_is_the_only_reported_error(
    mcp: McpHttpClient, method: str, wrong: dict[str, Any], named: str
) -> None:
    params = {"name": "list_customers", "arguments": {}} if method == "tools/call" else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": envelope() | wrong}}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": "list_customers"}
    reply = await mcp.post_json(body, **headers)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32602)
    assert named in reply.json["error"]["message"]
    assert "cursor" not in reply.raw.decode() and "<script>" not in reply.raw.decode()


async def test_malformed_meta_is_reported_to_2025_clients(mcp: McpHttpClient) -> None:
    error = (await mcp.request("tools/list", {"_meta": 5})).ok()["error"]
    assert (error["code"], "params._meta is not" in error["message"]) == (-32602, True)
