"""Sets that the server does not accept at once: an ended session, removed items, two tabs, other networks."""

from __future__ import annotations

import re
from typing import Any

from aiohttp.test_utils import TestServer
from playwright.async_api import BrowserContext, Page, Route, expect

from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.web.browser.conftest import picture, serious
from tests.web.browser.phone import Complaints, Trainee, superset_today

BAR = "[data-queue-bar]"


def list_sent(phone: BrowserContext) -> list[str]:
    """The bodies of the sets that the server answers from now on."""
    bodies: list[str] = []
    phone.on("response", lambda got: bodies.append(str(got.request.post_data)) if got.url.endswith("/sets") else None)
    return bodies


# Of another network, and of a busy server.
FOREIGN_ANSWERS: tuple[dict[str, Any], ...] = (
    {"status": 200, "content_type": "text/html", "body": "<h1>Welcome to our WiFi</h1>"},
    {"status": 303, "headers": {"Location": "https://wifi.invalid/"}},
    {"status": 503, "headers": {"Retry-After": "1"}},
)


async def test_sets_are_sent_again_after_a_change_of_the_session_and_answers_that_are_not_the_services(
    page: Page, phone: BrowserContext, public_server: TestServer, ana: Trainee, observed: Complaints
) -> None:
    observed.expected += ("403", "503", "https://wifi.invalid/")
    await ana.sign_in(phone, public_server)  # the page has the token of an older session
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    assert await ana.sets(0) == [(1, 8, 60, True)]

    # The session changes twice while a set is sent.
    stale = await page.evaluate("({code: 'STALE_FORM', user: train.user, csrf: document.body.dataset.csrf})")
    await page.route("**/sets", lambda route: route.fulfill(status=403, json=stale), times=2)
    await ana.done(page, 0, 2).tap()
    await expect(ana.state(page, 0, 2)).to_have_text("Done")
    assert await ana.sets(0) == [(1, 8, 60, True), (2, 8, 60, True)]

    answers = list(FOREIGN_ANSWERS)

    async def intercept(route: Route) -> None:
        await route.fulfill(**answers.pop(0))

    for index in range(1, len(FOREIGN_ANSWERS) + 1):
        await page.route("**/sets", intercept, times=1)
        await ana.done(page, 1, index).tap()
        await expect(page.locator(BAR)).to_contain_text("1 set not sent yet")
        await expect(ana.state(page, 1, index)).to_have_text("Done")  # it is sent again by itself
        await expect(page.locator(BAR)).to_be_hidden()
        assert await ana.sets(1) == [(number, 10, 45, True) for number in range(1, index + 1)]
        assert len(answers) == len(FOREIGN_ANSWERS) - index


async def test_set_of_a_removed_item_is_shown_until_it_is_discarded(
    page: Page, phone: BrowserContext, ana: Trainee, observed: Complaints
) -> None:
    observed.expected += ("409",)
    await ana.row(page, 0, 1).get_by_label("Reps").fill("11")
    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/witems/{ana.items[0]['_id']}"
    (await ana.coach.delete(path)).ok(204)
    for index in (1, 2, 3):
        await ana.done(page, 0, index).tap()
    section = page.get_by_role("region", name="Not saved")
    summary = section.locator("summary")
    await expect(summary).to_have_text("3 sets not saved")
    await expect(section.get_by_text("Reps: 11")).to_be_hidden()
    await summary.tap()
    await expect(section).to_contain_text("Bench press, set 1")
    await expect(section).to_contain_text("Reps: 11")
    day = await page.locator(".wk-head .eyebrow").inner_text()
    await expect(section.get_by_text(re.compile(f"^Upper body, {re.escape(day)}$", re.IGNORECASE))).to_have_count(3)
    await expect(ana.state(page, 0, 1)).to_contain_text("Not saved")
    await ana.done(page, 1, 1).tap()
    await expect(ana.state(page, 1, 1)).to_have_text("Done")
    assert await ana.sets(1) == [(1, 10, 45, True)], "the sets after it are sent"

    await page.goto("/train")
    await expect(summary).to_have_text("3 sets not saved")
    await picture(page, "small", "train-not-saved-closed")
    await summary.tap()
    await expect(section).to_contain_text("Reps: 11")
    await picture(page, "small", "train-not-saved")
    assert await serious(page) == []
    await expect(section.get_by_role("button", name="Try again")).to_have_count(0)
    await section.get_by_role("button", name="Discard: Bench press, set 2").tap()
    await expect(summary).to_have_text("2 sets not saved")
    await section.get_by_role("button", name="Discard all").tap()
    await expect(section).to_have_count(0)


