"""Clients of the MCP endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Unpack

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core import rate_limits
from coaching_service.core.database.context import Services
from coaching_service.people import api_keys
from coaching_service.people.api_keys import NewRestrictions
from coaching_service.training.workouts import plan_changes
from tests.support.client import CoachClient
from tests.support.mcp_client import TODAY, McpHttpClient
from tests.support.oauth_flow import OAuthApplication, register, signed_in
from tests.support.visitor import Visitor


@pytest.fixture(autouse=True)
def usual_first_load(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads of clients without a history are not asked about, where a test is not about that."""
    if request.module.__name__.rpartition(".")[2] not in ("test_unusual_amounts", "test_jobs", "test_hostile_run"):
        monkeypatch.setattr(plan_changes, "MAX_FIRST_KG", 500)


@pytest.fixture(autouse=True)
def fixed_day(request: pytest.FixtureRequest) -> None:
    """The day of tests that name it is fixed, so that no result depends on when they run."""
    if getattr(request.module, "TODAY", None) == TODAY:
        request.getfixturevalue("wednesday")


@pytest.fixture
async def mcp(public_server: TestServer, coach: CoachClient) -> AsyncIterator[McpHttpClient]:
    """POSTs to /mcp with the coach's key."""
    async with McpHttpClient(public_server, {"X-API-Key": coach.key or ""}) as client:
        yield client


@pytest.fixture
async def with_key(public_server: TestServer, coach: CoachClient) -> AsyncIterator[Any]:
    """Creates clients of /mcp with a key of the coach that has these restrictions."""
    clients: list[McpHttpClient] = []

    async def make(**restrictions: Unpack[NewRestrictions]) -> McpHttpClient:
        key = (await api_keys.create(coach.ctx, "Test", restrictions))["key"]
        clients.append(McpHttpClient(public_server, {"X-API-Key": key}))
        return clients[-1]

    yield make
    for client in clients:
        await client.__aexit__()


@pytest.fixture
async def session(coach: CoachClient) -> CoachClient:
    """The coach's interactive session."""
    return await coach.interactive()


@pytest.fixture
async def unauthenticated(public_server: TestServer, services: Services) -> AsyncIterator[McpHttpClient]:
    """POSTs to /mcp without a credential; registrations of other tests are not counted."""
    await rate_limits.reset(services, "register", "127.0.0.1")
    async with McpHttpClient(public_server, {}) as client:
        yield client


@pytest.fixture
async def browser(public_server: TestServer, coach: CoachClient) -> AsyncIterator[Visitor]:
    """The coach's browser, signed in."""
    visitor = await signed_in(public_server, coach)
    yield visitor
    await visitor.close()


@pytest.fixture
async def signed_out_browser(public_server: TestServer) -> AsyncIterator[Visitor]:
    """A browser without a signed-in user."""
    visitor = Visitor(public_server)
    yield visitor
    await visitor.close()


@pytest.fixture
async def application(unauthenticated: McpHttpClient) -> OAuthApplication:
    """A public client that has registered."""
    return await register(unauthenticated)
