"""Work through many in the background: one damaged document delays none of the others, and is counted and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from coaching_service import features
from coaching_service.core.database.documents import now
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.core.jobs.queue import Job
from coaching_service.core.jobs.worker import for_each_alone
from coaching_service.installation.backup.stores import FolderStore
from coaching_service.lifecycle import erasure
from coaching_service.people import notifications as sending
from coaching_service.people import team
from coaching_service.progress import check_ins, personal_records
from coaching_service.progress.attention import renewal
from tests.support.check_ins import check_in
from tests.support.client import CoachClient
from tests.support.doctor import check as run_check
from tests.support.doctor import findings_of
from tests.support.figures import renew_figures
from tests.support.service_process import until
from tests.support.stored import stored_document
from tests.support.training import block_with, client_path, exercise_of, log

JOB = Job(ObjectId(), {}, 1)
LONG_AGO = now() - timedelta(days=3)


async def failing(coach: CoachClient, kind: str, *subjects: Any) -> list[dict[str, Any]]:
    """What is stored of the failures of these subjects, in their order."""
    where = {"kind": kind, "subject": {"$in": [ObjectId(str(each)) for each in subjects]}}
    found: list[dict[str, Any]] = await coach.ctx.db["failures"].find(where).sort("subject", 1).to_list(None)
    return found


async def test_only_the_failing_one_waits_longer_each_time_and_is_named(coach: CoachClient) -> None:
    ids = sorted(ObjectId() for _ in range(9))
    bad, tried = {ids[4]}, list[list[ObjectId]]()
    services, company_id = coach.ctx.services, coach.ctx.company_id

    async def work(part: Sequence[ObjectId]) -> None:
        tried.append(list(part))
        if bad & set(part):
            raise ZeroDivisionError

    async def run(**options: bool) -> dict[ObjectId, timedelta]:
        tried.clear()
        return await for_each_alone(services, "figures", company_id, ids, work, **options)

    assert await run() == {ids[4]: timedelta(minutes=1)}
    assert tried[0] == ids, "together first"
    assert {each for part in tried for each in part} == set(ids)
    assert len(tried) < len(ids), "by halves"
    assert await run() == {ids[4]: timedelta(minutes=2)}
    assert sorted(tried, key=len) == [[ids[4]], [each for each in ids if each != ids[4]]], "known: alone from the start"
    assert (await run(skips_waiting=True), tried) == ({}, [[each for each in ids if each != ids[4]]])
    for _ in range(7):
        last = await run()
    assert last == {ids[4]: timedelta(minutes=256)}
    assert await run() == {ids[4]: timedelta(hours=6)}
    [stored] = await failing(coach, "figures", *ids)
    assert (stored["attempts"], stored["subject"]) == (10, ids[4])
    assert stored["since"] <= now()

    [(name, finding)] = findings_of(await run_check(services, "work-failing"))
    assert (name, f"figures {ids[4]}" in finding.identifiers) == ("work-failing", True)
    await worker.read_metrics(services)
    assert services.metrics.work_failing.labels("figures")._value.get() >= 1
    bad.clear()
    assert await run() == {}
    assert await failing(coach, "figures", *ids) == []

    async def unreachable(_: Sequence[ObjectId]) -> None:
        raise Unavailable

    with pytest.raises(Unavailable):
        await for_each_alone(services, "figures", company_id, ids, unreachable)
    assert await failing(coach, "figures", *ids) == [], "the database is at fault, nobody's document"


@pytest.mark.parametrize("timezone", ["Europe/Berlin", "Asia/Tokyo", "Pacific/Auckland"])
async def test_figures_of_the_neighbour_of_a_client_who_is_damaged(coach: CoachClient, timezone: str) -> None:
    """An absence that begins in the year 1 is no damage any more; a document of another type is."""
    ana, bo, cy = [await coach.create_customer(name, timezone=timezone) for name in ("Ana", "Bo", "Cy")]
    away = {"kind": "away", "from": "2026-03-02", "until": None}
    (await coach.post(client_path(ana, "availability"), away)).ok(201)
    db = coach.ctx.db
    own = {"customerId": ObjectId(ana["_id"])}
    await db["availability"].update_one(own, {"$set": {"from": "0001-01-01"}})
    await db["customers"].update_one({"_id": ObjectId(cy["_id"])}, {"$set": {"timezone": ["damaged"]}})
    (await coach.post(client_path(bo, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew_figures(coach.ctx)
    reasons = {
        name: {
            each["type"]
            for each in (await stored_document(db["customers"], {"_id": ObjectId(client["_id"])}))["attention"][
                "reasons"
            ]
        }
        for name, client in (("ana", ana), ("bo", bo))
    }
    assert ("unavailable" in reasons["ana"], "health_note" in reasons["bo"]) == (True, True)
    [failure] = await failing(coach, "figures", ana["_id"], bo["_id"], cy["_id"])
    assert failure["subject"] == ObjectId(cy["_id"])
    damaged = await stored_document(db["customers"], {"_id": failure["subject"]})
    assert now() < damaged["figuresChangedAt"] <= now() + timedelta(minutes=1)


async def test_digest_of_the_colleague_of_a_coach_whose_settings_are_damaged(coach: CoachClient) -> None:
    colleague = (await team.create(coach.ctx, "Eva", f"{ObjectId()}@example.com", [], "all", "no hash"))["_id"]
    damage = {"$set": {"notifications.digestHour": 99}}
    await coach.ctx.db["coaches"].update_one({"_id": colleague}, damage)
    await renewal.plan(coach.ctx)
    planned = await coach.ctx.db["notifications"].distinct("recipient._id", {"companyId": coach.ctx.company_id})
    assert planned == [coach.ctx.caller.id]
    [failure] = await failing(coach, "digests", colleague)
    await renewal.plan(coach.ctx)
    assert await failing(coach, "digests", colleague) == [failure], "not tried again before its time"


async def test_check_ins_and_records_of_the_neighbour_of_a_client_who_is_damaged(coach: CoachClient) -> None:
    ana, bo, squat = (
        await coach.create_customer("Ana"),
        await coach.create_customer("Bo"),
        await coach.create_exercise(),
    )
    broken, healthy = await check_in(coach, ana), await check_in(coach, bo)
    stored = coach.ctx.db["checkIns"]
    await stored.update_many({"companyId": coach.ctx.company_id}, {"$set": {"dueAt": LONG_AGO}})
    await stored.update_one({"_id": ObjectId(broken["_id"])}, {"$set": {"taskFields": None}})
    await check_ins.schedule_batch(coach.ctx.services, JOB)
    due = {each["_id"]: each["dueAt"] async for each in stored.find({"companyId": coach.ctx.company_id})}
    assert now() < due[ObjectId(broken["_id"])] <= now() + timedelta(minutes=1)
    assert due[ObjectId(healthy["_id"])] is None or due[ObjectId(healthy["_id"])] > now() + timedelta(minutes=1)
    assert len(await failing(coach, "check-ins", broken["_id"], healthy["_id"])) == 1

    for client in (ana, bo):
        block = await block_with(coach, client, exercise_of(squat))
        (await log(coach, block, block["items"][0], customerSets=[{"reps": 5, "load": 100}])).ok()
    blocks, records = coach.ctx.db["workoutBlocks"], coach.ctx.db["personalRecords"]
    await blocks.update_one(
        {"customerId": ObjectId(ana["_id"]), "items.type": "EXERCISE"}, {"$set": {"items.0.customerSets": 5}}
    )
    await records.delete_many({"companyId": coach.ctx.company_id})
    job = replace(JOB, company_id=coach.ctx.company_id, arguments={"last": None, "exerciseId": ObjectId(squat["_id"])})
    await personal_records.renew_batch(coach.ctx.services, job)
    assert len(await failing(coach, "training-load", ana["_id"], bo["_id"])) == 1
    again = await stored_document(coach.ctx.db["jobs"], {"about": ObjectId(ana["_id"])})
    assert again["arguments"]["only"] == ObjectId(ana["_id"])


async def test_notification_and_tombstone_after_a_damaged_one(coach: CoachClient, tmp_path: Path) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    notifications = coach.ctx.db["notifications"]
    due = {
        "companyId": coach.ctx.company_id,
        "kind": "workouts",
        "channels": ["mail"],
        "dueAt": now(),
        "validUntil": now() + timedelta(hours=1),
        "sentAt": None,
        "requests": 0,
        "createdAt": now(),
        "subject": {"date": str(now().date())},
    }
    ids = [ObjectId(), ObjectId()]
    for number, client in enumerate((ana, bo)):
        recipient = {"type": "client", "_id": ObjectId(client["_id"])}
        own = {"_id": ids[number], "key": f"workouts:{client['_id']}", "recipient": recipient}
        await notifications.insert_one({**due, **own, "customerId": ObjectId(client["_id"]), "sendAt": LONG_AGO})
    damage = {"$set": {"notifications": {"workouts": 5}}}
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(ana["_id"])}, damage)

    async def have_ended() -> bool:
        """Also when the application's own sender has claimed one of them."""
        await sending.send_next(coach.ctx.services, features.NOTIFICATIONS, features.queue_push)
        send_at = {each["_id"]: each["sendAt"] async for each in notifications.find({"_id": {"$in": ids}})}
        is_waiting = now() < send_at[ids[0]] <= now() + timedelta(minutes=1)
        return is_waiting and send_at[ids[1]] is None and len(await failing(coach, "notifications", *ids)) == 1

    await until(
        have_ended, "the first waits for its next attempt; nothing was planned for the second, so it is dropped"
    )

    store = FolderStore(tmp_path / "store")
    services = replace(coach.ctx.services, backup_store=store)
    for client in (ana, bo):
        (await coach.delete(client_path(client))).ok(204)
    erasures = coach.ctx.db["erasures"]
    own = {"erasedCompanyId": coach.ctx.company_id}
    first = (await erasures.find(own).sort("_id", 1).to_list(None))[0]["_id"]
    await erasures.update_one({"_id": first}, {"$set": {"erasedAt": "damaged"}})
    await erasure.write_new(services, store)
    stored = {each["_id"]: each["storedAt"] async for each in erasures.find(own)}
    assert [identifier for identifier, at in stored.items() if at is None] == [first]
    assert len(await failing(coach, "tombstones", first)) == 1
    with time_machine.travel(now() + timedelta(minutes=2), tick=True):
        await erasures.update_one({"_id": first}, {"$set": {"erasedAt": LONG_AGO}})
        await erasure.write_new(services, store)
    assert await failing(coach, "tombstones", first) == []
