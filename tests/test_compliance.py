"""Whether a client did what was scheduled (contract 7), and the rates in the customer (contract 4)."""

from __future__ import annotations

import asyncio
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.progress.compliance import renewal
from coaching_service.progress.compliance.renewal import RENEW, renew_batch
from tests.client import MONDAY, SUNDAY, TUESDAY, CoachClient
from tests.conftest import PASSWORD
from tests.results import asked, compliance, undo
from tests.training import Json, block_with, client_path, log, path_of, task

RATES = ("complianceRate7d", "complianceRate30d", "complianceRate90d")
LONG_AGO = datetime(2000, 1, 1)  # noqa: DTZ001 - as it is stored
JOB = Job(ObjectId(), {}, 1)
WEEK = {"from": MONDAY, "to": SUNDAY}

# A day's blocks, each by what is done of its items (R: rest) | workout day, rest day, completed, items, done.
DAYS: list[tuple[list[str], bool, bool, bool, int, int]] = [
    ([], False, False, False, 0, 0),
    ([""], False, False, False, 0, 0),  # an empty block is no workout
    (["-"], True, False, False, 1, 0),
    (["x"], True, False, True, 1, 1),
    (["x-"], True, False, False, 2, 1),
    (["xx", "x"], True, False, True, 3, 3),
    (["xx", "-"], True, False, False, 3, 2),  # every block of the day counts
    (["x", ""], True, False, True, 1, 1),  # the empty one holds nothing to do
    (["R"], False, True, False, 0, 0),
    (["Rx"], False, True, False, 0, 0),  # items of a rest block do not count
    (["R", "x"], True, False, True, 1, 1),
    (["R-", "x"], True, False, True, 1, 1),  # rest blocks are ignored
    (["R", ""], False, True, False, 0, 0),
]


async def scheduled(coach: CoachClient, customer: Json, day: object, done: str) -> Json:
    """A block by what is done of its items: `x` done, `-` not, `R` before them: rest."""
    marks = done.removeprefix("R")
    block = await block_with(coach, customer, *[task(mark) for mark in marks], date=str(day), name=done or "empty")
    for item, mark in zip(block["items"], marks, strict=True):
        if mark == "x":
            (await log(coach, block, item)).ok()
    if done != marks:
        (await coach.patch(path_of(block), {"isRest": True})).ok()
    return block


async def of_one(coach: CoachClient, customer: Json) -> Json:
    """The rates as GET of one client tells them."""
    role: Json = (await coach.get(client_path(customer))).ok()["customerRoleData"]
    return {name: role[name] for name in (*RATES, "complianceDate")}


async def in_list(coach: CoachClient, customer: Json) -> Json:
    """The rates as the list tells them: those that were kept."""
    listed = (await coach.customers())["docs"]
    role = next(each["customerRoleData"] for each in listed if each["_id"] == customer["_id"])
    return {name: role[name] for name in (*RATES, "complianceDate")}


async def keep(coach: CoachClient, customer: Json, **fields: Any) -> None:
    """Write what is kept of a client, as if time had gone by."""
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(customer["_id"])}, {"$set": fields})


def rates(coach: CoachClient, *values: float | None) -> Json:
    """These rates, as of the client's today where there are any."""
    told = any(value is not None for value in values)
    return {**dict(zip(RATES, values, strict=True)), "complianceDate": str(coach.ctx.caller.today()) if told else None}


@pytest.mark.parametrize(("blocks", "workout", "rest", "completed", "total", "done"), DAYS)
async def test_what_a_day_is(
    coach: CoachClient, blocks: list[str], workout: bool, rest: bool, completed: bool, total: int, done: int
) -> None:
    """Contract 7: a workout day has a block that is not rest and holds at least one item; it is completed when all
    its items are."""
    ana = await coach.create_customer()
    made = [await scheduled(coach, ana, TUESDAY, block) for block in blocks]

    answer = await compliance(coach, ana, **{"from": TUESDAY, "to": TUESDAY})

    [day] = answer["dailyCompliance"]
    assert day == {
        "date": TUESDAY,
        "isWorkoutDay": workout,
        "isRestDay": rest,
        "isCompleted": completed,
        "totalItems": total,
        "completedItems": done,
        "workoutBlocks": [
            {"id": block["_id"], "name": name or "empty", "isCompleted": "x" in name and "-" not in name}
            for block, name in zip(made, blocks, strict=True)
        ],
    }
    assert (answer["customerId"], answer["totalWorkoutDays"]) == (ana["_id"], int(workout))
    assert answer["completedWorkoutDays"] == int(completed)
    assert answer["workoutCompletionPercentage"] == (100 * int(completed) if workout else None)


