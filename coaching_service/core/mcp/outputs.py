"""What tools that read return, as a JSON Schema: exactly the fields of a TypedDict, in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from coaching_service.core.fields import Declaration, declarations_of
from coaching_service.core.ids import ObjectId

_TYPES = {str: "string", ObjectId: "string", datetime: "string", int: "integer", float: "number", bool: "boolean"}


def output_schema(model: Any) -> dict[str, Any]:
    """Return the JSON Schema of results with the fields of a TypedDict; a field that may be null is then left out.

    Only the fields of the result itself are said to be required: it saves tokens.
    """
    required = [each.name for each in declarations_of(model).values() if _is_required(each)]
    return {**_describe_object(model), **({"required": required} if required else {})}


def _describe_object(model: Any) -> dict[str, Any]:
    properties = {each.name: _describe(each.hint) for each in declarations_of(model).values()}
    return {"type": "object", "properties": properties}


def _is_required(field: Declaration) -> bool:
    return field.is_required and not field.is_nullable


def _describe(hint: Any) -> dict[str, Any]:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    [member] = [each for each in members if each is not type(None)]
    if is_typeddict(member):
        return _describe_object(member)
    if get_origin(member) is Literal:
        return {"type": "string"}
    if get_origin(member) in (list, Sequence):
        return {"type": "array", "items": _describe(get_args(member)[0])}
    if get_origin(member) in (dict, Mapping):
        return {"type": "object"}
    return {"type": _TYPES[member]}
