"""Whose history an import is: who may import it, which client it lands on, and what becomes of those who leave."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.people import api_keys, team
from coaching_service.people.api_keys import NewRestrictions
from coaching_service.settings import Settings
from tests.integrations import test_own_import
from tests.support.client import CoachClient
from tests.support.fail_points import no_job_begins
from tests.support.imported_history import SETS, events, rows_of_sets, workouts
from tests.support.jobs import ended_job
from tests.support.training import employee_key
from tests.support.transfer import import_file, pick, run, send, undo


def problems(job: dict[str, Any]) -> list[tuple[int | None, str]]:
    """The lines and codes of the problems of a job."""
    return pick(job["errors"], "line", "code")


async def ways(coach: CoachClient) -> set[tuple[str, str]]:
    """The operations of imports and their interfaces, as the changes of the company name them."""
    await events(coach)  # once all changes have their numbers
    made = (await coach.get("/coach/changes", limit=100)).ok()["docs"]
    return {(each["operation"], each["via"]) for each in made if "mport" in each["operation"]}


async def revoke_keys(coach: CoachClient, coach_id: ObjectId) -> None:
    """Delete the API keys of a coach."""
    principal = await team.get_principal(coach.ctx.services, coach_id)
    assert principal is not None
    ctx = coach.ctx.acting_as(principal)
    for key in await api_keys.list_api_keys(ctx):
        await api_keys.delete_api_key(ctx, key["_id"])


async def test_who_may_only_view_clients_may_not_import_for_them(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    viewer = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    for dry_run in (True, False):
        reply = await send(viewer, SETS, dry_run=dry_run, name="sets.csv", customerId=ana["_id"])
        assert "customers.edit" in str(reply.refused(403))


@pytest.mark.parametrize("lost", ["the company", "the permission", "the key"])
async def test_the_import_of_a_coach_who_may_no_longer_fails(coach: CoachClient, settings: Settings, lost: str) -> None:
    ana = await coach.create_customer("Ana")
    helper = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    [eli] = [each for each in await team.list_coaches(coach.ctx) if each["role"] != "OWNER"]
    async with no_job_begins(coach, settings):
        job = (await send(helper, SETS, name="sets.csv", customerId=ana["_id"])).ok(202)
        if lost == "the company":
            await team.delete_employee(coach.ctx, eli["_id"])
        elif lost == "the permission":
            await team.update_employee(coach.ctx, eli["_id"], {"permissions": ["customers.view"]})
        else:
            await revoke_keys(coach, eli["_id"])

    ended = await ended_job(coach, job["_id"], partial(run, coach))
    assert (ended["status"], problems(ended)) == ("failed", [(None, "REQUESTER_GONE")])
    assert await workouts(coach, ana) == []
    assert await coach.ctx.db["fs.files"].count_documents({"companyId": coach.ctx.company_id}) == 0


async def test_an_import_and_its_undo_are_logged_with_their_interface(coach: CoachClient) -> None:
    """Sets with a key and in a session; of clients who are erased again, the undo remains, and soon nothing else."""
    ana = await coach.create_customer("Ana")
    session = await coach.interactive()
    with_key = {("importCompany", "apiKey"), ("undoImport", "apiKey")}
    await undo(coach, await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"]))
    assert await ways(coach) == with_key
    await undo(session, await import_file(session, b"name\nBo\n", name="clients.csv"))
    assert ("undoImport", "session") in await ways(coach)
    await undo(session, await import_file(session, SETS, name="sets.csv", customerId=ana["_id"]))
    assert await ways(coach) == with_key | {("importCompany", "session"), ("undoImport", "session")}


async def test_the_undo_of_a_coach_is_not_of_the_client_who_imported(coach: CoachClient) -> None:
    client = await coach.as_client(await coach.create_customer("Ana"))
    own = await test_own_import.ended(coach, client, (await test_own_import.send(client)).ok(202))
    assert (await undo(coach, own))["status"] == "done"
    assert await ways(coach) == {("importCompany", "client"), ("undoImport", "apiKey")}


async def test_a_file_of_another_client_is_not_imported(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Ruiz")
    bo = await coach.create_customer("Bo", email="bo@example.com")
    for name in ("Bo", "BO@example.com", str(bo["_id"])):
        sheet = f"Client,Date,Exercise,Reps\n{name},2025-01-06,Push-Up,10\n".encode()
        job = await import_file(coach, sheet, name="sets.csv", customerId=ana["_id"])
        assert problems(job) == [(2, "OTHER_CLIENT")], name
    other_name = b"Client,Date,Exercise,Reps\nAnita,2025-01-06,Push-Up,10\n"
    job = await import_file(coach, other_name, name="sets.csv", customerId=ana["_id"])
    assert (job["result"]["imported"], problems(job)) == (1, [])
    assert await workouts(coach, bo) == []


async def test_the_client_of_an_import_is_meant_by_a_name_that_others_have(coach: CoachClient) -> None:
    ana, _ = [await coach.create_customer("Ana") for _ in range(2)]
    await coach.create_customer("Bo")
    sheet = b"Client,Date,Exercise,Reps\nAna,2025-01-06,Push-Up,10\nBo,2025-01-06,Push-Up,11\n"
    job = await import_file(coach, sheet, name="sets.csv", customerId=ana["_id"])
    assert (job["result"]["imported"], problems(job)) == (1, [(3, "OTHER_CLIENT")])


async def test_a_client_whom_a_file_spells_in_two_ways_has_one_event(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Ruiz", email="ana@example.com")
    rows = ("Ana Ruiz,2025-01-06,Push-Up,10", "Bo,2025-01-06,Push-Up,9", "ana@example.com,2025-01-07,Push-Up,11")
    same = "ANA RUIZ,2025-01-06,Push-Up,12"  # of the session of the first row
    sheet = "\n".join(["Client,Date,Exercise,Reps", *rows, same]).encode()
    job = await import_file(coach, sheet, name="sets.csv", customers='{"Bo": "skip"}')
    assert job["result"]["created"]["sessions"] == 2
    listed = await events(coach, "history.imported")
    assert [(ObjectId(each["customerId"]), each["data"]["sessions"], each["data"]["sets"]) for each in listed] == [
        (ObjectId(ana["_id"]), 2, 3)
    ]


async def test_a_new_client_whom_a_file_spells_in_two_ways_is_created_once(coach: CoachClient) -> None:
    sheet = "Client,Date,Exercise,Reps\nBo Li,2025-01-06,Push-Up,10\nbo  lí,2025-01-07,Push-Up,11\n"
    for spelling in ("Bo Li", "bo lí"):
        dry = await import_file(
            coach, sheet.encode(), name="sets.csv", customers=f'{{"{spelling}": "create"}}', dry_run=True
        )
        assert (dry["result"]["created"]["customers"], dry["result"]["questions"]) == (1, [])
    job = await import_file(coach, sheet.encode(), name="sets.csv", customers='{"Bo Li": "create", "bo  lí": "create"}')
    assert (problems(job), job["result"]["created"]["sessions"]) == ([], 2)
    assert [each["data"]["sessions"] for each in await events(coach, "history.imported")] == [2]


async def test_an_employee_imports_for_a_client_in_scope(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    helper = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    assert (await send(helper, SETS, name="sets.csv")).status == 403
    job = await import_file(helper, SETS, name="sets.csv", customerId=ana["_id"])
    assert (job["status"], len(await workouts(coach, ana))) == ("done", 2)
    archive = await import_file(helper, b"name\nBo\n", name="clients.csv", customerId=ana["_id"])
    assert archive["errors"][-1]["code"] == "INVALID_FILE", "what is sent for one client is no table of clients"


async def test_new_exercises_need_their_permission(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    helper = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    file = rows_of_sets("2025-01-06,Push,Squat,8,60", "2025-01-06,Push,Sled of Doom,5,100")
    checked = await import_file(helper, file, name="sets.csv", customerId=ana["_id"], dryRun="true")
    assert checked["result"]["created"] == {"customers": 0, "sessions": 1, "sets": 1, "exercises": 0}
    assert (checked["result"]["imported"], checked["result"]["reported"]) == (1, 1)
    assert pick(checked["errors"], "line", "field", "code") == [
        (None, None, "PERMISSION_MISSING"),
        (3, "exercise", "PERMISSION_MISSING"),
    ]
    assert [(each["name"], each["answer"]) for each in checked["result"]["names"] if each["match"] is None] == [
        ("Sled of Doom", None)
    ]

    refused = await import_file(helper, file, name="sets.csv", customerId=ana["_id"])
    assert (refused["status"], refused["errors"][-1]["code"]) == ("failed", "PERMISSION_MISSING")
    assert "Sled of Doom" in refused["errors"][-1]["message"] and "exercises.create" in refused["errors"][-1]["message"]
    assert await workouts(coach, ana) == []
    asked = json.dumps({"Sled of Doom": "create"})
    again = await import_file(helper, file, name="sets.csv", customerId=ana["_id"], names=asked)
    assert (again["status"], again["errors"][-1]["code"]) == ("failed", "PERMISSION_MISSING")

    left_out = json.dumps({"Sled of Doom": "skip"})
    done = await import_file(helper, file, name="sets.csv", customerId=ana["_id"], names=left_out)
    assert (done["status"], done["result"]["imported"], done["errors"][-1]["code"]) == ("done", 1, "SKIPPED")


async def test_a_key_without_the_permission_creates_no_exercises_for_its_owner(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    restrictions: NewRestrictions = {"permissions": ["customers.view", "customers.edit"]}
    narrow = coach.with_key((await api_keys.create(coach.ctx, "Narrow", restrictions))["key"])
    file = rows_of_sets("2025-01-06,Push,Sled of Doom,5,100")
    refused = await import_file(narrow, file, name="sets.csv", customerId=ana["_id"])
    assert (refused["status"], refused["errors"][-1]["code"]) == ("failed", "PERMISSION_MISSING")
    assert (await import_file(coach, file, name="sets.csv", customerId=ana["_id"]))["result"]["created"][
        "exercises"
    ] == 1
