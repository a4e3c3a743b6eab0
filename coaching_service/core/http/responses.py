"""JSON responses: documents are sent as they are stored, with identifiers and times converted to strings."""

from __future__ import annotations

import asyncio
import gzip
import io
import re
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import orjson
import structlog
from aiohttp import hdrs, web

from coaching_service.core.database.context import RECHECK_SECONDS
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId

# --- Gzip for JSON responses, and for pages that are marked as COMPRESSIBLE -------------------------------------------
# The size of a compressed page can reveal a secret that it repeats, bit by bit, to someone who sees it and chooses a
# part of the page (BREACH). A page is compressible if each response has other secrets (CSRF tokens, submission tokens);
# a
# file name of random length in the header of gzip hides small differences.


_MIN_BYTES = 1024
_LEVEL = 1  # twice as fast as level 6, for responses that are a few per cent larger; see benchmarks/README.md
COMPRESSIBLE = web.ResponseKey("compressible", bool)  # marks a response
KEEPS_TAG = web.ResponseKey("keepsTag", bool)  # marks a response whose `ETag` is the version of a record
_PAGE_LEVEL = 6  # fewer bytes matter more to phones
_MAX_PADDING = 100
_MAX_BYTES_AT_ONCE = 65_536  # takes about a millisecond; larger bodies are compressed on a thread


async def compress(request: web.Request, response: web.StreamResponse) -> None:
    """Compress the body of a JSON response or compressible page of more than 1 kB if the caller accepts gzip.

    A strong `ETag` of bytes becomes a weak one, because they differ; one that is the version of a record does not.
    """
    if not isinstance(response, web.Response):
        return
    is_page = response.get(COMPRESSIBLE, False)
    if not is_page and not response.headers.get(hdrs.CONTENT_TYPE, "").startswith("application/json"):
        return
    body = response.body
    if not isinstance(body, bytes) or len(body) <= _MIN_BYTES or hdrs.CONTENT_ENCODING in response.headers:
        return
    response.headers.add(hdrs.VARY, hdrs.ACCEPT_ENCODING)
    if not accepts_gzip(request):
        return

    def encode(body: bytes) -> bytes:
        if not is_page:
            return gzip.compress(body, compresslevel=_LEVEL, mtime=0)
        compressed = io.BytesIO()
        with gzip.GzipFile("x" * secrets.randbelow(_MAX_PADDING), "wb", _PAGE_LEVEL, compressed, mtime=0) as file:
            file.write(body)
        return compressed.getvalue()

    response.body = await asyncio.to_thread(encode, body) if len(body) > _MAX_BYTES_AT_ONCE else encode(body)
    response.headers[hdrs.CONTENT_ENCODING] = "gzip"
    if (etag := response.headers.get(hdrs.ETAG, "")).startswith('"') and not response.get(KEEPS_TAG, False):
        response.headers[hdrs.ETAG] = f"W/{etag}"


def accepts_gzip(request: web.Request) -> bool:
    """Return whether the caller accepts gzip, and does not prefer a response that is not compressed."""
    return _accepts_gzip(",".join(request.headers.getall(hdrs.ACCEPT_ENCODING, ())))


@lru_cache(64)  # callers send the same header every time
def _accepts_gzip(header: str) -> bool:
    weights: dict[str, float] = {}
    for entry in header.lower().split(","):
        coding, _, parameters = entry.partition(";")
        name, _, value = parameters.partition("=")
        weight = 1.0  # without `q=0.5`; 0 if that is malformed
        if name.strip() == "q":
            try:
                weight = float(value.strip())
            except ValueError:
                weight = 0.0
        weights[coding.strip()] = weight
    weight = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return weight > 0 and weight >= weights.get("identity", 0.0)


_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME


@lru_cache(8192)  # what was never changed has two equal times, and is read repeatedly; at most 2 MB
def format_datetime(value: datetime) -> str:
    """Return a stored time as it is sent: ISO 8601, UTC, with milliseconds and `Z`."""
    return value.isoformat(timespec="milliseconds") + "Z"


