"""Programs from calendars, onto weekdays, with a preview; the programs of a client, and ending them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.training.programs import ProgramPlan
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.models import NewBlock
from coaching_service.training.workouts.items.models import NEW_ITEM
from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.schedules import EVER, batch, before_last, plan_of, without_identity
from tests.support.training import Json, client_path, employee_key, exercise_of, feed, log, one_of_each, path_of, task

WEDNESDAY = "2026-03-04"


async def program_with(coach: CoachClient, *days: int, rest: tuple[int, ...] = (), name: str = "Base") -> Json:
    """A program with a task on each of the days, and rest days."""
    program: Json = (await coach.post("/coach/programs", {"name": name})).ok(201)
    blocks = [
        cast(
            "NewBlock",
            {
                **dict.fromkeys(("date", "startTime", "externalId")),
                "name": f"Day {day}",
                "day": day,
                "isRest": day in rest,
                "metadata": {},
                "items": [] if day in rest else [NEW_ITEM.load(task(f"Day {day}"))],
            },
        )
        for day in sorted((*days, *rest))
    ]
    if blocks:
        await batches.create_blocks(coach.ctx, ProgramPlan(ObjectId(program["_id"])), blocks)
    return program


async def assign(coach: CoachClient, program: Json, customer: Json, start: str = MONDAY, **options: Any) -> Json:
    body = {"customerId": customer["_id"], "startDate": start, **options}
    reply = await coach.post(f"/coach/programs/{program['_id']}/assign", body)
    result: Json = reply.ok(200 if options.get("dryRun") else 201)
    return result


async def programs_of(coach: CoachClient, customer: Json) -> list[Json]:
    result: list[Json] = (await coach.get(client_path(customer, "programs"))).ok()
    return result


def days_from_today(days: int) -> str:
    """A date in the time zone of the company, which is UTC."""
    return str(datetime.now(UTC).date() + timedelta(days=days))


# --- from a calendar -------------------------------------------------------------------------------------------------


async def test_a_program_is_made_from_a_month_of_a_client(coach: CoachClient) -> None:
    """4-week program from a client's month."""
    ana, bo, squat = await coach.create_customer(), await coach.create_customer("Bo"), await coach.create_exercise()
    every_type = await one_of_each(coach)
    week = [("2026-03-02", False, every_type), ("2026-03-04", True, []), ("2026-03-04", False, [exercise_of(squat)])]
    await batch(coach, ana, *({"name": d, "date": d, "isRest": rest, "items": items} for d, rest, items in week))
    copy = {"startDate": MONDAY, "endDate": SUNDAY, "targetDate": "2026-03-09", "repeat": 3}
    (await coach.post(client_path(ana, "schedule/copy"), copy)).ok(201)
    blocks = await coach.calendar(ana, *EVER)
    for item in blocks[0]["items"]:
        (await log(coach, blocks[0], item, comment="Done")).ok()
    body = {"customerId": ana["_id"], "startDate": MONDAY, "endDate": "2026-03-29", "name": "Four weeks"}

    program = (await coach.post("/coach/programs/from-calendar", body)).ok(201)

    assert (program["name"], program["tags"], program["numberOfDaysWithWorkouts"]) == ("Four weeks", [], 8)
    path = f"/coach/programs/{program['_id']}"
    assert (await coach.get(path)).ok() == program
    planned = (await coach.get(f"{path}/wblock", startDay=1, endDay=99)).ok()
    assert [(b["day"], b["order"], b["isRest"]) for b in planned] == [
        (day + 7 * number, order, rest)
        for number in range(4)
        for day, order, rest in ((1, 0, False), (3, 0, True), (3, 1, False))
    ]
    await assign(coach, program, bo)
    copies = await coach.calendar(bo, *EVER)
    assert [block["date"] for block in copies] == [block["date"] for block in blocks]
    assert [plan_of(b)["items"] for b in copies[1:]] == [plan_of(b)["items"] for b in blocks[1:]]
    assert not any(item["isCompleted"] for block in copies for item in block["items"])


