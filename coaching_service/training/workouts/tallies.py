"""What the completed sets of an item amount to: kept with the item, so that no reader has to go through every set."""

from __future__ import annotations

from collections.abc import Iterator

from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId

# The fields of an item that are derived and never leave.
PRIVATE = ("exerciseIds", "doneExerciseIds", "tally")
FIGURES = ("sets", "reps", "volumeLoad")


def derived(item: Document) -> Document:
    """The private fields of an item: the exercises it names or was logged with, those done, and what was done.

    An exercise is done when the item is completed, or a set of it. `tally`: `sets`, `reps`, `volumeLoad` in all, and
    the same for each of `exercises`. Volume load is the sum of reps x load over completed sets that are not warm-up.
    """
    named = exercise_ids(item)
    by_exercise: dict[ObjectId, Document] = {}
    for exercise_id, done in working_sets(item):
        increment = by_exercise.setdefault(
            exercise_id, {"exerciseId": exercise_id, "sets": 0, "reps": 0, "volumeLoad": 0}
        )
        reps = done["reps"] or 0
        increment["sets"] += 1
        increment["reps"] += reps
        increment["volumeLoad"] += reps * (done["load"] or 0)
    tallies = list(by_exercise.values())
    totals = {figure: sum(increment[figure] for increment in tallies) for figure in FIGURES}
    touched = [done["exerciseId"] or named[0] for done in item.get("customerSets") or () if done["isCompleted"]]
    finished = list(dict.fromkeys([*(named if item["isCompleted"] else ()), *touched]))
    return {
        "exerciseIds": list(dict.fromkeys([*named, *finished])),
        "doneExerciseIds": finished,
        "tally": {**totals, "exercises": tallies},
    }


def exact(figure: float) -> float:
    """A sum of products as one would write it down: without the noise of binary fractions."""
    return round(figure, 6)


def exercise_ids(item: Document) -> list[ObjectId]:
    """The exercises an item names, those of a circuit included, each once."""
    named = [item["exerciseId"]] if item.get("exerciseId") else []
    return list(dict.fromkeys([*named, *(entry["exerciseId"] for entry in item.get("circuitExercises") or ())]))


def working_sets(item: Document) -> Iterator[tuple[ObjectId, Document]]:
    """The completed sets of an item that are not warm-up, each with its exercise."""
    warm_ups = _warm_ups(item)
    for done in item.get("customerSets") or ():
        exercise_id: ObjectId = done["exerciseId"] or item["exerciseId"]
        if done["isCompleted"] and (exercise_id, done["index"]) not in warm_ups:
            yield exercise_id, done


def _warm_ups(item: Document) -> set[tuple[ObjectId, int]]:
    planned = [(item.get("exerciseId"), each) for each in item.get("exerciseSets") or ()]
    for entry in item.get("circuitExercises") or ():
        planned += [(entry["exerciseId"], each) for each in entry["sets"]]
    return {(exercise_id, each["index"]) for exercise_id, each in planned if exercise_id and each["isWarmup"]}
