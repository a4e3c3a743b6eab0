"""Workload by period (contract 7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import NewCompany
from tests.support.client import MONDAY, SUNDAY, TUESDAY, CoachClient
from tests.support.results import (
    WARM_UP,
    WORK,
    circuit_set,
    clear_log,
    completed_sets,
    incomplete_set,
    rate_session,
    read_progress,
    read_workload,
    train,
)
from tests.support.training import Json, block_with, circuit_of, exercise_of, log, move, path_of, task

EMPTY: Json = {"sessions": 0, "sets": 0, "reps": 0, "volumeLoad": 0, "sessionLoad": None}


def figures(period: Json) -> tuple[Any, ...]:
    return tuple(period[name] for name in EMPTY)


def ratio(period: Json) -> tuple[float | None, str]:
    return period["acuteChronicRatio"], period["ratioOf"]


async def create_session(
    coach: CoachClient, customer: Json, date: str, rpe: float | None, minutes: float | None, *items: Json
) -> Json:
    """Create a session of one task or of `items`, completed and rated."""
    block = await block_with(coach, customer, *(items or [task()]), date=date)
    for item in block["items"]:
        (await log(coach, block, item)).ok()
    if rpe is not None or minutes is not None:
        await rate_session(coach, block, rpe, minutes)
    return block


async def test_figures_of_a_day_are_the_sums_of_its_sessions(coach: CoachClient) -> None:
    """By hand: 8 x 60 + 6 x 70 = 900 with 7 x 50 = 350; 10 x 20 + 8 x 20 = 360 with 5 x 24 = 120."""
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    first = await block_with(coach, ana, exercise_of(squat, WARM_UP, WORK, WORK, WORK), task(), date=TUESDAY)
    done = [*completed_sets((12, 20), (8, 60)), incomplete_set(8, 60), *completed_sets((6, 70))]
    (await log(coach, first, first["items"][0], customerSets=done)).ok()
    await rate_session(coach, first, 7, 50)
    second = await block_with(coach, ana, circuit_of(squat, press), date=TUESDAY)
    laps = [circuit_set(1, squat, 10, 20), circuit_set(1, press, 5), circuit_set(2, squat, 8, 20)]
    (await log(coach, second, second["items"][0], customerSets=laps)).ok()
    await rate_session(coach, second, 5, 24)

    answer = (await read_progress(coach, ana, "workload", startDate=MONDAY, endDate="2026-03-04")).ok()

    assert (answer["loadUnit"], answer["groupBy"]) == ("kg", "day"), "grouped by day by default"
    assert [period["date"] for period in answer["periods"]] == [MONDAY, TUESDAY, "2026-03-04"]
    before, day, after = answer["periods"]
    assert figures(day) == (2, 5, 37, 1260, 470)
    assert figures(before) == figures(after) == tuple(EMPTY.values())
    (await read_progress(coach, ana, "workload", startDate=MONDAY, endDate=SUNDAY, groupBy="year")).refused(
        400, "groupBy"
    )


async def test_loads_are_in_the_unit_of_the_company(new_company: NewCompany) -> None:
    coach = await new_company(load_unit="lb")
    ana = await coach.create_customer()
    assert (await read_progress(coach, ana, "workload", startDate=MONDAY, endDate=MONDAY)).ok()["loadUnit"] == "lb"


@pytest.mark.parametrize(
    ("rpe", "minutes", "load"), [(7, 50, 350), (6.5, 30, 195), (0, 45, 0), (8, None, None), (None, 60, None)]
)
async def test_session_load_is_rpe_times_minutes(
    coach: CoachClient, rpe: float | None, minutes: float | None, load: float | None
) -> None:
    """Contract 7: session load = sessionRpe x durationMinutes; null unless both are recorded."""
    ana = await coach.create_customer()
    await create_session(coach, ana, MONDAY, rpe, minutes)
    await create_session(coach, ana, MONDAY, None, None)
    [day] = await read_workload(coach, ana, MONDAY, MONDAY)
    assert figures(day) == (2, 0, 0, 0, load)


async def test_session_needs_a_working_set_or_a_completed_item_without_sets(coach: CoachClient) -> None:
    """Contract 7: at least one completed set that is not warm-up, or a completed item of another type."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    only_rated, partly_done, cleared, _planned, task_done, only_warm_up, without_sets = [
        await block_with(coach, ana, exercise_of(squat, WARM_UP, WORK), task(), date=f"2026-03-{day:02}")
        for day in range(2, 9)
    ]
    await rate_session(coach, only_rated, 4, 30)
    sets = [incomplete_set(12, 20), *completed_sets((8, 60))]
    (await log(coach, partly_done, partly_done["items"][0], isCompleted=False, customerSets=sets)).ok()
    (await log(coach, cleared, cleared["items"][0], customerSets=sets)).ok()
    await clear_log(coach, cleared)
    (await coach.patch(path_of(task_done), {"isRest": True})).ok()
    (await log(coach, task_done, task_done["items"][1])).ok()
    (await log(coach, only_warm_up, only_warm_up["items"][0], customerSets=completed_sets((12, 20)))).ok()
    await rate_session(coach, only_warm_up, 5, 40)
    (await log(coach, without_sets, without_sets["items"][0])).ok()

    days = await read_workload(coach, ana, MONDAY, SUNDAY)

    assert [day["sessions"] for day in days] == [0, 1, 0, 0, 1, 0, 0]
    assert figures(days[1]) == (1, 1, 8, 480, None)
    assert figures(days[5]) == tuple(EMPTY.values()), "warm-up only, although it is rated"


