"""The peer for assistants: one tool on the low-level server of the official SDK, stateless over HTTP, with JSON results.

`list_customers` makes the look-ups of the bare handlers and answers the page as JSON. It runs in the environment of
the peers with `python -m benchmarks.peers.mcp_server`, configured as the peer FastAPI is.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool

from benchmarks.drivers import PymongoDriver
from benchmarks.operations import Call, Operations, to_json

_SCHEMA = {
    "type": "object",
    "properties": {"pageSize": {"type": "integer", "minimum": 1, "maximum": 100}},
    "additionalProperties": False,
}
_TOOL = Tool(name="list_customers", description="List the clients, by name.", input_schema=_SCHEMA)


@asynccontextmanager
async def _lifespan(_: Server[Operations]) -> AsyncIterator[Operations]:
    database = PymongoDriver(os.environ["MONGODB_URI"], os.environ["MONGODB_DATABASE"])
    yield Operations(database, bytes.fromhex(os.environ["LOOKUP_KEY"]))
    await database.client.close()


async def _list_tools(_: ServerRequestContext[Operations], __: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=[_TOOL])


async def _call_tool(context: ServerRequestContext[Operations, Any], params: CallToolRequestParams) -> CallToolResult:
    size = str((params.arguments or {}).get("pageSize", 20))
    query = {"archived": "false", "pageSize": size, "pageNum": "1"}
    assert context.request is not None
    key = context.request.headers["X-API-Key"]
    page = await context.lifespan_context.customers(Call(key, {}, query))
    return CallToolResult(content=[TextContent(text=to_json(page).decode())])


def main() -> None:
    """Serve on PORT."""
    server = Server("peer", lifespan=_lifespan, on_list_tools=_list_tools, on_call_tool=_call_tool)
    uvicorn.run(
        server.streamable_http_app(json_response=True, stateless_http=True),
        host="127.0.0.1",
        port=int(os.environ["PORT"]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
