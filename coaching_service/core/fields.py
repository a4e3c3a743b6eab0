"""The declaration of fields: a TypedDict lists the fields of a group, and everything that lists fields reads it.

The type of a field says what it is, whether it may be null (`| None`) and whether it may be absent (`NotRequired`);
`Annotated` adds the rest: a field of core.validation for its limits (a second field is for responses), `Default`,
`Description`, `Label`, `Private`, `Optional`. A group with the fields of others inherits from them. The schemas of
requests and responses follow from it; imports and `doctor` read the types too. See docs/architecture.md.
"""

from __future__ import annotations

import copy
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, NotRequired, Required, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints

from marshmallow import Schema, ValidationError, fields, missing

from coaching_service.core import validation
from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.ids import NameOrId, ObjectId
from coaching_service.core.query import QueryBoolean, QueryInteger, QueryTime

T = TypeVar("T")


class Unset(Enum):
    """The type of UNSET."""

    UNSET = "unset"


UNSET = Unset.UNSET


@dataclass(frozen=True)
class Default:
    """The value of a field that a request does not have; a function is called for each request.

    UNSET: the field remains absent.
    """

    value: Any


@dataclass(frozen=True)
class Description:
    """What a field means; `request`, `response` and `argument` (of a tool) are for those alone.

    Without one, the API document has the description of the name in documentation/openapi_schemas.py.
    """

    text: str | None = None
    request: str | None = None
    response: str | None = None
    argument: str | None = None


@dataclass(frozen=True)
class Label:
    """The name of a field in the description of a change; by default its own name with spaces."""

    text: str


class Private:
    """A field that responses do not have."""


class Optional:
    """A field that responses do not always have."""


@dataclass(frozen=True)
class Declaration:
    """A field of a TypedDict: its type without `NotRequired` and annotations, and the annotations."""

    name: str
    hint: Any
    is_required: bool
    annotations: tuple[Any, ...]

    @property
    def is_nullable(self) -> bool:
        """Whether the value may be null."""
        return type(None) in get_args(self.hint)

    def find(self, kind: type[T]) -> T | None:
        """Return the annotation of a kind, or None."""
        return next((each for each in self.annotations if isinstance(each, kind)), None)

    def has(self, marker: type) -> bool:
        """Return whether the field has an annotation without a value."""
        return marker in self.annotations


@cache
def declarations_of(model: Any) -> Mapping[str, Declaration]:
    """Return the fields of a TypedDict by name, inherited ones first."""
    # Without `localns`, names in an inherited annotation would be looked up in the module of `model`.
    hints = get_type_hints(model, localns={}, include_extras=True)
    declarations = {}
    for name, hint in hints.items():
        is_required = name in model.__required_keys__ and get_origin(hint) is not NotRequired
        inner = get_args(hint)[0] if get_origin(hint) in (NotRequired, Required) else hint
        declarations[name] = Declaration(name, plain_type(inner), is_required, getattr(inner, "__metadata__", ()))
    return declarations


def names_of(*models: Any) -> tuple[str, ...]:
    """Return the names of the fields of TypedDicts."""
    return tuple(dict.fromkeys(name for model in models for name in declarations_of(model)))


def private_of(model: Any) -> tuple[str, ...]:
    """Return the names of the fields of a TypedDict that responses do not have."""
    return tuple(each.name for each in declarations_of(model).values() if each.has(Private))


def take(group: type[T], source: Mapping[str, Any]) -> T:
    """Return the fields of a group (a TypedDict) that a document has."""
    return cast("T", {name: source[name] for name in names_of(group) if name in source})


def labels_of(*models: Any) -> dict[str, str]:
    """Return the labels of the fields that have one, by name."""
    return {
        each.name: label.text
        for model in models
        for each in declarations_of(model).values()
        if (label := each.find(Label)) is not None
    }


def nulls_of(*models: Any) -> Any:
    """Return None for each field of TypedDicts that may be null and may be absent: in documents older than it."""
    return {
        each.name: None
        for model in models
        for each in declarations_of(model).values()
        if each.is_nullable and not each.is_required and not each.has(Private)
    }


def plain_type(hint: Any) -> Any:
    """Return a type without annotations, but for the types of core.ids that are declared with one."""
    return hint.__origin__ if get_origin(hint) is Annotated and hint != NameOrId else hint


# --- Parts of types --------------------------------------------------------------------------------------------------


