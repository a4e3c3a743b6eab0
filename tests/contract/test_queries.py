"""Every query is served by an index and reads little more than it gives (the database's own profile says so)."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain, Step
from coaching_service.lifecycle.erasure import service as erasure
from tests.client import MONDAY, CoachClient
from tests.everything import in_every_collection

MUCH = 110  # more than the database looks at before it settles for an index
PICTURE = b"a picture"
Profile = Callable[[], Awaitable[list[dict[str, Any]]]]


@asynccontextmanager
async def profiling(coach: CoachClient) -> AsyncIterator[Profile]:
    db = coach.ctx.db
    await db.command("profile", 0)
    await db["system.profile"].drop()
    await db.command("profile", 2)

    async def seen() -> list[dict[str, Any]]:
        ours = {f"{db.name}.{name}" for name in declared_collections()}
        entries = await db["system.profile"].find({"ns": {"$in": list(ours)}}).to_list(None)
        return [e for e in entries if "planSummary" in e]

    try:
        yield seen
    finally:
        await db.command("profile", 0)


def frugal(entry: dict[str, Any]) -> bool:
    given = entry.get("nreturned", 0) + entry.get("nModified", 0) + entry.get("ndeleted", 0)
    counted = "count" in entry.get("command", {}) or "$group" in str(entry.get("command", {}))
    return entry.get("keysExamined", 0) <= 5 * given + 20 or counted


def assert_frugal(entries: list[dict[str, Any]]) -> None:
    scans = [e for e in entries if "COLLSCAN" in e["planSummary"]]
    assert [(e["ns"], e["command"]) for e in scans] == []
    wasteful = [
        (e["ns"], e["planSummary"], e.get("keysExamined"), e.get("nreturned")) for e in entries if not frugal(e)
    ]
    assert wasteful == []


async def test_the_main_flow_scans_nothing(coach: CoachClient) -> None:
    for number in range(60):
        await coach.create_customer(f"Client {number}", groups=["G"] if number % 20 == 0 else [])
    ana = await coach.create_customer("Ana", assignedTo=str(coach.ctx.caller.id))
    squat = await coach.create_exercise()
    path = f"/coach/customers/{ana['_id']}"

    async with profiling(coach) as profile:
        await coach.customers(pageSize=5)
        await coach.customers(pageSize=5, contains="ana")
        await coach.customers(pageSize=5, groups="G")
        await coach.customers(pageSize=5, assignedTo=str(coach.ctx.caller.id))
        await coach.get(path)
        await coach.patch(path, {"phone": "1"})
        block = await coach.schedule(ana)
        items = f"{path}/wblocks/{block['_id']}/witems"
        item = {"type": "EXERCISE", "exerciseId": squat["_id"], "exerciseSets": [{"type": "reps"}]}
        made = (await coach.post(items, item, headers={"Idempotency-Key": "k"})).ok(201)
        await coach.patch(f"{items}/{made['_id']}", {"supersetId": "A"})
        await coach.calendar(ana)
        await coach.patch(f"{path}/wblocks/{block['_id']}", {"date": MONDAY})
        await coach.delete(f"{items}/{made['_id']}")
        await coach.delete(f"{path}/wblocks/{block['_id']}")
        for query in ({}, {"keywords": "nordic"}, {"keywords": "nordic ham"}, {"type": "cardio"}, {"type": "my"}):
            await coach.get("/exercises/unified", pageSize=5, pageNum=1, **query)
        await coach.get(f"/exercises/{squat['_id']}")
        await coach.put("/coach/customers/archive", {"id": ana["_id"]})
        await coach.delete(path)
        entries = await profile()

    assert len(entries) > 40
    assert_frugal(entries)


async def test_exporting_and_erasing_scan_nothing(coach: CoachClient, other_company: CoachClient) -> None:
    """However much others have, and though those who go were there first."""
    clients = [await company.create_customer() for company in (coach, coach, other_company)]
    ana, bo, cy = [ObjectId(client["_id"]) for client in clients]
    gone = [*await much_of_everything(coach.ctx, ana), *await much_of_everything(coach.ctx, bo)]
    stay = await much_of_everything(other_company.ctx, cy)
    services, ours = coach.ctx.services, {"companyId": coach.ctx.company_id}

    async with profiling(coach) as profile:
        assert len((await coach.get(f"/coach/customers/{ana}/export")).raw) > 10_000
        await done(erasure.erase_customer, coach.ctx, {**ours, "customerId": ana})
        await done(erasure.erase_company, coach.ctx, ours)
        entries = await profile()

    assert_frugal(entries)
    assert [name for name in declared_collections() if await services.db[name].find_one(ours)] == []
    assert (await files.bytes_of(services, gone), await files.bytes_of(services, stay)) == (0, MUCH * len(PICTURE))


async def much_of_everything(ctx: Context, client: ObjectId) -> list[ObjectId]:
    """Gives the files."""
    await in_every_collection(ctx, client, str(client), times=MUCH)
    made = []
    for _ in range(MUCH):
        picture = io.BytesIO(PICTURE)
        file = await files.store(ctx, picture, name="x.png", content_type="image/png", customer_id=client)
        await files.keep(ctx, file)
        made.append(file.id)
    return made


async def done(step: Step, ctx: Context, arguments: dict[str, Any]) -> None:
    """Do all of a job that takes many steps."""
    while await step(ctx.services, Job(ObjectId(), arguments, 1)) == RunAgain():
        pass
