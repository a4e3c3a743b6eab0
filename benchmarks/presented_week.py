"""A calendar week with the fields that the service derives, for the peers that return the same response.

Only what the benchmark's data has: exercises with planned sets, and tasks. There are no sets to exhaustion, percentages,
circuits, metrics, reminders or older blocks, whose fields the service derives too. The documents are changed in place.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

Document = dict[str, Any]
_NULL_IN_BLOCKS = (
    *("externalId", "assignmentId", "checkInId", "feeling", "plannedDate"),
    *("startTime", "programBlockId", "programBlockVersion", "createdBy", "source"),
)
_NULL_IN_ITEMS = ("pain", "skipped", "swappedFor")
_HIDDEN_IN_ITEMS = ("exerciseIds", "doneExerciseIds", "tally", "isPendingForm", "clientTexts")


def present_week(blocks: list[Document], load_unit: str) -> list[Document]:
    """Add the derived fields to stored blocks of one client, which are sorted by date, and return them.

    `load_unit` is the company's, `kg` or `lb`.
    """
    blocks_of_day: Counter[str] = Counter()
    for block in blocks:
        items, day = block["items"], block["date"]
        for name in _NULL_IN_BLOCKS:
            block.setdefault(name, None)
        block["metadata"] = {entry["key"]: entry["value"] for entry in block.get("metadata") or ()}
        block["order"] = blocks_of_day[day]
        block["isCompleted"] = bool(items) and all(item["isCompleted"] for item in items)
        blocks_of_day[day] += 1
        for order, item in enumerate(items):
            _present_item(item, order, block["version"], load_unit)
    return blocks


def _present_item(item: Document, order: int, version: int, load_unit: str) -> None:
    for name in _HIDDEN_IN_ITEMS:
        item.pop(name, None)
    for name in _NULL_IN_ITEMS:
        item.setdefault(name, None)
    item["order"], item["version"], item["mediaCount"] = order, version, 0
    for planned in item.get("exerciseSets", ()):
        planned["variables"] = _variables(planned, load_unit)


def _variables(planned: Document, load_unit: str) -> list[Document]:
    """The planned quantities of a set, with their units."""
    get, variables = planned.get, []
    low, high = get("minPlannedReps"), get("maxPlannedReps")
    if low is not None or high is not None:
        variables.append({"key": "reps", "unit": "count", "value": _value(low, high)})
    if (load := get("load")) is not None:
        variables.append({"key": "load", "unit": load_unit, "value": {"type": "exact", "value": load}})
    low, high = get("minPlannedSeconds"), get("maxPlannedSeconds")
    if low is not None or high is not None:
        variables.append({"key": "time", "unit": "s", "value": _value(low, high)})
    if (meters := get("plannedMeters")) is not None:
        variables.append({"key": "distance", "unit": "m", "value": {"type": "exact", "value": meters}})
    if (rest := get("rest")) is not None:
        variables.append({"key": "rest", "unit": "s", "value": {"type": "exact", "value": rest}})
    if (rir := get("rir")) is not None:
        variables.append({"key": "rir", "unit": "count", "value": {"type": "exact", "value": rir}})
    if (rpe := get("rpe")) is not None:
        variables.append({"key": "rpe", "unit": "rpe", "value": {"type": "exact", "value": rpe}})
    return variables


def _value(low: float | None, high: float | None) -> Document:
    """A quantity between two values, of which at most one is None."""
    if low is None or high is None or low == high:
        return {"type": "exact", "value": high if low is None else low}
    return {"type": "range", "min": low, "max": high}
