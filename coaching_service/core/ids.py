"""Object identifiers: native ObjectIds inside, 24 hexadecimal characters on the wire."""

from __future__ import annotations

import hashlib
import re

from bson import ObjectId

__all__ = ["ObjectId", "parse_id", "stable_id"]

_HEX24 = re.compile(r"[0-9a-fA-F]{24}", re.ASCII)


def parse_id(text: object) -> ObjectId | None:
    """The identifier that `text` spells, or None when it is not 24 hexadecimal characters."""
    return ObjectId(text) if isinstance(text, str) and _HEX24.fullmatch(text) else None


def stable_id(*words: str) -> ObjectId:
    """The same identifier for the same words on every machine: of what is built in, and of what is there once."""
    return ObjectId(hashlib.sha256("\0".join(words).encode()).digest()[:12])
