"""Bulk operations and their undo as jobs."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from coaching_service.core.errors import Unavailable
from coaching_service.core.http.routes import routes_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job
from coaching_service.lifecycle.customer_bulk import routes as customer_bulk_routes
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.people import jobs
from coaching_service.people.changes import service
from coaching_service.people.customers import bulk
from tests.support.client import CoachClient, Reply
from tests.support.jobs import finished
from tests.support.service_process import until
from tests.support.training import employee_key

Json = dict[str, Any]
ASYNC = {"Prefer": "respond-async"}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 4 clients are many, and a step processes two at a time."""
    monkeypatch.setattr(jobs, "MAX_AT_ONCE", 4)


async def create_clients(coach: CoachClient, count: int) -> list[str]:
    """The identifiers of new clients."""
    body = {"customers": [{"name": f"Client {number}"} for number in range(count)]}
    created = (await coach.post("/coach/customers/batch", body)).ok()
    return [result["_id"] for result in created["results"]]


def archive(coach: CoachClient, ids: list[str], **headers: str) -> Awaitable[Reply]:
    """Archive clients."""
    return coach.send("POST", "/coach/customers/bulk/archive", json={"ids": ids}, headers=headers)


@pytest.mark.usefixtures("few")
async def test_many_clients_are_changed_and_restored_by_jobs(coach: CoachClient) -> None:
    ids = await create_clients(coach, 5)
    unknown = "66f0c0ffee0000000000abcd"
    accepted = await archive(coach, [*ids, unknown])
    job = await finished(coach, accepted)
    batch = accepted.headers["X-Change-Id"]
    failed = [{"customerId": unknown, "code": "NOT_FOUND", "message": "Customer not found"}]
    assert job["result"] == {"requested": 6, "ok": 5, "failed": failed, "batchId": batch}
    assert (job["kind"], job["status"], job["done"], job["total"], job["errors"]) == ("bulk", "done", 6, 6, [])
    assert await count_archived(coach) == 5
    assert {change["batchId"] for change in await changes_of(coach, 5, "bulkArchiveCustomers")} == {batch}

    undone = await coach.post(f"/coach/changes/{batch}/undo")
    job = await finished(coach, undone)
    own = undone.headers["X-Change-Id"]
    assert job["result"] == {"changeId": own, "ok": 5, "failed": [], "batchId": own}
    assert (job["kind"], job["done"], job["total"]) == ("undo", 5, 5)
    assert await count_archived(coach) == 0


async def test_preference_selects_a_job(coach: CoachClient) -> None:
    ids = await create_clients(coach, 2)
    assert (await archive(coach, ids[:1])).ok()["ok"] == 1
    accepted = await archive(coach, ids, **ASYNC)
    assert (await finished(coach, accepted))["result"]["ok"] == 2
    path = f"/coach/changes/{accepted.headers['X-Change-Id']}/undo"
    undone = await coach.send("POST", path, headers={"Prefer": "handling=strict, respond-async"})
    assert (await finished(coach, undone))["result"]["ok"] == 1  # the other was archived before
    body = {"ids": ids, "dryRun": True}
    assert (await coach.send("POST", "/coach/customers/bulk/archive", json=body, headers=ASYNC)).ok()["ok"] == 2


async def test_repeated_request_has_the_same_job(coach: CoachClient) -> None:
    ids = await create_clients(coach, 2)
    headers = {**ASYNC, "Idempotency-Key": "one"}
    first = (await archive(coach, ids, **headers)).ok(202)
    # The response was lost before it was stored
    await coach.ctx.db["replays"].delete_many({"companyId": coach.ctx.company_id, "status": 202})
    again = await archive(coach, ids, **headers)
    assert again.ok(202) == first
    assert (await finished(coach, again))["result"]["ok"] == 2
    (await archive(coach, ids[:1], **headers)).refused(409)


async def test_errors_of_an_operation_are_answered_at_once(coach: CoachClient) -> None:
    ids = await create_clients(coach, 1)
    body = {"ids": ids, "coachId": "66f0c0ffee0000000000abcd"}
    (await coach.send("POST", "/coach/customers/bulk/assign-trainer", json=body, headers=ASYNC)).refused(404)
    unknown = "/coach/changes/66f0c0ffee0000000000abcd/undo"
    (await coach.send("POST", unknown, headers=ASYNC)).refused(404)


