"""Notifications reach a push service on this machine, from an application with a database of its own."""

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
from tests.support.push_service import PushService, push_service

_numbers = count()


@pytest.fixture(scope="package")
async def own_settings(settings: Settings) -> Settings:
    """Settings with which requests reach this machine."""
    return settings.model_copy(
        update={
            "mongodb_database": f"{settings.mongodb_database}_push",
            "webhooks_allow_http": True,
            "webhooks_allow_private": True,
        }
    )


@pytest.fixture(scope="package")
async def own_services(own_settings: Settings) -> AsyncIterator[Services]:
    """Services on that database."""
    async with runtime.open_services(own_settings) as services:
        await services.db.client.drop_database(own_settings.mongodb_database)
        await runtime.make_indexes(services)
        yield services


@pytest.fixture(scope="package")
async def own_server(own_settings: Settings, own_services: Services) -> AsyncIterator[BaseTestServer]:
    """The application that sends notifications."""
    async with TestServer(create_app(own_settings, own_services)) as server:
        yield server


@pytest.fixture
async def coach(own_services: Services, own_server: BaseTestServer, password_hash: str) -> AsyncIterator[CoachClient]:
    """A company's owner on that database, with an API key."""
    email = f"owner{next(_numbers)}@push.test"
    owner = await team.create_company(Context(own_services), "Company", "Olga Owner", email, password_hash)
    ctx = Context(own_services).acting_as(replace(owner, via="apiKey"))
    client = CoachClient(own_server, (await api_keys.create(ctx, "Test"))["key"], ctx)
    yield client
    await client.close()


@pytest.fixture
async def phones() -> AsyncIterator[PushService]:
    """A push service with its devices."""
    async with push_service() as started:
        yield started
