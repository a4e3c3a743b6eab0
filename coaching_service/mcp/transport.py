"""JSON-RPC messages of both protocol eras: with the handshake (until 2025-11-25) and without it (from 2026-07-28).

The only module that uses undocumented parts of the SDK: `serve_one` and what it needs.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
import structlog
from mcp import types
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared import inbound
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from multidict import CIMultiDictProxy
from pydantic import BaseModel, ValidationError

from coaching_service.core.database.context import Context
from coaching_service.core.metrics import Metrics
from coaching_service.mcp import prompts
from coaching_service.mcp.endpoint import SESSION_HEADER, Reply, failure, invalid_request

Headers = CIMultiDictProxy[str]
# The revision of a request without the version header, which later revisions require.
DEFAULT_VERSION = "2025-03-26"
_ROUTING = (inbound.MCP_PROTOCOL_VERSION_HEADER, inbound.MCP_METHOD_HEADER, inbound.MCP_NAME_HEADER)
MAX_BATCH_SIZE = 50
# The methods served, by whether the request is of the modern era; with the extension for views also those of resources.
_METHODS = {
    False: frozenset(("initialize", "ping", "tools/list", "tools/call", "prompts/list", "prompts/get")),
    True: frozenset(("server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get")),
}
_VIEW_METHODS = frozenset(("resources/list", "resources/templates/list", "resources/read"))
_PARAMETER_HINTS = {
    "initialize": "Invalid params: initialize needs protocolVersion, capabilities and clientInfo",
    "tools/list": "Invalid params: the cursor of tools/list is a string",
    "prompts/list": "Invalid params: the cursor of prompts/list is a string",
    "prompts/get": "Invalid params: prompts/get needs name, a string; its arguments are an object of strings",
    "tools/call": "Invalid params: tools/call needs name, a string; its arguments are an object",
    "resources/list": "Invalid params: the cursor of resources/list is a string",
    "resources/templates/list": "Invalid params: the cursor of resources/templates/list is a string",
    "resources/read": "Invalid params: resources/read needs uri, a string",
}


# How a client asks its user: it shows a form, or opens an address.
Asking = Literal["form", "url"]


@dataclass(frozen=True)
class Servers:
    """The servers of applications that show views, and of those that do not.

    `read_only_instructions`: what they say about themselves to a caller who may only read.
    """

    plain: Server[Any]
    with_views: Server[Any]
    read_only_instructions: str


@dataclass(frozen=True)
class CallerRequest:
    """What tools get of a request.

    `asks_by`: how the client can ask its user (elicitation), if it can. `shows_views`: it has declared the extension
    for views.
    """

    ctx: Context
    asks_by: Asking | None = None
    application: str = "other"
    shows_views: bool = False


@dataclass
class _RequestContext:
    """One POST as the SDK's dispatch context: there is no channel back to the client."""

    transport: TransportContext
    request_id: Any
    message_metadata: ServerMessageMetadata
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> dict[str, Any]:
        """Raise NoBackChannelError: requests to the client are not supported."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        """Do nothing."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Do nothing."""


async def handle_message(servers: Servers, ctx: Context, decoded: Any, headers: Headers) -> Reply:
    """Return the reply to a decoded body: one message or, from clients of revision 2025-03-26, a batch."""
    version = headers.get(inbound.MCP_PROTOCOL_VERSION_HEADER)
    if not isinstance(decoded, list):
        return await _handle_one(servers, ctx, decoded, version, headers)
    if version not in (None, DEFAULT_VERSION):
        return invalid_request("this revision of the protocol takes one message at a time")
    if not 1 <= len(decoded) <= MAX_BATCH_SIZE:
        return invalid_request(f"a batch holds 1 to {MAX_BATCH_SIZE} messages")
    if any(isinstance(message, dict) and message.get("method") == "initialize" for message in decoded):
        return invalid_request("initialize cannot be part of a batch")
    replies = [await _handle_one(servers, ctx, message, version, headers) for message in decoded]
    bodies = [reply.body for reply in replies if reply.body is not None]
    return Reply(bodies, 200) if bodies else Reply(None, 202)


