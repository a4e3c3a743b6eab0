"""The best of what was done of an exercise, kind by kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.strength import estimated_one_rep_max
from coaching_service.training.workouts.tallies import working_sets

HEAVIEST, MAX_REPS, ESTIMATED = KINDS = ("heaviest_load", "most_reps", "estimated_1rm")
FACTS = ("value", "reps", "date", "witemId")


def by_exercise(done: Iterable[Document]) -> dict[ObjectId, dict[str, Document]]:
    """`{value, reps, date, witemId}` of the best set of each kind there is, by exercise and kind.

    `done`: `{date, item}`. Warm-up sets and sets not completed do not count.
    """
    bests: dict[ObjectId, dict[str, Document]] = {}
    for entry in done:
        for exercise_id, each in working_sets(entry["item"]):
            facts = {"reps": each["reps"], "date": entry["date"], "witemId": entry["item"]["_id"]}
            of_kinds = bests.setdefault(exercise_id, {})
            for kind, value in _values(each):
                found = {"value": value, **facts}
                of_kinds[kind] = better(of_kinds.get(kind), found) or found
    return bests


def better(one: Document | None, other: Document | None) -> Document | None:
    """The better of two bests of a kind, either of which may be None."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=rank)


def rank(best: Document) -> tuple[Any, ...]:
    """Less is better: the higher value, of equals the earlier date, then more reps; then whichever, always the same."""
    return (-best["value"], best["date"], -best["reps"], best["witemId"])


def _values(done: Document) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    if done["load"] and done["reps"]:
        found.append((HEAVIEST, done["load"]))
    if done["reps"]:
        found.append((MAX_REPS, done["reps"]))
    if estimate := estimated_one_rep_max(done["reps"], done["load"]):
        found.append((ESTIMATED, round(estimate[0], 2)))
    return found
