"""Changes of the log of an item: of a part of it by its client, and of its sets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NotRequired, TypedDict, cast

import orjson

from coaching_service.core.errors import BadRequest, Conflict, invalid_field
from coaching_service.core.field_schemas import DeferredChange
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items.models import CircuitItem, ExerciseItem, ItemLog, WorkItem
from coaching_service.training.workouts.items.service import exercise_ids
from coaching_service.training.workouts.sets import CustomerSet, with_kind


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
        swap = change["swappedFor"]
        possible: set[ObjectId] = {item["exerciseId"]} | ({swap["exerciseId"]} if swap else set())
        done: list[CustomerSet] = [
            {**logged, "exerciseId": logged["exerciseId"] or item["exerciseId"]} for logged in item["customerSets"]
        ]
        # Sets that were taken back, of an exercise that is done no more, are not kept.
        log["customerSets"] = [logged for logged in done if logged["exerciseId"] in possible]
        if any(logged["isCompleted"] and logged["exerciseId"] not in possible for logged in done):
            message = "Sets of the other exercise are logged: take them back first"
            raise Conflict(message, code="SWAPPED_SETS_LOGGED")
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


# --- The sets of a log: which exercise each belongs to, and one set in the place of another ---------------------------


MAX_EXERCISE_SETS, MAX_CIRCUIT_SETS = 200, 2_000


def assign_exercises(item: WorkItem, log: ItemLog) -> ItemLog:
    """Return the log of an item with the exercise of each of its sets, as it is stored.

    Raises InvalidFields if a set has an exercise or a round that the item has not.
    """
    sets = log.get("customerSets") or []
    if item["type"] == "EXERCISE":
        swap = log.get("swappedFor")
        swapped_id = swap["exerciseId"] if swap else None
        ids = [
            exercise_of_set(item, swapped_id, logged["exerciseId"], f"customerSets.{position}.")
            for position, logged in enumerate(sets)
        ]
        sets = [{**logged, "exerciseId": each} for logged, each in zip(sets, ids, strict=True)]
    elif item["type"] == "CIRCUIT":
        for position, logged in enumerate(sets):
            require_in_circuit(item, logged["exerciseId"], logged["round"], f"customerSets.{position}.")
    else:
        return log
    if len({_place(logged) for logged in sets}) < len(sets):
        raise invalid_field("customerSets", "must have each index only once", code="DUPLICATE")
    return {**log, "customerSets": with_kinds(item, sets)}


def with_kinds(item: ExerciseItem | CircuitItem, sets: Sequence[CustomerSet]) -> list[CustomerSet]:
    """Return sets with their kinds: where it is not sent, the stored kind of the same set."""
    kinds: dict[object, dict[str, object]] = {
        _place(logged): {name: value for name, value in with_kind(logged).items() if name in ("isWarmup", "setKind")}
        for logged in item["customerSets"]
    }
    return [with_kind(cast("CustomerSet", {**kinds.get(_place(sent), {}), **sent})) for sent in sets]


def _place(logged: CustomerSet) -> tuple[ObjectId | None, int | None, int]:
    return logged["exerciseId"], logged["round"], logged["index"]


def exercise_of_set(
    item: ExerciseItem, swapped_id: ObjectId | None, sent: ObjectId | None, path: str = ""
) -> ObjectId | None:
    """Return the `exerciseId` to store with a set: null if the item has only the planned exercise.

    `swapped_id` is the exercise that was done in its place, and `sent` that in the set; None: the swapped one, else the
    planned one. Raises InvalidFields, naming the field after `path`, if it is neither.
    """
    if sent is not None and sent not in (item["exerciseId"], swapped_id):
        raise _unknown_exercise(path, "must be the exercise of the item, or the one in swappedFor")
    return None if swapped_id is None else sent or swapped_id


def require_in_circuit(
    item: CircuitItem, exercise_id: ObjectId | None, round_number: int | None, path: str = ""
) -> None:
    """Raise InvalidFields, naming the field after `path`, if a circuit has no such exercise or round."""
    if exercise_id not in exercise_ids([item]):
        raise _unknown_exercise(path, "must be an exercise of the circuit")
    if round_number is not None and round_number > item["rounds"]:
        raise invalid_field(f"{path}round", f"must not be greater than {item['rounds']}", code="TOO_LARGE")


def _unknown_exercise(path: str, message: str) -> Exception:
    return invalid_field(f"{path}exerciseId", message, code="UNKNOWN_EXERCISE")


# --- A set that a client logs by itself ------------------------------------------------------------------------------
# In any order and as often as it is sent: of the sets of one exercise, round and index the one with the later
# `loggedAt` wins; of two at the same time the one whose values come later in a fixed order, so that the result does not
# depend on which arrived first. A time in the future counts as now: a device whose clock is ahead does not lock a set.

# By how much the clocks of processes may differ: a stored time later than that is of a version that did not limit it.
_CLOCK_TOLERANCE = timedelta(minutes=5)
_Key = tuple[ObjectId, int, int]  # exercise, round (1 outside circuits) and index


class AlreadyLogged(Exception):
    """The item has this set, or a later one in its place: nothing changes."""


def merge_set(item: WorkItem, sent: CustomerSet, now: datetime) -> ItemLog:
    """Return the log of an item with a set in place of the set of the same exercise, round and index.

    Without `loggedAt`, or with a later one, the set was done `now`. The item is completed when every planned set has a
    completed one, and stays completed until one of its sets is not. Raises AlreadyLogged, BadRequest if the item has no
    sets, InvalidFields for an exercise or a round that it has not.
    """
    if item["type"] != "EXERCISE" and item["type"] != "CIRCUIT":
        raise BadRequest("Only exercises and circuits have sets; log the item as a whole", code="ITEM_WITHOUT_SETS")
    done = _to_stored(item, sent, now)
    sets = {_key(item, logged): logged for logged in item["customerSets"]}
    key = _key(item, done)
    if key in sets and not _wins(done, sets[key], is_ahead=sent.get("loggedAt", now) > now, now=now):
        raise AlreadyLogged
    sets[key] = done
    if len(sets) > (MAX_CIRCUIT_SETS if item["type"] == "CIRCUIT" else MAX_EXERCISE_SETS):
        raise invalid_field("index", "is one set too many for this item", code="TOO_MANY")
    in_order = sorted(sets.values(), key=lambda logged: _order(item, logged))
    completed = _has_every_planned_set(item, in_order) or (item["isCompleted"] and done["isCompleted"])
    log: ItemLog = {**stored_log(item), "isCompleted": completed, "customerSets": in_order}
    skipped = None if completed else item.get("skipped")
    return {**log, "skipped": skipped, "clientTexts": item.get("clientTexts", [])}


def _to_stored(item: ExerciseItem | CircuitItem, sent: CustomerSet, now: datetime) -> CustomerSet:
    at = min(sent.get("loggedAt", now), now)
    if item["type"] == "EXERCISE":
        swap = item.get("swappedFor")
        exercise_id = exercise_of_set(item, swap["exerciseId"] if swap else None, sent["exerciseId"])
        round_number = None
    else:
        exercise_id, round_number = sent["exerciseId"], sent["round"] or 1
        require_in_circuit(item, exercise_id, round_number)
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)  # as precise as what is stored
    [done] = with_kinds(item, [{**sent, "exerciseId": exercise_id, "round": round_number, "loggedAt": at}])
    return done


def _wins(done: CustomerSet, stored: CustomerSet, *, is_ahead: bool, now: datetime) -> bool:
    """Return whether a set takes the place of a stored one, which has no time if it was logged with the whole item.

    A set that was sent with a time in the future changes nothing if its values are stored: it is a repetition.
    """
    if "loggedAt" not in stored or stored["loggedAt"] > now + _CLOCK_TOLERANCE:
        return True
    if is_ahead and _rank(done)[1] == _rank(stored)[1]:
        return False
    return _rank(done) > _rank(stored)


def _rank(logged: CustomerSet) -> tuple[datetime, bytes]:
    values = {name: value for name, value in logged.items() if name not in ("loggedAt", "exerciseId", "round")}
    numbers = {name: float(value) if isinstance(value, int) else value for name, value in values.items()}
    return logged["loggedAt"], orjson.dumps(numbers, option=orjson.OPT_SORT_KEYS)


def _key(item: ExerciseItem | CircuitItem, logged: CustomerSet) -> _Key:
    exercise_id = logged["exerciseId"]
    if exercise_id is None:
        if item["type"] != "EXERCISE":
            raise ValueError("a logged set of a circuit must have an exercise")
        exercise_id = item["exerciseId"]
    return exercise_id, logged["round"] or 1, logged["index"]


def _order(item: ExerciseItem | CircuitItem, logged: CustomerSet) -> tuple[int, int, ObjectId, int]:
    """Return the place of a set: by round, then in the order of the item's exercises, then by index."""
    exercise_id, round_number, index = _key(item, logged)
    if item["type"] == "EXERCISE":
        planned = [item["exerciseId"]]
    else:
        planned = [entry["exerciseId"] for entry in item["circuitExercises"]]
    place = planned.index(exercise_id) if exercise_id in planned else len(planned)
    return round_number, place, exercise_id, index


def _has_every_planned_set(item: ExerciseItem | CircuitItem, sets: Sequence[CustomerSet]) -> bool:
    """Return whether each planned set has a completed one, of any exercise that was done in its place."""
    completed = [logged for logged in sets if logged["isCompleted"]]
    if item["type"] == "EXERCISE":
        return {planned["index"] for planned in item["exerciseSets"]} <= {logged["index"] for logged in completed}
    planned_keys = {
        (entry["exerciseId"], round_number, planned["index"])
        for entry in item["circuitExercises"]
        for round_number in range(1, item["rounds"] + 1)
        for planned in entry["sets"]
    }
    return planned_keys <= {_key(item, logged) for logged in completed}
