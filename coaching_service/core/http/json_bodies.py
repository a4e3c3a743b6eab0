"""Decoding of JSON bodies. Bodies that programs read in different ways are rejected."""

from __future__ import annotations

import asyncio
import codecs
import json
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson

from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest

MAX_DEPTH = 64
MAX_VALUES = 50_000
_MAX_BYTES_AT_ONCE = 65_536  # takes a few milliseconds; larger bodies are decoded on a thread
_REST_SECONDS = 0.02


def large_body(ctx: Context) -> AbstractAsyncContextManager[None]:
    """Return the context to work on a large body in, or on a part of one, or to reject it: companies take turns.

    Receiving a body that is rejected takes longer than rejecting it, so the rest does not depend on that alone.
    """
    return ctx.services.work_slots.pieces.paced(ctx.slot_holder, _REST_SECONDS)


class ValueCounter:
    """Counts the values of a JSON body while it arrives, by commas and opening brackets, in texts too."""

    def __init__(self, ctx: Context) -> None:
        self._ctx, self._count = ctx, 0

    async def add(self, piece: bytes) -> None:
        """Count the values of the next piece; companies take turns. Raises BadRequest for more than 50,000 in total."""
        if len(piece) <= _MAX_BYTES_AT_ONCE:
            self._add(piece)
            return
        async with large_body(self._ctx):
            self._add(piece)

    def _add(self, piece: bytes) -> None:
        self._count += len(piece) - len(piece.translate(None, b",[{"))  # in the same time whatever the piece contains
        if self._count > MAX_VALUES:
            raise BadRequest(f"The body must not have more than {MAX_VALUES} values", code="TOO_MANY_JSON_VALUES")


async def decode_body(ctx: Context, raw: bytes) -> Any:
    """Return what `decode_json` does. Large bodies are decoded on a thread, and companies take turns."""
    if len(raw) <= _MAX_BYTES_AT_ONCE:
        return decode_json(raw)
    async with large_body(ctx):
        return await asyncio.to_thread(decode_json, raw)


def decode_json(raw: bytes) -> Any:
    """Return the value of a body.

    Raises orjson.JSONDecodeError if it is not JSON, BadRequest if it is nested more than 64 levels deep, or if an
    object has a name twice: RFC 8259 leaves open which of the values counts. A byte order mark before it is skipped.
    """
    raw = raw.removeprefix(codecs.BOM_UTF8)
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
