"""The change that the operations on many days answer, and undoing it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import MONDAY, SUNDAY, TUESDAY, CoachClient
from tests.support.training import Json, block_with, client_path, exercise_of, log, task

NEXT_MONDAY = "2026-03-09"
WEEK = {"startDate": MONDAY, "endDate": SUNDAY}
OPERATIONS: dict[str, tuple[str, int, Json]] = {
    "batch": ("customer/wblocks/batch", 201, {"blocks": [{"name": "Arms", "date": TUESDAY, "items": [task()]}]}),
    "copy": ("customer/schedule/copy", 201, {**WEEK, "targetDate": NEXT_MONDAY}),
    "adjust": ("customer/schedule/adjust", 200, {**WEEK, "progression": {"load": {"add": 5}}}),
    "replace-exercise": ("customer/schedule/replace-exercise", 200, WEEK),
    "clear": ("customer/schedule/clear", 200, WEEK),
    "copy-days": ("program/copy-days", 201, {"startDay": 1, "endDay": 1, "targetDay": 2}),
    "assign": ("program/assign", 201, {"startDate": MONDAY}),
}


class Planned:
    """A client with a block of one exercise, and a program of one day."""

    def __init__(self, coach: CoachClient, customer: Json, program: Json, exercises: dict[str, str]) -> None:
        self.coach, self.customer, self.program, self.exercises = coach, customer, program, exercises

    def request(self, operation: str, **more: Any) -> tuple[str, Json]:
        """The path and the body of an operation."""
        path, _, body = OPERATIONS[operation]
        owner, _, rest = path.partition("/")
        root = client_path(self.customer) if owner == "customer" else f"/coach/programs/{self.program['_id']}"
        if operation == "replace-exercise":
            body = {**body, **self.exercises}
        if operation == "assign":
            body = {**body, "customerId": self.customer["_id"]}
        return f"{root}/{rest}", body | more

    async def blocks(self) -> list[Json]:
        """The blocks of the client and of the program, without versions."""
        program = f"/coach/programs/{self.program['_id']}/wblock"
        blocks = (await self.coach.get(program, startDay=1, endDay=100)).ok()
        blocks += await self.coach.calendar(self.customer, "0001-01-01", "9999-12-31")
        documents: list[Json] = _without_versions(blocks)
        return documents


def _without_versions(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_versions(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_versions(each) for name, each in value.items() if name not in ("version", "updatedAt")}
    return value


@pytest.fixture
async def planned(coach: CoachClient) -> Planned:
    customer = await coach.create_customer()
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    await block_with(coach, customer, exercise_of(squat))
    program = (await coach.post("/coach/programs", {"name": "Strength"})).ok(201)
    day = {"name": "Push", "day": 1, "items": [exercise_of(press)]}
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", day)).ok(201)
    return Planned(coach, customer, program, {"exerciseId": squat["_id"], "withExerciseId": press["_id"]})


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_operation_answers_the_change_that_undoes_it(planned: Planned, operation: str) -> None:
    before = await planned.blocks()
    path, body = planned.request(operation)
    preview = (await planned.coach.post(path, body | {"dryRun": True})).ok()
    assert preview["changeId"] is None
    reply = await planned.coach.post(path, body)
    answer = reply.ok(OPERATIONS[operation][1])
    assert answer["changeId"] == reply.headers["X-Change-Id"]
    assert await planned.blocks() != before
    undone = (await planned.coach.post(f"/coach/changes/{answer['changeId']}/undo")).ok()
    assert undone["failed"] == []
    assert await planned.blocks() == before


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if OPERATIONS[name][1] == 201])
async def test_repetition_with_the_same_key_answers_the_same_change(planned: Planned, operation: str) -> None:
    path, body = planned.request(operation)
    key = {"Idempotency-Key": f"schedule-{operation}"}
    first = (await planned.coach.send("POST", path, json=body, headers=key)).ok(201)
    again = (await planned.coach.send("POST", path, json=body, headers=key)).ok(201)
    assert again == first
    assert first["changeId"] is not None
    stored = (await planned.coach.get(f"/coach/changes/{first['changeId']}")).ok()
    assert stored["undoableUntil"] is not None


@pytest.mark.parametrize("operation", ["copy", "adjust", "replace-exercise", "clear"])
async def test_operation_that_changes_nothing_answers_no_change(planned: Planned, operation: str) -> None:
    empty = {"startDate": "2026-01-05", "endDate": "2026-01-06"}
    path, body = planned.request(operation, **empty)
    reply = await planned.coach.post(path, body)
    assert reply.ok(OPERATIONS[operation][1])["changeId"] is None
    assert "X-Change-Id" not in reply.headers


async def test_adjusting_is_not_undone_once_the_work_is_done(planned: Planned) -> None:
    path, body = planned.request("adjust")
    adjusted = (await planned.coach.post(path, body)).ok()
    [block] = adjusted["changed"]
    (await log(planned.coach, block, block["items"][0], isCompleted=True)).ok()
    (await planned.coach.post(f"/coach/changes/{adjusted['changeId']}/undo")).refused(409)
