"""Tool results when a change fails at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database import context
from coaching_service.core.database.connection import Deadlines, connect, database
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.database_proxy import DatabaseProxy, Moment, proxy_to
from tests.support.mcp_client import TODAY, McpHttpClient, tool_change, tool_error
from tests.support.training import client_path, metric_set


@dataclass
class ServiceBehindProxy:
    """A service that reaches its database through a proxy, and a client of its /mcp."""

    mcp: McpHttpClient
    proxy: DatabaseProxy


@pytest.fixture
async def behind_proxy(settings: Settings, services: Services, coach: CoachClient) -> AsyncIterator[ServiceBehindProxy]:
    """Requests have the coach's key."""
    async with proxy_to(str(settings.mongodb_uri)) as (proxy, uri):
        client = connect(uri, Deadlines(operation=2, selection=0.3))
        app = create_app(settings, replace(services, db=database(client, settings.mongodb_database)))
        app.cleanup_ctx.clear()  # no background jobs: the test sends every command to the database
        async with TestServer(app) as server, McpHttpClient(server, {"X-API-Key": str(coach.key)}) as mcp:
            yield ServiceBehindProxy(mcp, proxy)
        await asyncio.to_thread(client.close)  # it sends its last commands through the proxy, which this loop runs


async def test_committed_change_is_reported_despite_later_failures(
    behind_proxy: ServiceBehindProxy, coach: CoachClient
) -> None:
    """Everything that the response contains was read before the commit."""
    ana, body = await coach.create_customer("Ana"), await metric_set(coach)
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)

    async def client_is_erased() -> bool:
        (await coach.delete(client_path(ana))).ok(204)
        return True

    behind_proxy.proxy.wait_for(Moment("commitTransaction", done=True), client_is_erased)
    about = {"customerId": ana["_id"], "metricsSetId": body["_id"], "metricId": body["metrics"][0]["_id"]}
    result = await behind_proxy.mcp.call("record_metric", **about, date=TODAY, value=70)

    assert behind_proxy.proxy.reached.is_set()
    change = tool_change(result)
    assert ("for «Ana»" in change["summary"], change["value"]) == (True, 70)


async def test_unknown_commit_result_advises_to_check(
    behind_proxy: ServiceBehindProxy, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = context.in_transaction.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "patience", 0.0)  # it would repeat for 20 seconds
    behind_proxy.proxy.wait_for(Moment("commitTransaction", done=True), behind_proxy.proxy.cut)

    error = tool_error(
        await behind_proxy.mcp.call("create_customer", name="Ana"), "It may have been saved", "Look before"
    )

    assert "nothing was changed" not in error
    assert await coach.names() == ["Ana"]
