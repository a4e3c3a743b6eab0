"""Copying days of a calendar or a program."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.imported_history import SETS
from tests.support.schedules import (
    EVER,
    HEAVIER,
    LAST_DAY,
    NEXT_MONDAY,
    NEXT_SUNDAY,
    WEDNESDAY,
    WEEK,
    batch,
    loads,
    operate,
    plan_of,
    post,
    week_of,
    without_identity,
)
from tests.support.training import Json, circuit_of, client_path, exercise_of, feed, log, path_of, task, titles
from tests.support.transfer import import_file


async def test_last_week_is_copied_with_more_load(coach: CoachClient) -> None:
    """Copy last week +2.5 kg."""
    ana = await coach.create_customer()
    week = await week_of(coach, ana)

    copied = await operate(coach, ana, "copy", **WEEK, targetDate=NEXT_MONDAY, progression=HEAVIER)

    blocks = await coach.calendar(ana, NEXT_MONDAY, NEXT_SUNDAY)
    assert blocks == copied["created"]
    assert [(b["name"], b["date"], b["isRest"], b["order"]) for b in blocks] == [
        ("Legs", "2026-03-09", False, 0),
        ("Mobility", "2026-03-09", False, 1),
        ("Rest", "2026-03-11", True, 0),
        ("All", "2026-03-13", False, 0),
    ]
    assert loads(blocks) == [62.5] * 6
    assert [plan_of(block, with_loads=False) for block in blocks] == [plan_of(b, with_loads=False) for b in week]
    assert await coach.calendar(ana) == week
    assert (copied["changed"], copied["removed"], copied["dryRun"]) == ([], [], False)
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == "2026-03-13"


async def test_copies_follow_one_another_and_carry_the_progression(coach: CoachClient) -> None:
    """Contract 10: copy k applies the progression k times."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    day = {"name": "Legs", "date": TUESDAY, "items": [exercise_of(squat)]}
    await batch(coach, ana, day)
    progression = {"load": {"percent": 5}, "reps": {"add": -4}}

    copied = await operate(coach, ana, "copy", **WEEK, targetDate=NEXT_MONDAY, repeat=4, progression=progression)

    dates = ["2026-03-10", "2026-03-17", "2026-03-24", "2026-03-31"]
    assert [block["date"] for block in copied["created"]] == dates
    sets = [block["items"][0]["exerciseSets"][0] for block in copied["created"]]
    # 63 -> 62.5; 65.625 -> 65; 68.25 -> 67.5; 70.875 -> 70
    assert [each["load"] for each in sets] == [62.5, 65, 67.5, 70]
    assert [(each["minPlannedReps"], each["maxPlannedReps"]) for each in sets] == [(4, 6), (1, 2), (1, 1), (1, 1)]


