"""Workout items: what each type holds, how one begins, changes and is read."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coaching_service.core.database.documents import Document, now
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.library.metric_sets.models import MetricSet
from coaching_service.training.workouts import tallies
from coaching_service.training.workouts.sets import with_variables
from coaching_service.training.workouts.tallies import derived

MAX_ITEMS = 100
# What a coach says of an item of each type, and what a client's log adds, with its empty value.
FIELDS: dict[str, tuple[str, ...]] = {
    "EXERCISE": ("exerciseId", "exerciseSets", "exerciseInstructions", "supersetId"),
    "CIRCUIT": ("circuitName", "circuitExercises", "rounds"),
    "TASK": ("taskFields",),
    "FORM": ("form",),
    "METRICS": ("metricsFields",),
    "REMINDER": ("reminderFields",),
}
LOGGED: dict[str, Document] = {
    "EXERCISE": {"customerSets": []},
    "CIRCUIT": {"customerSets": []},
    "FORM": {"answers": []},
    "METRICS": {"values": []},
}


@dataclass(frozen=True)
class Named:
    """What items name, by identifier: exercises, and metric sets as they are read."""

    exercises: dict[ObjectId, Document] = field(default_factory=dict)
    metric_sets: dict[ObjectId, MetricSet] = field(default_factory=dict)


def fresh(details: Document) -> Document:
    """A new item from what a coach said of it: nothing done yet."""
    kind, at = details["type"], now()
    item = {
        "_id": ObjectId(),
        "type": kind,
        "isCompleted": False,
        "completedAt": None,
        "comment": None,
        **{name: details.get(name) for name in FIELDS[kind]},
        **copy.deepcopy(LOGGED.get(kind, {})),
        "createdAt": at,
        "updatedAt": at,
    }
    return item | derived(item)


def logged(item: Document, done: Document) -> Document:
    """`item` with what was done: isCompleted, comment, and its own type's logged fields; the log before is replaced."""
    at = now()
    recorded = {name: done.get(name) or copy.deepcopy(empty) for name, empty in LOGGED.get(item["type"], {}).items()}
    completed_at = (item["completedAt"] or at) if done["isCompleted"] else None
    after = {
        **item,
        **recorded,
        "isCompleted": done["isCompleted"],
        "completedAt": completed_at,
        "comment": done["comment"],
        "updatedAt": at,
    }
    return after | derived(after)


def changed(item: Document, details: Document) -> Document:
    """`item` with what is sent of its own type's fields; other types' are ignored."""
    mine = {name: value for name, value in details.items() if name in FIELDS[item["type"]]}
    if not mine:
        return item
    after = {**item, **mine, "updatedAt": now()}
    return after | derived(after)


def find(items: list[Document], item_id: ObjectId) -> int:
    """Where in the block an item is. Raises NotFound."""
    for at, item in enumerate(items):
        if item["_id"] == item_id:
            return at
    raise NotFound("workout item")


def exercise_ids(items: Iterable[Document]) -> set[ObjectId]:
    """The exercises that items name, those in circuits included."""
    return {identifier for item in items for identifier in tallies.exercise_ids(item)}


def metric_set_ids(items: Iterable[Document]) -> set[ObjectId]:
    """The metric sets that items name."""
    return {item["metricsFields"]["metricsSetId"] for item in items if item.get("metricsFields")}


def has_load(item: Document) -> bool:
    """Whether an item plans or records a load, which fixes the company's unit."""
    planned = [*(item.get("exerciseSets") or ()), *(item.get("customerSets") or ())]
    for entry in item.get("circuitExercises") or ():
        planned += entry["sets"]
    return any(each.get("load") is not None for each in planned)


def is_recorded(item: Document) -> bool:
    """Whether anything was recorded of an item, be it only a part of what is to be done."""
    logged = [item["comment"], *(item[name] for name in LOGGED.get(item["type"], ()))]
    return item["isCompleted"] or any(logged)


def present(block: Document, named: Named, load_unit: str) -> list[Document]:
    """The items of a block as they are read, in order."""
    return [present_one(item, at, block["version"], named, load_unit) for at, item in enumerate(block["items"])]


def present_one(item: Document, order: int, version: int, named: Named, load_unit: str) -> Document:
    """One item as it is read: with its order in the block and the block's version, what it names, and the variables of
    its sets."""
    read: dict[str, Any] = {**item, "order": order, "version": version}
    for name in tallies.PRIVATE:
        read.pop(name, None)
    if item["type"] == "EXERCISE":
        read["exercise"] = named.exercises[item["exerciseId"]]
        read["exerciseSets"] = [with_variables(planned, load_unit) for planned in item["exerciseSets"]]
    elif item["type"] == "CIRCUIT":
        read["circuitExercises"] = [
            {
                **entry,
                "exercise": named.exercises[entry["exerciseId"]],
                "sets": [with_variables(planned, load_unit) for planned in entry["sets"]],
            }
            for entry in item["circuitExercises"]
        ]
    elif item["type"] == "METRICS":
        metric_set = named.metric_sets[item["metricsFields"]["metricsSetId"]]
        read["metricsFields"] = {
            "metricsSetId": metric_set["_id"],
            "name": metric_set["name"],
            "metrics": metric_set["metrics"],
        }
    return read
