"""Reading JSON into the type of a stored document: identifiers, times, and no fields that the type does not have.

The TypedDict of a stored document is the only description that an import needs of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from coaching_service.core.dates import YEARS
from coaching_service.core.errors import InvalidFields, invalid_field
from coaching_service.core.fields import Declaration, declarations_of, plain_type
from coaching_service.core.ids import NameOrId, ObjectId, parse_id

MAX_TEXT = 50_000
MAX_ENTRIES = 1_000
_MAX_NUMBER = 1e12
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}", re.ASCII)

# Returns the identifier to store in place of one that was read at a path.
MapId = Callable[[ObjectId, str], ObjectId]


def convert(hint: Any, value: Any, path: str, map_id: MapId) -> Any:
    """Convert a JSON value to `hint`: a TypedDict, a type of JSON, ObjectId, datetime, or made of these.

    Raises InvalidFields, with the path of the value, if it does not have the type; TypeError for other types.
    """
    hint = plain_type(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint](value, path, map_id)
    if is_typeddict(hint):
        return convert_fields(declarations_of(hint).values(), value, path, map_id)
    if origin in (Union, UnionType):
        return _convert_union(arguments, value, path, map_id)
    if origin is Literal:
        if not isinstance(value, str | int) or value not in arguments:
            raise _error(path, f"must be one of: {', '.join(map(str, arguments))}", "INVALID_CHOICE")
        return value
    if origin in (list, Sequence, tuple):
        return _convert_list(arguments[0], value, path, map_id)
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            raise _error(path, "must be an object", "NOT_AN_OBJECT")
        choices = get_args(arguments[0]) if get_origin(arguments[0]) is Literal else value
        if not all(_NAME.fullmatch(key) and key in choices for key in value):
            raise _error(path, "has a field that is not known", "UNKNOWN_FIELD")
        return {key: convert(arguments[1], entry, f"{path}.{key}", map_id) for key, entry in value.items()}
    raise TypeError(f"{hint} cannot be read from JSON")


def convert_fields(fields: Iterable[Declaration], value: Any, path: str, map_id: MapId) -> dict[str, Any]:
    """Convert an object to a document with these fields, as `convert` does.

    A field that may be None and is absent becomes None; those that are not in `fields` are left out.
    """
    if not isinstance(value, dict):
        raise _error(path, "must be an object", "NOT_AN_OBJECT")
    converted: dict[str, Any] = {}
    for each in fields:
        field_path = f"{path}.{each.name}" if path else each.name
        if each.name in value:
            converted[each.name] = convert(each.hint, value[each.name], field_path, map_id)
        elif each.is_required and not each.is_nullable:
            raise _error(field_path, "is required", "REQUIRED")
        elif each.is_required:
            converted[each.name] = None
    return converted


def _convert_union(members: Sequence[Any], value: Any, path: str, map_id: MapId) -> Any:
    """Return a value of the first member that fits; of several TypedDicts by the `type` of the value."""
    if len(tagged := [member for member in members if is_typeddict(member)]) > 1:
        by_type = {get_args(declarations_of(member)["type"].hint)[0]: member for member in tagged}
        tag = value.get("type") if isinstance(value, dict) else None
        if not isinstance(tag, str) or tag not in by_type:
            raise _error(f"{path}.type", f"must be one of: {', '.join(by_type)}", "INVALID_CHOICE")
        return convert(by_type[tag], value, path, map_id)
    if value is None and type(None) in members:
        return None
    failures = []
    for member in members:
        if member is not type(None):
            try:
                return convert(member, value, path, map_id)
            except InvalidFields as failure:
                failures.append(failure)
    raise failures[0]


def _convert_list(hint: Any, value: Any, path: str, map_id: MapId) -> list[Any]:
    if not isinstance(value, list):
        raise _error(path, "must be an array", "NOT_AN_ARRAY")
    if len(value) > MAX_ENTRIES:
        raise _error(path, f"must not hold more than {MAX_ENTRIES} entries", "TOO_MANY")
    return [convert(hint, entry, f"{path}.{number}", map_id) for number, entry in enumerate(value)]


def _error(path: str, message: str, code: str) -> InvalidFields:
    return invalid_field(path or "record", message, code=code)


# --- Single values ---------------------------------------------------------------------------------------------------


def _convert_text(value: Any, path: str, _: MapId) -> str:
    if not isinstance(value, str):
        raise _error(path, "must be a string", "NOT_A_STRING")
    if len(value) > MAX_TEXT:
        raise _error(path, f"must not be longer than {MAX_TEXT} characters", "TOO_LONG")
    if _CONTROL.search(value):
        raise _error(path, "must not contain control characters", "CONTROL_CHARACTERS")
    return value


def _accepting(accepts: Callable[[Any], bool], message: str, code: str) -> Callable[[Any, str, MapId], Any]:
    """Return the converter of values that stay as they are."""

    def convert_value(value: Any, path: str, _: MapId) -> Any:
        if not accepts(value):
            raise _error(path, message, code)
        return value

    return convert_value


def _is_number(value: Any, types: type | UnionType, most: float) -> bool:
    # A comparison with NaN is false.
    return isinstance(value, types) and not isinstance(value, bool) and abs(value) <= most  # type: ignore[arg-type]  # a number


def _convert_identifier(value: Any, path: str, map_id: MapId) -> ObjectId:
    if (identifier := parse_id(value)) is None:
        raise _error(path, "must be an identifier of 24 hexadecimal characters", "INVALID_ID")
    return map_id(identifier, path)


def _convert_name_or_identifier(value: Any, path: str, map_id: MapId) -> str:
    identifier = parse_id(value)
    return _convert_text(value, path, map_id) if identifier is None else str(map_id(identifier, path))


def _convert_time(value: Any, path: str, _: MapId) -> datetime:
    try:
        time = datetime.fromisoformat(value)
        utc = time.astimezone(UTC) if time.tzinfo else time
    except (TypeError, ValueError, OverflowError):
        raise _error(path, "must be a time such as 2026-03-02T08:30:00Z", "INVALID_TIME") from None
    if utc.year not in YEARS:
        raise _error(path, f"must be in the years {YEARS[0]} to {YEARS[-1]}", "INVALID_TIME")
    return utc.replace(tzinfo=None, microsecond=utc.microsecond // 1000 * 1000)


def _convert_any(value: Any, path: str, map_id: MapId) -> Any:
    """Return a value that may be anything simple: the answer to a question."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list):
        return _convert_list(str, value, path, map_id)
    return convert(float if isinstance(value, int | float) else str, value, path, map_id)


_convert_none = _accepting(lambda value: value is None, "must be null", "NOT_NULL")
_SCALARS: dict[Any, Callable[[Any, str, MapId], Any]] = {
    str: _convert_text,
    float: _accepting(lambda value: _is_number(value, int | float, _MAX_NUMBER), "must be a number", "NOT_A_NUMBER"),
    int: _accepting(lambda value: _is_number(value, int, 2**53), "must be an integer", "NOT_AN_INTEGER"),
    NameOrId: _convert_name_or_identifier,
    bool: _accepting(lambda value: isinstance(value, bool), "must be a boolean", "NOT_A_BOOLEAN"),
    ObjectId: _convert_identifier,
    datetime: _convert_time,
    type(None): _convert_none,
    None: _convert_none,
    Any: _convert_any,
}
