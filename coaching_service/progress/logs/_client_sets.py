"""The sets of a log: which exercise each belongs to, and one set in the place of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items.content import exercise_ids
from coaching_service.training.workouts.items.input_models import ItemLog
from coaching_service.training.workouts.items.models import CircuitItem, ExerciseItem, WorkItem
from coaching_service.training.workouts.sets.models import CustomerSet
from coaching_service.training.workouts.sets.records import with_kind

MAX_EXERCISE_SETS, MAX_CIRCUIT_SETS = 200, 2_000


def assign_exercises(item: WorkItem, log: ItemLog) -> ItemLog:
    """Return the log of an item with the exercise of each of its sets, as it is stored.

    Raises InvalidFields if a set has an exercise or a round that the item has not.
    """
    if item["type"] == "EXERCISE":
        return {**log, "customerSets": with_kinds(item, _of_exercise(item, log))}
    if item["type"] == "CIRCUIT":
        for position, logged in enumerate(log["customerSets"]):
            require_in_circuit(item, logged["exerciseId"], logged["round"], f"customerSets.{position}.")
        return {**log, "customerSets": with_kinds(item, log["customerSets"])}
    return log


def with_kinds(item: ExerciseItem | CircuitItem, sets: Sequence[CustomerSet]) -> list[CustomerSet]:
    """Return sets with their kinds: where it is not sent, the stored kind of the same set."""
    stored = {_place(logged): logged for logged in item["customerSets"]}
    return [with_kind(_with_kind_of(stored.get(_place(sent)), sent)) for sent in sets]


def _place(logged: CustomerSet) -> tuple[ObjectId | None, int | None, int]:
    return logged["exerciseId"], logged["round"], logged["index"]


def _with_kind_of(logged: CustomerSet | None, sent: CustomerSet) -> CustomerSet:
    if logged is None:
        return sent
    kind = {name: value for name, value in with_kind(logged).items() if name in ("isWarmup", "setKind")}
    return cast("CustomerSet", {**kind, **sent})


def _of_exercise(item: ExerciseItem, log: ItemLog) -> list[CustomerSet]:
    swap = log.get("swappedFor")
    swapped_id = swap["exerciseId"] if swap else None
    sets: list[CustomerSet] = []
    for position, logged in enumerate(log["customerSets"]):
        exercise_id = exercise_of_set(item, swapped_id, logged["exerciseId"], f"customerSets.{position}.")
        sets.append({**logged, "exerciseId": exercise_id})
    if len({(logged["exerciseId"], logged["index"]) for logged in sets}) < len(sets):
        raise invalid_field("customerSets", "must have each index only once", code="DUPLICATE")
    return sets


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
