"""Requests that are held or streamed end when the access of their caller ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from coaching_service.app import authenticate
from coaching_service.core.auth import ALL_PERMISSIONS, owner
from coaching_service.core.database import context
from coaching_service.core.database.context import Context, Services
from coaching_service.core.http import responses
from coaching_service.core.http.handlers import HandlerDependencies, mount
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.slots import RequestSlots
from coaching_service.http_server import request_middleware
from coaching_service.people import api_keys, team
from tests.support.client import CoachClient, Reply
from tests.support.service_process import until


async def waiting_for_events(coach: CoachClient, poller: CoachClient, wait: int = 25) -> asyncio.Task[Reply]:
    """A request that waits for the next event."""
    start = (await poller.get("/coach/events")).ok()["nextCursor"]
    poll = asyncio.create_task(poller.get("/coach/events", after=start, wait=wait))
    signals = coach.ctx.services.number_signals
    await until(lambda: signals.count(coach.ctx.company_id) == 1, "the request waits")
    return poll


async def test_a_held_request_of_a_deleted_key_is_refused(coach: CoachClient) -> None:
    key = await api_keys.create(coach.ctx, "Poller")
    poll = await waiting_for_events(coach, coach.with_key(key["key"]))
    await api_keys.delete_api_key(coach.ctx, key["_id"])
    await coach.create_customer()
    assert (await asyncio.wait_for(poll, 20)).status == 401


async def test_a_held_request_of_a_deleted_key_is_refused_when_its_time_is_up(coach: CoachClient) -> None:
    key = await api_keys.create(coach.ctx, "Poller")
    poll = await waiting_for_events(coach, coach.with_key(key["key"]), wait=1)
    await api_keys.delete_api_key(coach.ctx, key["_id"])
    assert (await asyncio.wait_for(poll, 20)).status == 401


@pytest.mark.parametrize(("permission", "status"), [("customers.view", 403), ("metrics.view", 200)])
async def test_a_held_request_of_an_employee_has_the_permissions_of_now(
    coach: CoachClient, permission: str, status: int
) -> None:
    hired = await team.create(
        coach.ctx, "Eli", f"eli-{ObjectId()}@example.com", sorted(ALL_PERMISSIONS), "all", "no hash"
    )
    principal = await team.get_principal(coach.ctx.services, hired["_id"])
    assert principal is not None
    key = await api_keys.create(coach.ctx.acting_as(principal), "Eli's")
    poll = await waiting_for_events(coach, coach.with_key(key["key"]))
    session = await coach.interactive()
    remaining = sorted(ALL_PERMISSIONS - {permission})
    (await session.patch(f"/coach/employees/{hired['_id']}", {"permissions": remaining})).ok()
    unit = (await coach.get("/metrics-units")).ok()[0]["_id"]
    body = {"name": "Body", "metrics": [{"name": "Weight", "metricUnitId": unit}]}
    created = (await coach.post("/coach/metrics-sets", body)).ok(201)
    (await coach.delete(f"/coach/metrics-sets/{created['_id']}")).ok(204)
    await coach.create_customer()

    reply = await asyncio.wait_for(poll, 20)
    assert reply.status == status
    if status == 200:
        assert [event["type"] for event in reply.json["docs"]] == ["customer.created"]


async def test_a_request_that_waited_for_its_turn_is_authenticated_again(
    coach: CoachClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "RECHECK_SECONDS", 0.0)
    called, routes = [], Routes("/turn", tag="Files")

    @routes.get("", access=owner(), returns=bytes)
    async def take_turn(_: Context) -> Download:
        """Take a turn."""
        called.append(1)
        return Download("text/plain", "it", empty, etag=None)

    app = web.Application(middlewares=[request_middleware(services)])
    slots, bulk = RequestSlots(1, queued=100, seconds=60), RequestSlots(2)
    mount(app, routes.declared, HandlerDependencies(services, authenticate, slots, bulk, RequestSlots(1), body_limit=1))
    key = await api_keys.create(coach.ctx, "Waiting")
    async with TestServer(app) as server, aiohttp.ClientSession(headers={"X-API-Key": key["key"]}) as http:
        async with slots.holding(coach.ctx.slot_holder):
            waiting = asyncio.create_task(http.get(server.make_url("/turn")))
            await until(lambda: slots.queued == 1, "the request waits")
            await api_keys.delete_api_key(coach.ctx, key["_id"])
        assert (await waiting).status == 401
    assert called == []


async def empty(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
    yield b""


@pytest.mark.parametrize("is_export", [True, False])
async def test_a_download_ends_when_its_key_is_deleted(
    coach: CoachClient, services: Services, monkeypatch: pytest.MonkeyPatch, is_export: bool
) -> None:
    """As an archive that is made while it is sent, and as a stored file."""
    monkeypatch.setattr(responses, "RECHECK_SECONDS", 0.0)
    revoked = asyncio.Event()
    routes = Routes("/archive", tag="Files")

    async def read(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
        yield b"first"
        await revoked.wait()
        yield b"second"
        yield b"third"

    @routes.get("", access=owner(), returns=bytes)
    async def download(_: Context) -> Download:
        """Download it."""
        return Download("application/octet-stream", "it", read, etag=None if is_export else '"1"')

    app = web.Application(middlewares=[request_middleware(services)])
    slots, bulk = [RequestSlots(number, queued=100, seconds=60) for number in (8, 2)]
    mount(app, routes.declared, HandlerDependencies(services, authenticate, slots, bulk, RequestSlots(1), body_limit=1))
    key = await api_keys.create(coach.ctx, "Archive")
    async with TestServer(app) as server, aiohttp.ClientSession(headers={"X-API-Key": key["key"]}) as http:
        async with http.get(server.make_url("/archive")) as response:
            assert (response.status, await response.content.readexactly(5)) == (200, b"first")
            await api_keys.delete_api_key(coach.ctx, key["_id"])
            revoked.set()
            with pytest.raises(aiohttp.ClientError):
                assert b"third" not in await response.read()
        async with http.get(server.make_url("/archive")) as response:
            assert response.status == 401
