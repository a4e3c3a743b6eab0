"""Requests for operations on many days that are refused."""

from __future__ import annotations

import pytest

from tests.support.client import MONDAY, UNKNOWN, CoachClient
from tests.support.schedules import EVER, HEAVIER, NEXT_MONDAY, NEXT_SUNDAY, WEEK, batch, operate, post
from tests.support.training import Json, employee_key, exercise_of


@pytest.mark.parametrize(
    ("operation", "change", "field"),
    [
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
    ],
)
async def test_invalid_requests_are_refused(coach: CoachClient, operation: str, change: Json, field: str) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    requests: dict[str, Json] = {
        "copy": {**WEEK, "targetDate": NEXT_MONDAY},
        "adjust": {**WEEK, "progression": HEAVIER},
        "clear": WEEK,
        "replace-exercise": {"exerciseId": squat["_id"], "withExerciseId": squat["_id"], "startDate": MONDAY},
    }
    valid = requests[operation]
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
