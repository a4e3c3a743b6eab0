"""On which dates a check-in takes place, and when its next dates have to be scheduled; free of the database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from coaching_service.core.dates import next_midnight
from coaching_service.progress.check_ins.models import Recurrence

# Check-ins are scheduled on this many days: the client's today and those after it.
DAYS_AHEAD = 28
_WEEK = 7


@dataclass(frozen=True)
class SchedulePlan:
    """What to schedule of a check-in now.

    `dates`: the dates that get a block. `scheduled_until`: the last date that is then taken care of; None if none is.
    `due_at`: when the next date has to be scheduled, UTC without a time zone; None if there is none.
    """

    dates: list[str]
    scheduled_until: str | None
    due_at: datetime | None


def plan_schedule(recurrence: Recurrence, scheduled_until: str | None, today: date, timezone: str) -> SchedulePlan:
    """Return what to schedule on the client's local date `today` (in `timezone`, an IANA name).

    Dates that have passed, and those up to `scheduled_until`, are left out.
    """
    last = today + timedelta(days=DAYS_AHEAD - 1)
    first = today
    if scheduled_until is not None:
        first = max(first, date.fromisoformat(scheduled_until) + timedelta(days=1))
        last = max(last, first - timedelta(days=1))
    dates: list[str] = []
    for day in iterate_dates(recurrence, first):
        if day > last:
            opens = day - timedelta(days=DAYS_AHEAD)
            return SchedulePlan(dates, str(last), next_midnight(opens, timezone))
        dates.append(str(day))
    return SchedulePlan(dates, str(last), None)


def iterate_dates(recurrence: Recurrence, first: date) -> Iterator[date]:
    """Yield the dates of a check-in from `first` on, ascending."""
    start = date.fromisoformat(recurrence["startDate"]).toordinal()
    end = date.fromisoformat(recurrence["until"] or str(date.max)).toordinal()
    step = recurrence["everyDays"] or _WEEK
    if recurrence["weekday"] is not None:
        start += (recurrence["weekday"] - date.fromordinal(start).isoweekday()) % _WEEK
    steps_before = max(0, -((start - first.toordinal()) // step))
    for number in range(start + steps_before * step, end + 1, step):
        yield date.fromordinal(number)
