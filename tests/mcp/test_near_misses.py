"""What /mcp says of requests that are nearly right: each is told what is wrong with it, and nothing that is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mcp.door import MODERN, Knocker, envelope

PREFIX = "io.modelcontextprotocol/"


@pytest.mark.parametrize(
    "value",
    [b"9" * 10_000, b"1e999", b"-1e999", b'"\\ud800"', b'{"\\udc00": 1}'],
    ids=["10,000 digits", "1e999", "-1e999", "half a pair", "half a pair as a name"],
)
async def test_json_with_a_value_that_is_not_taken_is_told_so(door: Knocker, value: bytes) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": ' + value + b"}}"
    reply = await door.send(data=body, headers={"Content-Type": "application/json"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32600)
    assert "a value that is not supported" in reply.json["error"]["message"]


@pytest.mark.parametrize("beside", [b"NaN", b"-Infinity", b'"\xff"', b"1e999]", b"01"], ids=str)
async def test_what_is_no_json_beside_such_a_value_is_still_a_parse_error(door: Knocker, beside: bytes) -> None:
    body = b'{"a": 1e999, "b": ' + beside + b"}"
    reply = await door.send(data=body, headers={"Content-Type": "application/json"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32700)


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "no/such/method"])
async def test_headers_are_looked_at_before_the_method(door: Knocker, method: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": envelope()}}
    for headers in ({}, {"Mcp-Method": "tools/call"}):
        reply = await door.say(body, **{"MCP-Protocol-Version": MODERN, **headers})
        assert (reply.status, reply.json["error"]["code"]) == (400, -32020)
        assert "mcp-method header" in reply.json["error"]["message"]


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
async def test_a_malformed_meta_is_named_and_nothing_else_blamed(
    door: Knocker, method: str, wrong: dict[str, Any], named: str
) -> None:
    params = {"name": "list_customers", "arguments": {}} if method == "tools/call" else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": envelope() | wrong}}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": "list_customers"}
    reply = await door.say(body, **headers)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32602)
    assert named in reply.json["error"]["message"]
    assert "cursor" not in reply.raw.decode() and "<script>" not in reply.raw.decode()


async def test_a_malformed_meta_is_named_in_the_older_era_too(door: Knocker) -> None:
    error = (await door.ask("tools/list", {"_meta": 5})).ok()["error"]
    assert (error["code"], "params._meta is not" in error["message"]) == (-32602, True)
