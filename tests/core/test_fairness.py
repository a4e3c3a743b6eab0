"""A company that sends too much does not delay others, over HTTP, and what it aborts is freed."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.app import authenticate, create_app
from coaching_service.core.auth import anyone
from coaching_service.core.database.checks import run_checks
from coaching_service.core.database.connection import server_state
from coaching_service.core.database.context import Context, Services
from coaching_service.core.http import request_parsing
from coaching_service.core.http.handlers import HandlerDependencies, mount
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import Metrics
from coaching_service.core.slots import RequestSlots, Sharing, WorkSlots
from coaching_service.http_server import request_middleware
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.other_process import AsServed
from tests.support.service_process import until

AT_ONCE, EXPORTS, PLAN_BYTES = 2, 2, 20_000_000


class Held:
    """Requests that hold their slot until the test lets one end, by company name."""

    def __init__(self) -> None:
        self.running: list[tuple[str, asyncio.Event]] = []

    async def hold(self, ctx: Context) -> dict[str, str]:
        ends = asyncio.Event()
        self.running.append((ctx.caller.company.name, ends))
        await ends.wait()
        return {}

    def end(self, position: int = 0) -> str:
        name, ends = self.running.pop(position)
        ends.set()
        return name


async def test_request_waits_for_one_request_of_a_noisy_company_and_not_for_its_queue(
    services: Services, coach: CoachClient, other_company: CoachClient
) -> None:
    held, routes = Held(), Routes("/held", tag="Test")

    @routes.get("", access=anyone(), returns=None)
    async def hold(ctx: Context) -> dict[str, str]:
        """Hold a slot."""
        return await held.hold(ctx)

    app = web.Application(middlewares=[request_middleware(services)])
    slots, bulk = [RequestSlots(AT_ONCE, queued=100, seconds=60) for _ in range(2)]
    dependencies = HandlerDependencies(services, authenticate, slots, bulk, RequestSlots(1), body_limit=1)
    mount(app, routes.declared, dependencies)

    async with TestServer(app) as server, aiohttp.ClientSession() as http:

        async def request(company: CoachClient) -> int:
            async with http.get(server.make_url("/held"), headers={"X-API-Key": company.key or ""}) as response:
                return response.status

        noisy = [asyncio.create_task(request(coach)) for _ in range(20)]
        await until(lambda: slots.queued == 20 - AT_ONCE, "the queue is long")
        quiet = asyncio.create_task(request(other_company))
        await until(lambda: slots.queued == 21 - AT_ONCE, "the other company waits too")
        assert held.end() == coach.ctx.caller.company.name
        await until(lambda: len(held.running) == AT_ONCE, "the next has begun")
        assert held.end(-1) == other_company.ctx.caller.company.name
        assert await quiet == 200
        assert slots.queued >= 20 - AT_ONCE - 2
        for each in noisy:
            each.cancel()
        await asyncio.gather(*noisy, return_exceptions=True)


async def test_company_works_on_one_piece_at_a_time_once_another_sends_any_request(
    settings: Settings, services: Services, coach: CoachClient, other_company: CoachClient
) -> None:
    work_slots = WorkSlots(sharing=Sharing(clock=lambda: 0.0))
    app = create_app(settings, replace(services, metrics=Metrics(), work_slots=work_slots))
    async with TestServer(app) as server, aiohttp.ClientSession() as http, asyncio.timeout(60):
        held = []
        for company in (coach, other_company):
            async with http.get(server.make_url("/coach/account"), headers={"X-API-Key": company.key or ""}) as reply:
                assert reply.status == 200
            asking = [asyncio.create_task(work_slots.pieces.acquire(coach.ctx.company_id)) for _ in range(2)]
            await asyncio.sleep(0)
            held.append(work_slots.pieces.held(coach.ctx.company_id))
            for each in asking:
                await each
                work_slots.pieces.release(coach.ctx.company_id)
        assert held == [2, 1]


# --- what is aborted ---------------------------------------------------------------------------------------------------


@pytest.fixture
async def served(settings: Settings, services: Services) -> AsyncIterator[AsServed]:
    """The application as operators run it, where a company may receive two exports at once."""
    work_slots = WorkSlots(exports=RequestSlots(sys.maxsize, seconds=0.05, alone=EXPORTS))
    listening = AsServed(create_app(settings, replace(services, metrics=Metrics(), work_slots=work_slots)))
    await listening.start_server()
    yield listening
    await listening.close()


def work_slots_of(served: AsServed) -> WorkSlots:
    services: Services = next(value for value in served.app.values() if isinstance(value, Services))
    return services.work_slots


async def write_notes(coach: CoachClient, ana: str) -> None:
    """24 MB of notes that cannot be compressed much: more than the buffers on the way and the batches of a query hold."""
    path = f"/coach/customers/{ana}/notes"
    created = (await coach.post(path, {"content": "Hello"})).ok(201)
    notes = coach.ctx.db["notes"]
    note = await notes.find_one({"_id": ObjectId(created["_id"])})
    assert note is not None
    for _ in range(6):
        copies = [{"_id": ObjectId(), "content": base64.b64encode(os.urandom(30_000)).decode()} for _ in range(100)]
        await notes.insert_many([note | each for each in copies])


async def open_queries(ctx: Context) -> int:
    """How many queries for notes have more to read."""
    match = {"type": "idleCursor", "ns": f"{ctx.db.name}.notes"}
    pipeline: list[Mapping[str, Any]] = [{"$currentOp": {"idleCursors": True, "allUsers": True}}, {"$match": match}]
    return len(await server_state(ctx.db.client).aggregate(pipeline).to_list(None))


async def test_exports_aborted_half_way_free_their_slots_and_queries(
    served: AsServed, coach: CoachClient, other_company: CoachClient
) -> None:
    ana = (await coach.create_customer())["_id"]
    await write_notes(coach, ana)
    slots, company = work_slots_of(served).exports, coach.ctx.company_id

    async def begin(by: CoachClient, path: str = "/coach/export") -> aiohttp.ClientResponse:
        return await http.get(served.make_url(path), headers={"X-API-Key": by.key or ""})

    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(100)) as http:
        begun = [await begin(coach, f"/coach/customers/{ana}/export") for _ in range(EXPORTS)]
        await until(lambda: _has(open_queries, coach.ctx, EXPORTS), "the notes are being read")
        refused = await begin(coach)
        assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        await refused.read()
        other = await begin(other_company)
        assert other.status == 200, "the limit is that of a company"
        await other.read()
        assert slots.held(company) == EXPORTS
        for each in begun:
            each.close()
        await until(lambda: slots.held(company) == 0, "the slots are free")
        await until(lambda: _has(open_queries, coach.ctx, 0), "the queries have ended")
        following = await begin(coach)
        assert following.status == 200
        following.close()


async def _has(count: Callable[[Context], Awaitable[int]], ctx: Context, number: int) -> bool:
    return await count(ctx) == number


async def test_aborted_uploads_leave_no_bytes_and_no_slot(served: AsServed, coach: CoachClient) -> None:
    ana = (await coach.create_customer())["_id"]
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="plan.pdf"\r\n\r\n'
    request = (
        f"POST /coach/customers/{ana}/nutrition-plans HTTP/1.1\r\nHost: x\r\nX-API-Key: {coach.key}\r\n"
        f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {PLAN_BYTES}\r\n\r\n"
    ).encode()
    slots, company = work_slots_of(served).uploads, coach.ctx.company_id
    writers = []
    for size in (0, 80, 80_000, 1_000_000, 5_000_000):
        _, writer = await asyncio.open_connection(served.host, served.port)
        writer.write(request + head + b"%PDF-1.7" * (size // 8))
        writers.append(writer)
    await until(lambda: slots.held(company) == len(writers), "all are being received")
    for writer in writers:
        writer.transport.abort()
    await until(lambda: slots.held(company) == 0, "all have ended")
    files = coach.ctx.db["fs.files"]
    assert await files.count_documents({"companyId": company}) == 0
    totals = [check for check in features.CHECKS if check.name == "file-totals"]
    [result] = await run_checks(coach.ctx.services, totals)
    assert not [each for each in result.findings if str(company) in str(each)]


async def test_body_that_does_not_arrive_in_time_is_408_and_closes(
    served: AsServed, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_parsing, "BODY_SECONDS", 0.1)
    head = f"POST /coach/customers HTTP/1.1\r\nHost: x\r\nX-API-Key: {coach.key}\r\nContent-Type: application/json\r\n"
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(served.host, served.port)
        writer.write(head.encode() + b"Content-Length: 100\r\n\r\n{")
        response = await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert response.startswith(b"HTTP/1.1 408")
    assert b"\r\nConnection: close\r\n" in response
