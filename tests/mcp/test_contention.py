"""Requests that write to the same client at the same time, through every interface."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any

from coaching_service.core.database.context import schedule_key
from coaching_service.core.ids import ObjectId
from tests.support.client import MONDAY, CoachClient
from tests.support.mcp_client import McpHttpClient, tool_change
from tests.support.sampled import proof
from tests.support.service_process import until
from tests.support.training import block_with, exercise_of, path_of, task
from tests.support.visitor import Visitor

Json = dict[str, Any]
# A busy machine may take longer, by as much as the same requests take longer alone.
_ROUNDS, _MAX_SECONDS, _TIMES_ALONE = 3, 2.0, 6
_LIFTS = [f"Lift {letter}" for letter in "ABCDEFGH"]
_ITEM_LINES = "\n".join(f"{name}: 3x8 @60kg" for name in _LIFTS)
Request = Callable[[], Awaitable[Any]]


async def seconds(request: Awaitable[Any]) -> float:
    started = time.monotonic()
    await request
    return time.monotonic() - started


async def longest_wait(long: Sequence[Awaitable[Any]], short: Sequence[Request]) -> float:
    """Send the long requests at the same time, and meanwhile the short ones repeatedly."""
    done = asyncio.Event()

    async def repeat(request: Request) -> float:
        longest = 0.0
        while not done.is_set():
            longest = max(longest, await seconds(request()))
        return longest

    async with asyncio.TaskGroup() as tasks:
        repeated = [tasks.create_task(repeat(request)) for request in short]
        waits = await asyncio.gather(*map(seconds, long))
        done.set()
    return max(*waits, *(each.result() for each in repeated))


async def add_with_form(browser: Visitor, path: str) -> None:
    added = await browser.submit_only(await browser.get(path), f"{path}/text", text=_ITEM_LINES)
    added.ok(303)


@proof
async def test_tool_and_form_do_not_wait_long_for_single_writes(
    coach: CoachClient, mcp: McpHttpClient, browser: Visitor
) -> None:
    ana = await coach.create_customer("Ana")
    exercises = [await coach.create_exercise(name) for name in _LIFTS]
    single = await block_with(coach, ana, *(exercise_of(each) for each in exercises[:3]))
    log_lines = "\n".join(f"{name}: 8, 8 @60kg" for name in _LIFTS)
    logged = {"isCompleted": True, "sets": [{"reps": 8, "load": 60, "isCompleted": True}]}

    async def log_with_tool(block: Json) -> None:
        arguments = {"customerId": ana["_id"], "workoutId": block["_id"], "text": log_lines}
        tool_change(await mcp.call("log_workout", **arguments))

    async def log_item(item: Json) -> None:
        (await coach.put(f"{path_of(single)}/witems/{item['_id']}/log", logged)).ok()

    days = (str(date.fromisoformat(MONDAY) + timedelta(days=number)) for number in range(_ROUNDS + 1))

    async def long_requests() -> list[Awaitable[Any]]:
        on = next(days)
        to_log = await block_with(coach, ana, *(exercise_of(each) for each in exercises), date=on)
        to_extend = await block_with(coach, ana, task(), date=on)
        return [log_with_tool(to_log), add_with_form(browser, f"/app/customers/{ana['_id']}/blocks/{to_extend['_id']}")]

    short = [partial(log_item, item) for item in single["items"]]
    alone = max([await seconds(each) for each in await long_requests()])
    for _ in range(_ROUNDS):
        assert await longest_wait(await long_requests(), short) < max(_MAX_SECONDS, _TIMES_ALONE * alone)


async def test_all_interfaces_wait_for_the_lock_of_the_client(
    coach: CoachClient, mcp: McpHttpClient, browser: Visitor
) -> None:
    """Before their transactions: a tool or form would otherwise compete with a stream of single writes."""
    ana, press = await coach.create_customer("Ana"), await coach.create_exercise(_LIFTS[0])
    block = await block_with(coach, ana, exercise_of(press))
    path = f"/app/customers/{ana['_id']}/blocks/{block['_id']}"
    page = await browser.get(path)
    key = schedule_key(coach.ctx, "customer", {"customer_id": ObjectId(ana["_id"])})
    lock = coach.ctx.services.schedule_locks.lock_of(key)
    async with lock:
        changed = asyncio.create_task(
            mcp.call("update_workout", customerId=ana["_id"], workoutId=block["_id"], name="Push")
        )
        added = asyncio.create_task(browser.submit_only(page, f"{path}/text", text=f"{_LIFTS[0]}: 3x8"))
        renamed = asyncio.create_task(coach.patch(path_of(block), {"name": "Pull"}))
        extended = asyncio.create_task(
            coach.post(f"{path_of(block)}/witems", task(), headers={"Idempotency-Key": "once"})
        )
        requests: tuple[asyncio.Task[Any], ...] = (changed, added, renamed, extended)
        await until(lambda: len(lock._waiters or ()) == len(requests), "all wait")
        assert not any(each.done() for each in requests)
    await asyncio.gather(*requests)
    tool_change(await changed)
    statuses = ((await added).status, (await renamed).status, (await extended).status)
    assert statuses == (303, 200, 201)


@proof
async def test_form_does_not_wait_long_for_single_writes_to_the_same_program(
    coach: CoachClient, browser: Visitor
) -> None:
    exercises = [await coach.create_exercise(name) for name in _LIFTS]
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    blocks = f"/coach/programs/{program['_id']}/wblocks"
    other = (await coach.post(blocks, {"name": "Pull", "day": 2})).ok(201)

    async def add_item() -> None:
        (await coach.post(f"{path_of(other)}/witems", exercise_of(exercises[0]))).ok(201)

    async def new_page(day: int) -> str:
        extended = (await coach.post(blocks, {"name": "Push", "day": day})).ok(201)
        return f"/app/programs/{program['_id']}/blocks/{extended['_id']}"

    for day in range(3, 5):
        alone = await seconds(add_with_form(browser, await new_page(day)))
        limit = max(_MAX_SECONDS, _TIMES_ALONE * alone)
        assert await longest_wait([add_with_form(browser, await new_page(day + 3))], [add_item] * 3) < limit
