"""JSON responses: documents are sent as they are stored, with identifiers and times converted to strings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson

from coaching_service.core.ids import ObjectId

_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME


@lru_cache(8192)  # what was never changed has two equal times, and is read repeatedly; at most 2 MB
def format_datetime(value: datetime) -> str:
    """Return a stored time as it is sent: ISO 8601, UTC, with milliseconds and `Z`."""
    return value.isoformat(timespec="milliseconds") + "Z"


_CONVERTERS: dict[type, Callable[[Any], Any]] = {
    datetime: format_datetime,
    set: sorted,
    frozenset: sorted,
}


def _convert(value: Any) -> Any:
    if type(value) is ObjectId:  # most of what is converted
        return str(value)
    if (converter := _CONVERTERS.get(type(value))) is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return converter(value)


def to_json(value: Any) -> bytes:
    """Return `value` as JSON: ObjectIds as 24 hexadecimal characters, times as ISO 8601 UTC with milliseconds and `Z`.

    Raises TypeError for a type without a JSON form, and for a key that is not a string: orjson could convert some keys,
    but then takes twice as long for all.
    """
    return orjson.dumps(value, default=_convert, option=_OPTIONS)
