"""Workout titles as an iCalendar file (RFC 5545)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, timedelta

from coaching_service.training.workouts.reports.models import BlockTitle

_REFRESH = timedelta(hours=1)


def write_calendar(name: str, blocks: Sequence[BlockTitle]) -> bytes:
    """Return a calendar called `name` with an event of a whole day for each block: its title and nothing else.

    The same arguments give the same bytes. It is slow: call it on a thread.
    """
    from icalendar import Calendar, Event  # large, and not needed by processes that serve no calendar

    calendar = Calendar()
    calendar.add("prodid", "-//coaching-service//calendar feed//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    calendar.add("x-wr-calname", name)
    calendar.add("refresh-interval", _REFRESH, parameters={"VALUE": "DURATION"})
    for block in blocks:
        event = Event()
        event.add("uid", f"{block['_id']}@coaching-service")
        event.add("dtstamp", block["updatedAt"].replace(tzinfo=UTC))
        event.add("dtstart", date.fromisoformat(block["date"]))
        event.add("summary", block["name"])
        event.add("sequence", block["version"])
        event.add("transp", "TRANSPARENT")  # a workout does not make its day busy
        calendar.add_component(event)
    file: bytes = calendar.to_ical()
    return file
