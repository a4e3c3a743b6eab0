"""A client trains with a phone: from the mail to the last set, without a network in between, and after a crash."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, BrowserContext, Page, Route, expect

from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.sampled import proof
from tests.web.browser.conftest import CHROMIUM_ARGUMENTS, find_chromium
from tests.web.browser.phone import PHONE, Complaints, Thumb, Trainee, superset_today

MOST_TAPS, MOST_FIELDS = 6, 2


async def lose_one_answer(page: Page) -> None:
    """The next form arrives at the server, but its answer does not arrive at the phone."""

    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort("connectionreset")

    await page.route("**/sets", lose, times=1)


async def test_from_the_mail_to_the_last_set_with_the_network_cut_in_the_middle(
    chromium: Browser, public_server: TestServer, coach: CoachClient
) -> None:
    """Begin at the link that `test_invitation_leads_to_the_first_access_of_the_client` takes from the mail."""
    context = await chromium.new_context(base_url=str(public_server.make_url("/")), **PHONE)
    observed = Complaints(expected=("ERR_INTERNET_DISCONNECTED", "ERR_CONNECTION_RESET"))
    observed.watch(context, public_server)
    email = f"ana-{secrets.token_hex(6)}@example.com"
    ana = await superset_today(coach, await coach.create_customer("Ana", email=email, sendInvitation=False))

    thumb = Thumb(taps=1)  # on the link in the mail
    page = await context.new_page()
    await page.goto(f"/train/first-access?token={ana.customer['firstAccessToken']}")
    await thumb.fill(page.get_by_label("Password"), PASSWORD)
    await thumb.tap(page.get_by_role("button", name="Start training"))
    await thumb.tap(page.locator(f"a[href='{ana.path}']").first)
    await thumb.tap(ana.done(page, 0, 1))
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    assert await ana.sets(0) == [(1, 8, 60, True)]
    stored = (await coach.get(f"/coach/customers/{ana.customer['_id']}")).ok()
    assert stored["timezone"] == await page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    assert thumb.taps <= MOST_TAPS
    assert thumb.fields <= MOST_FIELDS

    await lose_one_answer(page)
    await ana.done(page, 1, 1).tap()  # ends the first round
    await expect(ana.state(page, 1, 1)).to_have_text("Not sent yet")
    await expect(page.get_by_role("timer")).to_be_visible()
    await context.set_offline(True)
    await ana.row(page, 0, 2).get_by_label("Reps").fill("7")
    await ana.done(page, 0, 2).tap()
    await ana.done(page, 1, 2).tap()
    await ana.done(page, 0, 3).tap()
    await expect(ana.state(page, 0, 3)).to_have_text("Not sent yet")
    await expect(ana.done(page, 0, 3)).to_have_attribute("aria-pressed", "true")
    await page.wait_for_timeout(600)  # a second tap at once would be ignored
    await ana.done(page, 0, 3).tap()
    await expect(ana.done(page, 0, 3)).to_have_attribute("aria-pressed", "false")
    await page.wait_for_timeout(600)
    await ana.done(page, 0, 3).tap()
    await expect(page.locator("[data-queue-bar]")).to_have_text(
        "4 sets not sent yet. They are sent when you are online."
    )
    assert await ana.sets(0) == [(1, 8, 60, True)]

    await context.set_offline(False)
    await expect(page.locator("[data-queue-bar]")).to_be_hidden()
    await ana.done(page, 1, 3).tap()
    for item in (0, 1):
        for index in (1, 2, 3):
            await expect(ana.state(page, item, index)).to_have_text("Done")
    await expect(page.locator("[data-workout-progress]")).to_have_text("6 of 6 sets")

    assert await ana.sets(0) == [(1, 8, 60, True), (2, 7, 60, True), (3, 8, 60, True)]
    assert await ana.sets(1) == [(1, 10, 45, True), (2, 10, 45, True), (3, 10, 45, True)]
    await context.close()
    assert observed.unexpected() == []


async def open_profile(
    chromium: Browser, server: TestServer, profile: Path, ana: Trainee, cookies: Sequence[Any] = ()
) -> BrowserContext:
    """Start a browser of its own on a profile, in which the client signs in, or is signed in by `cookies`."""
    context = await chromium.browser_type.launch_persistent_context(
        profile,
        executable_path=find_chromium(),
        args=CHROMIUM_ARGUMENTS,
        base_url=str(server.make_url("/")),
        **PHONE,
    )
    if cookies:
        await context.add_cookies(list(cookies))
    else:
        await ana.sign_in(context, server)
    return context


def kill_browser_of(profile: Path) -> None:
    """End the browser of a profile as the system does when the phone needs memory, without a chance to save anything."""
    option = f"--user-data-dir={profile}".encode()
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            arguments = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if option in arguments and not any(each.startswith(b"--type=") for each in arguments):
            os.kill(int(process.name), signal.SIGKILL)


@proof
async def test_nothing_typed_is_lost_when_the_page_is_reloaded_or_the_browser_killed(
    chromium: Browser, public_server: TestServer, coach: CoachClient, tmp_path: Path
) -> None:
    ana = await superset_today(coach, await coach.create_customer("Ana"))
    profile = tmp_path / "profile"
    context = await open_profile(chromium, public_server, profile, ana)
    page = context.pages[0]
    await page.goto(ana.path)
    await ana.row(page, 0, 1).get_by_label("Load").fill("62,5")
    await page.reload()
    await expect(ana.row(page, 0, 1).get_by_label("Load")).to_have_value("62,5")

    await context.set_offline(True)
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Not sent yet")
    await ana.done(page, 1, 2).tap()  # ends a round: the rest begins
    await expect(page.get_by_role("timer")).to_be_visible()
    await ana.row(page, 1, 1).get_by_label("Reps").fill("9")
    await page.wait_for_timeout(300)
    cookies = await context.cookies()
    async with context.expect_event("close"):
        kill_browser_of(profile)

    context = await open_profile(chromium, public_server, profile, ana, cookies)
    page = context.pages[0]
    await page.goto(ana.path)
    await expect(ana.row(page, 1, 1).get_by_label("Reps")).to_have_value("9")
    await expect(ana.row(page, 0, 1).get_by_label("Load")).to_have_value("62,5")
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    await expect(page.get_by_role("timer")).to_be_visible()
    await expect(ana.state(page, 1, 2)).to_have_text("Done")
    assert await ana.sets(0) == [(1, 8, 62.5, True)]
    assert await ana.sets(1) == [(2, 10, 45, True)]

    await ana.done(page, 1, 1).tap()
    await expect(ana.state(page, 1, 1)).to_have_text("Done")
    assert sorted(await ana.sets(1)) == [(1, 9, 45, True), (2, 10, 45, True)]
    await page.reload()
    await expect(ana.row(page, 1, 1).get_by_label("Reps")).to_have_value("9")
    await context.close()
