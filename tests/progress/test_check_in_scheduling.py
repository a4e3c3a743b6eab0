"""The daily job that schedules recurring check-ins (contract 11)."""

from __future__ import annotations

import asyncio

from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.lifecycle import erasure
from coaching_service.progress import check_ins
from tests.support.check_ins import (
    HABIT,
    LONG_AGO,
    as_if_added_a_week_ago,
    check_in,
    dates,
    day,
    form,
    list_check_ins,
    run_job,
)
from tests.support.client import CoachClient
from tests.support.schedules import EVER
from tests.support.training import client_path, metric_set, path_of

# --- the daily job ---------------------------------------------------------------------------------------------------


async def test_daily_job_schedules_what_has_come_within_four_weeks(coach: CoachClient) -> None:
    ana, weekly = await coach.create_customer(), await form(coach)
    await check_in(coach, ana)
    await check_in(coach, ana, formId=weekly["_id"], everyDays=7)
    expected = await dates(coach, ana)
    assert len(expected) == 28 + 4
    await as_if_added_a_week_ago(coach, ana)
    assert len(await dates(coach, ana)) == 21 + 3
    (await coach.patch(f"/coach/forms/{weekly['_id']}", {"name": "Every week"})).ok()

    await run_job(coach)

    assert await dates(coach, ana) == expected
    assert [each["name"] for each in await list_check_ins(coach, ana)][1] == "Every week"
    where = {"companyId": coach.ctx.company_id, "actor.type": "system"}
    changes = await coach.ctx.db["changes"].find(where).to_list(None)
    assert sorted((change["operation"], len(change["documents"])) for change in changes) == [
        ("schedule_check_ins", 1),
        ("schedule_check_ins", 7),
    ]


async def test_scheduling_again_adds_nothing(coach: CoachClient) -> None:
    """Also at the same time, and for a block that the coach has moved or deleted."""
    ana = await coach.create_customer()
    created = await check_in(coach, ana)
    await as_if_added_a_week_ago(coach, ana)
    first, second, *_ = await coach.calendar(ana, *EVER)
    (await coach.delete(path_of(first))).ok(204)
    (await coach.patch(path_of(second), {"date": day(coach, 3)})).ok()
    ids = ObjectId(ana["_id"]), ObjectId(created["_id"])
    await asyncio.gather(*(check_ins.schedule(coach.ctx, *ids) for _ in range(4)))
    await coach.ctx.db["checkIns"].update_one({"_id": ids[1]}, {"$set": {"dueAt": LONG_AGO}})
    await run_job(coach)
    assert await dates(coach, ana) == sorted([day(coach, number) for number in range(2, 28)] + [day(coach, 3)])
    assert (await list_check_ins(coach, ana))[0]["version"] == 0


async def test_deleted_form_pauses_a_check_in(coach: CoachClient) -> None:
    ana, weekly = await coach.create_customer(), await form(coach)
    await check_in(coach, ana, formId=weekly["_id"], everyDays=7)
    body = await metric_set(coach)
    await check_in(coach, ana, metricsSetId=body["_id"], everyDays=7)
    deleted = [await coach.delete(f"/coach/forms/{weekly['_id']}")]
    deleted.append(await coach.delete(f"/coach/metrics-sets/{body['_id']}"))
    await as_if_added_a_week_ago(coach, ana)
    await run_job(coach)
    assert len(await dates(coach, ana)) == 6
    assert (await coach.calendar(ana, *EVER))[0]["items"][0]["form"]["questions"] == weekly["questions"]
    assert len(await list_check_ins(coach, ana)) == 2

    for reply in deleted:
        (await coach.undo(reply)).ok()
    await as_if_added_a_week_ago(coach, ana)
    await run_job(coach)
    assert len(await dates(coach, ana)) == 8


async def test_nothing_is_scheduled_for_an_archived_client(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await check_in(coach, ana)
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    await as_if_added_a_week_ago(coach, ana)
    await run_job(coach)
    await check_in(coach, ana, everyDays=14)
    assert len(await dates(coach, ana)) == 21
    (await coach.put("/coach/customers/unarchive", {"id": ana["_id"]})).ok()
    await coach.ctx.db["checkIns"].update_many({"companyId": coach.ctx.company_id}, {"$set": {"dueAt": LONG_AGO}})
    await run_job(coach)
    assert len(await dates(coach, ana)) == 28 + 2


async def test_check_ins_of_an_erased_client_are_erased(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    created = await check_in(coach, ana)
    (await coach.delete(client_path(ana))).ok(204)
    check_ins = coach.ctx.db["checkIns"]
    await check_ins.update_one({"_id": ObjectId(created["_id"])}, {"$set": {"dueAt": LONG_AGO}})
    await run_job(coach)
    stored = await check_ins.find_one({"_id": ObjectId(created["_id"])})
    assert stored is not None and stored["dueAt"] is None
    arguments = {"companyId": coach.ctx.company_id, "customerId": ObjectId(ana["_id"])}
    while await erasure.erase_customer(coach.ctx.services, Job(ObjectId(), arguments, 1)) == RunAgain():
        pass
    assert await check_ins.find_one({"customerId": ObjectId(ana["_id"])}) is None


async def test_check_in_that_fails_does_not_block_the_others(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    broken, _ = await check_in(coach, ana), await check_in(coach, ana)
    await as_if_added_a_week_ago(coach, ana)
    check_ins = coach.ctx.db["checkIns"]
    await check_ins.update_one({"_id": ObjectId(broken["_id"])}, {"$set": {"taskFields": None}})
    await run_job(coach)
    assert len(await dates(coach, ana)) == 21 + 28
    stored = await check_ins.find_one({"_id": ObjectId(broken["_id"])})
    assert stored is not None and stored["dueAt"] > LONG_AGO


# --- undo ------------------------------------------------------------------------------------------------------------


async def test_undo_of_adding_removes_what_was_scheduled_since(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    body = {**HABIT, "everyDays": 7, "startDate": day(coach, 0)}
    reply = await coach.post(client_path(ana, "check-ins"), body)
    check_in_id = ObjectId(reply.ok(201)["_id"])
    fields = {"scheduledUntil": day(coach, 27), "dueAt": LONG_AGO, "everyDays": 1}
    await coach.ctx.db["checkIns"].update_one(
        {"_id": check_in_id}, {"$set": {**fields, "scheduledUntil": day(coach, 25)}}
    )
    await run_job(coach)
    assert len(await dates(coach, ana)) == 4 + 2
    undo = f"/coach/changes/{reply.headers['X-Change-Id']}/undo"
    undone = (await coach.post(undo)).ok()
    assert (await dates(coach, ana), await list_check_ins(coach, ana)) == ([], [])
    (await coach.post(f"/coach/changes/{undone['changeId']}/undo")).ok()
    assert len(await dates(coach, ana)) == 4 + 2


async def test_undo_of_ending_restores_the_check_in_and_its_blocks(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    created = await check_in(coach, ana)
    before = await dates(coach, ana)
    reply = await coach.delete(client_path(ana, "check-ins", created["_id"]))
    assert await dates(coach, ana) == []
    (await coach.undo(reply)).ok()
    assert await dates(coach, ana) == before
    assert [each["_id"] for each in await list_check_ins(coach, ana)] == [created["_id"]]
    await as_if_added_a_week_ago(coach, ana)
    await run_job(coach)
    assert await dates(coach, ana) == before
