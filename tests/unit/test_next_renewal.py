"""When the figures of a client are due again: in the first hours of the local day, at another time for each company."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta

import pytest
from bson import ObjectId

from coaching_service.core.dates import local_date
from coaching_service.people.customers.derived_figures import next_renewal

COMPANIES = [ObjectId() for _ in range(1_000)]
SPREAD = timedelta(hours=3)


@pytest.mark.parametrize(
    ("today", "timezone", "midnight"),
    [
        (date(2026, 11, 25), "UTC", "2026-11-26T00:00"),
        (date(2026, 11, 25), "Pacific/Kiritimati", "2026-11-25T10:00"),
        (date(2026, 3, 28), "Europe/Berlin", "2026-03-28T23:00"),
        (date(2026, 3, 29), "Europe/Berlin", "2026-03-29T22:00"),  # the day has 23 hours
        (date(2026, 10, 24), "Europe/Berlin", "2026-10-24T22:00"),
        (date(2026, 10, 25), "Europe/Berlin", "2026-10-25T23:00"),  # the day has 25 hours
        (date(2026, 4, 23), "Africa/Cairo", "2026-04-23T22:00"),  # the next day begins at 1:00
        (date(2026, 10, 31), "America/Havana", "2026-11-01T04:00"),  # midnight comes twice
    ],
)
def test_it_is_in_the_first_three_hours_of_the_local_day(today: date, timezone: str, midnight: str) -> None:
    first = datetime.fromisoformat(midnight)
    times = [next_renewal(company, today, timezone) for company in COMPANIES]
    assert all(first <= time < first + SPREAD for time in times)
    assert {local_date(time, timezone) for time in times} == {today + timedelta(days=1)}


def test_companies_are_spread_evenly_and_each_keeps_its_time() -> None:
    times = [next_renewal(company, date(2026, 11, 25), "UTC") for company in COMPANIES]
    quarters = Counter((time - datetime(2026, 11, 26)) // (SPREAD / 4) for time in times)  # noqa: DTZ001 - UTC without a time zone
    assert all(150 < quarters[number] < 350 for number in range(4))
    assert times == [next_renewal(company, date(2026, 11, 25), "UTC") for company in COMPANIES]
