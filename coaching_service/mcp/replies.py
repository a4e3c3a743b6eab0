"""Replies to JSON-RPC messages, without the SDK."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

# Error codes of JSON-RPC 2.0.
PARSE_ERROR, INVALID_REQUEST = -32_700, -32_600
SESSION_HEADER = "Mcp-Session-Id"


@dataclass(frozen=True)
class Reply:
    """A JSON value, or None for messages without a response, and the HTTP status. `session`: the one that begins."""

    body: Any
    status: int
    session: str | None = None


def failure(code: int, message: str, status: int, identifier: Any = None, data: Any = None) -> Reply:
    """Return a JSON-RPC error response."""
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return Reply({"jsonrpc": "2.0", "id": identifier, "error": error}, status)


def invalid_request(message: str, identifier: Any = None) -> Reply:
    """Return the error response to a message that is not a valid request."""
    return failure(INVALID_REQUEST, f"Invalid request: {message}", 400, identifier)


def malformed_body(body: bytes) -> Reply:
    """Return the response to a body that cannot be decoded: malformed JSON, or JSON with an unsupported value."""
    try:
        json.loads(body.decode(), parse_int=str, parse_float=str, parse_constant=int)  # int("NaN") raises ValueError
    except (ValueError, RecursionError):
        return failure(PARSE_ERROR, "Parse error: the body is not valid JSON", 400)
    return invalid_request(
        "the body holds a value that is not supported: a number too large, or half of a surrogate pair"
    )
