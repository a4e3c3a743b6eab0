"""Lift progress, the exercises a client has done, and what was done the last time (contract 10)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import NewCompany
from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.results import WARM_UP, WORK, circuit_set, completed_sets, incomplete_set, read_progress, train
from tests.support.training import Json, block_with, circuit_of, employee_key, exercise_of, log, own_log, path_of, task

NEXT_MONDAY, NEXT_FRIDAY, WEEK_AFTER = "2026-03-09", "2026-03-13", "2026-03-16"
ALL = {"startDate": "2026-01-01", "endDate": "2026-12-31"}


async def progress(coach: CoachClient, customer: Json, exercise: Json, **query: Any) -> list[Json]:
    """A client's progress in an exercise; by default in the year."""
    reply = await read_progress(coach, customer, "exercise", exercise["_id"], "progress", **{**ALL, **query})
    points: list[Json] = reply.ok()
    return points


async def done_exercises(coach: CoachClient, customer: Json, **query: Any) -> Json:
    """A page of the exercises that a client has done."""
    page: Json = (await read_progress(coach, customer, "exercises", **{"pageSize": 50, "pageNum": 1, **query})).ok()
    return page


async def last_times(coach: CoachClient, block: Json) -> list[Json | None]:
    """`lastTime` of each exercise of a block."""
    read = (await coach.get(path_of(block), include="lastTime")).ok()
    return [item["lastTime"] for item in read["items"] if item["type"] == "EXERCISE"]


def figures(point: Json) -> tuple[Any, ...]:
    """The figures of an entry: date, estimate, volume load, sets, repetitions."""
    estimate = point["estimatedOneRepMax"]
    return (
        point["date"],
        estimate and estimate["value"],
        point["volumeLoad"],
        point["sets"],
        point["reps"],
    )


async def test_story_of_squat_progress_and_last_time(coach: CoachClient) -> None:
    """A coach reads how the squat develops, and plans the next session from the last one.

    Estimates by Epley: 100 x 35/30 = 116.67; 105 x 35/30 = 122.5; 110 x 33/30 = 121.
    """
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (5, 100), (5, 100))
    second = await train(coach, ana, squat, (5, 105), (8, 90), date=SUNDAY)
    third = await train(coach, ana, squat, (3, 110), date=NEXT_FRIDAY)
    planned = await block_with(coach, ana, exercise_of(squat), date=WEEK_AFTER)

    sessions = await progress(coach, ana, squat)
    assert [figures(session) for session in sessions] == [
        (MONDAY, 116.67, 1000, 2, 10),
        (SUNDAY, 122.5, 1245, 2, 13),
        (NEXT_FRIDAY, 121, 330, 1, 3),
    ]
    assert sessions[1]["bestSet"] == second["items"][0]["customerSets"][0]
    assert sessions[1]["estimatedOneRepMax"] == {"value": 122.5, "formula": "epley", "setIndex": 1}
    weeks = await progress(coach, ana, squat, groupBy="week")
    assert [figures(week) for week in weeks] == [(MONDAY, 122.5, 2245, 4, 23), (NEXT_MONDAY, 121, 330, 1, 3)]
    assert weeks[0]["bestSet"] == second["items"][0]["customerSets"][0]

    sets = third["items"][0]["customerSets"]
    assert await last_times(coach, planned) == [{"date": NEXT_FRIDAY, "wblockId": third["_id"], "sets": sets}]
    assert await last_times(coach, third) == [
        {"date": SUNDAY, "wblockId": second["_id"], "sets": second["items"][0]["customerSets"]}
    ]
    assert (await done_exercises(coach, ana))["docs"] == [
        {"exercise": {"_id": squat["_id"], "name": "Squat"}, "lastDate": NEXT_FRIDAY, "sessions": 3}
    ]


# Sets done (reps, load) | estimate | the best, from 0 | volume load | repetitions.     By hand:
TABLE = [
    ([(1, 120)], 120, 0, 120, 1),
    ([(13, 60)], None, 0, 780, 13),
    ([(8, 60), (8, 75), (6, 80)], 96, 2, 1560, 22),
    ([(3, 22.7)], 24.97, 0, 68.1, 3),
    ([(12, None), (15, None)], None, 1, 0, 27),
    ([(None, 60), (0, 80)], None, 1, 0, 0),
]


@pytest.mark.parametrize(("done", "estimate", "best", "volume", "reps"), TABLE)
async def test_figures_of_a_session(
    coach: CoachClient,
    done: list[tuple[int | None, float | None]],
    estimate: float | None,
    best: int,
    volume: float,
    reps: int,
) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await train(coach, ana, squat, *done)
    [point] = await progress(coach, ana, squat)
    assert figures(point) == (MONDAY, estimate, volume, len(done), reps)
    assert point["bestSet"] == block["items"][0]["customerSets"][best]


async def test_warm_up_and_incomplete_sets_are_no_progress(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat, WARM_UP, WORK, WORK))
    done = [*completed_sets((12, 200), (8, 60)), incomplete_set(3, 100)]
    (await log(coach, block, block["items"][0], customerSets=done)).ok()
    only_warm_up = await train(coach, ana, squat, (12, 20), date=TUESDAY, plan=(WARM_UP, WORK))
    await block_with(coach, ana, exercise_of(squat), date=SUNDAY)

    assert [figures(point) for point in await progress(coach, ana, squat)] == [(MONDAY, 76, 480, 1, 8)]
    [entry] = (await done_exercises(coach, ana))["docs"]
    assert (entry["lastDate"], entry["sessions"]) == (MONDAY, 1)
    assert [each and each["date"] for each in await last_times(coach, only_warm_up)] == [MONDAY]