class Partial:
    """`Partial[T]`: some of the fields of a TypedDict, such as those to set. For mypy see scripts/mypy_plugin.py."""

    def __class_getitem__(cls, model: Any) -> Any:
        """Return the TypedDict, none of whose fields is required."""
        return TypedDict(f"{cls.__name__}{model.__name__}", dict(model.__annotations__), total=False)  # type: ignore[operator]  # made at run time


class Change:
    """`Change[T]`: the fields of a TypedDict that change, and the `version` that the change is based on."""

    def __class_getitem__(cls, model: Any) -> Any:
        """Return the TypedDict, none of whose fields is required."""
        hints = {**model.__annotations__, "version": int}
        return TypedDict(f"{cls.__name__}{model.__name__}", hints, total=False)  # type: ignore[operator]  # made at run time


class Part:
    """`Part[T, Literal["a", "b"]]`: the named fields of a TypedDict, such as a query reads."""

    def __class_getitem__(cls, arguments: tuple[Any, Any]) -> Any:
        """Return the TypedDict with only these fields."""
        model, names = arguments
        hints = {name: model.__annotations__[name] for name in get_args(names)}
        return TypedDict(f"{cls.__name__}{model.__name__}", hints)  # type: ignore[operator]  # made at run time


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


_Types: typing.TypeAlias = Mapping[Any, Callable[..., fields.Field[Any]]]


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
        each.name: _input_field(each, types) for each in declarations_of(model).values() if each.name not in inherited
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
    declared = {
        name: hint for name, hint in get_type_hints(handler).items() if name in makers and typing.is_typeddict(hint)
    }
    if "multipart" in options:
        declared.pop("body", None)
    given = {**declared, **options}
    return {name: makers[name](each)() if typing.is_typeddict(each) else each for name, each in given.items()}


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
    if not typing.is_typeddict(model):
        built: type[Schema] = model
        return built
    declared = declarations_of(model).values()
    declarations = {each.name: each for each in declared if not each.has(Private) or each.name in with_private}
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
    declaration = declarations_of(model)[name]
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
    return {name: argument_of(model, name) for model in models for name in declarations_of(model)}


def checks_of(model: Any) -> dict[str, fields.Field[Any]]:
    """Return the fields with limits of their own, by name: what an import requires of the values that it stores."""
    checks: dict[str, fields.Field[Any]] = {}
    for each in declarations_of(model).values():
        declared: fields.Field[Any] | None = each.find(fields.Field)
        single = declared.inner if isinstance(declared, fields.List) else declared
        if isinstance(single, validation.Text | validation.Number | validation.Integer | validation.Date):
            checks[each.name] = single
    return checks


def _input_field(declaration: Declaration, types: _Types) -> fields.Field[Any]:
    declared: fields.Field[Any] | None = declaration.find(fields.Field)
    field = _field_of(declaration.hint, types, input_of) if declared is None else copy.deepcopy(declared)
    default, is_nullable = declaration.find(Default), declaration.is_nullable
    if default is not None:
        field.load_default = missing if default.value is UNSET else default.value
    elif is_nullable and declaration.is_required:
        field.load_default = None
    elif field.load_default is missing:
        field.required = declaration.is_required
    field.allow_none = field.allow_none or is_nullable
    return _described(field, declaration, "request")


def _output_field(declaration: Declaration) -> fields.Field[Any]:
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
    if declaration.has(Optional):
        field.metadata = {**field.metadata, "optional": True}
    return _described(field, declaration, "response")


def _described(
    field: fields.Field[Any], declaration: Declaration, of: typing.Literal["request", "response", "argument"]
) -> fields.Field[Any]:
    description = declaration.find(Description)
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
    members = get_args(hint) if get_origin(hint) in (typing.Union, UnionType) else (hint,)
    return tuple(member for member in members if member is not type(None))


def _field_of(hint: Any, types: _Types, schema_of: Callable[[Any], type[Schema]]) -> fields.Field[Any]:
    members = _members(hint)
    if len(members) > 1:
        return Variant({get_args(declarations_of(each)["type"].hint)[0]: schema_of(each) for each in members})
    [member] = members
    if member in types:
        return types[member]()
    if get_origin(member) is typing.Literal:
        return validation.Choice(*get_args(member))
    if get_origin(member) in (list, tuple, Sequence):
        return types[list](_field_of(get_args(member)[0], types, schema_of))
    if typing.is_typeddict(member):
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
