"""What reading, cancelling and undoing a job needs, for every kind of job, and whose clients it may concern."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import pytest

from coaching_service.core.auth import READ_PERMISSIONS
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.integrations.history_import import undoing
from coaching_service.people import api_keys, team
from coaching_service.people.jobs import JobKind
from coaching_service.settings import Settings
from tests.integrations import test_own_import
from tests.lifecycle.test_bulk_jobs import ASYNC
from tests.support.client import MONDAY, CoachClient
from tests.support.fail_points import no_job_begins
from tests.support.imported_history import SETS, workouts
from tests.support.jobs import ended_job, finished
from tests.support.training import employee_key, metric_set
from tests.support.transfer import import_file, undo

Json = dict[str, Any]
_OWNER = "OWNER_ONLY"
# What keys need for reading; for cancelling and undoing, if they may read everything: here what is not undoable needs
# nothing, as it is refused to all.
NEEDED = {
    "import of the company": (_OWNER, _OWNER, _OWNER),
    "import for a client": ("customers.view", "customers.edit", "customers.edit"),
    "import by a client": (_OWNER, _OWNER, _OWNER),
    "undo of an import of the company": (_OWNER, _OWNER, _OWNER),
    "undo of an import for a client": ("customers.view", "customers.edit", "customers.edit"),
    "undo of an import by a client": (_OWNER, _OWNER, _OWNER),
    "conversion of loads": (_OWNER, _OWNER, _OWNER),
    "schedule-clear": ("customers.view", "customers.edit", "customers.edit"),
    "assign-metrics-set": ("customers.view", "metrics.edit", "metrics.edit"),
    "undo of assign-metrics-set": ("customers.view", "metrics.edit", "metrics.edit"),
    "archive": ("customers.view", "customers.edit", "customers.edit"),
    "undo of archive": ("customers.view", "customers.edit", "customers.edit"),
    "delete": ("customers.view", "customers.delete", ""),
}


Keys = dict[tuple[str, ...], CoachClient]


async def narrow(coach: CoachClient, keys: Keys, *permissions: str) -> CoachClient:
    """A client with a key that has these permissions."""
    if permissions not in keys:
        key = await api_keys.create(coach.ctx, "Narrow", {"permissions": [*permissions]})
        keys[permissions] = coach.with_key(key["key"])
    return keys[permissions]


async def needed(coach: CoachClient, keys: Keys, method: str, path: str, *granted: str) -> str:
    """The permissions that a key needs for a request in addition to `granted`, as its refusals name them in turn."""
    missing: list[str] = []
    while True:
        reply = await (await narrow(coach, keys, *granted, *missing)).send(method, path)
        if reply.status != 403:
            return " ".join(missing)
        if "permission" not in reply.json:
            return str(reply.json["code"])
        missing.append(reply.json["permission"])


async def needs_of(coach: CoachClient, keys: Keys, job: Json, undo_path: str) -> tuple[str, str, str]:
    """What reading, cancelling and undoing a job needs."""
    path = f"/coach/jobs/{job['_id']}"
    return (
        await needed(coach, keys, "GET", path),
        await needed(coach, keys, "POST", f"{path}/cancel", *READ_PERMISSIONS),
        await needed(coach, keys, "POST", undo_path, *READ_PERMISSIONS),
    )


async def company_jobs(coach: CoachClient) -> dict[str, Json]:
    """Jobs of imports, of their undos, and of a conversion."""
    ana = await coach.create_customer("Ana")
    client = await coach.as_client(ana)
    own = await test_own_import.ended(coach, client, (await test_own_import.send(client)).ok(202))
    imports = {
        "import of the company": await import_file(coach, b"name\nBo\n", name="clients.csv"),
        "import for a client": await import_file(coach, SETS, name="sets.csv", customerId=ana["_id"]),
        "import by a client": own,
    }
    undone = {f"undo of an {name}": await undo(coach, job) for name, job in imports.items()}
    converted = (await coach.post("/coach/account/load-unit", {"loadUnit": "lb", "dryRun": True})).ok(202)
    return {**imports, **undone, "conversion of loads": converted}


async def bulk_jobs(coach: CoachClient) -> dict[str, tuple[Json, str]]:
    """Jobs of bulk operations, and of undos, with the batches of their changes."""
    cem, dora = [await coach.create_customer(name) for name in ("Cem", "Dora")]
    await coach.schedule(cem, MONDAY, "Legs")
    body = await metric_set(coach, "Weight")
    jobs = {}
    for name, arguments in {
        "schedule-clear": {"startDate": MONDAY, "endDate": MONDAY},
        "assign-metrics-set": {"metricsSetId": body["_id"]},
        "archive": {},
        "delete": {},
    }.items():
        path = f"/coach/customers/bulk/{name}"
        ids = [(dora if name == "delete" else cem)["_id"]]
        begun = await coach.send("POST", path, json={"ids": ids, **arguments}, headers=ASYNC)
        jobs[name] = (await finished(coach, begun), begun.headers["X-Change-Id"])
        if name in ("assign-metrics-set", "archive"):
            begun = await coach.send("POST", f"/coach/changes/{jobs[name][1]}/undo", headers=ASYNC)
            jobs[f"undo of {name}"] = (await finished(coach, begun), begun.headers["X-Change-Id"])
    return jobs


async def test_every_kind_of_job_needs_what_is_declared(coach: CoachClient) -> None:
    of_company, bulk, keys = await company_jobs(coach), await bulk_jobs(coach), Keys()
    kinds = {job["kind"] for job in (*of_company.values(), *(job for job, _ in bulk.values()))}
    assert kinds == {*get_args(JobKind)}
    jobs = {name: (job, f"/coach/jobs/{job['_id']}/undo") for name, job in of_company.items()}
    jobs |= {name: (job, f"/coach/changes/{batch}/undo") for name, (job, batch) in bulk.items()}
    assert sorted(await listed(coach)) == sorted(job["_id"] for job, _ in jobs.values())
    assert await listed(coach, kind="load_unit") == [of_company["conversion of loads"]["_id"]]
    assert await listed(coach, status="failed") == []
    assert await needed(coach, keys, "GET", "/coach/jobs") == "customers.view"
    viewer = await narrow(coach, keys, "customers.view")
    readable = {name for name, (reading, *_) in NEEDED.items() if reading != _OWNER}
    assert sorted(await listed(viewer)) == sorted(jobs[name][0]["_id"] for name in readable)
    (await coach.get("/coach/jobs", kind="export")).refused(400)

    assert {name: await needs_of(coach, keys, *each) for name, each in jobs.items()} == NEEDED


async def listed(coach: CoachClient, **query: Any) -> list[str]:
    """The identifiers of the jobs that a caller lists, read in parts of three, newest first."""
    found: list[Json] = []
    part: Json = {"nextCursor": None, "hasMore": True}
    while part["hasMore"]:
        after = {} if part["nextCursor"] is None else {"after": part["nextCursor"]}
        part = (await coach.get("/coach/jobs", limit=3, **query, **after)).ok()
        found += part["docs"]
    begun = [(job["createdAt"], job["_id"]) for job in found]
    assert begun == sorted(begun, reverse=True)
    return [job["_id"] for job in found]


async def employee(coach: CoachClient, *permissions: str) -> tuple[CoachClient, ObjectId]:
    """A new employee who sees the assigned clients."""
    client = coach.with_key(await employee_key(coach, *permissions))
    return client, ObjectId((await client.get("/me")).ok()["_id"])


async def assign(coach: CoachClient, customer: Json, employee_id: ObjectId | None) -> None:
    """Assign a client to an employee, or to no coach."""
    assigned = None if employee_id is None else str(employee_id)
    (await coach.patch(f"/coach/customers/{customer['_id']}", {"assignedTo": assigned})).ok()


async def test_jobs_about_the_clients_of_others_are_refused(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    eli, eli_id = await employee(coach, "customers.view", "customers.edit")
    await assign(coach, ana, eli_id)
    first = await import_file(eli, SETS, name="sets.csv", customerId=ana["_id"])
    undone = await undo(eli, first)
    job = await import_file(eli, SETS, name="sets.csv", customerId=ana["_id"])
    assert await listed(eli) == [job["_id"], undone["_id"], first["_id"]]
    await assign(coach, ana, None)
    assert await listed(eli) == []
    for each in (job, undone):
        path = f"/coach/jobs/{each['_id']}"
        (await eli.get(path)).refused(403)
        (await eli.post(f"{path}/cancel")).refused(403)
    (await eli.post(f"/coach/jobs/{job['_id']}/undo")).refused(403)
    assert len(await workouts(coach, ana)) == 2
    (await coach.get(f"/coach/jobs/{job['_id']}")).ok()


@pytest.mark.parametrize("lost", ["the permission", "the client"])
async def test_an_undo_that_may_no_longer_go_on_makes_room(coach: CoachClient, settings: Settings, lost: str) -> None:
    ana = await coach.create_customer("Ana")
    eli, eli_id = await employee(coach, "customers.view", "customers.edit")
    await assign(coach, ana, eli_id)
    job = await import_file(eli, SETS, name="sets.csv", customerId=ana["_id"])
    async with no_job_begins(coach, settings):
        begun = (await eli.post(f"/coach/jobs/{job['_id']}/undo")).ok(202)
        if lost == "the client":
            await assign(coach, ana, None)
        else:
            await team.update_employee(coach.ctx, eli_id, {"permissions": ["customers.view"]})

    step = partial(worker.run_due, coach.ctx.services, {undoing.UNDO: undoing.run_step})
    ended = await ended_job(coach, begun["_id"], step)
    assert (ended["status"], [each["code"] for each in ended["errors"]]) == ("failed", ["REQUESTER_GONE"])
    assert len(await workouts(coach, ana)) == 2
    assert (await undo(coach, job))["result"]["removed"]["sessions"] == 2
    assert await workouts(coach, ana) == []