async def test_progress_is_that_of_one_exercise(coach: CoachClient) -> None:
    """In a circuit each exercise has its own sets; two items of a block are one session."""
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    block = await block_with(coach, ana, circuit_of(squat, press, rounds=1), exercise_of(squat), task())
    circuit, exercise, _ = block["items"]
    done = [circuit_set(1, squat, 10, 60), circuit_set(1, press, 8, 30)]
    (await log(coach, block, circuit, customerSets=done)).ok()
    (await log(coach, block, exercise, customerSets=completed_sets((5, 80)))).ok()

    assert [figures(point) for point in await progress(coach, ana, squat)] == [(MONDAY, 93.33, 1000, 2, 15)]
    assert [figures(point) for point in await progress(coach, ana, press)] == [(MONDAY, 38, 240, 1, 8)]
    later = await block_with(coach, ana, exercise_of(press), exercise_of(squat), task(), date=TUESDAY)
    of_press, of_squat = await last_times(coach, later)
    assert of_press and [(each["reps"], each["round"]) for each in of_press["sets"]] == [(8, 1)]
    assert of_squat and [(each["reps"], each["round"]) for each in of_squat["sets"]] == [(10, 1), (5, None)]


async def test_range_includes_both_ends_and_is_limited(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    for date in (MONDAY, TUESDAY, SUNDAY):
        await train(coach, ana, squat, (5, 100), date=date)
    points = await progress(coach, ana, squat, startDate=MONDAY, endDate=TUESDAY)
    assert [point["date"] for point in points] == [MONDAY, TUESDAY]
    weeks = await progress(coach, ana, squat, startDate=TUESDAY, endDate=SUNDAY, groupBy="week")
    assert [figures(week)[0] for week in weeks] == [MONDAY], "the week, of which only these days count"
    assert weeks[0]["sets"] == 2
    path = ("exercise", squat["_id"], "progress")
    for query in (
        {"startDate": TUESDAY, "endDate": MONDAY},
        {"startDate": MONDAY},
        {"startDate": "2000-01-01", "endDate": SUNDAY},
        {**ALL, "groupBy": "month"},
    ):
        (await read_progress(coach, ana, *path, **query)).refused(400)


async def test_last_time_is_before_the_day_of_the_block(coach: CoachClient) -> None:
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    first = await train(coach, ana, squat, (5, 100))
    same_day = await block_with(coach, ana, exercise_of(squat), exercise_of(press))
    assert await last_times(coach, same_day) == [None, None]
    assert await last_times(coach, first) == [None]
    later = await block_with(coach, ana, exercise_of(squat), exercise_of(press), date=TUESDAY)
    of_squat, of_press = await last_times(coach, later)
    assert (of_squat and of_squat["wblockId"], of_press) == (first["_id"], None)

    plain = (await coach.get(path_of(later))).ok()
    assert all("lastTime" not in item for item in plain["items"]), "only on request"
    (await coach.get(path_of(later), include="everything")).refused(400, "include")
    await train(coach, await coach.create_customer("Ben"), press, (5, 100))
    assert (await last_times(coach, later))[1] is None, "of this client"


async def test_done_exercises_are_listed_latest_first(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    exercises = [await coach.create_exercise(name) for name in ("Squat", "Press", "Row")]
    for exercise, dates in zip(exercises, ((MONDAY, SUNDAY), (TUESDAY,), (SUNDAY,)), strict=True):
        for date in dates:
            await train(coach, ana, exercise, (5, 50), date=date)
    (await coach.delete(f"/exercises/{exercises[1]['_id']}")).ok(204)

    listing = await done_exercises(coach, ana)

    listed = [(each["exercise"]["name"], each["lastDate"], each["sessions"]) for each in listing["docs"]]
    assert sorted(listed[:2]) == [("Row", SUNDAY, 1), ("Squat", SUNDAY, 2)]
    assert listed[2:] == [("Press", TUESDAY, 1)], "a deleted exercise keeps its name"
    pages = [await done_exercises(coach, ana, pageSize=1, pageNum=number) for number in (1, 2, 3, 4)]
    assert [doc for page in pages for doc in page["docs"]] == listing["docs"]
    assert [(page["totalDocs"], page["hasNextPage"]) for page in pages] == [
        (3, True),
        (3, True),
        (3, False),
        (3, False),
    ]


async def test_own_logs_count(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat))
    (await own_log(await coach.as_client(ana), block, block["items"][0], customerSets=completed_sets((5, 100)))).ok()
    assert [figures(point) for point in await progress(coach, ana, squat)] == [(MONDAY, 116.67, 500, 1, 5)]


async def test_other_clients_and_exercises_are_not_found(coach: CoachClient, new_company: NewCompany) -> None:
    ana, squat, other = await coach.create_customer(), await coach.create_exercise(), await new_company()
    (await read_progress(other, ana, "exercise", squat["_id"], "progress", **ALL)).refused(404)
    (await read_progress(coach, ana, "exercise", UNKNOWN, "progress", **ALL)).refused(404)
    (await read_progress(other, ana, "exercises", pageSize=5, pageNum=1)).refused(404)
    (await read_progress(coach, ana, "exercises", pageSize=5)).refused(400)
    eli = coach.with_key(await employee_key(coach, "customers.view"))
    (await read_progress(eli, ana, "exercise", squat["_id"], "progress", **ALL)).refused(403)
    (await read_progress(eli, ana, "exercises", pageSize=5, pageNum=1)).refused(403)
