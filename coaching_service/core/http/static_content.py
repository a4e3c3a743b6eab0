"""Content that is the same for every caller: compressed once, and sent only to callers who do not have it."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import cached_property

from aiohttp import hdrs, web

from coaching_service.core.http.compression import accepts_gzip

_TAGS = re.compile(r'(?:W/)?("[^"]*")')


def is_not_modified(request: web.Request, etag: str) -> bool:
    """Return whether `If-None-Match` is `*`, or names `etag` in its list, by weak comparison (RFC 9110, 13.1.2).

    `etag` is quoted.
    """
    sent = ",".join(request.headers.getall(hdrs.IF_NONE_MATCH, ()))
    return sent.strip() == "*" or etag.removeprefix("W/") in _TAGS.findall(sent)


class StaticContent:
    """The bytes of a page or document, with their type."""

    def __init__(self, body: str | bytes, content_type: str) -> None:
        self._body = body.encode() if isinstance(body, str) else body
        self._content_type = content_type

    @cached_property
    def _compressed(self) -> bytes:
        return gzip.compress(self._body, mtime=0)

    @cached_property
    def _etag(self) -> str:
        return f'"{hashlib.sha256(self._body).hexdigest()}"'

    def respond(self, request: web.Request, headers: Mapping[str, str] | None = None) -> web.Response:
        """Return the response with the content, 304 if the caller has it."""
        is_compressed = accepts_gzip(request)
        etag = f"W/{self._etag}" if is_compressed else self._etag  # the compressed bytes differ
        sent = {hdrs.ETAG: etag, hdrs.CACHE_CONTROL: "no-cache", hdrs.VARY: hdrs.ACCEPT_ENCODING, **(headers or {})}
        if is_not_modified(request, etag):
            return web.Response(status=304, headers=sent)
        if is_compressed:
            sent[hdrs.CONTENT_ENCODING] = "gzip"
        sent[hdrs.CONTENT_TYPE] = self._content_type
        return web.Response(body=self._compressed if is_compressed else self._body, headers=sent)
