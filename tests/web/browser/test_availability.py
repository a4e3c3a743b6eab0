"""Being ill for a week, counted in clicks: for coaches on the week of the client, for clients on their day."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from aiohttp.test_utils import TestServer
from playwright.async_api import Page, expect

from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.training import block_with, client_path, task
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in
from tests.web.browser.phone import PHONE, sign_client_in
from tests.web.browser.test_task_counts import Counter

_WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


async def planned_client(coach: CoachClient) -> tuple[dict[str, Any], date]:
    """A client with a workout on each of the next days, and today."""
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    for offset in range(3):
        await block_with(coach, ana, task(), date=str(today + timedelta(days=offset)), name="Legs")
    return ana, today


async def missed_after(coach: CoachClient, customer: dict[str, Any], today: date) -> list[str]:
    """The workouts that count as missed, or at all, in the days of the week from today."""
    query = {"from": str(today), "to": str(today + timedelta(days=6))}
    compliance = (await coach.get(client_path(customer, "compliance"), **query)).ok()
    return [day["date"] for day in compliance["dailyCompliance"] if day["isWorkoutDay"]]


async def check_on_a_phone(page: Page, name: str) -> None:
    """Assert that a page that is open is not too wide on a phone."""
    await page.set_viewport_size({"width": 360, "height": 740})
    assert not await page.evaluate(_WIDER), name
    await picture(page, "small", name)
    await page.set_viewport_size({"width": 1280, "height": 800})


async def test_ill_for_a_week_on_the_week_of_a_client(coach: CoachClient, open_page: OpenPage) -> None:
    """At most 1 load and 4 clicks, and nothing is missed afterwards."""
    ana, today = await planned_client(coach)
    page = await open_page()
    await sign_in(page, coach)
    counter = Counter(page)

    await page.goto(f"/app/customers/{ana['_id']}")
    await counter.click(page.locator("summary", has_text="Away or ill"))
    await picture(page, "tasks", "away-or-ill")
    assert await serious(page) == []
    panel = page.locator("details[open]")
    await counter.click(panel.get_by_role("radio", name="Ill", exact=True))
    await counter.click(panel.get_by_role("radio", name="1 week", exact=True))
    await counter.click(panel.get_by_role("button", name="Save"))
    await expect(page.get_by_role("status")).to_contain_text("Nothing in it counts as missed.")

    assert (counter.loads, counter.clicks) == (1, 4)
    [period] = (await coach.get(client_path(ana, "availability"))).ok()
    assert (period["kind"], period["from"], period["until"]) == ("ill", str(today), str(today + timedelta(days=6)))
    assert await missed_after(coach, ana, today) == []
    await expect(page.locator(".band").first).to_have_text("Ill")
    await picture(page, "tasks", "ill-week")
    assert await serious(page) == []
    grip = page.locator("[data-lift]").first  # the script works on what was replaced
    await expect(grip).to_be_visible()
    await page.emulate_media(media="print")
    await expect(page.locator(".band").first).to_be_visible()
    await picture(page, "tasks", "ill-week-print")
    await page.emulate_media(media="screen")
    await check_on_a_phone(page, "ill")
    await page.goto(f"/app/customers/{ana['_id']}/month")
    await picture(page, "tasks", "ill-month")
    await check_on_a_phone(page, "ill-month")
    await page.goto(f"/app/customers/{ana['_id']}/availability")
    await check_on_a_phone(page, "ill-availability")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    await picture(page, "tasks", "resume-preview")
    assert await serious(page) == []
    await renew_figures(coach.ctx)
    for path, name in (("/app/customers", "ill-roster"), ("/app/attention", "ill-today")):
        await page.goto(path)
        await expect(page.get_by_role("main")).to_contain_text("Ill until")
        await picture(page, "tasks", name)


async def test_ill_for_a_week_on_the_phone(coach: CoachClient, open_page: OpenPage, public_server: TestServer) -> None:
    """On the open page at most 4 taps and no other page, and nothing is missed afterwards."""
    ana, today = await planned_client(coach)
    page: Page = await open_page(**PHONE)
    await sign_client_in(page.context, public_server, coach, ana["_id"])
    counter = Counter(page)

    await page.goto("/train")
    await counter.click(page.locator("summary", has_text="I am away or ill"))
    await picture(page, "small", "train-away-or-ill")
    assert await serious(page) == []
    assert not await page.evaluate(_WIDER)
    panel = page.locator(".days-away-form")
    await counter.click(panel.get_by_role("radio", name="Ill", exact=True))
    await counter.click(panel.get_by_role("radio", name="1 week", exact=True))
    await counter.click(panel.get_by_role("button", name="Save"))
    await expect(page.locator(".absence")).to_contain_text("Ill until")
    await expect(page.locator("main .notice")).to_contain_text("Nothing in it counts as missed.")

    assert (counter.loads, counter.clicks) == (1, 4)
    [period] = (await coach.get(client_path(ana, "availability"))).ok()
    assert (period["until"], period["createdBy"]) == (str(today + timedelta(days=6)), "client")
    assert await missed_after(coach, ana, today) == []
    await picture(page, "small", "train-ill-today")
    assert await serious(page) == []
    for path, name in (
        ("/train/calendar", "train-ill-week"),
        (f"/train/calendar?month={today:%Y-%m}", "train-ill-month"),
    ):
        await page.goto(path)
        await picture(page, "small", name)
        assert not await page.evaluate(_WIDER)


async def test_being_ill_without_a_connection_is_sent_later(
    coach: CoachClient, open_page: OpenPage, public_server: TestServer, complaints: list[str]
) -> None:
    ana, _ = await planned_client(coach)
    page = await open_page(**PHONE)
    await sign_client_in(page.context, public_server, coach, ana["_id"])
    await page.goto("/train")
    await page.context.set_offline(True)
    await page.locator("summary", has_text="I am away or ill").tap()
    panel = page.locator(".days-away-form")
    await panel.get_by_role("radio", name="Away", exact=True).tap()
    await panel.get_by_role("button", name="Save").tap()
    await expect(page.locator("[data-queue-bar]")).to_contain_text("1 change not sent yet")
    await page.context.set_offline(False)
    await expect(page.locator("[data-queue-bar]")).to_be_hidden()
    [period] = (await coach.get(client_path(ana, "availability"))).ok()
    assert period["kind"] == "away"
    complaints[:] = [each for each in complaints if "ERR_INTERNET_DISCONNECTED" not in each]
