"""Working through the list of clients who need a coach."""

from __future__ import annotations

import re
from typing import Any

from playwright.async_api import expect

from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.service_process import until
from tests.support.training import client_path
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in


async def create_three(coach: CoachClient) -> list[dict[str, Any]]:
    """Create three clients who need a coach, the first of whom has written and has a health note."""
    ana, *others = [await coach.create_customer(name) for name in ("Ana", "Björn", "Chidi")]
    (await (await coach.as_client(ana)).post("/customer/messages", {"text": "Which shoes?"})).ok(201)
    (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew_figures(coach.ctx)
    return [ana, *others]


async def test_list_is_worked_through_by_keyboard(open_page: OpenPage, coach: CoachClient) -> None:
    ana, *_ = await create_three(coach)
    page = await open_page()
    await sign_in(page, coach)
    await page.goto("/app/attention")
    loads: list[str] = []
    page.on("domcontentloaded", lambda _: loads.append(page.url))
    entry = page.locator(f"#client-{ana['_id']}")

    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await serious(page, within=page.get_by_role("dialog")) == []
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()

    async def enters_the_list() -> bool:  # the dialog may return the focus to where it was after it is hidden
        await page.keyboard.press("j")
        return bool(await page.evaluate("document.activeElement.matches('[data-entry]')"))

    await until(enters_the_list, "the focus is on a client")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await expect(entry).to_be_focused()
    await page.keyboard.press("p")
    await expect(entry.get_by_text("Which shoes?")).to_be_visible()
    await expect(entry.get_by_text("Knee")).to_be_visible()
    assert await serious(page, within=entry) == []
    await entry.get_by_label("Reply to Ana").press_sequentially("The flat ones, jake")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(entry.get_by_text("unread message")).to_have_count(0)
    await expect(page.get_by_role("status")).to_have_text("Message sent.")
    await expect(entry).to_be_focused()
    await expect(entry.get_by_text("Knee")).to_be_visible()
    await page.keyboard.press("e")
    await expect(page.locator("#count")).to_have_text("2 left")
    await expect(page.get_by_role("status")).to_have_text("Dismissed until something new happens.")
    await expect(page.get_by_role("button", name="Undo")).to_be_visible()
    await expect(page.locator("[data-entry]").first).to_be_focused()
    await page.keyboard.press("s")
    await expect(page.get_by_role("button", name="Until tomorrow")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#count")).to_have_text("1 left")
    assert loads == []
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/app/customers/*")

    [last] = (await coach.get("/coach/attention")).ok()["docs"]
    assert last["customer"]["_id"] in page.url
    assert (await coach.get(f"/coach/customers/{ana['_id']}/messages")).ok()["docs"][0]["text"] == "The flat ones, jake"


async def test_keys_can_be_turned_off(open_page: OpenPage, coach: CoachClient) -> None:
    await create_three(coach)
    page = await open_page()
    await sign_in(page, coach)
    await page.goto("/app/attention")
    await page.get_by_role("button", name="Shortcuts").click()
    await page.get_by_label("Use these shortcuts").uncheck()
    await page.get_by_role("button", name="Close").click()
    await page.reload()
    await page.keyboard.press("j")
    await expect(page.locator("[data-entry]:focus")).to_have_count(0)


async def test_rejected_form_and_ended_session_show_their_page(
    open_page: OpenPage, coach: CoachClient, complaints: list[str]
) -> None:
    ana, *_ = await create_three(coach)
    page = await open_page()
    await sign_in(page, coach)
    await page.goto("/app/attention")
    entry = page.locator(f"#client-{ana['_id']}")
    await entry.get_by_text("Show “1 unread message”").click()
    await entry.get_by_label("Reply to Ana").fill(" ")
    await entry.get_by_role("button", name="Send reply").click()
    await expect(page.get_by_role("alert")).to_have_text("Please correct the marked field.")
    await expect(page.get_by_label("Reply to Ana")).to_be_visible()
    assert complaints
    complaints.clear()

    await page.goto("/app/attention")
    await page.context.clear_cookies()
    await page.get_by_role("button", name="Dismiss").first.click()
    await expect(page.get_by_label("Password")).to_be_visible()
    assert complaints
    complaints.clear()


async def test_list_works_without_a_script(open_page: OpenPage, coach: CoachClient) -> None:
    ana, *_ = await create_three(coach)
    page = await open_page(java_script_enabled=False)
    await sign_in(page, coach)
    await page.goto("/app/attention")
    entry = page.locator(f"#client-{ana['_id']}")
    await entry.get_by_text("Show “1 unread message”").click()
    await entry.get_by_role("link", name="Open", exact=True).first.click()
    await expect(page.get_by_text("Which shoes?")).to_be_visible()
    await page.get_by_role("button", name="Mark as read").click()
    await expect(page.get_by_role("status")).to_have_text("Marked as read.")
    await expect(page.locator("#count")).to_have_text("3 left")


async def test_list_is_filtered_in_place(open_page: OpenPage, coach: CoachClient) -> None:
    ana, *_ = await create_three(coach)
    page = await open_page()
    await sign_in(page, coach)
    await page.goto("/app/attention")
    loads: list[str] = []
    page.on("domcontentloaded", lambda _: loads.append(page.url))
    await page.get_by_label("Reason").focus()
    await page.get_by_label("Reason").select_option("unread_message")
    await expect(page.locator("[data-entry]")).to_have_count(1)
    await expect(page.locator("#count")).to_have_text("1 left")
    await expect(page).to_have_url(re.compile(r"/app/attention\?reason=unread_message$"))
    await expect(page.get_by_label("Reason")).to_be_focused()
    entry = page.locator(f"#client-{ana['_id']}")
    await entry.get_by_text("Show “1 unread message”").click()
    await expect(entry.get_by_text("Which shoes?")).to_be_visible()
    await page.emulate_media(color_scheme="dark")
    assert await serious(page) == []
    await picture(page, "filters", "dark")
    await entry.get_by_role("button", name="Mark as read").click()
    await expect(page.get_by_role("status")).to_have_text("Marked as read.")
    await expect(page.locator("[data-entry]")).to_have_count(0)
    await expect(page.locator("#count")).to_have_text("0 left")
    assert loads == []
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.get_by_role("link", name="Clear filters").click()
    await expect(page.locator("[data-entry]")).to_have_count(3)
    await page.set_viewport_size({"width": 390, "height": 844})
    await picture(page, "filters", "phone")
    assert await serious(page) == []
