"""Clients who are on a program are brought up to date with it: what differs, what is left alone, and one undo."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from tests.support.client import UNKNOWN, CoachClient
from tests.support.schedules import EVER, plan_of
from tests.support.service_process import until
from tests.support.training import Json, client_path, employee_key, exercise_of, log, path_of, task
from tests.training.test_client_programs import assign, days_from_today, program_with, programs_of

GUIDE = Path(__file__).parents[2] / "docs" / "tasks" / "update-clients-of-a-program.md"
ALL = ["changed", "new", "removed", "customised"]


async def states(coach: CoachClient, program: Json) -> list[Json]:
    """Each assignment of a program compared with it."""
    result: list[Json] = (await coach.get(f"/coach/programs/{program['_id']}/sync")).ok()
    return result


async def state_of(coach: CoachClient, program: Json) -> list[tuple[str, str]]:
    """The workouts of the only assignment of a program, by date: name and state."""
    [assignment] = await states(coach, program)
    return [(block["name"], block["state"]) for block in assignment["blocks"]]


async def sync(coach: CoachClient, program: Json, **body: Any) -> Json:
    """Bring a program up to date, as its preview says."""
    path = f"/coach/programs/{program['_id']}/sync"
    compared = await states(coach, program)
    shown = (await coach.post(path, {**body, "dryRun": True})).ok()
    assert await states(coach, program) == compared
    done = (await coach.post(path, body)).ok()
    assert shown == {**done, "dryRun": True, "changeId": None}
    if not body.get("assignmentIds"):
        total = sum(len(each["blocks"]) for each in compared)
        assert sum(done[name] for name in ("changed", "created", "removed", "kept")) == total
    result: Json = done
    return result


def counts(result: Json) -> tuple[int, int, int, int]:
    return result["changed"], result["created"], result["removed"], result["kept"]


async def blocks_of(coach: CoachClient, program: Json) -> list[Json]:
    result: list[Json] = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=99)).ok()
    return result


async def add_day(coach: CoachClient, program: Json, day: int, name: str = "", **fields: Any) -> Json:
    block = {"name": name or f"Day {day}", "day": day, "items": [task(f"Day {day}")], **fields}
    result: Json = (await coach.post(f"/coach/programs/{program['_id']}/wblocks", block)).ok(201)
    return result


async def calendar(coach: CoachClient, customer: Json) -> list[Json]:
    return await coach.calendar(customer, *EVER)


async def until_numbered(coach: CoachClient, batch_id: str, clients: int) -> None:
    """Wait until the changes of all clients of a batch are in the list of changes."""

    async def is_numbered() -> bool:
        listed = (await coach.get("/coach/changes", limit=100)).ok()["docs"]
        return sum(each["batchId"] == batch_id for each in listed) == clients

    await until(is_numbered, "the batch is numbered")


async def undo(coach: CoachClient, result: Json, clients: int = 1) -> None:
    """Take a batch back."""
    await until_numbered(coach, result["changeId"], clients)
    (await coach.post(f"/coach/changes/{result['changeId']}/undo")).ok()


async def test_each_state_and_what_a_sync_does(coach: CoachClient) -> None:
    """Contract 21: what is done, past or customised is left alone, the rest follows the program; one undo."""
    ana = await coach.create_customer()
    program = await program_with(coach, 1, 3, 4, 5, 6, 7, 8, rest=(9,))
    await assign(coach, program, ana, days_from_today(-1))
    planned = {block["name"]: block for block in await blocks_of(coach, program)}
    own = {block["name"]: block for block in await calendar(coach, ana)}
    assert {name: block["programBlockId"] for name, block in own.items()} == {
        name: block["_id"] for name, block in planned.items()
    }
    assert {block["programBlockVersion"] for block in own.values()} == {0}
    assert Counter(state for _, state in await state_of(coach, program)) == {"past": 1, "same": 7}
    for number in (1, 3, 4, 5, 6):  # the program moves on
        (await coach.patch(path_of(planned[f"Day {number}"]), {"name": f"New {number}"})).ok()
    (await coach.delete(path_of(planned["Day 7"]))).ok(204)
    await add_day(coach, program, 10)
    (await log(coach, own["Day 3"], own["Day 3"]["items"][0], isCompleted=True)).ok()
    (await coach.patch(path_of(own["Day 4"]), {"date": days_from_today(40)})).ok()
    (await coach.delete(path_of(own["Day 5"]))).ok(204)
    (await coach.patch(path_of(own["Day 8"]), {"name": "By hand"})).ok()

    compared = dict(await state_of(coach, program))

    assert compared == {
        "Day 1": "past",
        "Day 3": "done",
        "New 4": "customised",
        "New 5": "customised",
        "New 6": "changed",
        "Day 7": "removed",
        "Day 8": "customised",
        "Day 9": "same",
        "Day 10": "new",
    }
    before = await calendar(coach, ana)
    result = await sync(coach, program)
    assert counts(result) == (1, 1, 1, 6)
    after = {block["name"]: block for block in await calendar(coach, ana)}
    assert set(after) == {"Day 1", "Day 3", "Day 4", "New 6", "By hand", "Day 9", "Day 10"}
    assert (after["New 6"]["_id"], after["New 6"]["programBlockVersion"]) == (own["Day 6"]["_id"], 1)
    assert after["Day 10"]["date"] == days_from_today(8)
    assert counts(await sync(coach, program))[:3] == (0, 0, 0)

    await undo(coach, result)

    assert [plan_of(block) for block in await calendar(coach, ana)] == [plan_of(block) for block in before]
    assert dict(await state_of(coach, program)) == compared
    assert counts(await sync(coach, program, include=ALL)) == (3, 2, 1, 3)
    final = {block["name"]: block["date"] for block in await calendar(coach, ana)}
    assert final == {
        "Day 1": days_from_today(-1),
        "Day 3": days_from_today(1),
        "New 4": days_from_today(2),
        "New 5": days_from_today(3),
        "New 6": days_from_today(4),
        "Day 8": days_from_today(6),
        "Day 9": days_from_today(7),
        "Day 10": days_from_today(8),
    }


async def test_last_day_of_an_assignment_follows_a_move_in_the_program(coach: CoachClient) -> None:
    ana, program = await coach.create_customer(), await program_with(coach, 1, 3)
    await assign(coach, program, ana, days_from_today(1))
    [_, last] = await blocks_of(coach, program)
    for program_day in (9, 5):  # later, and earlier again
        (await coach.patch(path_of(last), {"day": program_day})).ok()
        assert counts(await sync(coach, program)) == (1, 0, 0, 1)
        stored = await coach.ctx.db["programAssignments"].find_one({"customerId": ObjectId(ana["_id"])})
        assert stored is not None and stored["endDate"] == days_from_today(program_day)
        [listed] = await programs_of(coach, ana)
        assert listed["endDate"] == days_from_today(program_day)


async def test_what_is_customised_is_what_differs_from_the_copy(coach: CoachClient) -> None:
    """A change that is taken back, a log that is removed, and the same change in both are no customisation."""
    ana, squat, press = (
        await coach.create_customer(),
        await coach.create_exercise(),
        await coach.create_exercise("Press"),
    )
    program = await program_with(coach)
    for day in (1, 2, 3, 4):
        await add_day(coach, program, day, items=[exercise_of(squat), task("Walk")])
    await assign(coach, program, ana, days_from_today(0))
    planned, own = await blocks_of(coach, program), await calendar(coach, ana)
    item = f"{path_of(own[0])}/witems/{own[0]['items'][0]['_id']}"
    (await coach.patch(item, {"exerciseId": press["_id"]})).ok()
    assert [state for _, state in await state_of(coach, program)] == ["customised", "same", "same", "same"]
    (await coach.patch(item, {"exerciseId": squat["_id"]})).ok()
    (await log(coach, own[1], own[1]["items"][1], isCompleted=True)).ok()
    (await log(coach, own[1], own[1]["items"][1], isCompleted=False)).ok()
    for block in (planned[2], own[2]):
        (await coach.patch(path_of(block), {"name": "Both"})).ok()
    (await coach.patch(path_of(planned[3]), {"isRest": True})).ok()
    assert [state for _, state in await state_of(coach, program)] == ["same", "same", "same", "changed"]

    for block in (planned[0], planned[1]):
        swap = f"{path_of(block)}/witems/{block['items'][0]['_id']}"
        (await coach.patch(swap, {"exerciseId": press["_id"]})).ok()
    assert counts(await sync(coach, program)) == (3, 0, 0, 1)
    changed = await calendar(coach, ana)
    assert [block["items"][0]["exerciseId"] == press["_id"] for block in changed] == [True, True, False, False]
    assert changed[3]["isRest"]
    # Items stay the same ones: a device that logs without a connection finds them.
    assert [[item["_id"] for item in block["items"]] for block in changed] == [
        [item["_id"] for item in block["items"]] for block in own
    ]


async def test_program_that_follows_the_move_of_a_client_is_up_to_date(coach: CoachClient) -> None:
    """The program's new date is then the coach's date, from which the client may move the workout again."""
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2)
    client = await coach.as_client(ana)
    await assign(coach, program, ana, days_from_today(1))
    [_, moved] = await calendar(coach, ana)
    (await client.put(f"/customer/wblocks/{moved['_id']}/date", {"date": days_from_today(4)})).ok()
    (await coach.patch(path_of((await blocks_of(coach, program))[1]), {"day": 4})).ok()
    assert await state_of(coach, program) == [("Day 1", "same"), ("Day 2", "changed")]

    assert counts(await sync(coach, program)) == (1, 0, 0, 1)

    block = (await calendar(coach, ana))[1]
    assert (block["date"], block["plannedDate"]) == (days_from_today(4), None)
    assert await state_of(coach, program) == [("Day 1", "same"), ("Day 2", "same")]
    (await client.put(f"/customer/wblocks/{moved['_id']}/date", {"date": days_from_today(11)})).ok()


async def test_a_program_on_weekdays_keeps_them(coach: CoachClient) -> None:
    """Dates are those that the start date and the weekdays give to the program as it is now."""
    ana = await coach.create_customer()
    program = await program_with(coach, 1, 2, 4)
    assigned = await assign(coach, program, ana, days_from_today(1), weekdays=[2, 5])
    await add_day(coach, program, 3)
    await add_day(coach, program, 5, isRest=True, items=[])

    assert await state_of(coach, program) == [
        ("Day 1", "same"),
        ("Day 2", "same"),
        ("Day 3", "new"),
        ("Day 4", "changed"),
    ]
    assert counts(await sync(coach, program)) == (1, 1, 0, 2)

    blocks = await calendar(coach, ana)
    other = await assign(coach, program, await coach.create_customer("Bo"), days_from_today(1), weekdays=[2, 5])
    assert [block["date"] for block in blocks] == other["dates"]
    assert [block["name"] for block in blocks] == ["Day 1", "Day 2", "Day 3", "Day 4"]
    [listed] = await programs_of(coach, ana)
    assert (listed["endDate"], listed["_id"]) == (other["dates"][-1], assigned["assignmentId"])


async def test_nothing_moves_into_the_past_or_before_from(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    program = await program_with(coach, 5, 6, 9)
    await assign(coach, program, ana, days_from_today(-3))
    planned = await blocks_of(coach, program)
    (await coach.patch(path_of(planned[0]), {"day": 1})).ok()
    for block in planned[1:]:
        (await coach.patch(path_of(block), {"name": "Later"})).ok()
    assert [state for _, state in await state_of(coach, program)] == ["past", "changed", "changed"]
    assert counts(await sync(coach, program, **{"from": days_from_today(3)})) == (1, 0, 0, 2)
    assert [block["name"] for block in await calendar(coach, ana)] == ["Day 5", "Day 6", "Later"]
    assert counts(await sync(coach, program, include=ALL)) == (1, 0, 0, 2)
    assert next(block["date"] for block in await calendar(coach, ana)) == days_from_today(1)


async def test_only_assignments_that_run_and_that_the_coach_sees(coach: CoachClient) -> None:
    ana, bo, cy, di, ed = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy", "Di", "Ed")]
    program, other = await program_with(coach, 1, 2), await program_with(coach, 1)
    today = days_from_today(0)
    ids = {each["name"]: (await assign(coach, program, each, today))["assignmentId"] for each in (bo, ana, cy)}
    await assign(coach, program, di, days_from_today(-40))
    await assign(coach, program, ed, days_from_today(30))
    (await coach.post(client_path(cy, "programs", ids["Cy"], "end"))).ok()
    assert [each["customer"]["name"] for each in await states(coach, program)] == ["Ana", "Bo", "Ed"]
    (await coach.put("/coach/customers/archive", {"id": ed["_id"]})).ok()
    await add_day(coach, program, 3)
    path = f"/coach/programs/{program['_id']}/sync"

    assert counts(await sync(coach, program, assignmentIds=[ids["Ana"], ids["Cy"]])) == (0, 1, 0, 2)

    assert [len(await calendar(coach, each)) for each in (ana, bo, cy)] == [3, 2, 2]
    (await coach.post(path, {"assignmentIds": [UNKNOWN]})).refused(404, "assignment")
    foreign = await assign(coach, other, ana, today)
    (await coach.post(path, {"assignmentIds": [foreign["assignmentId"]]})).refused(404)
    refused: list[Json] = [{"include": ["done"]}, {"include": []}, {"from": "soon"}, {"assignmentIds": []}]
    for body in (*refused, {"assignmentIds": None}):
        (await coach.post(path, body)).refused(400)
    assert (await coach.get(f"/coach/programs/{UNKNOWN}/sync")).refused(404)
    assert (await coach.post(f"/coach/programs/{UNKNOWN}/sync")).refused(404)
    employee = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", "programs.view"))
    assert await states(employee, program) == []
    assert counts(await sync(employee, program)) == (0, 0, 0, 0)
    (await employee.post(path, {"assignmentIds": [ids["Ana"]]})).refused(403, "another coach")
    viewer = coach.with_key(await employee_key(coach, "customers.view", "programs.view", scope="all"))
    assert len(await states(viewer, program)) == 2
    (await viewer.post(path)).refused(403)


@pytest.mark.parametrize("permission", ["customers.view", "customers.edit", "programs.view"])
async def test_a_sync_needs_the_client_and_the_program(coach: CoachClient, permission: str) -> None:
    program = await program_with(coach, 1)
    await assign(coach, program, await coach.create_customer(), days_from_today(0))
    await add_day(coach, program, 3, "Secret session")
    path = f"/coach/programs/{program['_id']}/sync"
    employee = coach.with_key(await employee_key(coach, permission, scope="all"))

    (await employee.get(path)).refused(403)
    (await employee.post(path)).refused(403)
    (await employee.post(path, {"dryRun": True})).refused(403)


async def test_a_key_runs_a_sync_once(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer(), await coach.create_customer("Bo")
    program = await program_with(coach, 1)
    for client in (ana, bo):
        await assign(coach, program, client, days_from_today(1))
    await add_day(coach, program, 2)
    path, options = f"/coach/programs/{program['_id']}/sync", {"headers": {"Idempotency-Key": "again"}}
    first = await coach.post(path, {}, **options)
    again = await coach.post(path, {}, **options)
    assert (first.ok(), again.ok()["created"]) == (again.ok(), 2)
    assert first.headers["X-Change-Id"] == again.headers["X-Change-Id"] == first.json["changeId"]
    assert [len(await calendar(coach, each)) for each in (ana, bo)] == [2, 2]
    await undo(coach, first.json, 2)
    assert [len(await calendar(coach, each)) for each in (ana, bo)] == [1, 1]


@pytest.mark.parametrize("weekdays", [None, [1, 3, 6]])
async def test_assignments_from_before_are_matched(coach: CoachClient, weekdays: list[int] | None) -> None:
    """Blocks without a reference: never changed ones follow the program, others count as customised if they differ."""
    ana = await coach.create_customer()
    program = await program_with(coach, 1, 2, 3, 4, 5, 6)
    options = {"weekdays": weekdays} if weekdays else {}
    await assign(coach, program, ana, days_from_today(1), **options)
    own = await calendar(coach, ana)
    (await coach.patch(path_of(own[0]), {"name": "By hand"})).ok()
    (await coach.delete(path_of(own[1]))).ok(204)
    await make_older(coach)
    assert [state for _, state in await state_of(coach, program)] == ["customised", "customised", *["same"] * 4]
    planned = await blocks_of(coach, program)
    (await coach.patch(path_of(planned[2]), {"name": "New 3"})).ok()
    (await coach.delete(path_of(planned[5]))).ok(204)
    await add_day(coach, program, 7)

    assert dict(await state_of(coach, program)) == {
        "Day 1": "customised",
        "Day 2": "customised",
        "New 3": "changed",
        "Day 4": "same",
        "Day 5": "same",
        "Day 6": "customised",
        "Day 7": "new",
    }
    result = await sync(coach, program)
    assert counts(result) == (1, 1, 0, 5)
    blocks = await calendar(coach, ana)
    assert [block["name"] for block in blocks][:4] == ["By hand", "New 3", "Day 4", "Day 5"]
    linked = {block["name"]: block["programBlockId"] for block in blocks}
    assert (linked["New 3"], linked["Day 4"]) == (planned[2]["_id"], None)
    (await coach.delete(path_of(next(block for block in blocks if block["name"] == "Day 7")))).ok(204)
    assert ("Day 7", "customised") in await state_of(coach, program)


async def test_the_program_of_the_guide_updates_clients(coach: CoachClient, tmp_path: Path) -> None:
    program, ana = await program_with(coach, 1), await coach.create_customer()
    await assign(coach, program, ana, days_from_today(1))
    await add_day(coach, program, 2)
    script = tmp_path / "update.py"
    script.write_text(GUIDE.read_text("utf-8").partition("```python\n")[2].partition("```")[0])
    settings = {"BASE": coach.address("/").rstrip("/"), "KEY": str(coach.key)}
    for option, count in (((), 1), (("--update",), 2)):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(script), program["_id"], *option),
            env={**os.environ, **settings},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed = (await process.communicate())[0].decode()
        assert process.returncode == 0, printed
        assert "Day 2, new" in printed, printed
        assert "0 changed, 1 added, 0 removed" in printed
        assert len(await calendar(coach, ana)) == count
    assert "To undo: POST /coach/changes/" in printed


async def make_older(coach: CoachClient) -> None:
    """Store the assignments and blocks of a company as a release before linked programs did."""
    database, where = coach.ctx.services.db, {"companyId": coach.ctx.company_id}
    fields = {"programBlockId": 1, "programBlockVersion": 1, "programCopy": 1}
    await database["workoutBlocks"].update_many(where, {"$unset": fields})
    added = {"weekdays": 1, "programBlockIds": 1, "groupName": 1}
    await database["programAssignments"].update_many(where, {"$unset": added})
