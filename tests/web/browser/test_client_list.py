"""The list of clients: instant search, order, and a selection that is kept from page to page."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.support.client import CoachClient
from tests.web.browser.conftest import OpenPage, serious, sign_in


async def test_clients_are_found_ordered_and_selected_over_pages(
    open_page: OpenPage, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coaching_service.web.views.customers._CLIENTS_PER_PAGE", 3)
    for name in ("Ana", "Björn", "Chidi", "Dana", "Elif"):
        await coach.create_customer(name, groups=["Morning"] if name in ("Ana", "Elif") else [])
    page = await open_page()
    await sign_in(page, coach)
    await page.goto("/app/customers")
    loads: list[str] = []
    page.on("domcontentloaded", lambda _: loads.append(page.url))
    chosen = page.locator("[data-chosen]")

    await page.get_by_label("Name or email").press_sequentially("bjo")
    await expect(page.locator("#found")).to_have_text("1 active client found")
    await expect(page.get_by_label("Name or email")).to_be_focused()
    await expect(page).to_have_url(re.compile(r"/app/customers\?keywords=bjo$"))
    await page.get_by_label("Select Björn").check()
    await expect(chosen).to_have_text("1 selected")
    await page.get_by_label("Name or email").fill("")
    await expect(page.locator("#found")).to_have_text("5 active clients")
    await expect(page.get_by_label("Select Björn")).not_to_be_checked()
    await page.get_by_label("Select Björn").check()
    assert loads == [], "searching loads no page"
    await page.get_by_role("link", name="Next").click()
    await expect(chosen).to_have_text("1 selected, 1 on other pages")
    await page.get_by_label("Select Elif").check()
    await page.get_by_role("link", name="Last trained").click()
    await expect(page.get_by_role("columnheader", name="Last trained")).to_have_attribute("aria-sort", "ascending")
    await expect(page.get_by_label("Select Björn")).to_be_checked()
    await page.get_by_label("Bulk action").select_option("archive")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.locator("main")).to_contain_text("2 clients")
    await expect(page.locator("h2")).to_have_text(["Not visible in the list (1)", "Visible (1)"])
    assert await page.locator("main li").all_inner_texts() == ["Elif", "Björn"], "the hidden client is listed first"
    assert await serious(page) == []
    await page.get_by_role("button", name="Archive").click()
    await expect(page.locator("main")).to_contain_text("2 clients changed")

    assert await coach.names() == ["Ana", "Chidi", "Dana"]
    await page.goto("/app/customers")
    await expect(page.locator("[data-bar]")).to_be_hidden()
    await page.get_by_label("Group").select_option("Morning")
    await expect(page.locator("#found")).to_have_text("1 active client found")
    await page.get_by_label("Select Ana").check()
    await page.get_by_label("Select all 1 matching clients").check()
    await expect(chosen).to_have_text("All selected")
    await page.get_by_role("button", name="Clear").click()
    await expect(page.locator("[data-bar]")).to_be_hidden()


async def test_the_selection_is_kept_until_it_is_used_or_the_filter_changes(
    open_page: OpenPage, coach: CoachClient
) -> None:
    for name in ("Ana", "Björn"):
        await coach.create_customer(name, groups=["Morning"] if name == "Ana" else [])
    page = await open_page()
    await sign_in(page, coach)
    await page.goto("/app/customers")
    bar, select = page.locator("[data-bar]"), page.get_by_label("Select Björn")

    await select.check()
    await page.get_by_label("Group").select_option("Morning")  # Björn is not among them
    await expect(page.locator("#found")).to_have_text("1 active client found")
    await expect(bar).to_be_hidden()
    await page.get_by_label("Select Ana").check()
    await page.get_by_label("Name or email").fill("nobody")
    await expect(page.get_by_text("No clients found")).to_be_visible()
    await page.get_by_role("link", name="Clear filters").first.click()
    await expect(page.get_by_label("Select Ana")).not_to_be_checked()

    await select.check()
    await page.get_by_label("Archived").check()
    await expect(page.locator("#found")).to_have_text("0 archived clients")
    await page.get_by_label("Archived").uncheck()
    await expect(select).not_to_be_checked()

    await select.check()
    await page.get_by_role("link", name="Ana").click()  # a visit to a client
    await expect(page.get_by_role("heading", name="Ana")).to_be_visible()
    await page.go_back()
    await expect(select).to_be_checked()
    await page.get_by_role("link", name="Inbox").click()
    await page.get_by_role("link", name="Clients", exact=True).click()
    await expect(select).to_be_checked()
    await page.get_by_label("Select all 2 active clients").check()
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_role("link", name="Cancel").click()
    await expect(page.locator("[data-chosen]")).to_have_text("All selected")
    await page.get_by_label("Select all 2 active clients").uncheck()
    await page.get_by_label("Bulk action").select_option("archive")
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_role("button", name="Archive").click()
    await expect(page.get_by_role("heading", name="1 client changed")).to_be_visible()
    result = page.url
    await page.get_by_role("link", name="Back to clients").click()
    await expect(page.get_by_label("Select Ana")).to_be_visible()
    await expect(bar).to_be_hidden()
    await page.go_back()  # the result is a page of its own
    await expect(page.get_by_role("heading", name="1 client changed")).to_be_visible()
    assert page.url == result
    await page.reload()
    await expect(page.get_by_role("heading", name="1 client changed")).to_be_visible()
    await page.go_forward()
    await expect(page.get_by_label("Select Ana")).to_be_visible()
