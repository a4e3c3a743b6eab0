"""One JSON-RPC message in, one answer out, in both eras of the protocol.

The only file that reaches into the SDK beyond its documented surface: `serve_one` and what it needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp.types import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from multidict import CIMultiDictProxy
from pydantic import BaseModel, ValidationError

from coaching_service.core.database.context import Context

Headers = CIMultiDictProxy[str]
# A request without the header comes from a client of this revision, the last before the header was asked for.
UNNAMED_VERSION = "2025-03-26"
_ROUTING = (MCP_PROTOCOL_VERSION_HEADER, MCP_METHOD_HEADER, MCP_NAME_HEADER)
MAX_IN_A_BATCH = 50
# What is served, in the older and in the newer era.
_METHODS = {
    False: frozenset(("initialize", "ping", "tools/list", "tools/call")),
    True: frozenset(("server/discover", "tools/list", "tools/call")),
}
_NEEDED = {
    "initialize": "Invalid params: initialize needs protocolVersion, capabilities and clientInfo",
    "tools/list": "Invalid params: tools/list takes no cursor but a string",
    "tools/call": "Invalid params: tools/call needs name, a string, and takes arguments, an object",
}


@dataclass(frozen=True)
class Reply:
    """What goes back: a JSON value, or nothing for what needs no answer; and the HTTP status."""

    body: Any
    status: int


@dataclass
class _OneShot:
    """The SDK's view of one POST: there is no channel back."""

    transport: TransportContext
    request_id: Any
    message_metadata: ServerMessageMetadata
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> dict[str, Any]:
        """Refused: nobody would hear the answer."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        """Dropped."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Dropped."""


def failure(code: int, message: str, status: int, identifier: Any = None, data: Any = None) -> Reply:
    """A JSON-RPC error as an answer."""
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return Reply({"jsonrpc": "2.0", "id": identifier, "error": error}, status)


def unreadable(body: bytes) -> Reply:
    """The answer to a body that the reader refuses: it is no JSON, or JSON with a value that is not taken."""
    try:
        json.loads(body.decode(), parse_int=str, parse_float=str, parse_constant=int)  # as int, NaN is refused
    except (ValueError, RecursionError):
        return failure(PARSE_ERROR, "Parse error: the body is not valid JSON", 400)
    return _invalid("the body holds a value that is not supported: a number too large, or half of a surrogate pair")


def _invalid(message: str, identifier: Any = None) -> Reply:
    return failure(INVALID_REQUEST, f"Invalid request: {message}", 400, identifier)


async def answer(server: Server[Any], ctx: Context, decoded: Any, headers: Headers) -> Reply:
    """The reply to a decoded body: one message or, from clients of 2025-03-26, several."""
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if not isinstance(decoded, list):
        return await _one(server, ctx, decoded, version, headers)
    if version not in (None, UNNAMED_VERSION):
        return _invalid("this revision of the protocol takes one message at a time")
    if not 1 <= len(decoded) <= MAX_IN_A_BATCH:
        return _invalid(f"a batch holds 1 to {MAX_IN_A_BATCH} messages")
    if any(isinstance(each, dict) and each.get("method") == "initialize" for each in decoded):
        return _invalid("initialize cannot be part of a batch")
    replies = [await _one(server, ctx, each, version, headers) for each in decoded]
    bodies = [reply.body for reply in replies if reply.body is not None]
    return Reply(bodies, 200) if bodies else Reply(None, 202)


async def _one(server: Server[Any], ctx: Context, decoded: Any, version: str | None, headers: Headers) -> Reply:
    if not isinstance(decoded, dict):
        return _invalid("a message is a JSON object")
    identifier = _identifier(decoded)
    if not isinstance(decoded.get("params", {}), dict):
        return _invalid("params must be an object", identifier)
    modern = _is_modern(decoded, version)
    if modern and version not in (None, *MODERN_PROTOCOL_VERSIONS) and not _names_version(decoded):
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": version}
        return failure(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", 400, identifier, data)
    if "method" not in decoded and not modern and decoded.keys() & {"result", "error"}:
        return _heard(decoded, JSONRPCResponse if "result" in decoded else JSONRPCError)
    if "id" not in decoded:
        return _heard(decoded, JSONRPCNotification)
    try:
        message = JSONRPCRequest.model_validate(decoded)
    except ValidationError:
        return _invalid("it needs jsonrpc 2.0, a string or integer id, and a method", identifier)
    return await _serve(server, ctx, message, decoded, headers, modern=modern, version=version or UNNAMED_VERSION)


def _identifier(decoded: dict[str, Any]) -> str | int | None:
    """The id of a message, if it has one that can be."""
    given = decoded.get("id")
    return given if isinstance(given, str | int) and not isinstance(given, bool) else None


def _is_modern(decoded: dict[str, Any], version: str | None) -> bool:
    return (version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS) or _names_version(decoded)


def _names_version(decoded: dict[str, Any]) -> bool:
    meta = decoded.get("params", {}).get("_meta")
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta


def _heard(decoded: dict[str, Any], kind: type[BaseModel]) -> Reply:
    """A notification, or in the older era an answer to a request we never make: taken and dropped."""
    try:
        kind.model_validate(decoded)
    except ValidationError:
        return _invalid("it is neither a request, nor a notification, nor an answer", _identifier(decoded))
    return Reply(None, 202)


async def _serve(
    server: Server[Any],
    ctx: Context,
    message: JSONRPCRequest,
    decoded: dict[str, Any],
    headers: Headers,
    *,
    modern: bool,
    version: str,
) -> Reply:
    if modern:
        routing = [(name, value) for name in _ROUTING for value in headers.getall(name, ())]
        if (twice := find_duplicated_routing_header(routing)) is not None:
            return failure(HEADER_MISMATCH, f"The header {twice} must be sent once", 400, message.id)
        route = classify_inbound_request(decoded, headers=dict(routing))
        if isinstance(route, InboundLadderRejection):
            status = ERROR_CODE_HTTP_STATUS.get(route.code, 400)
            return failure(route.code, route.message, status, message.id, route.data)
        version = route.protocol_version
    if message.method not in _METHODS[modern]:
        return failure(METHOD_NOT_FOUND, "Method not found", 404 if modern else 200, message.id)
    exchange = _OneShot(
        TransportContext(kind="streamable-http", can_send_request=False, headers=headers),
        message.id,
        ServerMessageMetadata(request_context=ctx),
    )
    connection = Connection(exchange, protocol_version=version)  # no tool asks which client calls, or what it can do
    connection.initialized.set()
    try:
        result = await serve_one(
            server, exchange, message.method, message.params, connection=connection, lifespan_state={}
        )
    except Exception as error:  # noqa: BLE001 - the SDK's own ladder from exceptions to errors, which tells nothing of ours
        told = modern_error_data(error)
        status = ERROR_CODE_HTTP_STATUS.get(told.code, 200) if modern else 200
        said = _misfit(message.method, error) if isinstance(error, ValidationError) else told.message
        return failure(told.code, said, status, message.id, told.data or None)
    return Reply({"jsonrpc": "2.0", "id": message.id, "result": result}, 200)


def _misfit(method: str, error: ValidationError) -> str:
    """What is wrong with the parameters of a request; of what was sent it names only the protocol's own words."""
    for where in (each["loc"] for each in error.errors()):
        if "_meta" in where[:2]:
            return f"Invalid params: {'.'.join(map(str, where[:3]))} is not of the protocol's form"
    return _NEEDED.get(method, "Invalid params")
