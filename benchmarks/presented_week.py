"""A calendar week in the form in which the service returns it, as a peer would derive it: plainly, in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

Document = dict[str, Any]
_BLOCK_DEFAULTS = {"externalId": None, "assignmentId": None, "checkInId": None, "feeling": None}
_ITEM_DEFAULTS = {"pain": None, "skipped": None, "swappedFor": None}
_ITEM_HIDES = ("exerciseIds", "doneExerciseIds", "tally", "isPendingForm", "clientTexts")


def present_week(blocks: list[Document], load_unit: str) -> list[Document]:
    """Add what the service derives to stored blocks of one client, in the order of their days, and return them."""
    blocks_of_day: Counter[str] = Counter()
    for block in blocks:
        items = block["items"]
        day = block["date"]
        block |= {
            **{name: block.get(name) for name in _BLOCK_DEFAULTS},
            "metadata": {entry["key"]: entry["value"] for entry in block.get("metadata") or ()},
            "order": blocks_of_day[day],
            "isCompleted": bool(items) and all(item["isCompleted"] for item in items),
        }
        blocks_of_day[day] += 1
        for order, item in enumerate(items):
            _present_item(item, order, block["version"], load_unit)
    return blocks


def _present_item(item: Document, order: int, version: int, load_unit: str) -> None:
    for name in _ITEM_HIDES:
        item.pop(name, None)
    for name, value in _ITEM_DEFAULTS.items():
        item.setdefault(name, value)
    item["order"], item["version"] = order, version
    for planned in item.get("exerciseSets", ()):
        planned["variables"] = list(_variables(planned, load_unit))


def _variables(planned: Document, load_unit: str) -> Iterable[Document]:
    """The planned quantities of a set, with their units."""
    get = planned.get
    for key, unit, low, high in (
        ("reps", "count", get("minPlannedReps"), get("maxPlannedReps")),
        ("load", load_unit, get("load"), None),
        ("time", "s", get("minPlannedSeconds"), get("maxPlannedSeconds")),
        ("distance", "m", get("plannedMeters"), None),
        ("rest", "s", get("rest"), None),
        ("rir", "count", get("rir"), None),
        ("rpe", "rpe", get("rpe"), None),
    ):
        if low is None and high is None:
            continue
        if low is None or high is None or low == high:
            yield {"key": key, "unit": unit, "value": {"type": "exact", "value": high if low is None else low}}
        else:
            yield {"key": key, "unit": unit, "value": {"type": "range", "min": low, "max": high}}
