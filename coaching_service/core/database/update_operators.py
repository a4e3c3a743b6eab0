"""The update operators of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coaching_service.core.database.collections import Document, now


def appended_element(change: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the path and the new element of a change that only appends a document with an `_id` to a list."""
    if set(change) != {"$push"} or len(change["$push"]) != 1:
        return None
    ((path, element),) = change["$push"].items()
    return (path, element) if isinstance(element, dict) and "_id" in element else None


def with_version(change: Document) -> Document:
    """`change`, which also raises the version."""
    return change | {
        "$set": {**change.get("$set", {}), "updatedAt": now()},
        "$inc": {**change.get("$inc", {}), "version": 1},
    }


def upsert_stage(fields: Mapping[str, Any]) -> list[Document]:
    """Return the update stage of an upsert: a new document gets version 0, an existing one the next version."""
    at = now()
    stamps = {
        "createdAt": {"$ifNull": ["$createdAt", at]},
        "updatedAt": at,
        "version": {"$ifNull": [{"$add": ["$version", 1]}, 0]},
    }
    return [{"$set": {name: {"$literal": value} for name, value in fields.items()} | stamps}]


def changed_parts(before: Mapping[str, Any], fields: Mapping[str, Any]) -> Document:
    """Return what to set for `fields` to have these values in a document at the version of `before`.

    Of a list that keeps its length, only the elements that are not the same objects as before: a log of one of several
    items is a smaller write.
    """
    changed: Document = {}
    for name, value in fields.items():
        previous = before.get(name)
        if not isinstance(value, list) or not isinstance(previous, list) or len(value) != len(previous):
            changed[name] = value
            continue
        for position, (old, new) in enumerate(zip(previous, value, strict=True)):
            if new is not old:
                changed[f"{name}.{position}"] = new
    return changed