async def test_a_range_of_days(coach: CoachClient) -> None:
    """By hand: Monday done, Tuesday not, Wednesday rest, Thursday empty, Friday half, Saturday done, Sunday nothing:
    2 of 4 are 50 percent; without Tuesday 2 of 3 are 66.7."""
    ana = await coach.create_customer()
    for day, done in enumerate(["x", "-", "R", "", "x-", "xx"], 2):
        await scheduled(coach, ana, f"2026-03-{day:02}", done)

    answer = await compliance(coach, ana, **WEEK)

    assert [day["date"] for day in answer["dailyCompliance"]] == [f"2026-03-{day:02}" for day in range(2, 9)]
    assert [day["isWorkoutDay"] for day in answer["dailyCompliance"]] == [True, True, False, False, True, True, False]
    assert (answer["totalWorkoutDays"], answer["completedWorkoutDays"]) == (4, 2)
    assert answer["workoutCompletionPercentage"] == 50
    [tuesday] = [block for block in await coach.calendar(ana) if block["date"] == TUESDAY]
    (await coach.delete(path_of(tuesday))).ok(204)
    assert (await compliance(coach, ana, **WEEK))["workoutCompletionPercentage"] == 66.7


async def test_undoing_and_moving_count_at_once(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await scheduled(coach, ana, MONDAY, "x")
    assert (await compliance(coach, ana, **WEEK))["completedWorkoutDays"] == 1
    await undo(coach, block)
    assert (await compliance(coach, ana, **WEEK))["completedWorkoutDays"] == 0
    (await coach.patch(path_of(block), {"date": SUNDAY})).ok()
    days = (await compliance(coach, ana, **WEEK))["dailyCompliance"]
    assert [day["date"] for day in days if day["isWorkoutDay"]] == [SUNDAY]


async def test_without_dates_it_is_the_last_30_days_of_the_client(coach: CoachClient) -> None:
    """Contract 7: without `from` and `to`: the last 30 days; contract 1: "today" is in the client's time zone."""
    ahead = await coach.create_customer("Ana", timezone="Pacific/Kiritimati")
    behind = await coach.create_customer("Bo", timezone="Pacific/Pago_Pago")
    for client in (ahead, behind):
        days = (await compliance(coach, client))["dailyCompliance"]
        assert len(days) == 30
        assert days[-1]["date"] == str(coach.ctx.caller.today(client["timezone"]))
    assert coach.ctx.caller.today("Pacific/Kiritimati") > coach.ctx.caller.today("Pacific/Pago_Pago")


async def test_either_end_may_be_left_open(coach: CoachClient) -> None:
    ana, today = await coach.create_customer(), coach.ctx.caller.today()

    async def ends(**query: str) -> tuple[str, str, int]:
        days = (await compliance(coach, ana, **query))["dailyCompliance"]
        return days[0]["date"], days[-1]["date"], len(days)

    ten_ago, in_ten = str(today - timedelta(days=10)), str(today + timedelta(days=10))
    assert await ends(**{"from": ten_ago}) == (ten_ago, str(today), 11)
    assert await ends(**{"from": in_ten}) == (in_ten, in_ten, 1)
    assert await ends(to="2024-03-10") == ("2024-02-10", "2024-03-10", 30)
    assert await ends(to=in_ten) == (str(today - timedelta(days=19)), in_ten, 30)
    assert await ends(to="0001-01-05") == ("0001-01-01", "0001-01-05", 5)
    assert await ends(**{"from": "2016-01-01", "to": "2026-01-01"}) == ("2016-01-01", "2026-01-01", 3_654)
    assert await ends(**{"from": "9999-12-30", "to": "9999-12-31"}) == ("9999-12-30", "9999-12-31", 2)
    for wrong, word in [
        ({"from": SUNDAY, "to": MONDAY}, "to"),
        ({"from": "2026-02-29"}, "from"),
        ({"to": ""}, "to"),
        ({"from": "2015-01-01", "to": "2026-01-01"}, "days"),
        ({"from": "2001-01-01"}, "days"),
    ]:
        (await asked(coach, ana, "compliance", **wrong)).refused(400, word)


async def test_days_after_today_are_listed_and_not_counted(coach: CoachClient) -> None:
    """Contract 7: compliance counts days up to yesterday, and today only once it is completed."""
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    days = {-3: "x", -1: "-", 0: "-", 1: "-", 4: "x"}
    blocks = {
        offset: await scheduled(coach, ana, today + timedelta(days=offset), done) for offset, done in days.items()
    }
    dates = {"from": str(today - timedelta(days=6)), "to": str(today + timedelta(days=6))}

    response = await compliance(coach, ana, **dates)

    assert {name: response[name] for name in dates} == dates
    assert (response["totalWorkoutDays"], response["completedWorkoutDays"]) == (2, 1)
    assert response["workoutCompletionPercentage"] == 50
    assert [day["date"] for day in response["dailyCompliance"] if day["isWorkoutDay"]] == [
        str(today + timedelta(days=offset)) for offset in days
    ]
    (await log(coach, blocks[0], blocks[0]["items"][0])).ok()
    response = await compliance(coach, ana, **dates)
    assert (response["totalWorkoutDays"], response["completedWorkoutDays"]) == (3, 2), "today counts once completed"
    assert response["workoutCompletionPercentage"] == 66.7


# --- the rates in the customer -------------------------------------------------------------------------------------


async def test_the_rates_are_of_7_30_and_90_days_up_to_today(coach: CoachClient) -> None:
    """By hand: 1 of 2 in 7 days, 3 of 4 in 30, 4 of 7 in 90; not yesterday's 90 and not tomorrow."""
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    assert await of_one(coach, ana) == await in_list(coach, ana) == rates(coach, None, None, None)
    ago = {0: "x", 6: "-", 7: "x", 29: "x", 30: "-", 60: "x", 89: "-", 90: "x", -1: "-"}
    for days, done in ago.items():
        await scheduled(coach, ana, today - timedelta(days=days), done)
    assert await of_one(coach, ana) == rates(coach, 50, 75, 57.1)


async def test_a_rate_needs_a_workout_day(coach: CoachClient) -> None:
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    await scheduled(coach, ana, today - timedelta(days=40), "x")
    await scheduled(coach, ana, today, "R")
    assert await of_one(coach, ana) == rates(coach, None, None, 100)


async def test_each_log_renews_what_the_list_tells(coach: CoachClient) -> None:
    """Contract 4: the rates are stored, renewed by each log; GET of one client computes them."""
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    first, second = [await scheduled(coach, ana, today - timedelta(days=days), "--") for days in (0, 1)]
    before = (await coach.get(client_path(ana))).ok()
    assert await of_one(coach, ana) == rates(coach, 0, 0, 0)
    assert await in_list(coach, ana) == rates(coach, None, None, None), "nothing was logged"

    (await log(coach, first, first["items"][0])).ok()
    assert await in_list(coach, ana) == rates(coach, 0, 0, 0)
    client = await coach.as_client(ana)
    own = f"/customer/wblocks/{first['_id']}/witems/{first['items'][1]['_id']}/log"
    (await client.put(own, {})).ok()
    assert await in_list(coach, ana) == await of_one(coach, ana) == rates(coach, 50, 50, 50)
    await undo(coach, first)
    assert await in_list(coach, ana) == rates(coach, 0, 0, 0)

    (await coach.delete(path_of(second))).ok(204)
    (await log(coach, first, first["items"][0])).ok()
    (await coach.delete(path_of(first))).ok(204)
    assert await of_one(coach, ana) == rates(coach, None, None, None)
    after = (await coach.get(client_path(ana))).ok()
    assert (after["version"], after["updatedAt"]) == (before["version"], before["updatedAt"]), "derived fields"


async def test_the_rates_are_renewed_once_a_local_day(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", timezone="Pacific/Kiritimati")
    bo = await coach.create_customer("Bo", timezone="Pacific/Pago_Pago")
    gone = await coach.create_customer("Gone")
    (await coach.put("/coach/customers/archive", {"id": gone["_id"]})).ok()
    for client in (ana, bo, gone):
        await scheduled(coach, client, coach.ctx.caller.today(client["timezone"]) - timedelta(days=1), "-")
        await keep(coach, client, figuresUntil=LONG_AGO)

    assert await renew_batch(coach.ctx.services, JOB) == RunAgain(), "there may be more"

    for client in (ana, bo):
        today = coach.ctx.caller.today(client["timezone"])
        assert await in_list(coach, client) == {**dict.fromkeys(RATES, 0), "complianceDate": str(today)}
        stored = await coach.ctx.db["customers"].find_one({"_id": ObjectId(client["_id"])})
        assert stored is not None
        assert now() < stored["figuresUntil"] <= now() + timedelta(hours=25), "until the client's midnight"
    kept = await coach.ctx.db["customers"].find_one({"_id": ObjectId(gone["_id"])})
    assert kept is not None
    assert kept["figuresUntil"] == LONG_AGO, "nobody looks at archived clients"

    await keep(coach, ana, **{"customerRoleData.complianceRate7d": 12.5})
    while await renew_batch(coach.ctx.services, JOB) == RunAgain():
        pass
    assert (await in_list(coach, ana))["complianceRate7d"] == 12.5, "once a day is enough"
    await keep(coach, ana, figuresUntil=now())
    await renew_batch(coach.ctx.services, JOB)
    assert (await in_list(coach, ana))["complianceRate7d"] == 0


async def test_a_company_that_is_being_erased_does_not_hold_up_the_others(
    coach: CoachClient, other_company: CoachClient
) -> None:
    for company in (other_company, coach):
        ana = await company.create_customer()
        await scheduled(company, ana, company.ctx.caller.today() - timedelta(days=1), "-")
        await keep(company, ana, figuresUntil=LONG_AGO)
    owner = await other_company.interactive()
    (await owner.send("DELETE", "/coach/account", json={"password": PASSWORD})).ok(204)
    assert await renew_batch(coach.ctx.services, JOB) == RunAgain()
    assert await in_list(coach, ana) == rates(coach, 0, 0, 0)


async def test_a_company_of_which_it_fails_holds_up_nobody_and_is_tried_again_in_an_hour(
    coach: CoachClient, other_company: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time zone that is no longer known, say; also when those of whom it fails fill whole steps."""
    broken = [await other_company.create_customer(name) for name in ("Bo", "Cy")]
    for client in broken:
        await keep(other_company, client, timezone="Europe/Atlantis", figuresUntil=LONG_AGO)
    ana = await coach.create_customer()
    await scheduled(coach, ana, coach.ctx.caller.today() - timedelta(days=1), "-")
    await keep(coach, ana, figuresUntil=LONG_AGO + timedelta(days=1))
    monkeypatch.setattr(renewal, "_BATCH", 2)

    while await renew_batch(coach.ctx.services, JOB) == RunAgain():
        pass

    assert await in_list(coach, ana) == rates(coach, 0, 0, 0)
    for client in broken:
        left = await coach.ctx.db["customers"].find_one({"_id": ObjectId(client["_id"])})
        assert now() < left["figuresUntil"] <= now() + timedelta(hours=1)


async def test_the_daily_renewal_does_not_undo_what_a_log_has_just_kept(coach: CoachClient) -> None:
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    blocks = [await scheduled(coach, ana, today - timedelta(days=days), "-") for days in range(12)]
    for block in blocks:
        logging = asyncio.ensure_future(log(coach, block, block["items"][0]))
        while not logging.done():
            await keep(coach, ana, figuresUntil=LONG_AGO)
            await renew_batch(coach.ctx.services, JOB)
        assert await in_list(coach, ana) == await of_one(coach, ana)
    assert await of_one(coach, ana) == rates(coach, 100, 100, 100)


async def test_the_renewal_stands_in_the_queue(coach: CoachClient) -> None:
    assert RENEW in features.STANDING
    assert features.STEPS[RENEW] is renew_batch
    assert date.fromisoformat(MONDAY).weekday() == 0
