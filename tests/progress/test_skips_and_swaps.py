"""What a client reports of a session in addition to the sets: skipped and swapped exercises, and how it felt (contract 15)."""

from __future__ import annotations

from tests.support.client import MONDAY, UNKNOWN, CoachClient
from tests.support.training import (
    add,
    block_with,
    circuit_of,
    client_path,
    exercise_of,
    feed_types,
    hide,
    log,
    own_log,
    path_of,
    read,
    task,
)


async def test_skipped_item_is_not_completed(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat), task())
    [exercise, walk], client = block["items"], await coach.as_client(ana)
    assert (exercise["skipped"], exercise["swappedFor"], block["feeling"]) == (None, None, None)
    assert (await own_log(client, block, exercise)).ok()["isCompleted"] is True

    skipped = (await own_log(client, block, walk, skipped={"reason": "Rain"})).ok()

    assert (skipped["skipped"], skipped["isCompleted"]) == ({"reason": "Rain"}, False)
    assert (await read(coach, block))["isCompleted"] is False
    query = {"from": MONDAY, "to": MONDAY}
    compliance = (await coach.get(client_path(ana, "compliance"), **query)).ok()
    assert (compliance["totalWorkoutDays"], compliance["completedWorkoutDays"]) == (1, 0)
    assert await feed_types(coach, ana) == ["item_logged"]
    refused = await own_log(client, block, walk, skipped={}, isCompleted=True)
    assert [each["field"] for each in refused.refused(400)["errors"]] == ["isCompleted"]
    assert (await coach.post(client_path(ana, "wblocks/shift"), {"from": MONDAY, "days": 1})).ok() == {"shifted": 0}

    assert (await log(coach, block, walk, isCompleted=False, comment="OK")).ok()["skipped"] == {"reason": "Rain"}
    assert (await own_log(client, block, walk)).ok()["skipped"] is None
    assert (await read(coach, block))["isCompleted"] is True


async def test_sets_of_a_swapped_exercise_belong_to_the_exercise_that_was_done(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Leg press")
    warm_up = {"type": "reps_load", "minPlannedReps": 8, "load": 20, "isWarmup": True}
    block = await block_with(coach, ana, exercise_of(squat, warm_up, {**warm_up, "isWarmup": False}), circuit_of(squat))
    [item, circuit], client = block["items"], await coach.as_client(ana)
    swap = {"exerciseId": press["_id"], "reason": "The rack was taken"}
    sets = [{"index": 1, "reps": 8, "load": 60}, {"index": 2, "reps": 8, "load": 120}]

    logged = (await own_log(client, block, item, swappedFor=swap, customerSets=sets)).ok()

    name = {"_id": press["_id"], "name": "Leg press", "defaultInstructions": None}
    assert logged["swappedFor"] == {**swap, "exercise": name}
    assert {each["exerciseId"] for each in logged["customerSets"]} == {press["_id"]}
    assert logged["exerciseId"] == squat["_id"], "the plan is unchanged"
    sessions = {}
    for exercise in (squat, press):
        query = {"pageSize": 5, "pageNum": 1}
        page = (await client.get(f"/customer/exercise/{exercise['_id']}/history", **query)).ok()
        sessions[exercise["name"]] = [(each["volumeLoad"], len(each["sets"])) for each in page["docs"]]
    assert sessions == {"Squat": [], "Leg press": [(960, 2)]}, "without the warm-up set"
    records = (await client.get("/customer/personal-records")).ok()
    assert {each["exerciseName"] for each in records} == {"Leg press"}

    by_coach = (await log(coach, block, item, customerSets=logged["customerSets"])).ok()
    assert (by_coach["swappedFor"], by_coach["customerSets"]) == (logged["swappedFor"], logged["customerSets"])
    both = [{**sets[0], "exerciseId": squat["_id"]}, {**sets[0], "exerciseId": press["_id"]}]
    mixed = (await own_log(client, block, item, swappedFor=swap, customerSets=both)).ok()
    assert [each["exerciseId"] for each in mixed["customerSets"]] == [squat["_id"], press["_id"]]

    for wrong, status in (
        ({"swappedFor": {"exerciseId": UNKNOWN}}, 404),
        ({"swappedFor": {"exerciseId": squat["_id"]}}, 400),
        ({"swappedFor": {"exerciseId": "press"}}, 400),
        ({"swappedFor": "press"}, 400),
        ({"customerSets": [{**sets[0], "exerciseId": press["_id"]}]}, 400),
        ({"swappedFor": swap, "customerSets": [sets[0], {**sets[0], "exerciseId": press["_id"]}]}, 400),
    ):
        (await own_log(client, block, item, **wrong)).refused(status)
    (await own_log(client, block, item)).ok()
    assert (await read(coach, block))["items"][0]["swappedFor"] is None
    await add(coach, block, task())
    assert (await own_log(client, block, circuit)).ok()["swappedFor"] is None


async def test_feeling_of_a_session_is_kept_in_a_coachs_log(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    client, own = await coach.as_client(ana), f"/customer/wblocks/{block['_id']}/log"

    assert (await client.put(own, {"feeling": 4, "sessionRpe": 6})).ok()["feeling"] == 4
    assert (await coach.put(f"{path_of(block)}/log", {"durationMinutes": 30})).ok()["feeling"] == 4
    for wrong in (0, 6, 2.5, "4"):
        (await client.put(own, {"feeling": wrong})).refused(400, "feeling")
    assert (await client.put(own, {"feeling": 2})).ok()["feeling"] == 2
    assert (await coach.put(f"{path_of(block)}/log", {"feeling": None})).ok()["feeling"] is None
    (await client.put(own, {"feeling": 5})).ok()
    assert (await client.put(own, {})).ok()["feeling"] is None
    (await client.put(own, {"feeling": 5})).ok()
    assert (await coach.post(client_path(ana, "wblocks/shift"), {"from": MONDAY, "days": 1})).ok() == {"shifted": 0}
    await hide(coach, ana, MONDAY)
    (await client.put(own, {"feeling": 1})).refused(404)
