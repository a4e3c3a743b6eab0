"""The messages that /mcp accepts and its responses."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from benchmarks.mcp_messages import MODERN, envelope
from tests.mcp.test_tool_catalogue import listed_names
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}}


def challenge(mcp: McpHttpClient, *, error: bool) -> str:
    known = f'Bearer resource_metadata="{mcp.base_url}/.well-known/oauth-protected-resource/mcp", scope="mcp"'
    return known + (', error="invalid_token"' if error else "")


@pytest.mark.parametrize("method", ["POST", "GET", "HEAD", "DELETE", "PUT", "PATCH"])
async def test_missing_credential_is_401_with_metadata_for_every_method(
    unauthenticated: McpHttpClient, method: str
) -> None:
    reply = await unauthenticated.send(method)
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"] == challenge(unauthenticated, error=False)
    assert method == "HEAD" or reply.json.keys() == {"error", "error_description"}


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize(
    "headers",
    [
        {"X-API-Key": "cs_ak_" + "x" * 43},
        {"Authorization": "Bearer nobody"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic bm9ib2R5Og=="},
    ],
)
async def test_invalid_credential_is_401_with_invalid_token(
    unauthenticated: McpHttpClient, method: str, headers: dict[str, str]
) -> None:
    reply = await unauthenticated.send(method, headers=headers)
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"] == challenge(unauthenticated, error=True)


@pytest.mark.parametrize("authorization", ["Bearer nobody", "Basic bm9ib2R5Og=="])
async def test_invalid_authorization_wins_over_a_valid_key(mcp: McpHttpClient, authorization: str) -> None:
    assert (await mcp.post_json(LIST, Authorization=authorization)).status == 401


async def test_rest_session_is_rejected(unauthenticated: McpHttpClient, interactive: CoachClient) -> None:
    bearer = interactive._headers["Authorization"]
    assert (await unauthenticated.post_json(LIST, Authorization=bearer)).status == 401


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT", "PATCH"])
async def test_only_post_is_allowed(mcp: McpHttpClient, method: str) -> None:
    reply = await mcp.send(method)
    assert (reply.status, reply.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/json-rpc", None])
async def test_other_content_types_are_415(mcp: McpHttpClient, kind: str | None) -> None:
    skip = () if kind else ("Content-Type",)
    reply = await mcp.send(data=b"{}", headers={"Content-Type": kind} if kind else {}, skip_auto_headers=skip)
    assert reply.status == 415


async def test_charset_parameter_is_accepted(mcp: McpHttpClient) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    assert (await mcp.send(data=aiohttp.JsonPayload(LIST), headers=headers)).status == 200


@pytest.mark.parametrize("accept", ["text/html", "image/png, text/css", "*/*;q=0"])
async def test_unacceptable_accept_header_is_406(mcp: McpHttpClient, accept: str) -> None:
    assert (await mcp.post_json(LIST, Accept=accept)).status == 406


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/event-stream", "application/*"])
async def test_json_is_sent_when_accepted(mcp: McpHttpClient, accept: str) -> None:
    reply = await mcp.post_json(LIST, Accept=accept)
    assert {tool["name"] for tool in reply.ok()["result"]["tools"]} == listed_names()


async def test_event_stream_is_sent_when_json_is_not_accepted(mcp: McpHttpClient) -> None:
    reply = await mcp.post_json(LIST, Accept="application/json;q=0, text/event-stream")
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    assert reply.raw.startswith(b"event: message\ndata: {") and reply.raw.endswith(b"}\n\n")


async def test_body_over_the_limit_is_413_and_closes_the_connection(mcp: McpHttpClient) -> None:
    reply = await mcp.post_json({**LIST, "params": {"filler": "x" * 1_048_576}})
    assert (reply.status, reply.headers["Connection"]) == (413, "close")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense", b'{"a": NaN}', b'{"a": "\xff"}', b"[" * 100_000, b'{"id": 1} {"id": 2}'],
    ids=["empty", "cut off", "words", "NaN", "bad utf-8", "deep", "two"],
)
async def test_malformed_json_is_a_parse_error(mcp: McpHttpClient, body: bytes) -> None:
    reply = await mcp.send(data=body, headers={"Content-Type": "application/json"})
    assert reply.status == 400
    assert (reply.json["id"], reply.json["error"]["code"]) == (None, -32700)


@pytest.mark.parametrize(
    "body",
    [
        {**LIST, "id": None},
        {**LIST, "id": 1.5},
        {**LIST, "id": True},
        {**LIST, "id": {}},
        {**LIST, "jsonrpc": "1.0"},
        {**LIST, "params": []},
        {**LIST, "params": "x"},
        {"jsonrpc": "2.0", "id": 1},
        {"id": 1, "method": "tools/list"},
        {"method": "notifications/initialized"},
        {},
        "tools/list",
        7,
        None,
    ],
    ids=str,
)
@pytest.mark.parametrize("version", ["2025-11-25", None])
async def test_json_that_is_not_a_message_is_an_invalid_request(
    mcp: McpHttpClient, body: Any, version: str | None
) -> None:
    reply = await mcp.post_json(body, **({"MCP-Protocol-Version": version} if version else {}))
    assert reply.status == 400
    assert reply.json["error"]["code"] == -32600


@pytest.mark.parametrize("version", [None, "2025-03-26"])
async def test_batches_are_served_for_2025_03_26(mcp: McpHttpClient, version: str | None) -> None:
    headers = {"MCP-Protocol-Version": version} if version else {}
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    reply = await mcp.post_json([LIST, notification, {**LIST, "id": "two"}, {**LIST, "id": None}], **headers)
    assert [each["id"] for each in reply.ok()] == [1, "two", None]
    assert (await mcp.post_json([notification, notification], **headers)).status == 202


@pytest.mark.parametrize(
    "batch",
    [[], [{**LIST, "method": "initialize", "params": INITIALIZE}], [LIST] * 51],
    ids=["empty", "initialize", "51"],
)
async def test_invalid_batches_are_rejected(mcp: McpHttpClient, batch: list[Any]) -> None:
    reply = await mcp.post_json(batch)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", MODERN])
async def test_newer_revisions_reject_batches(mcp: McpHttpClient, version: str) -> None:
    reply = await mcp.post_json([LIST], **{"MCP-Protocol-Version": version})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32600)


async def test_unknown_revision_lists_the_supported_ones(mcp: McpHttpClient) -> None:
    reply = await mcp.post_json(LIST, **{"MCP-Protocol-Version": "2031-01-01"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32022)
    discovered = (await mcp.request_modern("server/discover")).ok()["result"]
    assert reply.json["error"]["data"]["supported"] == discovered["supportedVersions"] == [MODERN]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_initialize_accepts_every_handshake_revision(mcp: McpHttpClient, version: str) -> None:
    result = (await mcp.request("initialize", {**INITIALIZE, "protocolVersion": version})).ok()["result"]
    assert result["protocolVersion"] == version
    assert result["capabilities"].keys() == {"tools", "prompts"}
    assert "list_customers" in result["instructions"]


async def test_initialize_with_unknown_revision_returns_the_newest_handshake_revision(mcp: McpHttpClient) -> None:
    reply = await mcp.request("initialize", {**INITIALIZE, "protocolVersion": "1999-01-01"})
    assert reply.ok()["result"]["protocolVersion"] == "2025-11-25"


async def test_unknown_method_is_reported_in_each_protocol_era(mcp: McpHttpClient) -> None:
    older = await mcp.request("resources/list")
    assert (older.status, older.json["error"]["code"]) == (200, -32601)
    newer = await mcp.request_modern("resources/list")
    assert (newer.status, newer.json["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize("method", ["ping", "initialize", "subscriptions/listen"])
async def test_methods_removed_in_2026_are_not_found(mcp: McpHttpClient, method: str) -> None:
    known: dict[str, dict[str, Any]] = {"initialize": INITIALIZE, "subscriptions/listen": {"notifications": {}}}
    params = known.get(method)
    reply = await mcp.request_modern(method, params)
    assert (reply.status, reply.json["error"]["code"]) == (404, -32601)


async def test_ping_is_answered_for_2025_clients(mcp: McpHttpClient) -> None:
    assert (await mcp.request("ping")).ok()["result"] == {}


async def test_invalid_parameters_are_reported_in_each_protocol_era(mcp: McpHttpClient) -> None:
    older = await mcp.request("tools/call", {"name": 7})
    assert (older.status, older.json["error"]["code"]) == (200, -32602)
    newer = await mcp.request_modern("tools/list", {"cursor": 7})
    assert (newer.status, newer.json["error"]["code"]) == (400, -32602)


async def test_unknown_tool_is_a_protocol_error_without_quotes(mcp: McpHttpClient) -> None:
    error = (await mcp.request("tools/call", {"name": "drop_<tables>", "arguments": {}})).ok()["error"]
    assert error["code"] == -32602
    assert "drop_" not in error["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Mcp_Method": "tools/call"},
        {"Mcp_Method": ""},
        {"MCP_Protocol_Version": "2025-11-25"},
    ],
    ids=str,
)
async def test_headers_contradicting_the_body_are_a_mismatch(mcp: McpHttpClient, headers: dict[str, str]) -> None:
    reply = await mcp.request_modern("tools/list", None, None, **headers)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32020)


async def test_missing_routing_headers_are_a_mismatch(mcp: McpHttpClient) -> None:
    body = {**LIST, "params": {"_meta": envelope()}}
    reply = await mcp.post_json(body, **{"MCP-Protocol-Version": MODERN})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32020)
    wrong = await mcp.request_modern("tools/call", {"name": "list_customers", "arguments": {}}, Mcp_Name="get_customer")
    assert (wrong.status, wrong.json["error"]["code"]) == (400, -32020)


async def test_2026_request_without_its_envelope_is_rejected(mcp: McpHttpClient) -> None:
    reply = await mcp.post_json(LIST, **{"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("message", [{"method": "notifications/initialized"}, {"method": "notifications/anything"}])
async def test_notifications_are_accepted_and_ignored(mcp: McpHttpClient, message: dict[str, str]) -> None:
    reply = await mcp.post_json({"jsonrpc": "2.0", **message})
    assert (reply.status, reply.raw) == (202, b"")
    newer = await mcp.post_json({"jsonrpc": "2.0", **message}, **{"MCP-Protocol-Version": MODERN})
    assert newer.status == 202


async def test_unsolicited_responses_are_ignored(mcp: McpHttpClient) -> None:
    results: list[dict[str, Any]] = [{"result": {}}, {"error": {"code": -1, "message": "no"}}]
    for answer in results:
        assert (await mcp.post_json({"jsonrpc": "2.0", "id": 1, **answer})).status == 202
        assert (await mcp.post_json({"jsonrpc": "1.0", "id": 1, **answer})).status == 400
    malformed: list[dict[str, Any]] = [{"result": {}}, {"error": "no"}]
    for answer in malformed:
        assert (await mcp.post_json({"jsonrpc": "2.0", **answer})).status == 400


async def test_errors_carry_the_request_id_when_known(mcp: McpHttpClient) -> None:
    assert (await mcp.post_json({**LIST, "params": []})).json["id"] == 1
    assert (await mcp.post_json(LIST, **{"MCP-Protocol-Version": "2031-01-01"})).json["id"] == 1


async def test_malformed_tool_call_names_the_required_parameters(mcp: McpHttpClient) -> None:
    for params in (None, {"name": 5}, {"name": "list_customers", "arguments": []}):
        error = (await mcp.request("tools/call", params)).ok()["error"]
        assert (error["code"], "needs name" in error["message"]) == (-32602, True)
    for method in ("logging/setLevel", "completion/complete", "resources/read"):
        assert (await mcp.request(method)).ok()["error"]["code"] == -32601


async def test_session_headers_are_ignored_and_never_sent(mcp: McpHttpClient) -> None:
    reply = await mcp.post_json(LIST, **{"Mcp-Session-Id": "made-up", "Last-Event-ID": "7"})
    assert reply.status == 200
    assert "Mcp-Session-Id" not in reply.headers


async def test_cross_origin_requests_are_limited_to_allowed_origins(mcp: McpHttpClient) -> None:
    for origin in (mcp.base_url, "http://localhost:6274", "http://127.0.0.1:1"):
        reply = await mcp.post_json(LIST, Origin=origin)
        assert reply.status == 200
        assert reply.headers["Access-Control-Allow-Origin"] == origin
    odd = ("http://127.0.0.1:8090.evil.com", "http://localhost:x", "http://evil@localhost", "http://localhost/path")
    for origin in (
        *odd,
        "https://evil.example",
        "null",
        "http://127.0.0.1.evil.example",
        "not an origin",
        "http://[bad",
    ):
        reply = await mcp.post_json(LIST, Origin=origin)
        assert reply.status == 403
        assert "Access-Control-Allow-Origin" not in reply.headers


async def test_preflight_needs_no_credential_and_401_is_readable_by_pages(unauthenticated: McpHttpClient) -> None:
    preflight = await unauthenticated.send("OPTIONS", headers={"Origin": unauthenticated.base_url})
    assert preflight.status == 204
    assert "X-API-Key" in preflight.headers["Access-Control-Allow-Headers"]
    refused = await unauthenticated.post_json(LIST, Origin=unauthenticated.base_url)
    assert refused.status == 401
    assert "WWW-Authenticate" in refused.headers["Access-Control-Expose-Headers"]
    foreign = await unauthenticated.send("OPTIONS", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in foreign.headers


async def test_api_key_is_accepted_as_a_bearer(unauthenticated: McpHttpClient, coach: CoachClient) -> None:
    reply = await unauthenticated.request("tools/list", Authorization=f"Bearer {coach.key}")
    assert reply.ok()["result"]["tools"]
    rejected = await unauthenticated.request("tools/list", Authorization="Bearer cs_ak_" + "A" * 43)
    assert rejected.status == 401
    assert 'error="invalid_token"' in rejected.headers["WWW-Authenticate"]
