"""Local dates of clients: the same time is another date in another time zone."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

TIMEZONES = frozenset(available_timezones() - {"Factory", "localtime", "posixrules"})  # these are not time zones
YEARS = range(1900, 2200)  # of all dates and times that are stored
FIRST_DATE, LAST_DATE = date(YEARS[0], 1, 1), date(YEARS[-1], 12, 31)
_MINUTES_OF_DAY = 1440
_MOST_NAMED_DAYS = 6


def zone_of(timezone: str) -> ZoneInfo:
    """Return the time zone with an IANA name; UTC for a stored name that does not exist (any more)."""
    return ZoneInfo(timezone if timezone in TIMEZONES else "UTC")


def local_date(moment: datetime, timezone: str) -> date:
    """Return the date at `moment` (UTC, with or without a time zone) in `timezone`, an IANA name."""
    return moment.replace(tzinfo=UTC).astimezone(zone_of(timezone)).date()


def midnight(day: date, timezone: str) -> datetime:
    """Return the time at which `day` begins in `timezone`: UTC without a time zone, as it is stored.

    A day beyond YEARS, which only damaged documents have, is as the first or the last of these.
    """
    day = min(max(day, FIRST_DATE), LAST_DATE)
    return datetime.combine(day, time.min, zone_of(timezone)).astimezone(UTC).replace(tzinfo=None)


def next_midnight(day: date, timezone: str) -> datetime:
    """Return the time at which the day after `day` begins in `timezone`: UTC without a time zone, as it is stored."""
    return midnight(min(day, LAST_DATE) + timedelta(days=1), timezone)


def at_local_time(day: date, clock: str, timezone: str) -> datetime:
    """Return when it is `clock` (`HH:MM`) on `day` in `timezone`: UTC without a time zone, as it is stored.

    A time that exists twice, because the clocks are changed, is the first one; for one that does not exist, the first
    minute that does.
    """
    zone = zone_of(timezone)
    local = datetime.combine(min(max(day, FIRST_DATE), LAST_DATE), time.fromisoformat(clock))
    for _ in range(_MINUTES_OF_DAY + 1):  # no clock is changed by more
        moment = local.replace(tzinfo=zone).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None) == local:
            return moment.replace(tzinfo=None)
        local += timedelta(minutes=1)
    raise ValueError("there is no such time within a day")


def add_months(day: date, months: int) -> date:
    """Return the same day of the month so many months later; the last of a month that is too short."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def add_years(day: date, years: int) -> date:
    """Return the same day in another year; 28 February for a leap day that it does not have."""
    return add_months(day, 12 * years)


def format_day(day: date) -> str:
    """Return 2026-03-02 as `Mon 2 Mar 2026`."""
    return f"{day:%a} {day.day} {day:%b %Y}"


def name_days(days: Collection[str], today: str) -> str:
    """Return days (YYYY-MM-DD) in words: `2 and 9 Dec`, `30 Nov and 2 Dec`.

    More than six are the first and the last: `2 Dec to 20 Jan 2027 (14 days)`. The year of `today` is left out.
    """
    ordered = sorted(date.fromisoformat(day) for day in {*days})
    if len(ordered) > _MOST_NAMED_DAYS:
        return f"{_join_days([ordered[0], ordered[-1]], today, ' to ')} ({len(ordered)} days)"
    return _join_days(ordered, today, " and ")


def name_period(first: str, last: str, today: str) -> str:
    """Return a period (two days, YYYY-MM-DD) in words: `2 to 9 Dec`; the year of `today` is left out."""
    return _join_days(sorted({date.fromisoformat(first), date.fromisoformat(last)}), today, " to ")


def _join_days(ordered: Sequence[date], today: str, last: str) -> str:
    """Return days with `last` before the last; the month is only after the last of its days, and so is the year."""
    words = []
    for day, following in zip(ordered, [*ordered[1:], None], strict=False):
        is_last = following is None or (following.year, following.month) != (day.year, day.month)
        year = f" {day.year}" if day.year != int(today[:4]) else ""
        words.append(f"{day.day} {day:%b}{year}" if is_last else f"{day.day}")
    return last.join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
