"""Access that ends while a request waits for its turn, or while its response is streamed: nothing more is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.auth import ALL_PERMISSIONS
from coaching_service.core.database import context
from coaching_service.core.database.context import schedule_key
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.people import api_keys, team
from coaching_service.people.customers import bulk
from coaching_service.people.sessions import service as sessions
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, tool_error
from tests.support.pdf_files import make_pdf
from tests.support.service_process import until
from tests.support.visitor import Visitor

Json = dict[str, Any]

BULK = "/app/customers/bulk"


async def hire(coach: CoachClient) -> tuple[ObjectId, str]:
    """A new employee with all permissions: the identifier and the secret of a key."""
    email = f"eli-{ObjectId()}@example.com"
    hired = await team.create(coach.ctx, "Eli", email, sorted(ALL_PERMISSIONS), "all", "no hash")
    principal = await team.get_principal(coach.ctx.services, hired["_id"])
    assert principal is not None
    return hired["_id"], (await api_keys.create(coach.ctx.acting_as(principal), "Eli's"))["key"]


async def browser_of(coach: CoachClient, server: TestServer, employee: ObjectId) -> Visitor:
    """The browser of an employee, signed in."""
    visitor = Visitor(server)
    visitor.keep(coach_session=(await sessions.start_for_coach(coach.ctx, employee)).token)
    return visitor


async def responses_after(
    coach: CoachClient, customer: Json, requests: list[Awaitable[Any]], revoke: Callable[[], Awaitable[object]]
) -> list[Any]:
    """The responses to requests that change the schedule of a client, and wait for it until `revoke` has ended."""
    key = schedule_key(coach.ctx, "customer", {"customer_id": ObjectId(customer["_id"])})
    lock = coach.ctx.services.schedule_locks.lock_of(key)
    async with lock:
        waiting = [asyncio.ensure_future(request) for request in requests]
        await until(lambda: len(lock._waiters or ()) == len(waiting), "all wait")
        await revoke()
    return list(await asyncio.wait_for(asyncio.gather(*waiting), 60))


@pytest.mark.parametrize("status", [401, 403], ids=["removed", "reads only"])
async def test_requests_that_waited_are_authenticated_again(
    coach: CoachClient, public_server: TestServer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """A change, an upload, a tool and a form of an employee who is removed meanwhile, or may no longer change."""
    monkeypatch.setattr(context, "RECHECK_SECONDS", 0.0)
    customer = await coach.create_customer()
    employee, key = await hire(coach)
    browser = await browser_of(coach, public_server, employee)
    eli, of_client = coach.with_key(key), f"customers/{customer['_id']}"
    page = await browser.get(f"/app/{of_client}/notes")
    upload = aiohttp.FormData()
    upload.add_field("file", make_pdf(), filename="plan.pdf", content_type="application/pdf")

    async def revoke() -> None:
        if status == 401:
            await team.delete_employee(coach.ctx, employee)
        else:
            await team.update_employee(coach.ctx, employee, {"permissions": ["customers.view"]})

    async with McpHttpClient(public_server, {"X-API-Key": key}) as mcp:
        requests: list[Awaitable[Any]] = [
            eli.post(f"/coach/{of_client}/notes", {"content": "Hidden"}),
            eli.send("POST", f"/coach/{of_client}/nutrition-plans", data=upload),
            mcp.call("add_note", customerId=customer["_id"], text="Hidden"),
            browser.submit_only(page, f"/app/{of_client}/notes", content="Hidden"),
        ]
        created, uploaded, called, submitted = await responses_after(coach, customer, requests, revoke)
    await browser.close()
    assert (created.status, uploaded.status) == (status, status)
    tool_error(called)
    assert submitted.status in ((303, 401) if status == 401 else (403,))
    for name in ("notes", "nutritionPlans"):
        assert await coach.ctx.db[name].count_documents({"companyId": coach.ctx.company_id}) == 0, name


async def test_a_bulk_operation_ends_when_the_access_does(
    coach: CoachClient, public_server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step of its job checks the access again: no client is changed after the 200 of the step in which it ended."""
    monkeypatch.setattr(queue, "STEP_SECONDS", 0.0)
    clients = [{"name": f"Client {number}"} for number in range(201)]
    (await coach.post("/coach/customers/batch", {"customers": clients})).ok()
    employee, _ = await hire(coach)
    browser = await browser_of(coach, public_server, employee)
    confirmation = await browser.get(BULK, params={"all": "true", "action": "archive"})
    set_archived = bulk.set_archived

    async def archive_and_remove(ctx: Any, ids: list[ObjectId], *, archived: bool) -> None:
        await set_archived(ctx, ids, archived=archived)
        monkeypatch.setattr(bulk, "set_archived", set_archived)
        await team.update_employee(coach.ctx, employee, {"permissions": []})

    monkeypatch.setattr(bulk, "set_archived", archive_and_remove)
    page = await browser.submit(confirmation, BULK)
    await browser.close()
    assert "201 clients changed" not in page.text
    where = {"companyId": coach.ctx.company_id, "customerRoleData.isArchived": True}
    assert await coach.ctx.db["customers"].count_documents(where) == 200