def _convert(value: Any) -> Any:
    if type(value) is ObjectId:  # most of what is converted
        return str(value)
    if type(value) is datetime:
        return format_datetime(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def to_json(value: Any) -> bytes:
    """Return `value` as JSON: ObjectIds as 24 hexadecimal characters, times as ISO 8601 UTC with milliseconds and `Z`.

    Raises TypeError for a type without a JSON form, and for a key that is not a string: orjson could convert some keys,
    but then takes twice as long for all.
    """
    return orjson.dumps(value, default=_convert, option=_OPTIONS)


# --- Content that is the same for every caller: compressed once, and sent only to callers who do not have it ----------


_TAGS = re.compile(r'(?:W/)?("[^"]*")')


def is_not_modified(request: web.Request, etag: str) -> bool:
    """Return whether `If-None-Match` is `*`, or names `etag` in its list, by weak comparison (RFC 9110, 13.1.2).

    `etag` is quoted.
    """
    sent = ",".join(request.headers.getall(hdrs.IF_NONE_MATCH, ()))
    return sent.strip() == "*" or etag.removeprefix("W/") in _TAGS.findall(sent)


# --- File downloads: streamed in bounded memory, completely or in part ------------------------------------------------


log = structlog.get_logger("coaching_service")
CHUNK_SECONDS = 60.0  # a receiver that accepts less in that time is disconnected
# A stored file must not run scripts under our origin.
_CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_NOT_MODIFIED_HEADERS = ("ETag", "Cache-Control", "Content-Security-Policy", "X-Content-Type-Options")


@dataclass(frozen=True)
class Download:
    """A response that is a file.

    `read(start, end)` yields the bytes from `start` up to, not including, `end`. `size`: bytes, or None when the size
    is unknown before the end, in which case ranges are not supported. `etag`: quoted. `inline`: a browser may show it.
    """

    content_type: str
    name: str
    read: Callable[[int, int], AsyncGenerator[bytes, None]]
    size: int | None = None
    etag: str | None = None
    inline: bool = False

    @property
    def is_export(self) -> bool:
        """Whether the file is made while it is sent, from many records."""
        return self.size is None and self.etag is None


def read_in_turns(
    download: Download,
    limiter: Callable[[], AbstractAsyncContextManager[None]],
    check: Callable[[], Awaitable[object]] | None,
) -> Download:
    """Return the download reading each chunk while it holds a `limiter`; an error that `check` raises ends it.

    Chunks are sent without holding it, so that slow receivers do not block other downloads. `check` is called before
    the first chunk, and before each later one, once a second at most; None: there is no check.
    """

    async def read(start: int, end: int) -> AsyncGenerator[bytes, None]:
        checked = -RECHECK_SECONDS
        async with aclosing(download.read(start, end)) as chunks:
            while True:
                async with limiter():
                    if check is not None and time.monotonic() - checked >= RECHECK_SECONDS:
                        await check()
                        checked = time.monotonic()
                    chunk = await anext(chunks, None)
                if chunk is None:
                    return
                yield chunk

    return replace(download, read=read)


async def send_download(request: web.Request, download: Download, headers: dict[str, str]) -> web.StreamResponse:
    """Send a download.

    Responds 206 with the part that `Range` requests, 416 when there is no such part, and 304 when `If-None-Match`
    names the current version.
    """
    ascii_name = re.sub(r"[^A-Za-z0-9._ -]", "_", download.name) or "file"
    names = f"filename=\"{ascii_name}\"; filename*=UTF-8''{quote(download.name, safe='')}"
    headers = headers | {
        "Content-Type": download.content_type,
        "Content-Disposition": f"{'inline' if download.inline else 'attachment'}; {names}",
        "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
        "X-Content-Type-Options": "nosniff",
        "Server": "coaching-service",
        "Cache-Control": "private, max-age=3600" if download.etag else "no-store",
    }
    if download.etag is not None:
        headers["ETag"] = download.etag
        if is_not_modified(request, download.etag):
            return web.Response(status=304, headers={name: headers[name] for name in _NOT_MODIFIED_HEADERS})
    start, end, status = 0, download.size or 0, 200
    if download.size is not None:
        headers["Accept-Ranges"] = "bytes"
        if (requested := _requested_range(request, download)) is not None:
            start, end, _ = requested.indices(download.size)
            status = 206
            if start >= end:
                return web.Response(status=416, headers={"Content-Range": f"bytes */{download.size}"})
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{download.size}"
        headers["Content-Length"] = str(end - start)
    response = web.StreamResponse(status=status, headers=headers)
    if request.method == hdrs.METH_HEAD:
        await response.prepare(request)
        return response
    async with aclosing(download.read(start, end)) as chunks:  # ends the queries of a download that is aborted
        try:
            first_chunk = await anext(chunks, None)  # before the status is sent, so that a failure is an error response
        except ConnectionResetError:  # the file has been removed
            raise NotFound("file") from None
        await response.prepare(request)
        chunk = first_chunk
        try:
            while chunk is not None:
                async with asyncio.timeout(CHUNK_SECONDS):
                    await response.write(chunk)
                chunk = await anext(chunks, None)
            if first_chunk is not None:
                await response.write_eof()
        except Exception as error:  # noqa: BLE001 - the status is sent, so any failure can only be shown by closing
            if request.transport is not None and not request.transport.is_closing():
                log.warning("download aborted", error=type(error).__name__)
                request.transport.abort()  # so that the caller notices that the file is incomplete
    return response


def _requested_range(request: web.Request, download: Download) -> slice | None:
    """Return the byte range to send, or None for the complete file: no, several or malformed ranges, or another
    version."""
    if request.method != hdrs.METH_GET or hdrs.RANGE not in request.headers:
        return None
    if request.headers.get(hdrs.IF_RANGE, download.etag) != download.etag:
        return None
    try:
        requested = request.http_range
    except ValueError:
        return None
    if requested == slice(0, None, 1) and "=-" in request.headers[hdrs.RANGE]:  # the last 0 bytes
        return slice(0, 0)
    return requested
