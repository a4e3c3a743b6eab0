"""What is written when one item of a workout changes."""

from __future__ import annotations

from typing import Any

from coaching_service.core.ids import ObjectId
from tests.contract.test_queries import profiling
from tests.support.client import CoachClient
from tests.support.stored import stored_document
from tests.support.training import block_with, exercise_of, log, read, task

Json = dict[str, Any]


async def test_a_log_writes_only_the_logged_item(coach: CoachClient) -> None:
    squat = await coach.create_exercise("Squat")
    block = await block_with(coach, await coach.create_customer("Ana"), task("Walk"), exercise_of(squat), task("Swim"))
    before = await _stored(coach, block)
    async with profiling(coach) as profile:
        (await log(coach, block, block["items"][1], isCompleted=True)).ok()
        writes = [each["command"] for each in await profile() if each["op"] == "update" and _is_of_block(each)]
    [sent] = [write["u"]["$set"] for write in writes]
    assert sorted(sent) == ["done", "items.1", "updatedAt"]
    after = await _stored(coach, block)
    assert [item["isCompleted"] for item in after["items"]] == [False, True, False]
    assert (after["items"][0], after["items"][2]) == (before["items"][0], before["items"][2])
    assert [item["_id"] for item in (await read(coach, block))["items"]] == [item["_id"] for item in block["items"]]


def _is_of_block(entry: Json) -> bool:
    return bool(entry["ns"].endswith(".workoutBlocks"))


async def _stored(coach: CoachClient, block: Json) -> Json:
    document: Json = await stored_document(coach.ctx.db["workoutBlocks"], {"_id": ObjectId(block["_id"])})
    return document