# Sessions with their load (RPE x minutes); by hand for each grouping, over the ends of weeks, months, years.
SESSIONS = [
    ("2025-12-28", 5, 10),  # a Sunday: 50
    ("2025-12-29", 5, 20),  # Monday: 100
    ("2025-12-31", 5, 30),  # 150
    ("2026-01-01", 5, 40),  # 200
    ("2026-01-04", 5, 50),  # Sunday: 250
    ("2026-01-05", 5, 60),  # Monday: 300
    ("2026-02-28", 5, 70),  # Saturday: 350
    ("2026-03-01", 5, 80),  # Sunday: 400
]
GROUPED: list[tuple[str, str, str, list[tuple[str, int | None]]]] = [
    ("2025-12-28", "2026-01-05", "week", [("2025-12-22", 50), ("2025-12-29", 700), ("2026-01-05", 300)]),
    ("2025-12-30", "2026-01-03", "week", [("2025-12-29", 350)]),  # only the days of the range
    ("2025-12-31", "2026-01-01", "month", [("2025-12-01", 150), ("2026-01-01", 200)]),
    ("2025-12-01", "2026-03-31", "month", [("2025-12-01", 300), ("2026-01-01", 750), ("2026-02-01", 350)]),
    ("2026-01-10", "2026-02-10", "month", [("2026-01-01", None), ("2026-02-01", None)]),
    ("2026-02-27", "2026-03-02", "week", [("2026-02-23", 750), ("2026-03-02", None)]),
    ("2026-02-27", "2026-03-02", "day", [("2026-02-27", None), ("2026-02-28", 350), ("2026-03-01", 400)]),
    ("2026-01-01", "2026-01-01", "day", [("2026-01-01", 200)]),
]