async def test_a_program_from_a_calendar_needs_both_permissions(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    body = {"customerId": ana["_id"], "startDate": MONDAY, "endDate": SUNDAY, "name": "Empty"}
    path = "/coach/programs/from-calendar"
    for permission in ("customers.view", "programs.create"):
        key = await employee_key(coach, permission, scope="all")
        (await coach.with_key(key).post(path, body)).refused(403)
    outside = await employee_key(coach, "customers.view", "programs.create")
    (await coach.with_key(outside).post(path, body)).refused(403, "another coach")
    (await coach.post(path, {**body, "customerId": UNKNOWN})).refused(404, "Customer")
    (await coach.post(path, {**body, "endDate": "2027-03-03"})).refused(400, "endDate")
    (await coach.post(path, {**body, "name": " "})).refused(400, "name")
    assert (await coach.get("/coach/programs", archived="false", pageSize=5, pageNum=1)).ok()["totalDocs"] == 0
    assert (await coach.post(path, body)).ok(201)["numberOfDaysWithWorkouts"] == 0


# --- weekdays, conflicts and preview ---------------------------------------------------------------------------------


async def test_a_program_goes_onto_weekdays_with_a_preview(coach: CoachClient) -> None:
    """Assign from Monday, no Wednesdays, with preview."""
    ana = await coach.create_customer()
    program = await program_with(coach, 1, 2, 3, 5, 8, rest=(4, 6))
    busy = await coach.schedule(ana, TUESDAY, "Yoga")
    await coach.schedule(ana, WEDNESDAY, "Swim")
    before = await coach.calendar(ana, *EVER)

    shown = await assign(coach, program, ana, weekdays=[1, 2, 4, 5], dryRun=True)

    dates = ["2026-03-02", "2026-03-03", "2026-03-05", "2026-03-06", "2026-03-09"]
    assert shown == {
        "blocks": 5,
        "assignmentId": None,
        "dates": dates,
        "conflicts": [{"date": TUESDAY, "wblockId": busy["_id"], "name": "Yoga"}],
        "dryRun": True,
        "changeId": None,
    }
    assert (await coach.calendar(ana, *EVER), await programs_of(coach, ana), await feed(coach, ana)) == (before, [], [])

    assigned = await assign(coach, program, ana, weekdays=[5, 4, 2, 1])

    assert without_identity(assigned) == without_identity(shown)
    blocks = [block for block in await coach.calendar(ana, *EVER) if block["programId"]]
    assert [(b["date"], b["day"]) for b in blocks] == list(zip(dates, [1, 2, 3, 5, 8], strict=True))
    assert {block["assignmentId"] for block in blocks} == {assigned["assignmentId"]}
    assert [block["assignmentId"] for block in before] == [None, None]


async def test_blocks_of_one_program_day_stay_together(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    program = await program_with(coach, 1, 3)
    for name, rest in (("Evening", False), ("Nap", True)):
        block = {"name": name, "day": 1, "isRest": rest}
        (await coach.post(f"/coach/programs/{program['_id']}/wblocks", block)).ok(201)
    assigned = await assign(coach, program, ana, "2026-03-03", weekdays=[7])
    assert assigned["dates"] == ["2026-03-08", "2026-03-08", "2026-03-15"]
    names = [block["name"] for block in await coach.calendar(ana, *EVER)]
    assert names == ["Day 1", "Evening", "Day 3"]


@pytest.mark.parametrize(
    ("on_conflict", "dates", "conflicts", "names"),
    [
        ("add", [MONDAY, TUESDAY, WEDNESDAY], ["Yoga", "Done"], ["Day 1", "Yoga", "Day 2", "Done", "Day 3", "After"]),
        ("skip", [MONDAY], ["Yoga", "Done"], ["Day 1", "Yoga", "Done", "After"]),
        ("replace", [MONDAY, TUESDAY, WEDNESDAY], ["Yoga", "Done"], ["Day 1", "Day 2", "Done", "Day 3", "After"]),
    ],
)
async def test_days_with_blocks_are_treated_as_asked(
    coach: CoachClient, on_conflict: str, dates: list[str], conflicts: list[str], names: list[str]
) -> None:
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2, 3)
    there = [("Yoga", TUESDAY), ("Done", WEDNESDAY), ("After", "2026-03-05")]
    created = (await batch(coach, ana, *({"name": n, "date": d, "items": [task()]} for n, d in there)))["created"]
    (await log(coach, created[1], created[1]["items"][0])).ok()
    shown = await assign(coach, program, ana, onConflict=on_conflict, dryRun=True)

    assigned = await assign(coach, program, ana, onConflict=on_conflict)

    assert without_identity(assigned) == without_identity(shown)
    assert (assigned["blocks"], assigned["dates"]) == (len(dates), dates)
    assert [conflict["name"] for conflict in assigned["conflicts"]] == conflicts
    assert [block["name"] for block in await coach.calendar(ana, *EVER)] == names


async def test_replacing_also_clears_the_days_between(coach: CoachClient) -> None:
    ana, program = await coach.create_customer(), await program_with(coach, 2, 4)
    for day in ("2026-03-01", MONDAY, WEDNESDAY, "2026-03-06"):
        await coach.schedule(ana, day, day)
    assigned = await assign(coach, program, ana, onConflict="replace")
    assert [conflict["date"] for conflict in assigned["conflicts"]] == [MONDAY, WEDNESDAY]
    names = [block["name"] for block in await coach.calendar(ana, *EVER)]
    assert names == ["2026-03-01", "Day 2", "Day 4", "2026-03-06"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"weekdays": []}, "weekdays"),
        ({"weekdays": [0]}, "weekdays.0"),
        ({"weekdays": [8]}, "weekdays.0"),
        ({"weekdays": ["1"]}, "weekdays.0"),
        ({"onConflict": "x"}, "onConflict"),
        ({"dryRun": "yes"}, "dryRun"),
        ({"weekdays": [1], "startDate": before_last(2)}, "startDate"),
    ],
)
async def test_invalid_requests_are_refused(coach: CoachClient, change: Json, field: str) -> None:
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2)
    body = {"customerId": ana["_id"], "startDate": MONDAY, **change}
    (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).refused(400, field)
    assert (await coach.calendar(ana, *EVER), await programs_of(coach, ana)) == ([], [])


