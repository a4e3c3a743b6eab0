"""The best of what was done of an exercise, kind by kind."""

from __future__ import annotations

from collections.abc import Iterable

from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.training.workouts.strength import estimated_one_rep_max
from coaching_service.training.workouts.tallies import working_sets

HEAVIEST, MOST_REPS, ESTIMATED = KINDS = ("heaviest_load", "most_reps", "estimated_1rm")


def best_of_each_kind(done: Iterable[Document], exercise_id: ObjectId) -> dict[str, Document]:
    """`{value, reps, date, witemId}` of the best set of each kind there is; of equals the earliest.

    `done`: `{date, item}`, the oldest first. Warm-up sets and sets not completed do not count.
    """
    bests: dict[str, Document] = {}
    for entry in done:
        for named, each in working_sets(entry["item"]):
            if named == exercise_id:
                for kind, value in _values(each):
                    if kind not in bests or value > bests[kind]["value"]:
                        facts = {"reps": each["reps"], "date": entry["date"], "witemId": entry["item"]["_id"]}
                        bests[kind] = {"value": value, **facts}
    return bests


def _values(done: Document) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    if done["load"] and done["reps"]:
        found.append((HEAVIEST, done["load"]))
    if done["reps"]:
        found.append((MOST_REPS, done["reps"]))
    if estimate := estimated_one_rep_max(done["reps"], done["load"]):
        found.append((ESTIMATED, round(estimate[0], 2)))
    return found
