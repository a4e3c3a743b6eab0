"""Uploading files in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Page, expect

from tests.core.test_uploads import PDF
from tests.core.test_uploads import picture as a_photo
from tests.support.client import CoachClient
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in
from tests.web.browser.test_keyboard import tab_to


async def test_photo_is_added_and_deleted_on_a_phone_without_javascript(
    open_page: OpenPage, coach: CoachClient, tmp_path: Path
) -> None:
    ana = await coach.create_customer("Ana")
    (tmp_path / "front.jpg").write_bytes(a_photo(size=(300, 400)))
    page = await open_page(java_script_enabled=False, viewport={"width": 360, "height": 740})
    await sign_in(page, coach)
    await page.goto(f"/app/customers/{ana['_id']}/photos")
    await page.get_by_label("Date").fill("2026-03-02")
    await page.get_by_label("View").select_option("Side")
    await page.get_by_label("Photo", exact=True).set_input_files(tmp_path / "front.jpg")
    await page.get_by_role("button", name="Save photo").click()

    await expect(page.get_by_role("status")).to_have_text("Photo saved.")
    shown = page.get_by_role("img", name="Ana, side, Mon 2 Mar 2026")
    await shown.first.scroll_into_view_if_needed()
    await expect(shown.first).to_have_js_property("naturalWidth", 240)  # its thumbnail
    await page.get_by_role("link", name="Delete the photos of Mon 2 Mar 2026").click()
    await page.get_by_role("button", name="Delete photos").click()
    await expect(page.get_by_role("status")).to_have_text("Photos deleted.")


async def test_plan_is_uploaded_by_keyboard(page: Page, coach: CoachClient, tmp_path: Path) -> None:
    ana = await coach.create_customer("Ana")
    (tmp_path / "Plan.pdf").write_bytes(PDF)
    page.on("filechooser", lambda chooser: chooser.set_files(tmp_path / "Plan.pdf"))
    await page.goto(f"/app/customers/{ana['_id']}/plans")
    await tab_to(page, "Plan")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Plan", exact=True)).to_have_value(r"C:\fakepath\Plan.pdf")
    await tab_to(page, "Upload")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("status")).to_have_text("Plan.pdf saved as version 1.")


async def test_photo_that_is_too_large_is_reported_at_its_field(
    page: Page, coach: CoachClient, complaints: list[str], tmp_path: Path
) -> None:
    ana = await coach.create_customer("Ana")
    (tmp_path / "film.mov").write_bytes(bytes(40_000_000))
    await page.goto(f"/app/customers/{ana['_id']}/photos")
    await page.get_by_label("Date").fill("2026-03-02")
    await page.get_by_label("Photo", exact=True).set_input_files(tmp_path / "film.mov")
    await page.get_by_role("button", name="Save photo").click()

    await expect(page.get_by_label("Photo", exact=True)).to_have_accessible_description(
        "JPEG, PNG or WebP, up to 15 MB. Replaces the photo of the same date and view. "
        "Choose the file again. This must not be larger than 15 MB."
    )
    await expect(page.get_by_label("Date")).to_have_value("2026-03-02")
    assert await serious(page) == []
    await picture(page, "light", "photo-too-large")
    assert all("400" in each for each in complaints), "only the rejected upload"
    complaints.clear()
