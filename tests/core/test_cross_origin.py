"""Web pages of other origins may call the REST interface without cookies and keys (contract 14, cross-origin)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings
from tests.support.client import CoachClient, Reply

ORIGIN = {"Origin": "https://app.example"}
PREFLIGHT = {**ORIGIN, "Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "x-api-key"}


def allowed(reply: Reply) -> str | None:
    """The origin whose pages may read a response, of which no header may allow credentials."""
    assert "Access-Control-Allow-Credentials" not in reply.headers
    origin: str | None = reply.headers.get("Access-Control-Allow-Origin")
    return origin


@pytest.fixture
async def page(settings: Settings, services: Services, coach: CoachClient) -> AsyncIterator[CoachClient]:
    """A client with a session, of a service that has an origin in CORS_ORIGINS."""
    configured = settings.model_copy(update={"cors_origins": ("https://app.example",)})
    server = TestServer(create_app(configured, services))
    await server.start_server()
    bearer = (await coach.interactive())._headers["Authorization"].removeprefix("Bearer ")
    client = CoachClient(server, None, coach.ctx, bearer=bearer)
    yield client
    await client.close()
    await server.close()


async def test_a_page_reads_responses_and_errors_with_a_session(page: CoachClient) -> None:
    for path, status in [("/me", 200), ("/coach/customers", 400), ("/coach/customers/0123456789abcdef01234567", 404)]:
        reply = await page.send("GET", path, headers=ORIGIN)
        assert (reply.status, allowed(reply)) == (status, "https://app.example")
        assert "Origin" in reply.headers["Vary"]
    assert "X-Change-Id" in reply.headers["Access-Control-Expose-Headers"]


async def test_other_origins_and_other_paths_are_not_allowed(page: CoachClient) -> None:
    other = await page.send("GET", "/me", headers={"Origin": "https://app.example.evil.example"})
    assert (allowed(other), other.headers["Vary"]) == (None, "Origin")
    assert allowed(await page.send("GET", "/me")) is None
    page.checks = False
    for path in ("/swagger-json", "/app/login", "/mcp", "/healthz", "/nowhere"):
        assert allowed(await page.send("GET", path, headers=ORIGIN)) is None
    assert allowed(await page.send("OPTIONS", "/mcp", headers=PREFLIGHT)) is None


async def test_keys_are_not_allowed(page: CoachClient, coach: CoachClient) -> None:
    assert coach.key is not None
    by_header = await page.with_key(coach.key).send("GET", "/me", headers=ORIGIN)
    as_bearer = await page.with_bearer(coach.key).send("GET", "/me", headers=ORIGIN)
    assert [(reply.status, allowed(reply)) for reply in (by_header, as_bearer)] == [(200, None)] * 2


async def test_a_preflight_allows_no_key(page: CoachClient) -> None:
    page.checks = False
    reply = await page.send("OPTIONS", "/coach/customers/0123456789abcdef01234567", headers=PREFLIGHT)
    assert (reply.status, allowed(reply)) == (204, "https://app.example")
    assert "PATCH" in reply.headers["Access-Control-Allow-Methods"]
    names = reply.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert {"authorization", "content-type", "idempotency-key", "prefer"} <= set(names)
    assert "x-api-key" not in names
    refused = await page.send("OPTIONS", "/me", headers={**PREFLIGHT, "Origin": "https://other.example"})
    assert (refused.status, allowed(refused)) == (405, None)


async def test_nothing_is_allowed_by_default(coach: CoachClient) -> None:
    reply = await (await coach.interactive()).send("GET", "/me", headers=ORIGIN)
    assert allowed(reply) is None
    assert "Vary" not in reply.headers
    assert (await coach.send("OPTIONS", "/me", headers=PREFLIGHT)).status == 405