# --- the programs of a client ----------------------------------------------------------------------------------------


async def test_programs_of_a_client_are_listed_with_their_state(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer(), await coach.create_customer("Bo")
    assert await programs_of(coach, ana) == []
    past, now, future = [await program_with(coach, 1, 2, rest=(3,), name=name) for name in ("Past", "Now", "Future")]
    started = [(past, days_from_today(-30)), (now, days_from_today(-1)), (future, days_from_today(5))]
    ids = [(await assign(coach, program, ana, start))["assignmentId"] for program, start in started]
    await assign(coach, now, bo)
    block = next(b for b in await coach.calendar(ana, *EVER) if b["assignmentId"] == ids[1])
    (await log(coach, block, block["items"][0])).ok()

    listed = await programs_of(coach, ana)

    assert [(p["_id"], p["programId"], p["name"], p["status"]) for p in listed] == [
        (ids[2], future["_id"], "Future", "upcoming"),
        (ids[1], now["_id"], "Now", "current"),
        (ids[0], past["_id"], "Past", "ended"),
    ]
    assert [(p["startDate"], p["endDate"]) for p in listed] == [
        (days_from_today(5), days_from_today(7)),
        (days_from_today(-1), days_from_today(1)),
        (days_from_today(-30), days_from_today(-28)),
    ]
    assert [(p["blocks"], p["completedBlocks"]) for p in listed] == [(3, 0), (3, 1), (3, 0)]


async def test_the_dates_follow_the_blocks(coach: CoachClient) -> None:
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2, 8)
    await assign(coach, program, ana)
    (await coach.post(client_path(ana, "wblocks/shift"), {"from": TUESDAY, "days": 7})).ok()
    first, second, _ = await coach.calendar(ana, *EVER)
    (await coach.delete(path_of(second))).ok(204)
    (await coach.patch(path_of(first), {"date": "2026-03-01"})).ok()
    [listed] = await programs_of(coach, ana)
    assert (listed["startDate"], listed["endDate"], listed["blocks"]) == ("2026-03-01", "2026-03-16", 2)
    (await coach.delete(f"/coach/programs/{program['_id']}")).ok(204)
    assert (await programs_of(coach, ana))[0]["name"] == "Base"


