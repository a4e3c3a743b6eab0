"""Estimated one-repetition maximum and best sets: the recipes the readings and records share."""

from __future__ import annotations

from collections.abc import Iterable

from coaching_service.core.database.documents import Document

EPLEY, LOAD = "epley", "load"
_MAX_REPS = 12


def estimated_one_rep_max(reps: int | None, load: float | None) -> tuple[float, str] | None:
    """The estimated one-repetition maximum of a set in the unit of `load`, and the formula used.

    Epley (1985), load x (1 + reps / 30), for 2 to 12 reps; the load itself for 1 (`load`). None above 12 reps or
    without a load: the estimate is not good there.
    """
    if not reps or not load or reps > _MAX_REPS:
        return None
    return (load, LOAD) if reps == 1 else (load * (1 + reps / 30), EPLEY)


def best_set(sets: Iterable[Document]) -> Document | None:
    """The set with the highest estimated one-repetition maximum, else the highest load, else the most reps; the first
    of equals. None when nothing was repeated or lifted."""

    def worth(done: Document) -> tuple[float, float, float]:
        estimate = estimated_one_rep_max(done["reps"], done["load"])
        return (estimate[0] if estimate else 0, done["load"] or 0, done["reps"] or 0)

    best = max(sets, key=worth, default=None)
    return None if best is None or worth(best) == (0, 0, 0) else best
