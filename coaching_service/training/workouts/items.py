"""Workout items: what each type holds, how one begins, changes and is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coaching_service.kernel.errors import not_found
from coaching_service.kernel.storage.documents import Document, now
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.training.workouts.sets import with_variables

# What a coach says of an item of each type, and what a client's log adds, with its empty value.
FIELDS: dict[str, tuple[str, ...]] = {
    "EXERCISE": ("exerciseId", "exerciseSets", "exerciseInstructions", "supersetId"),
    "TASK": ("taskFields",),
}
LOGGED: dict[str, Document] = {"EXERCISE": {"customerSets": []}, "TASK": {}}


def fresh(details: Document) -> Document:
    """A new item from what a coach said of it: nothing done yet."""
    kind, at = details["type"], now()
    return {
        "_id": ObjectId(),
        "type": kind,
        "isCompleted": False,
        "completedAt": None,
        "comment": None,
        **{name: details.get(name) for name in FIELDS[kind]},
        **{name: type(empty)(empty) for name, empty in LOGGED[kind].items()},
        "createdAt": at,
        "updatedAt": at,
    }


def changed(item: Document, details: Document) -> Document:
    """`item` with what is sent of its own type's fields; other types' are ignored."""
    mine = {name: value for name, value in details.items() if name in FIELDS[item["type"]]}
    return {**item, **mine, "updatedAt": now()} if mine else item


def find(items: list[Document], item_id: ObjectId) -> int:
    """Where in the block an item is. Raises NotFound."""
    for at, item in enumerate(items):
        if item["_id"] == item_id:
            return at
    raise not_found("Workout item")


def exercise_ids(items: Iterable[Document]) -> set[ObjectId]:
    """The exercises that items name."""
    return {item["exerciseId"] for item in items if item["type"] == "EXERCISE"}


def present(block: Document, names: dict[ObjectId, Document], load_unit: str) -> list[Document]:
    """The items of a block as they are read, in order."""
    return [present_one(block, at, names, load_unit) for at in range(len(block["items"]))]


def present_one(block: Document, at: int, names: dict[ObjectId, Document], load_unit: str) -> Document:
    """One item of a block as it is read: with its order, exercises named and variables derived."""
    item = block["items"][at]
    read: dict[str, Any] = {**item, "order": at, "version": block["version"]}
    if item["type"] == "EXERCISE":
        read["exercise"] = names[item["exerciseId"]]
        read["exerciseSets"] = [with_variables(planned, load_unit) for planned in item["exerciseSets"]]
    return read
