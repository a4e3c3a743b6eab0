"""Which days are workout days, and that each has one state in all readings (contract 7 and 11)."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.reports.blocks import list_days, status_of_day
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.results import read_compliance, read_workload
from tests.support.training import Json, block_with, client_path, log, one_of_each, path_of, task


def day(coach: CoachClient, days_ago: int) -> str:
    return str(coach.ctx.caller.today() - timedelta(days=days_ago))


async def items_by_type(coach: CoachClient) -> dict[str, Json]:
    return {item["type"]: item for item in await one_of_each(coach)}


async def role_of(coach: CoachClient, customer: Json) -> Json:
    await renew_figures(coach.ctx)
    role: Json = (await coach.get(client_path(customer))).ok()["customerRoleData"]
    return role


async def reasons_of(coach: CoachClient) -> set[str]:
    await renew_figures(coach.ctx)
    return {reason["type"] for each in (await coach.get("/coach/attention")).ok()["docs"] for reason in each["reasons"]}


@pytest.mark.parametrize(
    ("item_type", "is_workout"),
    [
        ("EXERCISE", True),
        ("CIRCUIT", True),
        ("TASK", True),
        ("FORM", False),
        ("METRICS", False),
        ("REMINDER", False),
    ],
)
async def test_only_exercises_circuits_and_tasks_make_a_workout_day(
    coach: CoachClient, item_type: str, is_workout: bool
) -> None:
    ana, items = await coach.create_customer(), await items_by_type(coach)
    await block_with(coach, ana, items[item_type], date=day(coach, 1))
    ahead = await block_with(coach, ana, items[item_type], date=day(coach, -2))

    compliance = await read_compliance(coach, ana, **{"from": day(coach, 2), "to": day(coach, 0)})
    assert [each["isWorkoutDay"] for each in compliance["dailyCompliance"]] == [False, is_workout, False]
    assert (compliance["totalWorkoutDays"], compliance["completedWorkoutDays"]) == (int(is_workout), 0)
    role = await role_of(coach, ana)
    assert role["complianceRate7d"] == (0 if is_workout else None)
    assert role["lastWorkoutDate"] == (ahead["date"] if is_workout else None)
    listed = (await coach.get("/coach/compliance", **{"from": day(coach, 2), "to": day(coach, 0)})).ok()["docs"]
    assert [each["totalWorkoutDays"] for each in listed] == [int(is_workout)]
    reasons = await reasons_of(coach)
    assert ("missed_workout" in reasons, "nothing_scheduled" in reasons) == (is_workout, not is_workout)
    assert ("check_in_overdue" in reasons) == (item_type == "FORM"), "once, as what it is"


async def test_an_imported_session_is_done_on_calendars_and_counts_in_no_compliance(coach: CoachClient) -> None:
    ana, yesterday = await coach.create_customer(), day(coach, 1)
    block = await block_with(coach, ana, task(), date=yesterday)
    (await log(coach, block, block["items"][0])).ok()
    source = {"$set": {"source": {"format": "hevy", "externalId": "1"}}}
    await coach.ctx.db["workoutBlocks"].update_one({"_id": ObjectId(block["_id"])}, source)

    first = coach.ctx.caller.today() - timedelta(days=1)
    [listed] = await list_days(coach.ctx, ObjectId(ana["_id"]), first, first, today=coach.ctx.caller.today())

    assert listed["status"] == "done"
    compliance = await read_compliance(coach, ana, **{"from": yesterday, "to": yesterday})
    assert compliance["totalWorkoutDays"] == 0


async def test_answers_and_measurements_are_no_training(coach: CoachClient) -> None:
    """Neither a session, nor the last training, nor a completed workout of the streak."""
    ana, items = await coach.create_customer(), await items_by_type(coach)
    for item_type in ("FORM", "METRICS", "REMINDER"):
        block = await block_with(coach, ana, items[item_type], date=day(coach, 1))
        (await coach.put(f"{path_of(block)}/witems/{block['items'][0]['_id']}/log", {"isCompleted": True})).ok()
    assert (await role_of(coach, ana))["lastTrainedDate"] is None
    periods = await read_workload(coach, ana, day(coach, 6), day(coach, 0))
    assert sum(period["sessions"] for period in periods) == 0

    block = await block_with(coach, ana, task(), date=day(coach, 0))
    (await log(coach, block, block["items"][0])).ok()
    assert (await role_of(coach, ana))["lastTrainedDate"] == day(coach, 0)


async def test_a_form_next_to_a_workout_does_not_leave_it_incomplete(coach: CoachClient) -> None:
    ana, items = await coach.create_customer(), await items_by_type(coach)
    await block_with(coach, ana, items["FORM"], date=day(coach, 1))
    workout = await block_with(coach, ana, task(), date=day(coach, 1))
    (await log(coach, workout, workout["items"][0])).ok()
    compliance = await read_compliance(coach, ana, **{"from": day(coach, 1), "to": day(coach, 1)})
    [only] = compliance["dailyCompliance"]
    assert (only["isCompleted"], only["totalItems"], only["completedItems"]) == (True, 1, 1)
    assert "missed_workout" not in await reasons_of(coach)


async def test_last_workout_date_follows_the_items(coach: CoachClient) -> None:
    ana, items = await coach.create_customer(), await items_by_type(coach)
    first = await block_with(coach, ana, task(), date="2026-03-02")
    block = await coach.schedule(ana, "2026-03-05", "Friday")
    assert (await role_of(coach, ana))["lastWorkoutDate"] == "2026-03-05", "a workout without items yet"
    form = (await coach.post(f"{path_of(block)}/witems", items["FORM"])).ok(201)
    assert (await role_of(coach, ana))["lastWorkoutDate"] == first["date"]
    walk = (await coach.post(f"{path_of(block)}/witems", task())).ok(201)
    assert (await role_of(coach, ana))["lastWorkoutDate"] == "2026-03-05"
    (await coach.delete(f"{path_of(block)}/witems/{walk['_id']}")).ok(204)
    assert (await role_of(coach, ana))["lastWorkoutDate"] == first["date"]
    (await coach.delete(f"{path_of(block)}/witems/{form['_id']}")).ok(204)
    assert (await role_of(coach, ana))["lastWorkoutDate"] == "2026-03-05"


async def test_days_of_a_program_count_only_workouts(coach: CoachClient) -> None:
    items = await items_by_type(coach)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{program['_id']}"
    for number, item_type in enumerate(("TASK", "FORM", "REMINDER"), 1):
        block = {"name": item_type, "day": number, "items": [items[item_type]]}
        (await coach.post(f"{path}/wblocks", block)).ok(201)
    assert (await coach.get(path)).ok()["numberOfDaysWithWorkouts"] == 1


def test_states_by_hand() -> None:
    today = date(2026, 3, 4)

    def block(total: int, completed: int, **fields: object) -> object:
        base = {"date": "2026-03-04", "name": "", "isRest": False, "isWorkout": True, "hasWork": False}
        return {**base, "totalItems": total, "completedItems": completed, **fields}

    rest = block(0, 0, isRest=True, isWorkout=False)
    form = block(1, 0, isWorkout=False)
    for blocks, expected in [
        ([], None),
        ([form], None),
        ([rest, form], "rest"),
        ([rest, block(1, 1)], "done"),
        ([block(2, 2), form], "done"),
        ([block(2, 2), block(1, 0)], "part"),
        ([block(2, 0, hasWork=True)], "part"),
        ([block(2, 0)], "planned"),
        ([block(2, 0, date="2026-03-03")], "missed"),
        ([own := block(2, 0, isWorkout=False, createdBy="client")], "planned"),
        ([own, block(2, 2)], "done"),
        ([block(2, 1, isWorkout=False, createdBy="client")], "part"),
        ([missed := block(2, 0, isWorkout=False, createdBy="client", date="2026-03-03")], None),
        ([rest, missed], "rest"),
        ([imported := block(2, 2, isWorkout=False, isImported=True, date="2026-03-03")], "done"),
        ([rest, imported], "done"),
        ([imported, block(1, 0, date="2026-03-03")], "missed"),
    ]:
        assert status_of_day(blocks, today) == expected, blocks  # type: ignore[arg-type]
