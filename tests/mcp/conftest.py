"""A service that knows its own address, as OAuth needs it, and those who knock at its door for assistants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestServer, unused_port

from coaching_service.app import create_app
from coaching_service.kernel.storage.context import Services
from coaching_service.settings import Settings
from tests.client import CoachClient
from tests.mcp.door import Knocker
from tests.mcp.oauth import Program, register, signed_in
from tests.web.visitor import Visitor


@pytest.fixture(scope="session")
async def house(settings: Settings, services: Services) -> AsyncIterator[TestServer]:
    """The application on an address of its own, which it knows."""
    port = unused_port()
    address = f"http://127.0.0.1:{port}"
    app = create_app(replace(settings, base_url=address), replace(services, base_url=address))
    listening = TestServer(app, host="127.0.0.1", port=port)
    await listening.start_server()
    yield listening
    await listening.close()


@pytest.fixture
async def door(house: TestServer, coach: CoachClient) -> AsyncIterator[Knocker]:
    """POSTs to /mcp with the coach's key."""
    async with Knocker(house, {"X-API-Key": coach.key or ""}) as knocker:
        yield knocker


@pytest.fixture
async def stranger(house: TestServer) -> AsyncIterator[Knocker]:
    """POSTs to /mcp without a credential."""
    async with Knocker(house, {}) as knocker:
        yield knocker


@pytest.fixture
async def browser(house: TestServer, coach: CoachClient) -> AsyncIterator[Visitor]:
    """The coach's browser, signed in."""
    visitor = await signed_in(house, coach)
    yield visitor
    await visitor.close()


@pytest.fixture
async def passer_by(house: TestServer) -> AsyncIterator[Visitor]:
    """A browser in which nobody is signed in."""
    visitor = Visitor(house)
    yield visitor
    await visitor.close()


@pytest.fixture
async def program(stranger: Knocker) -> Program:
    """A public client that has registered."""
    return await register(stranger)
