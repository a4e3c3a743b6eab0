"""What a block holds: exercises with their sets, and tasks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from tests.contract.test_queries import profiling
from tests.support.client import UNKNOWN, CoachClient
from tests.support.stored import stored_document
from tests.support.training import Json, block_with, exercise_of, log, read, task
from tests.training.test_workouts import SET, exercise_item, items_path


@pytest.mark.parametrize(
    ("planned", "variables"),
    [
        (SET, {"reps": ("count", (8, 10)), "load": ("kg", 60)}),
        ({"type": "reps_load", "minPlannedReps": 5, "maxPlannedReps": 5}, {"reps": ("count", 5)}),
        ({"type": "reps", "maxPlannedReps": 12, "rest": 90}, {"reps": ("count", 12), "rest": ("s", 90)}),
        ({"type": "time", "minPlannedSeconds": 30, "maxPlannedSeconds": 45}, {"time": ("s", (30, 45))}),
        ({"type": "time_load", "minPlannedSeconds": 30, "load": 12.5}, {"load": ("kg", 12.5), "time": ("s", 30)}),
        ({"type": "distance", "plannedMeters": 400}, {"distance": ("m", 400)}),
        ({"type": "reps"}, {}),
    ],
)
async def test_variables_are_derived_from_the_planned_set(
    coach: CoachClient, planned: dict[str, Any], variables: dict[str, Any]
) -> None:
    """Contract 5: exact when min equals max or only one is given; load in the company's unit."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await coach.schedule(ana)

    item = (await coach.post(items_path(ana, block), exercise_item(squat, planned))).ok(201)

    expected = {}
    for key, (unit, value) in variables.items():
        exact = {"type": "exact", "value": value}
        spread = {"type": "range", "min": value[0], "max": value[1]} if isinstance(value, tuple) else exact
        expected[key] = {"key": key, "unit": unit, "value": spread}
    [stored] = item["exerciseSets"]
    assert {variable["key"]: variable for variable in stored["variables"]} == expected
    assert all(stored[name] == value for name, value in planned.items())


async def test_loads_are_in_the_company_unit(new_company: Any) -> None:
    american = await new_company(load_unit="lb")
    ana, squat = await american.create_customer(), await american.create_exercise()
    block = await american.schedule(ana)

    item = (await american.post(items_path(ana, block), exercise_item(squat))).ok(201)

    [load] = [v for v in item["exerciseSets"][0]["variables"] if v["key"] == "load"]
    assert load == {"key": "load", "unit": "lb", "value": {"type": "exact", "value": 60}}


INVALID_ITEMS: list[tuple[dict[str, Any], str]] = [
    ({}, "type"),
    ({"type": "DANCE"}, "type"),
    ({"type": ["EXERCISE"]}, "type"),
    ({"type": "EXERCISE"}, "exerciseId"),
    ({"type": "EXERCISE", "exerciseId": "nope", "exerciseSets": [SET]}, "exerciseId"),
    ({"type": "EXERCISE", "exerciseId": UNKNOWN}, "exerciseSets"),
    ({"type": "EXERCISE", "exerciseId": UNKNOWN, "exerciseSets": []}, "exerciseSets"),
    ({"type": "EXERCISE", "exerciseId": UNKNOWN, "sets": [SET]}, "exerciseSets"),
    ({"type": "EXERCISE", "exerciseId": UNKNOWN, "exerciseSets": [{"type": "yards"}]}, "exerciseSets.0.type"),
    (
        {"type": "EXERCISE", "exerciseId": UNKNOWN, "exerciseSets": [SET | {"minPlannedReps": 11}]},
        "exerciseSets.0.minPlannedReps",
    ),
    (
        {"type": "EXERCISE", "exerciseId": UNKNOWN, "exerciseSets": [SET | {"minPlannedReps": "8"}]},
        "exerciseSets.0.minPlannedReps",
    ),
    (
        {"type": "EXERCISE", "exerciseId": UNKNOWN, "exerciseSets": [SET | {"minPlannedReps": 8.0}]},
        "exerciseSets.0.minPlannedReps",
    ),
    ({"type": "EXERCISE", "exerciseId": UNKNOWN, "exerciseSets": [SET | {"index": 0}]}, "exerciseSets.0.index"),
    ({"type": "EXERCISE", "exerciseId": UNKNOWN, "exerciseSets": [SET, SET]}, "exerciseSets"),
    ({"type": "EXERCISE", "exerciseId": UNKNOWN, "exerciseSets": [SET | {"rpe": 11}]}, "exerciseSets.0.rpe"),
    ({"type": "EXERCISE", "exerciseId": UNKNOWN, "exerciseSets": [SET | {"load": -1}]}, "exerciseSets.0.load"),
    ({"type": "EXERCISE", "exerciseId": UNKNOWN, "exerciseSets": [SET | {"load": True}]}, "exerciseSets.0.load"),
    ({"type": "TASK"}, "taskFields"),
    ({"type": "TASK", "taskFields": {}}, "taskFields.title"),
    ({"type": "TASK", "taskFields": {"title": " "}}, "taskFields.title"),
]


