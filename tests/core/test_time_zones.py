"""Dates are the client's local dates, independent of the server."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaching_service.core.auth import Principal
from coaching_service.core.dates import local_date, next_midnight, zone_of
from tests.support.client import CoachClient
from tests.support.training import block_with, feed, history, log, metric_set, metrics_of, read

EAST, WEST = "Pacific/Kiritimati", "Pacific/Pago_Pago"


def utc_time(text: str) -> datetime:
    """A time in UTC as it is stored: without a time zone."""
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("at", "timezone", "expected"),
    [
        # Midnight: the last and the first millisecond.
        ("2026-03-02T23:59:59.999", "UTC", "2026-03-02"),
        ("2026-03-03T00:00:00", "UTC", "2026-03-03"),
        ("2026-03-02T22:59:59.999", "Europe/Madrid", "2026-03-02"),
        ("2026-03-02T23:00:00", "Europe/Madrid", "2026-03-03"),
        ("2026-03-03T04:59:59.999", "America/New_York", "2026-03-02"),
        ("2026-03-03T05:00:00", "America/New_York", "2026-03-03"),
        ("2026-03-02T18:14:59", "Asia/Kathmandu", "2026-03-02"),
        ("2026-03-02T18:15:00", "Asia/Kathmandu", "2026-03-03"),
        # The day the clocks go forward has 23 hours, the day they go back 25.
        ("2026-03-28T23:00:00", "Europe/Madrid", "2026-03-29"),
        ("2026-03-29T21:59:59", "Europe/Madrid", "2026-03-29"),
        ("2026-03-29T22:00:00", "Europe/Madrid", "2026-03-30"),
        ("2026-10-24T22:00:00", "Europe/Madrid", "2026-10-25"),
        ("2026-10-25T22:59:59", "Europe/Madrid", "2026-10-25"),
        ("2026-10-25T23:00:00", "Europe/Madrid", "2026-10-26"),
        ("2026-03-09T03:59:59", "America/New_York", "2026-03-08"),
        ("2026-03-09T04:00:00", "America/New_York", "2026-03-09"),
        ("2026-11-02T04:59:59", "America/New_York", "2026-11-01"),
        # Where the clocks went forward at midnight, that day began at one o'clock.
        ("2018-11-04T02:59:59", "America/Sao_Paulo", "2018-11-03"),
        ("2018-11-04T03:00:00", "America/Sao_Paulo", "2018-11-04"),
        # The date line: three dates at the same time; Samoa omitted a day in 2011.
        ("2026-03-02T10:30:00", EAST, "2026-03-03"),
        ("2026-03-02T10:30:00", "UTC", "2026-03-02"),
        ("2026-03-02T10:30:00", WEST, "2026-03-01"),
        ("2011-12-30T09:59:59", "Pacific/Apia", "2011-12-29"),
        ("2011-12-30T10:00:00", "Pacific/Apia", "2011-12-31"),
        # Years and leap days.
        ("2025-12-31T10:00:00", EAST, "2026-01-01"),
        ("2024-02-28T10:00:00", EAST, "2024-02-29"),
        ("2024-03-01T10:59:59", WEST, "2024-02-29"),
    ],
)
def test_local_date_of_a_time(at: str, timezone: str, expected: str) -> None:
    """Contract 1: dates are the client's local dates; "today" is in the client's `timezone`, else the company's."""
    assert str(local_date(utc_time(at), timezone)) == expected
    assert str(local_date(utc_time(at).replace(tzinfo=UTC), timezone)) == expected


@settings(max_examples=100)
@given(st.datetimes(utc_time("1990-01-01"), utc_time("2090-01-01")), st.sampled_from(sorted(available_timezones())))
def test_local_date_differs_by_at_most_a_day(at: datetime, timezone: str) -> None:
    assert abs(local_date(at, timezone) - at.date()) <= timedelta(days=1)


async def test_any_iana_time_zone_is_accepted(coach: CoachClient) -> None:
    """Contract 2: `timezone` (IANA)."""
    ana = await coach.create_customer("Ana", timezone="EST5EDT")
    for zone in ("CET", "Japan", "Europe/Kyiv", "Etc/GMT+5", "UTC"):
        (await coach.patch(f"/coach/customers/{ana['_id']}", {"timezone": zone})).ok()
    for other in ("localtime", "Factory", "europe/madrid", "+02:00", ""):
        (await coach.patch(f"/coach/customers/{ana['_id']}", {"timezone": other})).refused(400, "timezone")


