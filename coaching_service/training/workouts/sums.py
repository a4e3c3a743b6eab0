"""What was done of a block in all: kept with the block, so that readings of years need not go through its items."""

from __future__ import annotations

from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import bests
from coaching_service.training.workouts.tallies import FIGURES


def of(items: list[Document]) -> Document | None:
    """What was done of a block's items: `sets`, `reps`, `volumeLoad` in all, and the same for each of
    `exercises` with its `bests`, `{kind, value, reps, witemId}` each. None when nothing was done."""
    if not any(item["isCompleted"] or item["doneExerciseIds"] for item in items):
        return None
    by_exercise: dict[ObjectId, Document] = {}
    for increment in (increment for item in items for increment in item["tally"]["exercises"]):
        found = by_exercise.setdefault(increment["exerciseId"], {"exerciseId": increment["exerciseId"]})
        for figure in FIGURES:
            found[figure] = found.get(figure, 0) + increment[figure]
    for exercise_id, kinds in bests.by_exercise({"date": "", "item": item} for item in items).items():
        by_exercise[exercise_id]["bests"] = [
            {"kind": kind, **{fact: best[fact] for fact in ("value", "reps", "witemId")}}
            for kind, best in kinds.items()
        ]
    totals = {figure: sum(item["tally"][figure] for item in items) for figure in FIGURES}
    return {**totals, "exercises": list(by_exercise.values())}
