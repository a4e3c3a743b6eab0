"""Recurring check-ins (contract 11)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job
from coaching_service.progress.check_ins import schedule_batch
from coaching_service.training.schedule import service as schedule
from tests.contract.test_queries import assert_efficient, profiling
from tests.support.check_ins import HABIT, LONG_AGO, check_in, dates, day, form, list_check_ins, run_job
from tests.support.client import UNKNOWN, CoachClient
from tests.support.results import read_compliance, read_workload
from tests.support.schedules import EVER, batch, operate
from tests.support.training import (
    Json,
    block_with,
    client_path,
    employee_key,
    exercise_of,
    feed_types,
    form_of,
    log,
    metric_set,
    move,
    own_log,
    path_of,
    task,
)

pytestmark = pytest.mark.usefixtures("wednesday")


async def test_weekly_form_is_scheduled_four_weeks_ahead_in_blocks_of_its_own(coach: CoachClient) -> None:
    ana, weekly = await coach.create_customer("Ana"), await form(coach)
    start = coach.ctx.caller.today() + timedelta(days=2)
    await block_with(coach, ana, task(), date=str(start))

    reply = await coach.post(
        client_path(ana, "check-ins"),
        {"formId": weekly["_id"], "weekday": start.isoweekday(), "startDate": day(coach, 0)},
    )

    created = reply.ok(201)
    assert created == {
        "_id": created["_id"],
        "customerId": ana["_id"],
        "name": "Weekly",
        "formId": weekly["_id"],
        "metricsSetId": None,
        "taskFields": None,
        "weekday": start.isoweekday(),
        "everyDays": None,
        "startDate": day(coach, 0),
        "until": None,
        "createdAt": created["createdAt"],
        "updatedAt": created["createdAt"],
        "version": 0,
    }
    assert await list_check_ins(coach, ana) == [created]
    regular, *blocks = await coach.calendar(ana, *EVER)
    assert [block["date"] for block in blocks] == [day(coach, 2 + 7 * week) for week in range(4)]
    assert (regular["checkInId"], {block["checkInId"] for block in blocks}) == (None, {created["_id"]})
    assert {(block["name"], block["isRest"], len(block["items"])) for block in blocks} == {("Weekly", False, 1)}
    assert {block["items"][0]["form"]["formId"] for block in blocks} == {weekly["_id"]}
    assert [block["order"] for block in blocks] == [1, 0, 0, 0]
    assert (await coach.get(path_of(blocks[0]))).ok()["checkInId"] == created["_id"]


async def test_metric_set_every_few_days_until_a_date(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach, "Weight")
    await check_in(coach, ana, metricsSetId=body["_id"], everyDays=3, startDate=day(coach, -3), until=day(coach, 8))
    blocks = await coach.calendar(ana, *EVER)
    assert [block["date"] for block in blocks] == [day(coach, 0), day(coach, 3), day(coach, 6)]
    item = blocks[0]["items"][0]
    assert item["metricsFields"]["metricsSetId"] == body["_id"]
    values = [{"metricId": body["metrics"][0]["_id"], "value": 80}]
    (await log(coach, blocks[0], item, values=values)).ok()


async def test_client_ticks_off_a_habit(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await check_in(coach, ana, until=day(coach, 1))
    client = await coach.as_client(ana)
    own = (await client.get("/customer/wblock", startDate=day(coach, 0), endDate=day(coach, 1))).ok()
    assert [block["items"][0]["taskFields"]["title"] for block in own] == [HABIT["taskFields"]["title"]] * 2

    (await own_log(client, own[0], own[0]["items"][0])).ok()

    assert [block["isCompleted"] for block in await coach.calendar(ana, *EVER)] == [True, False]
    assert await feed_types(coach, ana) == ["item_logged"], "a habit is not a completed workout"


async def test_pending_check_ins_are_listed_with_the_other_forms(coach: CoachClient) -> None:
    ana, weekly = await coach.create_customer(), await form(coach)
    await check_in(coach, ana, formId=weekly["_id"], everyDays=14)
    pending = (await coach.get("/coach/form-requests", customerId=ana["_id"])).ok()["docs"]
    assert [(each["formName"], each["date"]) for each in pending] == [
        ("Weekly", day(coach, 0)),
        ("Weekly", day(coach, 14)),
    ]


async def test_figures_ignore_check_ins(coach: CoachClient) -> None:
    """Compliance, `lastWorkoutDate`, `lastTrainedDate` and the number of sessions."""
    ana = await coach.create_customer()
    workout = await block_with(coach, ana, task(), date=day(coach, -1))
    await check_in(coach, ana)
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == day(coach, -1)
    moved, done, *_ = [block for block in await coach.calendar(ana, *EVER) if block["checkInId"]]
    (await coach.patch(path_of(moved), {"date": day(coach, -2)})).ok()
    (await log(coach, done, done["items"][0])).ok()

    compliance = await read_compliance(coach, ana)
    assert (compliance["totalWorkoutDays"], compliance["completedWorkoutDays"]) == (1, 0)
    assert sum(len(each["workoutBlocks"]) for each in compliance["dailyCompliance"]) == 1
    month = {"from": day(coach, -30), "to": day(coach, 0)}
    assert (await coach.get("/coach/compliance", **month)).ok()["docs"][0]["totalWorkoutDays"] == 1
    role = (await coach.get(client_path(ana))).ok()["customerRoleData"]
    assert (role["lastWorkoutDate"], role["lastTrainedDate"]) == (day(coach, -1), None)
    assert sum(each["sessions"] for each in await read_workload(coach, ana, day(coach, -30), day(coach, 28))) == 0
    (await coach.delete(path_of(workout))).ok(204)
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] is None


async def test_operations_on_the_schedule_ignore_check_ins(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await check_in(coach, ana, until=day(coach, 2))
    await block_with(coach, ana, exercise_of(squat), date=day(coach, 0), name="Legs")
    days = {"startDate": day(coach, 0), "endDate": day(coach, 1)}

    copy = {**days, "targetDate": day(coach, 1), "onConflict": "skip"}
    copied = await operate(coach, ana, "copy", **copy)
    assert [(block["name"], block["date"], block["order"]) for block in copied["created"]] == [
        ("Legs", day(coach, 1), 1)
    ]
    calendar = {"customerId": ana["_id"], **days, "name": "Base"}
    program = (await coach.post("/coach/programs/from-calendar", calendar)).ok(201)
    planned = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=9)).ok()
    assert [(block["name"], block["day"], block["checkInId"]) for block in planned] == [
        ("Legs", 1, None),
        ("Legs", 2, None),
    ]
    body = {"customerId": ana["_id"], "startDate": day(coach, 2), "onConflict": "skip", "dryRun": True}
    assigned = (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok()
    assert (assigned["blocks"], assigned["conflicts"]) == (2, [])
    cleared = await operate(coach, ana, "clear", **days)
    assert (len(cleared["removed"]), cleared["kept"]) == (2, 0)
    shifted = (await coach.post(client_path(ana, "wblocks/shift"), {"from": day(coach, 0), "days": 1})).ok()
    assert shifted == {"shifted": 0}
    assert await dates(coach, ana) == [day(coach, 0), day(coach, 1), day(coach, 2)]


async def test_check_ins_do_not_count_among_the_blocks_of_an_operation(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many blocks are copied or cleared at most, besides those of check-ins."""
    monkeypatch.setattr(schedule, "MAX_BLOCKS", 50)
    ana = await coach.create_customer()
    for number in range(2):
        await check_in(coach, ana, taskFields={"title": f"Habit {number}"})
    await batch(coach, ana, {"name": "Legs", "date": day(coach, 0), "items": [task()]})
    week = {"startDate": day(coach, 0), "endDate": day(coach, 27)}
    assert len((await operate(coach, ana, "copy", **week, targetDate=day(coach, 0)))["created"]) == 1
    assert len((await operate(coach, ana, "clear", **week))["removed"]) == 2


