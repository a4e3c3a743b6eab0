"""The week of a client on paper."""

from __future__ import annotations

from playwright.async_api import expect

from tests.conftest import NewCompany
from tests.support.client import MONDAY
from tests.web.browser.conftest import OUTPUT, OpenPage, sign_in
from tests.web.browser.sample_company import populate


async def test_week_is_one_page_without_controls(open_page: OpenPage, new_company: NewCompany) -> None:
    coach = await new_company()
    world = await populate(coach)
    page = await open_page(color_scheme="dark")
    await sign_in(page, coach)
    await page.goto(f"/app/customers/{world['customerId']}?week={MONDAY}")
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
