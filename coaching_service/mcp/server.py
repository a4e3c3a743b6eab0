"""The tools of the features, served by the official SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import orjson
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    ListToolsResult,
    PaginatedRequestParams,
    ToolAnnotations,
)
from mcp.types import Tool as WireTool

from coaching_service import __version__
from coaching_service.core.auth.access import denial_reason
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, Forbidden, LegacyFailure, NotFound, ServiceError, Unavailable
from coaching_service.core.http.responses import to_json
from coaching_service.core.mcp.arguments import InvalidArguments, validate_arguments
from coaching_service.core.mcp.tools import Tool

Request = ServerRequestContext[Any, Context]
Result = dict[str, Any]

INSTRUCTIONS = """\
The clients of a coaching company, their training calendars, exercises, programs and progress. Begin with
list_customers: most tools need a client's _id. Identifiers are 24 hexadecimal characters and come from other tools,
never from guessing. Dates are YYYY-MM-DD in the client's time zone; get_customer tells today's. Loads are in the
company's unit, which every answer with loads names. Lists come in pages: while hasNextPage is true, ask for nextPage.
Before a tool that changes something, tell the coach what will change. Nothing can be deleted here, and a workout cannot
be renamed or moved to another day: the coach does that in the application. A tool that is named and not listed is one
that you may not use.
"""
_LIST_LASTS_MS = 60_000
_WHERE_TO_LOOK = {
    "Customer": "list_customers gives the _id of each client.",
    "Exercise": "list_exercises gives the _id of each exercise.",
    "Program": "list_programs gives the _id of each program.",
    "Workout block": "get_workouts gives the _id of each workout of the client.",
    "Workout item": "get_workouts gives the _id of each item.",
    "Metric": "list_metric_sets gives the metrics of each set the client is assigned.",
}
_UNCHANGED = "nothing was changed"
_MORE_THAN_READING = "Tell the coach: it takes letting you in, or a key, for more than reading."
_PERMISSION = "Tell the coach: it takes that permission."
_NEXT: tuple[tuple[type[ServiceError], str], ...] = (
    (NotFound, "Look the identifier up with the tool that lists such records, then try again."),
    (LegacyFailure, "list_metric_sets gives the sets the client is assigned."),
    (Forbidden, "Tell the coach; list_customers gives the clients they work with."),
    (Conflict, "Read the record again; if the reason still holds, tell the coach."),
    # Where the database was lost at the end of a change, nobody knows whether it was made.
    (Unavailable, "Try again in a moment; before you repeat a change, look whether it was made."),
)
_CORRECT = f"Correct the arguments and call the tool again; {_UNCHANGED}."


def make_server(tools: Iterable[Tool], gate: asyncio.Semaphore) -> Server[Any]:
    """The SDK's server of `tools`; `gate` bounds how many work on the database at once."""
    declared = {tool.name: tool for tool in tools}
    listed = [(tool, _wire(tool)) for tool in declared.values()]

    async def list_tools(request: Request, params: PaginatedRequestParams | None) -> ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(code=INVALID_PARAMS, message="Unknown cursor: the list of tools is one page")
        who = _context(request).caller
        return ListToolsResult(
            tools=[wire for tool, wire in listed if denial_reason(tool.access, who, writes=tool.writes) is None]
        )

    async def call_tool(request: Request, params: CallToolRequestParams) -> Result:
        tool = declared.get(params.name)
        if tool is None:
            raise MCPError(code=INVALID_PARAMS, message="Unknown tool: tools/list names the tools there are")
        return await _call(tool, _context(request), params.arguments, gate)

    server: Server[Any] = Server(
        "coaching-service",
        version=__version__,
        title="Coaching service",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        cache_hints={"tools/list": CacheHint(ttl_ms=_LIST_LASTS_MS, scope="private")},
    )
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    server.middleware.clear()  # OpenTelemetry spans, which nobody collects and which cost half of a call
    return server


def _context(request: Request) -> Context:
    if request.request is None:
        raise RuntimeError("a tool was called outside the door")
    return request.request


def _wire(tool: Tool) -> WireTool:
    return WireTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.writes,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent or not tool.writes,
            open_world_hint=tool.open_world,
        ),
    )


async def _call(tool: Tool, ctx: Context, given: Any, gate: asyncio.Semaphore) -> Result:
    """The result of a tool: its answer, or what was wrong and what to do next."""
    if (reason := denial_reason(tool.access, ctx.caller, writes=tool.writes)) is not None:
        return _failed(reason, _MORE_THAN_READING if tool.writes and ctx.caller.read_only else _PERMISSION)
    try:
        arguments = validate_arguments(tool.takes, given)
        async with gate:
            answer = await tool.call(ctx, arguments)
    except InvalidArguments as wrong:
        return _failed("; ".join(wrong.sentences), _CORRECT)
    except ServiceError as error:
        return _failed(*_told(error, tool))
    except Exception as error:
        if (known := as_service_error(error)) is None:
            raise
        return _failed(*_told(known, tool))
    body = to_json(answer)
    return _result(body.decode()) | {"structuredContent": orjson.loads(body)}


def _told(error: ServiceError, tool: Tool) -> tuple[str, str]:
    """What a failure of a tool says to an assistant: what was wrong, and what to do next."""
    message = error.message if isinstance(error.message, str) else "; ".join(error.message)
    advice = next((advice for kind, advice in _NEXT if isinstance(error, kind)), _CORRECT)
    if isinstance(error, NotFound):
        advice = _WHERE_TO_LOOK.get(message.partition(" not found")[0], advice)
    unchanged = tool.writes and not isinstance(error, Unavailable) and _UNCHANGED not in advice
    return f"{message}; {_UNCHANGED}" if unchanged else message, advice


def _failed(what: str, advice: str) -> Result:
    sentence = what if what.endswith(".") else f"{what}."
    return _result(f"{sentence} {advice}") | {"isError": True}


def _result(text: str) -> Result:
    """A tool's result as it goes out: the SDK judges it, so its model need not be built to be taken apart at once."""
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": False}
