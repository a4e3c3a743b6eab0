"""Sets that the server does not take at once: an ended session, items that are gone, two tabs, other networks."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, BrowserContext, Locator, Page, Route, expect

from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.training import block_with, exercise_of, form_of, log, task
from tests.web.browser.conftest import picture, serious
from tests.web.browser.phone import PHONE, Complaints, Trainee, superset_today

BAR = "[data-queue-bar]"


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


def list_sent(phone: BrowserContext) -> list[str]:
    """The bodies of the sets that the server answers from now on."""
    bodies: list[str] = []
    phone.on("response", lambda got: bodies.append(str(got.request.post_data)) if got.url.endswith("/sets") else None)
    return bodies


async def test_ended_session_asks_to_sign_in_and_the_queue_continues(
    page: Page, ana: Trainee, observed: Complaints
) -> None:
    observed.expected += ("401",)
    await sessions.end_sessions(ana.coach.ctx, ObjectId(ana.customer["_id"]))
    await ana.done(page, 0, 1).tap()
    await ana.row(page, 0, 2).get_by_label("Reps").fill("6")
    await page.wait_for_timeout(300)
    await page.get_by_role("link", name="Sign in to send 1 set").tap()
    await page.get_by_label("Email").fill(ana.customer["email"])
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").tap()
    await page.wait_for_url(f"**{ana.path}")

    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    await expect(page.locator(BAR)).to_be_hidden()
    await expect(ana.row(page, 0, 2).get_by_label("Reps")).to_have_value("6")
    assert await ana.sets(0) == [(1, 8, 60, True)]


async def test_page_of_an_older_session_sends_with_the_new_token(
    page: Page, phone: BrowserContext, public_server: TestServer, ana: Trainee, observed: Complaints
) -> None:
    observed.expected += ("403",)
    await ana.sign_in(phone, public_server)
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    assert await ana.sets(0) == [(1, 8, 60, True)]


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


async def test_wrong_value_is_explained_at_its_set_and_corrected_there(
    page: Page, ana: Trainee, observed: Complaints
) -> None:
    observed.expected += ("400",)
    await ana.row(page, 0, 1).get_by_label("Reps").fill("eight")
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_contain_text("Not saved:")
    await expect(ana.done(page, 0, 1)).to_have_attribute("aria-pressed", "false")
    section = page.get_by_role("region", name="Not saved")
    await section.locator("summary").tap()
    async with page.expect_response("**/sets"):
        await section.get_by_role("button", name="Try again").tap()
    await expect(section).to_contain_text("Reps: eight")
    await page.reload()
    await expect(ana.row(page, 0, 1).get_by_label("Reps")).to_have_value("eight")
    await ana.row(page, 0, 1).get_by_label("Reps").fill("8")
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    await expect(section).to_have_count(0)


async def test_more_sets_than_planned_are_logged_without_a_network_and_records_celebrated(
    page: Page, phone: BrowserContext, ana: Trainee
) -> None:
    earlier = exercise_of({"_id": ana.items[0]["exerciseId"]})
    block = await block_with(ana.coach, ana.customer, earlier)
    best = [{"index": 1, "reps": 8, "load": 60, "isCompleted": True}]
    (await log(ana.coach, block, block["items"][0], isCompleted=True, customerSets=best)).ok()
    await phone.set_offline(True)
    for index, load in ((4, "65"), (5, "70")):
        await page.locator("details.set-extra").first.locator("summary").tap()
        await ana.row(page, 0, index).get_by_label("Load").fill(load)
        await ana.done(page, 0, index).tap()
        await expect(ana.state(page, 0, index)).to_have_text("Not sent yet")
    await phone.set_offline(False)
    await expect(ana.state(page, 0, 5)).to_have_text("Done")
    await expect(page.locator("[data-records]")).to_contain_text("New record Bench press: heaviest set: 70 kg")
    assert await ana.sets(0) == [(4, 8, 65, True), (5, 8, 70, True)]


async def test_values_of_a_set_that_is_done_are_corrected(page: Page, phone: BrowserContext, ana: Trainee) -> None:
    other = await phone.new_page()
    await other.goto(ana.path)
    now = time.time()
    await page.clock.set_system_time(now + 3600)  # the clock of the phone is ahead, and is set right later
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    await page.clock.set_system_time(now)
    await ana.row(page, 0, 1).get_by_label("Reps").fill("6")
    await expect(ana.state(page, 0, 1)).to_have_text("Changed, not saved")
    await page.locator("h1").tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    assert await ana.sets(0) == [(1, 6, 60, True)]
    await expect(ana.state(other, 0, 1)).to_have_text("Done")
    await expect(ana.row(other, 0, 1).get_by_label("Reps")).to_have_value("6")
    await page.reload()
    await ana.row(page, 0, 1).get_by_label("Reps").fill("5")
    async with page.expect_response("**/sets"):
        await ana.done(page, 0, 1).tap()  # this saves too, and does not take the set back
    await expect(ana.row(other, 0, 1).get_by_label("Reps")).to_have_value("5")
    assert await ana.sets(0) == [(1, 5, 60, True)]


async def test_draft_gives_way_to_a_newer_value_of_the_server(page: Page, ana: Trainee) -> None:
    await ana.row(page, 0, 1).get_by_label("Reps").fill("6")
    await ana.row(page, 0, 2).get_by_label("Reps").fill("7")
    await page.wait_for_timeout(300)
    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/witems/{ana.items[0]['_id']}/log"
    (await ana.coach.put(path, {"isCompleted": False, "customerSets": [{"index": 1, "reps": 5, "load": 60}]})).ok()
    await page.reload()
    await expect(ana.row(page, 0, 2).get_by_label("Reps")).to_have_value("7")
    await expect(ana.row(page, 0, 1).get_by_label("Reps")).to_have_value("5")


async def test_check_in_is_kept_without_a_network_and_leads_on_with_one(
    page: Page, phone: BrowserContext, ana: Trainee
) -> None:
    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/witems"
    form = (await ana.coach.post(path, form_of({"label": "How was it?", "type": "text"}))).ok(201)
    address = f"{ana.path}/items/{form['_id']}/form"
    await page.goto(address)
    await page.get_by_label("How was it?").fill("Hard")
    await page.reload()
    await expect(page.get_by_label("How was it?")).to_have_value("Hard")
    await phone.set_offline(True)
    await page.get_by_role("button", name="Send answers").tap()
    await expect(page.locator(BAR)).to_contain_text("1 change not sent yet")
    await phone.set_offline(False)
    await expect(page.get_by_text("Saved", exact=True).or_(page.get_by_text("Check-in sent."))).to_be_visible()

    await page.goto(f"{address}?edit=true")
    await page.get_by_label("How was it?").fill("Very hard")
    await page.get_by_role("button", name="Save changes").tap()
    await expect(page.get_by_text("Check-in sent. Your coach will see your answers.")).to_be_visible()
    (response,) = (await ana.coach.get("/coach/form-responses", customerId=ana.customer["_id"])).ok()["docs"]
    assert [answer["value"] for answer in response["answers"]] == ["Very hard"]


async def test_task_comment_and_the_end_of_a_workout_wait_for_the_network_in_order(
    page: Page, phone: BrowserContext, ana: Trainee
) -> None:
    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/witems"
    (await ana.coach.post(path, task("Stretch"))).ok(201)
    await page.reload()
    await phone.set_offline(True)
    await page.locator("form.wk-task button").tap()
    await expect(page.locator("form.wk-task button")).to_have_attribute("aria-pressed", "true")
    await page.locator("details.wk-menu").first.locator("summary").tap()
    for text in ("Light", "Heavy"):
        await page.get_by_label("Comment").first.fill(text)
        await page.wait_for_timeout(600)
        await page.get_by_role("button", name="Save comment").first.tap()
    await page.get_by_label("Minutes").fill("45")
    await page.get_by_role("button", name="Finish workout").tap()
    await expect(page.locator(BAR)).to_contain_text("4 changes not sent yet")
    await phone.set_offline(False)
    await expect(page.locator(BAR)).to_be_hidden()
    day = str(ana.coach.ctx.caller.today())
    client = f"/coach/customers/{ana.customer['_id']}/wblock"
    (block,) = (await ana.coach.get(client, startDate=day, endDate=day)).ok()
    assert (block["durationMinutes"], block["items"][0]["comment"], block["items"][2]["isCompleted"]) == (
        45,
        "Heavy",
        True,
    )

    await page.goto(ana.path)
    await page.get_by_label("Minutes").fill("50")
    await page.locator("form[action$='/finish'] button").last.tap()
    await page.wait_for_url("**/summary")


async def read_seconds(timer: Locator) -> int:
    """The time that a timer shows."""
    minutes, _, seconds = (await timer.inner_text()).partition(":")
    return int(minutes) * 60 + int(seconds)


async def test_rest_survives_a_reload_and_ends_on_time(page: Page, phone: BrowserContext, ana: Trainee) -> None:
    await page.clock.install()
    await page.reload()
    await ana.done(page, 0, 1).tap()
    timer = page.get_by_role("timer")
    await expect(timer).to_have_text(re.compile("1:(30|2[5-9])"))
    await page.get_by_role("button", name="15 seconds more rest").tap()
    await expect(timer).to_have_text(re.compile("1:(45|4[0-4]|3[5-9])"))
    await picture(page, "small", "train-rest")
    assert await serious(page) == []
    started = await read_seconds(timer)
    await page.clock.fast_forward(60_000)
    await page.reload()
    await expect(timer).to_have_text(re.compile(r"\d:\d\d"))
    left = await read_seconds(timer)
    assert left <= started - 60, "the time during which the page was closed counts"
    await page.clock.fast_forward((left + 1) * 1000)
    await expect(page.get_by_role("status").filter(has_text="Rest is over")).to_have_count(1)
    await expect(timer).to_have_text("Rest is over")
    await page.clock.fast_forward(20_000)
    await expect(timer).to_be_hidden()
    await ana.done(page, 0, 2).tap()
    await page.get_by_role("button", name="Skip the rest").tap()
    await expect(timer).to_be_hidden()
    await ana.done(page, 0, 3).tap()
    await expect(timer).to_be_visible()
    await page.clock.set_system_time(time.time() - 86_400)
    await page.reload()
    await expect(timer).to_have_text(re.compile("^1:(30|2[0-9])$"))


async def test_two_tabs_send_each_set_once_and_in_order(page: Page, phone: BrowserContext, ana: Trainee) -> None:
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


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 200, "content_type": "text/html", "body": "<h1>Welcome to our WiFi</h1>"},
        {"status": 303, "headers": {"Location": "https://wifi.invalid/"}},
        {"status": 503, "headers": {"Retry-After": "1"}},
    ],
    ids=["page of another network", "redirect of another network", "busy server"],
)
async def test_answer_that_is_not_the_services_keeps_the_set(
    page: Page, ana: Trainee, observed: Complaints, answer: dict[str, Any]
) -> None:
    observed.expected += ("503", "https://wifi.invalid/")
    answers: list[str] = []

    async def intercept(route: Route) -> None:
        answers.append(route.request.url)
        await route.fulfill(**answer)

    await page.route("**/sets", intercept, times=1)
    await ana.done(page, 0, 1).tap()
    await expect(page.locator(BAR)).to_contain_text("1 set not sent yet")
    await expect(ana.state(page, 0, 1)).to_have_text("Done")  # it is sent again by itself
    assert len(answers) == 1
    assert await ana.sets(0) == [(1, 8, 60, True)]


async def test_entries_of_another_user_are_neither_shown_nor_sent(
    page: Page, phone: BrowserContext, public_server: TestServer, ana: Trainee, coach: CoachClient
) -> None:
    bea = await superset_today(coach, await coach.create_customer("Bea"))
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


async def test_signing_out_says_what_would_be_lost_and_deletes_what_is_stored(
    page: Page, phone: BrowserContext, ana: Trainee
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
