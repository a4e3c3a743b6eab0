"""Undoing what concerns very many clients, by assistants: a job that they begin, and whose progress they read."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.jobs import queue
from coaching_service.people import api_keys, jobs
from tests.support.client import CoachClient
from tests.support.jobs import ended_job
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_error, tool_proposal
from tests.support.service_process import until

pytestmark = pytest.mark.usefixtures("few")
Json = dict[str, Any]
COUNT = 6


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 4 changes are many."""
    monkeypatch.setattr(jobs, "MAX_AT_ONCE", 4)


async def archive_many(coach: CoachClient) -> str:
    """Archive new clients with the coach's key, and return the batch."""
    body = {"customers": [{"name": f"Client {number}"} for number in range(COUNT)]}
    ids = [each["_id"] for each in (await coach.post("/coach/customers/batch", body)).ok()["results"]]
    accepted = await coach.post("/coach/customers/bulk/archive", {"ids": ids})
    assert (await ended_job(coach, accepted.ok(202)["jobId"]))["result"]["ok"] == COUNT
    return accepted.headers["X-Change-Id"]


async def count_archived(coach: CoachClient) -> int:
    """The number of archived clients."""
    where = {"companyId": coach.ctx.company_id, "customerRoleData.isArchived": True}
    return await coach.ctx.db["customers"].count_documents(where)


async def undo_by_tool(coach: CoachClient, mcp: McpHttpClient, change_id: str) -> Json:
    """Undo a batch with the approval of the coach, and return the result."""
    proposal = tool_proposal(await mcp.call("undo", changeId=change_id), "MANY_CLIENTS")
    return await approve(coach, proposal)


async def test_undo_of_many_clients_is_a_job(mcp: McpHttpClient, coach: CoachClient) -> None:
    batch = await archive_many(coach)
    undone = await undo_by_tool(coach, mcp, batch)
    assert undone["summary"].startswith(f"Began a job that undoes {COUNT} changes: changed back {COUNT} clients of «")
    assert f" and {COUNT - 5} more. Call undo again" in undone["summary"]
    assert undone["progressUrl"].endswith(f"/app/jobs/{undone['jobId']}")
    job = await ended_job(coach, undone["jobId"])
    assert job["result"] == {"changeId": undone["changeId"], "ok": COUNT, "failed": [], "batchId": undone["changeId"]}
    assert await count_archived(coach) == 0

    again = tool_change(await mcp.call("undo", changeId=batch))
    assert again["summary"] == f"A job has undone this: {COUNT} records are as they were before."
    assert (again["jobId"], again["changeId"]) == (undone["jobId"], undone["changeId"])

    async def listed() -> list[Json]:
        changes = (await coach.get("/coach/changes", limit=50, via="assistant")).ok()["docs"]
        of_clients = [change for change in changes if change["documents"]]
        return of_clients if len(of_clients) == COUNT else []

    assert {change["batchId"] for change in await until(listed, "the changes are numbered")} == {undone["changeId"]}
    redone = await undo_by_tool(coach, mcp, undone["changeId"])
    assert (await ended_job(coach, redone["jobId"]))["result"]["ok"] == COUNT
    assert await count_archived(coach) == COUNT


async def test_assistant_reads_the_progress_of_an_undo_and_begins_no_second(
    mcp: McpHttpClient, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = await archive_many(coach)
    with monkeypatch.context() as patch:
        patch.setattr(queue, "enqueue", partial(queue.enqueue, after=timedelta(hours=1)))
        begun = await undo_by_tool(coach, mcp, batch)
    running = tool_change(await mcp.call("undo", changeId=batch))
    assert running["summary"].startswith(f"A job is undoing this: 0 of {COUNT} changes are processed.")
    assert running["jobId"] == begun["jobId"]
    joined = await coach.post(f"/coach/changes/{batch}/undo")
    assert (joined.ok(202), joined.headers["X-Change-Id"]) == ({"jobId": begun["jobId"]}, begun["changeId"])
    (await coach.post(f"/coach/jobs/{begun['jobId']}/cancel")).ok()
    assert (await undo_by_tool(coach, mcp, batch))["jobId"] != begun["jobId"]


async def test_who_may_not_see_clients_does_not_read_the_progress_of_an_undo(
    public_server: TestServer, mcp: McpHttpClient, coach: CoachClient
) -> None:
    batch = await archive_many(coach)
    await ended_job(coach, (await undo_by_tool(coach, mcp, batch))["jobId"])
    key = (await api_keys.create(coach.ctx, "Narrow", {"permissions": ["exercises.view"]}))["key"]
    async with McpHttpClient(public_server, {"X-API-Key": key}) as narrow:
        tool_error(await narrow.call("undo", changeId=batch), "customers.view")


async def test_assistant_undoes_no_batch_of_another_credential(public_server: TestServer, coach: CoachClient) -> None:
    batch = await archive_many(coach)
    session = await coach.interactive()
    key = (await session.post("/coach/api-keys", {"name": "Other"})).ok(201)["key"]
    async with McpHttpClient(public_server, {"X-API-Key": key}) as other:
        tool_error(await other.call("undo", changeId=batch), "only what it has changed itself")
    assert await count_archived(coach) == COUNT
