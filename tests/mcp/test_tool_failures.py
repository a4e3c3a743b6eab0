"""Tool results when a change fails at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import motor.core
import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database.connection import Deadlines, connect, database
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings
from tests.support.client import MONDAY, CoachClient
from tests.support.declared_world import World, make_world
from tests.support.mcp_client import McpHttpClient, tool_error, tool_result
from tests.support.wire import DateTime, Wire, wire_to


@dataclass
class Fragile:
    """The door of a service that reaches its database over a wire of the story's."""

    mcp: McpHttpClient
    wire: Wire


@pytest.fixture
async def fragile(settings: Settings, services: Services, coach: CoachClient) -> AsyncIterator[Fragile]:
    """With the coach's key."""
    async with wire_to(str(settings.mongodb_uri)) as (wire, uri):
        client = connect(uri, Deadlines(selection=0.3))
        app = create_app(settings, replace(services, db=database(client, settings.mongodb_database)))
        app.cleanup_ctx.clear()  # no background jobs: the test sends every command to the database
        async with TestServer(app) as server, McpHttpClient(server, {"X-API-Key": str(coach.key)}) as mcp:
            yield Fragile(mcp, wire)
        await asyncio.to_thread(client.close)  # it says goodbye over the wire, which is passed on here


@pytest.fixture
async def world(coach: CoachClient) -> World:
    return await make_world(coach)


async def test_committed_change_is_reported_despite_later_failures(
    fragile: Fragile, coach: CoachClient, world: World
) -> None:
    """All that the answer tells has been read by then."""

    async def client_is_erased() -> bool:
        (await coach.delete(f"/coach/customers/{world['customerId']}")).ok(204)
        return True

    fragile.wire.wait_for(DateTime("commitTransaction", done=True), client_is_erased)
    about = {name: world[name] for name in ("customerId", "metricsSetId", "metricId")}
    result = await fragile.mcp.call("record_metric", **about, date=MONDAY, value=70)

    assert fragile.wire.reached.is_set()
    assert (tool_result(result)["customer"]["name"], tool_result(result)["value"]) == ("Ana", 70)


async def test_unknown_commit_result_advises_to_check(
    fragile: Fragile, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(motor.core, "_WITH_TRANSACTION_RETRY_TIME_LIMIT", 0)  # it would ask again for two minutes
    fragile.wire.wait_for(DateTime("commitTransaction", done=True), fragile.wire.cut)

    said = tool_error(await fragile.mcp.call("create_customer", name="Ana"), "database", "check whether it was made")

    assert "nothing was changed" not in said
    assert await coach.names() == ["Ana"]
