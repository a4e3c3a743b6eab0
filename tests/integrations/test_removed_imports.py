"""Imports of training history that are undone, or cancelled."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from coaching_service import features
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.integrations import background_jobs
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import import importing, undoing
from coaching_service.people.customers import service as customers
from tests.support.client import CoachClient
from tests.support.imported_history import SETS, events, rows_of_sets, workouts
from tests.support.service_process import until
from tests.support.transfer import import_file, send, undo


async def test_an_undo_removes_what_has_not_changed(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    rows = rows_of_sets(
        "2025-01-06,Legs,Flurbing,5,100,", "2025-01-08,Legs,Flurbing,5,105,", "2025-01-09,Legs,Zorking,5,50,"
    )
    job = await import_file(coach, rows, name="sets.csv", customerId=ana["_id"])
    assert job["result"]["created"]["exercises"] == 2
    first, *_ = await workouts(coach, ana)
    (await coach.patch(f"/coach/customers/{ana['_id']}/wblocks/{first['_id']}", {"name": "Heavy legs"})).ok()

    undone = await undo(coach, job)

    assert (undone["kind"], undone["status"]) == ("undo", "done")
    assert undone["result"]["removed"] == {"customers": 0, "sessions": 2, "exercises": 1}
    staying = {each["documentId"]: each["code"] for each in undone["result"]["failed"]}
    assert staying.pop(first["_id"]) == "CHANGED"
    assert list(staying.values()) == ["IN_USE"]
    assert [block["name"] for block in await workouts(coach, ana)] == ["Heavy legs"]
    records = (await coach.get(f"/coach/customers/{ana['_id']}/personal-records")).ok()
    assert {each["date"] for each in records} == {"2025-01-06"}
    [event] = await events(coach, "history.removed")
    assert event["data"]["sessions"] == 2


async def test_a_session_that_was_commented_on_stays(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    rows = rows_of_sets("2025-01-06,Legs,Squat,5,100,", "2025-01-08,Legs,Squat,5,105,")
    job = await import_file(coach, rows, name="sets.csv", customerId=ana["_id"])
    first, _ = await workouts(coach, ana)
    comment = {"text": "Well done", "about": {"wblockId": first["_id"]}}
    (await coach.post(f"/coach/customers/{ana['_id']}/messages", comment)).ok(201)
    undone = (await undo(coach, job))["result"]
    assert undone["removed"]["sessions"] == 1
    assert [(each["documentId"], each["code"]) for each in undone["failed"]] == [(first["_id"], "IN_USE")]


async def test_an_undo_removes_clients_that_the_import_created(coach: CoachClient) -> None:
    rows = b"Client,Date,Exercise,Reps,Weight (kg)\nBo Li,2025-01-06,Squat,5,100\nCy Li,2025-01-06,Squat,5,100\n"
    answers = json.dumps({"Bo Li": "create", "Cy Li": "create"})
    job = await import_file(coach, rows, name="sets.csv", customers=answers)
    listed = (await coach.get("/coach/customers", archived="false", pageSize=10, pageNum=1)).ok()["docs"]
    bo = next(each for each in listed if each["name"] == "Bo")
    (await coach.post(f"/coach/customers/{bo['_id']}/notes", {"content": "Met today"})).ok(201)
    undone = await undo(coach, job)
    assert undone["result"]["removed"] == {"customers": 1, "sessions": 2, "exercises": 0}
    assert undone["result"]["failed"] == [
        {"documentId": bo["_id"], "code": "IN_USE", "message": "is used by what was created since the import"}
    ]


async def test_an_import_that_is_cancelled_keeps_its_sessions_and_reports_them(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue runs one batch at a time here: the first of two is stored when the job is cancelled."""
    ana = await coach.create_customer("Ana")
    monkeypatch.setattr(importing, "_BATCH_SESSIONS", 1)
    monkeypatch.setattr(company_import, "_STEP_SECONDS", -1)
    step = features.STEPS[company_import.IMPORT]
    monkeypatch.delitem(features.STEPS, company_import.IMPORT)  # the service does not continue it
    job = (await send(coach, SETS, name="sets.csv", customerId=ana["_id"])).ok(202)
    while not await workouts(coach, ana):
        await worker.run_due(coach.ctx.services, {company_import.IMPORT: step}, limit=1)
    cancelled = (await coach.post(f"/coach/jobs/{job['_id']}/cancel")).ok()
    monkeypatch.setitem(features.STEPS, company_import.IMPORT, step)

    assert (cancelled["status"], cancelled["result"]["created"]["sessions"]) == ("cancelled", 1)
    follow = background_jobs.FOLLOW
    await worker.run_due(coach.ctx.services, {follow: features.STEPS[follow]})
    reported = await until(lambda: events(coach, "history.imported"), "the event")
    assert [each["data"]["sessions"] for each in reported] == [1]
    records = (await coach.get(f"/coach/customers/{ana['_id']}/personal-records")).ok()
    assert {each["date"] for each in records} == {"2025-01-06"}
    removed = await undo(coach, job)
    assert removed["result"]["removed"]["sessions"] == 1


