"""Answers that are bytes: streamed in bounded memory, whole or in part."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from urllib.parse import quote

import structlog
from aiohttp import web

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII | re.IGNORECASE)
_TAG = re.compile(r'(?:W/)?("[^"]*")|\*')
log = structlog.get_logger("coaching_service")
# Nothing a stored file holds is run in our name.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@dataclass(frozen=True)
class Stream:
    """A download. `size` None: not known before it ends, and not to be had in parts.

    `read` gives the bytes from one position to another (not included). `inline`: a browser may show it.
    """

    content_type: str
    name: str
    read: Callable[[int, int], AsyncIterator[bytes]]
    size: int | None = None
    etag: str | None = None
    inline: bool = False


def in_turns(stream: Stream, line: AbstractAsyncContextManager[object]) -> Stream:
    """The same stream, each piece of which is read in a line and sent outside it: who reads slowly holds nobody up."""

    async def read(start: int, end: int) -> AsyncIterator[bytes]:
        pieces = stream.read(start, end)
        while True:
            async with line:
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece

    return replace(stream, read=read)


async def send(request: web.Request, stream: Stream, headers: dict[str, str]) -> web.StreamResponse:
    """Answer with a stream, or the part of it that `Range` asks for, or 304 when `If-None-Match` has it."""
    headers = headers | {
        "Content-Type": stream.content_type,
        "Content-Disposition": _disposition(stream),
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "Server": "coaching-service",
        "Cache-Control": "private, max-age=3600" if stream.etag else "no-store",
    }
    if stream.etag is not None:
        headers["ETag"] = stream.etag
        if _known(request, stream.etag):
            kept = ("ETag", "Cache-Control", "Content-Security-Policy", "X-Content-Type-Options")
            return web.Response(status=304, headers={name: headers[name] for name in kept})
    start, end, status = 0, stream.size or 0, 200
    if stream.size is not None:
        headers["Accept-Ranges"] = "bytes"
        if (asked := _asked(request, stream)) is not None:
            start, end, status = *_part(asked, stream.size), 206
            if start >= end:
                return web.Response(status=416, headers={"Content-Range": f"bytes */{stream.size}"})
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{stream.size}"
        headers["Content-Length"] = str(end - start)
    response = web.StreamResponse(status=status, headers=headers)
    await response.prepare(request)
    if request.method != "HEAD":
        await _write(request, response, stream.read(start, end))
    return response


async def _write(request: web.Request, response: web.StreamResponse, pieces: AsyncIterator[bytes]) -> None:
    """Send the bytes. When they end too early so does the connection: an answer that has begun can say nothing else."""
    try:
        async for piece in pieces:
            await response.write(piece)
        await response.write_eof()
    except Exception as error:  # noqa: BLE001 - whatever it was, the caller must not take half a file for a whole one
        if request.transport is not None and not request.transport.is_closing():
            log.warning("download broken off", error=type(error).__name__)
            request.transport.abort()


def _known(request: web.Request, etag: str) -> bool:
    """Whether the caller says that they have this version."""
    told = ",".join(request.headers.getall("If-None-Match", []))
    return any(tag.group(0) == "*" or tag.group(1) == etag for tag in _TAG.finditer(told))


def _asked(request: web.Request, stream: Stream) -> tuple[str, str] | None:
    """The one range asked for; None where it is several, of an older version, or nothing one can read."""
    if request.method != "GET" or request.headers.get("If-Range", stream.etag) != stream.etag:
        return None
    found = _RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    return (found[1], found[2]) if found and found.group(1, 2) != ("", "") else None


def _part(asked: tuple[str, str], size: int) -> tuple[int, int]:
    """From where to where (not included); nothing when it cannot be met."""
    first, last = asked
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(int(last) + 1, size) if last else size


def _disposition(stream: Stream) -> str:
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", stream.name) or "file"
    kind = "inline" if stream.inline else "attachment"
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(stream.name, safe='')}"
