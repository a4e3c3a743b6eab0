"""Events of a company: numbered in commit order, read by cursor."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.training import add, client_path, employee_key, log, task

Json = dict[str, Any]


async def events(coach: CoachClient, **query: Any) -> Json:
    """A page of events."""
    page: Json = (await coach.get("/coach/events", **{"limit": 100, **query})).ok()
    return page


async def test_events_are_numbered_in_order(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    (await coach.post(client_path(ana, "notes"), {"content": "Hello"})).ok(201)
    first = await events(coach, limit=1, wait=20)
    second = await events(coach, after=first["nextCursor"], wait=20)
    assert [event["type"] for event in (*first["docs"], *second["docs"])] == ["customer.created", "note.created"]
    assert [event["seq"] for event in (*first["docs"], *second["docs"])] == [1, 2]


async def test_waiting_ends_with_the_next_event(coach: CoachClient) -> None:
    start = (await events(coach))["nextCursor"]
    waiting = asyncio.create_task(events(coach, after=start, wait=25))
    ana = await coach.create_customer()
    page = await asyncio.wait_for(waiting, 20)
    assert [(event["type"], event["customerId"]) for event in page["docs"]] == [("customer.created", ana["_id"])]
    assert (await events(coach, after=page["nextCursor"])) == {
        "docs": [],
        "nextCursor": page["nextCursor"],
        "hasMore": False,
    }


async def test_waiting_takes_no_database_slot_and_ends_with_the_connection(
    coach: CoachClient, services: Services, settings: Settings
) -> None:
    start = (await events(coach))["nextCursor"]
    app = create_app(settings.model_copy(update={"database_concurrency": 1}), services)
    company = coach.ctx.company_id
    async with TestServer(app) as server:
        waiting = CoachClient(server, coach.key, coach.ctx)
        polls = [asyncio.create_task(events(waiting, after=start, wait=25)) for _ in range(5)]
        await until(lambda: services.number_signals.count(company) == 5, "all wait")
        other = CoachClient(server, coach.key, coach.ctx)
        (await other.get("/me")).ok()
        (await other.get("/coach/customers", archived=False, pageSize=1, pageNum=1)).ok()
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)
        await waiting.close()
        await until(lambda: services.number_signals.count(company) == 0, "no request waits", 10)
        await other.close()


async def test_events_are_filtered_by_type_client_and_scope(coach: CoachClient, other_company: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    program = (await coach.post("/coach/programs", {"name": "Strength"})).ok(201)
    (await coach.put("/coach/customers/archive", {"id": bo["_id"]})).ok()
    await numbered(coach, 4)

    async def types(reader: CoachClient, **query: Any) -> list[tuple[str, str | None]]:
        return [(event["type"], event["customerId"]) for event in (await events(reader, **query))["docs"]]

    assert await types(coach) == [
        ("customer.created", ana["_id"]),
        ("customer.created", bo["_id"]),
        ("program.created", None),
        ("customer.archived", bo["_id"]),
    ]
    assert await types(coach, types=["customer.archived", "program.created"]) == [
        ("program.created", None),
        ("customer.archived", bo["_id"]),
    ]
    assert await types(coach, customerId=ana["_id"]) == [("customer.created", ana["_id"])]
    assert await types(other_company) == []
    scoped = coach.with_key(await employee_key(coach, "customers.view", "programs.view"))
    assert await types(scoped) == [("program.created", None)]
    without_programs = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    assert ("program.created", None) not in await types(without_programs)
    [created] = [event for event in (await events(coach))["docs"] if event["type"] == "program.created"]
    assert created["data"] == {"programId": program["_id"]}


async def test_cursor_older_than_30_days_is_gone(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await numbered(coach, 1)
    old = {"companyId": coach.ctx.company_id}
    long_ago = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=31)
    await coach.ctx.db["changes"].update_many(old, {"$set": {"createdAt": long_ago}})
    await coach.ctx.db["changeNumbers"].update_many(old, {"$set": {"numberedAt": long_ago}})
    (await coach.get("/coach/events", limit=10, after="0")).refused(410)
    (await coach.post(client_path(ana, "notes"), {"content": "Hello"})).ok(201)
    page = await events(coach, wait=20)
    assert [event["type"] for event in page["docs"]] == ["note.created"]


async def test_cursor_follows_the_events_of_others(coach: CoachClient) -> None:
    """The cursor of a reader of one client, who does nothing for a month, does not become too old."""
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    await numbered(coach, 2)
    page = await events(coach, customerId=ana["_id"])
    assert ([event["seq"] for event in page["docs"]], page["nextCursor"], page["hasMore"]) == ([1], "2", False)
    long_ago = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=31)
    await coach.ctx.db["changeNumbers"].update_many(
        {"companyId": coach.ctx.company_id}, {"$set": {"numberedAt": long_ago}}
    )
    (await coach.post(client_path(bo, "notes"), {"content": "Hello"})).ok(201)
    (await coach.post(client_path(ana, "notes"), {"content": "Hello"})).ok(201)
    page = await events(coach, customerId=ana["_id"], after=page["nextCursor"], wait=20)
    while not page["docs"]:  # that of the other client may have had its number first
        page = await events(coach, customerId=ana["_id"], after=page["nextCursor"], wait=20)
    assert [event["seq"] for event in page["docs"]] == [4]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 501},
        {"limit": 1, "after": "x"},
        {"limit": 1, "after": "-1"},
        {"limit": 1, "wait": 26},
        {"limit": 1, "types": "customer.renamed"},
        {"limit": 1, "customerId": "x"},
    ],
)
async def test_invalid_queries_are_refused(coach: CoachClient, query: Json) -> None:
    (await coach.get("/coach/events", **query)).refused(400)


async def test_events_hold_no_free_text(coach: CoachClient) -> None:
    ana = await coach.create_customer("Secretname", surname="Hidden")
    (await coach.post(client_path(ana, "notes"), {"content": "Secretname has a bad knee"})).ok(201)
    block = await coach.schedule(ana, name="Secretname Legs")
    item = await add(coach, block, task("Secretname walks"))
    (await log(coach, block, item, comment="Secretname is tired")).ok()
    await numbered(coach, 6)
    page = await coach.get("/coach/events", limit=100)
    types = [event["type"] for event in page.ok()["docs"]]
    assert types[:2] == ["customer.created", "note.created"]
    assert {"workout.created", "workout.updated", "item.logged", "workout.completed"} <= set(types)
    assert b"Secretname" not in page.raw


async def numbered(coach: CoachClient, count: int) -> None:
    """Wait until so many events are numbered."""
    cursor, met = None, 0
    async with asyncio.timeout(60):
        while met < count:
            page = await events(coach, wait=20, **({"after": cursor} if cursor else {}))
            cursor, met = page["nextCursor"], met + len(page["docs"])
