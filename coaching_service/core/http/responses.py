"""Writing an answer: documents go out as they are stored, with identifiers and times spelled for JSON."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson

from coaching_service.core.ids import ObjectId

_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS


@lru_cache(1024)  # what was never changed has two equal times
def _moment(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds") + "Z"


_SPELLINGS: dict[type, Callable[[Any], Any]] = {ObjectId: str, datetime: _moment, set: sorted, frozenset: sorted}


def _spell(value: Any) -> Any:
    if (spelling := _SPELLINGS.get(type(value))) is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return spelling(value)


def to_json(value: Any) -> bytes:
    """`value` as JSON: ObjectIds as 24 hexadecimal characters, times as ISO 8601 UTC with milliseconds and `Z`."""
    return orjson.dumps(value, default=_spell, option=_OPTIONS)