async def test_weeks_begin_on_monday_and_months_on_the_first(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for date, rpe, minutes in SESSIONS:
        await create_session(coach, ana, date, rpe, minutes)
    for start, end, group_by, expected in GROUPED:
        periods = await read_workload(coach, ana, start, end, groupBy=group_by)
        assert [(period["date"], period["sessionLoad"]) for period in periods][: len(expected)] == expected
        loads = [rpe * minutes for date, rpe, minutes in SESSIONS if start <= date <= end]
        assert sum(period["sessionLoad"] or 0 for period in periods) == sum(loads), "each session once"
        assert sum(period["sessions"] for period in periods) == len(loads)
    assert len(await read_workload(coach, ana, "2024-02-28", "2024-03-01")) == 3, "a leap year"
    assert len(await read_workload(coach, ana, "2024-01-01", "2024-12-31", groupBy="week")) == 53
    assert len(await read_workload(coach, ana, "2024-01-01", "2024-12-31", groupBy="month")) == 12


# The ratio on a day, by hand: sums of 7 and of 28 days.
#   sessions: 01-01 100 (once), then a week apart 01-08, 01-15, 01-22, 01-29 of 7 x 40 = 280, 02-05 of 8 x 70 = 560
RATIOS = [
    ("2025-12-31", None, "volumeLoad"),  # before the first session
    ("2026-01-01", None, "sessionLoad"),  # the first day of the first 28
    ("2026-01-28", None, "sessionLoad"),  # the last of them
    ("2026-01-29", 1.0, "sessionLoad"),  # 280 / 7 = 40; 4 x 280 / 28 = 40
    ("2026-02-04", 1.0, "sessionLoad"),  # 01-29 is in; 4 x 280 (01-08 to 02-04)
    ("2026-02-05", 1.6, "sessionLoad"),  # 560 / 7 = 80; (3 x 280 + 560) / 28 = 50
    ("2026-02-11", 1.6, "sessionLoad"),  # 80; 01-15 is still in: 50
    ("2026-02-12", 0.0, "sessionLoad"),  # 0; (2 x 280 + 560) / 28 = 40
    ("2026-03-04", 0.0, "sessionLoad"),  # 0; 560 / 28 = 20
    ("2026-03-05", None, "volumeLoad"),  # nothing in 28 days
]


async def create_weekly_sessions(coach: CoachClient) -> tuple[Json, dict[str, Json]]:
    """Create a client with the sessions of RATIOS; returns the client and the sessions by date."""
    ana = await coach.create_customer()
    sessions = [
        ("2026-01-01", 5, 20),
        *((f"2026-01-{day:02}", 7, 40) for day in (8, 15, 22, 29)),
        ("2026-02-05", 8, 70),
    ]
    return ana, {date: await create_session(coach, ana, date, rpe, minutes) for date, rpe, minutes in sessions}


async def test_acute_chronic_ratio(coach: CoachClient) -> None:
    """Contract 7: mean of 7 days over mean of 28; null in the first 28 days or when the chronic mean is 0."""
    ana, _ = await create_weekly_sessions(coach)
    for day, expected, of in RATIOS:
        assert [ratio(period) for period in await read_workload(coach, ana, day, day)] == [(expected, of)], day
    days = {period["date"]: ratio(period) for period in await read_workload(coach, ana, "2025-12-30", "2026-03-06")}
    assert {day: days[day] for day, _, _ in RATIOS} == {day: (expected, of) for day, expected, of in RATIOS}
    weeks = await read_workload(coach, ana, "2026-02-02", "2026-02-10", groupBy="week")
    assert [ratio(week) for week in weeks] == [(1.6, "sessionLoad")] * 2, (
        "on the last day of the period or of the range"
    )
    [month] = await read_workload(coach, ana, "2026-01-01", "2026-01-29", groupBy="month")
    assert ratio(month) == (1.0, "sessionLoad")


async def test_ratio_is_of_volume_load_if_a_session_is_not_rated(coach: CoachClient) -> None:
    """Contract 7: of session load if every session in the window has it. Unrated on 01-20: 10 x 100 = 1000 kg."""
    ana, by_date = await create_weekly_sessions(coach)
    squat = await coach.create_exercise()
    unrated = await train(coach, ana, squat, (10, 100), date="2026-01-20")
    await train(coach, ana, squat, (5, 60), date="2026-02-05", plan=(WORK,))  # 300 kg, not rated either
    expected = {
        "2026-01-19": (None, "sessionLoad"),
        "2026-01-29": (0.0, "volumeLoad"),  # 1000 in 28 days, none in 7
        "2026-02-05": (0.92, "volumeLoad"),  # 300 / 7 = 42.86; 1300 / 28 = 46.43
        "2026-02-16": (0.0, "volumeLoad"),  # 01-20 is still in: 1300
        "2026-02-17": (0.0, "volumeLoad"),  # 300
    }
    for day, ratio_of_day in expected.items():
        assert [ratio(period) for period in await read_workload(coach, ana, day, day)] == [ratio_of_day], day
    await rate_session(coach, unrated, 6, 50)
    [day_29] = await read_workload(coach, ana, "2026-01-29", "2026-01-29")
    assert ratio(day_29) == (0.79, "sessionLoad")  # 280 / 7 = 40; (4 x 280 + 300) / 28 = 50.71
    await rate_session(coach, by_date["2026-01-29"], 7, None)
    [day_29] = await read_workload(coach, ana, "2026-01-29", "2026-01-29")
    assert ratio(day_29) == (0.0, "volumeLoad")


async def test_ratio_is_null_without_any_load(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for date in ("2026-01-01", "2026-02-01"):
        await create_session(coach, ana, date, None, None)
    [period] = await read_workload(coach, ana, "2026-02-01", "2026-02-01")
    assert (period["sessions"], ratio(period)) == (1, (None, "volumeLoad"))


async def test_session_counts_on_the_date_of_its_block(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await train(coach, ana, squat, (5, 100))
    other = await coach.schedule(ana, SUNDAY)

    async def trained_on() -> list[str]:
        return [day["date"] for day in await read_workload(coach, ana, "2026-02-20", "2026-03-20") if day["sessions"]]

    (await coach.patch(path_of(block), {"date": "2026-02-28"})).ok()
    assert await trained_on() == ["2026-02-28"]
    (await move(coach, block["items"][0], block, other, 0)).ok()
    assert await trained_on() == [SUNDAY]
    (await coach.delete(path_of(other))).ok(204)
    assert await trained_on() == []


async def test_first_and_last_dates_of_the_calendar_are_accepted(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for start, end in (("0001-01-01", "0001-01-03"), ("9999-12-28", "9999-12-31")):
        for group_by in ("day", "week", "month"):
            await read_workload(coach, ana, start, end, groupBy=group_by)
    too_long = {"startDate": "2000-01-01", "endDate": "2026-01-01"}
    (await read_progress(coach, ana, "workload", **too_long)).refused(400, "endDate")
