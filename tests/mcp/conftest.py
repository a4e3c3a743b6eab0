"""Those who knock at the door for assistants."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core import rate_limits
from coaching_service.core.database.context import Services
from tests.client import CoachClient
from tests.mcp.door import Knocker
from tests.mcp.oauth import Program, register, signed_in
from tests.web.visitor import Visitor


@pytest.fixture
async def door(house: TestServer, coach: CoachClient) -> AsyncIterator[Knocker]:
    """POSTs to /mcp with the coach's key."""
    async with Knocker(house, {"X-API-Key": coach.key or ""}) as knocker:
        yield knocker


@pytest.fixture
async def stranger(house: TestServer, services: Services) -> AsyncIterator[Knocker]:
    """POSTs to /mcp without a credential; what other stories registered from here is not counted against it."""
    await rate_limits.forget(services, "register", "127.0.0.1")
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
