"""Days that have workouts, onto which others are copied or assigned."""

from __future__ import annotations

import pytest

from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.schedules import NEXT_MONDAY, WEEK, batch, operate
from tests.support.training import Json, task
from tests.training.test_client_programs import program_with


async def with_legs_on_next_monday(coach: CoachClient, name: str = "Ana") -> tuple[Json, Json]:
    """A client with workouts on Monday and Tuesday, and the workout on the Monday after."""
    ana = await coach.create_customer(name)
    days = {"A": MONDAY, "B": TUESDAY, "Legs": NEXT_MONDAY}
    blocks = [{"name": each, "date": day, "items": [task()]} for each, day in days.items()]
    return ana, (await batch(coach, ana, *blocks))["created"][2]


@pytest.mark.parametrize("on_conflict", ["add", "skip"])
async def test_copies_name_what_is_on_their_days(coach: CoachClient, on_conflict: str) -> None:
    ana, legs = await with_legs_on_next_monday(coach)
    await batch(coach, ana, {"name": "Elsewhere", "date": "2026-03-14", "items": [task()]})
    body = {**WEEK, "targetDate": NEXT_MONDAY, "onConflict": on_conflict}
    there = [{"date": NEXT_MONDAY, "wblockId": legs["_id"], "name": "Legs"}]

    assert (await operate(coach, ana, "copy", **body, dryRun=True))["conflicts"] == there
    assert (await operate(coach, ana, "copy", **body))["conflicts"] == there

    names = [block["name"] for block in await coach.calendar(ana, NEXT_MONDAY, "2026-03-13")]
    assert names == (["Legs", "A", "B"] if on_conflict == "add" else ["Legs", "B"])


async def test_replaced_days_name_every_block_of_the_range(coach: CoachClient) -> None:
    ana, _ = await with_legs_on_next_monday(coach)
    await batch(coach, ana, {"name": "Elsewhere", "date": "2026-03-14", "items": [task()]})
    body = {**WEEK, "targetDate": NEXT_MONDAY, "onConflict": "replace"}
    shown = await operate(coach, ana, "copy", **body, dryRun=True)
    assert [(each["date"], each["name"]) for each in shown["conflicts"]] == [
        (NEXT_MONDAY, "Legs"),
        ("2026-03-14", "Elsewhere"),
    ]
    assert len(shown["removed"]) == 2


async def test_copies_of_program_days_name_what_is_there(coach: CoachClient) -> None:
    program = await program_with(coach, 1, 2)
    path = f"/coach/programs/{program['_id']}"
    block = (await coach.post(f"{path}/wblocks", {"name": "Legs", "day": 9, "items": [task()]})).ok(201)
    body = {"startDay": 1, "endDay": 7, "targetDay": 8, "dryRun": True}
    shown = (await coach.post(f"{path}/copy-days", body)).ok(200)
    assert shown["conflicts"] == [{"day": 9, "wblockId": block["_id"], "name": "Legs"}]


async def test_bulk_assignment_leaves_days_as_they_are_on_request(coach: CoachClient) -> None:
    ana, legs = await with_legs_on_next_monday(coach)
    bea = await coach.create_customer("Bea")
    program = await program_with(coach, 1, 2)
    ids = [ana["_id"], bea["_id"]]
    body = {"ids": ids, "programId": program["_id"], "startDate": NEXT_MONDAY, "onConflict": "skip"}
    there = [{"customerId": ana["_id"], "date": NEXT_MONDAY, "wblockId": legs["_id"], "name": "Legs"}]

    shown = (await coach.post("/coach/customers/bulk/assign-program", {**body, "dryRun": True})).ok()
    assert (shown["ok"], shown["conflicts"]) == (2, there)
    assert await coach.calendar(bea, NEXT_MONDAY, "2026-03-31") == []

    done = (await coach.post("/coach/customers/bulk/assign-program", body)).ok()
    assert done == {"requested": 2, "ok": 2, "failed": []}
    names = [[block["name"] for block in await coach.calendar(each, NEXT_MONDAY, "2026-03-31")] for each in (ana, bea)]
    assert names == [["Legs", "Day 2"], ["Day 1", "Day 2"]]

    replacing = {**body, "ids": [ana["_id"]], "onConflict": "replace"}
    (await coach.post("/coach/customers/bulk/assign-program", replacing)).ok()
    assert [block["name"] for block in await coach.calendar(ana, NEXT_MONDAY, "2026-03-31")] == ["Day 1", "Day 2"]


@pytest.mark.parametrize(
    ("on_conflict", "names"), [("add", ["Legs", "Easy"]), ("replace", ["Easy"]), (None, ["Legs", "Easy"])]
)
async def test_template_is_applied_to_a_day_as_requested(
    coach: CoachClient, on_conflict: str | None, names: list[str]
) -> None:
    ana, _ = await with_legs_on_next_monday(coach)
    template = (await coach.post("/coach/workout-templates", {"name": "Easy", "items": [task()]})).ok(201)
    path = f"/coach/workout-templates/{template['_id']}/apply"
    body = {"customerId": ana["_id"], "date": NEXT_MONDAY}

    refused = (await coach.post(path, {**body, "onConflict": "skip"})).refused(409, "(Legs)")
    assert refused["code"] == "DAY_HAS_WORKOUTS"
    applied = (await coach.post(path, {**body, **({"onConflict": on_conflict} if on_conflict else {})})).ok(201)

    calendar = await coach.calendar(ana, NEXT_MONDAY, "2026-03-31")
    assert [block["name"] for block in calendar] == names
    assert calendar[-1] == applied
    free = (await coach.post(path, {**body, "date": "2026-03-31", "onConflict": "skip"})).ok(201)
    assert free["date"] == "2026-03-31"
