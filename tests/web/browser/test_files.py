"""Uploading files in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import aiohttp
from aiohttp.test_utils import TestServer
from playwright.async_api import Page, expect

from tests.core.test_uploads import PDF
from tests.core.test_uploads import picture as a_photo
from tests.support.client import CoachClient
from tests.support.training import Json, client_path
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in
from tests.web.browser.phone import sign_client_in
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
    await page.get_by_label("Side", exact=True).set_input_files(tmp_path / "front.jpg")
    await page.get_by_label("Back", exact=True).set_input_files(tmp_path / "front.jpg")
    await page.get_by_role("button", name="Save photos").click()

    await expect(page.get_by_role("status")).to_have_text("Side and back photos saved.")
    shown = page.get_by_role("img", name="Ana, side, Mon 2 Mar 2026")
    await shown.first.scroll_into_view_if_needed()
    await expect(shown.first).to_have_js_property("naturalWidth", 240)  # its thumbnail
    await page.locator("summary", has_text="Delete photos").click()
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
    (tmp_path / "film.mov").write_bytes(bytes(16_000_000))
    await page.goto(f"/app/customers/{ana['_id']}/photos")
    await page.get_by_label("Date").fill("2026-03-02")
    await page.get_by_label("Front", exact=True).set_input_files(tmp_path / "film.mov")
    await page.get_by_role("button", name="Save photos").click()

    await expect(page.get_by_label("Front", exact=True)).to_have_accessible_description(
        "Add at least one: JPEG, PNG, WebP or HEIC, up to 15 MB each. It replaces any photo of the same date and view. "
        "Choose the files again. This must not be larger than 15 MB."
    )
    await expect(page.get_by_label("Date")).to_have_value("2026-03-02")
    assert await serious(page) == []
    await picture(page, "light", "photo-too-large")
    assert all("400" in each for each in complaints), "only the rejected upload"
    complaints.clear()


async def add_fronts(coach: CoachClient, client: Json, *days: str) -> None:
    """Add a photo from the front on each of these days."""
    for day in days:
        form = aiohttp.FormData({"createdAt": day, "imageSideIndex": "1"}, default_to_multipart=True)
        form.add_field("imageFile", a_photo(size=(600, 800)), filename="front.jpg")
        (await coach.send("POST", client_path(client, "progress-photos"), data=form)).ok(201)


async def test_photos_are_laid_over_each_other_and_enlarged_by_keyboard(
    open_page: OpenPage, coach: CoachClient, public_server: TestServer
) -> None:
    ana = await coach.create_customer("Ana")
    await add_fronts(coach, ana, "2026-02-02", "2026-03-02")
    of_coach = await open_page()
    await sign_in(of_coach, coach)
    of_client = await open_page(viewport={"width": 390, "height": 844}, has_touch=True, color_scheme="dark")
    await sign_client_in(of_client.context, public_server, coach, ana["_id"])
    for page, path in ((of_coach, f"/app/customers/{ana['_id']}/photos"), (of_client, "/train/photos")):
        await page.goto(path)
        button, slider = page.get_by_role("button", name="Overlay"), page.get_by_role("slider")
        await expect(slider).to_be_hidden()
        await button.focus()
        await page.keyboard.press("Enter")
        await expect(button).to_have_attribute("aria-pressed", "true")
        await expect(page.locator(".compare-pair")).to_be_hidden()
        await slider.focus()
        for _ in range(10):
            await page.keyboard.press("ArrowRight")
        await expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^60 % .*2 Feb.*, 40 % .*2 Mar"))
        covering = page.locator(".compare-stage img").last
        await expect(covering).to_have_css("clip-path", "inset(0px 0px 0px 60%)")
        await expect(covering).to_have_js_property("naturalWidth", 600)
        await page.locator(".compare-stage").click(position={"x": 2, "y": 50})
        await expect(slider).to_have_value(re.compile("^[01]$"))
        if page is of_coach:
            assert await serious(page) == []
        await button.click()
        large = page.locator(".compare-pair a").first
        await large.focus()
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_role("img")).to_have_js_property("naturalWidth", 600)
        await dialog.get_by_role("button", name="Zoom in").click()
        await expect(dialog.get_by_role("button", name="Zoom out")).to_be_focused()
        assert await serious(page, within=dialog) == []
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await expect(large).to_be_focused()
