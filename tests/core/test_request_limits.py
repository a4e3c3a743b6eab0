"""RATE_LIMIT_PER_MINUTE limits the requests of each credential, over all processes (contract 14, limits)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.rate_limits import RateLimitExceeded, TokenBuckets
from coaching_service.settings import Settings
from tests.support import other_process
from tests.support.client import UNKNOWN, CoachClient
from tests.support.mcp_client import McpHttpClient
from tests.support.oauth_flow import signed_in
from tests.support.sampled import proof

LIMIT = 5  # one token in 12 seconds


@pytest.fixture
async def limited(settings: Settings, services: Services) -> AsyncIterator[TestServer]:
    """The service with a limit of 5 requests a minute."""
    server = TestServer(create_app(settings.model_copy(update={"rate_limit_per_minute": LIMIT}), services))
    await server.start_server()
    yield server
    await server.close()


@pytest.fixture
async def caller(limited: TestServer, coach: CoachClient) -> AsyncIterator[CoachClient]:
    """The coach's key at that service."""
    client = CoachClient(limited, coach.key, coach.ctx)
    yield client
    await client.close()


async def test_each_response_reports_what_remains_and_the_next_request_is_refused(caller: CoachClient) -> None:
    paths = ["/me", "/coach/customers", f"/coach/customers/{UNKNOWN}", "/coach/account", "/me"]
    replies = [await caller.send("GET", path) for path in paths]
    assert [reply.status for reply in replies] == [200, 400, 404, 200, 200]
    assert [reply.headers["RateLimit"] for reply in replies] == [f'"requests";r={r};t=12' for r in (4, 3, 2, 1, 0)]
    refused = await caller.send("GET", "/me")
    error = refused.refused(429, "Too many requests")
    assert (error["statusCode"], error["error"], error["code"]) == (429, "Too Many Requests", "RATE_LIMIT_EXCEEDED")
    assert 1 <= int(refused.headers["Retry-After"]) <= 12
    assert refused.headers["RateLimit"] == f'"requests";r=0;t={refused.headers["Retry-After"]}'
    assert {each.headers["RateLimit-Policy"] for each in [*replies, refused]} == {f'"requests";q={LIMIT};w=60'}


async def test_keys_sessions_assistants_and_browsers_have_buckets_of_their_own(
    limited: TestServer, caller: CoachClient
) -> None:
    bearer = await caller.interactive()
    for client in (caller, bearer):
        assert [(await client.get("/me")).status for _ in range(LIMIT + 1)] == [200] * LIMIT + [429]
    async with McpHttpClient(limited, {"X-API-Key": caller.key or ""}) as mcp:
        assistant = await mcp.request("tools/list")
    assert (assistant.status, assistant.json["code"]) == (429, "RATE_LIMIT_EXCEEDED"), "the key's bucket, on /mcp too"
    caller.checks = False
    assert (await caller.with_key("cs_ak_unknown").get("/me")).status == 401
    assert "RateLimit" not in (await caller.get("/healthz")).headers


async def test_a_browser_sees_a_page_that_says_what_to_do(limited: TestServer, coach: CoachClient) -> None:
    browser = await signed_in(limited, coach)
    page = await browser.get("/app/customers")
    assert page.headers["RateLimit"].startswith('"requests";r=')
    for _ in range(LIMIT):
        page = await browser.get("/app/customers")
    assert page.status == 429
    assert "Wait a moment, then reload the page" in page.text
    assert page.headers["Retry-After"]
    assert (await browser.get("/app/nothing-here")).status == 429
    await browser.close()


async def test_nothing_is_counted_by_default(coach: CoachClient, services: Services) -> None:
    reply = await coach.get("/me")
    assert not [name for name in reply.headers if name.lower().startswith("ratelimit")]
    key_id = (await (await coach.interactive()).get("/coach/api-keys")).ok()[0]["_id"]
    assert await services.db["rateLimits"].find_one({"_id": ObjectId(key_id)}) is None


async def test_processes_share_a_bucket_and_return_what_they_do_not_use(coach: CoachClient, services: Services) -> None:
    """Two processes by a clock of this test; with 600 a minute each takes 10 tokens at a time."""
    seconds = 0.0
    first, second = (TokenBuckets(services, 600, lambda: seconds) for _ in range(2))
    credential = coach.ctx.caller.id
    assert await first.take(credential) == 599
    assert await second.take(credential) in range(580, 600)
    seconds += 1.5
    remaining = await first.take(credential)
    assert remaining >= 588, "the nine tokens of the first second are returned"
    taken, started = 3, time.monotonic()
    with pytest.raises(RateLimitExceeded):
        while True:
            await (first, second)[taken % 2].take(credential)
            taken += 1
    refilled = 10 * (time.monotonic() - started) + 1
    assert 580 <= taken <= 600 + refilled + 10
    seconds += 1.0
    later = [{"$set": {"until": {"$subtract": ["$until", 1000]}}}]  # the database's clock is not the test's
    await services.db["rateLimits"].update_one({"_id": credential}, later)
    assert await second.take(credential) >= 0, "a second later there are tokens again"


@proof
async def test_two_real_processes_accept_no_more_than_one(
    settings: Settings, coach: CoachClient, tmp_path: Path
) -> None:
    """Together they accept the bucket, what is refilled meanwhile, and at most one second's worth more."""
    limit = 60
    async with AsyncExitStack() as stack:
        both = [
            await stack.enter_async_context(
                other_process.running(settings, coach.key, tmp_path / name, RATE_LIMIT_PER_MINUTE=str(limit))
            )
            for name in ("first", "second")
        ]
        started = time.monotonic()
        statuses = await asyncio.gather(*(each.send("GET", "/me") for _ in range(limit) for each in both))
        elapsed = time.monotonic() - started
    accepted = statuses.count(200)
    assert accepted + statuses.count(429) == 2 * limit
    assert limit <= accepted <= limit + limit / 60 * (elapsed + 1)