async def test_block_of_a_check_in_takes_no_other_items(coach: CoachClient) -> None:
    """So no exercise is ever in one: sessions, last times and records need not look there."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await check_in(coach, ana, until=day(coach, 0))
    [block] = await coach.calendar(ana, *EVER)
    legs = await block_with(coach, ana, exercise_of(squat))
    refused = [
        await coach.post(f"{path_of(block)}/witems", exercise_of(squat)),
        await move(coach, legs["items"][0], legs, block, 0),
    ]
    assert [reply.refused(409)["code"] for reply in refused] == ["CHECK_IN_BLOCK"] * 2
    (await coach.post(f"{client_path(ana)}/wblocks/{UNKNOWN}/witems", exercise_of(squat))).refused(404)
    copied = (await coach.post(f"{path_of(block)}/copy", {"date": day(coach, 1)})).ok(201)
    assert copied["checkInId"] is None, "what a coach copies is a workout of its own"


async def test_ending_removes_future_unanswered_ones_and_keeps_the_rest(coach: CoachClient) -> None:
    ana, daily = await coach.create_customer(), await form(coach)
    other = await check_in(coach, ana, until=day(coach, 0))
    ended = await check_in(coach, ana, formId=daily["_id"], until=day(coach, 5))
    habit, *forms = await coach.calendar(ana, *EVER)
    assert habit["checkInId"] == other["_id"]
    (await coach.patch(path_of(forms[0]), {"date": day(coach, -1)})).ok()
    (await log(coach, forms[2], forms[2]["items"][0], answers=[])).ok()
    comment = {"isCompleted": False, "answers": [], "comment": "Tomorrow"}
    (await log(coach, forms[4], forms[4]["items"][0], **comment)).ok()

    path = client_path(ana, "check-ins", ended["_id"])
    (await coach.delete(path)).ok(204)

    remaining = [(block["_id"], block["checkInId"]) for block in await coach.calendar(ana, *EVER)]
    assert remaining == [
        (forms[0]["_id"], ended["_id"]),
        (habit["_id"], other["_id"]),
        (forms[2]["_id"], ended["_id"]),
        (forms[4]["_id"], ended["_id"]),
    ]
    assert await list_check_ins(coach, ana) == [other]
    (await coach.delete(path)).refused(404)
    assert (await coach.delete(client_path(ana, "check-ins", UNKNOWN))).refused(404)["code"] == "CHECK_IN_NOT_FOUND"


async def test_a_change_schedules_what_is_still_to_come_again(coach: CoachClient) -> None:
    ana, weekly = await coach.create_customer(), await form(coach)
    habit = await check_in(coach, ana, until=day(coach, 5))
    path = client_path(ana, "check-ins", habit["_id"])
    blocks = await coach.calendar(ana, *EVER)
    (await coach.patch(path_of(blocks[0]), {"date": day(coach, -1)})).ok()
    (await log(coach, blocks[3], blocks[3]["items"][0], isCompleted=True)).ok()

    reply = await coach.patch(path, {"everyDays": 3, "until": day(coach, 6), "version": 0, "startDate": "2020-01-01"})
    changed = reply.ok()
    assert changed == {**habit, "everyDays": 3, "until": day(coach, 6), "version": 1, "updatedAt": changed["updatedAt"]}
    assert await dates(coach, ana) == [day(coach, days) for days in (-1, 0, 3, 6)]
    assert (await coach.calendar(ana, *EVER))[2]["_id"] == blocks[3]["_id"], "what is done stays"
    (await coach.patch(path, {"everyDays": 1, "version": 0})).refused(409)
    assert (await coach.patch(path, {"everyDays": 3})).ok()["version"] == 1

    after = (await coach.patch(path, {"formId": weekly["_id"], "weekday": coach.ctx.caller.today().isoweekday()})).ok()
    assert (after["taskFields"], after["everyDays"], after["name"], after["until"]) == (
        None,
        None,
        "Weekly",
        day(coach, 6),
    )
    of_today = (await coach.calendar(ana, day(coach, 0), day(coach, 0)))[0]
    assert (of_today["items"][0]["type"], of_today["checkInId"]) == ("FORM", habit["_id"])
    assert await dates(coach, ana) == [day(coach, days) for days in (-1, 0, 3)]
    refused: list[tuple[Json, str]] = [
        ({"formId": None}, "formId"),
        ({"weekday": 1, "everyDays": 2}, "everyDays"),
        ({"until": day(coach, -1)}, "until"),
        ({"formId": weekly["_id"], "taskFields": {"title": "x"}}, "taskFields"),
    ]
    for change, field in refused:
        assert (await coach.patch(path, change)).refused(400)["errors"][0]["field"] == field
    (await coach.patch(path, {"formId": UNKNOWN})).refused(404)
    (await coach.patch(client_path(ana, "check-ins", UNKNOWN), {"everyDays": 1})).refused(404)
    reader = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    (await reader.patch(path, {"everyDays": 1})).refused(403)
    await coach.wait_until_numbered(reply.headers["X-Change-Id"])
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    assert (await coach.patch(path, {"until": None})).ok()["until"] is None
    assert await dates(coach, ana) == [day(coach, days) for days in (-1, 3)], "nothing is scheduled for the archived"


async def test_dates_are_those_of_the_client(coach: CoachClient) -> None:
    zone = "Pacific/Kiritimati"
    ana = await coach.create_customer(timezone=zone)
    created = await check_in(coach, ana, startDate="2026-01-01")
    scheduled = await dates(coach, ana)
    assert (scheduled[0], scheduled[-1], len(scheduled)) == (day(coach, 0, zone), day(coach, 27, zone), 28)
    (await coach.patch((await _path_of_first(coach, ana)), {"date": day(coach, -1, zone)})).ok()
    (await coach.delete(client_path(ana, "check-ins", created["_id"]))).ok(204)
    assert await dates(coach, ana) == [day(coach, -1, zone)]


async def test_daily_job_goes_by_the_day_where_the_client_is(coach: CoachClient) -> None:
    with time_machine.travel(datetime(2026, 11, 29, 12, tzinfo=UTC), tick=True):  # the 30th at UTC+14
        for zone, last in (("Pacific/Kiritimati", "2026-12-27"), ("UTC", "2026-12-26")):
            ana = await coach.create_customer(timezone=zone)
            await check_in(coach, ana, startDate="2026-12-20")
            where = {"customerId": ObjectId(ana["_id"])}
            fields = {"scheduledUntil": "2026-12-20", "dueAt": LONG_AGO}
            await coach.ctx.db["checkIns"].update_one(where, {"$set": fields})
            await coach.ctx.db["workoutBlocks"].delete_many(where | {"date": {"$gt": "2026-12-20"}})
            await schedule_batch(coach.ctx.services, Job(ObjectId(), {}, 1))
            assert (await dates(coach, ana))[-1] == last


async def _path_of_first(coach: CoachClient, customer: Json) -> str:
    return path_of((await coach.calendar(customer, *EVER))[0])


# --- requests --------------------------------------------------------------------------------------------------------


async def test_one_content_and_one_rhythm(coach: CoachClient) -> None:
    ana, weekly = await coach.create_customer(), await form(coach)
    valid: Json = {**HABIT, "everyDays": 1, "startDate": day(coach, 0)}
    refused: list[tuple[Json, str]] = [
        ({"taskFields": None}, "formId"),
        ({"formId": weekly["_id"]}, "taskFields"),
        ({"taskFields": {"title": " "}}, "taskFields.title"),
        ({"everyDays": None}, "weekday"),
        ({"weekday": 1}, "everyDays"),
        ({"everyDays": None, "weekday": 8}, "weekday"),
        ({"everyDays": 0}, "everyDays"),
        ({"startDate": None}, "startDate"),
        ({"startDate": "2026-02-30"}, "startDate"),
        ({"until": day(coach, -1)}, "until"),
        ({"taskFields": None, "formId": {"$ne": None}}, "formId"),
    ]
    path = client_path(ana, "check-ins")
    for change, field in refused:
        errors = (await coach.post(path, {**valid, **change})).refused(400)["errors"]
        assert errors[0]["field"] == field, change
    for name in ("formId", "metricsSetId"):
        (await coach.post(path, {**valid, "taskFields": None, name: UNKNOWN})).refused(404)
    assert (await list_check_ins(coach, ana), await dates(coach, ana)) == ([], [])


async def test_adding_needs_the_permission_to_edit_clients(coach: CoachClient, other_company: CoachClient) -> None:
    ana = await coach.create_customer()
    created = await check_in(coach, ana)
    viewer = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    path = client_path(ana, "check-ins")
    assert (await viewer.get(path)).ok() == [created]
    (await viewer.post(path, {**HABIT, "everyDays": 1, "startDate": day(coach, 0)})).refused(403, "customers.edit")
    (await viewer.delete(f"{path}/{created['_id']}")).refused(403, "customers.edit")
    foreign = await other_company.create_customer()
    (await other_company.delete(client_path(foreign, "check-ins", created["_id"]))).refused(404)
    key = {"Idempotency-Key": "once"}
    body = {**HABIT, "everyDays": 28, "startDate": day(coach, 0)}
    first, second = [(await coach.post(path, body, headers=key)).ok(201) for _ in range(2)]
    assert (first, len(await list_check_ins(coach, ana))) == (second, 2)


async def test_check_ins_do_not_scan_collections(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    for number in range(20):
        await check_in(coach, bo, taskFields={"title": f"Habit {number}"}, until=day(coach, 0))
    async with profiling(coach) as profile:
        created = await check_in(coach, ana, taskFields={"title": "Walk"}, everyDays=2)
        await list_check_ins(coach, ana)
        await coach.ctx.db["checkIns"].update_one({"_id": ObjectId(created["_id"])}, {"$set": {"dueAt": LONG_AGO}})
        await run_job(coach)
        (await coach.delete(client_path(ana, "check-ins", created["_id"]))).ok(204)
        entries = await profile()
    # Figures of clients are renewed in the background; that reads a client's blocks until it meets a session.
    own = [entry for entry in entries if str(coach.ctx.company_id) in str(entry) and "'done'" not in str(entry)]
    own = [entry for entry in own if bo["_id"] not in str(entry)]
    assert_efficient([entry for entry in own if "checkIns" in entry["ns"] or "workoutBlocks" in entry["ns"]])
    assert own


async def test_answers_of_a_check_in_are_responses(coach: CoachClient) -> None:
    ana, weekly = await coach.create_customer(), await form(coach)
    await check_in(coach, ana, formId=weekly["_id"], until=day(coach, 0))
    client = await coach.as_client(ana)
    [block] = (await client.get("/customer/wblock", startDate=day(coach, 0), endDate=day(coach, 0))).ok()
    answers = [{"questionId": weekly["questions"][0]["_id"], "value": "Well"}]
    (await own_log(client, block, block["items"][0], answers=answers)).ok()
    [response] = (await coach.get("/coach/form-responses", reviewed="false")).ok()["docs"]
    assert (response["formId"], response["answers"][0]["value"]) == (weekly["_id"], "Well")
    assert (await coach.get("/coach/form-requests")).ok()["docs"] == []
    assert (
        await coach.post(client_path(ana, "wblocks"), {"name": "A", "date": day(coach, 0), "items": [form_of()]})
    ).ok(201)["checkInId"] is None
