"""The week of a client on paper."""

from __future__ import annotations

from playwright.async_api import expect

from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.web.browser.conftest import OUTPUT, OpenPage, sign_in


async def test_week_is_one_page_without_controls(open_page: OpenPage, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Flores", groups=["Strength"])
    squat, row = await coach.create_exercise("Back squat"), await coach.create_exercise("Barbell row")
    for day in (MONDAY, "2026-03-04", "2026-03-06"):
        items = (training.exercise_of(squat), training.circuit_of(squat, row), training.task())
        await training.block_with(coach, ana, *items, date=day)
    page = await open_page(color_scheme="dark")
    await sign_in(page, coach)
    await page.goto(f"/app/customers/{ana['_id']}?week={MONDAY}")
    await page.emulate_media(media="print")
    assert await page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 36, 32)", "dark text"
    for control in ("nav", "header", "button", "summary"):
        assert await page.locator(control).locator("visible=true").count() == 0, control
    await expect(page.locator("h1")).to_be_visible()
    tops = await page.evaluate("[...document.querySelectorAll('.week > .day')].map(day => day.offsetTop)")
    assert len(tops) == 7
    assert len(set(tops)) == 1, "seven columns"
    pdf = await page.pdf(prefer_css_page_size=True)
    assert pdf.count(b"/Type /Page\n") == 1
    OUTPUT.mkdir(exist_ok=True)
    (OUTPUT / "week.pdf").write_bytes(pdf)
