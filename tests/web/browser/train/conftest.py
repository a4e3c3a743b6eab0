"""A client with a superset to do today, and the phone on which it is done."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, BrowserContext, Page

from coaching_service.web import static_files
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.web.browser.phone import PHONE, Complaints, Trainee, superset_today

USUAL_PATIENCE = static_files.PATIENCE_MILLISECONDS


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[pytest.MonkeyPatch]:
    """Show no saved page while a busy machine is slow to answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(static_files, "PATIENCE_MILLISECONDS", 60_000)
        yield patch


@pytest.fixture
def usual_patience(patience: pytest.MonkeyPatch) -> Iterator[None]:
    """Show saved pages when the service does."""
    with patience.context() as patch:
        patch.setattr(static_files, "PATIENCE_MILLISECONDS", USUAL_PATIENCE)
        yield


@pytest.fixture
async def ana(coach: CoachClient) -> Trainee:
    """A client with a password and a superset to do today."""
    email = f"ana-{secrets.token_hex(6)}@example.com"
    customer = await coach.create_customer("Ana", email=email, sendInvitation=False)
    first = {"token": customer["firstAccessToken"], "password": PASSWORD}
    (await coach.post("/auth/first-access", first)).ok()
    return await superset_today(coach, {**customer, "email": email})


@pytest.fixture
async def observed() -> AsyncIterator[Complaints]:
    """The errors on the phone's pages."""
    recorded = Complaints()
    yield recorded
    assert recorded.unexpected() == []


@pytest.fixture
async def phone(
    chromium: Browser, public_server: TestServer, ana: Trainee, observed: Complaints
) -> AsyncIterator[BrowserContext]:
    """The client's phone, signed in."""
    context = await chromium.new_context(base_url=str(public_server.make_url("/")), **PHONE)
    observed.watch(context, public_server)
    await ana.sign_in(context, public_server)
    yield context
    await context.close()


@pytest.fixture
async def page(phone: BrowserContext, ana: Trainee) -> Page:
    """The page of the workout."""
    opened = await phone.new_page()
    await opened.goto(ana.path)
    return opened
