"""Export and import in a browser: a spreadsheet is checked first, and its problems are listed."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.support.client import CoachClient
from tests.support.transfer import run
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in

SHEET = b"name,email,birthday,shoe size\nAna,ana@example.com,,38\n,no address,2026-02-30,40\n,nobody@example.com,,\n"
LOOKS: dict[str, dict[str, Any]] = {
    "wide": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}},
    "without-script": {"java_script_enabled": False},
}


@pytest.mark.parametrize("look", LOOKS)
async def test_a_spreadsheet_is_checked_before_it_is_imported(
    open_page: OpenPage, coach: CoachClient, look: str
) -> None:
    page = await open_page(**LOOKS[look])
    await sign_in(page, coach)
    await _upload(page, coach)

    await expect(page.get_by_text("2 records would be left out.")).to_be_visible()
    await expect(page.get_by_role("cell", name="line 3").first).to_be_visible()
    await picture(page, look, "import-check")
    if look != "without-script":
        assert await serious(page) == []
    await page.goto("/app/settings/transfer")
    await expect(page.get_by_role("link", name="clients.csv")).to_be_visible()
    await picture(page, look, "export-and-import")
    if look != "without-script":
        assert await serious(page) == []
        width = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert width <= 0, "nothing is wider than the window"


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
