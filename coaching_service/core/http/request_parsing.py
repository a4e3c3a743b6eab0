"""Reads path, query and body of a request and validates them with the schemas that its route declares."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import json
import re
import unicodedata
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import PurePosixPath
from typing import IO, Any
from urllib.parse import unquote

import orjson
from aiohttp import BadContentDispositionHeader, BadContentDispositionParam, BodyPartReader, MultipartReader, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from marshmallow import Schema, ValidationError, fields
from multidict import MultiMapping
from yarl import URL

from coaching_service.core import errors as core_errors
from coaching_service.core import validation
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.database.files import StoredFile, storing
from coaching_service.core.external_identity import MetadataFilter
from coaching_service.core.fields import ChangeByStoredType, DeferredChange, Variant, find_unknown_fields
from coaching_service.core.http.routes import Handler, MultipartBody, ReceivedFile, Route
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.media import InvalidFile
from coaching_service.core.query import BOOLEAN_STRING, NUMERIC_STRING, QueryIdentifiers, QueryTime
from coaching_service.core.temporary_files import open_temporary, write_all

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
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
        level = [value] if isinstance(value, dict | list) else []
        for _ in range(MAX_DEPTH):
            children = chain.from_iterable(each.values() if isinstance(each, dict) else each for each in level)
            level = [child for child in children if isinstance(child, dict | list)]
        if level:
            message = f"The body must not be nested more than {MAX_DEPTH} levels deep"
            raise core_errors.BadRequest(message, code="JSON_TOO_DEEP")

    def require_unique_names(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > 1 and len({name for name, _ in pairs}) < len(pairs):
            names = [name for name, _ in pairs]
            repeated = next(name for position, name in enumerate(names) if name in names[:position])
            message = f"The body has the name {repeated[:100]!r} twice in one object"
            raise core_errors.BadRequest(message, code="REPEATED_JSON_NAME")

    if b"{" in raw:
        json.loads(raw, object_pairs_hook=require_unique_names, parse_int=str, parse_float=str)
    return value


BODY_SECONDS = 60.0
INVALID_ID_MESSAGE = "must be an identifier of 24 hexadecimal characters"
_MAX_ADDRESS_LENGTH = 100
_BRACKETED = re.compile(r"(\w+)(?:\[[^\[\]]*\])+")
_MAX_CACHED_QUERY = 256  # characters
_TYPED = (fields.Integer, fields.Boolean, validation.Choice, validation.Date, validation.Identifier)


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
        elif (identifier := parse_id(request.match_info[wire])) is not None:
            identifiers[name] = identifier
        elif wire in route.legacy_id_errors:
            raise core_errors.LegacyFailure(*route.legacy_id_errors[wire])
        else:
            raise _one_invalid({"field": wire, "code": "INVALID_ID", "message": INVALID_ID_MESSAGE})
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
    return frozenset(
        name for name, field in schema.fields.items() if isinstance(field, (*_TYPED, QueryIdentifiers, QueryTime))
    )


@lru_cache(1024)  # callers repeat the queries of their lists, and what is loaded depends on nothing else
def _load_cached(schema: Schema, query_string: str) -> dict[str, Any]:
    return _load_query(schema, URL.build(query_string=query_string, encoded=True).query)


def _load_query(schema: Schema, sent_values: MultiMapping[str]) -> dict[str, Any]:
    metadata = _read_metadata(sent_values) if isinstance(schema.fields.get("metadata"), MetadataFilter) else {}
    for name in sent_values:  # `name[]` or `name[0]` in place of a parameter `name`
        bracketed = _BRACKETED.fullmatch(name)
        if bracketed and bracketed[1] in schema.fields and not (metadata and bracketed[1] == "metadata"):
            repeated = ": repeat it instead" if isinstance(schema.fields[bracketed[1]], fields.List) else ""
            message = f"is not supported: the name of the parameter is {bracketed[1]}, without brackets{repeated}"
            raise _one_invalid({"field": name, "code": "BRACKETS", "message": message})
    values: dict[str, Any] = {"metadata": metadata} if metadata else {}
    for name, declared in schema.fields.items():
        if name in values or not (sent := sent_values.getall(name, [])):
            continue
        is_list = isinstance(declared, fields.List)
        if len(sent) > 1 and not is_list:
            raise _one_invalid({"field": name, "code": "REPEATED", "message": "must be given only once"})
        values[name] = sent if is_list else sent[0]
    try:
        query: dict[str, Any] = schema.load(values)
    except ValidationError as error:
        first = validation.field_errors(error)[0]
        if first["code"] in (NUMERIC_STRING.code, BOOLEAN_STRING.code):
            raise core_errors.InvalidQueryType(first["message"]) from None
        raise _one_invalid(first) from None
    return query


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
    count = 0  # of the values, by commas and opening brackets, in texts too, while the body arrives

    async def add(piece: bytes) -> None:
        nonlocal count
        async with large_body(ctx) if len(piece) > _MAX_BYTES_AT_ONCE else nullcontext():
            count += len(piece) - len(piece.translate(None, b",[{"))  # takes the same time whatever the piece contains
        if count > MAX_VALUES:
            message = f"The body must not have more than {MAX_VALUES} values"
            raise core_errors.BadRequest(message, code="TOO_MANY_JSON_VALUES")

    try:
        return await read_bytes(request, limit, add)
    except core_errors.TooLarge:
        async with large_body(ctx):
            raise


async def read_bytes(
    request: web.Request, limit: int, check: Callable[[bytes], Awaitable[None]] | None = None
) -> bytes:
    """Return the body, counting its bytes while they arrive. `check` may raise an error for the next of them.

    Raises TooLarge over `limit` bytes, BadRequest for a broken encoding, RequestTimeout when it takes too long, and
    ClientDisconnected when the connection closes before the end.
    """
    raw = bytearray()
    try:
        if request.content.is_eof():  # the usual small body, which arrived with the headers
            raw += request.content.read_nowait()
            if check is not None:
                await check(bytes(raw))
        elif (request.content_length or 0) <= limit:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in request.content.iter_any():
                    raw += chunk
                    if len(raw) > limit:
                        break
                    if check is not None:
                        await check(chunk)
    except TimeoutError:
        raise core_errors.RequestTimeout("The body did not arrive in time", {"Connection": "close"}) from None
    except ConnectionResetError:
        raise core_errors.ClientDisconnected() from None
    except _MALFORMED:
        message = "The body could not be read: its encoding is broken"
        raise core_errors.BadRequest(message, code="MALFORMED_BODY") from None
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
    if unknown := [name for name in names if name not in known]:
        errors = [validation.UNKNOWN_FIELD.at(name) for name in dict.fromkeys(unknown)]
        raise core_errors.InvalidFields(errors, validation.sentence(errors[0]))


def reject_unknown_names(names: Iterable[str]) -> None:
    """Raise InvalidFields for parts of a multipart body that the operation does not have."""
    if errors := [validation.UNKNOWN_FIELD.at(name) for name in dict.fromkeys(names)]:
        raise core_errors.InvalidFields(errors)


def reject_unknown_fields(schema: Schema | Variant | ChangeByStoredType, data: Any, loaded: Any) -> None:
    """Raise InvalidFields if the body `data` has a field that `schema` does not have.

    The fields of a body whose type is stored are checked when that type is known: `loaded` is set to do so.
    """
    if isinstance(schema, ChangeByStoredType):
        if isinstance(loaded, DeferredChange):
            loaded.is_strict = True
    elif errors := list(find_unknown_fields(schema, data)):
        raise core_errors.InvalidFields(errors)


# --- Uploads: aiohttp's multipart reader streams the file to a temporary file, which is validated and then stored -----


UPLOAD_SECONDS = 600.0
_MAX_OTHER_BYTES = 1_000_000  # of all parts that are neither the file nor a known text field
_MAX_PARTS = 20
_MAX_VALUES = 50  # of each list, further parts
_MAX_DRAINED_BYTES = 200_000_000
_CHUNK_BYTES, _PIECE_BYTES = 64 * 1024, 256 * 1024
_MAX_NAME_LENGTH, _MAX_SUFFIX_LENGTH = 200, 10
_MALFORMED = (web.RequestPayloadError, HttpProcessingError)
_MULTIPART_ERRORS = (ValueError, LookupError, AssertionError, RuntimeError, *_MALFORMED)
_INVISIBLE_CATEGORIES, _JOINERS = ("Cc", "Cf", "Cs", "Zl", "Zp"), "\u200c\u200d"
# aiohttp warns about malformed headers of a client, which must not fill the service's error output.
for _warning in (BadContentDispositionHeader, BadContentDispositionParam):
    warnings.filterwarnings("ignore", category=_warning)


@dataclass
class Upload:
    """The contents of a multipart body: text fields, and the file, if any, as a temporary file.

    `too_large`: the file was over the limit and has been discarded. `other_names`: the parts that were ignored.
    `more_files`: the files of further fields, by field.
    """

    texts: dict[str, str] = field(default_factory=dict)
    file: IO[bytes] | None = None
    name: str = ""
    sha256: str = ""
    too_large: bool = False
    other_names: list[str] = field(default_factory=list)
    more_files: dict[str, Upload] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What distinguishes the files of one body from the files of another."""
        return " ".join([self.sha256, *(f"{name}:{each.sha256}" for name, each in sorted(self.more_files.items()))])

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes one body from another."""
        return {"texts": self.texts, "name": self.name, "sha256": self.sha256}

    def close(self) -> None:
        """Remove the temporary files."""
        for upload in (self, *self.more_files.values()):
            if upload.file is not None:
                upload.file.close()


async def read_upload(
    ctx: Context,
    request: web.Request,
    multipart: MultipartBody,
    limit: int,
    *,
    extra_fields: Collection[str] = (),
    drain_oversized: bool = False,
) -> Upload:
    """Return the parts of a multipart body, which may come in any order. The file is never read into memory.

    `limit`: bytes of the file. `extra_fields`: text fields to read in addition to the schema's.
    `drain_oversized`: read a larger file to its end and discard it, instead of raising TooLarge at once: a browser
    shows no response before it has sent the whole body.

    A request without a body is an upload without a file. Raises UnsupportedMediaType for other content
    types, BadRequest for malformed multipart bodies, TooLarge, RequestTimeout, Unavailable if there is no space for
    the file, and ClientDisconnected when the connection closes before the end.
    """
    if not request.body_exists:
        return Upload()
    if request.content_type != "multipart/form-data":
        raise core_errors.UnsupportedMediaType("The body must be multipart/form-data")
    limits = limit, max(limit, _MAX_DRAINED_BYTES) if drain_oversized else limit
    if (request.content_length or 0) > limits[1] * len(multipart.file_fields) + _MAX_OTHER_BYTES:
        raise _too_large(limit)
    upload = Upload()
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            text_fields = multipart.text_fields | set(extra_fields)
            await _read_parts(ctx, await request.multipart(), multipart, limits, text_fields, upload)
    except BaseException as error:
        upload.close()
        if isinstance(error, TimeoutError):
            raise core_errors.RequestTimeout("The body did not arrive in time", {"Connection": "close"}) from None
        if isinstance(error, ConnectionError):
            raise core_errors.ClientDisconnected from None
        if not isinstance(error, _MULTIPART_ERRORS):
            raise
        raise core_errors.BadRequest("The body is not valid multipart/form-data", code="MALFORMED_MULTIPART") from None
    return upload


async def _read_parts(
    ctx: Context,
    reader: MultipartReader,
    multipart: MultipartBody,
    limits: tuple[int, int],
    text_fields: Collection[str],
    upload: Upload,
) -> None:
    """Read the files and the text fields into `upload`. `limits`: of a file, and of what is read of a larger one."""
    names: set[str] = set()
    count = other_bytes = 0
    most = _MAX_PARTS + _MAX_VALUES * len(multipart.list_fields)
    while (part := await reader.next()) is not None:
        count += 1
        if count > most:
            raise core_errors.BadRequest(f"The body must not have more than {most} parts", code="TOO_MANY_PARTS")
        encoding = part.headers.get(hdrs.CONTENT_TRANSFER_ENCODING, "binary").lower()
        is_encoded = encoding not in ("binary", "8bit", "7bit") or hdrs.CONTENT_ENCODING in part.headers
        if not isinstance(part, BodyPartReader) or is_encoded:
            message = "The parts of the body must not be nested or encoded"
            raise core_errors.BadRequest(message, code="MALFORMED_MULTIPART")
        if (name := part.name) is None:
            message = "Each part of the body needs a Content-Disposition that names its field"
            raise core_errors.BadRequest(message, code="MALFORMED_MULTIPART")
        is_single = name in multipart.file_fields or (name in text_fields and name not in multipart.list_fields)
        if name in names and is_single:
            raise core_errors.invalid_field(name, "must be given only once", code="REPEATED")
        names.add(name)
        if name == multipart.file_field:
            await _read_file(ctx, part, limits, upload)
        elif name in multipart.more_files:
            upload.more_files[name] = Upload()
            await _read_file(ctx, part, limits, upload.more_files[name])
        elif name in text_fields:
            raw = bytearray()
            while chunk := await part.read_chunk(_CHUNK_BYTES):
                raw += chunk
                if len(raw) > multipart.text_bytes:
                    raise core_errors.invalid_field(name, "is too long", code="TOO_LONG")
            text = raw.decode("utf-8")
            # A form has the checked boxes of a list as one text, with a value in each line.
            upload.texts[name] = f"{upload.texts[name]}\n{text}" if name in upload.texts else text
        else:
            upload.other_names.append(name)
            other_bytes += await _copy(part, _MAX_OTHER_BYTES - other_bytes, "The other parts")


async def _read_file(ctx: Context, part: BodyPartReader, limits: tuple[int, int], upload: Upload) -> None:
    accepted, drained = limits
    upload.name = clean_file_name(part.filename or "")
    upload.file = open_temporary("upload")  # closed with the upload
    writer = _Writer(ctx, upload.file)
    try:
        size = await _copy(part, accepted, "The file", writer.write)
        await writer.flush()
    except core_errors.TooLarge:
        upload.file.close()
        if drained == accepted:
            raise
        upload.file, upload.too_large = None, True
        await _copy(part, drained, "The file")
        return
    upload.file.seek(0)
    upload.sha256 = writer.digest.hexdigest()
    if size == 0 and not upload.name:  # an empty file input of a browser form
        upload.file.close()
        upload.file = None


def clean_file_name(sent: str) -> str:
    """Return the last part of the path `sent` without invisible characters, at most 200 characters; "" if none."""
    name = PurePosixPath(unquote(sent).replace("\\", "/")).name
    visible = "".join(
        " " if unicodedata.category(character) in _INVISIBLE_CATEGORIES and character not in _JOINERS else character
        for character in name
    ).strip()
    suffix = PurePosixPath(visible).suffix[:_MAX_SUFFIX_LENGTH]
    if len(visible) > _MAX_NAME_LENGTH:
        visible = visible[: _MAX_NAME_LENGTH - len(suffix)] + suffix
    return visible if visible.strip(".") else ""


class _Writer:
    """Writes a file and its checksum in pieces, on a thread: companies take turns, and no other request waits."""

    def __init__(self, ctx: Context, file: IO[bytes]) -> None:
        self.digest = hashlib.sha256()
        self._ctx, self._file, self._piece = ctx, file, bytearray()

    async def write(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._piece += chunk
        if len(self._piece) >= _PIECE_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Write what is left."""
        piece, self._piece = self._piece, bytearray()
        if len(piece) <= _CHUNK_BYTES:
            self._write(piece)
            return
        async with self._ctx.services.work_slots.pieces.paced(self._ctx.slot_holder):
            writing = asyncio.get_running_loop().run_in_executor(None, self._write, piece)
            try:
                await asyncio.shield(writing)
            finally:
                await asyncio.wait([writing])  # also when cancelled: the file must not be closed before

    def _write(self, piece: bytearray) -> None:
        write_all(self._file, piece)
        self.digest.update(piece)


