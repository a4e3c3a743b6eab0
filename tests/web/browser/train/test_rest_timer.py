"""The timer of the rest between sets."""

from __future__ import annotations

import re
import time

from playwright.async_api import BrowserContext, Locator, Page, expect

from tests.web.browser.conftest import picture, serious
from tests.web.browser.phone import Trainee


async def read_seconds(timer: Locator) -> int:
    """The time that a timer shows."""
    minutes, _, seconds = (await timer.inner_text()).partition(":")
    return int(minutes) * 60 + int(seconds)


async def test_rest_survives_a_reload_ends_on_time_and_may_start_while_the_page_loads(
    page: Page, phone: BrowserContext, ana: Trainee
) -> None:
    await page.clock.install()
    await page.reload()
    await ana.done(page, 1, 1).tap()  # the last exercise of the superset
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
    await ana.done(page, 1, 2).tap()
    await page.get_by_role("button", name="Skip the rest").tap()
    await expect(timer).to_be_hidden()
    await ana.done(page, 1, 3).tap()
    await expect(timer).to_be_visible()
    await page.clock.set_system_time(time.time() - 86_400)
    await page.reload()
    await expect(timer).to_have_text(re.compile("^1:(30|2[0-9])$"))

    # A set may be completed before the page has read whether there is a rest to continue.
    await page.get_by_role("button", name="Skip the rest").tap()
    await expect(timer).to_be_hidden()
    await page.reload()
    start = "async () => { const read = train.restTimer.restore(); train.restTimer.start(90, 'a set'); await read; }"
    await page.evaluate(start)
    await expect(page.get_by_role("timer")).to_be_visible()
    stop = "async () => { const read = train.restTimer.restore(); train.restTimer.stop('a set'); await read; }"
    await page.evaluate(stop)
    await expect(page.get_by_role("timer")).to_be_hidden()
