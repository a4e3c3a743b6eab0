"""Where codes may be sent: which addresses may be registered, and which match at the door."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlencode, urlsplit

MAX_LENGTH = 2_000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.ASCII)
_PLAIN = re.compile(r"[\x21-\x7e]+", re.ASCII)
_ON_THIS_MACHINE = re.compile(
    r"(http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::\d+)?([/?].*)?", re.ASCII | re.IGNORECASE
)
# A browser acts on these itself instead of handing the code to a program of the user's.
_NOT_A_PROGRAM = re.compile(
    "about|blob|chrome|data|feed|file|filesystem|ftp|intent|jar|javascript|mailto|ms-.*|res|search|search-ms|sms|tel"
    "|vbscript|view-source|wss?"
)


def objection(uri: str) -> str | None:
    """Why an address may not be registered, or None: https, http on this machine, or a program's own scheme."""
    if len(uri) > MAX_LENGTH or not _PLAIN.fullmatch(uri) or "\\" in uri:
        return f"must be at most {MAX_LENGTH} printable ASCII characters"
    if "#" in uri:
        return "must have no fragment"
    if (parts := _split(uri)) is None or not _SCHEME.fullmatch(parts.scheme):
        return "must be an absolute address"
    if "@" in parts.netloc:
        return "must have no user name"
    if parts.scheme == "https":
        return None if parts.hostname else "must have a host"
    if parts.scheme == "http":
        return None if parts.hostname in _LOOPBACK else "must be https, unless it is on this machine"
    if _NOT_A_PROGRAM.fullmatch(parts.scheme) or not (parts.netloc or parts.path.strip("/")):
        return "must be https, http on this machine, or a program's own scheme"
    return None


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises where it is no port
    except ValueError:
        return None
    return parts


def matches(registered: str, uri: str) -> bool:
    """Whether `uri` is the registered one: character by character, but for the port on this machine (RFC 8252)."""
    if registered == uri:
        return True
    ours, theirs = _ON_THIS_MACHINE.fullmatch(registered), _ON_THIS_MACHINE.fullmatch(uri)
    if ours is None or theirs is None or objection(uri) is not None:
        return False
    return ours.groups() == theirs.groups()


def host_of(uri: str) -> str:
    """What a person is shown of where a code goes: the host, or the scheme of a program."""
    parts = urlsplit(uri)
    return parts.hostname or f"{parts.scheme}:" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def with_query(uri: str, values: dict[str, str | None]) -> str:
    """`uri` with more in its query, what is there already left byte for byte."""
    query = urlencode({name: value for name, value in values.items() if value is not None})
    return f"{uri}{'&' if '?' in uri else '?'}{query}"
