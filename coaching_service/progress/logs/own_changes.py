"""A client's change of part of the log of an item: the rest of the log stays as it is."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from coaching_service.core.errors import Conflict
from coaching_service.core.field_schemas import DeferredChange
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.sets import CustomerSet


class LogFields(TypedDict, total=False):
    """The fields of a log to set; `values` are the values of a metric set."""

    isCompleted: bool
    comment: str | None
    pain: str | None
    skipped: item_models.Skip | None
    swappedFor: item_models.Swap | None
    values: list[item_models.MetricValue]


class SentItemLog(TypedDict):
    """The log of an item as it is sent, not validated yet."""

    witemId: ObjectId
    log: DeferredChange


class LogUpsert(TypedDict):
    """The logs of items of a workout, which `wblockId` or `externalId` names."""

    wblockId: NotRequired[ObjectId]
    externalId: NotRequired[str]
    items: list[SentItemLog]
    version: NotRequired[int]


def merge_change(item: item_models.WorkItem, change: LogFields) -> item_models.ItemLog:
    """Return the log of an item with a change.

    A skipped item is not completed, and a completed one not skipped. Raises Conflict if completed sets belong to the
    exercise that was done until now, and would belong to none.
    """
    log: item_models.ItemLog = {**stored_log(item), **change}
    if change.get("skipped") is not None:
        log["isCompleted"] = False
    elif log["isCompleted"]:
        log["skipped"] = None
    if item["type"] == "EXERCISE" and "swappedFor" in change:
        log["customerSets"] = _keep_sets(item, change["swappedFor"])
    return log


def stored_log(item: item_models.WorkItem) -> item_models.ItemLog:
    """Return the log of an item as it is stored."""
    log: item_models.ItemLog = {
        "isCompleted": item["isCompleted"],
        "comment": item["comment"],
        "pain": item.get("pain"),
        "skipped": item.get("skipped"),
        "swappedFor": item.get("swappedFor"),
    }
    if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT":
        log["customerSets"] = item["customerSets"]
    elif item["type"] == "FORM":
        log["answers"] = item["answers"] or []
    elif item["type"] == "METRICS":
        log["values"] = item["values"] or []
    return log


def _keep_sets(item: item_models.ExerciseItem, swap: item_models.Swap | None) -> list[CustomerSet]:
    """Return the logged sets with their exercises, without sets that were taken back and whose exercise is done no
    more.

    Raises Conflict if such a set is completed.
    """
    possible: set[ObjectId] = {item["exerciseId"]} | ({swap["exerciseId"]} if swap else set())
    remaining: list[CustomerSet] = []
    for logged in item["customerSets"]:
        exercise_id = logged["exerciseId"] or item["exerciseId"]
        if exercise_id in possible:
            remaining.append({**logged, "exerciseId": exercise_id})
        elif logged["isCompleted"]:
            message = "Sets of the other exercise are logged: take them back first"
            raise Conflict(message, code="SWAPPED_SETS_LOGGED")
    return remaining
