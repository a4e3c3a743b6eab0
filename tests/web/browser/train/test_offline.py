"""Pages that open without a connection: saved by the service worker, encrypted, and gone with the session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from multidict import CIMultiDict
from playwright.async_api import Browser, BrowserContext, Page, expect
from yarl import URL

from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from tests.support.client import CoachClient
from tests.support.sampled import MORE
from tests.support.service_process import until
from tests.web.browser.conftest import picture, serious
from tests.web.browser.phone import PHONE, Complaints, Trainee, sign_client_in, superset_today

SAVED_BAR = ".saved-bar"
OPENED_SECONDS = 1.5
# What is stored on the device: the session, and the paths and contents of the saved pages, as text.
READ_STORED = """async () => {
  const names = (await indexedDB.databases()).map(({ name }) => name);
  if (!names.includes("train-pages")) return { sessions: [], paths: [], texts: [] };
  const database = await new Promise((resolve, reject) => {
    const request = indexedDB.open("train-pages");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const stores = [...database.objectStoreNames];
  const all = (name) => new Promise((resolve) => {
    const request = database.transaction(name).objectStore(name).getAll();
    request.onsuccess = () => resolve(request.result);
  });
  const sessions = stores.includes("session") ? await all("session") : [];
  const pages = stores.includes("pages") ? await all("pages") : [];
  database.close();
  return {
    sessions: sessions.map(({ id }) => id),
    extractable: sessions.map(({ key }) => key.extractable),
    paths: pages.map(({ path }) => path).sort(),
    texts: pages.map(({ content }) => new TextDecoder().decode(content)),
  };
}"""


async def stored(page: Page) -> Any:
    """What is stored on the device."""
    return await page.evaluate(READ_STORED)


async def saved(page: Page, *paths: str) -> Any:
    """What is stored once these pages and the static files are."""

    async def is_saved() -> Any:
        found = await stored(page)
        files = await page.evaluate("async () => (await (await caches.open('train-files')).keys()).length")
        return found if files >= 7 and {"/train", *paths} <= set(found["paths"]) else None

    return await until(is_saved, "the pages are saved", 60)


@pytest.fixture
async def home(phone: BrowserContext, ana: Trainee, observed: Complaints) -> Page:
    """The page of today, with the workout saved on the phone."""
    observed.expected += ("status of 503", "503: ")
    opened = await phone.new_page()
    await opened.goto("/train")
    await saved(opened, ana.path)
    return opened


async def _is_empty(page: Page) -> bool:
    found = await stored(page)
    return found["paths"] == [] and found["sessions"] == []


async def _has_worker(page: Page) -> bool:
    return bool(await page.evaluate("async () => Boolean(await navigator.serviceWorker.getRegistration())"))


async def test_a_killed_tab_opens_without_a_network_and_what_is_saved_is_encrypted_until_the_user_signs_out(
    home: Page, phone: BrowserContext, ana: Trainee
) -> None:
    found = await stored(home)
    assert found["extractable"] == [False]
    assert "Upper body" in await home.content()
    assert not [text for text in found["texts"] if "Upper body" in text or "<html" in text]

    await home.goto(ana.path)
    await ana.done(home, 0, 1).tap()
    await expect(ana.state(home, 0, 1)).to_have_text("Done")
    await phone.set_offline(True)
    await ana.done(home, 0, 2).tap()
    await expect(ana.state(home, 0, 2)).to_have_text("Not sent yet")
    await home.close()

    seconds = []
    for _ in range(3 if MORE > 1 else 1):  # the fastest: others wait for a busy machine
        reopened = await phone.new_page()
        began = time.monotonic()
        await reopened.goto(ana.path)
        await expect(ana.state(reopened, 0, 1)).to_have_text("Done")
        seconds.append(time.monotonic() - began)
    assert MORE == 1 or min(seconds) < OPENED_SECONDS
    await expect(ana.state(reopened, 0, 2)).to_have_text("Not sent yet")
    await expect(reopened.locator(SAVED_BAR)).to_contain_text("No connection. This page was saved at")
    await ana.done(reopened, 1, 1).tap()
    await expect(ana.state(reopened, 1, 1)).to_have_text("Not sent yet")
    await picture(reopened, "small", "train-offline-workout")
    assert await serious(reopened) == []

    await phone.set_offline(False)
    await expect(reopened.locator(SAVED_BAR)).to_contain_text("You are online again.")
    await expect(ana.state(reopened, 1, 1)).to_have_text("Done")
    assert await ana.sets(0) == [(1, 8, 60, True), (2, 8, 60, True)]
    await reopened.get_by_role("link", name="Show the page as it is now").tap()
    await expect(reopened.locator(SAVED_BAR)).to_have_count(0)

    await reopened.goto("/train/settings")
    await reopened.get_by_role("button", name="Sign out").tap()
    await reopened.wait_for_url("**/app/sign-in?next=/train")
    await until(lambda: _is_empty(reopened), "nothing is stored", 30)
    await phone.set_offline(True)
    await reopened.goto("/train", wait_until="commit") if await _has_worker(reopened) else None
    assert "Upper body" not in await reopened.content()


async def test_today_tomorrow_and_what_was_added_or_opened_open_and_other_pages_say_that_they_are_not_saved(
    phone: BrowserContext, ana: Trainee, observed: Complaints
) -> None:
    observed.expected += ("status of 503", "503: ")
    tomorrow = ana.coach.ctx.caller.today() + timedelta(days=1)
    later = await ana.coach.schedule(ana.customer, str(tomorrow), "Legs of tomorrow")
    after = await ana.coach.schedule(ana.customer, str(tomorrow + timedelta(days=1)), "Later")
    page = await phone.new_page()
    await page.goto("/train")
    found = await saved(page, ana.path, f"/train/workouts/{later['_id']}", "/train/calendar")
    assert f"/train/workouts/{after['_id']}" not in found["paths"]
    await phone.set_offline(True)
    await page.goto("/train")
    await page.locator("a.days-start").tap()
    await expect(page.get_by_role("heading", name="Upper body")).to_be_visible()
    await page.goto(f"/train/workouts/{later['_id']}")
    await expect(page.get_by_role("heading", name="Legs of tomorrow")).to_be_visible()
    await page.goto("/train/settings/data")
    await expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    assert "Ana" not in await page.content()
    await page.get_by_role("link", name="Open Today").tap()
    await expect(page.get_by_role("heading", name="Today")).to_be_visible()

    await phone.set_offline(False)
    today = ana.coach.ctx.caller.today()
    added = await ana.coach.schedule(ana.customer, str(today), "Added now")
    later = await ana.coach.schedule(ana.customer, str(today + timedelta(days=9)), "Opened before")
    await page.goto("/train")
    await saved(page, f"/train/workouts/{added['_id']}")
    await page.goto(f"/train/workouts/{later['_id']}")
    await saved(page, f"/train/workouts/{later['_id']}", "/train/add-workout")
    await phone.set_offline(True)
    for block, name in ((added, "Added now"), (later, "Opened before")):
        await page.goto(f"/train/workouts/{block['_id']}")
        await expect(page.get_by_role("heading", name=name)).to_be_visible()
    await page.goto("/train/add-workout")
    await page.get_by_role("combobox", name="Add an exercise").tap()
    await page.get_by_role("option", name="Bench press").tap()
    await page.get_by_role("combobox", name="Add an exercise").press_sequentially("ROW seat")
    await expect(page.get_by_role("listbox", name="Exercises").get_by_role("option")).to_have_count(1)
    await page.get_by_role("option", name="Seated row").tap()
    await page.get_by_role("button", name="Add workout").tap()
    await expect(page.locator("[data-queue-bar]")).to_contain_text("1 change not sent yet")
    await phone.set_offline(False)
    await page.wait_for_url("**/train/workouts/**")
    await saved(page, "/" + page.url.split("/", 3)[3])


async def test_a_second_client_never_sees_pages_of_the_first_and_a_revoked_session_removes_its_own(
    home: Page, phone: BrowserContext, ana: Trainee, public_server: TestServer, coach: CoachClient
) -> None:
    """Also if the second session replaced the first without signing out, and the phone is offline at once."""
    ben = await superset_today(coach, await coach.create_customer("Ben"))
    (await coach.patch(f"/coach/customers/{ben.customer['_id']}/wblocks/{ben.block['_id']}", {"name": "Bens day"})).ok()
    first = (await stored(home))["sessions"]
    await sign_client_in(phone, public_server, coach, ben.customer["_id"])
    await home.goto("/train")
    await expect(home.get_by_role("heading", name="Bens day")).to_be_visible()
    found = await saved(home, ben.path)
    assert found["sessions"] != first
    assert ana.path not in found["paths"]
    await phone.set_offline(True)
    await home.goto(ana.path)
    await expect(home.get_by_role("heading", name="No connection")).to_be_visible()
    await home.goto("/train")
    await expect(home.get_by_role("heading", name="Bens day")).to_be_visible()
    assert "Upper body" not in await home.content()

    await phone.set_offline(False)
    await sessions.end_sessions(ben.coach.ctx, ObjectId(ben.customer["_id"]))
    await home.goto("/train")
    await expect(home.get_by_role("button", name="Sign in")).to_be_visible()
    await until(lambda: _is_empty(home), "nothing is stored", 30)
    await phone.set_offline(True)
    await home.goto(ben.path)
    await expect(home.get_by_role("heading", name="No connection")).to_be_visible()


class Network:
    """Stands between the phone and the server, which it can keep from answering."""

    def __init__(self, server: TestServer) -> None:
        self._server = server
        self.is_failing = False
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def forward(self, request: web.Request) -> web.Response:
        """Forward a request, once the network is open."""
        await self.is_open.wait()
        if self.is_failing and request.path == "/train":
            return web.Response(status=502, text="<h1>Bad gateway</h1>", content_type="text/html")
        url = self._server.make_url("/").join(URL(request.raw_path, encoded=True))
        async with ClientSession() as http:
            body = await request.read()
            response = await http.request(
                request.method, url, headers=request.headers, data=body, allow_redirects=False
            )
            dropped = ("Content-Length", "Content-Encoding", "Transfer-Encoding")
            headers = CIMultiDict((name, value) for name, value in response.headers.items() if name not in dropped)
            return web.Response(status=response.status, headers=headers, body=await response.read())


@pytest.fixture
async def network(public_server: TestServer) -> AsyncIterator[tuple[Network, TestServer]]:
    """A network, and where the phone reaches the server through it."""
    network = Network(public_server)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", network.forward)
    listening = TestServer(app, host="127.0.0.1")
    await listening.start_server()
    yield network, listening
    network.is_open.set()
    await listening.close()


@pytest.fixture
async def distant(
    chromium: Browser, network: tuple[Network, TestServer], ana: Trainee, observed: Complaints
) -> AsyncIterator[Page]:
    """The page of today over the network, with the workout saved on the phone."""
    observed.expected += ("502", "504", "ERR_ABORTED")
    context = await chromium.new_context(base_url=str(network[1].make_url("/")), **PHONE)
    observed.watch(context, network[1])
    await ana.sign_in(context, network[1])
    opened = await context.new_page()
    await opened.goto("/train")
    await saved(opened, ana.path)
    yield opened
    await context.close()


async def test_a_failing_server_does_not_remove_what_is_saved(
    distant: Page, network: tuple[Network, TestServer]
) -> None:
    """Such as a proxy that answers for it."""
    before = (await stored(distant))["paths"]
    network[0].is_failing = True
    await distant.goto("/train")
    await expect(distant.get_by_role("heading", name="Bad gateway")).to_be_visible()
    assert (await stored(distant))["paths"] == before


@pytest.mark.usefixtures("usual_patience")
async def test_saved_page_of_a_slow_network_goes_when_the_session_turns_out_to_have_ended(
    distant: Page, network: tuple[Network, TestServer], ana: Trainee, coach: CoachClient
) -> None:
    ben = await superset_today(coach, await coach.create_customer("Ben"))
    (await coach.patch(f"/coach/customers/{ben.customer['_id']}/wblocks/{ben.block['_id']}", {"name": "Bens day"})).ok()
    await sign_client_in(distant.context, network[1], coach, ben.customer["_id"])
    network[0].is_open.clear()
    await distant.goto("/train")
    await expect(distant.locator(SAVED_BAR)).to_contain_text("No connection. This page was saved at")
    network[0].is_open.set()
    await expect(distant.get_by_role("heading", name="Bens day")).to_be_visible()
    assert "Upper body" not in await distant.content()
