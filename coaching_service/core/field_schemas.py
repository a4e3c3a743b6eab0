"""The schemas of requests and responses that follow from the declaration of fields in a TypedDict."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints, is_typeddict

from marshmallow import Schema, ValidationError, fields, missing

from coaching_service.core import fields as core_fields
from coaching_service.core import validation
from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.ids import NameOrId, ObjectId
from coaching_service.core.query import QueryBoolean, QueryInteger, QueryTime

# --- Objects whose `type` determines their schema: workout items and their sets ---------------------------------------


class DeferredChange:
    """A change that is validated once the type of the stored object is known.

    `is_strict`: fields that the type does not have are errors.
    """

    def __init__(self, by_type: Mapping[str, Schema], data: Any) -> None:
        self._by_type, self._data = by_type, data  # as decoded from a request, of any shape until a schema loads it
        self.is_strict = False

    def sent(self, name: str) -> object:
        """Return the value of a field as it was sent, not validated; None if it was not sent."""
        return self._data.get(name) if isinstance(self._data, Mapping) else None

    def validate_as(self, stored_type: str) -> dict[str, Any]:  # a TypedDict of that type, which the caller knows
        """Return the change as the schema of `stored_type` loads it. Raises InvalidFields."""
        try:
            change: dict[str, Any] = self._by_type[stored_type].load(self._data)
        except ValidationError as error:
            raise InvalidFields(validation.field_errors(error)) from None
        if self.is_strict and (unknown := list(find_unknown_fields(self._by_type[stored_type], self._data))):
            raise InvalidFields(unknown)
        return change


class ChangeByStoredType:
    """The body of a PATCH of an object whose type is stored, not sent; it is validated when that type is known."""

    def __init__(self, by_type: Mapping[str, Schema]) -> None:
        self.by_type = by_type

    def load(self, data: Any) -> DeferredChange:
        """Return the change, not validated yet."""
        return DeferredChange(self.by_type, data)


class Variant(fields.Field[dict[str, Any]]):
    """An object loaded by the schema that its `type` names; a `oneOf` with a discriminator in the OpenAPI document."""

    def __init__(self, by_type: Mapping[str, type[Schema]], **options: Any) -> None:
        self.by_type = {name: schema() for name, schema in by_type.items()}
        super().__init__(**options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError(validation.NOT_AN_OBJECT)
        if (schema := self.schema_of(value)) is None:
            message = validation.Message(f"must be one of: {', '.join(self.by_type)}", "INVALID_CHOICE")
            raise ValidationError({"type": [message]})
        loaded: dict[str, Any] = schema.load(value)
        return {"type": value["type"], **loaded}

    def schema_of(self, data: Mapping[str, object]) -> Schema | None:
        """Return the schema of the type that `data` names; None for an unknown type."""
        type_name = data.get("type")
        return self.by_type.get(type_name) if isinstance(type_name, str) else None

    def load(self, data: Any) -> dict[str, Any]:
        """Load a complete body, as a schema does. Raises ValidationError."""
        return self._deserialize(data, None, None)


def find_unknown_fields(
    schema: Schema | Variant | fields.Field[Any], data: Any, path: str = ""
) -> Iterator[FieldError]:
    """Yield an error for each field of `data`, nested ones included, that `schema` does not have.

    `path` is the path of `data`. What has another type than the schema's is left to validation.
    """
    if isinstance(schema, fields.List) and isinstance(data, list):
        for index, entry in enumerate(data):
            yield from find_unknown_fields(schema.inner, entry, _join(path, index))
    elif isinstance(schema, fields.Nested):
        yield from find_unknown_fields(schema.schema, data, path)
    elif isinstance(schema, Variant | Schema) and isinstance(data, dict):
        named = schema.schema_of(data) if isinstance(schema, Variant) else schema
        if named is None:
            return
        known = named.fields
        for name, value in data.items():
            if name == "type" and isinstance(schema, Variant):
                continue
            if name in known:
                yield from find_unknown_fields(known[name], value, _join(path, name))
            else:
                yield validation.UNKNOWN_FIELD.at(_join(path, name))


def _join(path: str, name: object) -> str:
    return f"{path}.{name}".lstrip(".")


_Types: TypeAlias = Mapping[Any, Callable[..., fields.Field[Any]]]


@cache
def input_of(model: Any, *bases: type[Schema], name: str = "", description: str = "") -> type[Schema]:
    """Return the schema of requests with the fields of a TypedDict, and the fields and checks of other schemas.

    A field that may be null is null if it is absent, unless it is `NotRequired`; one with a `Default` may be absent.
    """
    return _request(model, bases, _INPUT_TYPES, name, description)


@cache
def query_of(model: Any, *bases: type[Schema]) -> type[Schema]:
    """Return the schema of a query, as `input_of` does: its values are texts."""
    return _request(model, bases, _QUERY_TYPES)


def _request(
    model: Any, bases: tuple[type[Schema], ...], types: _Types, name: str = "", description: str = ""
) -> type[Schema]:
    inherited = {field for base in bases for field in base._declared_fields}
    declared = {
        each.name: _input_field(each, types)
        for each in core_fields.declarations_of(model).values()
        if each.name not in inherited
    }
    return _schema(model, name, bases or (validation.Input,), declared, description)


def with_schemas(
    options: Mapping[str, Any], handler: Callable[..., Any], *, in_browser: bool = False
) -> dict[str, Any]:
    """Return the options of a route or page with the schemas of its query, body and form.

    An option that is missing is the TypedDict of the handler's parameter of the same name, if it has one; the body of a
    multipart request follows from its fields. `in_browser`: queries are those of pages, which are read as forms are (a
    box that is not checked is not sent).
    """
    makers = {"query": input_of if in_browser else query_of, "body": input_of, "form": input_of}
    declared = {name: hint for name, hint in get_type_hints(handler).items() if name in makers and is_typeddict(hint)}
    if "multipart" in options:
        declared.pop("body", None)
    given = {**declared, **options}
    return {name: makers[name](each)() if is_typeddict(each) else each for name, each in given.items()}


# What responses add to the fields that a feature declares, before these and after them.
_FIRST, _LAST = ("_id",), ("createdAt", "updatedAt", "version")


@cache
def output_of(
    model: Any,
    *bases: type[Schema],
    name: str = "",
    description: str = "",
    with_private: tuple[str, ...] = (),
    first: tuple[str, ...] = (),
) -> type[Schema]:
    """Return the schema of responses with the fields of a TypedDict, and the fields of other schemas.

    `with_private` are private fields that this response has, `first` those that come before the others.
    A schema is returned as it is.
    """
    if not is_typeddict(model):
        built: type[Schema] = model
        return built
    declared = core_fields.declarations_of(model).values()
    declarations = {
        each.name: each for each in declared if not each.has(core_fields.Private) or each.name in with_private
    }
    inherited = {field for base in bases for field in base._declared_fields}
    order = [field for field in declarations if field not in (*_FIRST, *_LAST, *inherited)]
    ordered = [*first, *(field for field in (*_FIRST, *order, *_LAST) if field in declarations)]
    of_responses = {each: _output_field(declarations[each]) for each in dict.fromkeys(ordered)}
    return _schema(model, name, bases or (validation.Output,), of_responses, description)


def _schema(
    model: Any,
    name: str,
    bases: tuple[type[Schema], ...],
    declared: Mapping[str, fields.Field[Any]],
    description: str = "",
) -> type[Schema]:
    attributes = {"__doc__": description or model.__doc__, "__module__": model.__module__}
    built: type[Schema] = type(name or model.__name__, bases, {**declared, **attributes})
    return built


def argument_of(model: Any, name: str, *, may_be_absent: bool = False, **metadata: Any) -> fields.Field[Any]:
    """Return the argument of a tool for a field of a TypedDict; one that may be absent or null is None.

    `may_be_absent`: although the field is required or has a default.
    """
    declaration = core_fields.declarations_of(model)[name]
    field = _input_field(declaration, _INPUT_TYPES)
    field.required = field.required and not may_be_absent
    if may_be_absent or (not field.required and field.load_default is missing):
        field.load_default, field.allow_none = None, True
    field.metadata = {**field.metadata, **metadata}
    if isinstance(field, validation.Text):
        field.allow_blank = False  # an empty text is an absent one
    return _described(field, declaration, "argument")


def arguments_of(*models: Any) -> dict[str, fields.Field[Any]]:
    """Return the arguments of a tool for the fields of TypedDicts, for `include` of the Meta of its schema."""
    return {name: argument_of(model, name) for model in models for name in core_fields.declarations_of(model)}


def checks_of(model: Any) -> dict[str, fields.Field[Any]]:
    """Return the fields with limits of their own, by name: what an import requires of the values that it stores."""
    checks: dict[str, fields.Field[Any]] = {}
    for each in core_fields.declarations_of(model).values():
        declared: fields.Field[Any] | None = each.find(fields.Field)
        single = declared.inner if isinstance(declared, fields.List) else declared
        if isinstance(single, validation.Text | validation.Number | validation.Integer | validation.Date):
            checks[each.name] = single
    return checks


def _input_field(declaration: core_fields.Declaration, types: _Types) -> fields.Field[Any]:
    declared: fields.Field[Any] | None = declaration.find(fields.Field)
    field = _field_of(declaration.hint, types, input_of) if declared is None else copy.deepcopy(declared)
    default, is_nullable = declaration.find(core_fields.Default), declaration.is_nullable
    if default is not None:
        field.load_default = missing if default.value is core_fields.UNSET else default.value
    elif is_nullable and declaration.is_required:
        field.load_default = None
    elif field.load_default is missing:
        field.required = declaration.is_required
    field.allow_none = field.allow_none or is_nullable
    return _described(field, declaration, "request")


def _output_field(declaration: core_fields.Declaration) -> fields.Field[Any]:
    declared: fields.Field[Any] | None = declaration.find(fields.Field)
    of_response = [each for each in declaration.annotations if isinstance(each, fields.Field)][1:]
    is_of_requests = isinstance(declared, fields.Nested) and isinstance(declared.schema, validation.Input)
    if of_response:
        field = copy.deepcopy(of_response[0])
    elif declared is None or is_of_requests or datetime in _members(declaration.hint):
        field = _field_of(declaration.hint, _OUTPUT_TYPES, output_of)
    else:
        field = _without_limits(declared)
    field.allow_none = declaration.is_nullable
    if declaration.has(core_fields.Optional):
        field.metadata = {**field.metadata, "optional": True}
    return _described(field, declaration, "response")


def _described(
    field: fields.Field[Any], declaration: core_fields.Declaration, of: Literal["request", "response", "argument"]
) -> fields.Field[Any]:
    description = declaration.find(core_fields.Description)
    text = description and (getattr(description, of) or description.text)
    if text:
        field.metadata = {**field.metadata, "description": text}
    return field


_INPUT_TYPES: _Types = {
    str: validation.Text,
    NameOrId: validation.Text,
    int: validation.Integer,
    float: validation.Number,
    bool: validation.Boolean,
    ObjectId: validation.Identifier,
    list: validation.ListOf,
}
_QUERY_TYPES: _Types = {
    **_INPUT_TYPES,
    str: fields.String,
    int: QueryInteger,
    bool: QueryBoolean,
    datetime: QueryTime,
    list: fields.List,
}
_OUTPUT_TYPES: _Types = {
    str: fields.String,
    NameOrId: fields.String,
    int: fields.Integer,
    float: fields.Float,
    bool: fields.Boolean,
    ObjectId: validation.Identifier,
    datetime: validation.DateTime,
    list: fields.List,
}


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, without null."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(member for member in members if member is not type(None))


def _field_of(hint: Any, types: _Types, schema_of: Callable[[Any], type[Schema]]) -> fields.Field[Any]:
    members = _members(hint)
    if len(members) > 1:
        return Variant(
            {get_args(core_fields.declarations_of(each)["type"].hint)[0]: schema_of(each) for each in members}
        )
    [member] = members
    if member in types:
        return types[member]()
    if get_origin(member) is Literal:
        return validation.Choice(*get_args(member))
    if get_origin(member) in (list, tuple, Sequence):
        return types[list](_field_of(get_args(member)[0], types, schema_of))
    if is_typeddict(member):
        return fields.Nested(schema_of(member))
    raise TypeError(f"{hint} needs a field of core.validation")


def _without_limits(declared: fields.Field[Any]) -> fields.Field[Any]:
    """Return the field of a response for one of a request: of the same type, without what requests must observe."""
    if isinstance(declared, validation.ListOf):
        return fields.List(_without_limits(declared.inner))
    if isinstance(declared, validation.Choice):
        return validation.Choice(*declared.choices)
    if isinstance(declared, validation.Email):
        return fields.String(metadata={"format": "idn-email"})
    for of_requests, of_responses in _RESPONSE_FIELDS:
        if isinstance(declared, of_requests):
            return of_responses()
    return copy.deepcopy(declared)


_RESPONSE_FIELDS: tuple[tuple[type[Any] | tuple[type[Any], ...], type[fields.Field[Any]]], ...] = (
    (validation.Link, fields.Url),
    (validation.Text, fields.String),
    (validation.Number, fields.Float),
    (validation.Integer, fields.Integer),
    (validation.Boolean, fields.Boolean),
)
