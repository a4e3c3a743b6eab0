"""Reading a request: path, query and body, each judged by the schema its route declares."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from marshmallow import Schema, ValidationError, fields
from webargs.aiohttpparser import AIOHTTPParser
from webargs.multidictproxy import MultiDictProxy

from coaching_service.core.errors import (
    BadRequest,
    ClientDisconnected,
    LegacyFailure,
    RequestTimeout,
    TooLarge,
    UnsupportedMediaType,
)
from coaching_service.core.http.routes import Route
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.validation_messages import body_messages, query_message
from coaching_service.core.variants import ChangeByStoredType, Variant

BODY_SECONDS = 60.0
IDENTIFIER_ADVICE = "must be an identifier of 24 hexadecimal characters"


class _Parser(AIOHTTPParser):
    """webargs, reading the query as the contract words it: a scalar sent twice is refused."""

    def load_querystring(self, req: web.Request, schema: Schema) -> MultiDictProxy:
        for name, field in schema.fields.items():
            if not isinstance(field, fields.List) and len(req.query.getall(name, ())) > 1:
                raise BadRequest(f"{name} must be given only once")
        return super().load_querystring(req, schema)


_parser = _Parser()


def path_identifiers(route: Route, request: web.Request) -> dict[str, ObjectId]:
    """The identifiers in the path, by the handler's argument names. Raises BadRequest naming a malformed one."""
    found = {}
    for wire, name in route.path_parameters:
        if (identifier := parse_id(request.match_info[wire])) is None:
            if wire in route.malformed:
                raise LegacyFailure(*route.malformed[wire])
            raise BadRequest(f"{wire} {IDENTIFIER_ADVICE}")
        found[name] = identifier
    return found


def read_query(schema: Schema, request: web.Request) -> dict[str, Any]:
    """The query parameters as `schema` reads them. Raises BadRequest with the specification's message."""
    try:
        data: dict[str, Any] = schema.load(_parser.load_querystring(request, schema))
    except ValidationError as error:
        raise BadRequest(query_message(error)) from None
    return data


async def read_json(request: web.Request, limit: int, *, optional: bool = False) -> Any:
    """The JSON object in the body.

    Raises UnsupportedMediaType for another content type, TooLarge over `limit` bytes, BadRequest for what is no
    JSON object or no body at all. With `optional`, a request without a body is an empty object.
    """
    if not request.body_exists:
        if optional:
            return {}
        raise BadRequest("The body must be a JSON object")
    if request.content_type != "application/json":
        raise UnsupportedMediaType("The body must be JSON, sent with Content-Type: application/json")
    raw = await read_bytes(request, limit)
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise BadRequest("The body is not valid JSON") from None
    if not isinstance(data, dict):
        raise BadRequest("The body must be a JSON object")
    return data


async def read_bytes(request: web.Request, limit: int) -> bytes:
    """The body, counted while it arrives. Raises TooLarge over `limit` bytes, HungUp when it ends too soon."""
    raw = bytearray()
    try:
        if request.content.is_eof():  # the usual small body, which came whole with its headers
            raw += request.content.read_nowait()
        elif (request.content_length or 0) <= limit:
            async with asyncio.timeout(BODY_SECONDS):
                async for piece in request.content.iter_any():
                    raw += piece
                    if len(raw) > limit:
                        break
    except TimeoutError:
        raise RequestTimeout("The body did not arrive in time", {"Connection": "close"}) from None
    except ConnectionResetError:
        raise ClientDisconnected() from None
    except (web.RequestPayloadError, HttpProcessingError):
        raise BadRequest("The body could not be read: its encoding is broken") from None
    if max(len(raw), request.content_length or 0) > limit:
        raise TooLarge(f"The body must not be larger than {limit} bytes", {"Connection": "close"})
    return bytes(raw)


def network_address(request: web.Request, proxies: int) -> str:
    """Where a request comes from: the peer, or what the outermost of our `proxies` saw, from `X-Forwarded-For`."""
    if proxies:
        told = ",".join(request.headers.getall("X-Forwarded-For", ()))
        seen = [part.strip() for part in told.split(",") if part.strip()]
        if len(seen) >= proxies:
            return seen[-proxies][:100]
    return request.remote or "-"


def is_disconnected(request: web.Request) -> bool:
    """Whether the connection of a request is closed, or closing."""
    return request.transport is None or request.transport.is_closing()


def validate_body(schema: Schema | Variant | ChangeByStoredType, data: Any) -> Any:
    """The body as `schema` reads it. Raises BadRequest with one sentence a wrong field."""
    try:
        return schema.load(data)
    except ValidationError as error:
        raise BadRequest(body_messages(error)) from None
