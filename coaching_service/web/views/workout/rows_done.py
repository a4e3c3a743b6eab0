"""Sets as a coach writes down what was done of them: a row each, offered as it was planned until something is known."""

from __future__ import annotations

from collections.abc import Iterator

from coaching_service.core.database.documents import Document
from coaching_service.training.workouts import items
from coaching_service.web.views.items import planned_set

AMOUNTS = (
    ("reps", "Reps"),
    ("seconds", "Seconds"),
    ("meters", "Meters"),
    ("load", "Load"),
    ("rpe", "RPE"),
    ("rir", "RIR"),
)
_OF = {"reps": "minPlannedReps", "seconds": "minPlannedSeconds", "meters": "plannedMeters", "load": "load"}


def rows_done(item: Document, unit: str) -> list[Document]:
    """The rows of an exercise or a circuit that was read; of any other item none.

    Each is `label`, `planned` (in words, loads in `unit`), `index`, in a circuit `exerciseId` and `round`,
    `isCompleted`, and `amounts`: `(name, label, value)` of what was planned or recorded of the set.
    """
    fresh = not items.is_recorded(item)
    if item["type"] == "EXERCISE":
        logged = {each["index"]: each for each in item["customerSets"]}
        planned = {each["index"]: each for each in item["exerciseSets"]}
        return [
            {"label": f"Set {index}", "index": index} | _row(planned.get(index), logged.get(index), unit, fresh)
            for index in sorted(planned.keys() | logged.keys())
        ]
    return list(_of_circuit(item, unit, fresh)) if item["type"] == "CIRCUIT" else []


def _of_circuit(circuit: Document, unit: str, fresh: bool) -> Iterator[Document]:
    logged = {(each["exerciseId"], each["round"], each["index"]): each for each in circuit["customerSets"]}
    for number in range(1, circuit["rounds"] + 1):
        for entry in circuit["circuitExercises"]:
            several = len(entry["sets"]) > 1
            for planned in entry["sets"]:
                place = (entry["exerciseId"], number, planned["index"])
                label = f"Round {number}: {entry['exercise']['name']}" + (f", {planned['index']}" if several else "")
                about = dict(zip(("exerciseId", "round", "index"), place, strict=True))
                yield {"label": label, **about} | _row(planned, logged.pop(place, None), unit, fresh)
    for (exercise_id, number, index), done in logged.items():  # what has been taken out of the plan since
        about = {"exerciseId": exercise_id, "round": number, "index": index}
        yield {"label": f"Round {number}: no longer planned", **about} | _row(None, done, unit, fresh)


def _row(planned: Document | None, done: Document | None, unit: str, fresh: bool) -> Document:
    """`fresh`: nothing is recorded of the item yet, so that what was planned is offered."""
    amounts = []
    for name, label in AMOUNTS:
        wanted = planned.get(_OF[name]) if planned and name in _OF else None
        value = (done or {}).get(name)
        if _is_asked(name, planned) or value is not None:
            words = f"{label}, {unit}" if name == "load" else label
            amounts.append((name, words, wanted if fresh else value))
    completed = fresh if done is None else done["isCompleted"]
    return {"planned": planned_set(planned, unit) if planned else "", "isCompleted": completed, "amounts": amounts}


def _is_asked(name: str, planned: Document | None) -> bool:
    """Whether a set of its kind is told by this: what it counts, a load but over a distance, and how hard it was."""
    counted = planned["type"].partition("_")[0] if planned else "reps"
    asked = {"reps": ("reps", "load"), "time": ("seconds", "load"), "distance": ("meters",)}[counted]
    return name in asked or name in ("rpe", "rir")
