"""The HTTP endpoint /mcp: origin and credential checks, request parsing and the response format."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson
from aiohttp import hdrs, web
from multidict import CIMultiDictProxy, MultiMapping

from coaching_service.core.auth import CUSTOMERS, Principal
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import BadRequest, InvalidApiKey, Unauthorized
from coaching_service.core.http.handlers import PRINCIPAL, REQUEST_ID, Authenticate, interruptible
from coaching_service.core.http.request_parsing import decode_body, network_address, read_json_bytes
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.mcp import Tool
from coaching_service.people.customers import bulk

if TYPE_CHECKING:
    from coaching_service.mcp.transport import Servers

# Error codes of JSON-RPC 2.0.
PARSE_ERROR, INVALID_REQUEST = -32_700, -32_600
SESSION_HEADER = "Mcp-Session-Id"


@dataclass(frozen=True)
class Reply:
    """A JSON value, or None for messages without a response, and the HTTP status. `session`: the one that begins."""

    body: Any
    status: int
    session: str | None = None


def failure(code: int, message: str, status: int, identifier: Any = None, data: Any = None) -> Reply:
    """Return a JSON-RPC error response."""
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return Reply({"jsonrpc": "2.0", "id": identifier, "error": error}, status)


def invalid_request(message: str, identifier: Any = None) -> Reply:
    """Return the error response to a message that is not a valid request."""
    return failure(INVALID_REQUEST, f"Invalid request: {message}", 400, identifier)


def malformed_body(body: bytes) -> Reply:
    """Return the response to a body that cannot be decoded: malformed JSON, or JSON with an unsupported value."""
    try:
        json.loads(body.decode(), parse_int=str, parse_float=str, parse_constant=int)  # int("NaN") raises ValueError
    except (ValueError, RecursionError):
        return failure(PARSE_ERROR, "Parse error: the body is not valid JSON", 400)
    return invalid_request(
        "the body holds a value that is not supported: a number too large, or half of a surrogate pair"
    )


# --- Replies to JSON-RPC messages, without the SDK --------------------------------------------------------------------


Handle = Callable[[Context, Any, CIMultiDictProxy[str]], Awaitable[Reply]]

PATH = "/mcp"

_JSON = "application/json"
_EVENT_STREAM = "text/event-stream"
_ALLOWED_HEADERS = (
    f"Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name, {SESSION_HEADER}, X-API-Key"
)
_EXPOSED_HEADERS = f"{SESSION_HEADER}, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id"
_CROSS_ORIGIN_HEADERS = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
    "Access-Control-Expose-Headers": _EXPOSED_HEADERS,
    "Access-Control-Max-Age": "600",
    "Vary": "Origin",
}
_LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?(?![^/])", re.ASCII)
_EXCLUDED = re.compile(r";\s*q=0(\.0*)?\s*(;|$)")


@dataclass
class McpEndpoint:
    """The endpoint of the messages. `origins`: further web origins that may call it from a browser.

    `create_servers` returns the SDK's servers, and is called on a thread with the first message. The SDK and the
    descriptions of the tools take 30 MB and a second: a process that no assistant uses saves the memory, and every
    start saves the time. Other requests are answered meanwhile.
    """

    create_servers: Callable[[], Servers]
    services: Services
    authenticate: Authenticate
    body_limit: int
    proxies: int = 0
    origins: frozenset[str] = frozenset()
    _handle_message: Handle | None = None
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the aiohttp routes: some applications append a slash to the URL that they were given."""
        handler = interruptible(self.services, self.handle)
        return [web.route(hdrs.METH_ANY, path, handler) for path in (PATH, f"{PATH}/")]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond to a request of any method."""
        origin = request.headers.get(hdrs.ORIGIN)
        parts = urlsplit(self.services.base_url)
        allowed = {*self.origins, f"{parts.scheme}://{parts.netloc}"}
        # Any page of this machine, while the service is on it.
        is_local = bool(_LOOPBACK_ORIGIN.fullmatch(origin or "") and _LOOPBACK_ORIGIN.match(self.services.base_url))
        is_foreign = origin is not None and origin not in allowed and not is_local
        if request.method == hdrs.METH_OPTIONS:
            response = web.Response(status=204)
        elif is_foreign:
            response = _error(403, "invalid_request", "This web page may not call the service")
        else:
            response = await self._authenticate_and_respond(request)
        if origin is not None and not is_foreign:
            response.headers.update({"Access-Control-Allow-Origin": origin, **_CROSS_ORIGIN_HEADERS})
        return response

    async def _authenticate_and_respond(self, request: web.Request) -> web.Response:
        try:
            request[PRINCIPAL] = await self.authenticate(self.services, request)
        except (Unauthorized, InvalidApiKey):
            # It names the resource metadata; with `error` only when a credential was sent.
            metadata = f"{self.services.base_url}/.well-known/oauth-protected-resource{PATH}"
            challenge = f'Bearer resource_metadata="{metadata}", scope="mcp"'
            description = "Send X-API-Key, or an access token of this server's OAuth"
            if hdrs.AUTHORIZATION in request.headers or "X-API-Key" in request.headers:
                challenge += ', error="invalid_token"'
                description = "The credential is unknown, revoked or expired"
            return _error(401, "invalid_token", description, {hdrs.WWW_AUTHENTICATE: challenge})
        if request.method != hdrs.METH_POST:
            headers = {"Allow": "POST"}
            return _error(405, "invalid_request", "There are no sessions and no streams here: send POST", headers)
        if request.content_type != _JSON:
            return _error(415, "invalid_request", "The body must be JSON, sent with Content-Type: application/json")
        if (content_type := _negotiate(",".join(request.headers.getall(hdrs.ACCEPT, ())))) is None:
            return _error(406, "invalid_request", "Accept application/json and text/event-stream")
        try:
            narrowing = read_narrowing(request.query)

            async def load_caller() -> Principal:
                return narrowing.narrow(await self.authenticate(self.services, request))

            ctx = Context(
                self.services,
                narrowing.narrow(request[PRINCIPAL]),
                request_id=request[REQUEST_ID],
                network_address=network_address(request, self.proxies),
                interface="assistant",
                load_caller=load_caller,
            )
            await require_client(ctx)
        except BadRequest as error:
            return _error(400, "invalid_request", str(error.message))
        try:
            body = await read_json_bytes(ctx, request, self.body_limit)
            decoded = await decode_body(ctx, body)
        except orjson.JSONDecodeError:
            return _response(malformed_body(body), _JSON)
        except BadRequest as error:
            return _response(failure(PARSE_ERROR, str(error.message), 400), _JSON)
        async with self._loading:
            if self._handle_message is None:
                self._handle_message = await asyncio.to_thread(self._import)
        return _response(await self._handle_message(ctx, decoded, request.headers), content_type)

    def _import(self) -> Handle:
        from coaching_service.mcp.transport import handle_message

        handle = partial(handle_message, self.create_servers())
        if gc.get_freeze_count():  # the service has started, and these objects live as long as the others
            gc.freeze()
        return handle


def _negotiate(accept: str) -> str | None:
    """Return the content type of the response for an `Accept` header, preferably JSON; None if neither is accepted."""
    accepted = {part.split(";")[0].strip() for part in accept.lower().split(",") if not _EXCLUDED.search(part)} - {""}
    if not accept:
        return _JSON
    if accepted & {"*/*", "application/*", _JSON}:
        return _JSON
    return _EVENT_STREAM if accepted & {_EVENT_STREAM, "text/*"} else None


def _response(reply: Reply, content_type: str) -> web.Response:
    if reply.body is None:
        return web.Response(status=reply.status)
    body = to_json(reply.body)
    if content_type == _EVENT_STREAM:
        body = b"event: message\ndata: " + body + b"\n\n"
    headers: dict[str, str] = {hdrs.CONTENT_TYPE: content_type}
    if reply.session is not None:
        headers[SESSION_HEADER] = reply.session
    return web.Response(body=body, status=reply.status, headers=headers)


def _error(status: int, error: str, description: str, headers: Mapping[str, str] | None = None) -> web.Response:
    body = to_json({"error": error, "error_description": description})
    return web.Response(body=body, status=status, headers={hdrs.CONTENT_TYPE: _JSON, **(headers or {})})


# --- Addresses of the endpoint with fewer tools, or for one client: `/mcp?tools=read,plan`, `/mcp?customer={cid}` -----


READ = "read"
# The tools that write, by group; those that read are in the group `read`.
GROUPS: Mapping[str, frozenset[str]] = {
    "plan": frozenset(
        {
            *("create_workout", "update_workout", "update_workout_items", "remove_workout", "copy_schedule"),
            *("clear_schedule", "adjust_schedule", "replace_exercise", "assign_program", "schedule_check_in"),
            *("set_training_max", "set_availability"),
        }
    ),
    "log": frozenset({"log_workout", "record_metric", "add_note", "review_check_in"}),
    "outreach": frozenset({"send_message", "create_customer", "create_customers"}),
    "library": frozenset({"save_program", "create_exercise", "import_rows"}),
}
CHOICES = (READ, *GROUPS)
# Of every address: what became of a proposal; and of every one that writes.
_ALWAYS, _OF_WRITING = frozenset({"get_proposal", "decide_proposal"}), frozenset({"undo"})
_ALTERNATIVES = ("customerIds", "groups", "assignedProgramId")


@dataclass(frozen=True)
class Narrowing:
    """What an address is narrowed to; None: to nothing."""

    groups: frozenset[str] | None = None
    customer_id: ObjectId | None = None

    def narrow(self, principal: Principal) -> Principal:
        """Return the caller with the rights of this address. Other clients are out of scope, and none is created."""
        if self.customer_id is not None:
            permissions = principal.permissions - {CUSTOMERS.CREATE}
            principal = replace(principal, only_customer_id=self.customer_id, permissions=permissions)
        return principal if self.groups is None else replace(principal, tool_groups=self.groups)


def read_narrowing(query: MultiMapping[str]) -> Narrowing:
    """Return what the query of an address says. Raises BadRequest for unknown parameters and values."""
    groups, customer_id = None, None
    if unknown := sorted({*query} - {"tools", "customer"}):
        raise BadRequest(f"The address takes tools and customer, not {unknown[0][:50]}")
    if "tools" in query:
        named = [name.strip() for value in query.getall("tools") for name in value.split(",")]
        if not named or not {*named} <= {*CHOICES}:
            raise BadRequest(f"tools is one or several of {', '.join(CHOICES)}, separated by commas")
        groups = frozenset(named)
    if "customer" in query:
        customer_id = parse_id(query["customer"]) if len(query.getall("customer")) == 1 else None
        if customer_id is None:
            raise _unknown_client()
    return Narrowing(groups, customer_id)


async def require_client(ctx: Context) -> None:
    """Raise BadRequest if the address is for a client whom the coach does not have."""
    only = ctx.caller.only_customer_id
    if only is not None and not (await bulk.find_accessible(ctx, [only])).get(only):
        raise _unknown_client()


def _unknown_client() -> BadRequest:
    return BadRequest("customer is the _id of one client, as list_customers returns it")


def is_listed(tool: Tool, principal: Principal) -> bool:
    """Return whether the address of a caller has a tool."""
    groups = principal.tool_groups
    if groups is None or tool.name in _ALWAYS:
        return True
    if tool.name in _OF_WRITING:
        return groups != {READ}
    if not tool.writes:
        return READ in groups
    return any(tool.name in GROUPS[group] for group in groups - {READ})


def add_client(tool: Tool, principal: Principal, sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call with the client of the address, if they name none."""
    if principal.only_customer_id is None or "customerId" not in tool.takes.fields:
        return sent
    if any(sent.get(name) is not None for name in ("customerId", *_ALTERNATIVES) if name in tool.takes.fields):
        return sent
    return {**sent, "customerId": str(principal.only_customer_id)}


def without_client(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of arguments for an address of one client: naming it is optional."""
    required = [name for name in schema.get("required", ()) if name != "customerId"]
    rest = {name: value for name, value in schema.items() if name != "required"}
    return rest | ({"required": required} if required else {})
