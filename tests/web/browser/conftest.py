"""Chromium, and pages that record every error on them."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, BrowserContext, Locator, Page, async_playwright, expect

from coaching_service.people.sessions import service as sessions
from tests.conftest import NewCompany
from tests.support.client import CoachClient
from tests.support.declared_world import World
from tests.web.browser.sample_company import populate, populate_client

expect.set_options(timeout=30_000)  # the machine may be busy
OUTPUT = Path(__file__).parents[3] / "test-output"
# Containers run tests as root, where Chromium's own sandbox refuses to start, and give it little shared memory.
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    # Pages reach no other host, whether or not the machine has a network.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
OpenPage = Callable[..., Awaitable[Page]]


def find_chromium() -> str:
    """The path of the installed Chromium: if possible the one without windows, which takes less time."""
    paths = map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))
    path = next(filter(None, paths), None)
    assert path, "Chromium is needed: scripts/test --browser installs it"
    return path


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """The browser of this test process."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS)
        yield browser
        await browser.close()


def watch(context: BrowserContext, own: str, complaints: list[str]) -> None:
    """Record console errors, failed requests, requests to other hosts, and responses of status 400 and above."""

    def record_message(message: Any) -> None:
        is_cancellation = message.text.startswith(("htmx:afterRequest", "htmx:sendAbort"))  # by a newer request
        # Of the service worker, which the browser looks for again after each page, when the connection ends meanwhile.
        is_cancellation |= message.text == "An unknown error occurred when fetching the script."
        if message.type in ("error", "warning") and not is_cancellation:
            complaints.append(f"console: {message.text}")

    def failed(request: Any) -> None:
        if "ERR_ABORTED" not in str(request.failure):  # cancelled by navigation
            complaints.append(f"failed: {request.url} {request.failure}")

    def confirmation(request: Any) -> None:
        if not request.url.removeprefix("blob:").startswith(own):
            complaints.append(f"foreign: {request.url}")

    context.on("console", record_message)
    context.on("weberror", lambda error: complaints.append(f"script: {error.error}"))
    context.on("requestfailed", failed)
    context.on("request", confirmation)
    context.on("response", lambda r: complaints.append(f"{r.status}: {r.url}") if r.status >= 400 else None)


@pytest.fixture
async def complaints() -> AsyncIterator[list[str]]:
    """The errors on any page of the test; must be empty when the test ends."""
    results: list[str] = []
    yield results
    assert results == []


@pytest.fixture
async def open_page(chromium: Browser, public_server: TestServer, complaints: list[str]) -> AsyncIterator[OpenPage]:
    """Opens a new window; `options` are those of a browser context (viewport, color_scheme, java_script_enabled)."""
    contexts: list[BrowserContext] = []

    async def make(**options: Any) -> Page:
        own = str(public_server.make_url("/"))
        context = await chromium.new_context(base_url=own, **{"viewport": {"width": 1280, "height": 800}, **options})
        watch(context, own, complaints)
        contexts.append(context)
        return await context.new_page()

    yield make
    for context in contexts:
        await context.close()


async def picture(page: Page, look: str, name: str) -> None:
    """Save a screenshot of a page, if PICTURES is set."""
    if not os.environ.get("PICTURES"):
        return
    folder = OUTPUT / look
    folder.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=folder / f"{name}.png", full_page=True)


# Meanwhile nothing moves: a notice that appears or goes has other colors for a moment.
_RUN = """async ([part, impacts]) => {
  const still = new CSSStyleSheet();
  still.replaceSync("*, ::before, ::after { animation: none !important; transition: none !important; }");
  document.adoptedStyleSheets.push(still);
  const { violations } = await axe.run(part ?? document, { resultTypes: ["violations"], preload: false });
  document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== still);
  return violations
    .filter(({ impact }) => !impacts || impacts.includes(impact))
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" ")}`);
}"""


async def find_violations(page: Page, *impacts: str, within: Locator | None = None) -> list[str]:
    """Return the accessibility violations that axe-core finds on a page or a part of it, of any or of these impacts."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE_SCRIPT)
    part = await within.element_handle() if within else None
    found: list[str] = await page.evaluate(_RUN, [part, impacts or None])
    return [f"{page.url}: {each}" for each in found]


async def serious(page: Page, within: Locator | None = None) -> list[str]:
    """Return the serious and critical accessibility violations on a page, or in the part of it that has changed."""
    return await find_violations(page, "serious", "critical", within=within)


async def sign_in(page: Page, coach: CoachClient) -> None:
    """Start a session of the company's owner in a browser; other tests type the password."""
    session = await sessions.start_for_coach(coach.ctx, coach.ctx.caller.id)
    await page.context.add_cookies([
        {"name": "coach_session", "value": session.token, "domain": "127.0.0.1", "path": "/", "sameSite": "Lax"}
    ])  # fmt: skip


@pytest.fixture
async def page(open_page: OpenPage, coach: CoachClient) -> Page:
    """A window with the company's owner signed in."""
    opened = await open_page()
    await sign_in(opened, coach)
    return opened


@pytest.fixture(scope="session")
async def studio(new_company: NewCompany) -> tuple[CoachClient, World]:
    """A company with data for every page, and the identifiers in their paths."""
    coach = await new_company()
    return coach, await populate(coach)


@pytest.fixture(scope="session")
async def client_world(studio: tuple[CoachClient, World]) -> World:
    """The identifiers in the paths of the pages of the client who trains in the studio."""
    return await populate_client(*studio)
