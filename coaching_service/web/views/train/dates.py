"""Dates in the words of the pages for clients."""

from __future__ import annotations

from datetime import date

_NEAR = {-1: "Yesterday", 0: "Today", 1: "Tomorrow"}


def label_day(day: str | date, today: date, *, within: bool = False) -> str:
    """Return a date as `Today`, `Yesterday`, `Tomorrow`, `Mon 2 Mar`, or of another year `Mon 2 Mar 2025`.

    `within`: the date is not the first word of its sentence, so `today` is in small letters.
    """
    each = date.fromisoformat(day) if isinstance(day, str) else day
    near = _NEAR.get((each - today).days)
    year = "" if each.year == today.year else f" {each.year}"
    if near:
        return near.lower() if within else near
    return f"{each:%a} {each.day} {each:%b}{year}"


def label_month(month: str) -> str:
    """Return a month (`YYYY-MM`) as `March 2026`."""
    first = date.fromisoformat(f"{month}-01")
    return f"{first:%B} {first.year}"