async def test_a_job_is_read_by_its_author_and_the_owner(coach: CoachClient, other_company: CoachClient) -> None:
    ids = await create_clients(coach, 1)
    employee = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    other = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    accepted = await archive(employee, ids, **ASYNC)
    await finished(employee, accepted)
    path = f"/coach/jobs/{accepted.json['jobId']}"
    (await coach.get(path)).ok()
    for stranger in (other, other_company):
        (await stranger.get(path)).refused(404)
        (await stranger.post(f"{path}/cancel")).refused(404)
    assert (await employee.post(f"{path}/cancel")).ok()["status"] == "done"
    of_owner = await archive(coach, ids, **ASYNC)
    (await employee.get(f"/coach/jobs/{of_owner.ok(202)['jobId']}")).refused(404)
    await finished(coach, of_owner)


async def count_archived(coach: CoachClient) -> int:
    """The number of archived clients."""
    where = {"companyId": coach.ctx.company_id, "customerRoleData.isArchived": True}
    return await coach.ctx.db["customers"].count_documents(where)


async def changes_of(coach: CoachClient, count: int, operation: str) -> list[Json]:
    """The changes of an operation, once so many are numbered."""

    async def numbered() -> list[Json]:
        changes = (await coach.get("/coach/changes", limit=50)).ok()["docs"]
        matching = [change for change in changes if change["operation"] == operation]
        return matching if len(matching) == count else []

    return await until(numbered, "the changes are numbered")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of bulk operations are not run by the application."""
    enqueue = queue.enqueue

    async def enqueue_later(ctx: Any, kind: str, arguments: Json, **options: Any) -> Any:
        if kind in (customer_bulk.STEP, service.STEP):
            options["after"] = timedelta(hours=1)
        return await enqueue(ctx, kind, arguments, **options)

    monkeypatch.setattr(queue, "enqueue", enqueue_later)


async def begin(coach: CoachClient, ids: list[str]) -> str:
    """Begin to archive clients by a job, and return its identifier."""
    return str((await archive(coach, ids, **ASYNC)).ok(202)["jobId"])


async def run(coach: CoachClient, job_id: str) -> None:
    """Run a step of a job, two clients at a time."""
    step = jobs.step_of(customer_bulk._process, 2)
    await step(coach.ctx.services, Job(ObjectId(), {"jobId": ObjectId(job_id)}, 1, coach.ctx.company_id))


async def error_codes(coach: CoachClient, job_id: str) -> list[str]:
    """Why a job has failed."""
    job = (await coach.get(f"/coach/jobs/{job_id}")).ok()
    assert job["status"] == "failed"
    return [error["code"] for error in job["errors"]]


class Interrupted(Exception):
    """The process has ended."""


@pytest.mark.usefixtures("held")
async def test_interrupted_job_continues(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends between a batch and its progress, or a busy service, changes no client twice."""
    ids = await create_clients(coach, 5)
    job_id = await begin(coach, ids)
    advance = jobs._advance

    async def end(*_: Any) -> None:
        raise Interrupted

    monkeypatch.setattr(jobs, "_advance", end)
    with pytest.raises(Interrupted):
        await run(coach, job_id)
    monkeypatch.setattr(jobs, "_advance", advance)
    assert await count_archived(coach) == 2

    set_archived, calls = bulk.set_archived, []

    async def be_busy(ctx: Any, batch: list[Any], *, archived: bool) -> None:
        calls.append(batch)
        if len(calls) == 1:
            raise Unavailable("The service is busy")
        await set_archived(ctx, batch, archived=archived)

    monkeypatch.setattr(bulk, "set_archived", be_busy)
    with pytest.raises(Unavailable):
        await run(coach, job_id)
    await run(coach, job_id)
    job = (await coach.get(f"/coach/jobs/{job_id}")).ok()
    assert (job["status"], job["result"]["ok"], job["result"]["failed"]) == ("done", 5, [])
    assert await count_archived(coach) == 5
    changed = [customer for batch in calls[1:] for customer in batch]
    assert len(changed) == len(set(changed)) == 3


