"""What tools that read return, as a JSON Schema: exactly the fields of a TypedDict, in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from coaching_service.core.fields import declarations_of
from coaching_service.core.ids import ObjectId

_TYPES = {str: "string", ObjectId: "string", datetime: "string", int: "integer", float: "number", bool: "boolean"}


def output_schema(model: Any, *, with_entries: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of results with the fields of a TypedDict; a field that may be null is then left out.

    Only the fields of the result itself are said to be required. Those that may be absent, and those of entries of
    lists, are named only `with_entries`: it saves tokens, and results name what they have.
    """
    required = [each.name for each in declarations_of(model).values() if each.is_required and not each.is_nullable]
    schema = _describe_object(model, with_entries=with_entries)
    if not with_entries and required:
        schema["properties"] = {name: schema["properties"][name] for name in required}
    return {**schema, **({"required": required} if required else {})}


def _describe_object(model: Any, *, with_entries: bool) -> dict[str, Any]:
    properties = {
        each.name: _describe(each.hint, with_entries=with_entries) for each in declarations_of(model).values()
    }
    return {"type": "object", "properties": properties}


def _describe(hint: Any, *, with_entries: bool) -> dict[str, Any]:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    [member] = [each for each in members if each is not type(None)]
    if is_typeddict(member):
        return _describe_object(member, with_entries=with_entries)
    if get_origin(member) is Literal:
        return {"type": "string"}
    if get_origin(member) in (list, Sequence):
        [entry] = get_args(member)
        is_named = is_typeddict(entry) and not with_entries
        items = {"type": "object"} if is_named else _describe(entry, with_entries=with_entries)
        return {"type": "array", "items": items}
    if get_origin(member) in (dict, Mapping):
        return {"type": "object"}
    return {"type": _TYPES[member]}
