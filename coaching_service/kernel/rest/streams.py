"""Answers that are bytes: streamed in bounded memory, whole or in part."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from urllib.parse import quote

from aiohttp import web

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
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


async def send(request: web.Request, stream: Stream, headers: dict[str, str]) -> web.StreamResponse:
    """Answer with a stream, or the part of it that `Range` asks for, or 304 when `If-None-Match` has it."""
    headers = headers | {
        "Content-Type": stream.content_type,
        "Content-Disposition": _disposition(stream),
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=3600" if stream.etag else "no-store",
    }
    if stream.etag is not None:
        headers["ETag"] = stream.etag
        if stream.etag in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers={"ETag": stream.etag})
    start, end, status = 0, stream.size or 0, 200
    if stream.size is not None:
        headers["Accept-Ranges"] = "bytes"
        part = _part(request, stream)
        if part is None:
            return web.Response(status=416, headers={"Content-Range": f"bytes */{stream.size}"})
        start, end = part
        if (start, end) != (0, stream.size):
            status = 206
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{stream.size}"
        headers["Content-Length"] = str(end - start)
    response = web.StreamResponse(status=status, headers=headers)
    await response.prepare(request)
    if request.method != "HEAD":
        async for piece in stream.read(start, end):
            await response.write(piece)
    await response.write_eof()
    return response


def _part(request: web.Request, stream: Stream) -> tuple[int, int] | None:
    """The part asked for, the whole where no part (or several, or an older file's) is; None when it cannot be met."""
    size = stream.size or 0
    asked = _RANGE.fullmatch(request.headers.get("Range", ""))
    stale = request.headers.get("If-Range", stream.etag) != stream.etag
    if asked is None or stale or asked.group(0) == "bytes=-":
        return 0, size
    first, last = asked.groups()
    if not first:
        wanted = min(int(last), size)
        return (size - wanted, size) if wanted else None
    start, end = int(first), min(int(last) + 1, size) if last else size
    return (start, end) if start < end else None


def _disposition(stream: Stream) -> str:
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", stream.name) or "file"
    kind = "inline" if stream.inline else "attachment"
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(stream.name, safe='')}"
