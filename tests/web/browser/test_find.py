"""Search from every page, by keyboard and on a phone."""

from __future__ import annotations

from typing import Any, Literal

from playwright.async_api import Page, expect

from tests.support.client import CoachClient
from tests.support.training import client_path
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in


async def make_texts(coach: CoachClient) -> str:
    ana = await coach.create_customer("Ana", surname="López")
    await coach.create_customer("Andrea", surname="Kim")
    (
        await coach.post(client_path(ana, "notes"), {"content": "<p>Ana is back from the lake; her knee is fine.</p>"})
    ).ok(201)
    (await coach.post(client_path(ana, "messages"), {"text": "Ana, see you at the lake tomorrow"})).ok(201)
    await coach.schedule(ana, name="Lake run")
    (await coach.post("/coach/programs", {"name": "Lake season"})).ok(201)
    return str(ana["_id"])


async def test_search_by_keyboard(page: Page, coach: CoachClient) -> None:
    ana = await make_texts(coach)
    await page.goto("/app/programs")
    dialog, field = page.get_by_role("dialog", name="Search"), page.get_by_role("combobox")
    await page.keyboard.press("Control+k")
    await expect(field).to_be_focused()
    await expect(dialog.get_by_role("option", name="Today")).to_be_visible()
    assert await serious(page, within=dialog) == []
    await field.press_sequentially("lopez an")
    options = dialog.get_by_role("option")
    await expect(options).to_have_count(1)
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await expect(dialog.get_by_role("group", name="Clients")).to_be_visible()
    assert await field.get_attribute("aria-activedescendant") == await options.first.get_attribute("id")
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/app/customers/{ana}")

    await page.keyboard.press("/")
    await expect(dialog.get_by_role("group", name="Recent").get_by_role("option", name="Ana López")).to_be_visible()
    await field.press_sequentially("lake")
    await expect(dialog.get_by_role("option", name="Lake season")).to_be_visible()
    await page.keyboard.press("ArrowUp")
    await expect(options.last).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("ArrowDown")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    assert await serious(page, within=dialog) == []
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()

    await page.keyboard.press("Control+k")
    await field.press_sequentially("new work")
    await dialog.get_by_role("option", name="New workout").click()
    await field.press_sequentially("lop")
    await expect(options).to_have_count(1)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/app/customers/{ana}?week=*")
    await expect(page.locator("details.add[open]").get_by_label("Workout name")).to_be_visible()

    await page.evaluate("localStorage.setItem('keys', 'off')")
    await page.locator("body").press("/")
    await expect(dialog).to_be_hidden()
    await page.locator("summary", has_text="Account of").click()
    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/app/sign-in")
    names = await page.evaluate("Object.keys(localStorage).filter((each) => each.startsWith('recent-'))")
    assert names == [], "names of clients stay on no shared computer"


async def test_pictures_of_the_search(open_page: OpenPage, coach: CoachClient) -> None:
    await make_texts(coach)
    screens: dict[str, dict[str, Any]] = {
        "find-large": {"viewport": {"width": 1440, "height": 900}},
        "find-small": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
    }
    for look, options in screens.items():
        page = await open_page(**options)
        await sign_in(page, coach)
        await page.goto("/app/reports")
        await picture(page, look, "business")
        await page.get_by_role("searchbox", name="Search clients, workouts, notes, messages").click()
        await page.get_by_role("combobox").press_sequentially("ana")
        await expect(page.get_by_role("dialog").get_by_role("option").first).to_be_visible()
        await expect(page.get_by_role("dialog").get_by_role("group", name="Notes")).to_be_visible()
        schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
        for scheme in schemes:
            await page.emulate_media(color_scheme=scheme)
            await picture(page, look, scheme)
        assert await serious(page) == []
        assert not await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        await page.close()
