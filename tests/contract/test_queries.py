"""Every query uses an index and examines few more keys than it returns, by the profiler of the database."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from pymongo.errors import CollectionInvalid, OperationFailure

from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Database, in_transaction
from coaching_service.core.database.documents import now, registry
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain, Step
from coaching_service.lifecycle import erasure
from coaching_service.people.customers import batch, derived_figures
from coaching_service.people.customers.models import SortFigure
from coaching_service.people.webhooks import service as webhooks
from coaching_service.people.webhooks.service import new_delivery
from coaching_service.progress.conversation import messages
from tests.support.client import MONDAY, CoachClient
from tests.support.client_data import insert_in_every_collection
from tests.support.databases import profile_of
from tests.support.service_process import until

MANY = 110  # more than the query planner examines before it chooses an index
FILES = 30
PICTURE = b"a picture"
Profile = Callable[[], Awaitable[list[dict[str, Any]]]]


@asynccontextmanager
async def profiling(coach: CoachClient) -> AsyncIterator[Profile]:
    db = coach.ctx.db
    await db.command("profile", 0)
    await until(lambda: _replace_profile(db), "an empty profile")
    await db.command("profile", 2)

    async def entries() -> list[dict[str, Any]]:
        collections = {f"{db.name}.{name}" for name in registry}
        profile = await profile_of(db).find({"ns": {"$in": list(collections)}}).to_list(None)
        read = [entry for entry in profile if "planSummary" in entry and not _is_change_stream(entry)]
        return [entry for entry in read if _companies_of(entry) in (set(), {str(coach.ctx.company_id)})]

    try:
        yield entries
    finally:
        await db.command("profile", 0)


async def _replace_profile(db: Database) -> bool:
    """Return whether the profile was replaced by an empty one: a command that began before may write it meanwhile."""
    await db["system.profile"].drop()
    try:  # 1 MB, its usual size, loses entries, also while it is read
        await db.create_collection("system.profile", capped=True, size=32_000_000)
    except (CollectionInvalid, OperationFailure):
        return False
    return True


def _is_change_stream(entry: dict[str, Any]) -> bool:
    """Whether an entry is about a change stream, which reads the oplog."""
    return "$changeStream" in str(entry.get("originatingCommand", entry.get("command")))


def _companies_of(entry: dict[str, Any]) -> set[str]:
    """The companies of an entry; those of earlier tests still have jobs."""
    command = entry.get("originatingCommand", entry.get("command"))
    return set(re.findall(r"'companyId': ObjectId\('(\w+)'\)", str(command)))


def is_efficient(entry: dict[str, Any]) -> bool:
    returned = entry.get("nreturned", 0) + entry.get("nModified", 0) + entry.get("ndeleted", 0)
    counted = "count" in entry.get("command", {}) or "$group" in str(entry.get("command", {}))
    return entry.get("keysExamined", 0) <= 5 * returned + 20 or counted


def assert_efficient(entries: list[dict[str, Any]]) -> None:
    scans = [e for e in entries if "COLLSCAN" in e["planSummary"]]
    assert [(e["ns"], e["command"]) for e in scans] == []
    inefficient = [
        (e["ns"], e["planSummary"], e.get("keysExamined"), e.get("nreturned")) for e in entries if not is_efficient(e)
    ]
    assert inefficient == []


async def test_everyday_operations_do_not_scan_collections(coach: CoachClient) -> None:
    clients = [{"name": f"Client {number}", "groups": ["G"] if number % 20 == 0 else []} for number in range(60)]
    (await coach.post("/coach/customers/batch", {"customers": clients})).ok()
    ana = await coach.create_customer("Ana", assignedTo=str(coach.ctx.caller.id))
    squat = await coach.create_exercise()
    path = f"/coach/customers/{ana['_id']}"

    async with profiling(coach) as profile:
        await coach.customers(pageSize=5)
        await coach.customers(pageSize=5, contains="ana")
        sorts: list[tuple[SortFigure, bool]] = [
            ("lastTrained", True),
            ("lastTrained", False),
            ("compliance", False),
        ]
        for figure, descending in sorts:
            await derived_figures.list_customers_by(
                coach.ctx, figure, descending=descending, archived=False, page=2, size=5
            )
        await coach.customers(pageSize=5, groups="G")
        await coach.customers(pageSize=5, assignedTo=str(coach.ctx.caller.id))
        await coach.customers(pageSize=5, sort="updatedAt")
        await coach.customers(pageSize=5, ids=[ana["_id"]])
        await coach.get(path)
        await coach.patch(path, {"phone": "1"})
        block = await coach.schedule(ana)
        items = f"{path}/wblocks/{block['_id']}/witems"
        item = {"type": "EXERCISE", "exerciseId": squat["_id"], "exerciseSets": [{"type": "reps"}]}
        created = (await coach.post(items, item, headers={"Idempotency-Key": "k"})).ok(201)
        await coach.patch(f"{items}/{created['_id']}", {"supersetId": "A"})
        await coach.calendar(ana)
        for listed in ("/coach/customers", "/coach/programs", "/exercises/unified"):
            await coach.get(listed, archived="false", pageSize=5, pageNum=1, updatedSince="2100-01-01")
        for listed in ("/coach/forms", "/coach/metrics-sets", "/coach/workout-templates"):
            await coach.get(listed, updatedSince="2100-01-01")
        await coach.get(f"{path}/wblock", startDate="2000-01-01", endDate="2099-12-31", updatedSince="2100-01-01")
        await coach.patch(f"{path}/wblocks/{block['_id']}", {"date": MONDAY})
        await coach.delete(f"{items}/{created['_id']}")
        await coach.delete(f"{path}/wblocks/{block['_id']}")
        for query in ({}, {"keywords": "nordic"}, {"keywords": "nordic ham"}, {"type": "cardio"}, {"type": "my"}):
            await coach.get("/exercises/unified", pageSize=5, pageNum=1, **query)
        await coach.get(f"/exercises/{squat['_id']}")
        await coach.put("/coach/customers/archive", {"id": ana["_id"]})
        await coach.delete(path)
        entries = await profile()

    assert len(entries) > 40
    assert_efficient(entries)


async def test_conversations_do_not_scan_collections(coach: CoachClient, other_company: CoachClient) -> None:
    """With long conversations, and many of them in this company and in another one."""
    ana = await coach.create_customer("Ana", assignedTo=str(coach.ctx.caller.id))
    block, client = await coach.schedule(ana), await coach.as_client(ana)
    for company in (coach, other_company):
        await insert_conversations(company.ctx, MANY)
    path = f"/coach/customers/{ana['_id']}/messages"
    for about in ({"wblockId": block["_id"]}, None):
        (await coach.post(path, {"text": "x", "about": about})).ok(201)
        (await client.post("/customer/messages", {"text": "x"})).ok(201)
    about_block, of_client, of_coach, _ = await stored_messages(coach.ctx, ana["_id"])
    for kind, count in ((about_block, MANY // 10), (of_client, MANY // 2), (of_coach, MANY // 2)):
        await coach.ctx.db["messages"].insert_many([kind | {"_id": ObjectId()} for _ in range(count)])
    (await coach.put(f"{path}/read")).ok()
    (await client.post("/customer/messages", {"text": "last"})).ok(201)

    async with profiling(coach) as profile:
        cursor = (await coach.get(path, limit=5)).ok()["nextCursor"]
        (await coach.get(path, limit=5, after=cursor)).ok()
        (await coach.get(path, limit=5, wblockId=block["_id"])).ok()
        (await client.put("/customer/messages/read")).ok()
        (await coach.put(f"{path}/read")).ok()
        (await coach.put(f"{path}/read")).ok()
        message = (await client.post("/customer/messages", {"text": "x"})).ok(201)
        (await client.patch(f"/customer/messages/{message['_id']}", {"text": "y"})).ok()
        (await client.delete(f"/customer/messages/{message['_id']}")).ok(204)
        for query in ({}, {"unread": "true"}, {"unread": "false"}):
            page = (await coach.get("/coach/conversations", limit=5, **query)).ok()
            assert page["docs"]
            if page["hasMore"]:
                (await coach.get("/coach/conversations", limit=5, after=page["nextCursor"], **query)).ok()
        entries = await profile()

    assert len(entries) > 25
    assert_efficient(entries)


async def stored_messages(ctx: Context, customer_id: str) -> list[dict[str, Any]]:
    """The messages of a client as they are stored, in order."""
    return await ctx.db["messages"].find({"customerId": ObjectId(customer_id)}).sort("_id", 1).to_list(None)


async def insert_conversations(ctx: Context, count: int) -> None:
    """Store conversations of clients; every tenth is unread."""
    created = await batch.create_customer(ctx, {"name": "Client"})
    client = await ctx.db["customers"].find_one({"_id": created["_id"]})
    assert client is not None
    clients = [client | {"_id": ObjectId(), "name": f"Client {number}"} for number in range(count)]
    await ctx.db["customers"].insert_many(clients)

    async def store(tx: Context) -> None:
        for number, customer in enumerate(clients):
            author = {"type": "client", "_id": customer["_id"], "name": customer["name"]}
            message = {"customerId": customer["_id"], "author": author, "text": "x", "about": None, "attachments": []}
            stored = await messages.delivered.insert(tx, {**message, "editedAt": None, "readAt": None})
            await messages.add_to_conversation(tx, stored, "client" if number % 10 else "company")

    await in_transaction(ctx, store)


async def test_operations_on_many_days_do_not_scan_collections(coach: CoachClient) -> None:
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    item = {"type": "EXERCISE", "exerciseId": squat["_id"], "exerciseSets": [{"type": "reps_load", "load": 60}]}
    blocks = [{"name": "Legs", "date": f"{year}-03-02", "items": [item]} for year in range(1960, 2030)]
    for name in ("Bo", "Cy", "Di"):
        other = await coach.create_customer(name)
        (await coach.post(f"/coach/customers/{other['_id']}/wblocks/batch", {"blocks": blocks})).ok(201)
    ana = await coach.create_customer("Ana")
    path = f"/coach/customers/{ana['_id']}"
    (await coach.post(f"{path}/wblocks/batch", {"blocks": blocks})).ok(201)
    week: dict[str, Any] = {"startDate": MONDAY, "endDate": "2026-03-08"}
    heavier = {"progression": {"load": {"add": 5}}}

    async with profiling(coach) as profile:
        copy = {**week, **heavier, "targetDate": "2026-03-09", "repeat": 4, "onConflict": "replace"}
        (await coach.post(f"{path}/schedule/copy", copy)).ok(201)
        (await coach.post(f"{path}/schedule/adjust", {**week, **heavier})).ok()
        replacement = {"exerciseId": squat["_id"], "withExerciseId": press["_id"], "startDate": "2027-01-01"}
        assert (await coach.post(f"{path}/schedule/replace-exercise", replacement)).ok()["items"] == 3
        (await coach.post(f"{path}/schedule/clear", week)).ok()
        calendar = {"customerId": ana["_id"], "startDate": "2026-03-09", "endDate": "2026-04-05", "name": "Base"}
        program = (await coach.post("/coach/programs/from-calendar", calendar)).ok(201)
        days = {"startDay": 1, "endDay": 28, "targetDay": 29}
        (await coach.post(f"/coach/programs/{program['_id']}/copy-days", days)).ok(201)
        body = {"customerId": ana["_id"], "startDate": MONDAY, "weekdays": [1, 3]}
        assigned = (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok(201)
        assert len((await coach.get(f"{path}/programs")).ok()) == 1
        end = {"removeUpcoming": True}
        (await coach.post(f"{path}/programs/{assigned['assignmentId']}/end", end)).ok()
        (await coach.post(f"{path}/wblocks/shift", {"from": "2028-01-01", "days": 1})).ok()
        entries = await profile()

    assert len(entries) > 30
    assert_efficient([entry for entry in entries if "workoutBlocks" in entry["ns"] or "programAss" in entry["ns"]])


async def test_export_and_erasure_do_not_scan_collections(coach: CoachClient, other_company: CoachClient) -> None:
    """Also when other companies have more documents and newer ones."""
    clients = [await company.create_customer() for company in (coach, coach, other_company)]
    ana, bo, cy = [ObjectId(client["_id"]) for client in clients]
    erased_files = [*await create_many(coach.ctx, ana), *await create_many(coach.ctx, bo, MANY // 5)]
    other_files = await create_many(other_company.ctx, cy)
    services, company = coach.ctx.services, {"companyId": coach.ctx.company_id}

    async with profiling(coach) as profile:
        assert len((await coach.get(f"/coach/customers/{ana}/export")).raw) > 10_000
        await run_job(erasure.erase_customer, coach.ctx, {**company, "customerId": ana})
        await run_job(erasure.erase_company, coach.ctx, company)
        entries = await profile()

    assert_efficient(entries)
    assert [name for name in registry if await services.db[name].find_one(company)] == []
    assert (await files.count_bytes(services, erased_files), await files.count_bytes(services, other_files)) == (
        0,
        FILES * len(PICTURE),
    )


async def create_many(ctx: Context, client: ObjectId, times: int = MANY) -> list[ObjectId]:
    """Create documents of the client in every collection, and files, whose identifiers are returned."""
    await insert_in_every_collection(ctx, client, str(client), times=times)
    stored = [
        await files.store(ctx, io.BytesIO(PICTURE), name="x.png", content_type="image/png", customer_id=client)
        for _ in range(FILES)
    ]

    async def attach(tx: Context) -> None:
        for file in stored:
            await files.attach(tx, file)

    await in_transaction(ctx, attach)
    return [file.id for file in stored]


async def run_job(step: Step, ctx: Context, arguments: dict[str, Any]) -> None:
    """Run every step of a job."""
    while await step(ctx.services, Job(ObjectId(), arguments, 1)) == RunAgain():
        pass


async def test_deliveries_of_webhooks_do_not_scan_collections(coach: CoachClient, other_company: CoachClient) -> None:
    """With many deliveries of each state, also of another webhook and another company."""
    ids = []
    for company in (coach, other_company):
        for _ in range(2):
            created = await company.post("/coach/webhooks", {"url": "https://hooks.invalid/", "isActive": False})
            ids.append(ObjectId(created.ok(201)["_id"]))
            await insert_deliveries(company.ctx, ids[-1])
    webhook_id, at, path = ids[0], now(), f"/coach/webhooks/{ids[0]}/deliveries"

    async with profiling(coach) as profile:
        cursor = (await coach.get(path, limit=5)).ok()["nextCursor"]
        (await coach.get(path, limit=5, after=cursor)).ok()
        (await coach.get(path, limit=5, status="failed")).ok()
        assert len(await webhooks.list_queued(coach.ctx, webhook_id, 10, 5)) == 5
        due = await webhooks.list_due(coach.ctx, webhook_id, at, 5, without=[])
        assert len(await webhooks.list_due(coach.ctx, webhook_id, at, 5, without=[each["_id"] for each in due])) == 5
        assert await webhooks.find_next_due(coach.ctx, webhook_id, at) is not None
        assert all(active["_id"] not in ids for active in await webhooks.list_active(coach.ctx.services))
        entries = [entry for entry in await profile() if entry["ns"].endswith(("webhooks", "webhookDeliveries"))]

    assert len(entries) >= 8
    assert_efficient(entries)


async def insert_deliveries(ctx: Context, webhook_id: ObjectId) -> None:
    """Insert many deliveries of each kind."""
    kinds: list[dict[str, Any]] = [
        {"status": "pending", "isQueued": True},
        {"status": "pending", "nextAttemptAt": now()},
        {"status": "pending", "nextAttemptAt": now() + timedelta(hours=1)},
        {"status": "failed"},
        {"status": "succeeded"},
    ]
    for kind in kinds:
        new = [new_delivery(webhook_id, f"{ObjectId()}.0", number, "note.created", None) for number in range(MANY)]
        await webhooks.deliveries.insert_many(ctx, [each | kind for each in new])
