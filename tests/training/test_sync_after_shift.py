"""Clients whose remaining schedule has been shifted stay on their program: dates of a sync are shifted too."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import NewCompany
from tests.integrations.test_load_unit import convert
from tests.support.client import CoachClient
from tests.support.training import Json, client_path, exercise_of, log, path_of
from tests.support.transfer import export, import_file, make_zip
from tests.training.test_client_programs import assign, days_from_today, program_with
from tests.training.test_program_sync import ALL, add_day, blocks_of, calendar, counts, state_of, states, sync, undo
from tests.training.test_resuming import absent, resume


async def dates_of(coach: CoachClient, customer: Json) -> dict[str, int]:
    """The workouts of a client by name: how many days from today."""
    numbers = {days_from_today(number): number for number in range(-100, 100)}
    return {block["name"]: numbers[block["date"]] for block in await calendar(coach, customer)}


async def shift(coach: CoachClient, customer: Json, first: int, days: int) -> Any:
    return (
        await coach.post(client_path(customer, "wblocks/shift"), {"from": days_from_today(first), "days": days})
    ).ok()


async def bulk_shift(coach: CoachClient, customer: Json, first: int, days: int) -> Any:
    body = {"ids": [customer["_id"]], "from": days_from_today(first), "days": days}
    return (await coach.post("/coach/customers/bulk/schedule-shift", body)).ok()


async def test_a_program_goes_on_after_an_absence(coach: CoachClient) -> None:
    """Nothing is customised that only moved; new days have dates between those of their neighbours, and undo restores."""
    ana = await coach.create_customer()
    program = await program_with(coach, 1, 3, 5, 8, 10)
    await assign(coach, program, ana, days_from_today(-4))
    await absent(coach, ana, days_from_today(-2), None)
    result = await resume(coach, ana, days_from_today(3), "shift")
    assert await state_of(coach, program) == [("Day 1", "past"), *[(f"Day {day}", "same") for day in (3, 5, 8, 10)]]
    [assignment] = await states(coach, program)
    assert [block["date"] for block in assignment["blocks"]] == [days_from_today(day) for day in (-4, 3, 5, 8, 10)]
    assert counts(await sync(coach, program, include=ALL)) == (0, 0, 0, 5)

    planned = {block["name"]: block for block in await blocks_of(coach, program)}
    (await coach.patch(path_of(planned["Day 3"]), {"name": "New 3"})).ok()
    (await coach.patch(path_of(planned["Day 8"]), {"day": 12})).ok()
    await add_day(coach, program, 9)
    done = await sync(coach, program)
    assert counts(done) == (2, 1, 0, 3)
    assert await dates_of(coach, ana) == {"Day 1": -4, "New 3": 3, "Day 5": 5, "Day 9": 9, "Day 10": 10, "Day 8": 12}
    assert {state for _, state in await state_of(coach, program)} == {"past", "same"}
    (await coach.post(f"/coach/changes/{result['changeId']}/undo")).refused(409)

    await undo(coach, done)
    (await coach.post(f"/coach/changes/{result['changeId']}/undo")).ok()
    assert await dates_of(coach, ana) == {"Day 1": -4, "Day 3": -2, "Day 5": 0, "Day 8": 3, "Day 10": 5}
    assert counts(await sync(coach, program)) == (1, 1, 0, 4)
    assert (await dates_of(coach, ana))["Day 9"] == 4


@pytest.mark.parametrize("move", [shift, bulk_shift])
async def test_several_shifts_of_what_remains(coach: CoachClient, move: Any) -> None:
    """Each applies to the dates that the ones before gave; what was moved by hand stays customised."""
    ana = await coach.create_customer()
    program = await program_with(coach, 1, 3, 5, 8, 10)
    await assign(coach, program, ana, days_from_today(1))
    await move(coach, ana, 5, 7)  # 1, 3, 12, 15, 17
    await move(coach, ana, 15, 2)  # 1, 3, 12, 17, 19
    await move(coach, ana, 12, -3)  # 1, 3, 9, 14, 16
    assert [state for _, state in await state_of(coach, program)] == ["same"] * 5
    [_, _, fifth, *_] = await calendar(coach, ana)
    (await coach.patch(path_of(fifth), {"date": days_from_today(10)})).ok()
    await move(coach, ana, 1, 1)
    await add_day(coach, program, 9)
    await add_day(coach, program, 2)
    assert ("Day 5", "customised") in await state_of(coach, program)
    assert counts(await sync(coach, program)) == (0, 2, 0, 5)
    assert await dates_of(coach, ana) == {
        "Day 1": 2,
        "Day 2": 3,
        "Day 3": 4,
        "Day 5": 11,
        "Day 8": 15,
        "Day 9": 16,
        "Day 10": 17,
    }
    assert counts(await sync(coach, program, include=ALL)) == (1, 0, 0, 6)
    assert (await dates_of(coach, ana))["Day 5"] == 10
    (await coach.patch(path_of(fifth), {"date": days_from_today(11)})).ok()
    assert ("Day 5", "customised") in await state_of(coach, program)
    (await coach.patch(path_of(fifth), {"date": days_from_today(10)})).ok()
    assert {state for _, state in await state_of(coach, program)} == {"same"}


async def test_a_program_on_weekdays_after_a_shift(coach: CoachClient) -> None:
    """What a new day pushes into the days that were skipped goes behind them."""
    ana, program = await coach.create_customer(), await program_with(coach, 2, 3, 4, 5)
    await assign(coach, program, ana, days_from_today(1), weekdays=[1, 2, 3, 4, 5, 6, 7])
    await shift(coach, ana, 3, 7)
    assert await dates_of(coach, ana) == {"Day 2": 1, "Day 3": 2, "Day 4": 10, "Day 5": 11}
    await add_day(coach, program, 1)
    assert counts(await sync(coach, program)) == (4, 1, 0, 0)
    assert await dates_of(coach, ana) == {"Day 1": 1, "Day 2": 2, "Day 3": 10, "Day 4": 11, "Day 5": 12}
    assert {state for _, state in await state_of(coach, program)} == {"same"}


async def test_what_a_client_has_moved_stays_with_a_shift(coach: CoachClient) -> None:
    """Moves of the client are no customisation, before a shift, after it, or across its first day."""
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2, 5, 6)
    client = await coach.as_client(ana)
    await assign(coach, program, ana, days_from_today(1))
    own = await calendar(coach, ana)
    for block, day in zip(own, (6, 4, 2, 7), strict=True):
        (await client.put(f"/customer/wblocks/{block['_id']}/date", {"date": days_from_today(day)})).ok()
    await shift(coach, ana, 5, 7)
    assert await dates_of(coach, ana) == {"Day 1": 13, "Day 2": 4, "Day 5": 2, "Day 6": 14}
    assert {state for _, state in await state_of(coach, program)} == {"same"}
    (await client.put(f"/customer/wblocks/{own[3]['_id']}/date", {"date": days_from_today(16)})).ok()
    for block in await blocks_of(coach, program):
        (await coach.patch(path_of(block), {"name": f"New {block['day']}"})).ok()
    assert counts(await sync(coach, program)) == (4, 0, 0, 0)
    assert await dates_of(coach, ana) == {"New 1": 13, "New 2": 4, "New 5": 2, "New 6": 16}


async def test_shifts_outlast_a_conversion_of_loads_and_an_export(coach: CoachClient, new_company: NewCompany) -> None:
    """A change of the program then reaches what has only moved, converted, and a new day has its shifted date."""
    ana, squat, program = await coach.create_customer(), await coach.create_exercise(), await program_with(coach)
    for day in (1, 2):
        await add_day(coach, program, day, items=[exercise_of(squat)])
    client = await coach.as_client(ana)
    await assign(coach, program, ana, days_from_today(1))
    await shift(coach, ana, 2, 7)
    [moved, _] = await calendar(coach, ana)
    (await client.put(f"/customer/wblocks/{moved['_id']}/date", {"date": days_from_today(4)})).ok()
    await convert(coach, "lb")
    assert [state for _, state in await state_of(coach, program)] == ["same", "same"]

    other = await new_company()
    assert (await import_file(other, make_zip(await export(coach))))["errors"] == []
    for company in (coach, other):
        [linked] = (await company.get("/coach/programs", archived="false", pageSize=5, pageNum=1)).ok()["docs"]
        await add_day(company, linked, 3)
        states_there = {"Day 1": "same", "Day 2": "same", "Day 3": "new"}
        assert dict(await state_of(company, linked)) == states_there
        assert counts(await sync(company, linked)) == (0, 1, 0, 2)
        [customer] = (await company.get("/coach/customers", archived="false", pageSize=5, pageNum=1)).ok()["docs"]
        assert await dates_of(company, customer) == {"Day 1": 4, "Day 2": 9, "Day 3": 10}
    for block in (await blocks_of(coach, program))[:2]:
        (await coach.patch(path_of(block), {"name": f"New {block['day']}"})).ok()
    assert counts(await sync(coach, program)) == (2, 0, 0, 1)


async def test_what_is_removed_on_the_return_counts_as_removed_by_hand(coach: CoachClient) -> None:
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2, 3, 4)
    await assign(coach, program, ana, days_from_today(-1))
    await absent(coach, ana, days_from_today(-1), None)
    await resume(coach, ana, days_from_today(2), "drop")
    assert await state_of(coach, program) == [
        *[("Day 1", "past"), ("Day 2", "customised"), ("Day 3", "customised"), ("Day 4", "same")]
    ]
    assert counts(await sync(coach, program)) == (0, 0, 0, 4)
    assert await dates_of(coach, ana) == {"Day 4": 2}


@pytest.mark.parametrize("done", [False, True])
async def test_a_deletion_is_not_undone_with_another_workout_in_its_place(coach: CoachClient, done: bool) -> None:
    """Nothing of a program is on a calendar twice; once what a sync added is gone, the undo is possible."""
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2)
    await assign(coach, program, ana, days_from_today(1))
    first, second = await calendar(coach, ana)
    if done:  # several workouts in one change
        body = {"startDate": first["date"], "endDate": second["date"]}
        deleted = (await coach.post(client_path(ana, "schedule/clear"), body)).ok()["changeId"]
    else:
        deleted = (await coach.delete(path_of(first))).headers["X-Change-Id"]
    result = await sync(coach, program, include=["customised"])
    before = await calendar(coach, ana)
    refused = (await coach.post(f"/coach/changes/{deleted}/undo")).refused(409)
    assert refused["code"] == "VERSION_CONFLICT"
    ids = [block["_id"] for block in before if block["_id"] not in (first["_id"], second["_id"])]
    assert sorted(each["_id"] for each in refused["documents"]) == sorted(ids)
    assert await calendar(coach, ana) == before
    await undo(coach, result)
    (await coach.post(f"/coach/changes/{deleted}/undo")).ok()
    assert [block["_id"] for block in await calendar(coach, ana)] == [first["_id"], second["_id"]]


@pytest.mark.parametrize("is_bulk", [False, True])
async def test_a_shift_by_no_days_writes_nothing(coach: CoachClient, is_bulk: bool) -> None:
    ana, program = await coach.create_customer(), await program_with(coach, 1)
    await assign(coach, program, ana, days_from_today(1))
    [block] = await calendar(coach, ana)
    client = await coach.as_client(ana)
    (await client.put(f"/customer/wblocks/{block['_id']}/date", {"date": days_from_today(3)})).ok()
    before = await calendar(coach, ana)
    body = {"from": days_from_today(0), "days": 0}
    if is_bulk:
        reply = await coach.post("/coach/customers/bulk/schedule-shift", {"ids": [ana["_id"]], **body})
        assert [(each["changed"], each["skipped"]) for each in reply.ok()["results"]] == [(0, [])]
    else:
        reply = await coach.post(client_path(ana, "wblocks/shift"), body)
        assert reply.ok() == {"shifted": 0}
    assert "X-Change-Id" not in reply.headers
    assert await calendar(coach, ana) == before


async def test_what_is_done_or_past_has_its_own_name(coach: CoachClient) -> None:
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2, 3)
    await assign(coach, program, ana, days_from_today(-1))
    [_, own, _] = await calendar(coach, ana)
    (await log(coach, own, own["items"][0], isCompleted=True)).ok()
    for number, block in enumerate(await blocks_of(coach, program)):
        (await coach.patch(path_of(block), {"name": f"New {block['day']}", "day": 9 - number})).ok()
    assert sorted(await state_of(coach, program)) == [("Day 1", "past"), ("Day 2", "done"), ("New 3", "changed")]
