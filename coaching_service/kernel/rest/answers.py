"""Writing an answer: documents go out as they are stored, with identifiers and times spelled for JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from coaching_service.kernel.storage.ids import ObjectId

_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS


def _spell(value: Any) -> Any:
    if isinstance(value, ObjectId):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def to_json(value: Any) -> bytes:
    """`value` as JSON: ObjectIds as 24 hexadecimal characters, times as ISO 8601 UTC with milliseconds and `Z`."""
    return orjson.dumps(value, default=_spell, option=_OPTIONS)
