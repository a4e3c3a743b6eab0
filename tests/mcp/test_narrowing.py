"""Addresses of the endpoint with fewer tools, or for one client."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.core.mcp import tools_of
from coaching_service.mcp.endpoint import CHOICES, GROUPS
from coaching_service.oauth.endpoints import is_our_resource
from tests.conftest import NewCompany
from tests.support.attention import renew
from tests.support.client import CoachClient
from tests.support.mcp_client import (
    TODAY,
    McpHttpClient,
    official_client,
    tool_change,
    tool_error,
    tool_proposal,
)
from tests.support.training import block_with, client_path, form_of, task


async def ask(mcp: McpHttpClient, query: str, method: str, **params: Any) -> dict[str, Any]:
    """The reply to a message that is sent to a narrowed address."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    reply = await mcp.send(path=f"/mcp?{query}", json=message)
    assert reply.status == 200, reply.raw
    decoded: dict[str, Any] = reply.json
    return decoded


async def call(mcp: McpHttpClient, query: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a call at a narrowed address."""
    result: dict[str, Any] = (await ask(mcp, query, "tools/call", name=tool, arguments=arguments))["result"]
    return result


async def names(mcp: McpHttpClient, query: str) -> set[str]:
    """The tools of a narrowed address."""
    return {tool["name"] for tool in (await ask(mcp, query, "tools/list"))["result"]["tools"]}


def test_every_tool_that_writes_is_in_one_group() -> None:
    writing = {tool.name for tool in tools_of(features.TOOLS) if tool.writes} - {"undo"}
    grouped = [name for group in GROUPS.values() for name in group]
    assert len(grouped) == len(set(grouped))
    assert writing <= set(grouped)
    assert CHOICES == ("read", "plan", "log", "outreach", "library")


async def test_address_has_only_the_tools_of_its_groups(mcp: McpHttpClient, coach: CoachClient) -> None:
    reading = await names(mcp, "tools=read")
    assert {"list_customers", "get_workouts", "get_proposal"} <= reading
    assert not reading & {"create_workout", "add_note", "send_message", "undo"}
    assert await names(mcp, "tools=log") == {
        *("log_workout", "record_metric", "add_note", "review_check_in", "undo", "get_proposal")
    }
    assert await names(mcp, "tools=read,log") == reading | await names(mcp, "tools=log")
    assert await names(mcp, "tools=read&tools=log") == reading | await names(mcp, "tools=log")

    ana = await coach.create_customer()
    outside = {"name": "add_note", "arguments": {"customerId": ana["_id"], "text": "x"}}
    refused = await ask(mcp, "tools=read,plan", "tools/call", **outside)
    assert "Unknown tool" in refused["error"]["message"]
    assert (await coach.get(client_path(ana, "notes"))).ok() == []


@pytest.mark.parametrize(
    "query",
    ["tools=", "tools=read,all", "tools=Read", "customer=", "customer=ana", "customer=1&customer=2", "tool=read"],
)
async def test_unknown_value_is_refused_with_the_choices(mcp: McpHttpClient, query: str) -> None:
    reply = await mcp.send(path=f"/mcp?{query}", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert reply.status == 400
    choices = "read, plan, log, outreach, library" if query.startswith("tools=") else "list_customers"
    choices = "takes tools and customer" if query == "tool=read" else choices
    assert choices in reply.json["error_description"]


async def test_address_of_one_client_shows_no_other(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana", groups=["All"]), await coach.create_customer("Bo", groups=["All"])
    for client in (ana, bo):
        await block_with(coach, client, task(), form_of(), date=TODAY)
        (await (await coach.as_client(client)).post("/customer/messages", {"text": "Hello"})).ok(201)
        noted = await coach.post(client_path(client, "notes"), {"content": "Knee", "isHealth": True})
    await coach.wait_until_numbered(noted.headers["X-Change-Id"])
    await renew(coach)
    query = f"customer={ana['_id']}"

    for tool, sent in (
        ("list_customers", {}),
        ("list_customers", {"search": "bo"}),
        ("list_customers", {"groups": ["All"]}),
        ("get_attention", {}),
        ("get_compliance", {"period": 30}),
        ("get_activity", {}),
        ("list_check_ins", {}),
        ("list_messages", {}),
        ("list_notes", {}),
        ("get_customer", {}),
        ("get_workouts", {"startDate": TODAY, "endDate": TODAY}),
    ):
        result = await call(mcp, query, tool, **sent)
        assert "«Bo»" not in str(result) and bo["_id"] not in str(result), (tool, result)
        if tool != "get_compliance" and sent != {"search": "bo"}:
            assert "Ana" in str(result) or ana["_id"] in str(result) or tool == "get_activity", (tool, result)
    for tool in ("get_customer", "list_notes", "get_activity", "list_messages"):
        tool_error(await call(mcp, query, tool, customerId=bo["_id"]), "not found")
    tool_error(await call(mcp, query, "add_note", customerId=bo["_id"], text="x"), "not found")
    both = {"customerIds": [ana["_id"], bo["_id"]], "text": "x"}
    refused = tool_error(await call(mcp, query, "send_message", **both), "customerIds.1 was not found")
    assert "another coach" not in str(refused)
    only = tool_proposal(await call(mcp, query, "send_message", groups=["All"], text="x"), "CONTACT")
    assert "«Ana»" in only["summary"] and "«Bo»" not in only["summary"]
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Legs", "day": 1})).ok(201)
    for client in (ana, bo):
        body = {"customerId": client["_id"], "startDate": TODAY}
        (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok(201)
    days = {"startDate": TODAY, "endDate": TODAY, "assignedProgramId": program["_id"]}
    cleared = tool_change(await call(mcp, query, "clear_schedule", **days))
    assert "of «Ana»" in cleared["summary"] and len(await coach.calendar(bo, TODAY, TODAY)) == 2
    written = tool_change(await call(mcp, query, "add_note", text="Only Ana"))
    assert written["customerId"] == ana["_id"]
    assert len((await coach.get(client_path(bo, "notes"))).ok()) == 1

    listed = {tool["name"]: tool for tool in (await ask(mcp, query, "tools/list"))["result"]["tools"]}
    assert not listed.keys() & {"create_customer", "create_customers"}
    assert "customerId" not in listed["add_note"]["inputSchema"]["required"]
    assert "customerId" in listed["add_note"]["inputSchema"]["properties"]
    assert await names(mcp, f"{query}&tools=log") <= listed.keys()


async def test_address_of_a_client_whom_the_coach_does_not_have_is_refused(
    mcp: McpHttpClient, coach: CoachClient, new_company: NewCompany
) -> None:
    erased, other = await coach.create_customer(), await (await new_company()).create_customer()
    (await coach.delete(client_path(erased))).ok(204)
    for unknown in ("0" * 24, erased["_id"], other["_id"]):
        reply = await mcp.send(
            path=f"/mcp?customer={unknown}", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        )
        assert reply.status == 400, reply.raw
        assert "list_customers" in reply.json["error_description"]


async def test_discovery_works_with_the_query(
    unauthenticated: McpHttpClient, public_server: TestServer, coach: CoachClient
) -> None:
    refused = await unauthenticated.send(
        path="/mcp?tools=read", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    )
    assert refused.status == 401
    metadata = refused.headers["WWW-Authenticate"].split('resource_metadata="')[1].split('"')[0]
    path = metadata.split("/", 3)[3]
    for suffix in ("", "?tools=read"):
        assert (await unauthenticated.send("GET", f"/{path}{suffix}")).ok()["resource"].endswith("/mcp")
    assert is_our_resource("https://coaching.example", "https://coaching.example/mcp?tools=read&customer=1")
    for mode in ("auto", "legacy"):
        async with official_client(public_server, {"X-API-Key": str(coach.key)}, mode, "/mcp?tools=read") as client:
            assert {tool.name for tool in (await client.list_tools()).tools} >= {"get_activity"}
