"""The declaration of fields: a TypedDict lists the fields of a group, and everything that lists fields reads it.

The type of a field says what it is, whether it may be null (`| None`) and whether it may be absent (`NotRequired`);
`Annotated` adds the rest: a field of core.validation for its limits (a second field is for responses), `Default`,
`Description`, `Label`, `Private`, `Optional`. A group with the fields of others inherits from them. `field_schemas`
makes schemas of requests and responses; imports and `doctor` read the types too. See docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, NotRequired, Required, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints

from coaching_service.core.ids import NameOrId

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
