"""Compliance of a client with the schedule, by day and in a range (contract 7)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.client import MONDAY, SUNDAY, TUESDAY, CoachClient
from tests.support.compliance import schedule
from tests.support.results import clear_log, read_compliance, read_progress
from tests.support.training import log, path_of

WEEK = {"from": MONDAY, "to": SUNDAY}
# The blocks of a day, each by its items (x: completed, -: not; R: a rest block) | workout day, rest day, completed,
# number of items, number of completed items.
DAYS: list[tuple[list[str], bool, bool, bool, int, int]] = [
    ([], False, False, False, 0, 0),
    ([""], False, False, False, 0, 0),  # an empty block is not a workout
    (["-"], True, False, False, 1, 0),
    (["x"], True, False, True, 1, 1),
    (["x-"], True, False, False, 2, 1),
    (["xx", "x"], True, False, True, 3, 3),
    (["xx", "-"], True, False, False, 3, 2),  # every block of the day counts
    (["x", ""], True, False, True, 1, 1),  # the empty block has no items
    (["R"], False, True, False, 0, 0),
    (["Rx"], False, True, False, 0, 0),  # items of a rest block do not count
    (["R", "x"], True, False, True, 1, 1),
    (["R-", "x"], True, False, True, 1, 1),  # rest blocks are ignored
    (["R", ""], False, True, False, 0, 0),
]


@pytest.mark.parametrize(("blocks", "workout", "rest", "completed", "total", "done"), DAYS)
async def test_day_of_workouts_and_rest(
    coach: CoachClient, blocks: list[str], workout: bool, rest: bool, completed: bool, total: int, done: int
) -> None:
    """Contract 7: a workout day has a block that is not rest and holds at least one item; it is completed when all
    its items are."""
    ana = await coach.create_customer()
    created = [await schedule(coach, ana, TUESDAY, block) for block in blocks]

    result = await read_compliance(coach, ana, **{"from": TUESDAY, "to": TUESDAY})

    [day] = result["dailyCompliance"]
    assert day == {
        "date": TUESDAY,
        "isWorkoutDay": workout,
        "isRestDay": rest,
        "isCompleted": completed,
        "totalItems": total,
        "completedItems": done,
        "workoutBlocks": [
            {"id": block["_id"], "name": name or "empty", "isCompleted": "x" in name and "-" not in name}
            for block, name in zip(created, blocks, strict=True)
        ],
    }
    assert (result["customerId"], result["totalWorkoutDays"]) == (ana["_id"], int(workout))
    assert result["completedWorkoutDays"] == int(completed)
    assert result["workoutCompletionPercentage"] == (100 * int(completed) if workout else None)


async def test_range_of_days(coach: CoachClient) -> None:
    """By hand: Monday done, Tuesday not, Wednesday rest, Thursday empty, Friday half, Saturday done, Sunday nothing:
    2 of 4 are 50 percent; without Tuesday 2 of 3 are 66.7."""
    ana = await coach.create_customer()
    for day, done in enumerate(["x", "-", "R", "", "x-", "xx"], 2):
        await schedule(coach, ana, f"2026-03-{day:02}", done)

    result = await read_compliance(coach, ana, **WEEK)

    assert [day["date"] for day in result["dailyCompliance"]] == [f"2026-03-{day:02}" for day in range(2, 9)]
    assert [day["isWorkoutDay"] for day in result["dailyCompliance"]] == [True, True, False, False, True, True, False]
    assert (result["totalWorkoutDays"], result["completedWorkoutDays"]) == (4, 2)
    assert result["workoutCompletionPercentage"] == 50
    [tuesday] = [block for block in await coach.calendar(ana) if block["date"] == TUESDAY]
    (await coach.delete(path_of(tuesday))).ok(204)
    assert (await read_compliance(coach, ana, **WEEK))["workoutCompletionPercentage"] == 66.7


async def test_cleared_logs_and_moved_blocks_count_at_once(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await schedule(coach, ana, MONDAY, "x")
    assert (await read_compliance(coach, ana, **WEEK))["completedWorkoutDays"] == 1
    await clear_log(coach, block)
    assert (await read_compliance(coach, ana, **WEEK))["completedWorkoutDays"] == 0
    (await coach.patch(path_of(block), {"date": SUNDAY})).ok()
    days = (await read_compliance(coach, ana, **WEEK))["dailyCompliance"]
    assert [day["date"] for day in days if day["isWorkoutDay"]] == [SUNDAY]


async def test_default_range_is_the_last_30_days_of_the_client(coach: CoachClient) -> None:
    """Contract 7: without `from` and `to`: the last 30 days; contract 1: "today" is in the client's time zone."""
    ahead = await coach.create_customer("Ana", timezone="Pacific/Kiritimati")
    behind = await coach.create_customer("Bo", timezone="Pacific/Pago_Pago")
    for client in (ahead, behind):
        days = (await read_compliance(coach, client))["dailyCompliance"]
        assert len(days) == 30
        assert days[-1]["date"] == str(coach.ctx.caller.today(client["timezone"]))
    assert coach.ctx.caller.today("Pacific/Kiritimati") > coach.ctx.caller.today("Pacific/Pago_Pago")


