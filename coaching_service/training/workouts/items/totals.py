"""Training load: totals of completed sets, and the best of them.

Totals are stored with items and blocks, so that reports need not read every set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypedDict, cast

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import sets
from coaching_service.training.workouts.items.models import CircuitExercise, DatedItem, ItemChange, WorkItem

DERIVED_FIELDS = ("exerciseIds", "doneExerciseIds", "tally", "isPendingForm")
TOTALS = ("sets", "reps", "volumeLoad")


class DerivedFields(TypedDict):
    """The fields of a stored item that are derived from its plan and log."""

    exerciseIds: list[ObjectId]
    doneExerciseIds: list[ObjectId]
    tally: sets.ItemTally
    isPendingForm: bool


def derive_fields(item: WorkItem) -> DerivedFields:
    """Return the derived fields of an item.

    `exerciseIds` are the exercises it plans, or that were done or chosen in their place. `doneExerciseIds` are those
    with a working set: a completed set that is not warm-up. `tally` has the totals of its working sets.
    `isPendingForm`: it is a form that is not answered.
    """
    planned = planned_exercise_ids(item)
    totals = _zero_totals()
    by_exercise: dict[ObjectId, sets.ExerciseTotals] = {}
    for exercise_id, done in working_sets(item):
        exercise_totals = by_exercise.setdefault(exercise_id, {"exerciseId": exercise_id, **_zero_totals()})
        for sums in (totals, exercise_totals):
            sums["sets"] += 1
            sums["reps"] += done["reps"] or 0
            sums["volumeLoad"] += 0 if is_assisted(item, exercise_id) else volume_load(done)
    done_ids = list(by_exercise)
    swap = item.get("swappedFor")
    chosen = [swap["exerciseId"]] if swap else []
    return {
        "exerciseIds": list(dict.fromkeys([*planned, *chosen, *done_ids])),
        "doneExerciseIds": done_ids,
        "tally": {**totals, "exercises": list(by_exercise.values())},
        "isPendingForm": item["type"] == "FORM" and not item["isCompleted"],
    }


def planned_exercise_ids(item: WorkItem | ItemChange) -> list[ObjectId]:
    """Return the exercises that an item plans, a circuit's included, without duplicates."""
    exercise_id = item.get("exerciseId")
    ids = [exercise_id] if isinstance(exercise_id, ObjectId) else []
    return list(dict.fromkeys([*ids, *(entry["exerciseId"] for entry in _circuit_exercises(item))]))


def logged_sets(items: Iterable[WorkItem], exercise_id: ObjectId) -> list[sets.CustomerSet]:
    """Return the sets of an exercise that were logged with items, in order, warm-up and incomplete ones included."""
    return [
        logged
        for item in items
        for logged in _customer_sets(item)
        if (logged["exerciseId"] or item.get("exerciseId")) == exercise_id
    ]


def working_sets(item: WorkItem) -> Iterator[tuple[ObjectId, sets.CustomerSet]]:
    """Yield the completed sets of an item that are not warm-up, each with its exercise.

    A set is warm-up if it was logged as such, or if the planned set is; this also holds for a set of the exercise that
    was done in place of the planned one.
    """
    warm_ups = {(exercise_id, planned["index"]) for exercise_id, planned in planned_sets(item) if planned["isWarmup"]}
    for done in _customer_sets(item):
        exercise_id = done["exerciseId"] or _own_exercise_id(item)
        planned_id = item["exerciseId"] if item["type"] == "EXERCISE" else exercise_id
        if done["isCompleted"] and not done.get("isWarmup") and (planned_id, done["index"]) not in warm_ups:
            yield exercise_id, done


def is_assisted(item: WorkItem, exercise_id: ObjectId) -> bool:
    """Return whether the loads that were logged of an exercise of an item are assistance: less is better."""
    return exercise_id in item.get("assistedExerciseIds", ())


def load_meaning(item: WorkItem, exercise_id: ObjectId) -> sets.LoadMeaning:
    """Return what the loads that were logged of an exercise of an item mean."""
    is_added = exercise_id in item.get("addedExerciseIds", ())
    return sets.LoadMeaning(is_assisted(item, exercise_id), is_added, item.get("bodyWeight") if is_added else None)


def volume_load(done: sets.CustomerSet) -> float:
    """Return reps x load of a set; 0 if either is missing."""
    return (done["reps"] or 0) * (done["load"] or 0)


