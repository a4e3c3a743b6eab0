"""Comparing stored documents with the TypedDict that describes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from coaching_service.core.fields import declarations_of, plain_type
from coaching_service.core.ids import NameOrId, ObjectId

# Yields what is wrong with a stored value, and its path: `items.text is missing`. Entries of a list have the same path.
Comparison = Callable[[Any, str], Iterator[str]]


@cache
def comparison_with(hint: Any) -> Comparison:
    """Return the function that compares stored values with `hint`: a TypedDict, a type of BSON, or made of these.

    Fields that a TypedDict does not have are ignored, like types that cannot be compared, such as Any.
    """
    hint = plain_type(hint)
    if is_typeddict(hint):
        return _typed_dict(hint)
    if get_origin(hint) in _GENERIC:
        return _GENERIC[get_origin(hint)](get_args(hint))
    if hint in _TYPES:
        accepted, name = _TYPES[hint]
        return _plain(accepted, name)
    return lambda _, __: iter(())


def _plain(accepted: tuple[type, ...], name: str) -> Comparison:
    def compare(value: Any, path: str) -> Iterator[str]:
        # A boolean is an integer in Python.
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            yield f"{path} is not {name}"

    return compare


_TYPES: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    NameOrId: ((str,), "a text"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
    bytes: ((bytes,), "binary data"),
    ObjectId: ((ObjectId,), "an identifier"),
    datetime: ((datetime,), "a time"),
    type(None): ((type(None),), "null"),
}


def _typed_dict(model: Any) -> Comparison:
    fields = {each.name: (comparison_with(each.hint), each.is_required) for each in declarations_of(model).values()}

    def compare(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{path or 'the document'} is not an object"
            return
        for name, (compare_field, is_required) in fields.items():
            field_path = f"{path}.{name}" if path else name
            if name in value:
                yield from compare_field(value[name], field_path)
            elif is_required:
                yield f"{field_path} is missing"

    return compare


def _list(arguments: tuple[Any, ...]) -> Comparison:
    compare_entry = comparison_with(arguments[0])

    def compare(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{path} is not a list"
            return
        for entry in value:
            yield from compare_entry(entry, path)

    return compare


def _mapping(arguments: tuple[Any, ...]) -> Comparison:
    compare_key, compare_entry = map(comparison_with, arguments)

    def compare(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{path} is not an object"
            return
        for key, entry in value.items():
            yield from compare_key(key, f"{path} (a name in it)")
            yield from compare_entry(entry, f"{path}.*")

    return compare


def _literal(choices: tuple[Any, ...]) -> Comparison:
    def compare(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, str | int) or value not in choices:
            yield f"{path} is not one of: {', '.join(map(str, choices))}"

    return compare


def _union(members: tuple[Any, ...]) -> Comparison:
    """Yield a value of any member; of several TypedDicts by the `type` of the value."""
    tagged = [member for member in members if is_typeddict(member) and "type" in declarations_of(member)]
    if len(tagged) > 1:
        return _tagged_union(tagged, is_nullable=type(None) in members)
    comparisons = [comparison_with(member) for member in members if member is not type(None)]

    def compare(value: Any, path: str) -> Iterator[str]:
        if value is None and type(None) in members:
            return
        mismatches = [list(compare_member(value, path)) for compare_member in comparisons]
        if all(mismatches):
            yield from min(mismatches, key=len)

    return compare


def _tagged_union(members: Sequence[Any], *, is_nullable: bool) -> Comparison:
    by_type = {get_args(declarations_of(member)["type"].hint)[0]: comparison_with(member) for member in members}

    def compare(value: Any, path: str) -> Iterator[str]:
        if value is None and is_nullable:
            return
        if not isinstance(value, Mapping):
            yield f"{path} is not an object"
            return
        tag = value.get("type")
        if isinstance(tag, str) and tag in by_type:
            yield from by_type[tag](value, path)
        else:
            yield f"{path}.type is not one of: {', '.join(by_type)}"

    return compare


_GENERIC: dict[Any, Callable[[tuple[Any, ...]], Comparison]] = {
    Literal: _literal,
    Union: _union,
    UnionType: _union,
    list: _list,
    Sequence: _list,
    tuple: _list,
    dict: _mapping,
    Mapping: _mapping,
}
