"""What differs between two versions of a document, field by field, and how it is put back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeAlias, TypedDict

from coaching_service.core.fields import Private
from coaching_service.core.ids import ObjectId

# --- Fields that every stored document has ----------------------------------------------------------------------------


# Fields of a document of any collection: each feature declares the fields of its own documents.
DocumentFields: TypeAlias = dict[str, Any]
# The value of one field of a document of any collection.
FieldValue: TypeAlias = Any


class Returned(TypedDict):
    """What every returned document has: feature models add their own fields.

    `createdAt` and `updatedAt` are UTC without a time zone, to the millisecond; `version` starts at 0 and rises by one
    with each change.
    """

    _id: ObjectId
    createdAt: datetime
    updatedAt: datetime
    version: int


class Stored(Returned):
    """The base of every stored document."""

    companyId: Annotated[ObjectId, Private]


METADATA = frozenset({"_id", "companyId", "createdAt", "updatedAt", "version"})
MISSING: Any = object()  # the value of a field that is not set


class FieldChange(TypedDict, total=False):
    """One field of a document before and after; a side without a value was not set.

    `path` is the field's name, dotted inside nested documents. A field that holds a list of documents with `_id` has
    only those that differ (`elements`), and `order`, the identifiers before, if they were added, removed or moved.
    """

    path: str
    before: FieldValue
    after: FieldValue
    elements: bool
    order: list[ObjectId]


def without_nested(names: Sequence[str]) -> list[str]:
    """Return the names without those inside another one, which MongoDB does not accept in one projection."""
    unique = list(dict.fromkeys(names))
    return [name for name in unique if not any(name.startswith(f"{other}.") for other in unique)]


def touched_paths(change: Mapping[str, Any]) -> list[str]:
    """Return the paths that update operators write, without metadata."""
    paths = [path for operator in change.values() for path in operator]
    return [path for path in dict.fromkeys(paths) if path not in METADATA]


def values_at(document: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return the values of a document at `paths`; MISSING where it has none."""
    return {path: _value_at(document, path) for path in paths}


def _value_at(document: Mapping[str, Any], path: str) -> Any:
    value: Any = document
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return MISSING
        value = value[name]
    return value


def set_path(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the value of a document at `path`, or remove it if the value is MISSING. Nested documents are copied."""
    *parents, name = path.split(".")
    for parent in parents:
        document[parent] = dict(document.get(parent, {}))
        document = document[parent]
    if value is MISSING:
        document.pop(name, None)
    else:
        document[name] = value


def field_change(path: str, before: Any, after: Any) -> FieldChange | None:
    """Return how a field has changed, or None if it has not."""
    if before is after or before == after:
        return None
    if _has_identifiers(before) and _has_identifiers(after):
        return _element_change(path, before, after)
    change: FieldChange = {"path": path}
    if before is not MISSING:
        change["before"] = before
    if after is not MISSING:
        change["after"] = after
    return change


def _has_identifiers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) and "_id" in each for each in value)


def _element_change(path: str, before: Sequence[Any], after: Sequence[Any]) -> FieldChange:
    earlier = {element["_id"]: element for element in before}
    later = {element["_id"]: element for element in after}
    change: FieldChange = {
        "path": path,
        "elements": True,
        "before": [element for element in before if _differs(element, later.get(element["_id"]))],
        "after": [element for element in after if _differs(element, earlier.get(element["_id"]))],
    }
    if list(earlier) != list(later):
        change["order"] = list(earlier)
    return change


def _differs(element: Any, other: Any) -> bool:
    """Return whether two elements differ; most are the same object, which is not compared field by field."""
    return element is not other and element != other


def restored_elements(current: Sequence[Any], change: FieldChange) -> list[Any]:
    """Return the list of elements as it was before `change`, from the list as it was after it."""
    elements = {element["_id"]: element for element in current}
    elements |= {element["_id"]: element for element in change["before"]}
    return [elements[identifier] for identifier in change.get("order", [each["_id"] for each in current])]
