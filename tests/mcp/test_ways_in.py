"""How applications reach the tools, and what operators see of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import __version__
from coaching_service.mcp.transport import classify_application
from tests.mcp.test_tool_catalogue import CATALOGUE
from tests.mcp.test_transport import INITIALIZE, LIST
from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient
from tests.support.logs import recorded_logs
from tests.support.mcp_client import McpHttpClient, invitation, official_client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_key_as_bearer_at_either_address(public_server: TestServer, coach: CoachClient, mode: str) -> None:
    headers = {"Authorization": f"Bearer {coach.key}"}
    async with McpHttpClient(public_server, headers) as mcp:
        (await mcp.post_json(LIST)).ok()
        with_slash = await mcp.send("POST", "/mcp/", json=LIST)
        assert with_slash.ok()["result"]["tools"]
        assert (await mcp.send("GET", "/mcp/")).status == 405
        refused = await mcp.send("POST", "/mcp/", json=LIST, headers={"Authorization": f"Bearer {coach.key}x"})
        assert (refused.status, "invalid_token" in refused.headers["WWW-Authenticate"]) == (401, True)
    async with official_client(public_server, headers, mode, "/mcp/") as assistant:
        assert (await assistant.list_tools()).tools


async def test_server_has_an_icon(mcp: McpHttpClient) -> None:
    older = (await mcp.request("initialize", INITIALIZE)).ok()["result"]["serverInfo"]
    (icon,) = older["icons"]
    assert (icon["mimeType"], icon["sizes"]) == ("image/svg+xml", ["any"])
    picture = await mcp.send("GET", icon["src"].removeprefix(mcp.base_url))
    assert (picture.status, picture.headers["Content-Type"]) == (200, "image/svg+xml; charset=utf-8")


async def test_prompts_are_filled_with_their_arguments(mcp: McpHttpClient) -> None:
    listed = (await mcp.request("prompts/list")).ok()["result"]["prompts"]
    assert (await mcp.request_modern("prompts/list")).ok()["result"]["prompts"] == listed
    required = {prompt["name"]: [each["name"] for each in prompt["arguments"] if each["required"]] for prompt in listed}
    assert required == {"monday_review": [], "next_training_block": ["client"], "check_in_review": []}
    for prompt in listed:
        filled = await mcp.request_modern(
            "prompts/get", {"name": prompt["name"], "arguments": {"client": "Ana {weeks}"}}
        )
        (message,) = filled.ok()["result"]["messages"]
        text = message["content"]["text"]
        assert message["role"] == "user"
        assert any(name in text for name in CATALOGUE)
        assert ("Ana" in text) is (prompt["arguments"] != [])
    for params in ({"name": "next_training_block"}, {"name": "unknown"}):
        assert (await mcp.request("prompts/get", params)).json["error"]["code"] == -32602
    assert (await mcp.request("prompts/list", {"cursor": "next"})).json["error"]["code"] == -32602


async def test_metrics_show_tool_application_and_outcome(
    public_server: TestServer, coach: CoachClient, mcp: McpHttpClient
) -> None:
    grant = await authorize_assistant(coach.ctx, "Claude Code", ["read"])
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as assistant:
        with recorded_logs() as entries:
            await assistant.call("list_customers")
        (line,) = [entry for entry in entries if entry["event"] == "tool called"]
        assert (line["tool"], line["application"], line["outcome"]) == ("list_customers", "claude-code", "done")
        assert line["company"] == str(coach.ctx.company_id)
        await assistant.call("create_customer", name="Ana")
    await mcp.call("create_customer", **invitation(coach))
    await mcp.call("create_customer")

    figures = (await mcp.send("GET", "/metrics")).raw.decode()
    for tool, application, outcome in (
        ("list_customers", "claude-code", "done"),
        ("create_customer", "claude-code", "denied"),
        ("create_customer", "python", "proposed"),
        ("create_customer", "python", "rejected"),
    ):
        labels = f'application="{application}",outcome="{outcome}",tool="{tool}"'
        assert f"mcp_tool_calls_total{{{labels}}}" in figures


@pytest.mark.parametrize(
    ("names", "application"),
    [
        (("Claude", None, "python-httpx/1"), "claude"),
        ((None, "claude-code", "node"), "claude-code"),
        ((None, None, "python-httpx/0.28"), "python"),
        (("Visual Studio Code",), "vscode"),
        (("My own application", "own", "Mozilla/5.0"), "other"),
        (("x" * 100_000 + "claude",), "other"),
        ((), "other"),
    ],
)
def test_applications_have_bounded_names(names: tuple[str | None, ...], application: str) -> None:
    assert classify_application(*names) == application


def test_server_json_describes_this_version() -> None:
    described = json.loads((Path(__file__).parents[2] / "server.json").read_text("utf-8"))
    (remote,) = described["remotes"]
    assert (described["version"], remote["type"]) == (__version__, "streamable-http")
    assert remote["url"].format(host="coaching.example") == "https://coaching.example/mcp"
    assert set(remote["variables"]) == {"host"}
    assert len(described["description"]) <= 100
