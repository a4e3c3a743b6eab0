"""Moving items: within a block, to another block, to another day, in programs; never lost, never twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from tests.support.client import MONDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.imported_history import SETS
from tests.support.sampled import proof
from tests.support.training import (
    Json,
    add,
    block_with,
    client_path,
    employee_key,
    exercise_of,
    log,
    move,
    one_of_each,
    own_log,
    read,
    task,
    titles,
)
from tests.support.transfer import import_file


@pytest.mark.parametrize(
    ("index", "expected"), [(0, "cabd"), (1, "acbd"), (2, "abcd"), (3, "abdc"), (4, "abdc"), (1_000, "abdc")]
)
async def test_item_moves_within_its_block(coach: CoachClient, index: int, expected: str) -> None:
    """Contract 5: `index` from 0; answers the target block. Contract 1: `version`: +1 a change."""
    ana = await coach.create_customer()
    block = await block_with(coach, ana, *(task(title) for title in "abcd"))

    reached = (await move(coach, block["items"][2], block, block, index)).ok()

    assert titles(reached) == list(expected)
    assert [item["order"] for item in reached["items"]] == [0, 1, 2, 3]
    assert reached["version"] == block["version"] + 1
    assert await read(coach, block) == reached


@pytest.mark.parametrize(("index", "expected"), [(0, "bxy"), (1, "xby"), (2, "xyb"), (99, "xyb")])
async def test_item_moves_to_another_block_and_day(coach: CoachClient, index: int, expected: str) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, *(task(title) for title in "abc"))
    for date in (MONDAY, TUESDAY):
        other = await block_with(coach, ana, *(task(title) for title in "xy"), date=date)

        reached = (await move(coach, block["items"][1], block, other, index)).ok()

        assert (reached["_id"], reached["date"], titles(reached)) == (other["_id"], date, list(expected))
        assert [item["order"] for item in reached["items"]] == [0, 1, 2]
        left = await read(coach, block)
        assert (titles(left), [item["order"] for item in left["items"]]) == (["a", "c"], [0, 1])
        assert (left["version"], reached["version"]) == (block["version"] + 1, other["version"] + 1)
        block = (await move(coach, block["items"][1], other, block, 1)).ok()
        assert titles(block) == ["a", "b", "c"]


async def test_log_moves_with_the_item(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, *await one_of_each(coach))
    other = await coach.schedule(ana, TUESDAY)
    for item in block["items"]:
        logged = (await log(coach, block, item, comment="done")).ok()
        reached = (await move(coach, item, block, other, 0)).ok()
        assert reached["items"][0] == logged | {"order": 0, "version": reached["version"]}
    assert (await read(coach, other))["isCompleted"] is True
    assert ((await read(coach, block))["items"], (await read(coach, block))["isCompleted"]) == ([], False)


async def test_items_move_within_a_program(coach: CoachClient) -> None:
    """Contract 5: program blocks: the rest as for customers."""
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{program['_id']}/wblocks"
    first, second = [(await coach.post(path, {"name": "A", "day": day})).ok(201) for day in (1, 2)]
    items = [await add(coach, first, task(title)) for title in "ab"]

    reached = (await move(coach, items[0], first, second, 0)).ok()

    assert (reached["day"], titles(reached), titles(await read(coach, first))) == (2, ["a"], ["b"])
    (await move(coach, items[0], first, second, 0)).refused(409)
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    (await move(coach, items[0], second, block, 0)).refused(404, "Workout block")
    (await move(coach, block["items"][0], block, second, 0)).refused(404, "Workout block")
    assert titles(await read(coach, second)) == ["a"]


async def test_move_without_source_or_target_is_the_documented_500(coach: CoachClient) -> None:
    """Contract 3: item move whose `source` or `target` is absent or null: 500, `WITEM_MOVE_INCOMPLETE`, nothing
    written."""
    ana = await coach.create_customer()
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    block = await block_with(coach, ana, task("a"), task("b"))
    source = {"wblockId": block["_id"], "witemId": block["items"][0]["_id"]}
    target = {"wblockId": block["_id"], "index": 1}
    bodies: tuple[Json, ...] = (
        {},
        {"source": source},
        {"target": target},
        {"source": None, "target": None},
        {"source": source, "target": None},
        {"source": None, "target": target},
    )
    for body in bodies:
        for owner in (f"customers/{ana['_id']}", f"programs/{program['_id']}"):
            error = (await coach.put(f"/coach/{owner}/witems/move", body)).refused(500)
            assert set(error) == {"code", "message"}
            assert error["code"] == "WITEM_MOVE_INCOMPLETE", (owner, body)
    assert await read(coach, block) == block


@pytest.mark.parametrize(
    ("part", "wrong", "field"),
    [
        ("source", "x", "source"),
        ("source", {}, "source.wblockId"),
        ("source", {"wblockId": "short", "witemId": UNKNOWN}, "source.wblockId"),
        ("source", {"wblockId": UNKNOWN, "witemId": None}, "source.witemId"),
        ("target", [], "target"),
        ("target", {"index": 0}, "target.wblockId"),
        ("target", {"wblockId": UNKNOWN}, "target.index"),
        ("target", {"wblockId": UNKNOWN, "index": -1}, "target.index"),
        ("target", {"wblockId": UNKNOWN, "index": "0"}, "target.index"),
        ("target", {"wblockId": UNKNOWN, "index": 0.5}, "target.index"),
    ],
)
async def test_malformed_move_is_rejected_with_its_field(coach: CoachClient, part: str, wrong: Any, field: str) -> None:
    """Contract 3: malformed ones are 400."""
    ana = await coach.create_customer()
    complete = {"source": {"wblockId": UNKNOWN, "witemId": UNKNOWN}, "target": {"wblockId": UNKNOWN, "index": 0}}
    error = (await coach.put(client_path(ana, "witems/move"), complete | {part: wrong})).refused(400)
    assert [message for message in error["message"] if message.startswith(field + " ")], error


async def test_unknown_block_or_item_is_not_found(coach: CoachClient, other_company: CoachClient) -> None:
    """Contract 5: item no longer in `source`: 409, never known: 404."""
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    block, other = await block_with(coach, ana, task("a")), await block_with(coach, ana)
    theirs = await block_with(coach, bo, task("z"))
    stranger = await block_with(other_company, await other_company.create_customer(), task("s"))
    [item], unknown = block["items"], {"_id": UNKNOWN}

    (await move(coach, unknown, block, other, 0)).refused(404, "Workout item")
    (await move(coach, item, block | unknown, other, 0)).refused(404, "Workout block")
    (await move(coach, item, block, unknown, 0)).refused(404, "Workout block")
    (await move(coach, item, block, theirs, 0)).refused(404, "Workout block")
    (await move(coach, item, block, stranger, 0)).refused(404, "Workout block")
    (await move(coach, theirs["items"][0], block, other, 0)).refused(404, "Workout item")
    (await move(coach, stranger["items"][0], block, other, 0)).refused(404, "Workout item")
    (await move(coach, item, block | {"customerId": UNKNOWN}, other, 0)).refused(404, "Customer")
    (await move(coach, item, other, block, 0)).refused(409)
    assert (await read(coach, block), await read(coach, theirs)) == (block, theirs)
    (await coach.delete(f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems/{item['_id']}")).ok(204)
    (await move(coach, item, block, other, 0)).refused(404, "Workout item")


async def test_full_block_rejects_an_item(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, task("a"))
    template = {"name": "Full", "items": [task(str(n)) for n in range(100)]}
    created = (await coach.post("/coach/workout-templates", template)).ok(201)
    place = {"customerId": ana["_id"], "date": MONDAY}
    full = (await coach.post(f"/coach/workout-templates/{created['_id']}/apply", place)).ok(201)

    (await move(coach, block["items"][0], block, full, 0)).refused(400, "100")

    assert await read(coach, block) == block
    assert len((await read(coach, full))["items"]) == 100
    last = (await read(coach, full))["items"][99]
    within = (await move(coach, last, full, full, 0)).ok()
    assert (within["items"][0]["_id"], len(within["items"])) == (last["_id"], 100)
    (await coach.post(client_path(ana, "wblocks", full["_id"], "witems"), exercise_of(squat))).refused(400, "100")


async def test_item_moved_by_two_coaches_ends_in_one_block(coach: CoachClient) -> None:
    """Two coaches moving one item: one wins, the other gets 409."""
    ana = await coach.create_customer()
    key = await employee_key(coach, "customers.view", "customers.edit", scope="all")
    other_coach = coach.with_key(key)
    for _ in range(3):
        source = await block_with(coach, ana, task("a"), task("b"))
        first, second = await coach.schedule(ana, TUESDAY), await coach.schedule(ana, TUESDAY)
        item = source["items"][0]

        replies = await asyncio.gather(move(coach, item, source, first, 0), move(other_coach, item, source, second, 0))

        assert sorted(reply.status for reply in replies) == [200, 409]
        holding = [block["_id"] for block in (first, second) if (await read(coach, block))["items"]]
        assert holding == [reply.json["_id"] for reply in replies if reply.status == 200]


async def test_item_logged_during_a_move_keeps_its_log(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    client = await coach.as_client(ana)
    for _ in range(3):
        source, target = await block_with(coach, ana, task()), await coach.schedule(ana, TUESDAY)
        [item] = source["items"]
        logged, moved = await asyncio.gather(own_log(client, source, item), move(coach, item, source, target, 0))
        assert (moved.status, logged.status in (200, 404)) == (200, True)
        [located] = (await read(coach, target))["items"]
        assert (located["_id"], located["isCompleted"]) == (item["_id"], logged.status == 200)
        assert (await read(coach, source))["items"] == []


@proof
async def test_concurrent_moves_keep_every_item_exactly_once(coach: CoachClient) -> None:
    """80 concurrent moves of items among five blocks; afterwards every item is located exactly once."""
    ana = await coach.create_customer()
    blocks = [await block_with(coach, ana, *(task(f"{b}{n}") for n in range(6)), name=b) for b in "abcde"]
    all_items = [item for block in blocks for item in block["items"]]
    place = {item["_id"]: block for block in blocks for item in block["items"]}
    dice = random.Random(7)
    statuses: Counter[int] = Counter()

    async def keep_moving() -> None:
        for _ in range(8):
            item, target = dice.choice(all_items), dice.choice(blocks)
            reply = await move(coach, item, place[item["_id"]], target, dice.randrange(8))
            statuses[reply.status] += 1
            if reply.status == 200:
                place[item["_id"]] = target

    await asyncio.gather(*(keep_moving() for _ in range(10)))

    after = await coach.calendar(ana)
    located = Counter(item["_id"] for block in after for item in block["items"])
    assert located == Counter(item["_id"] for item in all_items)
    for block in after:
        assert [item["order"] for item in block["items"]] == list(range(len(block["items"])))
    assert statuses.keys() <= {200, 409}
    assert statuses.total() == 80
    assert statuses[200] >= 40


async def test_an_exercise_of_an_imported_session_has_planned_sets_in_another_workout(coach: CoachClient) -> None:
    """Those that were done: only imported sessions have exercises without any."""
    ana = await coach.create_customer()
    await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"])
    first, second = await coach.calendar(ana, "2025-01-06", "2025-01-08")
    [item] = first["items"]
    target = await coach.schedule(ana)

    moved = (await move(coach, item, first, target, 0)).ok()["items"][0]

    assert (item["exerciseSets"], [each["load"] for each in moved["exerciseSets"]]) == ([], [100, 102.5])
    assert (moved["customerSets"], moved["isCompleted"]) == (item["customerSets"], True)
    back = (await move(coach, second["items"][0], second, first, 0)).ok()["items"][0]
    assert back["exerciseSets"] == [], "it stays as it is in another imported session"
