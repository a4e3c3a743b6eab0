"""Operations on many days: adjust, replace an exercise, clear, and refusals; see also test_schedule_copies.py."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.schedules import (
    EVER,
    HEAVIER,
    NEXT_MONDAY,
    THURSDAY,
    WEDNESDAY,
    WEEK,
    batch,
    loads,
    operate,
    plan_of,
    post,
    without_identity,
)
from tests.support.training import (
    Json,
    circuit_of,
    client_path,
    employee_key,
    exercise_of,
    log,
    one_of_each,
    path_of,
    task,
)


async def test_a_session_is_moved_to_another_day(coach: CoachClient) -> None:
    """Move Tuesday to Thursday."""
    ana = await coach.create_customer()
    tuesday = {"name": "Pull", "date": TUESDAY, "items": await one_of_each(coach)}
    [pull, _] = (await batch(coach, ana, tuesday, {"name": "Push", "date": THURSDAY, "items": [task()]}))["created"]

    moved = (await coach.patch(path_of(pull), {"date": THURSDAY})).ok()

    assert [(b["name"], b["date"]) for b in await coach.calendar(ana)] == [("Push", THURSDAY), ("Pull", THURSDAY)]
    assert plan_of(moved)["items"] == plan_of(pull)["items"]


async def test_an_exercise_is_replaced_in_all_coming_workouts(coach: CoachClient) -> None:
    """Swap bench for dumbbell press in all coming workouts."""
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
    assert result["loadChanges"] == [
        {
            "exerciseId": squat["_id"],
            "exerciseName": "Squat",
            "loadType": "load",
            "before": 60,
            "after": 65,
            "sets": 3,
        }
    ]
    again = {"load": {"add": 0}, "rounding": 5}
    nothing = await operate(coach, ana, "adjust", startDate=SUNDAY, endDate=SUNDAY, progression=again)
    assert (nothing["items"], nothing["changed"], nothing["loadChanges"]) == (0, [], [])


async def test_numbers_of_sets_change_with_loads(coach: CoachClient) -> None:
    """Contract 18: `progression.sets`; the answer says what changed, also of circuits, copies and programs."""
    ana, squat = await coach.create_customer(), await coach.create_exercise("Squat")
    items = [exercise_of(squat), circuit_of(squat)]
    await batch(coach, ana, {"name": "A", "date": MONDAY, "items": items})
    change = {"exerciseId": squat["_id"], "exerciseName": "Squat", "items": 1}

    lighter = {"sets": {"percent": -33}, "load": {"add": -10}}
    result = await operate(coach, ana, "adjust", **WEEK, progression=lighter)
    assert (result["items"], loads(result["changed"])) == (1, [50, 50])
    assert result["setChanges"] == [{**change, "before": 3, "after": 2}]
    assert [(each["before"], each["after"], each["sets"]) for each in result["loadChanges"]] == [(60, 50, 2)]

    copied = await operate(
        coach, ana, "copy", **WEEK, targetDate=NEXT_MONDAY, repeat=2, progression={"sets": {"add": 1}}
    )
    planned = [block["items"] for block in copied["created"]]
    assert [len(exercise["exerciseSets"]) for exercise, _ in planned] == [3, 4]
    assert [len(circuit["circuitExercises"][0]["sets"]) for _, circuit in planned] == [2, 3]
    assert [(each["before"], each["after"]) for each in copied["setChanges"]] == [(1, 2), (1, 3), (2, 3), (2, 4)]

    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{program['_id']}"
    (await coach.post(f"{path}/wblocks", {"name": "A", "day": 1, "items": items})).ok(201)
    body = {"startDay": 1, "endDay": 1, "targetDay": 8, "progression": {"sets": {"add": -5}}}
    fewer = (await coach.post(f"{path}/copy-days", body)).ok(201)
    assert fewer["setChanges"] == [{**change, "before": 3, "after": 1}]


async def test_loads_of_assisted_exercises_are_marked(coach: CoachClient) -> None:
    """A lower load of an assisted machine is harder; by exercise, also where copies change it."""
    ana = await coach.create_customer()
    dip, pull_up = await coach.create_exercise("Dip"), await coach.create_exercise("Pull-up", loadType="assistance")
    planned = [{"type": "reps_load", "minPlannedReps": 8, "load": 20}]
    items = [{"type": "EXERCISE", "exerciseId": each["_id"], "exerciseSets": planned} for each in (dip, pull_up)]
    await batch(coach, ana, {"name": "A", "date": MONDAY, "items": items})

    copied = await operate(coach, ana, "copy", **WEEK, targetDate=NEXT_MONDAY, progression={"load": {"add": -5}})
    result = await operate(coach, ana, "adjust", **WEEK, progression={"load": {"add": -5}}, dryRun=True)
    assert [(each["exerciseName"], each["loadType"], each["after"]) for each in result["loadChanges"]] == [
        ("Dip", "load", 15),
        ("Pull-up", "assistance", 15),
    ]
    assert copied["loadChanges"] == result["loadChanges"]


async def test_dumbbells_take_a_step_smaller_than_the_rounding(coach: CoachClient) -> None:
    """Case B04, and the same for a copy and for other roundings; the answer names old and new loads."""
    ana, press = await coach.create_customer(), await coach.create_exercise("Dumbbell press")
    planned = [{"type": "reps_load", "minPlannedReps": 8, "load": load} for load in (12, 14, 16, 7, 9)]
    item = {"type": "EXERCISE", "exerciseId": press["_id"], "exerciseSets": planned}
    await batch(coach, ana, {"name": "A", "date": MONDAY, "items": [item]})

    copied = await operate(coach, ana, "copy", **WEEK, targetDate=NEXT_MONDAY, progression={"load": {"add": 2}})
    assert loads(copied["created"]) == [14, 16, 18, 9, 11]
    result = await operate(coach, ana, "adjust", **WEEK, progression={"load": {"add": 2}})
    assert loads(result["changed"]) == [14, 16, 18, 9, 11]
    assert [(each["before"], each["after"]) for each in result["loadChanges"]] == [
        (7, 9), (9, 11), (12, 14), (14, 16), (16, 18),
    ]  # fmt: skip
    assert copied["loadChanges"] == result["loadChanges"]

    lighter = {"load": {"percent": -10}}
    result = await operate(coach, ana, "adjust", **WEEK, progression=lighter, dryRun=True)
    assert loads(result["changed"]) == [12.6, 14.4, 16.2, 8.1, 9.9]
    for rounding, expected in ((None, [17.5, 19.5, 21.5, 12.5, 14.5]), (1, [18, 20, 22, 13, 15])):
        heavier = {"load": {"add": 3.5}, "rounding": rounding}
        result = await operate(coach, ana, "adjust", **WEEK, progression=heavier, dryRun=True)
        assert loads(result["changed"]) == expected, rounding


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


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (None, [60, 61.3, 65, None]),
        ("keep", [60, 61.3, 65, None]),
        ("clear", [None, None, None, None]),
        ({"percent": 80}, [47.5, 50, 52, None]),
        ({"percent": 99}, [59.4, 60.687, 64, None]),  # a change smaller than 2.5 kg is exact
    ],
)
async def test_loads_of_a_replaced_exercise(coach: CoachClient, load: Any, expected: list[float | None]) -> None:
    """The third is a percentage, the last has none. One of an exercise by itself is 400."""
    ana = await coach.create_customer()
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    planned = [{"type": "reps_load", "load": 60}, {"type": "reps_load", "load": 61.3}]
    planned += [{"type": "reps_load", "loadPercent": 65}, {"type": "reps_load"}]
    items = [exercise_of(squat, *planned), circuit_of(squat)]
    items[1]["circuitExercises"][0]["sets"] = planned
    [block] = (await batch(coach, ana, {"name": "A", "date": MONDAY, "items": items}))["created"]
    body = {"exerciseId": squat["_id"], "withExerciseId": press["_id"], "startDate": MONDAY}
    body |= {} if load is None else {"load": load}
    (await post(coach, ana, "replace-exercise", **(body | {"withExerciseId": squat["_id"]}))).refused(
        400, "withExerciseId"
    )
    replaced = await operate(coach, ana, "replace-exercise", **body)
    names = [(each["_id"], each["name"]) for each in (replaced["exercise"], replaced["withExercise"])]
    assert names == [(squat["_id"], "Squat"), (press["_id"], "Press")]
    [after] = await coach.calendar(ana, MONDAY, MONDAY)
    exercise, circuit = after["items"]
    for sets in (exercise["exerciseSets"], circuit["circuitExercises"][0]["sets"]):
        assert [each["loadPercent"] or each["load"] for each in sets] == expected
    assert block["_id"] == after["_id"]


@pytest.mark.parametrize("operation", ["adjust", "clear", "replace-exercise"])
async def test_a_log_at_the_same_time_is_never_lost(coach: CoachClient, operation: str) -> None:
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    bodies: dict[str, Json] = {
        "adjust": {**WEEK, "progression": HEAVIER},
        "clear": WEEK,
        "replace-exercise": {"exerciseId": squat["_id"], "withExerciseId": press["_id"], "startDate": MONDAY},
    }
    for _ in range(3):
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


# --- refusals --------------------------------------------------------------------------------------------------------


INVALID_REQUESTS: list[tuple[str, Json, str]] = [
    ("copy", {"endDate": "2026-03-01"}, "endDate"),
    ("copy", {"endDate": "2027-03-03"}, "endDate must be within 366 days"),
    ("copy", {"repeat": 13}, "repeat"),
    ("copy", {"repeat": 0}, "repeat"),
    ("copy", {"onConflict": "overwrite"}, "onConflict"),
    ("copy", {"targetDate": "2026-02-29"}, "targetDate"),
    ("copy", {"progression": {}}, "progression must change load, reps or sets"),
    ("copy", {"progression": {"sets": {}}}, "progression.sets must have either add or percent"),
    ("copy", {"progression": {"sets": {"add": 0.5}}}, "progression.sets.add"),
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
    ("replace-exercise", {"load": "half"}, "load"),
    ("replace-exercise", {"load": {"percent": 0}}, "load"),
    ("replace-exercise", {"load": {"percent": 201}}, "load"),
    ("replace-exercise", {"load": {"add": 5}}, "load"),
]


async def test_invalid_requests_are_refused(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    press = await coach.create_exercise("Press")
    requests: dict[str, Json] = {
        "copy": {**WEEK, "targetDate": NEXT_MONDAY},
        "adjust": {**WEEK, "progression": HEAVIER},
        "clear": WEEK,
        "replace-exercise": {"exerciseId": squat["_id"], "withExerciseId": press["_id"], "startDate": MONDAY},
    }
    for operation, valid in requests.items():
        await operate(coach, ana, operation, **valid)
    for operation, change, field in INVALID_REQUESTS:
        (await post(coach, ana, operation, **(requests[operation] | change))).refused(400, field)


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
    days = [str(date.fromisoformat(MONDAY) + timedelta(days=number)) for number in range(56)]
    weeks, later = {"startDate": MONDAY, "endDate": days[27]}, days[28]
    for day in range(0, 25, 5):
        await batch(coach, ana, *({"name": "A", "date": each} for each in days[day : day + 5] * 20))
    (await post(coach, ana, "copy", **weeks, targetDate=later, repeat=2)).refused(400, "repeat")
    await coach.schedule(ana, days[25])
    (await post(coach, ana, "copy", **weeks, targetDate=later)).refused(400, "endDate has more than 500")
    (await post(coach, ana, "clear", **weeks)).refused(400, "endDate has more than 500")
    (await post(coach, ana, "adjust", **weeks, progression=HEAVIER)).refused(400, "endDate has more than 500")
    body = {"startDate": later, "endDate": days[55], "targetDate": MONDAY}
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