async def _handle_one(servers: Servers, ctx: Context, decoded: Any, version: str | None, headers: Headers) -> Reply:
    if not isinstance(decoded, dict):
        return invalid_request("a message is a JSON object")
    if decoded.get("params", ...) is None:  # some clients send null for none
        decoded = {name: value for name, value in decoded.items() if name != "params"}
    identifier = _identifier(decoded)
    if not isinstance(decoded.get("params", {}), dict):
        return invalid_request("params must be an object", identifier)
    modern = (version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS) or _names_version(decoded)
    if modern and version is not None and version not in MODERN_PROTOCOL_VERSIONS and not _names_version(decoded):
        # A header of bytes that are not UTF-8 has surrogates, which JSON cannot hold.
        requested = version.encode(errors="surrogateescape").decode(errors="replace")
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": requested}
        return failure(types.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", 400, identifier, data)
    if "method" not in decoded and not modern and decoded.keys() & {"result", "error"}:
        return _accept(decoded, types.JSONRPCResponse if "result" in decoded else types.JSONRPCError)
    if "id" not in decoded:
        return _accept(decoded, types.JSONRPCNotification)
    try:
        message = types.JSONRPCRequest.model_validate(decoded)
    except ValidationError:
        return invalid_request("it needs jsonrpc 2.0, a string or integer id, and a method", identifier)
    return await _serve(servers, ctx, message, decoded, headers, modern=modern, version=version or DEFAULT_VERSION)


def _identifier(decoded: dict[str, Any]) -> str | int | None:
    """Return the id of a message, if it has a valid one."""
    identifier = decoded.get("id")
    return identifier if isinstance(identifier, str | int) and not isinstance(identifier, bool) else None


def _names_version(decoded: dict[str, Any]) -> bool:
    meta = decoded.get("params", {}).get("_meta")
    return isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta


def _accept(decoded: dict[str, Any], kind: type[BaseModel]) -> Reply:
    """Accept and ignore a notification, or a response (the service sends no requests to clients)."""
    try:
        kind.model_validate(decoded)
    except ValidationError:
        return invalid_request("it is not a request, notification or response", _identifier(decoded))
    return Reply(None, 202)


async def _serve(
    servers: Servers,
    ctx: Context,
    message: types.JSONRPCRequest,
    decoded: dict[str, Any],
    headers: Headers,
    *,
    modern: bool,
    version: str,
) -> Reply:
    asks_by: Asking | None = None
    client_name = None
    if not modern:
        # A client of an earlier revision says so when it connects.
        connects = message.method == "initialize"
        declared = prompts.is_declared((message.params or {}).get("capabilities"))
        shows_views = declared if connects else prompts.is_session(headers.get(SESSION_HEADER))
    else:
        routing = [(name, value) for name in _ROUTING for value in headers.getall(name, ())]
        if (twice := inbound.find_duplicated_routing_header(routing)) is not None:
            return failure(types.HEADER_MISMATCH, f"The header {twice} must be sent once", 400, message.id)
        try:
            route = inbound.classify_inbound_request(decoded, headers=dict(routing))
        except ValueError:
            return failure(
                types.HEADER_MISMATCH, f"{inbound.MCP_NAME_HEADER} header is not valid base64", 400, message.id
            )
        if isinstance(route, inbound.InboundLadderRejection):
            status = inbound.ERROR_CODE_HTTP_STATUS.get(route.code, 400)
            return failure(route.code, route.message, status, message.id, route.data)
        version, capabilities = route.protocol_version, route.client_capabilities
        modes = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
        if isinstance(modes, dict):  # preferably by a form; no mode at all means forms
            asks_by = "form" if not modes or "form" in modes else "url" if "url" in modes else None
        shows_views = prompts.is_declared(capabilities)
        client_name = route.client_info.get("name") if isinstance(route.client_info, dict) else None
    application = classify_application(
        ctx.caller.application, client_name if isinstance(client_name, str) else None, headers.get("User-Agent")
    )
    if message.method not in _METHODS[modern] and not (shows_views and message.method in _VIEW_METHODS):
        return failure(types.METHOD_NOT_FOUND, "Method not found", 404 if modern else 200, message.id)
    exchange = _RequestContext(
        TransportContext(kind="streamable-http", can_send_request=False, headers=headers),
        message.id,
        ServerMessageMetadata(request_context=CallerRequest(ctx, asks_by, application, shows_views)),
    )
    connection = Connection(exchange, protocol_version=version)  # tools need no client information
    connection.initialized.set()
    server = servers.with_views if shows_views else servers.plain
    try:
        result = await serve_one(
            server, exchange, message.method, message.params, connection=connection, lifespan_state={}
        )
    except Exception as error:  # noqa: BLE001 - the SDK converts every exception to an error without details
        details = modern_error_data(error)
        status = inbound.ERROR_CODE_HTTP_STATUS.get(details.code, 200) if modern else 200
        text = _invalid_params(message.method, error) if isinstance(error, ValidationError) else details.message
        return failure(details.code, text, status, message.id, details.data or None)
    session = None
    if ctx.caller.read_only and "instructions" in result:
        result = result | {"instructions": servers.read_only_instructions}
    if shows_views and message.method == "initialize":
        session = prompts.new_session()
        result = result | {"capabilities": {**result["capabilities"], "extensions": server.extensions}}
    return Reply({"jsonrpc": "2.0", "id": message.id, "result": result}, 200, session)


def _invalid_params(method: str, error: ValidationError) -> str:
    """Return what is wrong with the parameters, naming only fields of the protocol and none of the caller's."""
    for location in (details["loc"] for details in error.errors()):
        if "_meta" in location[:2]:
            return f"Invalid params: {'.'.join(map(str, location[:3]))} is not of the protocol's form"
    return _PARAMETER_HINTS.get(method, "Invalid params")


# --- Metrics and log lines of tool calls: which tool, which application, and with what outcome ------------------------


# denied: not permitted; rejected: invalid arguments, not found or a conflict; proposed: has to be confirmed;
# declined: by the user; failed: by an error of the service.
Outcome = Literal["done", "denied", "rejected", "proposed", "declined", "failed"]
# Applications by what their names contain, the first that fits.
_APPLICATIONS = {
    "claude-code": re.compile(r"claude.?code"),
    "claude": re.compile(r"claude|anthropic"),
    "chatgpt": re.compile(r"chatgpt|openai|codex"),
    "cursor": re.compile(r"cursor"),
    "vscode": re.compile(r"visual studio code|vs.?code|copilot"),
    "gemini": re.compile(r"gemini|google"),
    "inspector": re.compile(r"inspector"),
    "mcp-remote": re.compile(r"mcp.remote"),
    "fastmcp": re.compile(r"fastmcp"),
    "python": re.compile(r"python|httpx|aiohttp"),
    "node": re.compile(r"\bnode|undici|typescript"),
}
log = structlog.get_logger("coaching_service.mcp")


def classify_application(*names: str | None) -> str:
    """Return the known application that one of the names belongs to, the first name first; else `other`."""
    for name in names:
        for application, pattern in _APPLICATIONS.items():
            if name and pattern.search(name[:200].lower()):
                return application
    return "other"


@dataclass
class Observation:
    """A tool call that is being observed."""

    outcome: Outcome = "failed"


@contextmanager
def observing(metrics: Metrics, ctx: Context, tool: str, application: str) -> Iterator[Observation]:
    """Count a tool call, and write its log line, with the outcome that was set."""
    observation, started = Observation(), time.perf_counter()
    try:
        yield observation
    finally:
        seconds = time.perf_counter() - started
        metrics.tool_calls.labels(tool, application, observation.outcome).inc()
        metrics.tool_seconds.labels(tool).observe(seconds)
        log.info(
            "tool called",
            tool=tool,
            application=application,
            outcome=observation.outcome,
            ms=round(seconds * 1000, 1),
            company=str(ctx.company_id),
            request_id=ctx.request_id,
        )
