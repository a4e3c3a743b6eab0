"""Dates of what was measured or photographed."""

from __future__ import annotations

import datetime

from coaching_service.core.errors import invalid_field

_FIRST_DATE = "1900-01-01"


def require_past_date(field: str, date: str, today: datetime.date, *, or_tomorrow: bool = False) -> None:
    """Raise InvalidFields for `field` unless a date is from 1900 on and not after the client's `today`, or tomorrow."""
    last, word = (today + datetime.timedelta(days=1), "tomorrow") if or_tomorrow else (today, "today")
    if not _FIRST_DATE <= date <= str(last):
        raise invalid_field(field, f"must be a date from {_FIRST_DATE[:4]} on and not after {word}")
