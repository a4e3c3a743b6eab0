"""Decoding of JSON bodies. Bodies that programs read in different ways are rejected."""

from __future__ import annotations

import json
from typing import Any

import orjson

from coaching_service.core.errors import BadRequest

MAX_DEPTH = 64


def decode_json(raw: bytes) -> Any:
    """Return the value of a body.

    Raises orjson.JSONDecodeError if it is not JSON, BadRequest if it is nested more than 64 levels deep or if an
    object has a name twice: RFC 8259 leaves open which of the values counts.
    """
    value = orjson.loads(raw)
    # Only as many levels as opening brackets are possible.
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _is_deeper_than(value, MAX_DEPTH):
        raise BadRequest(f"The body must not be nested more than {MAX_DEPTH} levels deep", code="JSON_TOO_DEEP")
    if b"{" in raw:
        json.loads(raw, object_pairs_hook=_require_unique_names, parse_int=str, parse_float=str)
    return value


def _is_deeper_than(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _require_unique_names(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len({name for name, _ in pairs}) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for position, name in enumerate(names) if name in names[:position])
        raise BadRequest(f"The body has the name {repeated[:100]!r} twice in one object", code="REPEATED_JSON_NAME")
