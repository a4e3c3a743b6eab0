"""Workout titles and absences as an iCalendar file (RFC 5545)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, timedelta
from typing import TYPE_CHECKING

from coaching_service.people.availability.models import Availability, AvailabilityKind
from coaching_service.training.workouts.reports.models import BlockTitle

if TYPE_CHECKING:
    from icalendar import Event

_REFRESH = timedelta(hours=1)
_TITLES: dict[AvailabilityKind, str] = {
    "away": "Away",
    "injured": "Injured",
    "ill": "Ill",
    "limited": "Limited training",
}


def write_calendar(
    name: str, blocks: Sequence[BlockTitle], periods: Sequence[Availability], open_until: str | None
) -> bytes:
    """Return a calendar called `name` with an event of a whole day for each block: its title and nothing else.

    And an event for each period of availability, without its note, up to `open_until` if it has no end. The same
    arguments give the same bytes. It is slow: call it on a thread.
    """
    from icalendar import Calendar  # large, and not needed by processes that serve no calendar

    calendar = Calendar()
    calendar.add("prodid", "-//coaching-service//calendar feed//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    calendar.add("x-wr-calname", name)
    calendar.add("refresh-interval", _REFRESH, parameters={"VALUE": "DURATION"})
    for period in periods:
        event = _make_event(period["from"], _TITLES[period["kind"]], period)
        end = period["until"] or open_until or period["from"]
        event.add("dtend", date.fromisoformat(end) + timedelta(days=1))
        calendar.add_component(event)
    for block in blocks:
        calendar.add_component(_make_event(block["date"], block["name"], block))
    file: bytes = calendar.to_ical()
    return file


def _make_event(first: str, title: str, document: BlockTitle | Availability) -> Event:
    from icalendar import Event

    event = Event()
    event.add("uid", f"{document['_id']}@coaching-service")
    event.add("dtstamp", document["updatedAt"].replace(tzinfo=UTC))
    event.add("dtstart", date.fromisoformat(first))
    event.add("summary", title)
    event.add("sequence", document["version"])
    event.add("transp", "TRANSPARENT")  # it does not make its days busy
    return event