def volume_of(item: WorkItem, exercise_id: ObjectId) -> float:
    """Return the volume load of an exercise in an item; 0 where its loads are assistance."""
    if is_assisted(item, exercise_id):
        return 0
    return sum(volume_load(done) for trained_id, done in working_sets(item) if trained_id == exercise_id)


def round_total(total: float) -> float:
    """Round a sum of products to 6 decimals, which removes the noise of binary fractions."""
    return round(total, 6)


def summarize_block(items: Sequence[WorkItem]) -> sets.BlockTotals | None:
    """Return the totals of a block's items, with the best sets of each exercise. None if the block is not a session.

    A session has at least one working set, or a completed item of a type without sets.
    """
    if not any(_is_trained(item) for item in items):
        return None
    block_totals = _zero_totals()
    by_exercise: dict[ObjectId, sets.BlockExerciseTotals] = {}
    for item in items:
        _add_totals(block_totals, item["tally"])
        for exercise in item["tally"]["exercises"]:
            exercise_id = exercise["exerciseId"]
            totals = by_exercise.setdefault(exercise_id, {"exerciseId": exercise_id, **_zero_totals(), "bests": []})
            _add_totals(totals, exercise)
    for exercise_id, bests in best_by_exercise({"date": "", "item": item} for item in items).items():
        by_exercise[exercise_id]["bests"] = [_block_best(key, best) for key, best in bests.items()]
    summary: sets.BlockTotals = {**block_totals, "exercises": list(by_exercise.values())}
    return summary


def _is_trained(item: WorkItem) -> bool:
    has_sets = item["type"] == "EXERCISE" or item["type"] == "CIRCUIT"
    return bool(item["doneExerciseIds"]) if has_sets else item["isCompleted"]


def best_by_exercise(items: Iterable[DatedItem]) -> dict[ObjectId, dict[sets.RecordKey, sets.Best]]:
    """Return the best working set for each exercise and record."""
    bests: dict[ObjectId, dict[sets.RecordKey, sets.Best]] = {}
    for dated in items:
        for exercise_id, done in working_sets(dated["item"]):
            of_exercise = bests.setdefault(exercise_id, {})
            values = sets.record_values(done, load_meaning(dated["item"], exercise_id))
            for key, value in values.items():
                best: sets.Best = {
                    "value": value,
                    "reps": done["reps"],
                    "date": dated["date"],
                    "witemId": dated["item"]["_id"],
                }
                previous = of_exercise.get(key, best)
                of_exercise[key] = min(previous, best, key=partial(sets.rank_best, key.type))
    return bests


def _block_best(key: sets.RecordKey, best: sets.Best) -> sets.BlockBest:
    stored: sets.BlockBest = {
        "kind": key.type,
        "value": best["value"],
        "reps": best["reps"],
        "witemId": best["witemId"],
    }
    return stored if key.meters is None else {**stored, "meters": key.meters}


def _zero_totals() -> sets.Totals:
    return {"sets": 0, "reps": 0, "volumeLoad": 0}


def _add_totals(totals: sets.Totals, more: sets.Totals) -> None:
    totals["sets"] += more["sets"]
    totals["reps"] += more["reps"]
    totals["volumeLoad"] += more["volumeLoad"]


def _customer_sets(item: WorkItem) -> list[sets.CustomerSet]:
    if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT":
        return [sets.with_kind(done) for done in item["customerSets"]]
    return []


def _own_exercise_id(item: WorkItem) -> ObjectId:
    if item["type"] != "EXERCISE":
        raise ValueError("a logged set of a circuit must have an exercise")
    return item["exerciseId"]


def planned_sets(item: WorkItem) -> Iterator[tuple[ObjectId, sets.PlannedSet]]:
    """Yield the planned sets of an item, of a circuit in one round, each with its exercise."""
    if item["type"] == "EXERCISE":
        for planned in item["exerciseSets"]:
            yield item["exerciseId"], planned
    for entry in _circuit_exercises(item):
        for planned in entry["sets"]:
            yield entry["exerciseId"], planned


def _circuit_exercises(item: WorkItem | ItemChange) -> list[CircuitExercise]:
    # mypy knows `get` of a union of TypedDicts only as an object.
    return cast("list[CircuitExercise]", item.get("circuitExercises") or [])
