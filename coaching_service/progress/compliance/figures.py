"""The figures of compliance: what was scheduled, and how much of it was done."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import groupby
from typing import Any

from coaching_service.kernel.storage.documents import Document


def is_workout(block: Document) -> bool:
    """A block that makes its day a workout day: not rest, and with at least one item."""
    return not block["isRest"] and block["totalItems"] > 0


def is_done(block: Document) -> bool:
    """Whether all items of a block are completed."""
    return bool(block["totalItems"]) and block["completedItems"] == block["totalItems"]


def daily(blocks: Iterable[Document], first: date, last: date) -> list[dict[str, Any]]:
    """Every day from `first` to `last` with what was scheduled and done on it. `blocks` are in the order of dates."""
    by_day = {day: list(of_day) for day, of_day in groupby(blocks, key=lambda block: block["date"])}
    days = (str(first + timedelta(days=number)) for number in range((last - first).days + 1))
    return [_day(day, by_day.get(day, [])) for day in days]


def _day(day: str, blocks: list[Document]) -> dict[str, Any]:
    workouts = [block for block in blocks if is_workout(block)]
    return {
        "date": day,
        "isWorkoutDay": bool(workouts),
        "isRestDay": not workouts and any(block["isRest"] for block in blocks),
        "isCompleted": bool(workouts) and all(is_done(block) for block in workouts),
        "totalItems": sum(block["totalItems"] for block in blocks),
        "completedItems": sum(block["completedItems"] for block in blocks),
        "workoutBlocks": [
            {"id": block["_id"], "name": block["name"], "isCompleted": is_done(block)} for block in blocks
        ],
    }


def percentage(blocks: Iterable[Document], first: str, last: str) -> float | None:
    """How many of the workout days from `first` to `last` were completed, in percent; None when there was none.

    A workout day has a block that is not rest and holds an item; it is completed when all items of such blocks are.
    """
    days: dict[str, bool] = {}
    for block in blocks:
        if first <= block["date"] <= last and is_workout(block):
            days[block["date"]] = days.get(block["date"], True) and is_done(block)
    return round(100 * sum(days.values()) / len(days), 1) if days else None
