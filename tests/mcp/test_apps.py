"""MCP Apps: views for applications that declare the extension; the others notice nothing of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.ids import ObjectId
from coaching_service.integrations.proposals import service as proposals
from coaching_service.mcp import prompts
from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient, Reply
from tests.support.mcp_client import TODAY, McpHttpClient, invitation

EXTENSION = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
SHOWING = {"extensions": EXTENSION}
INITIALIZE = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "a test", "version": "1"}}
VIEWS = ("proposal", "week", "progress")
READS = {
    "get_proposal": "proposal",
    "get_workouts": "week",
    "get_exercise_history": "progress",
    "get_metric_history": "progress",
    "get_training_load": "progress",
}


async def connect(mcp: McpHttpClient, capabilities: dict[str, Any]) -> Reply:
    """Connect as an application of an earlier revision does."""
    return await mcp.request("initialize", {**INITIALIZE, "capabilities": capabilities})


async def test_the_extension_is_declared_only_to_applications_that_declare_it(mcp: McpHttpClient) -> None:
    reply = await connect(mcp, SHOWING)
    declared = reply.ok()["result"]["capabilities"]
    assert declared["extensions"] == {"io.modelcontextprotocol/ui": {}}
    assert declared.keys() == {"tools", "prompts", "resources", "extensions"}
    modern = (await mcp.request_modern("server/discover", None, SHOWING)).ok()["result"]["capabilities"]
    assert modern.keys() == {"tools", "prompts", "resources", "extensions"}
    other_type = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/other"]}}}
    others: list[dict[str, Any]] = [{}, {"extensions": {}}, {"extensions": {"io.example/ui": {}}}, other_type]
    for capabilities in (*others, {"extensions": 7}):
        plain = await connect(mcp, capabilities)
        assert "Mcp-Session-Id" not in plain.headers
        result = plain.json.get("result", {"capabilities": {"tools": 0, "prompts": 0}})  # 7 is invalid
        assert result["capabilities"].keys() == {"tools", "prompts"}


async def test_views_are_listed_and_read(mcp: McpHttpClient) -> None:
    session = (await connect(mcp, SHOWING)).headers["Mcp-Session-Id"]
    older = (await mcp.request("resources/list", None, Mcp_Session_Id=session)).ok()["result"]["resources"]
    newer = (await mcp.request_modern("resources/list", None, SHOWING)).ok()["result"]["resources"]
    assert older == newer
    assert [each["uri"] for each in newer] == [f"ui://coaching/{name}" for name in VIEWS]
    for listed in newer:
        uri = listed["uri"]
        read = await mcp.request_modern("resources/read", {"uri": uri}, SHOWING, Mcp_Name=uri)
        [content] = read.ok()["result"]["contents"]
        assert (content["uri"], content["mimeType"]) == (uri, "text/html;profile=mcp-app")
        assert content["_meta"] == listed["_meta"]
    templates = await mcp.request("resources/templates/list", None, Mcp_Session_Id=session)
    assert templates.ok()["result"]["resourceTemplates"] == []
    unknown = await mcp.request("resources/read", {"uri": "ui://coaching/other"}, Mcp_Session_Id=session)
    assert unknown.json["error"]["code"] == -32602
    malformed = await mcp.request("resources/read", {}, Mcp_Session_Id=session)
    assert "needs uri" in malformed.json["error"]["message"]


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_one_small_file_that_loads_nothing(name: str) -> None:
    page = prompts.read_view(f"ui://coaching/{name}").text
    assert len(page.encode()) < 80_000
    assert "/* host.js */" not in page and "/* view.css */" not in page
    addresses = set(re.findall(r"https?://[\w./-]*", page)) - {"http://www.w3.org/2000/svg"}
    assert addresses == set(), "an address outside"
    assert not re.search(r"\b(src|href)=|@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|innerHTML|eval\(", page)
    assert "default-src 'none'" in page


async def test_tools_name_their_views(mcp: McpHttpClient) -> None:
    tools = (await mcp.request_modern("tools/list", None, SHOWING)).ok()["result"]["tools"]
    views = {tool["name"]: tool["_meta"]["ui"]["resourceUri"] for tool in tools if "_meta" in tool}
    reads = {tool["name"] for tool in tools if tool["annotations"]["readOnlyHint"]}
    assert {name: uri for name, uri in views.items() if name in reads} == {
        name: f"ui://coaching/{view}" for name, view in READS.items() if name in reads
    }
    assert {views[tool["name"]] for tool in tools if tool["name"] not in reads} == {"ui://coaching/proposal"}


async def test_without_the_extension_nothing_changes(mcp: McpHttpClient, coach: CoachClient) -> None:
    customer = await coach.create_customer()
    session = (await connect(mcp, SHOWING)).headers["Mcp-Session-Id"]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_customers", {}),
        ("get_workouts", {"customerId": customer["_id"], "startDate": TODAY, "endDate": TODAY}),
        ("get_customer", {"customerId": "x"}),
    ]
    for tool, arguments in calls:
        call = {"name": tool, "arguments": arguments}
        plain = await mcp.request("tools/call", call)
        showing = await mcp.request("tools/call", call, Mcp_Session_Id=session)
        assert plain.raw == showing.raw
    plain = await mcp.request("tools/list")
    showing = await mcp.request("tools/list", None, Mcp_Session_Id=session)
    assert plain.raw.count(b"_meta") == plain.raw.count(b"ui://") == plain.raw.count(b"decide_proposal") == 0
    tools = showing.ok()["result"]["tools"]
    common = [{name: value for name, value in tool.items() if name != "_meta"} for tool in tools]
    expected = [tool for tool in common if tool["name"] != "decide_proposal"]
    assert orjson.dumps(expected) == orjson.dumps(plain.ok()["result"]["tools"])
    for method in ("resources/list", "resources/templates/list", "resources/read"):
        assert (await mcp.request(method)).json["error"]["code"] == -32601
        assert (await mcp.request(method, None, Mcp_Session_Id="made-up")).json["error"]["code"] == -32601


def test_views_are_files_of_the_package() -> None:
    folder = Path(prompts.__file__).with_name("views")
    assert {path.name for path in folder.iterdir()} == {"host.js", "view.css", *(f"{name}.html" for name in VIEWS)}


async def propose(mcp: McpHttpClient, coach: CoachClient, name: str, **headers: str) -> dict[str, Any]:
    """The result of a call that a coach has to decide on."""
    call = {"name": "create_customer", "arguments": invitation(coach, name)}
    result: dict[str, Any] = (await mcp.request("tools/call", call, **headers)).ok()["result"]
    return result


async def decide(mcp: McpHttpClient, **arguments: Any) -> dict[str, Any]:
    """The result of a decision in a view."""
    call = {"name": "decide_proposal", "arguments": arguments}
    result: dict[str, Any] = (await mcp.request_modern("tools/call", call, SHOWING)).ok()["result"]
    return result


async def test_a_proposal_has_a_nonce_only_for_its_view(granted: McpHttpClient, coach: CoachClient) -> None:
    mcp = granted
    session = (await connect(mcp, SHOWING)).headers["Mcp-Session-Id"]
    plain = await propose(mcp, coach, "Ana")
    showing = await propose(mcp, coach, "Ana", Mcp_Session_Id=session)
    meta = showing.pop("_meta")
    assert orjson.dumps(showing) == orjson.dumps(plain)
    assert meta.keys() == {"nonce", "reasons", "changes", "hiddenChanges"}
    assert meta["reasons"] == ["it sends mail or messages to people"]
    assert [(change["kind"], change["before"]) for change in meta["changes"]] == [("client", None)]
    assert meta["nonce"] not in str(showing)
    waiting = {"name": "get_proposal", "arguments": {"proposalId": plain["structuredContent"]["proposalId"]}}
    read = (await mcp.request_modern("tools/call", waiting, SHOWING)).ok()["result"]
    assert meta.items() <= read["_meta"].items()
    assert "_meta" not in (await mcp.request("tools/call", waiting)).ok()["result"]


@pytest.fixture
async def granted(public_server: TestServer, coach: CoachClient) -> AsyncIterator[McpHttpClient]:
    """POSTs to /mcp with the access token of an assistant."""
    grant = await authorize_assistant(coach.ctx)
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as client:
        yield client


async def test_a_key_has_no_nonce_and_does_not_decide(mcp: McpHttpClient, coach: CoachClient) -> None:
    """Its program could read it, and decide in place of the coach."""
    session = (await connect(mcp, SHOWING)).headers["Mcp-Session-Id"]
    proposed = await propose(mcp, coach, "Ana", Mcp_Session_Id=session)
    assert proposed["_meta"].keys() == {"reasons", "changes", "hiddenChanges"}
    proposal_id = proposed["structuredContent"]["proposalId"]
    nonce = proposals.nonce_of(coach.ctx.services, ObjectId(proposal_id))
    assert (await decide(mcp, proposalId=proposal_id, decision="approve", nonce=nonce))["isError"] is True
    assert await coach.names() == []


async def test_a_decision_needs_the_nonce(granted: McpHttpClient, coach: CoachClient) -> None:
    mcp = granted
    session = (await connect(mcp, SHOWING)).headers["Mcp-Session-Id"]
    ana, bo = [await propose(mcp, coach, name, Mcp_Session_Id=session) for name in ("Ana", "Bo")]
    proposal = {"proposalId": ana["structuredContent"]["proposalId"], "decision": "approve"}
    for nonce in ("", "x", bo["_meta"]["nonce"], proposal["proposalId"], ana["_meta"]["nonce"][:-1]):
        assert (await decide(mcp, **proposal, nonce=nonce))["isError"] is True
    assert (await decide(mcp, **proposal))["isError"] is True
    # Without the extension there is no such tool.
    right = {**proposal, "nonce": ana["_meta"]["nonce"]}
    unknown = (await mcp.request("tools/call", {"name": "decide_proposal", "arguments": right})).ok()["error"]
    assert unknown == (await mcp.request("tools/call", {"name": "no_such_tool", "arguments": right})).ok()["error"]
    assert await coach.names() == []

    approved = await decide(mcp, **right)
    assert approved["content"][0]["text"] == "Approved. Created the client «Ana» and invited them by e-mail."
    assert approved["structuredContent"]["status"] == "executed"
    assert await coach.names() == ["Ana"]
    assert "decided" in (await decide(mcp, **right))["content"][0]["text"]
    rejected = {"proposalId": bo["structuredContent"]["proposalId"], "nonce": bo["_meta"]["nonce"]}
    assert (await decide(mcp, **rejected, decision="reject"))["structuredContent"]["status"] == "rejected"
    assert await coach.names() == ["Ana"]


async def test_the_nonce_of_another_access_does_not_decide(
    granted: McpHttpClient, coach: CoachClient, public_server: TestServer
) -> None:
    session = (await connect(granted, SHOWING)).headers["Mcp-Session-Id"]
    ana = await propose(granted, coach, "Ana", Mcp_Session_Id=session)
    arguments = {"proposalId": ana["structuredContent"]["proposalId"], "nonce": ana["_meta"]["nonce"]}
    grant = await authorize_assistant(coach.ctx)
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as other:
        assert (await decide(other, **arguments, decision="approve"))["isError"] is True
    assert await coach.names() == []


async def test_the_tool_of_the_views_is_for_views_only(mcp: McpHttpClient) -> None:
    tools = (await mcp.request_modern("tools/list", None, SHOWING)).ok()["result"]["tools"]
    [tool] = [each for each in tools if each["name"] == "decide_proposal"]
    assert tool["_meta"] == {"ui": {"resourceUri": "ui://coaching/proposal", "visibility": ["app"]}}
    assert tool["annotations"]["readOnlyHint"] is False
