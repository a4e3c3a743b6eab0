"""Operations on many days: copy, adjust, replace an exercise, clear."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient, Reply
from tests.support.schedules import EVER, batch, loads, operate, plan_of, without_identity
from tests.support.training import (
    Json,
    circuit_of,
    client_path,
    employee_key,
    exercise_of,
    feed,
    log,
    one_of_each,
    path_of,
    task,
    titles,
)

WEDNESDAY, THURSDAY, NEXT_MONDAY, NEXT_SUNDAY = "2026-03-04", "2026-03-05", "2026-03-09", "2026-03-15"
WEEK = {"startDate": MONDAY, "endDate": SUNDAY}
HEAVIER = {"load": {"add": 2.5}}


async def week_of(coach: CoachClient, customer: Json) -> list[Json]:
    """A week with two workouts, of which one has every type of item, and a rest day."""
    squat = await coach.create_exercise("Back squat")
    created = await batch(
        coach,
        customer,
        {"name": "Legs", "date": MONDAY, "items": [exercise_of(squat, supersetId="A"), circuit_of(squat)]},
        {"name": "Mobility", "date": MONDAY, "items": [task("Stretch")]},
        {"name": "Rest", "date": WEDNESDAY, "isRest": True},
        {"name": "All", "date": "2026-03-06", "items": await one_of_each(coach)},
    )
    blocks: list[Json] = created["created"]
    return blocks


# --- main tasks ------------------------------------------------------------------------------------------------------


async def test_last_week_is_copied_with_more_load(coach: CoachClient) -> None:
    """Issue 17: copy last week +2.5 kg."""
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


async def test_a_session_is_moved_to_another_day(coach: CoachClient) -> None:
    """Issue 17: move Tuesday to Thursday."""
    ana = await coach.create_customer()
    tuesday = {"name": "Pull", "date": TUESDAY, "items": await one_of_each(coach)}
    [pull, _] = (await batch(coach, ana, tuesday, {"name": "Push", "date": THURSDAY, "items": [task()]}))["created"]

    moved = (await coach.patch(path_of(pull), {"date": THURSDAY})).ok()

    assert [(b["name"], b["date"]) for b in await coach.calendar(ana)] == [("Push", THURSDAY), ("Pull", THURSDAY)]
    assert plan_of(moved)["items"] == plan_of(pull)["items"]


async def test_an_exercise_is_replaced_in_all_coming_workouts(coach: CoachClient) -> None:
    """Issue 17: swap bench for dumbbell press in all coming workouts."""
    ana = await coach.create_customer()
    bench, dumbbells = await coach.create_exercise("Bench press"), await coach.create_exercise("Dumbbell press")
    items = [exercise_of(bench, exerciseInstructions="Slowly"), circuit_of(bench, dumbbells), task()]
    days = ["2026-02-23", MONDAY, "2026-04-06", "2027-03-01"]
    past, *coming = (await batch(coach, ana, *({"name": d, "date": d, "items": items} for d in days)))["created"]
    (await log(coach, coming[0], coming[0]["items"][1], isCompleted=False, comment="Hard")).ok()

    body = {"exerciseId": bench["_id"], "withExerciseId": dumbbells["_id"], "startDate": MONDAY}
    replaced = await operate(coach, ana, "replace-exercise", **body)

    assert (replaced["items"], replaced["created"], replaced["removed"]) == (5, [], [])
    blocks = await coach.calendar(ana, *EVER)
    assert blocks[0] == past
    assert replaced["changed"] == blocks[1:]
    for before, after in zip(coming, blocks[1:], strict=True):
        exercise, circuit, _ = after["items"]
        assert (exercise["exercise"]["name"], exercise["exerciseInstructions"]) == ("Dumbbell press", "Slowly")
        assert exercise["exerciseSets"] == before["items"][0]["exerciseSets"]
        names = [entry["exercise"]["name"] for entry in circuit["circuitExercises"]]
        assert names == [("Bench press" if after["date"] == MONDAY else "Dumbbell press"), "Dumbbell press"]
        assert (after["version"], after["order"]) == ((2 if after["date"] == MONDAY else 1), 0)
    assert (await operate(coach, ana, "replace-exercise", **body))["items"] == 0, "the logged circuit stays"


# --- copying ---------------------------------------------------------------------------------------------------------


async def test_copies_follow_one_another_and_carry_the_progression(coach: CoachClient) -> None:
    """Contract 10: copy k carries the progression k times."""
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
async def test_days_with_blocks_are_treated_as_asked(
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
    body = {**WEEK, "targetDate": "9999-12-31"}
    (await post(coach, ana, "copy", **body)).refused(400, "targetDate")
    assert len(await coach.calendar(ana, *EVER)) == 2
    only_monday = {"startDate": MONDAY, "endDate": MONDAY, "targetDate": "9999-12-31"}
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


# --- adjusting, replacing and clearing -------------------------------------------------------------------------------


async def test_items_with_nothing_done_are_adjusted(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    light = {"type": "reps_load", "load": 20}
    body_weight = {"type": "reps", "minPlannedReps": 10}
    items = [exercise_of(squat), exercise_of(press, light), exercise_of(press, body_weight), exercise_of(squat)]
    block, other = (await batch(coach, ana, *({"name": d, "date": d, "items": items} for d in (MONDAY, SUNDAY))))[
        "created"
    ]
    (await log(coach, block, block["items"][3], isCompleted=True)).ok()
    progression = {"load": {"add": 5}, "exerciseIds": [squat["_id"]]}

    result = await operate(coach, ana, "adjust", startDate=MONDAY, endDate=TUESDAY, progression=progression)

    assert (result["items"], [each["_id"] for each in result["changed"]]) == (1, [block["_id"]])
    changed, untouched = await coach.calendar(ana)
    assert [changed] == result["changed"]
    assert loads([changed]) == [65, 65, 65, 20, None, 60, 60, 60]
    assert untouched == other
    again = {"load": {"add": 1}, "rounding": 5}
    nothing = await operate(coach, ana, "adjust", startDate=SUNDAY, endDate=SUNDAY, progression=again)
    assert (nothing["items"], nothing["changed"]) == (0, []), "rounded to what they were"


async def test_blocks_with_nothing_done_are_cleared(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    days = [MONDAY, MONDAY, TUESDAY, WEDNESDAY, THURSDAY, SUNDAY, NEXT_MONDAY]
    blocks = (
        await batch(coach, ana, *({"name": str(n), "date": d, "items": [task(), task()]} for n, d in enumerate(days)))
    )["created"]
    (await log(coach, blocks[1], blocks[1]["items"][1], isCompleted=True)).ok()
    (await log(coach, blocks[2], blocks[2]["items"][0], isCompleted=False, comment="Knee hurts")).ok()
    (await coach.put(f"{path_of(blocks[3])}/log", {"sessionRpe": 5})).ok()
    (await log(coach, blocks[4], blocks[4]["items"][0], isCompleted=False, comment="")).ok()

    shown = await operate(coach, ana, "clear", **WEEK, dryRun=True)
    assert len(await coach.calendar(ana)) == 6
    result = await operate(coach, ana, "clear", **WEEK)

    assert (result["kept"], result["removed"]) == (3, [blocks[n]["_id"] for n in (0, 4, 5)])
    assert without_identity(shown) == without_identity(result)
    assert [block["name"] for block in await coach.calendar(ana, *EVER)] == ["1", "2", "3", "6"]
    await operate(coach, ana, "clear", startDate=NEXT_MONDAY, endDate=NEXT_MONDAY)
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == WEDNESDAY


async def test_a_shift_moves_what_clear_would_remove(coach: CoachClient) -> None:
    """Both use the same definition of a block with nothing done."""
    ana = await coach.create_customer()
    blocks = (await batch(coach, ana, *({"name": d, "date": d, "items": [task()]} for d in (MONDAY, TUESDAY))))[
        "created"
    ]
    (await log(coach, blocks[0], blocks[0]["items"][0], isCompleted=False, comment="Later")).ok()
    shown = await operate(coach, ana, "clear", **WEEK, dryRun=True)
    shifted = (await coach.post(client_path(ana, "wblocks/shift"), {"from": MONDAY, "days": 1})).ok()
    assert shifted["shifted"] == len(shown["removed"]) == 1


# --- refused requests ------------------------------------------------------------------------------------------------


async def post(coach: CoachClient, customer: Json, operation: str, **body: Any) -> Reply:
    return await coach.post(client_path(customer, "schedule", operation), body)


@pytest.mark.parametrize(
    ("operation", "change", "field"),
    [
        ("copy", {"endDate": "2026-03-01"}, "endDate"),
        ("copy", {"endDate": "2027-03-03"}, "endDate must be within 366 days"),
        ("copy", {"repeat": 13}, "repeat"),
        ("copy", {"repeat": 0}, "repeat"),
        ("copy", {"onConflict": "overwrite"}, "onConflict"),
        ("copy", {"targetDate": "2026-02-29"}, "targetDate"),
        ("copy", {"progression": {}}, "progression must change load or reps"),
        ("copy", {"progression": {"load": {}}}, "progression.load must have either add or percent"),
        ("copy", {"progression": {"load": {"add": 1, "percent": 1}}}, "progression.load"),
        ("copy", {"progression": {"load": {"add": "1"}}}, "progression.load.add"),
        ("copy", {"progression": {"reps": {"add": 1.5}}}, "progression.reps.add"),
        ("copy", {"progression": {"reps": {"add": 1}, "rounding": 0}}, "progression.rounding"),
        ("copy", {"progression": {"reps": {"add": 1}, "exerciseIds": ["x"]}}, "progression.exerciseIds.0"),
        ("copy", {"dryRun": 1}, "dryRun"),
        ("adjust", {"progression": None}, "progression"),
        ("clear", {"startDate": "2026-3-2"}, "startDate"),
        ("replace-exercise", {"endDate": "2026-03-01"}, "endDate"),
        ("replace-exercise", {"exerciseId": {"$ne": None}}, "exerciseId"),
    ],
)
async def test_invalid_requests_are_refused(coach: CoachClient, operation: str, change: Json, field: str) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    valid: Json = {
        "copy": {**WEEK, "targetDate": NEXT_MONDAY},
        "adjust": {**WEEK, "progression": HEAVIER},
        "clear": WEEK,
        "replace-exercise": {"exerciseId": squat["_id"], "withExerciseId": squat["_id"], "startDate": MONDAY},
    }[operation]
    await operate(coach, ana, operation, **valid)
    (await post(coach, ana, operation, **(valid | change))).refused(400, field)


async def test_a_leap_year_is_within_the_limit(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    result = await operate(coach, ana, "clear", startDate="2024-01-01", endDate="2024-12-31")
    assert result["kept"] == 0


async def test_unknown_exercises_are_not_found(coach: CoachClient, other_company: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    theirs = await other_company.create_exercise("Theirs")
    for unknown in (UNKNOWN, theirs["_id"]):
        progression = {**HEAVIER, "exerciseIds": [squat["_id"], unknown]}
        body = {**WEEK, "progression": progression}
        message = "progression.exerciseIds.1: Exercise not found"
        (await post(coach, ana, "adjust", **body)).refused(404, message)
        (await post(coach, ana, "copy", **body, targetDate=NEXT_MONDAY)).refused(404, message)
        for old, new in ((squat["_id"], unknown), (unknown, squat["_id"])):
            body = {"exerciseId": old, "withExerciseId": new, "startDate": MONDAY}
            (await post(coach, ana, "replace-exercise", **body)).refused(404, "Exercise")


async def test_a_deleted_exercise_can_be_replaced_but_not_put_in(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    old, new = await coach.create_exercise("Old"), await coach.create_exercise("New")
    await batch(coach, ana, {"name": "A", "date": MONDAY, "items": [exercise_of(old)]})
    (await coach.delete(f"/exercises/{old['_id']}")).ok(204)
    body = {"exerciseId": old["_id"], "withExerciseId": new["_id"], "startDate": MONDAY}
    assert (await operate(coach, ana, "replace-exercise", **body))["items"] == 1
    swapped = {"exerciseId": new["_id"], "withExerciseId": old["_id"], "startDate": MONDAY}
    (await post(coach, ana, "replace-exercise", **swapped)).refused(404, "Exercise")


async def test_more_than_500_blocks_are_refused(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for _ in range(5):
        await batch(coach, ana, *[{"name": "A", "date": MONDAY}] * 100)
    (await post(coach, ana, "copy", **WEEK, targetDate=NEXT_MONDAY, repeat=2)).refused(400, "repeat")
    await coach.schedule(ana)
    (await post(coach, ana, "copy", **WEEK, targetDate=NEXT_MONDAY)).refused(400, "endDate has more than 500")
    (await post(coach, ana, "clear", **WEEK)).refused(400, "endDate has more than 500")
    (await post(coach, ana, "adjust", **WEEK, progression=HEAVIER)).refused(400, "endDate has more than 500")
    body = {"startDate": NEXT_MONDAY, "endDate": NEXT_SUNDAY, "targetDate": MONDAY}
    (await post(coach, ana, "copy", **body)).refused(400, "targetDate has more than 500")
    assert len(await coach.calendar(ana, *EVER)) == 501


async def test_operations_need_permission_to_edit_the_client(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    bodies: dict[str, Json] = {
        "copy": {**WEEK, "targetDate": NEXT_MONDAY},
        "adjust": {**WEEK, "progression": HEAVIER},
        "clear": {**WEEK, "dryRun": True},
    }
    reader = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    for operation, body in bodies.items():
        (await post(reader, ana, operation, **body)).refused(403)


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


async def test_blocks_of_check_ins_are_ignored(coach: CoachClient) -> None:
    """Contract 11: blocks with `checkInId` are ignored by copy, clear, shift, adjust."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    items = [exercise_of(squat)]
    names = [("Check-in", MONDAY), ("Legs", TUESDAY), ("Check-in", NEXT_MONDAY)]
    await batch(coach, ana, *({"name": name, "date": day, "items": items} for name, day in names))
    blocks = coach.ctx.db["workoutBlocks"]
    await blocks.update_many(
        {"companyId": coach.ctx.company_id, "name": "Check-in"}, {"$set": {"checkInId": ObjectId()}}
    )

    body = {**WEEK, "targetDate": NEXT_MONDAY}
    assert [b["name"] for b in (await operate(coach, ana, "copy", **body, onConflict="replace"))["created"]] == ["Legs"]
    assert (await operate(coach, ana, "adjust", **WEEK, progression=HEAVIER))["items"] == 1
    cleared = await operate(coach, ana, "clear", **WEEK)
    assert (len(cleared["removed"]), cleared["kept"]) == (1, 0)
    assert (await coach.post(client_path(ana, "wblocks/shift"), {"from": MONDAY, "days": 7})).ok() == {"shifted": 1}
    assert [(b["name"], b["date"]) for b in await coach.calendar(ana, *EVER)] == [
        ("Check-in", MONDAY),
        ("Check-in", NEXT_MONDAY),
        ("Legs", "2026-03-17"),
    ]


