"""How many page loads and clicks the tasks of a coach's day take, in Chromium; the limits are written by hand."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in

_WEEK = ("2026-03-02", "2026-03-04", "2026-03-06")


class Counter:
    """Counts the pages loaded and the clicks made in one window. Typing into a field that has the focus is no click."""

    def __init__(self, page: Page) -> None:
        self.page, self.loads, self.clicks = page, 0, 0
        page.on("domcontentloaded", self._count_load)

    def _count_load(self, _: Page) -> None:
        self.loads += 1

    async def click(self, target: Locator) -> None:
        """Click once."""
        self.clicks += 1
        await target.click()

    async def type(self, target: Locator, text: str) -> None:
        """Click into a field and type."""
        await self.click(target)
        await target.fill(text)


async def test_next_week_with_more_load(coach: CoachClient, open_page: OpenPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    for day in _WEEK:
        block = await coach.schedule(ana, date=day)
        path = f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems"
        (await coach.post(path, training.exercise_of(squat))).ok(201)
    page = await open_page()
    await sign_in(page, coach)
    counter = Counter(page)

    await page.goto(f"/app/customers/{ana['_id']}?week={MONDAY}")
    await counter.click(page.locator("summary", has_text="Copy"))
    await picture(page, "tasks", "copy-week")
    assert await serious(page) == []
    panel = page.locator("details[open]")
    await counter.type(panel.get_by_label("Load +/−"), "2.5")
    await counter.click(panel.get_by_role("button", name="Copy"))
    await expect(page.get_by_role("status")).to_have_text("3 workouts copied.")

    assert counter.loads <= 2
    assert counter.clicks <= 8
    listed: list[dict[str, Any]] = (
        await coach.get(f"/coach/customers/{ana['_id']}/wblock", startDate="2026-03-09", endDate="2026-03-15")
    ).ok()
    assert [block["date"] for block in listed] == ["2026-03-09", "2026-03-11", "2026-03-13"]
    assert {each["load"] for block in listed for item in block["items"] for each in item["exerciseSets"]} == {62.5}
    await picture(page, "tasks", "copied-week")
