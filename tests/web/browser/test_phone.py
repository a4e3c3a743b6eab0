"""The layout on a phone: areas in a bar at the bottom, which covers nothing that has the focus."""

from __future__ import annotations

from playwright.async_api import expect

from tests.support.client import CoachClient
from tests.web.browser.conftest import OpenPage, sign_in


async def test_areas_are_at_the_bottom(open_page: OpenPage, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    page = await open_page(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    await sign_in(page, coach)
    await page.goto(f"/app/customers/{ana['_id']}/details")
    areas = page.get_by_role("navigation", name="Main")
    for name in ("Today", "Clients", "Inbox", "Exercises", "Programs"):
        box = await areas.get_by_role("link", name=name).bounding_box()
        assert box is not None
        assert box["y"] > 660
        assert box["height"] >= 44
        assert box["width"] >= 44
    await page.locator("summary", has_text="Account of").tap()
    menu = page.locator(".me .menu-items")
    await expect(menu).to_contain_text("Business Settings My account Sign out", use_inner_text=True)
    await menu.get_by_role("link", name="Settings").tap()
    await page.wait_for_url("**/app/settings*/**")
    await page.go_back()
    last = page.locator("main button, main a").last
    await last.focus()
    box, bar = await last.bounding_box(), await areas.bounding_box()
    assert box is not None
    assert bar is not None
    assert box["y"] + box["height"] <= bar["y"], "the bar does not cover what has the focus"
