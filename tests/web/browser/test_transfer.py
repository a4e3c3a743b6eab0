"""Export and import in a browser: a spreadsheet is checked first, and its problems are listed."""

from __future__ import annotations

import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.support.client import CoachClient
from tests.support.transfer import run
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in

SHEET = b"name,email,birthday,shoe size\nAna,ana@example.com,,38\n,no address,2026-02-30,40\n,nobody@example.com,,\n"


@pytest.mark.parametrize("scripted", [True, False])
async def test_a_spreadsheet_is_checked_before_it_is_imported(
    open_page: OpenPage, coach: CoachClient, scripted: bool
) -> None:
    page = await open_page(color_scheme="dark", java_script_enabled=scripted)
    await sign_in(page, coach)
    await _upload(page, coach)

    await expect(page.get_by_text("2 records would be left out.")).to_be_visible()
    await expect(page.get_by_role("cell", name="line 3").first).to_be_visible()
    if scripted:
        await _check(page, "import-check")
    await page.goto("/app/settings/transfer")
    await expect(page.get_by_role("link", name="clients.csv")).to_be_visible()
    if scripted:
        await _check(page, "export-and-import")


async def _check(page: Page, name: str) -> None:
    """Assert that a page is accessible in the dark, and not too wide on a phone."""
    await picture(page, "dark", name)
    assert await serious(page) == []
    await page.set_viewport_size({"width": 360, "height": 740})
    width = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0, "nothing is wider than the window"
    await picture(page, "phone", name)
    await page.set_viewport_size({"width": 1280, "height": 800})


async def _upload(page: Page, coach: CoachClient) -> None:
    """Send a spreadsheet to check, and wait until it is."""
    await page.goto("/app/settings/transfer")
    file: FilePayload = {"name": "clients.csv", "mimeType": "text/csv", "buffer": SHEET}
    await page.get_by_label("File", exact=True).set_input_files([file])
    await expect(page.get_by_label("Check only")).to_be_checked()
    await page.get_by_role("button", name="Upload").click()
    await page.wait_for_url("**/settings/transfer/*")
    await run(coach)
    await page.reload()
    await expect(page.get_by_text("You can leave this page")).to_have_count(0)
