"""Working on a calendar: copies, shifts, supersets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient, Reply
from tests.support.schedules import FIRST_DAY, LAST_DAY, before_last
from tests.support.training import (
    Json,
    add,
    block_with,
    circuit_of,
    client_path,
    exercise_of,
    feed_types,
    form_of,
    log,
    metric_set,
    metrics_of,
    move,
    one_of_each,
    path_of,
    read,
    task,
    titles,
)

_STAMPS = ("_id", "createdAt", "updatedAt", "version")


def plan_of(block: Json) -> list[Json]:
    """The items of a block without what differs between copies."""
    return [{name: value for name, value in item.items() if name not in _STAMPS} for item in block["items"]]


async def shift(coach: CoachClient, customer: Json, start: str, days: int) -> int:
    path = client_path(customer, "wblocks/shift")
    shifted: int = (await coach.post(path, {"from": start, "days": days})).ok()["shifted"]
    return shifted


async def dates(coach: CoachClient, customer: Json, year: int = 2026) -> list[tuple[str, str]]:
    blocks = await coach.calendar(customer, f"{year}-01-01", f"{year}-12-31")
    return [(block["date"], block["name"]) for block in blocks]


class TestCopying:
    async def test_copy_has_the_same_plan_with_nothing_logged(self, coach: CoachClient) -> None:
        """Contract 5: POST .../wblocks/{wid}/copy `{date}`; contract 1: copy, apply, assign 201."""
        ana = await coach.create_customer()
        block = await block_with(coach, ana, *await one_of_each(coach), name="Full")
        untouched = plan_of(block)
        for item in block["items"]:
            (await log(coach, block, item, comment="done")).ok()
        (await coach.put(f"{path_of(block)}/log", {"durationMinutes": 50, "sessionRpe": 7, "comment": "ok"})).ok()

        copied = (await coach.post(f"{path_of(block)}/copy", {"date": SUNDAY})).ok(201)

        assert (copied["name"], copied["date"], copied["order"], copied["version"]) == ("Full", SUNDAY, 0, 0)
        assert plan_of(copied) == untouched
        assert (copied["durationMinutes"], copied["sessionRpe"], copied["comment"]) == (None, None, None)
        assert copied["isCompleted"] is False
        before, now = {item["_id"] for item in block["items"]}, {item["_id"] for item in copied["items"]}
        assert len(before | now) == 12, "every item is its own"
        assert await read(coach, copied) == copied
        assert (await read(coach, block))["isCompleted"] is True, "the original stays as it was"
        assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == SUNDAY

    async def test_copy_on_the_same_day_becomes_the_last(self, coach: CoachClient) -> None:
        ana = await coach.create_customer()
        first, _ = await block_with(coach, ana, task()), await coach.schedule(ana, MONDAY, "second")
        copied = (await coach.post(f"{path_of(first)}/copy", {"date": MONDAY})).ok(201)
        assert copied["order"] == 2
        (await log(coach, copied, copied["items"][0])).ok()
        assert [block["isCompleted"] for block in await coach.calendar(ana)] == [False, False, True]

    async def test_rest_days_and_program_blocks_are_copied(self, coach: CoachClient) -> None:
        ana = await coach.create_customer()
        rest = (await coach.post(client_path(ana, "wblocks"), {"name": "R", "date": MONDAY, "isRest": True})).ok(201)
        assert (await coach.post(f"{path_of(rest)}/copy", {"date": TUESDAY})).ok(201)["isRest"] is True
        program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
        path = f"/coach/programs/{program['_id']}"
        block = (await coach.post(f"{path}/wblocks", {"name": "A", "day": 1})).ok(201)
        await add(coach, block, task())
        copied = (await coach.post(f"{path_of(block)}/copy", {"day": 8})).ok(201)
        assert (copied["day"], copied["programId"], copied["date"]) == (8, program["_id"], None)
        assert (await coach.get(path)).ok()["numberOfDaysWithWorkouts"] == 2
        for wrong in ({}, {"day": 0}, {"day": 3_661}, {"date": MONDAY}):
            (await coach.post(f"{path_of(block)}/copy", wrong)).refused(400, "day")

    async def test_copy_requires_a_date_and_a_block(self, coach: CoachClient) -> None:
        ana = await coach.create_customer()
        block = await coach.schedule(ana)
        for wrong in ({}, {"date": None}, {"date": "2026-02-29"}, {"date": "tomorrow"}, {"day": 1}):
            (await coach.post(f"{path_of(block)}/copy", wrong)).refused(400, "date")
        (await coach.post(f"{path_of(block | {'_id': UNKNOWN})}/copy", {"date": MONDAY})).refused(404, "Workout block")
        assert len(await coach.calendar(ana)) == 1

    async def test_retried_copy_is_executed_once(self, coach: CoachClient) -> None:
        """Contract 1: the same key and body returns the first 2xx response again, executed once."""
        ana = await coach.create_customer()
        block = await block_with(coach, ana, task())
        key = {"Idempotency-Key": "copy-1"}
        first = await coach.post(f"{path_of(block)}/copy", {"date": TUESDAY}, headers=key)
        again = await coach.post(f"{path_of(block)}/copy", {"date": TUESDAY}, headers=key)
        assert first.ok(201) == again.ok(201)
        assert again.headers["Idempotent-Replayed"] == "true"
        (await coach.post(f"{path_of(block)}/copy", {"date": SUNDAY}, headers=key)).refused(409)
        assert len(await coach.calendar(ana)) == 2


class TestShifting:
    """Contract 5: POST .../wblocks/shift `{from, days}`: every block from that date on that has nothing done."""

    async def test_blocks_from_a_date_on_are_shifted(self, coach: CoachClient) -> None:
        ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
        for date, name in [("2026-03-01", "before"), (MONDAY, "A"), (MONDAY, "B"), (SUNDAY, "C")]:
            await coach.schedule(ana, date, name)
        await coach.schedule(bo, MONDAY, "Bo's")

        assert await shift(coach, ana, MONDAY, 7) == 3

        assert await dates(coach, ana) == [
            ("2026-03-01", "before"),
            ("2026-03-09", "A"),
            ("2026-03-09", "B"),
            ("2026-03-15", "C"),
        ]
        assert await dates(coach, bo) == [(MONDAY, "Bo's")]
        assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == "2026-03-15"
        assert await shift(coach, ana, "2026-03-10", -14) == 1
        assert await dates(coach, ana) == [
            *[("2026-03-01", name) for name in ("before", "C")],
            *[("2026-03-09", name) for name in "AB"],
        ]
        assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == "2026-03-09"
        assert await shift(coach, ana, "2027-01-01", 5) == 0

    @pytest.mark.parametrize(
        ("date", "days", "expected"),
        [
            ("2023-12-31", 1, "2024-01-01"),
            ("2024-01-01", -1, "2023-12-31"),
            ("2024-02-28", 1, "2024-02-29"),
            ("2024-02-29", 365, "2025-02-28"),
            ("2025-02-28", 1, "2025-03-01"),
            ("2025-03-01", -366, "2024-02-29"),
            ("2026-03-28", 1, "2026-03-29"),
            ("2026-10-25", 1, "2026-10-26"),
            ("2000-02-29", 3_660, "2010-03-08"),
            ("1950-01-02", -1, "1950-01-01"),
            (before_last(1), 1, LAST_DAY),
        ],
    )
    async def test_shift_crosses_months_and_years(
        self, coach: CoachClient, date: str, days: int, expected: str
    ) -> None:
        ana = await coach.create_customer()
        block = await coach.schedule(ana, date)
        assert await shift(coach, ana, date, days) == 1
        assert (await read(coach, block))["date"] == expected

    @pytest.mark.parametrize(("date", "days"), [(LAST_DAY, 1), (before_last(3_000), 3_660), (FIRST_DAY, -1)])
    async def test_shift_past_the_calendar_is_rejected(self, coach: CoachClient, date: str, days: int) -> None:
        ana = await coach.create_customer()
        inside, last = await coach.schedule(ana, "2026-03-02"), await coach.schedule(ana, date)
        reply = await coach.post(client_path(ana, "wblocks/shift"), {"from": FIRST_DAY, "days": days})
        assert reply.refused(400, date)["errors"][0]["code"] == "DATE_OUT_OF_RANGE"
        assert (await read(coach, inside), await read(coach, last)) == (inside, last), "not even the others move"

    async def test_logged_blocks_are_not_shifted(self, coach: CoachClient) -> None:
        ana, squat, body = await coach.create_customer(), await coach.create_exercise(), await metric_set(coach)
        items = [exercise_of(squat), circuit_of(squat), task(), form_of(), metrics_of(body)]
        sets = [{"exerciseId": squat["_id"], "reps": 3}]
        value = {"metricId": body["metrics"][0]["_id"], "value": 70}
        done: list[tuple[int, dict[str, Any]]] = [
            (2, {}),
            (0, {"isCompleted": False, "customerSets": sets}),
            (1, {"isCompleted": False, "customerSets": sets}),
            (2, {"isCompleted": False, "comment": "tried"}),
            (4, {"isCompleted": False, "values": [value]}),
        ]
        for at, body_of_log in done:
            block = await block_with(coach, ana, *items)
            (await log(coach, block, block["items"][at], **body_of_log)).ok()
        answered = await block_with(coach, ana, *items)
        answers = [{"questionId": answered["items"][3]["form"]["questions"][0]["_id"], "value": "Half"}]
        (await log(coach, answered, answered["items"][3], isCompleted=False, answers=answers)).ok()
        for noted in ({"durationMinutes": 0}, {"sessionRpe": 5}, {"comment": "Ill"}):
            (await coach.put(f"{path_of(await block_with(coach, ana, *items))}/log", noted)).ok()
        undone = await block_with(coach, ana, *items, name="undone")
        for item in undone["items"]:
            (await log(coach, undone, item, comment="x")).ok()
            (await log(coach, undone, item, isCompleted=False)).ok()
        await block_with(coach, ana, name="empty")

        assert await shift(coach, ana, MONDAY, 1) == 2

        assert [name for date, name in await dates(coach, ana) if date == TUESDAY] == ["undone", "empty"]
        assert len([date for date, _ in await dates(coach, ana) if date == MONDAY]) == 9

    async def test_shift_is_an_integer_within_ten_years(self, coach: CoachClient) -> None:
        ana = await coach.create_customer()
        path = client_path(ana, "wblocks/shift")
        for body, field in [
            ({"days": 1}, "from"),
            ({"from": MONDAY}, "days"),
            ({"from": "2026-02-30", "days": 1}, "from"),
            ({"from": MONDAY, "days": "1"}, "days"),
            ({"from": MONDAY, "days": 1.5}, "days"),
            ({"from": MONDAY, "days": 3_661}, "days"),
            ({"from": MONDAY, "days": -3_661}, "days"),
        ]:
            (await coach.post(path, body)).refused(400, field)

    async def test_concurrent_shift_and_log_are_consistent(self, coach: CoachClient) -> None:
        """Whichever comes first: what was done is never moved after it was done."""
        ana = await coach.create_customer()
        for _ in range(3):
            block = await block_with(coach, ana, task())
            logged, shifted = await asyncio.gather(log(coach, block, block["items"][0]), shift(coach, ana, MONDAY, 400))
            assert logged.status == 200
            assert (await read(coach, block))["date"] == ("2027-04-06" if shifted else MONDAY)
        assert (await feed_types(coach, ana)).count("workout_completed") == 3


async def changed(coach: CoachClient, block: Json) -> Json:
    """A block that is not as it was created."""
    result: Json = (await coach.patch(path_of(block), {"name": "Changed"})).ok()
    return result


async def test_outdated_change_is_rejected(coach: CoachClient) -> None:
    """Contract 1: a PATCH body may carry the `version` it was based on; if the document has moved on, 409."""
    ana = await coach.create_customer()
    block = await changed(coach, await block_with(coach, ana, task()))
    for change in ({}, {"name": "x"}, {"date": TUESDAY}, {"isRest": True}):
        (await coach.patch(path_of(block), {**change, "version": 0})).refused(409)
    assert (await coach.patch(path_of(block), {"version": block["version"]})).ok() == block
    assert (await coach.patch(path_of(block), {})).ok() == block


async def test_outdated_log_or_move_is_rejected(coach: CoachClient) -> None:
    """Contract 1: a PUT body may carry the `version` it was based on; if the document has moved on, 409."""
    ana = await coach.create_customer()
    new = await block_with(coach, ana, task(), task("Run")), await block_with(coach, ana, task("Row"))
    block, other = [await changed(coach, each) for each in new]
    [walk, run] = block["items"]
    older = {"version": block["version"] - 1}
    for refused in (
        await log(coach, block, walk, **older),
        await coach.put(f"{path_of(block)}/log", {"sessionRpe": 9, **older}),
        await move(coach, run, block, other, 0, version=other["version"] - 1),
        await move(coach, run, block, block, 0, **older),
    ):
        refused.refused(409)
    (await log(coach, block, walk, version="x")).refused(400, "version")
    assert (await read(coach, block), await read(coach, other)) == (block, other), "nothing is written"

    (await log(coach, block, walk, version=block["version"])).ok()
    (await coach.put(f"{path_of(block)}/log", {"sessionRpe": 9, "version": block["version"] + 1})).ok()
    (await move(coach, run, block, other, 0, version=other["version"])).ok()


async def test_superset_is_kept_by_copies_and_moves(coach: CoachClient) -> None:
    """Contract 5: EXERCISE: also `supersetId`."""
    ana, squat, press = (
        await coach.create_customer(),
        await coach.create_exercise("S"),
        await coach.create_exercise("P"),
    )
    block = await block_with(coach, ana, exercise_of(squat, supersetId="A"), exercise_of(press), task("z"))
    first, second, _ = block["items"]
    assert (first["supersetId"], second["supersetId"]) == ("A", None)

    (await coach.patch(f"{path_of(block)}/witems/{second['_id']}", {"supersetId": "A"})).ok()
    copied = (await coach.post(f"{path_of(block)}/copy", {"date": TUESDAY})).ok(201)
    assert [item.get("supersetId") for item in copied["items"]] == ["A", "A", None]
    other = await coach.schedule(ana)
    (await move(coach, first, block, other, 0)).ok()
    assert (await read(coach, other))["items"][0]["supersetId"] == "A"
    assert titles({"items": [(await read(coach, block))["items"][1]]}) == ["z"]
    (await coach.patch(f"{path_of(block)}/witems/{second['_id']}", {"supersetId": None})).ok()
    assert (await read(coach, block))["items"][0]["supersetId"] is None


@pytest.mark.parametrize("owner", ["client", "program"])
async def test_a_block_is_moved_to_a_position_of_its_day_or_another(coach: CoachClient, owner: str) -> None:
    days: list[Any]
    if owner == "client":
        base, field, days = client_path(await coach.create_customer()), "date", [MONDAY, TUESDAY]
    else:
        program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
        base, field, days = f"/coach/programs/{program['_id']}", "day", [1, 2]
    ids = {}
    for name, day in (("A", 0), ("B", 0), ("C", 0), ("D", 1), ("E", 1)):
        ids[name] = (await coach.post(f"{base}/wblocks", {"name": name, field: days[day]})).ok(201)["_id"]

    async def change(which: str, **body: Any) -> Reply:
        return await coach.send(
            "PATCH", f"{base}/wblocks/{ids[which]}", json=body, headers={"Prefer": "handling=strict"}
        )

    async def order() -> list[tuple[str, int]]:
        ends = ("startDate", "endDate") if field == "date" else ("startDay", "endDay")
        listed = (await coach.get(f"{base}/wblock", **dict(zip(ends, days, strict=True)))).ok()
        return [(block["name"], block["order"]) for block in listed]

    assert (await change("C", order=0)).ok()["order"] == 0
    assert await order() == [("C", 0), ("A", 1), ("B", 2), ("D", 0), ("E", 1)]
    changed = (await change("A", order=1, name="First", **{field: days[1]})).ok()
    assert (changed["name"], changed["order"], changed[field]) == ("First", 1, days[1])
    assert await order() == [("C", 0), ("B", 1), ("D", 0), ("First", 1), ("E", 2)]
    assert (await change("C", order=99)).ok()["order"] == 1, "the end"
    (await change("D", order=2, version=7)).refused(409)
    for wrong in (-1, None, "1", 1.5):
        (await change("D", order=wrong)).refused(400, "order")
    assert await order() == [("B", 0), ("C", 1), ("D", 0), ("First", 1), ("E", 2)]
