"""gzip for JSON responses, and for pages that are marked as COMPRESSIBLE.

The size of a compressed page can reveal a secret that it repeats, bit by bit, to someone who sees it and chooses a
part of the page (BREACH). A page is compressible if each response has other secrets (CSRF tokens, submission tokens); a
file name of random length in the header of gzip hides small differences.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import secrets
from functools import lru_cache, partial

from aiohttp import hdrs, web

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
    encode = _compress_page if is_page else partial(gzip.compress, compresslevel=_LEVEL, mtime=0)
    response.body = await asyncio.to_thread(encode, body) if len(body) > _MAX_BYTES_AT_ONCE else encode(body)
    response.headers[hdrs.CONTENT_ENCODING] = "gzip"
    if (etag := response.headers.get(hdrs.ETAG, "")).startswith('"') and not response.get(KEEPS_TAG, False):
        response.headers[hdrs.ETAG] = f"W/{etag}"


def _compress_page(body: bytes) -> bytes:
    compressed = io.BytesIO()
    padding = "x" * secrets.randbelow(_MAX_PADDING)
    with gzip.GzipFile(padding, "wb", _PAGE_LEVEL, compressed, mtime=0) as file:
        file.write(body)
    return compressed.getvalue()


def accepts_gzip(request: web.Request) -> bool:
    """Return whether the caller accepts gzip, and does not prefer a response that is not compressed."""
    return _accepts_gzip(",".join(request.headers.getall(hdrs.ACCEPT_ENCODING, ())))


@lru_cache(64)  # callers send the same header every time
def _accepts_gzip(header: str) -> bool:
    weights: dict[str, float] = {}
    for entry in header.lower().split(","):
        coding, _, parameters = entry.partition(";")
        weights[coding.strip()] = _weight(parameters)
    weight = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return weight > 0 and weight >= weights.get("identity", 0.0)


def _weight(parameters: str) -> float:
    """Return the number of `q=0.5`; 1 without it, 0 if it is malformed."""
    name, _, value = parameters.partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return float(value.strip())
    except ValueError:
        return 0.0
