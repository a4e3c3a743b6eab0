"""A bulk operation and its undo whose processes are killed: each client is changed once, as without it."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service import features
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.people.changes import service
from tests.support.client import MONDAY, CoachClient
from tests.support.database_proxy import Moment
from tests.support.job_worker import worker
from tests.support.own_application import OwnApplication

Json = dict[str, Any]
ASYNC = {"Prefer": "respond-async"}
COUNT = 5
DAYS = 25  # so that one transaction undoes the changes of three clients, another one those of two


async def read_job(coach: CoachClient, job_id: str) -> Json:
    """A job that has ended."""
    job: Json = (await coach.get(f"/coach/jobs/{job_id}")).ok()
    assert (job["status"], job["done"], job["total"], job["errors"]) == ("done", COUNT, COUNT, [])
    return job


async def count_blocks(coach: CoachClient, clients: list[Json]) -> list[int]:
    """The numbers of the clients' workouts on the first day of the program."""
    return [len(await coach.calendar(client, MONDAY, MONDAY)) for client in clients]


async def test_jobs_whose_processes_are_killed_change_each_client_once(
    application: OwnApplication, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = (customer_bulk.STEP, service.STEP)
    for kind in kinds:
        monkeypatch.delitem(features.STEPS, kind)  # this process does not run the jobs
    clients = [await coach.create_customer(f"Client {number}") for number in range(COUNT)]
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    for day in range(1, DAYS + 1):
        (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Legs", "day": day})).ok(201)
    body = {"ids": [each["_id"] for each in clients], "programId": program["_id"], "startDate": MONDAY}

    accepted = await coach.post("/coach/customers/bulk/assign-program", body, headers=ASYNC)
    batch = accepted.headers["X-Change-Id"]
    async with worker(application.settings, *kinds) as process:
        await process.kill_at(coach, Moment("commitTransaction", count=2))
        await process.kill_at(coach, Moment("commitTransaction", done=True))
        await process.run_to_end()
        result = (await read_job(coach, accepted.ok(202)["jobId"]))["result"]
        assert result == {"requested": COUNT, "ok": COUNT, "failed": [], "batchId": batch}
        assert await count_blocks(coach, clients) == [1] * COUNT

        undone = await coach.post(f"/coach/changes/{batch}/undo", headers=ASYNC)
        await process.kill_at(coach, Moment("commitTransaction", count=2))
        assert sorted(await count_blocks(coach, clients)) == [0, 0, 0, 1, 1]
        await process.kill_at(coach, Moment("commitTransaction", done=True))
        await process.run_to_end()
    result = (await read_job(coach, undone.ok(202)["jobId"]))["result"]
    assert (result["changeId"], result["failed"]) == (undone.headers["X-Change-Id"], [])
    assert await count_blocks(coach, clients) == [0] * COUNT
    changes = await coach.ctx.db["changes"].find({"companyId": coach.ctx.company_id}).to_list(None)
    both = (batch, undone.headers["X-Change-Id"])
    of_both = [change["batchId"] for change in changes if str(change.get("batchId")) in both]
    assert sorted(map(str, of_both)) == sorted([*both] * COUNT)