async def test_an_undo_that_is_cancelled_says_what_it_has_removed_and_figures_follow(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue runs one batch at a time here: one of two sessions is removed when the job is cancelled."""
    ana = await coach.create_customer("Ana")
    rows = rows_of_sets("2025-01-06,Legs,Squat,5,110,", "2025-01-08,Legs,Squat,5,105,")
    job = await import_file(coach, rows, name="sets.csv", customerId=ana["_id"])
    monkeypatch.setattr(undoing, "_BATCH", 1)
    monkeypatch.setattr(undoing, "_STEP_SECONDS", -1)
    step = features.STEPS[undoing.UNDO]
    monkeypatch.delitem(features.STEPS, undoing.UNDO)  # the service does not continue it
    begun = (await coach.post(f"/coach/jobs/{job['_id']}/undo")).ok(202)
    while len(await workouts(coach, ana)) == 2:
        await worker.run_due(coach.ctx.services, {undoing.UNDO: step}, limit=1)
    cancelled = (await coach.post(f"/coach/jobs/{begun['_id']}/cancel")).ok()
    monkeypatch.setitem(features.STEPS, undoing.UNDO, step)

    removed = {"customers": 0, "sessions": 1, "exercises": 0}
    assert (cancelled["status"], cancelled["result"]) == ("cancelled", {"ok": 1, "removed": removed, "failed": []})
    follow = background_jobs.FOLLOW
    await worker.run_due(coach.ctx.services, {follow: features.STEPS[follow]})
    [event] = await until(lambda: events(coach, "history.removed"), "the event")
    assert (event["data"]["importId"], event["data"]["sessions"]) == (job["_id"], 1)
    assert (event["data"]["from"], event["data"]["to"]) == ("2025-01-06", "2025-01-06")
    records = (await coach.get(f"/coach/customers/{ana['_id']}/personal-records")).ok()
    assert {each["date"] for each in records} == {"2025-01-08"}
    assert (await undo(coach, job))["result"]["removed"]["sessions"] == 1
    assert await workouts(coach, ana) == []


async def test_an_undo_removes_many_clients_in_parts(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undoing, "_BATCH", 2)
    deleted: list[ObjectId] = []
    erase = customers.erase

    async def note(ctx: Context, customer_id: ObjectId) -> None:
        deleted.append(ctx.changes.id)
        await erase(ctx, customer_id)

    monkeypatch.setattr(customers, "erase", note)
    names = ["Ana", "Bo", "Cy", "Di", "Eva"]
    job = await import_file(coach, "\n".join(["name", *names]).encode(), name="c.csv")
    listed = (await coach.get("/coach/customers", archived="false", pageSize=10, pageNum=1)).ok()["docs"]
    (await coach.patch(f"/coach/customers/{listed[2]['_id']}", {"phone": "1"})).ok()

    undone = await undo(coach, job)

    assert (undone["status"], undone["result"]["removed"]["customers"]) == ("done", 4)
    assert [each["documentId"] for each in undone["result"]["failed"]] == [listed[2]["_id"]]
    assert await coach.names() == ["Cy"]
    assert max(Counter(deleted).values()) == 2, "of each transaction, some of which may be repeated"
