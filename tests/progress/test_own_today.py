"""A client's day: GET /customer/today (contract 15)."""

from __future__ import annotations

import asyncio
import time
from datetime import date, timedelta

import time_machine

from coaching_service.core.ids import ObjectId
from coaching_service.progress.own_today import count_successive_weeks
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


async def test_an_absence_from_the_year_1_costs_a_client_and_others_nothing(
    coach: CoachClient, other_company: CoachClient
) -> None:
    """Contract 1: a stored date beyond the bounds is ignored; eight at once are as usual, so are other companies."""
    ana, bo = await coach.create_customer(), await other_company.create_customer("Bo")
    today = coach.ctx.caller.today()
    for weeks in (1, 30):  # before, between and after, all is absence
        block = await block_with(coach, ana, task(), date=str(today - timedelta(weeks=weeks)))
        (await log(coach, block, block["items"][0])).ok()
    period = {"kind": "away", "from": str(today), "until": None}
    (await coach.post(client_path(ana, "availability"), period)).ok(201)
    own = {"customerId": ObjectId(ana["_id"])}
    for first, last, streak in (("0001-01-01", None, 0), ("0001-01-01", "9999-12-31", 0)):
        await coach.ctx.db["availability"].update_one(own, {"$set": {"from": first, "until": last}})
        client, other = await coach.as_client(ana), await other_company.as_client(bo)
        began = time.process_time()
        answers = await asyncio.gather(
            *(client.get("/customer/today") for _ in range(8)), *(other.get("/customer/today") for _ in range(8))
        )
        assert time.process_time() - began < 4, "of processor time, of all sixteen"
        assert [each.ok()["streakWeeks"] for each in answers] == [streak] * 8 + [0] * 8
        assert answers[0].ok()["availability"]["from"] == first


async def test_a_streak_is_counted_over_long_absences(coach: CoachClient) -> None:
    """Longer than what is read at once: 26 weeks, then 104, then 520."""
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    for weeks in (0, 30, 60, 150, 152):
        block = await block_with(coach, ana, task(), date=str(today - timedelta(weeks=weeks)))
        (await log(coach, block, block["items"][0])).ok()
    for first, last in ((29, 1), (59, 31), (149, 61)):
        dates = {"from": str(today - timedelta(weeks=first, days=6)), "until": str(today - timedelta(weeks=last))}
        (await coach.post(client_path(ana, "availability"), {"kind": "ill", **dates})).ok(201)
    assert (await (await coach.as_client(ana)).get("/customer/today")).ok()["streakWeeks"] == 4


def test_streak_ends_at_the_first_week_without_a_workout() -> None:
    monday = date(2026, 3, 2)
    week = timedelta(days=7)
    assert count_successive_weeks([], monday) == 0
    assert count_successive_weeks([monday - 2 * week], monday) == 0
    assert count_successive_weeks([monday - week, monday - 2 * week, monday - 4 * week], monday) == 2
    assert count_successive_weeks([monday - week * number for number in range(40)], monday) == 40
