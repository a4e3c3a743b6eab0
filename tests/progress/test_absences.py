"""What follows from the absences of a client (contract 20): figures, reasons, streaks and check-ins."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.people import availability
from coaching_service.progress import compliance
from coaching_service.progress.own_today import count_successive_weeks
from coaching_service.training.workouts.reports import blocks as block_reports
from tests.support.attention import FORM, days_ago, docs, entry_of, set_stored, start_of
from tests.support.check_ins import LONG_AGO, as_if_added_a_week_ago, check_in, dates, day, run_job
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.results import read_compliance
from tests.support.sampled import MORE
from tests.support.schedules import batch
from tests.support.training import Json, block_with, client_path, log, path_of, task

pytestmark = pytest.mark.usefixtures("wednesday")
DAYS = 90
ABSENCES = ("away", "injured", "ill")


async def absent(
    coach: CoachClient, customer: Json, first: str, until: str | None = None, kind: str = "ill", **fields: Any
) -> Json:
    """Enter a period."""
    body = {"kind": kind, "from": first, "until": until, **fields}
    period: Json = (await coach.post(client_path(customer, "availability"), body)).ok(201)
    return period


# --- compliance ------------------------------------------------------------------------------------------------------


async def test_days_of_absence_are_no_workout_days(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for days in (1, 2, 3, 4):
        block = await block_with(coach, ana, task(), date=days_ago(coach, days))
        if days in (3, 4):
            (await log(coach, block, block["items"][0])).ok()
    period = await absent(coach, ana, days_ago(coach, 3), days_ago(coach, 2))
    compliance = await read_compliance(coach, ana, **{"from": days_ago(coach, 4), "to": days_ago(coach, 0)})
    shown = [(each["isWorkoutDay"], each["isCompleted"]) for each in compliance["dailyCompliance"]]
    assert shown == [(True, True), (False, False), (False, False), (True, False), (False, False)]
    assert (compliance["totalWorkoutDays"], compliance["completedWorkoutDays"]) == (2, 1)
    (await coach.patch(client_path(ana, "availability", period["_id"]), {"kind": "limited"})).ok()
    compliance = await read_compliance(coach, ana)
    assert (compliance["totalWorkoutDays"], compliance["completedWorkoutDays"]) == (4, 2)


class Plan:
    """What one client has scheduled, done, and entered; the oracle counts day by day from these lists only."""

    def __init__(self, chance: random.Random, today: date) -> None:
        self.days = [str(today - timedelta(days=number)) for number in range(DAYS + 5)]
        self.blocks: list[tuple[str, bool, bool]] = [
            (each, chance.random() < 0.15, chance.random() < 0.6)  # date, rest, done
            for each in self.days
            for _ in range(chance.choice((0, 0, 1, 1, 2)))
        ]
        self.periods: list[tuple[str, str, str | None]] = []
        self.entered: list[Json] = []

    def choose_periods(self, chance: random.Random) -> None:
        """Choose periods that do not overlap; the last may have no end."""
        end = chance.randrange(20)  # the days are in descending order
        while (start := end + chance.randrange(14)) < len(self.days):
            until = None if end == 0 and chance.random() < 0.5 else self.days[end]
            self.periods.append((chance.choice((*ABSENCES, "limited")), self.days[start], until))
            end = start + 1 + chance.randrange(30)

    def is_absent(self, each: str) -> bool:
        return any(
            kind != "limited" and first <= each and (until is None or each <= until)
            for kind, first, until in self.periods
        )

    def count(self, first: str, last: str, today: str) -> tuple[int, int]:
        """The workout days that count, and those completed."""
        total = completed = 0
        for each in self.days:
            work = [done for at, rest, done in self.blocks if at == each and not rest]
            is_completed = bool(work) and all(work)
            counts = work and (each < today or is_completed) and not self.is_absent(each)
            if first <= each <= last and counts:
                total, completed = total + 1, completed + is_completed
        return total, completed

    def rate(self, length: int, today: date) -> float | None:
        total, completed = self.count(str(today - timedelta(days=length - 1)), str(today), str(today))
        return round(100 * completed / total, 1) if total else None


async def test_rates_are_those_of_a_naive_oracle(coach: CoachClient) -> None:
    chance, today = random.Random(20), coach.ctx.caller.today()
    named = [{"name": f"Client {number:02}"} for number in range(40 if MORE > 1 else 6)]
    results = (await coach.post("/coach/customers/batch", {"customers": named})).ok()["results"]
    plans = {str(each["_id"]): Plan(chance, today) for each in results}
    for customer_id, plan in plans.items():
        await schedule(coach, {"_id": customer_id}, plan)
        plan.choose_periods(chance)
        for kind, first, until in plan.periods:
            plan.entered.append(await absent(coach, {"_id": customer_id}, first, until, kind))
    assert sum(plan.is_absent(each) for plan in plans.values() for each in plan.days) > 12 * len(plans)
    await compare(coach, plans, today)

    for customer_id, plan in plans.items():  # periods end earlier or are deleted, and the stored figures follow
        at = chance.randrange(len(plan.periods))
        kind, first, _ = plan.periods[at]
        path = client_path({"_id": customer_id}, "availability", plan.entered[at]["_id"])
        if chance.random() < 0.5:
            plan.periods[at] = (kind, first, first)
            (await coach.patch(path, {"until": first})).ok()
        else:
            del plan.periods[at]
            (await coach.delete(path)).ok(204)
    await compare(coach, plans, today)


async def schedule(coach: CoachClient, customer: Json, plan: Plan) -> None:
    """Schedule the blocks of a plan; what is done is written to the database, where the day is over long ago."""
    blocks = [
        {"name": "Rest" if rest else "Walk", "date": each, "isRest": rest, "items": [] if rest else [task()]}
        for each, rest, _ in plan.blocks
    ]
    for start in range(0, len(blocks), 100):
        created = (await batch(coach, customer, *blocks[start : start + 100]))["created"]
        done = [
            ObjectId(block["_id"])
            for block, (_, _, is_done) in zip(created, plan.blocks[start : start + 100], strict=True)
            if is_done
        ]
        change = {"$set": {"items.$[].isCompleted": True}}
        await coach.ctx.db["workoutBlocks"].update_many({"_id": {"$in": done}}, change)


async def compare(coach: CoachClient, plans: dict[str, Plan], today: date) -> None:
    """Compare the rates of the list, of each client, and of a range of dates with those of the oracle."""
    await renew_figures(coach.ctx)
    listed = (await coach.get("/coach/customers", archived="false", pageSize=50, pageNum=1)).ok()["docs"]
    stored = {each["_id"]: each["customerRoleData"] for each in listed}
    first, last = str(today - timedelta(days=80)), str(today - timedelta(days=3))
    company = (await coach.get("/coach/compliance", **{"from": first, "to": last, "limit": 100})).ok()["docs"]
    of_dates = {each["customerId"]: (each["totalWorkoutDays"], each["completedWorkoutDays"]) for each in company}
    for customer_id, plan in plans.items():
        expected = {f"complianceRate{days}d": plan.rate(days, today) for days in (7, 30, 90)}
        assert {name: stored[customer_id][name] for name in expected} == expected, plan.periods
        assert of_dates[customer_id] == plan.count(first, last, str(today)), plan.periods
    for customer_id in list(plans)[::8]:
        role = (await coach.get(client_path({"_id": customer_id}))).ok()["customerRoleData"]
        assert role["complianceRate90d"] == stored[customer_id]["complianceRate90d"]


# --- attention -------------------------------------------------------------------------------------------------------


def types_of(entry: Json) -> list[str]:
    return [each["type"] for each in entry["reasons"]]


async def test_an_absent_client_has_no_reasons_of_work_that_is_not_done(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    (await coach.patch("/coach/account", {"attention": {"inactiveDays": 2, "complianceBelow": 60}})).ok()
    await set_stored(coach, ana, createdAt=LONG_AGO)
    for days in (5, 3, 1):
        await block_with(coach, ana, task(), date=days_ago(coach, days))
    await block_with(coach, ana, FORM, date=days_ago(coach, 4))
    before = ["check_in_overdue", "missed_workout", "inactive", "low_compliance", "nothing_scheduled"]
    assert types_of(await entry_of(coach, ana)) == before

    period = await absent(coach, ana, days_ago(coach, 2), days_ago(coach, -9), note="Flu.")
    quote = f"Ill until {days_ago(coach, -9)}: Flu."
    since = start_of(days_ago(coach, 2))
    [entry] = await docs(coach)
    assert (entry["customer"]["name"], entry["score"]) == ("Ana", 0)
    assert entry["reasons"] == [{"type": "unavailable", "since": since, "count": 1, "quote": quote}]
    assert [each["customer"]["name"] for each in await docs(coach, reason="unavailable")] == ["Ana"]
    assert await docs(coach, reason="missed_workout") == []

    path = client_path(ana, "availability", period["_id"])
    for until, has_returning in ((-3, False), (-2, True), (0, True)):
        (await coach.patch(path, {"until": days_ago(coach, until)})).ok()
        expected = ["returning", "unavailable"] if has_returning else ["unavailable"]
        entry = await entry_of(coach, ana)
        assert (types_of(entry), entry["score"]) == (expected, 10 if has_returning else 0)
    (await coach.patch(path, {"kind": "limited"})).ok()
    assert types_of(await entry_of(coach, ana)) == before


async def test_after_an_absence_only_other_days_count(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    (await coach.patch("/coach/account", {"attention": {"inactiveDays": 3, "horizonDays": 3}})).ok()
    await set_stored(coach, ana, createdAt=LONG_AGO)
    trained = await block_with(coach, ana, task(), date=days_ago(coach, 8))
    (await log(coach, trained, trained["items"][0])).ok()
    for days in (6, 5, 2):
        await block_with(coach, ana, task(), date=days_ago(coach, days))
    await block_with(coach, ana, FORM, date=days_ago(coach, 5))
    await block_with(coach, ana, task(), date=days_ago(coach, -1))
    await absent(coach, ana, days_ago(coach, 7), days_ago(coach, 2))
    assert types_of(await entry_of(coach, ana)) == []  # inactive for 2 days of training, today included
    (await coach.patch("/coach/account", {"attention": {"inactiveDays": 2}})).ok()
    assert types_of(await entry_of(coach, ana)) == ["inactive"]


async def test_forms_of_an_absence_are_not_overdue(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for days in (1, 3):
        await block_with(coach, ana, FORM, date=days_ago(coach, days))
    await absent(coach, ana, days_ago(coach, 2), days_ago(coach, 0))
    listed = (await coach.get("/coach/form-requests", customerId=ana["_id"])).ok()["docs"]
    own = (await (await coach.as_client(ana)).get("/customer/today")).ok()["pendingForms"]
    for forms in (listed, own):
        assert [(each["date"], each["isOverdue"]) for each in forms] == [
            (days_ago(coach, 3), True),
            (days_ago(coach, 1), False),
        ]
    overdue = (await coach.get("/coach/form-requests", overdue="true", customerId=ana["_id"])).ok()["docs"]
    assert [each["date"] for each in overdue] == [days_ago(coach, 3)]


async def test_days_of_an_absence_ahead_need_no_workouts(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    (await coach.patch("/coach/account", {"attention": {"inactiveDays": 365, "horizonDays": 3}})).ok()
    assert types_of(await entry_of(coach, ana)) == ["nothing_scheduled"]
    period = await absent(coach, ana, days_ago(coach, -1), None, "away")
    assert types_of(await entry_of(coach, ana)) == []
    (await coach.patch(client_path(ana, "availability", period["_id"]), {"until": days_ago(coach, -2)})).ok()
    await block_with(coach, ana, task(), date=days_ago(coach, -2))
    assert types_of(await entry_of(coach, ana)) == ["nothing_scheduled"]


async def test_absent_clients_are_listed_after_those_who_need_attention(coach: CoachClient) -> None:
    clients = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy", "Di")]
    for client in clients[1:]:
        await absent(coach, client, days_ago(coach, 1))
    listed = [each["customer"]["name"] for each in await docs(coach)]
    assert (listed[0], sorted(listed[1:])) == ("Ana", ["Bo", "Cy", "Di"])
    walked, cursor = [], None
    while cursor != "":
        part = (await coach.get("/coach/attention", limit=1, **({"after": cursor} if cursor else {}))).ok()
        walked += [each["customer"]["name"] for each in part["docs"]]
        cursor = part["nextCursor"] or ""
    assert walked == listed


# --- check-ins -------------------------------------------------------------------------------------------------------


async def test_check_ins_leave_out_an_absence_and_come_back_when_it_ends(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await check_in(coach, ana, until=day(coach, 9))
    block = (await coach.calendar(ana, day(coach, 3), day(coach, 3)))[0]
    (await log(coach, block, block["items"][0])).ok()
    entered = await coach.post(
        client_path(ana, "availability"), {"kind": "away", "from": day(coach, 2), "until": day(coach, 6)}
    )
    period = entered.ok(201)
    assert await dates(coach, ana) == [day(coach, number) for number in (0, 1, 3, 7, 8, 9)]
    await check_in(coach, ana, everyDays=3, until=day(coach, 9))
    assert [each for each in await dates(coach, ana) if day(coach, 2) <= each <= day(coach, 6)] == [day(coach, 3)]

    (await coach.patch(client_path(ana, "availability", period["_id"]), {"until": day(coach, 4)})).ok()
    within = [day(coach, number) for number in (3, 5, 6, 6)]
    assert [each for each in await dates(coach, ana) if day(coach, 2) <= each <= day(coach, 6)] == within
    (await coach.patch(client_path(ana, "availability", period["_id"]), {"kind": "limited"})).ok()
    assert await dates(coach, ana) == [day(coach, number) for number in (0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9)]


async def test_undo_of_an_absence_renews_the_compliance(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await block_with(coach, ana, task(), date=days_ago(coach, 2))

    async def stored_rate() -> float | None:
        await renew_figures(coach.ctx)
        [listed] = (await coach.customers())["docs"]
        rate: float | None = listed["customerRoleData"]["complianceRate7d"]
        return rate

    assert await stored_rate() == 0
    entered = await coach.post(client_path(ana, "availability"), {"kind": "ill", "from": days_ago(coach, 3)})
    assert await stored_rate() is None
    (await coach.undo(entered)).ok()
    assert await stored_rate() == 0


async def test_absences_are_those_of_the_day_where_each_client_is(coach: CoachClient) -> None:
    ana, bo, cy = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy")]
    await absent(coach, ana, "2026-03-02", "2026-03-02")
    await absent(coach, bo, "2026-03-03", "2026-03-03", note="Flu.")
    await absent(coach, cy, "2026-03-02", "2026-03-02")
    days = zip((ana, bo, cy), (2, 3, 3), strict=True)
    today_of = {ObjectId(client["_id"]): date(2026, 3, number) for client, number in days}
    described = await availability.describe_absences(coach.ctx, today_of)
    assert described == {
        ObjectId(ana["_id"]): "Ill until 2026-03-02",
        ObjectId(bo["_id"]): "Ill until 2026-03-03: Flu.",
    }


async def test_undo_of_an_absence_restores_its_check_ins(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await check_in(coach, ana, until=day(coach, 4))
    before = await dates(coach, ana)
    entered = await coach.post(client_path(ana, "availability"), {"kind": "ill", "from": day(coach, 1)})
    assert await dates(coach, ana) == before[:1]
    (await coach.undo(entered)).ok()
    assert await dates(coach, ana) == before


async def test_check_ins_that_a_coach_has_removed_do_not_come_back(coach: CoachClient) -> None:
    """The daily job goes on meanwhile: what it leaves out comes back as well."""
    ana = await coach.create_customer()
    await check_in(coach, ana)
    [removed] = await coach.calendar(ana, day(coach, 3), day(coach, 3))
    (await coach.delete(path_of(removed))).ok(204)
    await as_if_added_a_week_ago(coach, ana)
    period = await absent(coach, ana, day(coach, 2))
    assert await dates(coach, ana) == [day(coach, 0), day(coach, 1)]
    await run_job(coach)
    assert await dates(coach, ana) == [day(coach, 0), day(coach, 1)]
    (await coach.delete(client_path(ana, "availability", period["_id"]))).ok(204)
    assert await dates(coach, ana) == [day(coach, number) for number in range(28) if number != 3]


# --- what a client and a coach read ----------------------------------------------------------------------------------


async def test_the_present_or_next_period_is_read_with_the_client(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    client = await coach.as_client(ana)

    async def read() -> list[Any]:
        return [
            (await coach.get(client_path(ana))).ok()["availability"],
            (await client.get("/customer/today")).ok()["availability"],
        ]

    await absent(coach, ana, days_ago(coach, 9), days_ago(coach, 1))
    assert await read() == [None, None]
    later = await absent(coach, ana, days_ago(coach, -5), None, "away")
    assert await read() == [later, later]
    present = await absent(coach, ana, days_ago(coach, 0), days_ago(coach, 0), "limited")
    assert await read() == [present, present]


async def test_days_of_a_calendar_are_not_missed_in_an_absence(coach: CoachClient) -> None:
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    for days in (3, 2, 1):
        block = await block_with(coach, ana, task("A"), task("B"), date=days_ago(coach, days))
        if days == 1:
            (await log(coach, block, block["items"][0])).ok()
    await absent(coach, ana, days_ago(coach, 2), None, "away")
    customer_id, first = ObjectId(ana["_id"]), today - timedelta(days=3)
    listed = await block_reports.list_days(coach.ctx, customer_id, first, today, today=today)
    shown = [(each["status"], each["absence"], [block["status"] for block in each["blocks"]]) for each in listed]
    assert shown == [
        ("missed", None, ["missed"]),
        ("away", "away", ["away"]),
        ("part", "away", ["part"]),
        ("away", "away", []),
    ]
    recent = await compliance.get_recent_days(coach.ctx, {customer_id: today}, 4)
    assert [status for _, status in recent[customer_id]] == [status for status, _, _ in shown]


@pytest.mark.parametrize(
    ("completed", "absent_weeks", "streak"),
    [([1, 3], [2], 2), ([1, 3], [], 1), ([2], [0, 1], 1), ([], [0, 1], 0), ([0, 1, 4], [2, 3], 3), ([0, 1], [1], 2)],
)
def test_a_streak_passes_over_weeks_of_absence(completed: list[int], absent_weeks: list[int], streak: int) -> None:
    monday, week = date(2026, 3, 2), timedelta(days=7)
    weeks = [[monday - week * number for number in numbers] for numbers in (completed, absent_weeks)]
    assert count_successive_weeks(weeks[0], monday, weeks[1]) == streak


async def test_streak_of_a_client_with_a_long_absence(coach: CoachClient) -> None:
    ana, monday = await coach.create_customer(), date(2031, 3, 3)
    for weeks in (1, 60, 61):
        block = await block_with(coach, ana, task(), date=str(monday - timedelta(days=7 * weeks)))
        (await log(coach, block, block["items"][0])).ok()
    client = await coach.as_client(ana)
    assert (await client.get("/customer/today")).ok()["streakWeeks"] == 1
    last = str(monday - timedelta(days=7 * 2 - 3))
    await absent(coach, ana, str(monday - timedelta(days=7 * 59)), last)
    assert (await client.get("/customer/today")).ok()["streakWeeks"] == 3