def test_today_is_in_the_time_zone_of_the_client_or_else_of_the_company(owner: Principal) -> None:
    """Contract 1: "today" is in the client's `timezone`, else the company's."""

    def require_today(timezone: str, given: str | None) -> None:
        earliest = local_date(datetime.now(UTC), timezone)
        today = owner.today(given)
        assert earliest <= today <= local_date(datetime.now(UTC), timezone)

    for timezone in (EAST, WEST, "Europe/Madrid", "Asia/Kathmandu"):
        require_today(timezone, timezone)
    require_today(owner.company.timezone, None)
    assert owner.today(EAST) - owner.today(WEST) in (timedelta(days=1), timedelta(days=2)), "25 hours apart"


@pytest.mark.parametrize("timezone", [EAST, WEST, None])
async def test_session_remains_on_its_date_in_every_time_zone(coach: CoachClient, timezone: str | None) -> None:
    """Contract 7: a session counts on its block's `date`, not on the time of the log."""
    ana, body = await coach.create_customer(timezone=timezone), await metric_set(coach)
    client = await coach.as_client(ana)
    today = coach.ctx.caller.today(timezone)
    for days in (-2, -1, 0):
        day = str(today + timedelta(days=days))
        block = await block_with(coach, ana, metrics_of(body), date=day)
        value = {"metricId": body["metrics"][0]["_id"], "value": 70 + days}
        (await log(coach, block, block["items"][0], values=[value])).ok()
        assert (await read(coach, block))["date"] == day
        [own] = (await client.get("/customer/wblock", startDate=day, endDate=day)).ok()
        assert own["_id"] == block["_id"]
        assert (await history(coach, ana, body))[-1] == {"date": day, "value": 70 + days}
        assert (await feed(coach, ana))[0]["data"]["day"] == day


async def test_change_of_time_zone_moves_no_session(coach: CoachClient) -> None:
    ana = await coach.create_customer(timezone=EAST)
    await coach.schedule(ana)
    before = await coach.calendar(ana)
    (await coach.patch(f"/coach/customers/{ana['_id']}", {"timezone": WEST})).ok()
    assert await coach.calendar(ana) == before
    (await coach.patch(f"/coach/customers/{ana['_id']}", {"timezone": "Mars/Olympus"})).refused(400, "timezone")


@pytest.mark.parametrize(
    ("day", "timezone", "ends"),
    [
        ("2026-03-02", "UTC", "2026-03-03T00:00"),
        ("2026-03-28", "Europe/Madrid", "2026-03-28T23:00"),  # the last one in winter time
        ("2026-03-29", "Europe/Madrid", "2026-03-29T22:00"),  # 23 hours later
        ("2026-10-25", "Europe/Madrid", "2026-10-25T23:00"),  # 25 hours after the one before
        ("2026-03-07", "America/Havana", "2026-03-08T05:00"),  # the 8th begins at 01:00
        ("2026-10-31", "America/Havana", "2026-11-01T04:00"),  # the 1st has midnight twice: the first begins it
        ("2026-04-23", "Africa/Cairo", "2026-04-23T22:00"),  # the 24th begins at 01:00
        ("2026-03-02", "Pacific/Kiritimati", "2026-03-02T10:00"),
        ("2026-03-02", "Pacific/Pago_Pago", "2026-03-03T11:00"),
        ("2026-03-02", "Asia/Kathmandu", "2026-03-02T18:15"),
    ],
)
def test_local_day_ends_when_the_next_begins(day: str, timezone: str, ends: str) -> None:
    """Contract 1: dates are the client's local dates; stored figures are valid until the client's day ends."""
    end = next_midnight(date.fromisoformat(day), timezone)
    assert end == datetime.fromisoformat(ends)
    assert local_date(end, timezone) == date.fromisoformat(day) + timedelta(days=1)
    assert local_date(end - timedelta(seconds=1), timezone) == date.fromisoformat(day)


async def test_a_stored_zone_that_does_not_exist_is_read_as_utc(coach: CoachClient) -> None:
    assert [zone_of(name).key for name in ("Mars/Olympus", "Europe", "", "../UTC")] == ["UTC"] * 4
    await coach.create_customer("Ana")
    stored = {"$set": {"timezone": "Mars/Olympus"}}
    await coach.ctx.db["companies"].update_one({"_id": coach.ctx.company_id}, stored)
    assert await coach.names() == ["Ana"]
    assert (await coach.get("/coach/compliance", **{"from": "2026-03-02", "to": "2026-03-02"})).status == 200
    assert (await coach.get("/coach/account")).ok()["timezone"] == "Mars/Olympus"
