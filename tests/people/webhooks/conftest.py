"""Webhooks reach receivers on this machine, from an application with a database of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from coaching_service.core.database.context import Services
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.own_application import OwnApplication, running_application
from tests.support.webhook_deliveries import NewCoach
from tests.support.webhooks import Receiver, receiving


@pytest.fixture(scope="package")
async def application(settings: Settings, password_hash: str) -> AsyncIterator[OwnApplication]:
    """The application that sends the webhooks."""
    async with running_application(settings, "webhooks", password_hash) as running:
        yield running


@pytest.fixture
def own_services(application: OwnApplication) -> Services:
    """The services of that application."""
    return application.services


@pytest.fixture
async def new_coach(application: OwnApplication) -> AsyncIterator[NewCoach]:
    """Makes a company on that database; returns a client with its owner's key."""
    clients: list[CoachClient] = []

    async def make() -> CoachClient:
        clients.append(await application.new_coach())
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
