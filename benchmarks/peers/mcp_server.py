"""The peer for assistants: two tools on the low-level server of the official SDK, stateless over HTTP, JSON results.

`list_customers` makes the look-ups of the bare handlers and answers the page as JSON. `log_workout` logs one item, named
by its identifier, with the writes of the bare handlers in one transaction. It runs in the environment of the peers with
`python -m benchmarks.peers.mcp_server`, configured as the peer FastAPI is.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool

from benchmarks.drivers import PymongoDriver
from benchmarks.lookups import Call, to_json
from benchmarks.operations import Operations

_PAGE = {
    "type": "object",
    "properties": {"pageSize": {"type": "integer", "minimum": 1, "maximum": 100}},
    "additionalProperties": False,
}
_LOG = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("customerId", "workoutId", "text")},
    "required": ["customerId", "workoutId", "text"],
    "additionalProperties": False,
}
_TOOLS = [
    Tool(name="list_customers", description="List the clients, by name.", input_schema=_PAGE),
    Tool(name="log_workout", description="Log an item of a workout: `#ID: 8, 8, 7 @60kg`.", input_schema=_LOG),
]
_DONE = re.compile(r"#([0-9a-f]{24}): (\d+(?:, \d+)*) @(\d+)kg")


@asynccontextmanager
async def _lifespan(_: Server[Operations]) -> AsyncIterator[Operations]:
    database = PymongoDriver(os.environ["MONGODB_URI"], os.environ["MONGODB_DATABASE"])
    yield Operations(database, bytes.fromhex(os.environ["LOOKUP_KEY"]))
    await database.client.close()


async def _list_tools(_: ServerRequestContext[Operations], __: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=_TOOLS)


async def _call_tool(context: ServerRequestContext[Operations, Any], params: CallToolRequestParams) -> CallToolResult:
    assert context.request is not None
    key = context.request.headers["X-API-Key"]
    call = _log_workout if params.name == "log_workout" else _list_customers
    text = await call(context.lifespan_context, key, params.arguments or {})
    return CallToolResult(content=[TextContent(text=text)])


async def _list_customers(operations: Operations, key: str, arguments: dict[str, Any]) -> str:
    size = str(arguments.get("pageSize", 20))
    query = {"archived": "false", "pageSize": size, "pageNum": "1"}
    return to_json(await operations.customers(Call(key, {}, query))).decode()


async def _log_workout(operations: Operations, key: str, arguments: dict[str, Any]) -> str:
    """Log an item. Raises ValueError for a text that is not understood."""
    if (done := _DONE.fullmatch(arguments["text"])) is None:
        raise ValueError("text must be #ID: SETS @LOADkg")
    item, reps, load = done.groups()
    sets = [
        {"type": "reps_load", "index": index, "reps": int(each), "load": int(load)}
        for index, each in enumerate(reps.split(", "), 1)
    ]
    path = {"customerId": arguments["customerId"], "wblockId": arguments["workoutId"], "itemId": item}
    body = {"isCompleted": True, "customerSets": sets}
    logged = await operations.log_item_in_transaction(Call(key, path, {}, body))
    return f"Logged {to_json(logged).decode()}"


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
