"""Target days that have workouts already: the choice of what happens on them, and what is there, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from coaching_service.training.schedule.conflicts import day_name, join_some
from coaching_service.training.schedule.models import OnConflict, ScheduleConflict
from coaching_service.web.formatting import format_date, quantity

_NAMED = 5
OUTCOMES: dict[OnConflict, str] = {
    "add": "These days have workouts. The new ones are added after them:",
    "skip": "These days have workouts and stay as they are:",
    "replace": "These days have workouts. What is not done of them is removed:",
}


class TakenDay(TypedDict):
    """A target day that has workouts, and their names."""

    day: str
    names: str


class TakenDays(TypedDict):
    """The target days that have workouts, and a sentence about what happens on them."""

    outcome: str
    days: list[TakenDay]


def describe_taken_days(conflicts: Sequence[ScheduleConflict], on_conflict: OnConflict) -> TakenDays:
    """Return the target days that have workouts, and what happens on them."""
    return {"outcome": OUTCOMES[on_conflict], "days": list_taken_days(conflicts)}


def list_taken_days(conflicts: Sequence[ScheduleConflict]) -> list[TakenDay]:
    """Return the target days that have workouts, by day."""
    by_day: dict[str, list[str]] = {}
    for conflict in conflicts:
        day = format_date(conflict["date"]) if "date" in conflict else day_name(conflict).capitalize()
        by_day.setdefault(day, []).append(conflict["name"])
    return [{"day": day, "names": join_some(names, _NAMED)} for day, names in by_day.items()]


def describe_untouched(conflicts: Sequence[ScheduleConflict], on_conflict: OnConflict) -> str:
    """Return how many target days stayed as they are, to add to a notice: `, 2 days left as they are`; or nothing."""
    count = len({day_name(conflict) for conflict in conflicts}) if on_conflict == "skip" else 0
    return f", {quantity(count, 'day')} left as {'it is' if count == 1 else 'they are'}" if count else ""
