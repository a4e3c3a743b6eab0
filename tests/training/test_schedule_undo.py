"""Operations on many days are one change each, which can be undone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import MONDAY, SUNDAY, CoachClient
from tests.support.schedules import EVER, batch, operate
from tests.support.training import Json, circuit_of, exercise_of, log, task

WEEK = {"startDate": MONDAY, "endDate": SUNDAY}


def without_versions(value: Any) -> Any:
    """Everything but versions and times: an undo is a further change."""
    if isinstance(value, list):
        return [without_versions(each) for each in value]
    if isinstance(value, dict):
        return {name: without_versions(each) for name, each in value.items() if name not in ("version", "updatedAt")}
    return value


async def calendar_of(coach: CoachClient, squat: Json, press: Json) -> Json:
    """A client with done and planned work this week and next."""
    ana = await coach.create_customer()
    items = [exercise_of(squat), circuit_of(squat, press), task()]
    days = [MONDAY, "2026-03-04", "2026-03-09", "2026-03-11"]
    blocks = (await batch(coach, ana, *({"name": d, "date": d, "items": items} for d in days)))["created"]
    for block in (blocks[0], blocks[2]):
        (await log(coach, block, block["items"][0])).ok()
    return ana


@pytest.mark.parametrize("operation", ["copy", "adjust", "replace-exercise", "clear"])
async def test_undo_of_an_operation_restores_the_calendar(coach: CoachClient, operation: str) -> None:
    """Copy then undo is the identity."""
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    ana = await calendar_of(coach, squat, press)
    progression = {"load": {"add": 5}, "reps": {"add": 1}}
    bodies: dict[str, Json] = {
        "copy": {**WEEK, "targetDate": "2026-03-09", "repeat": 2, "progression": progression, "onConflict": "replace"},
        "adjust": {**WEEK, "progression": progression},
        "replace-exercise": {"exerciseId": squat["_id"], "withExerciseId": press["_id"], "startDate": MONDAY},
        "clear": WEEK,
    }
    before = await coach.calendar(ana, *EVER)
    shown = await operate(coach, ana, operation, **bodies[operation], dryRun=True)

    result = await operate(coach, ana, operation, **bodies[operation])

    assert (shown["changeId"], await coach.calendar(ana, *EVER) != before) == (None, True)
    undone = (await coach.post(f"/coach/changes/{result['changeId']}/undo")).ok()
    assert undone["failed"] == []
    assert without_versions(await coach.calendar(ana, *EVER)) == without_versions(before)


async def test_undo_of_a_batch_and_of_an_assignment(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    created = await batch(coach, ana, *[{"name": "A", "date": MONDAY, "items": [task()]}] * 3)
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    block = {"name": "Day 1", "day": 1, "items": [task()]}
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", block)).ok(201)
    body = {"customerId": ana["_id"], "startDate": MONDAY}
    assigned = (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok(201)
    for change_id, count in ((assigned["changeId"], 3), (created["changeId"], 0)):
        assert (await coach.post(f"/coach/changes/{change_id}/undo")).ok()["failed"] == []
        assert len(await coach.calendar(ana, *EVER)) == count
    assert (await coach.get(f"/coach/customers/{ana['_id']}/programs")).ok() == []


async def test_an_operation_that_changes_nothing_has_no_change(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    assert (await operate(coach, ana, "clear", **WEEK))["changeId"] is None


async def test_repetition_with_the_same_key_answers_the_same_change(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    block = {"name": "Day 1", "day": 1, "items": [task()]}
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", block)).ok(201)
    client, plan = f"/coach/customers/{ana['_id']}", f"/coach/programs/{program['_id']}"
    requests: list[tuple[str, Json]] = [
        (f"{client}/wblocks/batch", {"blocks": [{"name": "A", "date": MONDAY}]}),
        (f"{client}/schedule/copy", {**WEEK, "targetDate": "2026-03-09"}),
        (f"{plan}/copy-days", {"startDay": 1, "endDay": 1, "targetDay": 2}),
        (f"{plan}/assign", {"customerId": ana["_id"], "startDate": MONDAY}),
    ]
    for path, body in requests:
        key = {"Idempotency-Key": "once"}
        first, again = [await coach.send("POST", path, json=body, headers=key) for _ in range(2)]
        assert first.ok(201)["changeId"] == first.headers["X-Change-Id"]
        assert again.ok(201) == first.json
        assert (await coach.get(f"/coach/changes/{first.json['changeId']}")).ok()["undoableUntil"] is not None
