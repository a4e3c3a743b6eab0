"""The figures of compliance: what was scheduled, and how much of it was done."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from itertools import groupby
from typing import Any

from coaching_service.core.database.documents import Document


def by_day(blocks: Iterable[Document]) -> dict[str, list[Document]]:
    """The blocks of each day that has any. `blocks` are in the order of dates."""
    return {day: list(of_day) for day, of_day in groupby(blocks, key=lambda block: block["date"])}


def is_workout_day(blocks: list[Document]) -> bool:
    """Whether a day has a block that is not rest and holds at least one item."""
    return any(not block["isRest"] and block["totalItems"] > 0 for block in blocks)


def is_done(blocks: list[Document]) -> bool:
    """Whether there are items in the blocks and all of them are completed."""
    total = sum(block["totalItems"] for block in blocks)
    return bool(total) and total == sum(block["completedItems"] for block in blocks)


def daily(blocks_of: dict[str, list[Document]], first: date, last: date) -> list[dict[str, Any]]:
    """Every day from `first` to `last` with what was scheduled and done on it."""
    days = (str(date.fromordinal(number)) for number in range(first.toordinal(), last.toordinal() + 1))
    return [_day(day, blocks_of.get(day, [])) for day in days]


def _day(day: str, blocks: list[Document]) -> dict[str, Any]:
    total = done = 0
    workout = rest = False
    told = []
    for block in blocks:
        scheduled, completed = block["totalItems"], block["completedItems"]
        total += scheduled
        done += completed
        workout |= not block["isRest"] and scheduled > 0
        rest |= block["isRest"]
        finished = scheduled == completed and scheduled > 0
        told.append({"id": block["_id"], "name": block["name"], "isCompleted": finished})
    return {
        "date": day,
        "isWorkoutDay": workout,
        "isRestDay": rest and not workout,
        "isCompleted": workout and done == total,
        "totalItems": total,
        "completedItems": done,
        "workoutBlocks": told,
    }


def share(completed: int, scheduled: int) -> float | None:
    """How many of the workout days were completed, in percent; None when there was none."""
    return round(100 * completed / scheduled, 1) if scheduled else None


def percentage(blocks_of: dict[str, list[Document]], first: str, last: str) -> float | None:
    """How many of the workout days from `first` to `last` were completed, in percent; None when there was none.

    A workout day has a block that is not rest and holds an item; it is completed when all its items are.
    """
    days = [blocks for day, blocks in blocks_of.items() if first <= day <= last and is_workout_day(blocks)]
    return share(sum(map(is_done, days)), len(days))
