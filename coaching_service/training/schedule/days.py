"""The days of a schedule: dates of a calendar, or numbers of a program."""

from __future__ import annotations

from datetime import date

from coaching_service.core.errors import invalid_field
from coaching_service.training.programs.models import LAST_DAY
from coaching_service.training.schedule.models import Day
from coaching_service.training.workouts.blocks.service import shift_date


def days_between(first: Day, last: Day) -> int:
    """Return how many days `last` is after `first`."""
    if isinstance(first, int) or isinstance(last, int):
        return int(last) - int(first)
    return (date.fromisoformat(last) - date.fromisoformat(first)).days


def add_days(day: Day, count: int, field: str) -> Day:
    """Return the day that is `count` later. Raises InvalidFields, naming `field`, if there is no such day."""
    if isinstance(day, str):
        return shift_date(day, count, field)
    if day + count > LAST_DAY:
        raise invalid_field(field, f"leaves the program, whose last day is {LAST_DAY}", code="OUT_OF_RANGE")
    return day + count


def last_day_of(first: Day, length: int) -> Day:
    """Return the last of `length` days from `first` on, or the last day there is."""
    if isinstance(first, int):
        return min(first + length - 1, LAST_DAY)
    return str(date.fromordinal(min(date.fromisoformat(first).toordinal() + length - 1, date.max.toordinal())))
