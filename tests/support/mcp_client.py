"""Clients of /mcp: plain HTTP, and the official client."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Self

import aiohttp
import httpx2
import orjson
from aiohttp.test_utils import BaseTestServer
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.mcp_messages import MODERN, envelope
from coaching_service.core.dates import name_days
from coaching_service.core.mcp import IMPERATIVES
from tests.support import fixed_clock
from tests.support.client import CoachClient, Reply
from tests.support.other_process import Proxied
from tests.support.tool_outputs import check_output

TODAY = str(fixed_clock.TODAY)  # of modules that use `wednesday`; all of tests/mcp that import it do


class McpHttpClient:
    """Sends plain HTTP requests to /mcp with one set of headers."""

    def __init__(self, server: BaseTestServer | Proxied, headers: dict[str, str]) -> None:
        self.base_url = str(server.make_url("/")).rstrip("/")
        self._http = aiohttp.ClientSession(base_url=server.make_url("/"), headers=headers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def send(self, method: str = "POST", path: str = "/mcp", **options: Any) -> Reply:
        """Send a request; the reply has the JSON of the response, if any."""
        async with self._http.request(method, path, allow_redirects=False, **options) as response:
            raw = await response.read()
            is_json = raw and response.content_type == "application/json"
            return Reply(response.status, response.headers, orjson.loads(raw) if is_json else None, raw)

    async def post_json(self, body: Any, **headers: str) -> Reply:
        """POST a JSON value; keywords become headers, with `-` for `_`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.send(
            data=io.BytesIO(orjson.dumps(body)), headers={"Content-Type": "application/json", **named}
        )

    async def request(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> Reply:
        """POST one request of the older era."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method}
        return await self.post_json(message if params is None else message | {"params": params}, **headers)

    async def request_modern(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        capabilities: dict[str, Any] | None = None,
        **headers: str,
    ) -> Reply:
        """POST one request of the newer era, with the headers and metadata that it needs."""
        arguments = params or {}
        usual = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method}
        if "name" in arguments:
            usual["Mcp_Name"] = arguments["name"]
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**arguments, "_meta": envelope(capabilities)}}
        return await self.post_json(body, **{**usual, **headers})

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        reply = await self.request("tools/call", {"name": tool, "arguments": arguments})
        result: dict[str, Any] = reply.ok()["result"]
        check_output(tool, arguments, result)
        return result


@asynccontextmanager
async def official_client(
    server: BaseTestServer, headers: dict[str, str], mode: str, path: str = "/mcp", **options: Any
) -> AsyncIterator[Client]:
    """The official client; `mode` is `auto` (the newest revision) or `legacy` (the handshake). `options` are its own."""
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(str(server.make_url(path)), http_client=http)
        async with Client(transport, mode=mode, **options) as client:
            yield client


def tool_error(result: dict[str, Any], *words: str) -> str:
    """Assert that a call failed with all these words and nothing else, and return its text."""
    assert result["isError"] is True
    assert "structuredContent" not in result
    text: str = result["content"][0]["text"]
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"
    return text


def tool_result(result: dict[str, Any]) -> dict[str, Any]:
    """Assert that a call succeeded, and return its content without marks; JSON in its text has the same content."""
    assert not result.get("isError"), result
    content: dict[str, Any] = result["structuredContent"]
    text = result["content"][0]["text"]
    assert not text.startswith("{") or orjson.loads(text) == content
    unmarked: dict[str, Any] = without_marks(content)
    return unmarked


def named(*days: str) -> str:
    """Days as the sentences of tools name them."""
    return name_days(days, str(datetime.now(UTC).date()))


async def text_of(mcp: McpHttpClient, tool: str, **arguments: Any) -> str:
    """The text that a tool returns."""
    result = await mcp.call(tool, **arguments)
    assert not result.get("isError"), result
    text: str = result["content"][0]["text"]
    return text


def without_marks(value: Any) -> Any:
    """A value without the marks around what people typed."""
    if isinstance(value, dict):
        return {name: without_marks(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_marks(each) for each in value]
    return value.removeprefix("«").removesuffix("»") if isinstance(value, str) else value


def tool_change(result: dict[str, Any]) -> dict[str, Any]:
    """Assert that a call changed something, with one line of text, and return its data."""
    assert not result.get("isError"), result
    content: dict[str, Any] = result["structuredContent"]
    assert content.get("executed", True), content
    text = result["content"][0]["text"]
    assert "\n" not in text
    assert text.startswith(content["summary"])
    assert content["changeId"] is None or f"changeId: {content['changeId']}" in text
    return content


def tool_proposal(result: dict[str, Any], *reasons: str) -> dict[str, Any]:
    """Assert that a call changed nothing and has to be confirmed for these reasons, and return its data."""
    assert not result.get("isError"), result
    content: dict[str, Any] = result["structuredContent"]
    assert (content["executed"], content["reasons"]) == (False, list(reasons))
    text = result["content"][0]["text"]
    assert "Nothing is done yet" in text and content["summary"] in text
    assert re.split(r"\W", content["summary"])[0].lower() in IMPERATIVES.values(), content["summary"]
    assert content.keys() == {"executed", "proposalId", "approvalUrl", "summary", "reasons", "expiresAt", "hint"}
    assert content["approvalUrl"].endswith(f"/app/proposals/{content['proposalId']}") and content["approvalUrl"] in text
    # Some applications show a model only the data: it has to say what to do, too.
    assert "Ask the coach" in content["hint"] and "Ask the coach" in text
    return content


def invitation(coach: CoachClient, name: str = "Ana") -> dict[str, Any]:
    """Arguments of create_customer with which mail is sent."""
    return {"name": name, "email": f"{name.lower()}-{coach.ctx.company_id}@example.com", "sendInvitation": True}


async def propose_invitation(mcp: McpHttpClient, coach: CoachClient, name: str = "Ana") -> str:
    """Propose to invite a client, and return the identifier of the proposal."""
    proposed = await mcp.call("create_customer", **invitation(coach, name))
    return str(tool_proposal(proposed, "CONTACT")["proposalId"])


async def approve(coach: CoachClient, proposal: dict[str, Any]) -> dict[str, Any]:
    """Approve a proposal as its coach, and return the result of the call."""
    session = await coach.interactive()
    approved = (await session.post(f"/coach/proposals/{proposal['proposalId']}/approve")).ok()
    assert approved["status"] == "executed", approved
    result: dict[str, Any] = approved["result"]
    return result


async def changed_or_approved(coach: CoachClient, result: dict[str, Any]) -> dict[str, Any]:
    """The data of a call that changed something, after the coach's approval if it had to wait for it."""
    waits = not result["structuredContent"].get("executed", True)
    return await approve(coach, result["structuredContent"]) if waits else tool_change(result)
