"""Webhooks reach receivers on this machine, on a database of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count

import pytest
from aiohttp.test_utils import BaseTestServer, TestServer

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.core.database.context import Context, Services
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.team import service as team
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.figures import pause_renewal
from tests.support.webhook_deliveries import NewCoach
from tests.support.webhooks import Receiver, receiving

RETRY_SECONDS = (0.1, 0.2)
_numbers = count()


@pytest.fixture(scope="package")
async def own_settings(settings: Settings) -> Settings:
    """Settings with which webhooks reach this machine, and are retried at once."""
    return settings.model_copy(
        update={
            "mongodb_database": f"{settings.mongodb_database}_webhooks",
            "webhooks_allow_http": True,
            "webhooks_allow_private": True,
            "webhook_retry_seconds": RETRY_SECONDS,
        }
    )


@pytest.fixture(scope="package")
async def own_services(own_settings: Settings) -> AsyncIterator[Services]:
    """Services on that database."""
    async with runtime.open_services(own_settings) as services:
        await services.db.client.drop_database(own_settings.mongodb_database)
        await runtime.make_indexes(services)
        await pause_renewal(services)
        yield services


@pytest.fixture(scope="package")
async def own_server(own_settings: Settings, own_services: Services) -> AsyncIterator[BaseTestServer]:
    """The application that sends the webhooks."""
    async with TestServer(create_app(own_settings, own_services)) as server:
        yield server


@pytest.fixture
async def new_coach(own_services: Services, own_server: BaseTestServer, password_hash: str) -> AsyncIterator[NewCoach]:
    """Makes a company on that database; returns a client with its owner's key."""
    clients: list[CoachClient] = []

    async def make() -> CoachClient:
        email = f"owner{next(_numbers)}@webhooks.test"
        owner = await team.create_company(Context(own_services), "Company", "Olga Owner", email, password_hash)
        ctx = Context(own_services).acting_as(replace(owner, via="apiKey"))
        clients.append(CoachClient(own_server, (await api_keys.create(ctx, "Test"))["key"], ctx))
        return clients[-1]

    yield make
    for client in clients:
        for webhook in (await client.get("/coach/webhooks")).ok():
            (await client.delete(f"/coach/webhooks/{webhook['_id']}")).ok(204)
        await client.close()


@pytest.fixture
async def coach(new_coach: NewCoach) -> CoachClient:
    """A company's owner."""
    return await new_coach()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver of webhooks."""
    async with receiving() as started:
        yield started