async def _copy(
    part: BodyPartReader, limit: int, description: str, write: Callable[[bytes], Awaitable[None]] | None = None
) -> int:
    """Pass the bytes of a part to `write` and return their number. Raises TooLarge over `limit` bytes."""
    size = 0
    while chunk := await part.read_chunk(_CHUNK_BYTES):
        size += len(chunk)
        if size > limit:
            raise _too_large(limit, description)
        if write is not None:
            await write(chunk)
    return size


def _too_large(limit: int, description: str = "The file") -> core_errors.TooLarge:
    return core_errors.TooLarge(f"{description} must not be larger than {limit} bytes", {"Connection": "close"})


@asynccontextmanager
async def store_upload(
    ctx: Context, upload: Upload, multipart: MultipartBody, customer_id: ObjectId | None, max_pixels: int
) -> AsyncIterator[StoredFile | ReceivedFile | None]:
    """Validates and stores the uploaded file, an image together with its thumbnail; None when there is no file.

    A file that is not to be stored is left as it is.

    `customer_id`: the client whose file it is, or None for a file of the company.
    Unless a record has attached the file by the end of the block, it is deleted. Raises InvalidFields if the
    file is broken, not of an accepted content type, or an image with too many pixels.
    """
    if upload.file is None:
        yield None
        return
    if not multipart.is_stored:
        yield ReceivedFile(upload.name, upload.file)
        return
    try:
        async with storing(
            ctx,
            upload.file,
            name=upload.name,
            content_types=multipart.content_types,
            customer_id=customer_id,
            max_pixels=max_pixels,
        ) as file:
            upload.file.close()
            yield file
    except InvalidFile as error:
        raise core_errors.invalid_field(multipart.file_field, error.message, code=error.code) from None


def attach_files(handler: Handler, *files_of_body: StoredFile | ReceivedFile | None) -> Handler:
    """Return `handler` running in a transaction that also attaches the stored files to their records."""
    stored = [file for file in files_of_body if isinstance(file, StoredFile)]
    if not stored and any(files_of_body):
        return handler

    async def handle(ctx: Context, **arguments: Any) -> Any:
        async def work(tx: Context) -> Any:
            result = await handler(tx, **arguments)
            for file in stored:
                await files.attach(tx, file)
            return result

        return await in_transaction(ctx, work)

    return handle
