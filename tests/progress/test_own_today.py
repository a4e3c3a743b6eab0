"""A client's day: GET /customer/today (contract 15)."""

from __future__ import annotations

from datetime import date, timedelta

import time_machine

from coaching_service.progress.own_today.service import count_successive_weeks
from tests.support.client import CoachClient
from tests.support.training import block_with, client_path, exercise_of, form_of, hide, log, show, task

TODAY = date(2026, 3, 4)


def day(offset: int) -> str:
    return str(TODAY + timedelta(days=offset))


async def test_day_of_a_client_has_what_is_due_and_nothing_of_hidden_days(coach: CoachClient) -> None:
    ana, bo, squat = await coach.create_customer(), await coach.create_customer("Bo"), await coach.create_exercise()
    (await coach.patch(client_path(ana), {"timezone": "Pacific/Kiritimati"})).ok()
    last = await block_with(coach, ana, exercise_of(squat), date=day(-2))
    (await log(coach, last, last["items"][0], customerSets=[{"reps": 5, "load": 90}])).ok()
    before = await block_with(coach, ana, exercise_of(squat), date=day(-9))
    (await log(coach, before, before["items"][0], customerSets=[{"reps": 5, "load": 80}])).ok()
    overdue = await block_with(coach, ana, form_of(), date=day(-1))
    block = await block_with(coach, ana, exercise_of(squat), form_of(), date=day(0))
    await block_with(coach, ana, date=day(1), name="Without items")
    near = await block_with(coach, ana, task(), date=day(2), name="Near")
    far = await block_with(coach, ana, task(), date=day(3), name="Far")
    await block_with(coach, bo, form_of(), date=day(0), name="No workout")
    await block_with(coach, bo, task(), date=day(1))
    (await coach.post(client_path(ana, "messages"), {"text": "Hello"})).ok(201)
    with time_machine.travel(f"{day(-1)}T12:00:00+00:00", tick=True):  # there it is the next day
        client = await coach.as_client(ana)
        today = (await client.get("/customer/today", include="lastTime")).ok()

        assert (today["date"], today["unreadMessages"], today["streakWeeks"]) == (day(0), 1, 2)
        [shown] = today["blocks"]
        assert (shown["_id"], shown["items"][0]["lastTime"]["date"]) == (block["_id"], day(-2))
        assert today["nextWorkout"] == {"_id": near["_id"], "name": "Near", "date": day(2)}
        forms = [(each["wblockId"], each["isOverdue"]) for each in today["pendingForms"]]
        assert forms == [(overdue["_id"], True), (block["_id"], False)]
        assert (await client.get("/customer/today")).ok()["blocks"] == [block]

        for hidden in (-2, -1, 2):
            await hide(coach, ana, day(hidden))
        today = (await client.get("/customer/today", include="lastTime")).ok()
        assert today["blocks"][0]["items"][0]["lastTime"]["date"] == day(-9)
        assert today["nextWorkout"]["_id"] == far["_id"]
        assert [each["wblockId"] for each in today["pendingForms"]] == [block["_id"]]
        assert today["streakWeeks"] == 1
        await show(coach, ana, day(-2), day(2))
        await hide(coach, ana, day(0))
        assert (await client.get("/customer/today")).ok()["blocks"] == []
        other = (await (await coach.as_client(bo)).get("/customer/today")).ok()
        assert (other["date"], other["nextWorkout"]["date"]) == (day(-1), day(1))
        assert (other["streakWeeks"], other["unreadMessages"]) == (0, 0)


def test_streak_ends_at_the_first_week_without_a_workout() -> None:
    monday = date(2026, 3, 2)
    week = timedelta(days=7)
    assert count_successive_weeks([], monday) == 0
    assert count_successive_weeks([monday - 2 * week], monday) == 0
    assert count_successive_weeks([monday - week, monday - 2 * week, monday - 4 * week], monday) == 2
    assert count_successive_weeks([monday - week * number for number in range(40)], monday) == 40
