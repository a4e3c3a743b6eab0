"""When reminders have to be sent, found by looking at every minute: it shares no code with the service."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

QUIET = ("22:00", "06:30")


@dataclass(frozen=True)
class Reminder:
    """A reminder of a client on a local date at a time of day."""

    day: date
    clock: str


@dataclass(frozen=True)
class Plan:
    """A client: the zone, whether there are quiet hours, the days of absence, and the reminders."""

    zone: str
    is_quiet: bool
    away: Sequence[date]
    reminders: Sequence[Reminder]


class Minutes:
    """Every minute of a zone from one UTC day to another, with the local time that it has."""

    def __init__(self, zone: str, first: date, last: date) -> None:
        begin = datetime.combine(first, datetime.min.time(), UTC)
        count = (last - first).days * 24 * 60
        self.utc = [begin + timedelta(minutes=number) for number in range(count)]
        self.local = [f"{moment.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M}" for moment in self.utc]
        self.latest: list[str] = []  # the latest local time so far: it does not go back with the clocks
        for local in self.local:
            self.latest.append(max(local, self.latest[-1] if self.latest else ""))

    def find(self, reminder: Reminder, *, is_quiet: bool) -> datetime | None:
        """Return when a reminder has to be sent, without a time zone; None if its day is over by then."""
        index = bisect_left(self.latest, f"{reminder.day} {reminder.clock}")
        while is_quiet and not QUIET[1] <= self.local[index][-5:] < QUIET[0]:
            index += 1
        is_over = self.local[index][:10] != str(reminder.day)
        return None if is_over else self.utc[index].replace(tzinfo=None)
