"""A tool that answers five rows from memory, served by our endpoint or by the SDK's own application.

python -m benchmarks.five_rows ours|sdk: serves on HOST and PORT of the environment.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import structlog
import uvicorn
import uvloop
from aiohttp import web
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import ALL_PERMISSIONS
from coaching_service.core.auth.principal import Company, Principal
from coaching_service.core.auth.secrets import Vault
from coaching_service.core.changes.log import StoredChangeLog
from coaching_service.core.database.connection import connect
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import InvalidApiKey
from coaching_service.core.events import EventBus
from coaching_service.core.http.middleware import request_middleware
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.mail import FolderMailSender
from coaching_service.core.mcp.arguments import Arguments
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.slots import RequestSlots
from coaching_service.mcp.endpoint import McpEndpoint
from coaching_service.mcp.message_handler import MessageHandler
from coaching_service.mcp.server import make_servers

KEY = "cs_ak_five_rows"
ROWS = {"docs": [{"_id": f"{number:024}", "name": f"Client {number}", "groups": ["Morning"]} for number in range(5)]}


def ours(host: str, port: int) -> None:
    """Serve our endpoint with one tool; the key is checked in memory."""
    tools = Tools()

    @tools.tool("Five rows", access=coach(), takes=Arguments())
    async def five_rows(_: Context) -> dict[str, Any]:
        """Five rows from memory."""
        return ROWS

    company = Company(ObjectId(), "A company", "UTC", "kg")
    known = Principal(ObjectId(), company, "OWNER", "apiKey", "Olga", None, ObjectId(), ALL_PERMISSIONS)

    async def authenticate(_: Services, request: web.Request) -> Principal:
        if request.headers.get("X-API-Key") != KEY:
            raise InvalidApiKey
        return known

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))  # neither logs requests

    async def app() -> web.Application:
        services = Services(
            db=connect("mongodb://127.0.0.1:1")["nothing"],
            vault=Vault([bytes(32)]),
            events=EventBus(),
            base_url=f"http://{host}:{port}",
            mail_sender=FolderMailSender(None, ""),  # type: ignore[arg-type]  # nothing is ever sent here
            change_log=StoredChangeLog(),
        )
        application = web.Application(middlewares=[request_middleware(services)])
        own_url = f"http://{host}:{port}"
        server = make_servers(tools.declared, RequestSlots(8), services.metrics, own_url, f"{own_url}/icon.svg")
        application.add_routes(McpEndpoint(MessageHandler(lambda: server), services, authenticate, 1_048_576).routes())
        return application

    web.run_app(app(), host=host, port=port, print=None, access_log=None, loop=uvloop.new_event_loop())


def sdk(host: str, port: int) -> None:
    """Serve the SDK's own application as in its documentation: no credential, none of our checks."""

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="five_rows", input_schema={"type": "object"})])

    async def call_tool(_: ServerRequestContext[Any], __: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=to_json(ROWS).decode())], structured_content=ROWS)

    server: Server[Any] = Server("five-rows", on_list_tools=list_tools, on_call_tool=call_tool)
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    {"ours": ours, "sdk": sdk}[sys.argv[1]](os.environ["HOST"], int(os.environ["PORT"]))
