"""What mypy has to know of core/fields.py: `Partial[T]`, `Change[T]` and `Part[T, Literal[...]]` are TypedDicts.

mypy has no operations on TypedDicts; without the plugin, each of these types would be a second list of the same fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mypy.plugin import AnalyzeTypeContext, Plugin
from mypy.types import (
    AnyType,
    Instance,
    LiteralType,
    NoneType,
    Type,
    TypedDictType,
    TypeOfAny,
    UnionType,
    get_proper_type,
)

_MODULE = "coaching_service.core.fields"


class FieldsPlugin(Plugin):
    """The types of core/fields.py."""

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        """Return the function that makes the type of a name of core/fields.py."""
        return _HOOKS.get(fullname)


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin; mypy calls it."""
    return FieldsPlugin


def _partial(context: AnalyzeTypeContext) -> Type:
    model = _model(context, arguments=1)
    return _UNKNOWN if model is None else _typed_dict(context, model.items, required=())


def _change(context: AnalyzeTypeContext) -> Type:
    model = _model(context, arguments=1)
    if model is None:
        return _UNKNOWN
    version = UnionType([context.api.named_type("builtins.int", []), NoneType()])
    return _typed_dict(context, {**model.items, "version": version}, required=())


def _part(context: AnalyzeTypeContext) -> Type:
    model = _model(context, arguments=2)
    if model is None:
        return _UNKNOWN
    names = _literals(context.api.analyze_type(context.type.args[1]))
    if not names or not names <= model.items.keys():
        context.api.fail("Part[...] needs the names of fields of the TypedDict, as a Literal", context.context)
        return _UNKNOWN
    items = {name: hint for name, hint in model.items.items() if name in names}
    return _typed_dict(context, items, required=names & model.required_keys)


_HOOKS = {f"{_MODULE}.Partial": _partial, f"{_MODULE}.Change": _change, f"{_MODULE}.Part": _part}
_UNKNOWN = AnyType(TypeOfAny.from_error)


def _model(context: AnalyzeTypeContext, *, arguments: int) -> TypedDictType | None:
    """Return the TypedDict that a type is made of; None if it is not one, or not analyzed yet."""
    if len(context.type.args) != arguments:
        context.api.fail(f"{context.type.name}[...] needs {arguments} argument(s)", context.context)
        return None
    model = get_proper_type(context.api.analyze_type(context.type.args[0]))
    if isinstance(model, TypedDictType):
        return model
    if isinstance(model, Instance):
        context.api.fail(f"{context.type.name}[...] needs a TypedDict", context.context)
    return None


def _literals(names: Type) -> set[str]:
    proper = get_proper_type(names)
    members = [get_proper_type(each) for each in proper.items] if isinstance(proper, UnionType) else [proper]
    return {each.value for each in members if isinstance(each, LiteralType) and isinstance(each.value, str)}


def _typed_dict(context: AnalyzeTypeContext, items: dict[str, Type], required: Iterable[str]) -> TypedDictType:
    fallback = context.api.named_type("typing._TypedDict", [])
    return TypedDictType(dict(items), set(required), set(), fallback, context.type.line, context.type.column)