async def test_two_tabs_send_each_set_once_and_in_order_and_go_on_after_the_session_has_ended(
    page: Page, phone: BrowserContext, ana: Trainee, observed: Complaints
) -> None:
    other = await phone.new_page()
    await other.goto(ana.path)
    sent = list_sent(phone)
    await phone.set_offline(True)
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(other, 0, 1)).to_have_text("Not sent yet")
    await ana.done(other, 1, 1).tap()
    await ana.done(page, 0, 2).tap()
    await expect(other.locator(BAR)).to_contain_text("3 sets not sent yet")
    await expect(other.locator("[data-workout-progress]")).to_have_text("3 of 6 sets")
    await phone.set_offline(False)
    for tab in (page, other):
        await expect(tab.locator(BAR)).to_be_hidden()
    await expect(ana.state(other, 0, 2)).to_have_text("Done")
    exercises = [ana.items[0]["exerciseId"], ana.items[1]["exerciseId"], ana.items[0]["exerciseId"]]
    assert len(sent) == 3
    assert [exercise in body for exercise, body in zip(exercises, sent, strict=True)] == [True] * 3
    assert await ana.sets(0) == [(1, 8, 60, True), (2, 8, 60, True)]

    observed.expected += ("401",)
    await other.close()
    await sessions.end_sessions(ana.coach.ctx, ObjectId(ana.customer["_id"]))
    await ana.done(page, 1, 2).tap()
    await ana.row(page, 0, 3).get_by_label("Reps").fill("6")
    await page.wait_for_timeout(300)
    await page.get_by_role("link", name="Sign in to send 1 set").tap()
    await page.get_by_label("Email").fill(ana.customer["email"])
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").tap()
    await page.wait_for_url(f"**{ana.path}")
    await expect(ana.state(page, 1, 2)).to_have_text("Done")
    await expect(page.locator(BAR)).to_be_hidden()
    # What was typed and not submitted has ended with the session.
    await expect(ana.row(page, 0, 3).get_by_label("Reps")).not_to_have_value("6")
    assert await ana.sets(1) == [(1, 10, 45, True), (2, 10, 45, True)]


async def test_signing_out_deletes_what_is_stored_and_another_user_neither_sees_nor_sends_it(
    page: Page, phone: BrowserContext, public_server: TestServer, ana: Trainee, coach: CoachClient
) -> None:
    await phone.set_offline(True)
    await ana.done(page, 0, 1).tap()
    await expect(page.locator(BAR)).to_contain_text("1 set not sent yet")
    await page.route("**/sets", lambda route: route.abort("internetdisconnected"))
    await phone.set_offline(False)
    await ana.row(page, 0, 2).get_by_label("Reps").fill("7")
    await page.goto("/train/settings")
    sign_out = page.locator("form[action='/app/sign-out'] button")
    await sign_out.tap()
    dialog = page.get_by_role("dialog", name="2 sets would be lost")
    await expect(dialog).to_contain_text("1 set not sent yet, 1 set typed but not saved")
    await picture(page, "small", "train-sign-out")
    assert await serious(page) == []
    await dialog.get_by_role("button", name="Stay signed in").tap()
    await expect(dialog).to_have_count(0)
    await expect(page.locator(BAR)).to_contain_text("1 set not sent yet")

    await page.wait_for_timeout(600)
    await sign_out.tap()
    await dialog.get_by_role("button", name="Sign out and lose them").tap()
    await page.wait_for_url("**/app/sign-in**")
    await expect(page.get_by_text("You are signed out.")).to_be_visible()
    assert await page.evaluate("indexedDB.databases()") == []
    assert await ana.sets(0) == []

    bea = await superset_today(coach, await coach.create_customer("Bea"))
    await page.unroute_all()
    await ana.sign_in(phone, public_server)
    await page.goto(ana.path)
    await phone.set_offline(True)
    await ana.done(page, 0, 1).tap()
    await expect(page.locator(BAR)).to_contain_text("1 set not sent yet")
    await page.close()
    await phone.set_offline(False)
    await bea.sign_in(phone, public_server)
    sent = list_sent(phone)
    page = await phone.new_page()
    await page.goto(bea.path)
    await bea.done(page, 0, 1).tap()
    await expect(bea.state(page, 0, 1)).to_have_text("Done")
    await expect(page.locator(BAR)).to_be_hidden()
    assert len(sent) == 1
    assert bea.items[0]["exerciseId"] in sent[0]

    await page.goto("/train/settings")
    await page.locator("form[action='/app/sign-out'] button").tap()
    dialog = page.get_by_role("dialog", name="1 set of another account on this device would be lost")
    await expect(dialog).to_contain_text("Signing out deletes it.")
    await expect(dialog).not_to_contain_text("go online")
