"""The periods that pages with charts show, up to today."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, TypedDict

from coaching_service.core.fields import Default
from coaching_service.core.validation import Choice

PERIODS = {"4": "4 weeks", "13": "3 months", "26": "6 months", "52": "1 year"}


class PeriodQuery(TypedDict):
    """The number of weeks to show."""

    weeks: Annotated[str, Choice(*PERIODS), Default("13")]


def first_monday(today: date, weeks: int) -> date:
    """Return the Monday on which a period of `weeks` calendar weeks begins that includes `today` in its last week."""
    return today - timedelta(days=today.weekday() + 7 * (weeks - 1))


def first_day(today: date, weeks: int) -> date:
    """Return the first day of measurements and photos in a period: 13 weeks are never less than three months."""
    return today - timedelta(days=7 * weeks + 1)
