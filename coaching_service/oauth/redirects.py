"""Redirect URIs: which may be registered, and which match a registered one."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlencode, urlsplit

MAX_LENGTH = 2_000
_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.ASCII)
_PRINTABLE = re.compile(r"[\x21-\x7e]+", re.ASCII)
_LOOPBACK_URI = re.compile(r"(http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::\d+)?([/?].*)?", re.ASCII | re.IGNORECASE)
# Browsers handle these schemes themselves instead of passing the code to an application.
_BROWSER_SCHEMES = re.compile(
    "about|blob|chrome|data|feed|file|filesystem|ftp|intent|jar|javascript|mailto|ms-.*|res|search|search-ms|sms|tel"
    "|vbscript|view-source|wss?"
)


def rejection_reason(uri: str) -> str | None:
    """Return why a URI may not be registered, or None for https, loopback http, or an application's own scheme."""
    if len(uri) > MAX_LENGTH or not _PRINTABLE.fullmatch(uri) or "\\" in uri:
        return f"must be at most {MAX_LENGTH} printable ASCII characters"
    if "#" in uri:
        return "must have no fragment"
    if (parts := _split(uri)) is None or not _SCHEME.fullmatch(parts.scheme):
        return "must be an absolute URI"
    if "@" in parts.netloc:
        return "must have no user name"
    if parts.scheme == "https":
        return None if parts.hostname else "must have a host"
    if parts.scheme == "http":
        return None if parts.hostname in _LOOPBACK_HOSTS else "must be https, except on loopback"
    if _BROWSER_SCHEMES.fullmatch(parts.scheme) or not (parts.netloc or parts.path.strip("/")):
        return "must be https, http on loopback, or an application's own scheme"
    return None


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError:
        return None
    return parts


def matches(registered: str, uri: str) -> bool:
    """Return whether `uri` equals the registered one, apart from the port of a loopback address (RFC 8252, 7.3)."""
    if registered == uri:
        return True
    registered_parts, parts = _LOOPBACK_URI.fullmatch(registered), _LOOPBACK_URI.fullmatch(uri)
    if registered_parts is None or parts is None or rejection_reason(uri) is not None:
        return False
    return registered_parts.groups() == parts.groups()


def display_host(uri: str) -> str:
    """Return what the consent page shows of a URI: its host, or the scheme of an application."""
    parts = urlsplit(uri)
    return parts.hostname or f"{parts.scheme}:" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def with_query(uri: str, values: dict[str, str | None]) -> str:
    """Return `uri` with `values` added to its query, which otherwise stays unchanged."""
    query = urlencode({name: value for name, value in values.items() if value is not None})
    return f"{uri}{'&' if '?' in uri else '?'}{query}"
