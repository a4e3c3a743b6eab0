"""Conditional requests: `If-None-Match` (RFC 9110, section 13.1.2)."""

from __future__ import annotations

import re

from aiohttp import hdrs, web

_TAGS = re.compile(r'(?:W/)?("[^"]*")')


def is_not_modified(request: web.Request, etag: str) -> bool:
    """Return whether `If-None-Match` is `*`, or names `etag` in its list, by weak comparison. `etag` is quoted."""
    sent = ",".join(request.headers.getall(hdrs.IF_NONE_MATCH, ()))
    return sent.strip() == "*" or etag.removeprefix("W/") in _TAGS.findall(sent)
