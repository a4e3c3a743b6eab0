"""Reading JSON into the type of a stored document: identifiers, times, and no fields that the type does not have.

The TypedDict of a stored document is the only description that an import needs of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from coaching_service.core.dates import YEARS
from coaching_service.core.errors import InvalidFields, invalid_field
from coaching_service.core.fields import declarations_of, plain_type
from coaching_service.core.ids import NameOrId, ObjectId, parse_id

MAX_TEXT = 50_000
MAX_ENTRIES = 1_000
MAX_NUMBER = 1e12
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}", re.ASCII)

# Returns the identifier to store in place of one that was read at a path.
MapId = Callable[[ObjectId, str], ObjectId]
# Converts a JSON value; raises InvalidFields, with the path of the value, if it does not have the type.
Converter = Callable[[Any, str, MapId], Any]


@cache
def converter_of(hint: Any) -> Converter:
    """Return the function that converts JSON to `hint`: a TypedDict, a type of JSON, ObjectId, datetime, or made of
    these.

    A field of a TypedDict that may be None and is absent becomes None; fields that it does not have are left out.
    Raises TypeError for other types.
    """
    hint = plain_type(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if is_typeddict(hint):
        return _typed_dict(hint)
    if (convert := _GENERIC.get(get_origin(hint))) is None:
        raise TypeError(f"{hint} cannot be read from JSON")
    return convert(get_args(hint))


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


def _accepting(accepts: Callable[[Any], bool], message: str, code: str) -> Converter:
    """Return the converter of values that stay as they are."""

    def convert(value: Any, path: str, _: MapId) -> Any:
        if not accepts(value):
            raise _error(path, message, code)
        return value

    return convert


def _is_number(value: Any) -> bool:
    # A comparison with NaN is false.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53


_convert_number = _accepting(_is_number, "must be a number", "NOT_A_NUMBER")
_convert_none = _accepting(lambda value: value is None, "must be null", "NOT_NULL")


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
    if isinstance(value, int | float):
        return _convert_number(value, path, map_id)
    if isinstance(value, list):
        return _list(_convert_text)(value, path, map_id)
    return _convert_text(value, path, map_id)


_SCALARS: dict[Any, Converter] = {
    str: _convert_text,
    float: _convert_number,
    int: _accepting(_is_integer, "must be an integer", "NOT_AN_INTEGER"),
    NameOrId: _convert_name_or_identifier,
    bool: _accepting(lambda value: isinstance(value, bool), "must be a boolean", "NOT_A_BOOLEAN"),
    ObjectId: _convert_identifier,
    datetime: _convert_time,
    type(None): _convert_none,
    None: _convert_none,
    Any: _convert_any,
}


# --- Nested values ---------------------------------------------------------------------------------------------------


def _list(convert_entry: Converter) -> Converter:
    def convert(value: Any, path: str, map_id: MapId) -> list[Any]:
        if not isinstance(value, list):
            raise _error(path, "must be an array", "NOT_AN_ARRAY")
        if len(value) > MAX_ENTRIES:
            raise _error(path, f"must not hold more than {MAX_ENTRIES} entries", "TOO_MANY")
        return [convert_entry(entry, f"{path}.{number}", map_id) for number, entry in enumerate(value)]

    return convert


def _mapping(key_hint: Any, convert_value: Converter) -> Converter:
    choices = get_args(key_hint) if get_origin(key_hint) is Literal else None

    def convert(value: Any, path: str, map_id: MapId) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _error(path, "must be an object", "NOT_AN_OBJECT")
        for key in value:
            if not _NAME.fullmatch(key) or (choices is not None and key not in choices):
                raise _error(path, "has a field that is not known", "UNKNOWN_FIELD")
        return {key: convert_value(entry, f"{path}.{key}", map_id) for key, entry in value.items()}

    return convert


def _typed_dict(model: Any) -> Converter:
    fields = [
        (each.name, converter_of(each.hint), each.is_required, each.is_nullable)
        for each in declarations_of(model).values()
    ]

    def convert(value: Any, path: str, map_id: MapId) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _error(path, "must be an object", "NOT_AN_OBJECT")
        converted: dict[str, Any] = {}
        for name, convert_field, required, optional in fields:
            field_path = f"{path}.{name}" if path else name
            if name in value:
                converted[name] = convert_field(value[name], field_path, map_id)
            elif required and optional:
                converted[name] = None
            elif required:
                raise _error(field_path, "is required", "REQUIRED")
        return converted

    return convert


def _union(members: tuple[Any, ...]) -> Converter:
    """Return a value of the first member that fits; of several TypedDicts by the `type` of the value."""
    tagged = [member for member in members if is_typeddict(member)]
    if len(tagged) > 1:
        return _tagged_union(tagged)
    converters = [converter_of(member) for member in members]
    nullable = type(None) in members

    def convert(value: Any, path: str, map_id: MapId) -> Any:
        if value is None and nullable:
            return None
        error: InvalidFields | None = None
        for convert_member in converters:
            if convert_member is _convert_none:
                continue
            try:
                return convert_member(value, path, map_id)
            except InvalidFields as failure:
                error = error or failure
        raise error or _error(path, "must be null", "NOT_NULL")

    return convert


def _tagged_union(members: Sequence[Any]) -> Converter:
    by_type = {get_args(declarations_of(member)["type"].hint)[0]: converter_of(member) for member in members}

    def convert(value: Any, path: str, map_id: MapId) -> Any:
        tag = value.get("type") if isinstance(value, dict) else None
        if not isinstance(tag, str) or tag not in by_type:
            raise _error(f"{path}.type", f"must be one of: {', '.join(by_type)}", "INVALID_CHOICE")
        return by_type[tag](value, path, map_id)

    return convert


_GENERIC: dict[Any, Callable[[tuple[Any, ...]], Converter]] = {
    Literal: lambda choices: _accepting(
        lambda value: isinstance(value, str | int) and value in choices,
        f"must be one of: {', '.join(map(str, choices))}",
        "INVALID_CHOICE",
    ),
    Union: _union,
    UnionType: _union,
    **dict.fromkeys((list, Sequence, tuple), lambda arguments: _list(converter_of(arguments[0]))),
    **dict.fromkeys((dict, Mapping), lambda arguments: _mapping(arguments[0], converter_of(arguments[1]))),
}
