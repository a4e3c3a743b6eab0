"""When notifications are sent: local times across changes of the clocks, quiet hours, and what is too late."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from coaching_service.core.dates import at_local_time
from coaching_service.people.notification_settings import Kind, NotificationSettings, complete
from coaching_service.people.notifications import find_end_of_quiet, find_time

MADRID, NEW_YORK = "Europe/Madrid", "America/New_York"


@pytest.mark.parametrize(
    ("day", "clock", "timezone", "expected"),
    [
        ("2026-03-02", "09:00", MADRID, "2026-03-02 08:00"),
        ("2026-03-29", "01:59", MADRID, "2026-03-29 00:59"),
        ("2026-03-29", "02:00", MADRID, "2026-03-29 01:00"),  # does not exist: 03:00 is the next minute
        ("2026-03-29", "02:30", MADRID, "2026-03-29 01:00"),
        ("2026-03-29", "02:59", MADRID, "2026-03-29 01:00"),
        ("2026-03-29", "03:00", MADRID, "2026-03-29 01:00"),
        ("2026-10-25", "02:30", MADRID, "2026-10-25 00:30"),  # exists twice: the first
        ("2026-10-25", "03:00", MADRID, "2026-10-25 02:00"),
        ("2026-11-01", "01:30", NEW_YORK, "2026-11-01 05:30"),
        ("2026-04-05", "01:45", "Australia/Lord_Howe", "2026-04-04 14:45"),  # by half an hour
        ("2026-10-04", "02:15", "Australia/Lord_Howe", "2026-10-03 15:30"),
        ("2011-12-30", "12:00", "Pacific/Apia", "2011-12-30 10:00"),  # a day that does not exist
        ("2026-09-06", "00:30", "America/Santiago", "2026-09-06 04:00"),  # midnight does not exist
    ],
)
def test_local_times(day: str, clock: str, timezone: str, expected: str) -> None:
    assert at_local_time(date.fromisoformat(day), clock, timezone) == datetime.fromisoformat(expected)


def quiet(begin: str | None, end: str | None) -> NotificationSettings:
    return complete({"quietFrom": begin, "quietTo": end})


@pytest.mark.parametrize(
    ("begin", "end", "moment", "expected"),
    [
        (None, None, "2026-03-02 02:00", None),
        ("22:00", None, "2026-03-02 22:00", None),
        ("22:00", "22:00", "2026-03-02 21:00", None),
        ("22:00", "07:00", "2026-03-02 20:59", None),
        ("22:00", "07:00", "2026-03-02 21:00", "2026-03-03 06:00"),
        ("22:00", "07:00", "2026-03-03 05:59", "2026-03-03 06:00"),
        ("22:00", "07:00", "2026-03-03 06:00", None),
        ("13:00", "15:00", "2026-03-02 12:30", "2026-03-02 14:00"),
        ("13:00", "15:00", "2026-03-02 14:00", None),
        ("22:00", "02:30", "2026-03-29 00:30", "2026-03-29 01:00"),  # ends at a time that does not exist
        ("22:00", "02:30", "2026-10-25 00:10", "2026-10-25 00:30"),  # at one that exists twice: the first
        ("22:00", "02:30", "2026-10-25 01:10", None),
        ("22:00", "07:00", "2026-10-25 01:10", "2026-10-25 06:00"),
    ],
)
def test_end_of_quiet_hours(begin: str | None, end: str | None, moment: str, expected: str | None) -> None:
    ends_at = find_end_of_quiet(datetime.fromisoformat(moment), quiet(begin, end), MADRID)
    assert ends_at == (None if expected is None else datetime.fromisoformat(expected))


@pytest.mark.parametrize(
    ("kind", "due", "at", "expected"),
    [
        ("reminders", "12:00", "12:00", "12:00"),
        ("reminders", "12:00", "14:00", "14:00"),
        ("reminders", "12:00", "14:01", None),
        ("messages", "12:00", "20:00", "20:00"),
        ("reminders", "05:00", "05:00", "06:00"),  # until the end of the quiet hours
        ("reminders", "05:00", "08:00", "08:00"),  # not late: it was to be sent at 6:00
        ("reminders", "05:00", "08:01", None),
        ("reminders", "20:58", "21:00", None),  # the day is over at the end of the quiet hours
        ("reminders", "22:00", "22:00", None),
        ("messages", "22:00", "22:00", "06:00"),
    ],
)
def test_time_of_a_notification(kind: Kind, due: str, at: str, expected: str | None) -> None:
    """In Madrid in winter, with quiet hours from 22:00 to 7:00; what has a time is pointless after its day."""
    day = datetime.fromisoformat("2026-03-02")
    due_at, moment = (datetime.fromisoformat(f"2026-03-02 {clock}") for clock in (due, at))
    valid_until = None if kind == "messages" else day + timedelta(hours=23)
    expected_at = None
    if expected is not None:
        expected_at = datetime.fromisoformat(f"2026-03-02 {expected}")
        expected_at += timedelta(days=1) if expected_at < moment else timedelta(0)
    assert find_time(kind, due_at, valid_until, moment, quiet("22:00", "07:00"), MADRID) == expected_at