async def test_invalid_item_is_rejected_with_its_field(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await coach.schedule(ana)
    for item, field in INVALID_ITEMS:
        error = (await coach.post(items_path(ana, block), item)).refused(400)

        assert [message for message in error["message"] if message.startswith(field)], error
        assert (await coach.calendar(ana))[0]["items"] == []


async def test_item_requires_an_exercise_of_the_company(coach: CoachClient, other_company: CoachClient) -> None:
    ana, theirs = await coach.create_customer(), await other_company.create_exercise()
    block = await coach.schedule(ana)
    unknown = (await coach.post(items_path(ana, block), exercise_item({"_id": UNKNOWN}))).refused(404, "Exercise")
    assert (await coach.post(items_path(ana, block), exercise_item(theirs))).refused(404) == unknown
    assert (await coach.calendar(ana))[0]["items"] == []


async def test_sets_are_ordered_by_index(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await coach.schedule(ana)
    sets = [{"type": "reps", "index": 2, "minPlannedReps": 6}, {"type": "reps", "index": 1, "isWarmup": True}]

    item = (await coach.post(items_path(ana, block), exercise_item(squat, *sets))).ok(201)

    assert [(s["index"], s["isWarmup"]) for s in item["exerciseSets"]] == [(1, True), (2, False)]


async def test_change_ignores_fields_of_other_types(coach: CoachClient) -> None:
    ana, squat, press = await coach.create_customer(), await coach.create_exercise(), await coach.create_exercise("P")
    block = await coach.schedule(ana)
    item = (await coach.post(items_path(ana, block), exercise_item(squat))).ok(201)
    path = f"{items_path(ana, block)}/{item['_id']}"

    change = {"exerciseId": press["_id"], "supersetId": "A", "taskFields": {"title": "ignored"}, "version": 1}
    changed = (await coach.patch(path, change)).ok()

    assert (changed["exercise"]["name"], changed["supersetId"], changed["version"]) == ("P", "A", 2)
    assert changed["exerciseSets"] == item["exerciseSets"]
    assert "taskFields" not in changed
    assert (await coach.calendar(ana))[0]["items"] == [changed]
    (await coach.patch(path, {"supersetId": "B", "version": 1})).refused(409)
    (await coach.patch(path, {"exerciseId": UNKNOWN})).refused(404)
    (await coach.patch(path, {"exerciseSets": []})).refused(400, "exerciseSets")
    (await coach.patch(f"{items_path(ana, block)}/{UNKNOWN}", {"supersetId": "B"})).refused(404, "Workout item")
    assert (await coach.patch(path, {})).ok() == changed


async def test_removing_an_item_keeps_the_order_of_the_others(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await coach.schedule(ana)
    tasks = [
        (await coach.post(items_path(ana, block), {"type": "TASK", "taskFields": {"title": title}})).ok(201)
        for title in "abc"
    ]
    path = f"{items_path(ana, block)}/{tasks[1]['_id']}"

    (await coach.delete(path)).ok(204)

    items = (await coach.calendar(ana))[0]["items"]
    assert [(item["order"], item["taskFields"]["title"]) for item in items] == [(0, "a"), (1, "c")]
    (await coach.delete(path)).refused(404, "Workout item")


async def test_concurrently_added_items_are_all_stored(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await coach.schedule(ana)
    bodies = [{"type": "TASK", "taskFields": {"title": str(n)}} for n in range(12)]

    replies = await asyncio.gather(*(coach.post(items_path(ana, block), body) for body in bodies))

    assert sorted(reply.ok(201)["order"] for reply in replies) == list(range(12))
    [read] = await coach.calendar(ana)
    assert {item["taskFields"]["title"] for item in read["items"]} == {str(n) for n in range(12)}
    assert read["version"] == 12


async def test_block_is_limited_to_100_items(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    body = {"type": "TASK", "taskFields": {"title": "x"}}
    block = await block_with(coach, ana, *[body] * 97)
    replies = await asyncio.gather(*(coach.post(items_path(ana, block), body) for _ in range(5)))

    assert sorted(each.status for each in replies) == [201] * 3 + [400] * 2
    (await coach.post(items_path(ana, block), body)).refused(400, "100")


async def test_scheduled_blocks_keep_the_name_of_a_deleted_exercise(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise("Garage Squat")
    block = await coach.schedule(ana)
    await coach.post(items_path(ana, block), exercise_item(squat))

    (await coach.delete(f"/exercises/{squat['_id']}")).ok(204)

    assert (await coach.calendar(ana))[0]["items"][0]["exercise"]["name"] == "Garage Squat"
    (await coach.post(items_path(ana, block), exercise_item(squat))).refused(404, "Exercise")


async def test_nested_objects_are_replaced_and_must_be_complete(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await coach.schedule(ana)
    task = {"title": "Stretch", "description": "10 min"}
    item = (await coach.post(items_path(ana, block), {"type": "TASK", "taskFields": task})).ok(201)
    path = f"{items_path(ana, block)}/{item['_id']}"

    (await coach.patch(path, {"taskFields": {"description": "new"}})).refused(400, "taskFields.title")
    (await coach.patch(path, {"taskFields": None})).refused(400, "taskFields")
    changed = (await coach.patch(path, {"taskFields": {"title": "Walk"}})).ok()
    assert changed["taskFields"] == {"title": "Walk", "description": None}


async def test_invalid_fields_of_other_types_are_ignored(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await coach.schedule(ana)
    item = (await coach.post(items_path(ana, block), {"type": "TASK", "taskFields": {"title": "A"}})).ok(201)
    path = f"{items_path(ana, block)}/{item['_id']}"

    invalid: list[Json] = [{"exerciseId": "zz"}, {"exerciseSets": []}, {"exerciseId": UNKNOWN}, {"type": "EXERCISE"}]
    for wrong in invalid:
        assert (await coach.patch(path, wrong)).ok() == item


async def test_item_with_a_deleted_exercise_can_be_changed(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await coach.schedule(ana)
    item = (await coach.post(items_path(ana, block), exercise_item(squat))).ok(201)
    (await coach.delete(f"/exercises/{squat['_id']}")).ok(204)

    change = {"exerciseId": squat["_id"], "exerciseInstructions": "slowly"}
    assert (await coach.patch(f"{items_path(ana, block)}/{item['_id']}", change)).ok()[
        "exerciseInstructions"
    ] == "slowly"


async def test_a_log_writes_only_the_logged_item(coach: CoachClient) -> None:
    squat = await coach.create_exercise("Squat")
    block = await block_with(coach, await coach.create_customer("Ana"), task("Walk"), exercise_of(squat), task("Swim"))
    where = {"_id": ObjectId(block["_id"])}
    before = await stored_document(coach.ctx.db["workoutBlocks"], where)
    async with profiling(coach) as profile:
        (await log(coach, block, block["items"][1], isCompleted=True)).ok()
        updates = [each for each in await profile() if each["op"] == "update"]
        writes = [each["command"] for each in updates if each["ns"].endswith(".workoutBlocks")]
    [sent] = [write["u"]["$set"] for write in writes]
    assert sorted(sent) == ["done", "items.1", "updatedAt"]
    after = await stored_document(coach.ctx.db["workoutBlocks"], where)
    assert [item["isCompleted"] for item in after["items"]] == [False, True, False]
    assert (after["items"][0], after["items"][2]) == (before["items"][0], before["items"][2])
    assert [item["_id"] for item in (await read(coach, block))["items"]] == [item["_id"] for item in block["items"]]
