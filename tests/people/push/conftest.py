"""Notifications reach a push service on this machine, from an application with a database of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.own_application import OwnApplication, running_application
from tests.support.push_service import PushService, push_service


@pytest.fixture(scope="package")
async def application(settings: Settings, password_hash: str) -> AsyncIterator[OwnApplication]:
    """The application that sends notifications."""
    async with running_application(settings, "push", password_hash) as running:
        yield running


@pytest.fixture
async def coach(application: OwnApplication) -> AsyncIterator[CoachClient]:
    """A company's owner on that database, with an API key."""
    client = await application.new_coach()
    yield client
    await client.close()


@pytest.fixture
async def phones() -> AsyncIterator[PushService]:
    """A push service with its devices."""
    async with push_service() as started:
        yield started
