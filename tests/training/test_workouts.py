"""Scheduling training: blocks on a client's calendar, and the items in them."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient

SET = {"type": "reps_load", "index": 1, "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60}


def exercise_item(exercise: dict[str, Any], *sets: dict[str, Any]) -> dict[str, Any]:
    return {"type": "EXERCISE", "exerciseId": exercise["_id"], "exerciseSets": list(sets) or [SET]}


def items_path(customer: dict[str, Any], block: dict[str, Any]) -> str:
    return f"/coach/customers/{customer['_id']}/wblocks/{block['_id']}/witems"


async def test_main_flow_of_the_specification(coach: CoachClient) -> None:
    """List clients, create one, find an exercise, schedule a block, put items into it, read the calendar back."""
    assert (await coach.customers())["docs"] == []
    ana = await coach.create_customer("Ana", email="ana@example.com", sendInvitation=False)
    results = (await coach.get("/exercises/unified", pageSize=5, pageNum=1, keywords="back squat")).ok()
    squat = results["docs"][0]
    block = await coach.schedule(ana, MONDAY, "Lower body")

    item = (await coach.post(items_path(ana, block), exercise_item(squat))).ok(201)
    task = (await coach.post(items_path(ana, block), {"type": "TASK", "taskFields": {"title": "Walk"}})).ok(201)

    assert (item["type"], item["order"], item["isCompleted"], item["version"]) == ("EXERCISE", 0, False, 1)
    assert item["exercise"]["name"] == squat["name"]
    assert (task["order"], task["taskFields"]) == (1, {"title": "Walk", "description": None})
    [read] = await coach.calendar(ana)
    assert read["name"] == "Lower body"
    assert read["items"] == [item | {"version": 2}, task]
    assert (await coach.get(f"/coach/customers/{ana['_id']}")).ok()["customerRoleData"]["lastWorkoutDate"] == MONDAY


async def test_block_requires_a_name_and_an_existing_date(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path = f"/coach/customers/{ana['_id']}/wblocks"
    for body, field in [
        ({"date": MONDAY}, "name"),
        ({"name": "A"}, "date"),
        ({"name": "A", "date": "2026-3-2"}, "date"),
        ({"name": "A", "date": "20260302"}, "date"),
        ({"name": "A", "date": "2026-02-29"}, "date"),
        ({"name": "A", "date": "2026-W10-1"}, "date"),
        ({"name": "A", "date": 20260302}, "date"),
        ({"name": "A", "date": "2026-03-02T10:00:00Z"}, "date"),
        ({"name": "A", "date": MONDAY, "isRest": 1}, "isRest"),
    ]:
        (await coach.post(path, body)).refused(400, field)
    assert await coach.calendar(ana) == []


async def test_calendar_is_ordered_by_date_and_position(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for date, name in [(TUESDAY, "C"), (MONDAY, "A"), (MONDAY, "B"), (SUNDAY, "D"), ("2026-03-09", "outside")]:
        await coach.schedule(ana, date, name)

    blocks = await coach.calendar(ana)

    assert [(b["date"], b["order"], b["name"]) for b in blocks] == [
        (MONDAY, 0, "A"),
        (MONDAY, 1, "B"),
        (TUESDAY, 0, "C"),
        (SUNDAY, 0, "D"),
    ]
    assert [b["name"] for b in await coach.calendar(ana, TUESDAY, TUESDAY)] == ["C"]
    path = f"/coach/customers/{ana['_id']}/wblocks/{blocks[1]['_id']}"
    assert (await coach.get(path)).ok() == blocks[1]


async def test_calendar_requires_both_dates_in_order(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path = f"/coach/customers/{ana['_id']}/wblock"
    (await coach.get(path)).refused(400)
    (await coach.get(path, startDate=MONDAY)).refused(400, "endDate")
    (await coach.get(path, startDate=SUNDAY, endDate=MONDAY)).refused(400, "endDate", "before")
    (await coach.get(path, startDate="02.03.2026", endDate=SUNDAY)).refused(400, "startDate")
    (await coach.get(f"{path}?startDate={MONDAY}&startDate={MONDAY}&endDate={SUNDAY}")).refused(400, "once")


async def test_block_moved_to_another_day_becomes_its_last(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    first, second = await coach.schedule(ana, MONDAY, "first"), await coach.schedule(ana, TUESDAY, "second")
    path = f"/coach/customers/{ana['_id']}/wblocks/{first['_id']}"

    moved = (await coach.patch(path, {"date": TUESDAY, "version": 0})).ok()

    assert (moved["date"], moved["order"], moved["version"]) == (TUESDAY, 1, 1)
    assert [b["_id"] for b in await coach.calendar(ana)] == [second["_id"], first["_id"]]
    (await coach.patch(path, {"name": "x", "version": 0})).refused(409)
    assert (await coach.patch(path, {})).ok() == moved
    assert (await coach.patch(path, {"isRest": True})).ok()["isRest"] is True


async def test_the_day_that_a_block_is_on_already_is_no_change(coach: CoachClient) -> None:
    """It keeps its position, also in a program, and the date from which the client has moved it."""
    ana = await coach.create_customer()
    first, second = await coach.schedule(ana, MONDAY, "first"), await coach.schedule(ana, MONDAY, "second")
    path = f"/coach/customers/{ana['_id']}/wblocks/{first['_id']}"
    renamed = (await coach.patch(path, {"name": "renamed", "date": MONDAY})).ok()
    assert (renamed["name"], renamed["order"], renamed["version"]) == ("renamed", 0, 1)
    assert (await coach.patch(path, {"date": MONDAY})).ok() == renamed
    assert (await coach.patch(path, {"date": MONDAY, "version": 0})).refused(409)["code"] == "VERSION_CONFLICT"
    (await (await coach.as_client(ana)).put(f"/customer/wblocks/{second['_id']}/date", {"date": TUESDAY})).ok()
    path = f"/coach/customers/{ana['_id']}/wblocks/{second['_id']}"
    assert (await coach.patch(path, {"date": TUESDAY, "isRest": True})).ok()["plannedDate"] == MONDAY

    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{program['_id']}/wblocks"
    days = [(await coach.post(path, {"name": name, "day": 1})).ok(201) for name in "AB"]
    assert (await coach.patch(f"{path}/{days[0]['_id']}", {"name": "C", "day": 1})).ok()["order"] == 0


async def test_deleting_blocks_updates_the_last_workout_date(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await coach.schedule(ana, MONDAY)
    last = await coach.schedule(ana, SUNDAY)

    async def last_day() -> str | None:
        read = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
        assert read["version"] == 0, "a derived field does not count as a change"
        return read["customerRoleData"]["lastWorkoutDate"]

    assert await last_day() == SUNDAY
    path = f"/coach/customers/{ana['_id']}/wblocks/{last['_id']}"
    (await coach.delete(path)).ok(204)
    assert await last_day() == MONDAY
    (await coach.delete(path)).refused(404, "Workout block")


async def test_block_is_not_found_under_another_client(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    block = await coach.schedule(ana)
    wrong = f"/coach/customers/{bo['_id']}/wblocks/{block['_id']}"

    (await coach.get(wrong)).refused(404, "Workout block")
    (await coach.patch(wrong, {"name": "x"})).refused(404)
    (await coach.delete(wrong)).refused(404)
    (await coach.post(f"{wrong}/witems", {"type": "TASK", "taskFields": {"title": "x"}})).refused(404)
    (await coach.patch(f"{wrong}/witems/{UNKNOWN}", {"supersetId": "x"})).refused(404)
    (await coach.delete(f"{wrong}/witems/{UNKNOWN}")).refused(404, "Workout block")
    assert [b["name"] for b in await coach.calendar(ana)] == ["Legs"]


async def test_last_workout_date_is_right_after_concurrent_changes(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    days = [f"2026-01-{day:02}" for day in range(1, 13)]
    blocks = [await coach.schedule(ana, day) for day in days]
    path = f"/coach/customers/{ana['_id']}/wblocks"

    await asyncio.gather(*(coach.delete(f"{path}/{block['_id']}") for block in blocks[2:]))
    read = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert read["customerRoleData"]["lastWorkoutDate"] == days[1]

    await asyncio.gather(
        *(coach.delete(f"{path}/{block['_id']}") for block in blocks[:2]), coach.schedule(ana, days[0])
    )
    read = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert read["customerRoleData"]["lastWorkoutDate"] == days[0]


async def test_blocks_created_concurrently_have_distinct_orders(coach: CoachClient) -> None:
    ana = await coach.create_customer()

    blocks_created = await asyncio.gather(*(coach.schedule(ana, MONDAY, str(n)) for n in range(12)))

    assert sorted(block["order"] for block in blocks_created) == list(range(12))
    assert [(b["_id"], b["order"]) for b in await coach.calendar(ana)] == [
        (b["_id"], b["order"]) for b in sorted(blocks_created, key=lambda block: block["order"])
    ]
