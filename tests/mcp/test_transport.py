"""What /mcp takes in and how it answers, row by row."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from tests.client import CoachClient
from tests.mcp.door import MODERN, Knocker, envelope

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}}


def challenge(door: Knocker, *, error: bool) -> str:
    known = f'Bearer resource_metadata="{door.base_url}/.well-known/oauth-protected-resource/mcp", scope="mcp"'
    return known + (', error="invalid_token"' if error else "")


@pytest.mark.parametrize("method", ["POST", "GET", "HEAD", "DELETE", "PUT", "PATCH"])
async def test_without_a_credential_every_method_is_told_where_to_get_one(stranger: Knocker, method: str) -> None:
    reply = await stranger.send(method)
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"] == challenge(stranger, error=False)
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
async def test_a_bad_credential_is_told_so(stranger: Knocker, method: str, headers: dict[str, str]) -> None:
    reply = await stranger.send(method, headers=headers)
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"] == challenge(stranger, error=True)


@pytest.mark.parametrize("authorization", ["Bearer nobody", "Basic bm9ib2R5Og=="])
async def test_a_bad_authorization_beside_a_good_key_decides(door: Knocker, authorization: str) -> None:
    assert (await door.say(LIST, Authorization=authorization)).status == 401


async def test_a_rest_session_does_not_open_the_door(stranger: Knocker, interactive: CoachClient) -> None:
    bearer = interactive._headers["Authorization"]
    assert (await stranger.say(LIST, Authorization=bearer)).status == 401


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT", "PATCH"])
async def test_with_a_credential_only_post_is_served(door: Knocker, method: str) -> None:
    reply = await door.send(method)
    assert (reply.status, reply.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/json-rpc", None])
async def test_a_body_that_is_not_said_to_be_json_is_415(door: Knocker, kind: str | None) -> None:
    skip = () if kind else ("Content-Type",)
    reply = await door.send(data=b"{}", headers={"Content-Type": kind} if kind else {}, skip_auto_headers=skip)
    assert reply.status == 415


async def test_a_charset_beside_the_content_type_is_fine(door: Knocker) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    assert (await door.send(data=aiohttp.JsonPayload(LIST), headers=headers)).status == 200


@pytest.mark.parametrize("accept", ["text/html", "image/png, text/css", "*/*;q=0"])
async def test_a_caller_who_takes_neither_form_is_406(door: Knocker, accept: str) -> None:
    assert (await door.say(LIST, Accept=accept)).status == 406


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/event-stream", "application/*"])
async def test_a_caller_who_takes_json_gets_json(door: Knocker, accept: str) -> None:
    reply = await door.say(LIST, Accept=accept)
    assert len(reply.ok()["result"]["tools"]) == 18


async def test_a_caller_who_takes_only_events_gets_one(door: Knocker) -> None:
    reply = await door.say(LIST, Accept="application/json;q=0, text/event-stream")
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    assert reply.raw.startswith(b"event: message\ndata: {") and reply.raw.endswith(b"}\n\n")


async def test_a_body_over_the_limit_is_413_and_the_connection_closes(door: Knocker) -> None:
    reply = await door.say({**LIST, "params": {"filler": "x" * 1_048_576}})
    assert (reply.status, reply.headers["Connection"]) == (413, "close")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense", b'{"a": NaN}', b'{"a": "\xff"}', b"[" * 100_000, b'{"id": 1} {"id": 2}'],
    ids=["empty", "cut off", "words", "NaN", "bad utf-8", "deep", "two"],
)
async def test_what_is_not_json_is_a_parse_error(door: Knocker, body: bytes) -> None:
    reply = await door.send(data=body, headers={"Content-Type": "application/json"})
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
async def test_json_that_is_no_message_is_an_invalid_request(door: Knocker, body: Any, version: str | None) -> None:
    reply = await door.say(body, **({"MCP-Protocol-Version": version} if version else {}))
    assert reply.status == 400
    assert reply.json["error"]["code"] == -32600


@pytest.mark.parametrize("version", [None, "2025-03-26"])
async def test_the_revision_that_has_batches_gets_them(door: Knocker, version: str | None) -> None:
    headers = {"MCP-Protocol-Version": version} if version else {}
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    reply = await door.say([LIST, told, {**LIST, "id": "two"}, {**LIST, "id": None}], **headers)
    assert [each["id"] for each in reply.ok()] == [1, "two", None]
    assert (await door.say([told, told], **headers)).status == 202


@pytest.mark.parametrize(
    "batch",
    [[], [{**LIST, "method": "initialize", "params": INITIALIZE}], [LIST] * 51],
    ids=["empty", "initialize", "51"],
)
async def test_some_batches_are_refused(door: Knocker, batch: list[Any]) -> None:
    reply = await door.say(batch)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", MODERN])
async def test_newer_revisions_have_no_batches(door: Knocker, version: str) -> None:
    reply = await door.say([LIST], **{"MCP-Protocol-Version": version})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32600)


async def test_an_unknown_revision_is_told_the_known_one_that_discovery_lists(door: Knocker) -> None:
    reply = await door.say(LIST, **{"MCP-Protocol-Version": "2031-01-01"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32022)
    discovered = (await door.ask_modern("server/discover")).ok()["result"]
    assert reply.json["error"]["data"]["supported"] == discovered["supportedVersions"] == [MODERN]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_revision_with_a_handshake_is_agreed_to(door: Knocker, version: str) -> None:
    result = (await door.ask("initialize", {**INITIALIZE, "protocolVersion": version})).ok()["result"]
    assert result["protocolVersion"] == version
    assert result["capabilities"].keys() == {"tools"}
    assert "list_customers" in result["instructions"]


async def test_a_handshake_for_an_unknown_revision_is_answered_with_the_newest_of_its_era(door: Knocker) -> None:
    reply = await door.ask("initialize", {**INITIALIZE, "protocolVersion": "1999-01-01"})
    assert reply.ok()["result"]["protocolVersion"] == "2025-11-25"


async def test_an_unknown_method_is_not_found_in_each_eras_way(door: Knocker) -> None:
    older = await door.ask("resources/list")
    assert (older.status, older.json["error"]["code"]) == (200, -32601)
    newer = await door.ask_modern("resources/list")
    assert (newer.status, newer.json["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize("method", ["ping", "initialize", "subscriptions/listen"])
async def test_methods_the_newer_era_has_not(door: Knocker, method: str) -> None:
    params = {"initialize": INITIALIZE, "subscriptions/listen": {"notifications": {}}}.get(method)
    reply = await door.ask_modern(method, params)
    assert (reply.status, reply.json["error"]["code"]) == (404, -32601)


async def test_ping_is_answered_in_the_older_era(door: Knocker) -> None:
    assert (await door.ask("ping")).ok()["result"] == {}


async def test_bad_parameters_are_refused_in_each_eras_way(door: Knocker) -> None:
    older = await door.ask("tools/call", {"name": 7})
    assert (older.status, older.json["error"]["code"]) == (200, -32602)
    newer = await door.ask_modern("tools/list", {"cursor": 7})
    assert (newer.status, newer.json["error"]["code"]) == (400, -32602)


async def test_an_unknown_tool_is_a_protocol_error_that_quotes_nothing(door: Knocker) -> None:
    error = (await door.ask("tools/call", {"name": "drop_<tables>", "arguments": {}})).ok()["error"]
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
async def test_headers_that_contradict_the_body_are_a_mismatch(door: Knocker, headers: dict[str, str]) -> None:
    reply = await door.ask_modern("tools/list", **headers)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32020)


async def test_missing_routing_headers_are_a_mismatch(door: Knocker) -> None:
    body = {**LIST, "params": {"_meta": envelope()}}
    reply = await door.say(body, **{"MCP-Protocol-Version": MODERN})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32020)
    wrong = await door.ask_modern("tools/call", {"name": "list_customers", "arguments": {}}, Mcp_Name="get_customer")
    assert (wrong.status, wrong.json["error"]["code"]) == (400, -32020)


async def test_a_modern_request_without_its_envelope_is_refused(door: Knocker) -> None:
    reply = await door.say(LIST, **{"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("message", [{"method": "notifications/initialized"}, {"method": "notifications/anything"}])
async def test_notifications_are_taken_and_dropped(door: Knocker, message: dict[str, str]) -> None:
    reply = await door.say({"jsonrpc": "2.0", **message})
    assert (reply.status, reply.raw) == (202, b"")
    newer = await door.say({"jsonrpc": "2.0", **message}, **{"MCP-Protocol-Version": MODERN})
    assert newer.status == 202


async def test_an_answer_to_a_request_we_never_made_is_dropped(door: Knocker) -> None:
    for answer in ({"result": {}}, {"error": {"code": -1, "message": "no"}}):
        assert (await door.say({"jsonrpc": "2.0", "id": 1, **answer})).status == 202
        assert (await door.say({"jsonrpc": "1.0", "id": 1, **answer})).status == 400
    for answer in ({"result": {}}, {"error": "no"}):
        assert (await door.say({"jsonrpc": "2.0", **answer})).status == 400


async def test_errors_name_the_request_where_they_can(door: Knocker) -> None:
    assert (await door.say({**LIST, "params": []})).json["id"] == 1
    assert (await door.say(LIST, **{"MCP-Protocol-Version": "2031-01-01"})).json["id"] == 1


async def test_a_call_that_is_no_call_is_told_what_a_call_needs(door: Knocker) -> None:
    for params in (None, {"name": 5}, {"name": "list_customers", "arguments": []}):
        error = (await door.ask("tools/call", params)).ok()["error"]
        assert (error["code"], "needs name" in error["message"]) == (-32602, True)
    for method in ("logging/setLevel", "completion/complete", "prompts/get"):
        assert (await door.ask(method)).ok()["error"]["code"] == -32601


async def test_sessions_are_neither_minted_nor_minded(door: Knocker) -> None:
    reply = await door.say(LIST, **{"Mcp-Session-Id": "made-up", "Last-Event-ID": "7"})
    assert reply.status == 200
    assert "Mcp-Session-Id" not in reply.headers


async def test_pages_of_this_service_may_call_and_others_may_not(door: Knocker) -> None:
    for origin in (door.base_url, "http://localhost:6274", "http://127.0.0.1:1"):
        reply = await door.say(LIST, Origin=origin)
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
        reply = await door.say(LIST, Origin=origin)
        assert reply.status == 403
        assert "Access-Control-Allow-Origin" not in reply.headers


async def test_a_preflight_needs_no_credential_and_a_401_is_readable(stranger: Knocker) -> None:
    preflight = await stranger.send("OPTIONS", headers={"Origin": stranger.base_url})
    assert preflight.status == 204
    assert "X-API-Key" in preflight.headers["Access-Control-Allow-Headers"]
    refused = await stranger.say(LIST, Origin=stranger.base_url)
    assert refused.status == 401
    assert "WWW-Authenticate" in refused.headers["Access-Control-Expose-Headers"]
    foreign = await stranger.send("OPTIONS", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in foreign.headers
