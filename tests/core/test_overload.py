"""Limits of waiting requests."""

from __future__ import annotations

from aiohttp.test_utils import TestServer

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.http_server import Availability
from coaching_service.settings import Settings
from tests.support.client import CoachClient


async def test_sign_in_waits_for_others_for_a_limited_time(settings: Settings) -> None:
    """One password is checked at a time."""
    hurried = settings.model_copy(update={"request_queue_seconds": 0.05})
    async with runtime.open_services(hurried) as services, TestServer(create_app(hurried, services)) as server:
        client = CoachClient(server, None, None)
        credentials = {"email": "nobody@overload.test", "password": "correct horse battery"}
        async with services.sign_in_slot.holding("another"):
            reply = await client.post("/auth/login", credentials)
            reply.refused(503, "busy")
            assert reply.headers["Retry-After"] == "1"
        (await client.post("/auth/login", credentials)).refused(401)
        await client.close()


async def test_authentication_that_takes_too_long_is_not_blamed_on_the_database(
    coach: CoachClient, settings: Settings
) -> None:
    hurried = settings.model_copy(update={"request_queue_seconds": 1e-6})
    async with runtime.open_services(hurried) as services, TestServer(create_app(hurried, services)) as server:
        client = CoachClient(server, coach.key, None)
        (await client.get("/me")).refused(503, "The service is busy")
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
        (await client.get("/docs/docs.js")).ok()
        await client.close()