# --- at the same time ------------------------------------------------------------------------------------------------


async def test_of_copies_at_the_same_time_only_one_takes_a_free_day(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await batch(coach, ana, {"name": "Legs", "date": MONDAY, "items": [task()]})
    body = {**WEEK, "targetDate": NEXT_MONDAY, "onConflict": "skip"}
    results = await asyncio.gather(*(operate(coach, ana, "copy", **body) for _ in range(4)))
    assert sorted(len(result["created"]) for result in results) == [0, 0, 0, 1]
    assert len(await coach.calendar(ana, NEXT_MONDAY, NEXT_SUNDAY)) == 1


@pytest.mark.parametrize("operation", ["adjust", "clear", "replace-exercise"])
async def test_a_log_at_the_same_time_is_never_lost(coach: CoachClient, operation: str) -> None:
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    bodies: dict[str, Json] = {
        "adjust": {**WEEK, "progression": HEAVIER},
        "clear": WEEK,
        "replace-exercise": {"exerciseId": squat["_id"], "withExerciseId": press["_id"], "startDate": MONDAY},
    }
    for _ in range(5):
        ana = await coach.create_customer()
        [block] = (await batch(coach, ana, {"name": "A", "date": MONDAY, "items": [exercise_of(squat)]}))["created"]
        done = {"customerSets": [{"reps": 8, "load": 60}]}
        logged, _ = await asyncio.gather(
            log(coach, block, block["items"][0], **done), operate(coach, ana, operation, **bodies[operation])
        )
        calendar = await coach.calendar(ana)
        if logged.status == 404:
            assert (operation, calendar) == ("clear", [])
        else:
            assert calendar[0]["items"][0]["customerSets"][0]["load"] == logged.ok()["customerSets"][0]["load"] == 60