async def test_a_program_is_ended(coach: CoachClient) -> None:
    """Contract 10: POST /programs/{assignmentId}/end `{removeUpcoming}` 200 `{removed: n}`."""
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2, 3, 4, 5)
    assignment = await assign(coach, program, ana, days_from_today(-1))
    other = await assign(coach, program, ana, days_from_today(-1))
    own = [b for b in await coach.calendar(ana, *EVER) if b["assignmentId"] == assignment["assignmentId"]]
    (await log(coach, own[2], own[2]["items"][0], isCompleted=False, comment="Started")).ok()
    path = client_path(ana, "programs", assignment["assignmentId"], "end")

    assert (await coach.post(path, {"removeUpcoming": True})).ok() == {"removed": 3}

    left = [b["date"] for b in await coach.calendar(ana, *EVER) if b["assignmentId"] == assignment["assignmentId"]]
    assert left == [days_from_today(-1), days_from_today(1)]
    by_id = {each["_id"]: each for each in await programs_of(coach, ana)}
    ended = by_id[assignment["assignmentId"]]
    assert (ended["status"], ended["endDate"], ended["blocks"]) == ("ended", days_from_today(0), 2)
    assert (by_id[other["assignmentId"]]["status"], by_id[other["assignmentId"]]["blocks"]) == ("current", 5)
    assert (await coach.post(path, {"removeUpcoming": True})).ok() == {"removed": 0}
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == days_from_today(3)


async def test_a_program_is_ended_and_its_blocks_stay(coach: CoachClient) -> None:
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2)
    assignment = await assign(coach, program, ana, days_from_today(3))
    path = client_path(ana, "programs", assignment["assignmentId"], "end")
    assert (await coach.post(path, {})).ok() == {"removed": 0}
    assert len(await coach.calendar(ana, *EVER)) == 2
    [listed] = await programs_of(coach, ana)
    assert (listed["status"], listed["startDate"], listed["endDate"]) == (
        "ended",
        days_from_today(3),
        days_from_today(3),
    )
    (await coach.post(path, {"removeUpcoming": "yes"})).refused(400, "removeUpcoming")


async def test_an_assignment_of_another_client_is_not_found(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer(), await coach.create_customer("Bo")
    program = await program_with(coach, 1)
    assignment = await assign(coach, program, ana)
    error = (await coach.post(client_path(bo, "programs", assignment["assignmentId"], "end"), {})).refused(404)
    assert (await coach.post(client_path(bo, "programs", UNKNOWN, "end"), {})).refused(404) == error
    reader = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    (await reader.post(client_path(ana, "programs", assignment["assignmentId"], "end"), {})).refused(403)
    assert (await programs_of(reader, ana))[0]["status"] == "ended", "its only day is past"


async def test_assigning_to_many_clients_makes_assignments(coach: CoachClient) -> None:
    clients = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    program = await program_with(coach, 1, 2)
    body = {"ids": [each["_id"] for each in clients], "programId": program["_id"], "startDate": MONDAY}
    result = (await coach.post("/coach/customers/bulk/assign-program", body)).ok()
    assert result["ok"] == 2
    for client in clients:
        [listed] = await programs_of(coach, client)
        assert (listed["blocks"], listed["startDate"]) == (2, MONDAY)
        assert {block["assignmentId"] for block in await coach.calendar(client)} == {listed["_id"]}


async def test_assigning_to_many_clients_takes_weekdays(coach: CoachClient) -> None:
    clients = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    program = await program_with(coach, 1, 2)
    body = {"ids": [each["_id"] for each in clients], "programId": program["_id"], "startDate": MONDAY}
    (await coach.post("/coach/customers/bulk/assign-program", {**body, "weekdays": [8]})).refused(400, "weekdays.0")
    assert (await coach.post("/coach/customers/bulk/assign-program", {**body, "weekdays": [2, 4]})).ok()["ok"] == 2
    for client in clients:
        assert [block["date"] for block in await coach.calendar(client)] == ["2026-03-03", "2026-03-05"]
