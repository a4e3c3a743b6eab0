"""Which days of their calendar a client sees."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.training import Json, client_path, hide, show

WEEK = [f"2026-03-{day:02}" for day in range(2, 9)]


async def days(coach: CoachClient, customer: Json, start: str = MONDAY, end: str = SUNDAY) -> dict[str, bool]:
    listed = (await coach.get(client_path(customer, "visibility"), startDate=start, endDate=end)).ok()
    return {day["date"]: day["isVisible"] for day in listed}


async def test_days_are_visible_by_default(coach: CoachClient) -> None:
    """Contract 5: plain array of `{date, isVisible}`, every day of the range, true unless set."""
    ana = await coach.create_customer()
    assert await days(coach, ana) == dict.fromkeys(WEEK, True)

    hidden = await hide(coach, ana, TUESDAY, "2026-03-04")

    assert hidden == [{"date": day, "isVisible": False} for day in (TUESDAY, "2026-03-04")]
    expected = dict.fromkeys(WEEK, True) | dict.fromkeys((TUESDAY, "2026-03-04"), False)
    assert await days(coach, ana) == expected
    assert list(await days(coach, ana)) == WEEK, "in the order of the days"
    assert await show(coach, ana, "2026-03-04", SUNDAY) == [{"date": day, "isVisible": True} for day in WEEK[2:]]
    assert await days(coach, ana) == dict.fromkeys(WEEK, True) | {TUESDAY: False}
    await hide(coach, ana, MONDAY, SUNDAY)
    await hide(coach, ana, MONDAY, SUNDAY)
    assert await days(coach, ana) == dict.fromkeys(WEEK, False), "repeating is harmless"
    body = {"startDate": MONDAY, "endDate": SUNDAY, "isVisible": False}
    assert "X-Change-Id" not in (await coach.put(client_path(ana, "visibility"), body)).headers, "and is no change"


async def test_range_crosses_years_and_leap_days(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    assert list(await days(coach, ana, "2024-02-28", "2024-03-01")) == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert list(await days(coach, ana, "2025-12-31", "2026-01-01")) == ["2025-12-31", "2026-01-01"]
    assert list(await days(coach, ana, "9999-12-30", "9999-12-31")) == ["9999-12-30", "9999-12-31"]
    assert len(await days(coach, ana, "2023-01-01", "2025-12-31")) == 1_096, "three complete years"


async def test_range_is_limited_to_three_years(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    assert len(await hide(coach, ana, "2023-01-01", "2026-01-04")) == 1_100
    path = client_path(ana, "visibility")
    for start, end in [("2023-01-01", "2026-01-05"), ("0001-01-01", "9999-12-31")]:
        (await coach.get(path, startDate=start, endDate=end)).refused(400, "endDate")
        body = {"startDate": start, "endDate": end, "isVisible": False}
        (await coach.put(path, body)).refused(400, "endDate")
    assert await coach.ctx.db["hiddenDays"].count_documents({"companyId": coach.ctx.company_id}) == 1_100


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"startDate": SUNDAY, "endDate": MONDAY}, "endDate"),
        ({"startDate": None}, "startDate"),
        ({"endDate": "2026-02-29"}, "endDate"),
        ({"startDate": "2026-3-2"}, "startDate"),
        ({"isVisible": None}, "isVisible"),
        ({"isVisible": "true"}, "isVisible"),
    ],
)
async def test_invalid_range_is_rejected(coach: CoachClient, wrong: dict[str, Any], field: str) -> None:
    """Contract 1: date ranges include both ends; an end before its start is 400."""
    ana = await coach.create_customer()
    body = {"startDate": MONDAY, "endDate": SUNDAY, "isVisible": False} | wrong
    (await coach.put(client_path(ana, "visibility"), body)).refused(400, field)
    complete = {name: value for name, value in body.items() if name != "isVisible" and value is not None}
    if "isVisible" not in wrong:
        (await coach.get(client_path(ana, "visibility"), **complete)).refused(400, field)
    assert await days(coach, ana) == dict.fromkeys(WEEK, True)


async def test_days_are_hidden_from_one_client_only(coach: CoachClient, other_company: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    await hide(coach, ana, MONDAY, SUNDAY)
    assert await days(coach, bo) == dict.fromkeys(WEEK, True)
    body = {"startDate": MONDAY, "endDate": SUNDAY, "isVisible": True}
    (await other_company.put(client_path(ana, "visibility"), body)).refused(404, "Customer")
    (await coach.put(client_path({"_id": UNKNOWN}, "visibility"), body)).refused(404, "Customer")
    assert await days(coach, ana) == dict.fromkeys(WEEK, False)


async def test_concurrent_changes_leave_a_consistent_visibility(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for _ in range(3):
        await asyncio.gather(*((show if n % 2 else hide)(coach, ana, MONDAY, SUNDAY) for n in range(8)))
        assert set((await days(coach, ana)).values()) in ({True}, {False}), "each setting is complete"


async def test_coach_sees_hidden_days(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await coach.schedule(ana)
    await hide(coach, ana, MONDAY, MONDAY)
    assert len(await coach.calendar(ana)) == 1
