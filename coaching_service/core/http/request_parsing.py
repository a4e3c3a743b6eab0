"""Reads path, query and body of a request and validates them with the schemas that its route declares."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Any

import orjson
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from marshmallow import Schema, ValidationError, fields
from multidict import MultiMapping
from yarl import URL

from coaching_service.core import errors as core_errors
from coaching_service.core import validation
from coaching_service.core.database.context import Context
from coaching_service.core.external_identity import MetadataFilter
from coaching_service.core.field_schemas import ChangeByStoredType, DeferredChange, Variant, find_unknown_fields
from coaching_service.core.http.routes import Route
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.query import BOOLEAN_STRING, NUMERIC_STRING, QueryIdentifiers, QueryTime

# --- Decoding of JSON bodies. Bodies that programs read in different ways are rejected --------------------------------


MAX_DEPTH = 64
MAX_VALUES = 50_000
_MAX_BYTES_AT_ONCE = 65_536  # takes a few milliseconds; larger bodies are decoded on a thread
_REST_SECONDS = 0.02


def large_body(ctx: Context) -> AbstractAsyncContextManager[None]:
    """Return the context to work on a large body in, or on a part of one, or to reject it: companies take turns.

    Receiving a body that is rejected takes longer than rejecting it, so the rest does not depend on that alone.
    """
    return ctx.services.work_slots.pieces.paced(ctx.slot_holder, _REST_SECONDS)


class ValueCounter:
    """Counts the values of a JSON body while it arrives, by commas and opening brackets, in texts too."""

    def __init__(self, ctx: Context) -> None:
        self._ctx, self._count = ctx, 0

    async def add(self, piece: bytes) -> None:
        """Count the values of the next piece; companies take turns. Raises BadRequest for more than 50,000 in total."""
        if len(piece) <= _MAX_BYTES_AT_ONCE:
            self._add(piece)
            return
        async with large_body(self._ctx):
            self._add(piece)

    def _add(self, piece: bytes) -> None:
        self._count += len(piece) - len(piece.translate(None, b",[{"))  # in the same time whatever the piece contains
        if self._count > MAX_VALUES:
            raise core_errors.BadRequest(
                f"The body must not have more than {MAX_VALUES} values", code="TOO_MANY_JSON_VALUES"
            )


async def decode_body(ctx: Context, raw: bytes) -> Any:
    """Return what `decode_json` does. Large bodies are decoded on a thread, and companies take turns."""
    if len(raw) <= _MAX_BYTES_AT_ONCE:
        return decode_json(raw)
    async with large_body(ctx):
        return await asyncio.to_thread(decode_json, raw)


def decode_json(raw: bytes) -> Any:
    """Return the value of a body.

    Raises orjson.JSONDecodeError if it is not JSON, BadRequest if it is nested more than 64 levels deep, or if an
    object has a name twice: RFC 8259 leaves open which of the values counts. A byte order mark before it is skipped.
    """
    raw = raw.removeprefix(codecs.BOM_UTF8)
    value = orjson.loads(raw)
    # Only as many levels as opening brackets are possible.
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _is_deeper_than(value, MAX_DEPTH):
        raise core_errors.BadRequest(
            f"The body must not be nested more than {MAX_DEPTH} levels deep", code="JSON_TOO_DEEP"
        )
    if b"{" in raw:
        json.loads(raw, object_pairs_hook=_require_unique_names, parse_int=str, parse_float=str)
    return value


def _is_deeper_than(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _require_unique_names(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len({name for name, _ in pairs}) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for position, name in enumerate(names) if name in names[:position])
        raise core_errors.BadRequest(
            f"The body has the name {repeated[:100]!r} twice in one object", code="REPEATED_JSON_NAME"
        )


Check = Callable[[bytes], Awaitable[None]]

BODY_SECONDS = 60.0
INVALID_ID_MESSAGE = "must be an identifier of 24 hexadecimal characters"
_MAX_ADDRESS_LENGTH = 100
_BRACKETED = re.compile(r"(\w+)(?:\[[^\[\]]*\])+")
_MAX_CACHED_QUERY = 256  # characters
_CACHED_FIELDS = (
    fields.Integer,
    fields.Boolean,
    validation.Choice,
    validation.Date,
    validation.Identifier,
    QueryIdentifiers,
    QueryTime,
)


def path_identifiers(route: Route, request: web.Request) -> dict[str, ObjectId | str]:
    """Return the identifiers and other parameters in the path, by the handler's argument names.

    Raises InvalidFields naming a malformed one, or LegacyFailure where the route declares that.
    """
    identifiers: dict[str, ObjectId | str] = {}
    for wire, name in route.path_parameters:
        if wire in route.path_fields:
            try:
                identifiers[name] = route.path_fields[wire].deserialize(request.match_info[wire])
            except ValidationError as error:
                raise _one_invalid({**validation.field_errors(error)[0], "field": wire}) from None
            continue
        if (identifier := parse_id(request.match_info[wire])) is None:
            if wire in route.legacy_id_errors:
                raise core_errors.LegacyFailure(*route.legacy_id_errors[wire])
            raise _one_invalid({"field": wire, "code": "INVALID_ID", "message": INVALID_ID_MESSAGE})
        identifiers[name] = identifier
    return identifiers


def read_query(schema: Schema, request: web.Request) -> dict[str, Any]:
    """Return the query parameters as `schema` loads them.

    Raises InvalidQueryType with the specification's message, or InvalidFields with the first error.
    """
    query_string = request.rel_url.raw_query_string
    if len(query_string) > _MAX_CACHED_QUERY or not request.query.keys() <= _cached_names(schema):
        return _load_query(schema, request.query)
    loaded = _load_cached(schema, query_string)
    return {name: value.copy() if isinstance(value, list) else value for name, value in loaded.items()}


@lru_cache(None)  # there is one schema for each route
def _cached_names(schema: Schema) -> frozenset[str]:
    """Return the fields that are neither typed by people nor secret: texts must not outlive their request."""
    return frozenset(name for name, field in schema.fields.items() if isinstance(field, _CACHED_FIELDS))


@lru_cache(1024)  # callers repeat the queries of their lists, and what is loaded depends on nothing else
def _load_cached(schema: Schema, query_string: str) -> dict[str, Any]:
    return _load_query(schema, URL.build(query_string=query_string, encoded=True).query)


def _load_query(schema: Schema, sent_values: MultiMapping[str]) -> dict[str, Any]:
    metadata = _read_metadata(sent_values) if isinstance(schema.fields.get("metadata"), MetadataFilter) else {}
    _reject_brackets(schema, sent_values, metadata)
    values: dict[str, Any] = {"metadata": metadata} if metadata else {}
    for name, field in schema.fields.items():
        if name in values or not (sent := sent_values.getall(name, [])):
            continue
        if not isinstance(field, fields.List):
            if len(sent) > 1:
                raise _one_invalid({"field": name, "code": "REPEATED", "message": "must be given only once"})
            values[name] = sent[0]
        else:
            values[name] = sent
    try:
        query: dict[str, Any] = schema.load(values)
    except ValidationError as error:
        first = validation.field_errors(error)[0]
        if first["code"] in (NUMERIC_STRING.code, BOOLEAN_STRING.code):
            raise core_errors.InvalidQueryType(first["message"]) from None
        raise _one_invalid(first) from None
    return query


def _reject_brackets(schema: Schema, sent_values: MultiMapping[str], metadata: Mapping[str, str]) -> None:
    """Raise InvalidFields for `name[]` or `name[0]` in place of a parameter `name`."""
    for name in sent_values:
        bracketed = _BRACKETED.fullmatch(name)
        if bracketed and bracketed[1] in schema.fields and not (metadata and bracketed[1] == "metadata"):
            repeated = ": repeat it instead" if isinstance(schema.fields[bracketed[1]], fields.List) else ""
            message = f"is not supported: the name of the parameter is {bracketed[1]}, without brackets{repeated}"
            raise _one_invalid({"field": name, "code": "BRACKETS", "message": message})


def _read_metadata(sent_values: MultiMapping[str]) -> dict[str, str]:
    """Return the values of `metadata[KEY]` by key. Raises InvalidFields for a malformed or repeated parameter."""
    metadata: dict[str, str] = {}
    for name, value in sent_values.items():
        if not name.startswith("metadata"):
            continue
        if (key := MetadataFilter.key_of(name)) is None:
            message = "must be of the form metadata[KEY]=VALUE"
            raise _one_invalid({"field": name[:100], "code": "INVALID_METADATA", "message": message})
        if key in metadata:
            raise _one_invalid({"field": name, "code": "REPEATED", "message": "must be given only once"})
        metadata[key] = value
    return metadata


def _one_invalid(error: core_errors.FieldError) -> core_errors.InvalidFields:
    """Return the error for one path or query parameter, whose `message` is a string."""
    return core_errors.InvalidFields([error], validation.sentence(error))


async def read_json(ctx: Context, request: web.Request, limit: int, *, optional: bool = False) -> Any:
    """Return the JSON object in the body.

    Raises UnsupportedMediaType for another content type, TooLarge over `limit` bytes, and BadRequest for a missing
    body, anything but a JSON object, a name twice in one object, or too many levels or values. With `optional`, a
    missing body is an empty object.
    """
    if not request.body_exists:
        if optional:
            return {}
        raise core_errors.BadRequest("The body must be a JSON object", code="BODY_REQUIRED")
    if request.content_type != "application/json":
        raise core_errors.UnsupportedMediaType("The body must be JSON, sent with Content-Type: application/json")
    raw = await read_json_bytes(ctx, request, limit)
    try:
        data = await decode_body(ctx, raw)
    except orjson.JSONDecodeError:
        raise core_errors.BadRequest("The body is not valid JSON", code="MALFORMED_JSON") from None
    if not isinstance(data, dict):
        raise core_errors.BadRequest("The body must be a JSON object", code="NOT_A_JSON_OBJECT")
    return data


async def read_json_bytes(ctx: Context, request: web.Request, limit: int) -> bytes:
    """Return the body, which is JSON. Raises what `read_bytes` does, and BadRequest for too many values."""
    try:
        return await read_bytes(request, limit, ValueCounter(ctx).add)
    except core_errors.TooLarge:
        async with large_body(ctx):
            raise


async def _accept(_piece: bytes) -> None:
    """Accept any bytes."""


async def read_bytes(request: web.Request, limit: int, check: Check = _accept) -> bytes:
    """Return the body, counting its bytes while they arrive. `check` may raise an error for the next of them.

    Raises TooLarge over `limit` bytes, BadRequest for a broken encoding, RequestTimeout when it takes too long, and
    ClientDisconnected when the connection closes before the end.
    """
    raw = bytearray()
    try:
        if request.content.is_eof():  # the usual small body, which arrived with the headers
            raw += request.content.read_nowait()
            await check(bytes(raw))
        elif (request.content_length or 0) <= limit:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in request.content.iter_any():
                    raw += chunk
                    if len(raw) > limit:
                        break
                    await check(chunk)
    except TimeoutError:
        raise core_errors.RequestTimeout("The body did not arrive in time", {"Connection": "close"}) from None
    except ConnectionResetError:
        raise core_errors.ClientDisconnected() from None
    except (web.RequestPayloadError, HttpProcessingError):
        raise core_errors.BadRequest(
            "The body could not be read: its encoding is broken", code="MALFORMED_BODY"
        ) from None
    if max(len(raw), request.content_length or 0) > limit:
        raise core_errors.TooLarge(f"The body must not be larger than {limit} bytes", {"Connection": "close"})
    return bytes(raw)


def network_address(request: web.Request, proxies: int) -> str:
    """Return the caller's IP address: the peer's, or with `proxies` of ours the one that the outermost of them
    reports in `X-Forwarded-For`."""
    if proxies:
        header = ",".join(request.headers.getall("X-Forwarded-For", ()))
        addresses = [part.strip() for part in header.split(",") if part.strip()]
        if len(addresses) >= proxies:
            return addresses[-proxies][:_MAX_ADDRESS_LENGTH]
    return request.remote or "-"


def device_of(request: web.Request) -> str:
    """Return what the program that sends a request says it is, to describe its session."""
    # Bytes that are not UTF-8 are surrogates in a header: they cannot be stored.
    return request.headers.get("User-Agent", "").encode(errors="surrogateescape").decode(errors="replace")


def is_disconnected(request: web.Request) -> bool:
    """Return whether the connection of a request is closed or closing."""
    return request.transport is None or request.transport.is_closing()


def validate_body(schema: Schema | Variant | ChangeByStoredType, data: Any) -> Any:
    """Return the body as `schema` loads it. Raises InvalidFields with one error per invalid field."""
    try:
        return schema.load(data)
    except ValidationError as error:
        raise core_errors.InvalidFields(validation.field_errors(error)) from None


# --- Strictness -------------------------------------------------------------------------------------------------------
# The preferences of a caller (RFC 7240): `handling=strict`, unknown names are errors, and `respond-async`, jobs.


_ACCEPTED = 202
STRICT = "handling=strict"
RESPOND_ASYNC = "respond-async"
IS_STRICT = web.RequestKey("is_strict", bool)
PREFERS_JOB = web.RequestKey("prefers_job", bool)


def prefers_strict(request: web.Request) -> bool:
    """Return whether the first `handling` preference of a request is `strict`."""
    return next((value == "strict" for name, value in _preferences(request) if name == "handling"), False)


def prefers_job(request: web.Request) -> bool:
    """Return whether a request has the preference `respond-async`."""
    return any(name == RESPOND_ASYNC for name, _ in _preferences(request))


def list_applied(request: web.Request, status: int) -> list[str]:
    """Return the preferences of a request that its response, with this status, follows."""
    applied = {STRICT: request.get(IS_STRICT), RESPOND_ASYNC: request.get(PREFERS_JOB) and status == _ACCEPTED}
    return [name for name, is_applied in applied.items() if is_applied]


def _preferences(request: web.Request) -> Iterator[tuple[str, str]]:
    for header in request.headers.getall("Prefer", ()):
        for preference in header.split(","):
            name, _, value = preference.partition(";")[0].partition("=")
            yield name.strip().lower(), value.strip().strip('"').lower()


def reject_unknown_parameters(schema: Schema | None, request: web.Request) -> None:
    """Raise InvalidFields if the request has a query parameter that `schema` does not have."""
    known = schema.fields if schema is not None else {}
    names = ("metadata" if MetadataFilter.key_of(name) is not None else name for name in request.query)
    _reject(_unknown(name for name in names if name not in known), is_query=True)


def reject_unknown_names(names: Iterable[str]) -> None:
    """Raise InvalidFields for parts of a multipart body that the operation does not have."""
    _reject(_unknown(names))


def reject_unknown_fields(schema: Schema | Variant | ChangeByStoredType, data: Any, loaded: Any) -> None:
    """Raise InvalidFields if the body `data` has a field that `schema` does not have.

    The fields of a body whose type is stored are checked when that type is known: `loaded` is set to do so.
    """
    if isinstance(schema, ChangeByStoredType):
        if isinstance(loaded, DeferredChange):
            loaded.is_strict = True
        return
    _reject(list(find_unknown_fields(schema, data)))


def _unknown(names: Iterable[str]) -> list[core_errors.FieldError]:
    return [
        {"field": name, "code": validation.UNKNOWN_FIELD.code, "message": str(validation.UNKNOWN_FIELD)}
        for name in dict.fromkeys(names)
    ]


def _reject(errors: list[core_errors.FieldError], *, is_query: bool = False) -> None:
    if errors:
        raise core_errors.InvalidFields(errors, validation.sentence(errors[0]) if is_query else None)
