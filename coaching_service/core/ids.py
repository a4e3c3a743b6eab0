"""Object identifiers: native ObjectIds inside, 24 hexadecimal characters on the wire."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, TypeAlias

from bson import ObjectId

__all__ = ["IDENTIFIER_PATTERN", "NameOrId", "ObjectId", "parse_id", "stable_id"]

IDENTIFIER_PATTERN = "^[0-9a-fA-F]{24}$"
_HEX24 = re.compile(r"[0-9a-fA-F]{24}", re.ASCII)


# A stored text that is a name or an identifier: of a question of a form, among names of fields.
NameOrId: TypeAlias = Annotated[str, "identifier"]


def parse_id(text: object) -> ObjectId | None:
    """Return the identifier in `text`, or None when it is not 24 hexadecimal characters."""
    return ObjectId(text) if isinstance(text, str) and _HEX24.fullmatch(text) else None


def stable_id(*words: str) -> ObjectId:
    """Return an identifier derived from `words`: for documents that are built in or exist only once."""
    return ObjectId(hashlib.sha256("\0".join(words).encode()).digest()[:12])