async def test_a_copy_has_nothing_done(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    week = await week_of(coach, ana)
    for block in week:
        for item in block["items"]:
            (await log(coach, block, item, isCompleted=True, comment="Done")).ok()
        (await coach.put(f"{path_of(block)}/log", {"durationMinutes": 50, "sessionRpe": 7, "comment": "Good"})).ok()
    count = len(await feed(coach, ana))

    copied = await operate(coach, ana, "copy", **WEEK, targetDate=NEXT_MONDAY)

    for block in copied["created"]:
        assert (block["durationMinutes"], block["sessionRpe"], block["comment"]) == (None, None, None)
        for item in block["items"]:
            assert (item["isCompleted"], item["completedAt"], item["comment"]) == (False, None, None)
            assert not any(item.get(name) for name in ("customerSets", "answers", "values"))
    assert len(await feed(coach, ana)) == count


async def test_the_source_is_read_before_anything_is_written(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await batch(coach, ana, *({"name": day, "date": day, "items": [task(day)]} for day in (MONDAY, TUESDAY)))

    copied = await operate(
        coach, ana, "copy", startDate=MONDAY, endDate=WEDNESDAY, targetDate=TUESDAY, onConflict="replace"
    )

    assert [(b["name"], b["date"]) for b in await coach.calendar(ana)] == [
        (MONDAY, MONDAY),
        (MONDAY, TUESDAY),
        (TUESDAY, WEDNESDAY),
    ]
    assert len(copied["removed"]) == 1


async def conflicting(coach: CoachClient) -> tuple[Json, list[Json]]:
    """A week to copy with workouts on Monday and Wednesday, and a next week with blocks on other and the same days."""
    ana = await coach.create_customer()
    blocks = [("Legs", MONDAY), ("Arms", WEDNESDAY), ("Old", NEXT_MONDAY), ("Done", NEXT_MONDAY), ("Run", "2026-03-13")]
    created = await batch(coach, ana, *({"name": name, "date": day, "items": [task()]} for name, day in blocks))
    done = created["created"][3]
    (await coach.put(f"{path_of(done)}/log", {"comment": "Tired"})).ok()
    return ana, created["created"]


@pytest.mark.parametrize(
    ("on_conflict", "expected", "removed"),
    [
        ("add", ["Old 0", "Done 1", "Legs 2", "Arms 0", "Run 0"], []),
        ("skip", ["Old 0", "Done 1", "Arms 0", "Run 0"], []),
        ("replace", ["Done 0", "Legs 1", "Arms 0"], ["Old", "Run"]),
    ],
)
async def test_days_with_blocks_are_treated_as_requested(
    coach: CoachClient, on_conflict: str, expected: list[str], removed: list[str]
) -> None:
    """Contract 10: `add`, `skip` (a target day that has any block gets none), `replace` (blocks with nothing done are
    removed from every day of the target range; done ones stay)."""
    ana, blocks = await conflicting(coach)
    names = {block["_id"]: block["name"] for block in blocks}
    body = {**WEEK, "targetDate": NEXT_MONDAY, "onConflict": on_conflict}
    shown = await operate(coach, ana, "copy", **body, dryRun=True)

    copied = await operate(coach, ana, "copy", **body)

    assert [names[each] for each in copied["removed"]] == removed
    assert without_identity(shown) == without_identity(copied)
    calendar = await coach.calendar(ana, NEXT_MONDAY, NEXT_SUNDAY)
    assert [f"{block['name']} {block['order']}" for block in calendar] == expected
    assert [block for block in calendar if block["_id"] not in names] == copied["created"]


async def test_a_copy_past_the_calendar_copies_nothing(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await batch(coach, ana, *({"name": day, "date": day} for day in (MONDAY, TUESDAY)))
    body = {**WEEK, "targetDate": LAST_DAY}
    (await post(coach, ana, "copy", **body)).refused(400, "targetDate")
    assert len(await coach.calendar(ana, *EVER)) == 2
    only_monday = {"startDate": MONDAY, "endDate": MONDAY, "targetDate": LAST_DAY}
    assert len((await operate(coach, ana, "copy", **only_monday))["created"]) == 1


async def test_days_of_a_program_are_copied(coach: CoachClient) -> None:
    """Contract 10: POST /coach/programs/{pid}/copy-days."""
    squat = await coach.create_exercise()
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{program['_id']}"
    for day in (1, 3):
        block = {"name": f"Day {day}", "day": day, "items": [exercise_of(squat)]}
        (await coach.post(f"{path}/wblocks", block)).ok(201)
    body = {"startDay": 1, "endDay": 7, "targetDay": 8, "repeat": 3, "progression": HEAVIER}

    shown = (await coach.post(f"{path}/copy-days", {**body, "dryRun": True})).ok(200)
    assert len((await coach.get(f"{path}/wblock", startDay=1, endDay=99)).ok()) == 2
    copied = (await coach.post(f"{path}/copy-days", body)).ok(201)

    assert without_identity(shown) == without_identity(copied)
    blocks = (await coach.get(f"{path}/wblock", startDay=8, endDay=99)).ok()
    assert blocks == copied["created"]
    assert [(b["day"], loads([b])[0]) for b in blocks] == [
        (8, 62.5), (10, 62.5), (15, 65), (17, 65), (22, 67.5), (24, 67.5),
    ]  # fmt: skip
    assert (await coach.get(path)).ok()["numberOfDaysWithWorkouts"] == 8
    (await coach.post(f"{path}/copy-days", {**body, "targetDay": 3_655})).refused(400, "targetDay")
    (await coach.post(f"{path}/copy-days", {**body, "endDay": 0})).refused(400, "endDay")


async def test_a_retried_copy_is_executed_once_and_a_dry_run_ignores_the_key(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await batch(coach, ana, {"name": "A", "date": MONDAY, "items": [task("Run")]})
    path, key = client_path(ana, "schedule/copy"), {"Idempotency-Key": "copy"}
    body = {**WEEK, "targetDate": NEXT_MONDAY}
    assert (await coach.post(path, {**body, "dryRun": True}, headers=key)).ok(200)["dryRun"]
    first, second = [await coach.post(path, body, headers=key) for _ in range(2)]
    assert first.ok(201) == second.ok(201)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert (await coach.post(path, {**body, "dryRun": True}, headers=key)).ok(200)["created"][0]["order"] == 1
    assert [titles(block) for block in await coach.calendar(ana, NEXT_MONDAY, NEXT_SUNDAY)] == [["Run"]]


async def test_of_copies_at_the_same_time_only_one_takes_a_free_day(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await batch(coach, ana, {"name": "Legs", "date": MONDAY, "items": [task()]})
    body = {**WEEK, "targetDate": NEXT_MONDAY, "onConflict": "skip"}
    results = await asyncio.gather(*(operate(coach, ana, "copy", **body) for _ in range(4)))
    assert sorted(len(result["created"]) for result in results) == [0, 0, 0, 1]
    assert len(await coach.calendar(ana, NEXT_MONDAY, NEXT_SUNDAY)) == 1


async def test_what_was_done_in_an_imported_session_is_planned_and_progresses(coach: CoachClient) -> None:
    """It has no planned sets of its own."""
    ana = await coach.create_customer()
    await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])
    days = {"startDate": "2025-01-06", "endDate": "2025-01-08"}

    copied = await operate(coach, ana, "copy", **days, targetDate=NEXT_MONDAY, repeat=2, progression=HEAVIER)

    planned = [[each["load"] for each in block["items"][0]["exerciseSets"]] for block in copied["created"]]
    assert planned == [[102.5, 105], [107.5], [105, 107.5], [110]]
    changes = [(change["before"], change["after"], change["sets"]) for change in copied["loadChanges"]]
    assert changes == [
        (100, 102.5, 1),
        (100, 105, 1),
        (102.5, 105, 1),
        (102.5, 107.5, 1),
        (105, 107.5, 1),
        (105, 110, 1),
    ]
    assert copied["setChanges"] == []


async def test_a_copy_of_a_circuit_has_its_planned_fields_only(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    [block] = (await batch(coach, ana, {"name": "A", "date": MONDAY, "items": [circuit_of(squat)]}))["created"]
    done = {"index": 1, "round": 1, "exerciseId": squat["_id"], "reps": 10, "load": 20}
    (await log(coach, block, block["items"][0], isCompleted=True, customerSets=[done])).ok()

    copies = [(await coach.post(f"{path_of(block)}/copy", {"date": TUESDAY})).ok(201)]
    copies += (await operate(coach, ana, "copy", **WEEK, targetDate=NEXT_MONDAY))["created"]

    assert [copy["items"][0].keys() ^ block["items"][0].keys() for copy in copies] == [set()] * 3
