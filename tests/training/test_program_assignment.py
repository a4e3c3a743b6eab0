"""Programs onto calendars: all or nothing, and the copies remember where they came from."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.training.programs import ProgramPlan
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.models import BlockPlan
from coaching_service.training.workouts.items.models import ItemInput
from tests.support.client import MONDAY, UNKNOWN, CoachClient, Reply
from tests.support.schedules import before_last
from tests.support.training import (
    Json,
    add,
    client_path,
    employee_key,
    exercise_of,
    feed,
    log,
    one_of_each,
    path_of,
    read,
    task,
    titles,
)
from tests.training.test_programs import plan

EVER = ("0001-01-01", "9999-12-31")


async def create(coach: CoachClient, *days: int, name: str = "Base") -> Json:
    """A program with a block on each of these days, `A`, `B`, ... in the order given."""
    program: Json = (await coach.post("/coach/programs", {"name": name})).ok(201)
    for letter, day in zip("ABCDEFGH", days, strict=False):
        await plan(coach, program, day, letter)
    return program


async def assign(coach: CoachClient, program: Json, customer: Json, start: str = MONDAY, **options: Any) -> Reply:
    body = {"customerId": customer["_id"], "startDate": start}
    return await coach.post(f"/coach/programs/{program['_id']}/assign", body, **options)


async def year_of(coach: CoachClient, program: Json, weeks: int = 52) -> int:
    """Fill a program with a block on every day of a year, every item of it a task."""
    item: ItemInput = {"type": "TASK", "taskFields": {"title": "Walk", "description": None}}
    plans: list[BlockPlan] = [
        {"name": f"Day {day}", "day": day, "isRest": False, "items": [item] * 5} for day in range(1, weeks * 7 + 1)
    ]
    created, _ = await batches.write(coach.ctx, ProgramPlan(ObjectId(program["_id"])), batches.Batch(created=plans), [])
    return len(created)


async def test_assignment_copies_every_block(coach: CoachClient) -> None:
    """Contract 6: POST /coach/programs/{pid}/assign `{customerId, startDate}` (copies every block onto the calendar,
    all or nothing; answers `{blocks: n}`)."""
    ana = await coach.create_customer()
    program = await create(coach, 3, 1, 1, 29)

    assert (await assign(coach, program, ana, "2024-02-28")).ok(201)["blocks"] == 4

    blocks = await coach.calendar(ana, *EVER)
    assert [(b["date"], b["day"], b["name"], b["order"]) for b in blocks] == [
        ("2024-02-28", 1, "B", 0),
        ("2024-02-28", 1, "C", 1),
        ("2024-03-01", 3, "A", 0),
        ("2024-03-27", 29, "D", 0),
    ]
    assert {(b["programId"], b["customerId"], b["version"]) for b in blocks} == {(program["_id"], ana["_id"], 0)}
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == "2024-03-27"
    own = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=0, endDay=99)).ok()
    assert [(b["day"], b["customerId"]) for b in own] == [(1, None), (1, None), (3, None), (29, None)]


async def test_assigned_items_have_nothing_logged(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    program = await create(coach, 1)
    rest = await plan(coach, program, 2, "Rest", isRest=True)
    [block, _] = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=2)).ok()
    for item in await one_of_each(coach):
        await add(coach, block, item)
    planned = await read(coach, block)

    (await assign(coach, program, ana)).ok(201)

    workout, day_off = await coach.calendar(ana)
    stamps = ("_id", "createdAt", "updatedAt", "version")
    assert [{k: v for k, v in item.items() if k not in stamps} for item in workout["items"]] == [
        {k: v for k, v in item.items() if k not in stamps} for item in planned["items"]
    ]
    assert not {item["_id"] for item in workout["items"]} & {item["_id"] for item in planned["items"]}
    assert (day_off["name"], day_off["isRest"], day_off["day"]) == (rest["name"], True, 2)
    for item in workout["items"]:
        (await log(coach, workout, item)).ok()
    assert await read(coach, planned) == planned, "what the client does is not the program's"


async def test_assigned_blocks_have_program_and_day(coach: CoachClient) -> None:
    """Assigned blocks remember where they came from (`programId`, `day`)."""
    ana = await coach.create_customer()
    program = await create(coach, 1, 8)
    (await assign(coach, program, ana)).ok(201)
    first, second = await coach.calendar(ana, *EVER)

    moved = (await coach.patch(path_of(first), {"date": "2026-04-01", "name": "Later"})).ok()
    assert (moved["programId"], moved["day"]) == (program["_id"], 1)
    (await coach.post(client_path(ana, "wblocks/shift"), {"from": MONDAY, "days": 1})).ok()
    assert [(b["programId"], b["day"]) for b in await coach.calendar(ana, *EVER)] == [
        (program["_id"], 8),
        (program["_id"], 1),
    ]
    (await coach.patch(path_of(second), {"day": 3, "programId": UNKNOWN})).ok()
    assert (await read(coach, second))["day"] == 8, "where it came from is not to be changed"


async def test_assigned_blocks_can_be_shifted(coach: CoachClient) -> None:
    """Shift everything not yet done by N days."""
    ana = await coach.create_customer()
    program = await create(coach, 1, 2, 3)
    [first, *_] = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=1)).ok()
    await add(coach, first, task())
    (await assign(coach, program, ana)).ok(201)
    done = (await coach.calendar(ana))[0]
    (await log(coach, done, done["items"][0])).ok()

    assert (await coach.post(client_path(ana, "wblocks/shift"), {"from": MONDAY, "days": 30})).ok() == {"shifted": 2}

    blocks = await coach.calendar(ana, *EVER)
    assert [(block["date"], block["day"]) for block in blocks] == [(MONDAY, 1), ("2026-04-02", 2), ("2026-04-03", 3)]


async def test_program_blocks_cannot_be_logged(coach: CoachClient) -> None:
    """Contract 5: program blocks: the rest as for customers, without logs."""
    program = await create(coach, 1)
    [block] = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=1)).ok()
    item = await add(coach, block, task())
    for path in (f"{path_of(block)}/log", f"{path_of(block)}/witems/{item['_id']}/log"):
        assert (await coach.put(path, {})).refused(404)["message"] == f"Cannot PUT {path}"


async def test_assigned_blocks_outlive_changes_of_the_program(coach: CoachClient) -> None:
    """Blocks already assigned from a program stay when it is deleted (the operation's own description)."""
    ana = await coach.create_customer()
    program = await create(coach, 1)
    (await assign(coach, program, ana)).ok(201)
    before = await coach.calendar(ana)
    path = f"/coach/programs/{program['_id']}"
    [own] = (await coach.get(f"{path}/wblock", startDay=1, endDay=1)).ok()
    await add(coach, own, task("new"))
    assert await coach.calendar(ana) == before

    (await coach.delete(path)).ok(204)

    assert await coach.calendar(ana) == before
    assert before[0]["programId"] == program["_id"]
    (await assign(coach, program, ana)).refused(404, "Program")
    await add(coach, before[0], task("still mine"))
    assert titles(await read(coach, before[0])) == ["still mine"]


async def test_each_assignment_is_in_the_activity_feed(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    program = await create(coach, 1, 2, name="Base")
    for start in (MONDAY, "2026-04-06"):
        (await assign(coach, program, ana, start)).ok(201)
    events = await feed(coach, ana)
    assert [(e["type"], e["data"]["programId"], e["data"]["programName"], e["data"]["blocks"]) for e in events] == [
        ("program_assigned", program["_id"], "Base", 2)
    ] * 2
    assert [e["data"]["startDate"] for e in events] == ["2026-04-06", MONDAY]
    assert len(await coach.calendar(ana, *EVER)) == 4, "assigned twice, it is there twice"


async def test_unknown_program_or_client_is_not_found(coach: CoachClient, other_company: CoachClient) -> None:
    ana, program = await coach.create_customer(), await create(coach, 1)
    stranger, theirs = await other_company.create_customer(), await create(other_company, 1)
    unknown = {"_id": UNKNOWN}

    client_error = (await assign(coach, program, unknown)).refused(404, "Customer")
    assert (await assign(coach, program, stranger)).refused(404) == client_error
    program_error = (await assign(coach, unknown, ana)).refused(404, "Program")
    assert (await assign(coach, theirs, ana)).refused(404) == program_error
    path = f"/coach/programs/{program['_id']}/assign"
    for body, field in [
        ({"startDate": MONDAY}, "customerId"),
        ({"customerId": "x", "startDate": MONDAY}, "customerId"),
        ({"customerId": ana["_id"]}, "startDate"),
        ({"customerId": ana["_id"], "startDate": "2026-02-29"}, "startDate"),
    ]:
        (await coach.post(path, body)).refused(400, field)
    assert (await coach.calendar(ana, *EVER), await feed(coach, ana)) == ([], [])
    assert (await assign(coach, await create(coach), ana)).ok(201)["blocks"] == 0


async def test_a_year_is_assigned_completely(coach: CoachClient) -> None:
    """All or nothing, also for 52 weeks of blocks."""
    ana = await coach.create_customer()
    program = await create(coach)
    assert await year_of(coach, program) == 364

    assert (await assign(coach, program, ana, "2027-06-01")).ok(201)["blocks"] == 364

    blocks = await coach.calendar(ana, *EVER)
    start = date(2027, 6, 1)
    assert [(b["date"], b["day"], b["name"]) for b in blocks] == [
        (str(start + timedelta(days=day - 1)), day, f"Day {day}") for day in range(1, 365)
    ]
    assert {len(block["items"]) for block in blocks} == {5}
    identifiers = {item["_id"] for block in blocks for item in block["items"]}
    assert len(identifiers) == 364 * 5


async def test_assignment_past_the_calendar_assigns_nothing(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    program = await create(coach)
    await year_of(coach, program)
    (await assign(coach, program, ana, before_last(362))).refused(400, before_last(362))
    assert (await coach.calendar(ana, *EVER), await feed(coach, ana)) == ([], [])
    assert (await assign(coach, program, ana, before_last(363))).ok(201)["blocks"] == 364


async def test_client_outside_the_scope_is_forbidden(coach: CoachClient) -> None:
    """Contract 1: client of one's own company outside an employee's scope: 403 by path; a body names one no less."""
    ana, program = await coach.create_customer(), await create(coach, 1)
    key = await employee_key(coach, "customers.edit", "programs.view")
    (await assign(coach.with_key(key), program, ana)).refused(403, "another coach")
    assert await coach.calendar(ana) == []


async def test_assignment_to_a_client_being_erased_is_atomic(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    program = await create(coach)
    await year_of(coach, program, weeks=10)
    assigned, erased = await asyncio.gather(assign(coach, program, ana), coach.delete(client_path(ana)))
    assert erased.status == 204
    assert assigned.status in (201, 404)


async def test_retried_assignment_is_executed_once(coach: CoachClient) -> None:
    ana, program = await coach.create_customer(), await create(coach, 1, 2)
    key = {"Idempotency-Key": "assign-1"}
    replies = [await assign(coach, program, ana, headers=key) for _ in range(3)]
    assert [reply.ok(201) for reply in replies] == [replies[0].json] * 3
    assert replies[0].json["blocks"] == 2
    assert [reply.headers.get("Idempotent-Replayed") for reply in replies] == [None, "true", "true"]
    assert (len(await coach.calendar(ana)), len(await feed(coach, ana))) == (2, 1)


async def test_assignment_keeps_the_name_of_a_deleted_exercise(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise("Garage Squat")
    program = await create(coach, 1)
    [block] = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=1)).ok()
    await add(coach, block, exercise_of(squat))
    (await coach.delete(f"/exercises/{squat['_id']}")).ok(204)
    (await assign(coach, program, ana)).ok(201)
    assert (await coach.calendar(ana))[0]["items"][0]["exercise"]["name"] == "Garage Squat"


@pytest.mark.parametrize("count", [20])
async def test_blocks_of_one_day_keep_their_order(coach: CoachClient, count: int) -> None:
    ana, program = await coach.create_customer(), await create(coach)
    plans: list[BlockPlan] = [{"name": str(n), "day": 1, "isRest": False, "items": []} for n in range(count)]
    await batches.write(coach.ctx, ProgramPlan(ObjectId(program["_id"])), batches.Batch(created=plans), [])
    (await assign(coach, program, ana)).ok(201)
    blocks = await coach.calendar(ana)
    assert [(block["name"], block["order"]) for block in blocks] == [(str(n), n) for n in range(count)]
    stored = await coach.ctx.db["workoutBlocks"].find({"customerId": ObjectId(ana["_id"])}).to_list(None)
    assert len({block["position"] for block in stored}) == count, "the order does not hang on their identifiers"
