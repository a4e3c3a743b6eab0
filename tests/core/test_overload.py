"""Limits of waiting requests."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.core.errors import Unavailable
from coaching_service.core.http.availability import Availability, RequestSlots
from coaching_service.settings import Settings
from tests.support.client import CoachClient


async def test_requests_beyond_the_queue_are_refused_at_once() -> None:
    slots = RequestSlots(running=1, queued=2, seconds=1000)
    await slots.acquire()
    waiting = [asyncio.create_task(slots.acquire()) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable) as raised:
        await slots.acquire()
    assert raised.value.headers == {"Retry-After": "1"}
    for _ in range(2):
        slots.release()
    assert await asyncio.gather(*waiting) == [True, True]


async def test_request_waits_for_a_limited_time() -> None:
    slots = RequestSlots(running=1, queued=2, seconds=0.01)
    await slots.acquire()
    for _ in range(3):  # a request that is cancelled leaves the queue
        with pytest.raises(Unavailable, match="busy"):
            await slots.acquire()
    slots.release()
    assert await slots.acquire()


async def test_earlier_waits_of_a_request_count() -> None:
    slots = RequestSlots(running=1, queued=2, seconds=1000)
    async with slots.holding(waited=0):
        with pytest.raises(Unavailable, match="busy"):
            async with slots.holding(waited=1000):
                pass
    async with slots.holding(waited=1000):
        assert slots.locked()


async def test_sign_in_waits_for_others_for_a_limited_time(settings: Settings) -> None:
    """One password is checked at a time."""
    hurried = settings.model_copy(update={"request_queue_seconds": 0.05})
    async with runtime.open_services(hurried) as services, TestServer(create_app(hurried, services)) as server:
        client = CoachClient(server, None, None)
        credentials = {"email": "nobody@overload.test", "password": "correct horse battery"}
        async with services.sign_in_lock:
            reply = await client.post("/auth/login", credentials)
            reply.refused(503, "busy")
            assert reply.headers["Retry-After"] == "1"
        (await client.post("/auth/login", credentials)).refused(401)
        await client.close()


async def test_starting_service_responds_503_to_all_but_health_checks(settings: Settings, services: Services) -> None:
    availability = Availability("starting")
    async with TestServer(create_app(settings, services, availability)) as server:
        client = CoachClient(server, None, None)
        (await client.get("/healthz")).ok()
        for path in ("/readyz", "/me", "/docs", "/app", "/unknown"):
            reply = await client.get(path)
            assert (reply.status, reply.headers["Retry-After"]) == (503, "1"), path
        availability.ready.set()
        (await client.get("/readyz")).ok()
        availability.stop()
        (await client.get("/readyz")).refused(503, "stopping")
        (await client.get("/docs")).ok()
        await client.close()