@pytest.mark.parametrize(("key", "status"), [("k", 503), (None, 200)])
async def test_busy_service_in_the_second_batch(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch, key: str | None, status: int
) -> None:
    """With a key the request is repeated, and changes each client once; without one it says who was not changed."""
    ids, calls, set_archived = await create_clients(coach, 4), 0, bulk.set_archived

    async def be_busy_once(ctx: Any, batch: list[Any], *, archived: bool) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Unavailable("The service is busy")
        await set_archived(ctx, batch, archived=archived)

    monkeypatch.setattr(bulk, "set_archived", be_busy_once)
    monkeypatch.setattr(customer_bulk, "BATCH", 2)
    headers = {} if key is None else {"Idempotency-Key": key}
    first = (await archive(coach, ids, **headers)).ok(status)
    assert await count_archived(coach) == 2
    if key is None:
        assert first["ok"] == 2 and [each["code"] for each in first["failed"]] == ["SERVICE_UNAVAILABLE"] * 2
    else:
        assert (await archive(coach, ids, **headers)).ok() == {"requested": 4, "ok": 4, "failed": []}
        assert await count_archived(coach) == 4


async def test_busy_service_changes_nobody(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def be_busy(*_: Any, **__: Any) -> None:
        raise Unavailable("The service is busy")

    ids = await create_clients(coach, 1)
    monkeypatch.setattr(bulk, "set_archived", be_busy)
    (await archive(coach, ids)).refused(503, "busy")


@pytest.mark.usefixtures("held")
async def test_cancelled_job_ends_before_its_next_step(coach: CoachClient) -> None:
    ids = await create_clients(coach, 3)
    job_id = await begin(coach, ids)
    cancelled = (await coach.post(f"/coach/jobs/{job_id}/cancel")).ok()
    assert (cancelled["status"], cancelled["done"], cancelled["result"]["ok"]) == ("cancelled", 0, 0)
    await run(coach, job_id)
    assert await count_archived(coach) == 0


@pytest.mark.usefixtures("held")
async def test_job_of_a_deleted_key_or_permission_ends(coach: CoachClient, interactive: CoachClient) -> None:
    """What a credential may no longer do, its job does not do either."""
    ids = await create_clients(coach, 1)
    created = (await interactive.post("/coach/api-keys", {"name": "Second"})).ok(201)
    job_id = await begin(coach.with_key(created["key"]), ids)
    (await interactive.delete(f"/coach/api-keys/{created['_id']}")).ok(204)
    await run(coach, job_id)
    assert await error_codes(coach, job_id) == ["FORBIDDEN"]

    ended = {"caller.via": "mcp", "caller.credentialId": ObjectId()}  # an assistant that was disconnected
    job_id = await begin(coach, ids)
    await coach.ctx.db["companyJobs"].update_one({"_id": ObjectId(job_id)}, {"$set": ended})
    await run(coach, job_id)
    assert await error_codes(coach, job_id) == ["FORBIDDEN"]

    created = (await interactive.post("/coach/api-keys", {"name": "Third"})).ok(201)
    job_id = await begin(coach.with_key(created["key"]), ids)
    past = {"$set": {"restrictions.expiresAt": datetime.now(UTC) - timedelta(seconds=1)}}
    await coach.ctx.db["apiKeys"].update_one({"_id": ObjectId(created["_id"])}, past)
    await run(coach, job_id)
    assert await error_codes(coach, job_id) == ["FORBIDDEN"]

    key = await employee_key(coach, "customers.view", "customers.edit", scope="all")
    employee = coach.with_key(key)
    job_id = await begin(employee, ids)
    author = ObjectId((await employee.get("/me")).ok()["_id"])
    await coach.ctx.db["coaches"].update_one({"_id": author}, {"$set": {"permissions": ["customers.view"]}})
    await run(coach, job_id)
    assert await error_codes(coach, job_id) == ["PERMISSION_MISSING"]
    assert await count_archived(coach) == 0


def test_jobs_need_the_permissions_of_their_routes() -> None:
    declared = {route.operation_id: route.access.permissions for route in routes_of([customer_bulk_routes.routes])}
    assert {name: set(customer_bulk.permissions_of(name)) for name in declared} == {
        name: set(permissions) for name, permissions in declared.items()
    }
