"""What loads were before the first of several calls: they were changed, or removed from a day and added to it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from coaching_service.integrations.proposals._spending_store import CallSpending


def find_original(calls: Sequence[CallSpending], of: str, load: float) -> float:
    """Return what a load was before the first of these calls, the oldest first."""
    for index in reversed(range(len(calls))):
        earlier = [each["before"] for each in calls[index]["loads"] if each["of"] == of and each["after"] == load]
        for each in calls[index]["dayLoads"]:
            if each["of"] == of and each["isAdded"] and load in each["loads"]:
                removed, _ = compare_day(calls[: index + 1], of, each["date"])
                earlier += [max(removed)] if removed else []
        load = min(earlier, default=load)
    return load


def compare_day(calls: Sequence[CallSpending], of: str, date: str) -> tuple[list[float], list[float]]:
    """Return the loads that calls have removed from a day, as they were before the first, and those they have added.

    What was added and removed again is in neither.
    """
    removed: list[float] = []
    added: Counter[float] = Counter()
    for index, call in enumerate(calls):
        of_day = [each for each in call["dayLoads"] if (each["of"], each["date"]) == (of, date)]
        for each in sorted(of_day, key=lambda entry: entry["isAdded"]):
            if each["isAdded"]:
                added.update(each["loads"])
                continue
            for load in each["loads"]:
                known = load if added[load] else _before_changes(calls[:index], of, load)
                if added[known]:
                    added[known] -= 1
                else:
                    removed.append(known)
    return removed, list(added.elements())


def _before_changes(calls: Sequence[CallSpending], of: str, load: float) -> float:
    """Return what a load was before it was changed, without what was removed and added."""
    for call in reversed(calls):
        earlier = [each["before"] for each in call["loads"] if each["of"] == of and each["after"] == load]
        load = min(earlier, default=load)
    return load
