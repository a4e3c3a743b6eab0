"""One set at a time (contract 15): repeated, reordered and concurrent requests, completion, and items that are gone."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from tests.support.client import TUESDAY, UNKNOWN, CoachClient, Reply
from tests.support.training import (
    Json,
    block_with,
    circuit_of,
    client_path,
    exercise_of,
    feed_types,
    hide,
    log,
    move,
    own_log,
    path_of,
    read,
    task,
)

PLANNED = {"type": "reps_load", "minPlannedReps": 8, "load": 60}


async def send_set(client: CoachClient, block: Json, item: Json, index: int = 1, **done: Any) -> Reply:
    path = f"/customer/wblocks/{block['_id']}/witems/{item['_id']}/sets"
    return await client.put(path, {"index": index, "reps": 8, "load": 60, **done})


def at(second: int) -> str:
    return f"2026-03-02T08:30:{second:02}.000Z"


async def test_each_set_is_replaced_alone_and_the_last_one_completes_the_item(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    block = await block_with(coach, ana, exercise_of(squat, PLANNED, PLANNED), circuit_of(squat, press))
    [item, circuit], client = block["items"], await coach.as_client(ana)
    (await log(coach, block, item, isCompleted=False, comment="Slowly")).ok()

    first = (await send_set(client, block, item, 1, loggedAt=at(1))).ok()
    assert (first["isCompleted"], first["comment"], len(first["customerSets"])) == (False, "Slowly", 1)
    stored = first["customerSets"][0]
    assert (stored["reps"], stored["load"], stored["isCompleted"], stored["loggedAt"]) == (8, 60, True, at(1))
    (await send_set(client, block, item, 2, reps=6, loggedAt=at(9))).ok()
    changed = (await send_set(client, block, item, 1, reps=7, loggedAt=at(5))).ok()
    assert [each["reps"] for each in changed["customerSets"]] == [7, 6]
    assert (changed["isCompleted"], changed["completedAt"] is not None) == (True, True)
    for repeated in (at(1), at(5)):
        again = (await send_set(client, block, item, 1, reps=3 if repeated == at(1) else 7, loggedAt=repeated)).ok()
        assert again == changed, "nothing changes, nor the version"
    undone = (await send_set(client, block, item, 1, isCompleted=False, loggedAt=at(10))).ok()
    assert (undone["isCompleted"], undone["completedAt"]) == (False, None)
    assert "item_logged" not in await feed_types(coach, ana)
    query = {"pageSize": 5, "pageNum": 1}
    history = (await client.get(f"/customer/exercise/{squat['_id']}/history", **query)).ok()["docs"]
    assert [each["volumeLoad"] for each in history] == [360]

    for number, (exercise, lap) in enumerate([(squat, 2), (press, 1), (press, 2), (squat, 1)]):
        done = (await send_set(client, block, circuit, 1, exerciseId=exercise["_id"], round=lap)).ok()
        assert done["isCompleted"] is (number == 3)
    order = [(each["round"], each["exerciseId"]) for each in done["customerSets"]]
    assert order == [(1, squat["_id"]), (1, press["_id"]), (2, squat["_id"]), (2, press["_id"])]
    for wrong in ({}, {"exerciseId": UNKNOWN}, {"exerciseId": squat["_id"], "round": 3}, {"index": 0}, {"reps": "8"}):
        (await send_set(client, block, circuit, **wrong)).refused(400)
    for wrong in ({"exerciseId": press["_id"]}, {"loggedAt": "yesterday"}, {"loggedAt": 5}, {"index": None}):
        (await send_set(client, block, item, **wrong)).refused(400)


async def test_set_takes_the_place_of_one_that_was_logged_with_the_whole_item(coach: CoachClient) -> None:
    """Of an exercise, and of a circuit: even if it was done before the item was logged, as that set has no time."""
    ana = await coach.create_customer()
    squat = await coach.create_exercise("Squat")
    block = await block_with(coach, ana, exercise_of(squat, PLANNED, PLANNED), circuit_of(squat))
    [item, circuit], client = block["items"], await coach.as_client(ana)
    logged = [{"index": index, "reps": 5, "load": 50, "isCompleted": True} for index in (1, 2)]
    (await own_log(client, block, item, customerSets=logged)).ok()
    replaced = (await send_set(client, block, item, 1, reps=8, loggedAt="2026-01-01T08:30:00.000Z")).ok()
    assert [(each["index"], each["reps"]) for each in replaced["customerSets"]] == [(1, 8), (2, 5)]
    rounds = [{**logged[0], "exerciseId": squat["_id"], "round": number} for number in (1, 2)]
    (await own_log(client, block, circuit, customerSets=rounds)).ok()
    done = (await send_set(client, block, circuit, 1, exerciseId=squat["_id"], round=2, loggedAt=at(1))).ok()
    assert [(each["round"], each["reps"]) for each in done["customerSets"]] == [(1, 5), (2, 8)]


@pytest.mark.parametrize("ahead", ["2036-01-01T00:00:00Z", "2036-01-01T00:00:00.000+02:00"])
async def test_a_clock_that_is_ahead_does_not_lock_a_set(coach: CoachClient, ahead: str) -> None:
    ana = await coach.create_customer()
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    block = await block_with(coach, ana, exercise_of(squat, PLANNED), circuit_of(squat, press))
    [item, circuit], client = block["items"], await coach.as_client(ana)
    places: list[tuple[Json, Json]] = [(item, {}), (circuit, {"exerciseId": press["_id"], "round": 2})]
    for each, place in places:
        before = now()
        first = (await send_set(client, block, each, loggedAt=ahead, **place)).ok()
        [stored] = first["customerSets"]
        assert f"{before:%FT%T}" <= stored["loggedAt"] <= f"{now():%FT%T.999Z}", "the time of the server"
        assert (await send_set(client, block, each, loggedAt=ahead, **place)).ok() == first, "a repetition"
        for reps in (7, 6, 9):
            sent: Json = {7: {}, 6: {"loggedAt": ahead}, 9: {"loggedAt": f"{now():%FT%T.%f}"}}[reps]
            corrected = (await send_set(client, block, each, reps=reps, **sent, **place)).ok()
            assert [done["reps"] for done in corrected["customerSets"]] == [reps]


async def test_a_time_in_the_future_that_was_stored_before_does_not_lock_a_set(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, exercise_of(await coach.create_exercise(), PLANNED))
    [item], client = block["items"], await coach.as_client(ana)
    (await send_set(client, block, item)).ok()
    future = {"$set": {"items.0.customerSets.0.loggedAt": now() + timedelta(days=3000)}}
    await coach.ctx.db["workoutBlocks"].update_one({"_id": ObjectId(block["_id"])}, future)

    assert [done["reps"] for done in (await send_set(client, block, item, reps=7)).ok()["customerSets"]] == [7]


async def test_set_of_a_skipped_or_swapped_item(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    block = await block_with(coach, ana, exercise_of(squat, PLANNED, PLANNED), task())
    [item, walk], client = block["items"], await coach.as_client(ana)
    (await own_log(client, block, item, skipped={"reason": "Tired"}, pain="Knee")).ok()
    half = (await send_set(client, block, item, 1)).ok()
    assert (half["skipped"], half["pain"], half["isCompleted"]) == ({"reason": "Tired"}, "Knee", False)
    both = (await send_set(client, block, item, 2)).ok()
    assert (both["skipped"], both["pain"], both["isCompleted"]) == (None, "Knee", True)

    (await own_log(client, block, item, swappedFor={"exerciseId": press["_id"]}, isCompleted=False)).ok()
    (await send_set(client, block, item, 1)).ok()
    mixed = (await send_set(client, block, item, 1, exerciseId=squat["_id"])).ok()
    assert [each["exerciseId"] for each in mixed["customerSets"]] == [squat["_id"], press["_id"]]
    assert (await send_set(client, block, walk)).refused(400)["code"] == "ITEM_WITHOUT_SETS"


async def test_ten_sets_at_once_are_all_stored(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat, *[PLANNED] * 10))
    [item], client = block["items"], await coach.as_client(ana)

    replies = await asyncio.gather(*(send_set(client, block, item, index, reps=index) for index in range(1, 11)))

    assert [reply.status for reply in replies] == [200] * 10
    [stored] = (await read(coach, block))["items"]
    assert [(each["index"], each["reps"]) for each in stored["customerSets"]] == [(n, n) for n in range(1, 11)]
    assert stored["isCompleted"] is True
    assert {*await feed_types(coach, ana)} == {"item_logged", "workout_completed", "personal_record"}


async def test_order_and_repetition_of_sets_do_not_matter(coach: CoachClient) -> None:
    """Property: the same requests in any order, each at least once, leave the same sets and the same completion."""
    chance = random.Random(20261122)
    ana = await coach.create_customer()
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    client = await coach.as_client(ana)
    for plan, exercises in ((exercise_of(squat, PLANNED, PLANNED), [None]), (circuit_of(squat, press), [squat, press])):
        sent = [
            {
                "index": chance.randint(1, 2),
                "reps": chance.randint(1, 3),
                "isCompleted": chance.random() < 0.7,
                "loggedAt": at(chance.randint(0, 4)),
                **({"exerciseId": each["_id"], "round": chance.randint(1, 2)} if each else {}),
            }
            for _ in range(8)
            for each in [chance.choice(exercises)]
        ]
        outcomes = []
        for _ in range(2):
            [item] = (block := await block_with(coach, ana, plan))["items"]
            requests = [*sent, *chance.sample(sent, 3)]
            chance.shuffle(requests)
            for request in requests:
                (await send_set(client, block, item, **request)).ok()
            [stored] = (await read(coach, block))["items"]
            outcomes.append((stored["customerSets"], stored["isCompleted"]))
        assert outcomes == outcomes[:1] * 2, sent


async def test_set_of_an_item_that_is_gone_is_a_conflict_and_of_one_never_seen_is_not_found(
    coach: CoachClient,
) -> None:
    ana, bo, squat = await coach.create_customer(), await coach.create_customer("Bo"), await coach.create_exercise()
    items = [exercise_of(squat)] * 3
    monday = await block_with(coach, ana, *items)
    tuesday = await block_with(coach, ana, *items, date=TUESDAY)
    his = await block_with(coach, bo, *items)
    client = await coach.as_client(ana)
    unknown = (await send_set(client, monday, {"_id": UNKNOWN})).refused(404)

    (await coach.delete(f"{path_of(monday)}/witems/{monday['items'][0]['_id']}")).ok(204)
    (await move(coach, monday["items"][1], monday, tuesday, 0)).ok()
    assert (await send_set(client, monday, monday["items"][2])).ok()["customerSets"] != []
    for gone in monday["items"][:2]:
        assert (await send_set(client, monday, gone)).refused(409)["code"] == "ITEM_GONE"
    (await send_set(client, tuesday, monday["items"][1])).ok()
    (await coach.delete(path_of(tuesday))).ok(204)
    assert (await send_set(client, tuesday, tuesday["items"][0])).refused(409)["code"] == "ITEM_GONE"
    never = (await send_set(client, tuesday, {"_id": UNKNOWN})).refused(404)
    assert (await send_set(client, {"_id": UNKNOWN}, tuesday["items"][0])).refused(404) == never

    (await coach.delete(path_of(his))).ok(204)
    assert (await send_set(client, his, his["items"][0])).refused(404) == never
    await hide(coach, ana, monday["date"], TUESDAY)
    for hidden, item in ((monday, monday["items"][0]), (monday, monday["items"][2]), (tuesday, tuesday["items"][0])):
        assert (await send_set(client, hidden, item)).refused(404) == never
    assert (await send_set(client, monday, {"_id": UNKNOWN})).refused(404) == never != unknown
    assert (await coach.get(client_path(ana, "visibility"), startDate=TUESDAY, endDate=TUESDAY)).ok()