async def test_either_end_can_be_omitted(coach: CoachClient) -> None:
    ana, today = await coach.create_customer(), coach.ctx.caller.today()

    async def read_range(**query: str) -> tuple[str, str, int]:
        days = (await read_compliance(coach, ana, **query))["dailyCompliance"]
        return days[0]["date"], days[-1]["date"], len(days)

    ten_ago, in_ten = str(today - timedelta(days=10)), str(today + timedelta(days=10))
    assert await read_range(**{"from": ten_ago}) == (ten_ago, str(today), 11)
    assert await read_range(**{"from": in_ten}) == (in_ten, in_ten, 1)
    assert await read_range(to="2024-03-10") == ("2024-02-10", "2024-03-10", 30)
    assert await read_range(to=in_ten) == (str(today - timedelta(days=19)), in_ten, 30)
    assert await read_range(to="0001-01-05") == ("0001-01-01", "0001-01-05", 5)
    assert await read_range(**{"from": "2016-01-01", "to": "2026-01-01"}) == ("2016-01-01", "2026-01-01", 3_654)
    assert await read_range(**{"from": "9999-12-30", "to": "9999-12-31"}) == ("9999-12-30", "9999-12-31", 2)
    for wrong, word in [
        ({"from": SUNDAY, "to": MONDAY}, "to"),
        ({"from": "2026-02-29"}, "from"),
        ({"to": ""}, "to"),
        ({"from": "2015-01-01", "to": "2026-01-01"}, "days"),
        ({"from": "2001-01-01"}, "days"),
    ]:
        (await read_progress(coach, ana, "compliance", **wrong)).refused(400, word)


async def test_days_after_today_are_listed_and_not_counted(coach: CoachClient) -> None:
    """Contract 7: compliance counts days up to yesterday, and today only once it is completed."""
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    days = {-3: "x", -1: "-", 0: "-", 1: "-", 4: "x"}
    blocks = {offset: await schedule(coach, ana, today + timedelta(days=offset), done) for offset, done in days.items()}
    dates = {"from": str(today - timedelta(days=6)), "to": str(today + timedelta(days=6))}

    response = await read_compliance(coach, ana, **dates)

    assert {name: response[name] for name in dates} == dates
    assert (response["totalWorkoutDays"], response["completedWorkoutDays"]) == (2, 1)
    assert response["workoutCompletionPercentage"] == 50
    assert [day["date"] for day in response["dailyCompliance"] if day["isWorkoutDay"]] == [
        str(today + timedelta(days=offset)) for offset in days
    ]
    (await log(coach, blocks[0], blocks[0]["items"][0])).ok()
    response = await read_compliance(coach, ana, **dates)
    assert (response["totalWorkoutDays"], response["completedWorkoutDays"]) == (3, 2), "today counts once completed"
    assert response["workoutCompletionPercentage"] == 66.7
