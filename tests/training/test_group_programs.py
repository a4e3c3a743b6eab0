"""Groups with a program: clients who join get it, whichever way, and lose what is upcoming when they leave."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import time_machine
from aiohttp import FormData

from coaching_service.core.jobs import worker
from coaching_service.integrations.company_import import service as company_import
from coaching_service.training.group_programs import start_of
from tests.support.client import UNKNOWN, CoachClient
from tests.support.schedules import LAST_DAY
from tests.support.service_process import until
from tests.support.training import Json, client_path, employee_key, log
from tests.training.test_client_programs import days_from_today, program_with, programs_of
from tests.training.test_program_sync import calendar

PATH = "/coach/customers/groups/Morning%20%2F%20gym/program"
GROUP = "Morning / gym"


async def set_program(coach: CoachClient, program: Json, **rule: Any) -> int:
    """Give the group a program; returns how many clients got it."""
    reply = await coach.put(PATH, {"programId": program["_id"], "startOn": "joinDay", **rule})
    return int(reply.ok()["enrolled"])


async def by_patch(coach: CoachClient) -> str:
    ana = await coach.create_customer()
    return str((await coach.patch(client_path(ana), {"groups": [GROUP]})).ok()["_id"])


async def by_creation(coach: CoachClient) -> str:
    return str((await coach.create_customer(groups=[GROUP]))["_id"])


async def by_upsert(coach: CoachClient) -> str:
    await coach.put("/coach/customers/by-external-id/a-1", {"name": "Ana"})
    reply = await coach.put("/coach/customers/by-external-id/a-1", {"name": "Ana", "groups": [GROUP]})
    return str(reply.ok()["_id"])


async def by_batch(coach: CoachClient) -> str:
    entry = {"name": "Ana", "groups": [GROUP]}
    reply = await coach.post("/coach/customers/batch", {"customers": [entry]})
    return str(reply.ok()["results"][0]["_id"])


async def by_bulk(coach: CoachClient) -> str:
    ana = await coach.create_customer()
    (await coach.post("/coach/customers/bulk/groups-add", {"ids": [ana["_id"]], "groups": [GROUP]})).ok()
    return str(ana["_id"])


async def by_import(coach: CoachClient) -> str:
    form = FormData()
    rows = f'first name,last name,email,groups\nAna,Flores,ana@example.com,"{GROUP}"\n'
    form.add_field("file", io.BytesIO(rows.encode()), filename="clients.csv")
    form.add_field("format", "customers")
    job = (await coach.send("POST", "/coach/import", data=form)).ok(202)

    async def is_done() -> bool:
        await worker.run_due(coach.ctx.services, {company_import.IMPORT: company_import.run_step})
        return bool((await coach.get(f"/coach/jobs/{job['_id']}")).ok()["status"] == "done")

    await until(is_done, "the import is done")
    return str((await coach.customers())["docs"][0]["_id"])


WAYS: list[Callable[[CoachClient], Awaitable[str]]] = [by_patch, by_creation, by_upsert, by_batch, by_bulk, by_import]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_client_who_joins_gets_the_program(coach: CoachClient, way: Any) -> None:
    program = await program_with(coach, 1, 3)
    assert await set_program(coach, program) == 0

    ana = {"_id": await way(coach)}

    assert [block["date"] for block in await calendar(coach, ana)] == [days_from_today(0), days_from_today(2)]
    [listed] = await programs_of(coach, ana)
    assert (listed["programId"], listed["status"]) == (program["_id"], "current")
    (await coach.patch(client_path(ana), {"groups": []})).ok()
    (await coach.patch(client_path(ana), {"groups": [GROUP, "Other"]})).ok()
    assert len(await programs_of(coach, ana)) == 1, "it runs already"


async def test_the_change_of_the_group_and_the_program_are_one_undo(coach: CoachClient) -> None:
    ana, program = await coach.create_customer(), await program_with(coach, 1, 2)
    await set_program(coach, program)
    change = (await coach.patch(client_path(ana), {"groups": [GROUP]})).headers["X-Change-Id"]
    await coach.wait_until_numbered(change)
    (await coach.post(f"/coach/changes/{change}/undo")).ok()
    assert (await calendar(coach, ana), await programs_of(coach, ana)) == ([], [])
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["groups"] == []


async def test_what_is_upcoming_goes_when_a_client_leaves_and_the_rule_says_so(coach: CoachClient) -> None:
    program = await program_with(coach, 1, 2, 3)
    await set_program(coach, program, leave="removeUpcoming")
    ana, bo = [await coach.create_customer(name, groups=[GROUP]) for name in ("Ana", "Bo")]
    first = (await calendar(coach, ana))[0]
    (await log(coach, first, first["items"][0], isCompleted=True)).ok()
    (await coach.post("/coach/customers/bulk/groups-remove", {"ids": [ana["_id"]], "groups": [GROUP]})).ok()
    assert [block["name"] for block in await calendar(coach, ana)] == ["Day 1"]
    assert [each["status"] for each in await programs_of(coach, ana)] == ["ended"]
    assert await set_program(coach, program, leave="keep") == 0
    (await coach.patch(client_path(bo), {"groups": []})).ok()
    assert len(await calendar(coach, bo)) == 3


async def test_a_renamed_group_keeps_its_clients_and_its_program(
    coach: CoachClient, other_company: CoachClient
) -> None:
    program = await program_with(coach, 1, 2, 3)
    await set_program(coach, program, leave="removeUpcoming")
    ana = await coach.create_customer("Ana", groups=["First", GROUP, "Last"])
    bo = await coach.create_customer("Bo", groups=[GROUP, "Evening"])
    archived = await coach.create_customer("Cy", groups=[GROUP])
    (await coach.put("/coach/customers/archive", {"id": archived["_id"]})).ok()
    await other_company.create_customer("Other", groups=[GROUP])
    planned, path = await calendar(coach, ana), PATH.removesuffix("/program")

    (await coach.patch(path, {"name": "Evening"})).refused(409)
    reply = await coach.patch(path, {"name": "$Noon"})
    assert reply.ok() == {"name": "$Noon", "count": 3}
    groups = [(await coach.get(client_path(each))).ok()["customerRoleData"]["groups"] for each in (ana, bo, archived)]
    assert groups == [["First", "$Noon", "Last"], ["$Noon", "Evening"], ["$Noon"]]
    assert await coach.names(groups="$Noon") == ["Ana", "Bo"]
    assert (await coach.get("/coach/customers/groups/%24Noon/program")).ok()["programId"] == program["_id"]
    (await coach.get(PATH)).refused(404)
    assert (await calendar(coach, ana), len(await programs_of(coach, ana))) == (planned, 1), "nothing begins or ends"
    (await coach.patch(client_path(ana), {"groups": ["First"]})).ok()
    assert await calendar(coach, ana) == [], "the group has the program under its new name"

    merged = (await coach.patch("/coach/customers/groups/%24Noon", {"name": "Evening", "merge": True})).ok()
    assert merged == {"name": "Evening", "count": 2}
    assert (await coach.get(client_path(bo))).ok()["customerRoleData"]["groups"] == ["Evening"]
    sizes = (await coach.get("/coach/customers/groups")).ok()
    assert {each["name"]: each["count"] for each in sizes} == {"First": 1, "Evening": 2}
    (await coach.patch(path, {"name": "X"})).refused(404)
    (await coach.patch("/coach/customers/groups/Evening", {"name": " "})).refused(400)
    colleague = coach.with_key(await employee_key(coach, "customers.view", "customers.edit"))
    (await colleague.patch("/coach/customers/groups/Evening", {"name": "X"})).refused(403)
    assert (await other_company.names(groups=GROUP)) == ["Other"]


@pytest.mark.parametrize("is_member_already", [True, False])
async def test_a_program_goes_on_through_another_group(coach: CoachClient, is_member_already: bool) -> None:
    """A client who leaves one of two groups with the same program, or moves between them, goes on with it."""
    program = await program_with(coach, 1, 2, 3)
    await set_program(coach, program, leave="removeUpcoming")
    rule = {"programId": program["_id"], "startOn": "nextMonday", "leave": "removeUpcoming"}
    (await coach.put("/coach/customers/groups/Evening/program", rule)).ok()
    ana = await coach.create_customer(groups=[GROUP])
    planned = await calendar(coach, ana)
    if is_member_already:
        (await coach.patch(client_path(ana), {"groups": [GROUP, "Evening"]})).ok()
    change = (await coach.patch(client_path(ana), {"groups": ["Evening"]})).headers["X-Change-Id"]
    assert (await calendar(coach, ana), len(await programs_of(coach, ana))) == (planned, 1)
    await coach.wait_until_numbered(change)
    (await coach.post(f"/coach/changes/{change}/undo")).ok()
    ids, remove = {"ids": [ana["_id"]]}, "/coach/customers/bulk/groups-remove"
    if is_member_already:
        (await coach.post(remove, {**ids, "groups": [GROUP]})).ok()
        assert len(await calendar(coach, ana)) == 3
    (await coach.post(remove, {**ids, "groups": [GROUP, "Evening"]})).ok()
    assert await calendar(coach, ana) == []


@pytest.mark.parametrize("removed", ["rule", "program"])
async def test_a_group_that_has_another_program_since_stays_with_it(coach: CoachClient, removed: str) -> None:
    first, second = await program_with(coach, 1), await program_with(coach, 2)
    await set_program(coach, first)
    path = PATH if removed == "rule" else f"/coach/programs/{first['_id']}"
    deleted = await coach.delete(path)
    assert deleted.status == 204
    await set_program(coach, second)
    change = deleted.headers["X-Change-Id"]
    await coach.wait_until_numbered(change)
    refused = (await coach.post(f"/coach/changes/{change}/undo")).refused(409, "Another group program")
    assert refused["code"] == "VERSION_CONFLICT"
    assert (await coach.get(PATH)).ok()["programId"] == second["_id"]
    (await coach.delete(PATH)).ok(204)
    (await coach.post(f"/coach/changes/{change}/undo")).ok()
    assert (await coach.get(PATH)).ok()["programId"] == first["_id"]


async def test_when_it_begins(coach: CoachClient) -> None:
    """On a date; what is before the day of joining is left out."""
    program = await program_with(coach, 1, 4)
    for start, dates in {
        days_from_today(5): [days_from_today(5), days_from_today(8)],
        days_from_today(-2): [days_from_today(1)],
        days_from_today(-9): [],
    }.items():
        await set_program(coach, program, startOn=start)
        client = await coach.create_customer(groups=[GROUP])
        assert [block["date"] for block in await calendar(coach, client)] == dates


def test_next_monday_is_after_today_on_each_weekday() -> None:
    mondays = {str(date(2026, 11, 23 + number)): "2026-11-30" for number in range(7)} | {"2026-11-30": "2026-12-07"}
    assert {day: start_of("nextMonday", date.fromisoformat(day)) for day in mondays} == mondays
    for start, begins in (("joinDay", "2026-11-23"), ("2026-12-24", "2026-12-24")):
        assert start_of(start, date(2026, 11, 23)) == begins


async def test_client_joins_on_the_day_where_the_client_is(coach: CoachClient) -> None:
    program = await program_with(coach, 1)
    await set_program(coach, program)
    noon = datetime(2026, 11, 29, 12, tzinfo=UTC)  # Monday at UTC+14
    for hours, days in ((0, ("2026-11-30", "2026-11-29")), (-3, ("2026-11-29", "2026-11-29"))):
        with time_machine.travel(noon + timedelta(hours=hours), tick=True):
            for zone, day in zip(("Pacific/Kiritimati", "UTC"), days, strict=True):
                client = await coach.create_customer(groups=[GROUP], timezone=zone)
                assert [block["date"] for block in await calendar(coach, client)] == [day]


async def test_archived_client_who_is_added_to_a_group_gets_no_program(coach: CoachClient) -> None:
    await set_program(coach, await program_with(coach, 1))
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    groups = {"ids": [ana["_id"], bo["_id"]], "groups": [GROUP]}
    assert (await coach.post("/coach/customers/bulk/groups-add", groups)).ok()["ok"] == 2
    assert [len(await calendar(coach, each)) for each in (ana, bo)] == [0, 1]


async def test_clients_who_are_in_the_group_already(coach: CoachClient) -> None:
    program, other = await program_with(coach, 1), await program_with(coach, 1)
    ana, bo, cy = [await coach.create_customer(name, groups=[GROUP]) for name in ("Ana", "Bo", "Cy")]
    (await coach.put("/coach/customers/archive", {"id": cy["_id"]})).ok()
    assert await set_program(coach, program) == 0
    assert await set_program(coach, program, existing=True) == 2
    assert await set_program(coach, program, existing=True) == 0
    assert [len(await calendar(coach, each)) for each in (ana, bo, cy)] == [1, 1, 0]
    rule = (await coach.get(PATH)).ok()
    assert rule == {
        "groupName": GROUP,
        "programId": program["_id"],
        "programName": program["name"],
        "startOn": "joinDay",
        "leave": "keep",
    }
    await set_program(coach, other)
    (await coach.delete(f"/coach/programs/{other['_id']}")).ok(204)
    (await coach.get(PATH)).refused(404)
    await set_program(coach, program)
    (await coach.put(f"/coach/programs/{program['_id']}/archive")).ok()
    assert await calendar(coach, await coach.create_customer("Di", groups=[GROUP])) == []
    (await coach.delete(PATH)).ok(204)
    (await coach.delete(PATH)).refused(404)


async def test_who_may_set_it(coach: CoachClient) -> None:
    program = await program_with(coach, 1)
    body = {"programId": program["_id"], "startOn": "joinDay"}
    for permission in ("customers.edit", "programs.view"):
        (await coach.with_key(await employee_key(coach, permission, scope="all")).put(PATH, body)).refused(403)
    both = coach.with_key(await employee_key(coach, "customers.edit", "programs.view"))
    (await both.put(PATH, body)).ok()
    for permission in ("customers.view", "programs.view"):
        (await coach.with_key(await employee_key(coach, permission, scope="all")).get(PATH)).refused(403)
    reader = coach.with_key(await employee_key(coach, "customers.view", "programs.view"))
    assert (await reader.get(PATH)).ok()["programName"] == program["name"]
    (await coach.put(PATH, {**body, "programId": UNKNOWN})).refused(404, "Program")
    for change in ({"startOn": "Monday"}, {"startOn": "2026-02-30"}, {"leave": "stay"}, {"startOn": None}):
        (await coach.put(PATH, {**body, **change})).refused(400)


async def test_an_employee_sets_no_program_for_clients_of_others(coach: CoachClient) -> None:
    """Contract 21, with the scope `assigned`: a group with a client of another coach, archived or not, is not theirs."""
    employee = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", "programs.view"))
    body = {"programId": (await program_with(coach, 1))["_id"], "startOn": "joinDay", "existing": True}
    own = await coach.create_customer("Ana", groups=[GROUP], assignedTo=(await employee.get("/me")).ok()["_id"])
    assert (await employee.put(PATH, body)).ok()["enrolled"] == 1
    other = await coach.create_customer("Bo", groups=[GROUP])
    (await coach.put("/coach/customers/archive", {"id": other["_id"]})).ok()
    (await employee.put(PATH, body)).refused(403, "other coaches")
    (await employee.delete(PATH)).refused(403, "other coaches")
    (await coach.patch(client_path(other), {"groups": []})).ok()
    (await employee.delete(PATH)).ok(204)
    assert len(await programs_of(coach, own)) == 1


async def test_a_program_that_leaves_the_calendar_keeps_nobody_out_of_the_group(coach: CoachClient) -> None:
    """It is refused, and not given once it has got too long."""
    rule = {"startOn": LAST_DAY}
    (await coach.put(PATH, {**rule, "programId": (await program_with(coach, 1, 2))["_id"]})).refused(400, "startOn")
    program = await program_with(coach, 1)
    await set_program(coach, program, **rule)
    ana = await coach.create_customer("Ana", groups=[GROUP])
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "B", "day": 2})).ok(201)
    bo = await coach.create_customer("Bo", groups=[GROUP])
    assert [len(await programs_of(coach, client)) for client in (ana, bo)] == [1, 0]
