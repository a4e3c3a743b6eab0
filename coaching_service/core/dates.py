"""Dates as a client lives them: a moment is another date in another time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


def local_date(moment: datetime, timezone: str) -> date:
    """The date at `moment` (UTC, with or without a zone attached) where `timezone`, an IANA name, is kept."""
    return moment.replace(tzinfo=UTC).astimezone(ZoneInfo(timezone)).date()


def next_midnight(day: date, timezone: str) -> datetime:
    """The moment (UTC, no zone attached, as it is stored) at which the day after `day` begins where `timezone` is."""
    begins = datetime.combine(day + timedelta(days=1), time.min, ZoneInfo(timezone))
    return begins.astimezone(UTC).replace(tzinfo=None)
