"""Who did what was scheduled, for all clients (contract 11)."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Any

from coaching_service.people.customers import batch
from tests.contract.test_queries import assert_efficient, profiling
from tests.support.client import MONDAY, SUNDAY, TUESDAY, CoachClient
from tests.support.figures import renew_figures
from tests.support.training import Json, block_with, employee_key, log, task

COMPLIANCE = "/coach/compliance"
WEEK = {"from": MONDAY, "to": SUNDAY}
RATES = {"Ana": 50.0, "Bo": 0.0, "Cy": None, "Di": 50.0, "Eli": 100.0, "Flo": None}


async def docs(coach: CoachClient, **query: Any) -> list[Json]:
    """The first part of the list."""
    result: list[Json] = (await coach.get(COMPLIANCE, **query)).ok()["docs"]
    return result


async def names(coach: CoachClient, **query: Any) -> list[str]:
    """The names of the first part of the list."""
    return [each["name"] for each in await docs(coach, **query)]


async def create_clients(coach: CoachClient, rates: dict[str, float | None]) -> None:
    """Create clients with stored rates of 30 days that are not due to be renewed."""
    clients = [batch.build_document({"name": name}, secrets.token_hex()) for name in rates]
    for client, rate in zip(clients, rates.values(), strict=True):
        client["customerRoleData"]["complianceRate30d"] = rate
    await batch.add_many(coach.ctx, clients)
    never = datetime(9999, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone
    await coach.ctx.db["customers"].update_many({"companyId": coach.ctx.company_id}, {"$set": {"figuresUntil": never}})


async def walk(coach: CoachClient, limit: int, **query: Any) -> list[Json]:
    """Every entry of the list, read in parts."""
    entries: list[Json] = []
    after: Json = {}
    while True:
        part = (await coach.get(COMPLIANCE, limit=limit, **query, **after)).ok()
        entries += part["docs"]
        assert part["hasMore"] is (part["nextCursor"] is not None)
        if not part["hasMore"]:
            return entries
        assert len(part["docs"]) == limit
        after = {"after": part["nextCursor"]}


async def test_compliance_rates_are_listed_lowest_first_and_null_last(coach: CoachClient) -> None:
    await create_clients(coach, RATES)

    page = (await coach.get(COMPLIANCE, period=30)).ok()

    listed = [(each["name"], each["workoutCompletionPercentage"]) for each in page["docs"]]
    assert listed == [("Bo", 0), ("Ana", 50), ("Di", 50), ("Eli", 100), ("Cy", None), ("Flo", None)]
    assert {(each["totalWorkoutDays"], each["completedWorkoutDays"]) for each in page["docs"]} == {(None, None)}
    assert (page["nextCursor"], page["hasMore"]) == (None, False)
    assert await names(coach, period=30, sort="name") == list(RATES)
    assert await names(coach, period=7) == list(RATES), "no rates of 7 days are stored"


async def test_clients_below_a_percentage_are_listed_without_those_that_have_none(coach: CoachClient) -> None:
    await create_clients(coach, RATES)
    assert await names(coach, period=30, below=51) == ["Bo", "Ana", "Di"]
    assert await names(coach, period=30, below=50) == ["Bo"]
    assert await names(coach, period=30, below=51, sort="name") == ["Ana", "Bo", "Di"]
    assert await names(coach, period=30, below=0) == await names(coach, period=90, below=100) == []


async def test_walking_the_parts_meets_every_client_once(coach: CoachClient) -> None:
    await create_clients(coach, RATES)
    queries: list[Json] = [
        {"period": 30},
        {"period": 30, "sort": "name"},
        {"period": 30, "below": 60},
        {"period": 30, "below": 60, "sort": "name"},
        {"period": 7},
        WEEK,
    ]
    for query in queries:
        expected = await docs(coach, **query)
        for limit in (1, 2, 3, 4):
            assert await walk(coach, limit, **query) == expected, (query, limit)
    cursor = (await coach.get(COMPLIANCE, period=30, limit=1)).ok()["nextCursor"]
    for other in ({"period": 7}, {"period": 30, "below": 60}, {"period": 30, "sort": "name"}, WEEK):
        assert "after" in (await coach.get(COMPLIANCE, after=cursor, **other)).refused(400)["message"]


async def test_who_is_under_sixty_percent_this_month_is_one_request(coach: CoachClient) -> None:
    """Figures that are stored by the renewal job, from workouts of this month."""
    ana, bo = await coach.create_customer("Ana", surname="Ruiz"), await coach.create_customer("Bo")
    today = coach.ctx.caller.today(None)
    for customer, days_done in ((ana, (1,)), (bo, (1, 2))):
        for days_ago in (1, 2):
            block = await block_with(coach, customer, task(), date=str(today - timedelta(days=days_ago)))
            if days_ago in days_done:
                (await log(coach, block, block["items"][0])).ok()
    await renew_figures(coach.ctx)
    assert await docs(coach, period=30, below=60) == [
        {
            "customerId": ana["_id"],
            "name": "Ana Ruiz",
            "totalWorkoutDays": None,
            "completedWorkoutDays": None,
            "workoutCompletionPercentage": 50.0,
        }
    ]


async def test_range_counts_workout_days_of_each_client_by_name(coach: CoachClient) -> None:
    bo, ana = await coach.create_customer("Bo"), await coach.create_customer("Ana")
    await coach.create_customer("cy")
    done = await block_with(coach, ana, task())
    (await log(coach, done, done["items"][0])).ok()
    for customer, date in ((ana, TUESDAY), (ana, SUNDAY), (bo, MONDAY)):
        await block_with(coach, customer, task(), date=date)
    tomorrow = str(coach.ctx.caller.today(None) + timedelta(days=1))
    await block_with(coach, bo, task(), date=tomorrow)

    listed = [tuple(each.values())[1:] for each in await docs(coach, **WEEK)]
    assert listed == [("Ana", 3, 1, 33.3), ("Bo", 1, 0, 0.0), ("cy", 0, 0, None)]
    assert await docs(coach, **WEEK, sort="name") == await docs(coach, **WEEK)
    assert [each["totalWorkoutDays"] for each in await docs(coach, **{"from": tomorrow, "to": tomorrow})] == [0, 0, 0]


async def test_range_counts_up_to_the_yesterday_of_each_client(coach: CoachClient) -> None:
    zone = "Pacific/Kiritimati"
    far, near = await coach.create_customer("Far", timezone=zone), await coach.create_customer("Near", timezone="UTC")
    today = coach.ctx.caller.today(zone)
    yesterday = today - timedelta(days=1)
    for customer in (far, near):
        await block_with(coach, customer, task(), date=str(yesterday))
    counted = [each["totalWorkoutDays"] for each in await docs(coach, **{"from": str(yesterday), "to": str(today)})]
    assert counted == [1, int(coach.ctx.caller.today("UTC") > yesterday)]


async def test_archived_erased_and_unassigned_clients_are_left_out(
    coach: CoachClient, other_company: CoachClient
) -> None:
    eli = coach.with_key(await employee_key(coach, "customers.create", "customers.view"))
    ana, _, cy = [await client.create_customer(name) for client, name in ((coach, "A"), (eli, "Bo"), (coach, "Cy"))]
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    (await coach.delete(f"/coach/customers/{cy['_id']}")).ok(204)
    dan = await coach.create_customer("Dan")
    for query in ({"period": 30}, {"period": 30, "sort": "name"}, WEEK):
        assert await names(coach, **query) == ["Bo", dan["name"]]
        assert await names(eli, **query) == ["Bo"]
        assert await docs(other_company, **query) == []
    (await coach.with_key(await employee_key(coach, "forms.view", scope="all")).get(COMPLIANCE, period=7)).refused(403)


async def test_either_a_period_or_a_range_of_at_most_92_days(coach: CoachClient) -> None:
    refused: list[tuple[Json, str]] = [
        ({}, "period"),
        ({"from": MONDAY}, "to"),
        ({"to": MONDAY}, "from"),
        ({"period": 14}, "period"),
        ({"period": 7, **WEEK}, "must not be combined with period"),
        ({"period": 7, "below": 101}, "below"),
        ({"period": 7, "sort": "rate"}, "sort"),
        ({**WEEK, "sort": "percentage"}, "sort"),
        ({"from": SUNDAY, "to": MONDAY}, "to"),
        ({"from": "2026-01-01", "to": "2026-04-03"}, "to"),
        ({"period": 7, "limit": 101}, "limit"),
        ({"period": 7, "after": "x"}, "after"),
    ]
    for query, message in refused:
        assert message in str((await coach.get(COMPLIANCE, **query)).refused(400)["message"]), query
    assert await docs(coach, **{"from": "2026-01-01", "to": "2026-04-02"}) == []


async def test_lists_examine_few_keys(coach: CoachClient) -> None:
    """With many clients; `period` reads no workouts."""
    await create_clients(coach, {f"Client {number:03}": float(number % 100) for number in range(120)})
    await create_clients(coach, {f"None {number:03}": None for number in range(60)})
    async with profiling(coach) as profile:
        for query in ({"period": 30}, {"period": 30, "below": 20}, {"period": 30, "sort": "name"}):
            page = (await coach.get(COMPLIANCE, limit=5, **query)).ok()
            (await coach.get(COMPLIANCE, limit=5, after=page["nextCursor"], **query)).ok()
        (await coach.get(COMPLIANCE, limit=5, period=30, below=20, sort="name")).ok()
        entries = await profile()
    assert {entry["ns"].partition(".")[2] for entry in entries} & {"workoutBlocks", "customers"} == {"customers"}
    assert_efficient(entries)
    in_name_order = entries[-1]
    assert in_name_order["docsExamined"] <= 5 + 1, "the sort uses the fields of the index"
