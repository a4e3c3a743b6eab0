"""What mypy has to know of core/fields.py: `Partial[T]`, `Change[T]` and `Part[T, Literal[...]]` are TypedDicts.

mypy has no operations on TypedDicts; without the plugin, each of these types would be a second list of the same fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from mypy.checker import TypeChecker
from mypy.plugin import AnalyzeTypeContext, MethodContext, Plugin
from mypy.types import (
    AnyType,
    Instance,
    LiteralType,
    NoneType,
    TupleType,
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

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Return the function that makes the type of the result of a method that reads with a projection."""
        return _read_fields if fullname in _READS else None


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


def _read_fields(context: MethodContext) -> Type:
    """Return the type of documents with only the fields that `fields` names, if it does as a tuple of texts."""
    position = context.callee_arg_names.index("fields")
    result = get_proper_type(context.default_return_type)
    names = _texts(context.arg_types[position])
    if not names or not isinstance(result, Instance):
        return result
    anonymous = cast("TypeChecker", context.api).named_type("typing._TypedDict")
    return result.copy_modified(args=[*result.args[:-1], _with_fields(result.args[-1], names | {"_id"}, anonymous)])


def _texts(types: Sequence[Type]) -> set[str]:
    """Return the names of fields in an argument that is a tuple of texts; none if one is not known."""
    argument = get_proper_type(types[0]) if types else None
    if not isinstance(argument, TupleType):
        return set()
    texts = [each.last_known_value for each in map(get_proper_type, argument.items) if isinstance(each, Instance)]
    known = [str(each.value).split(".")[0] for each in texts if each is not None]
    return set(known) if len(known) == len(argument.items) else set()


def _with_fields(result: Type, names: set[str], anonymous: Instance) -> Type:
    """Return a type of documents, of their list or of an absent one with only these fields."""
    proper = get_proper_type(result)
    if isinstance(proper, TypedDictType):
        items = {name: hint for name, hint in proper.items.items() if name in names}
        return TypedDictType(items, set(items) & proper.required_keys, set(), anonymous)
    if isinstance(proper, UnionType):
        return UnionType([_with_fields(each, names, anonymous) for each in proper.items])
    if isinstance(proper, Instance):
        return proper.copy_modified(args=[_with_fields(each, names, anonymous) for each in proper.args])
    return proper


_DOCUMENTS = "coaching_service.core.database.documents.Documents"
_READS = (f"{_DOCUMENTS}.find", f"{_DOCUMENTS}.find_one")
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
