"""Deciding on proposals of an assistant in Chromium: on a phone from the address, and with the keyboard on Today."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from playwright.async_api import Page, expect

from tests.conftest import PASSWORD
from tests.mcp.conftest import mcp
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, tool_proposal
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in

TODAY = str(datetime.now(UTC).date())  # what is written is not compared with it

__all__ = ["mcp"]
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
DARK: dict[str, Any] = {"color_scheme": "dark"}
_WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


async def propose(mcp: McpHttpClient, coach: CoachClient, name: str) -> str:
    """Propose to invite a client; returns the address on which the coach decides."""
    email = f"{name.lower()}-{coach.ctx.company_id}@example.com"
    result = await mcp.call("create_customer", name=name, email=email, sendInvitation=True)
    return f"/app/proposals/{tool_proposal(result, 'CONTACT')['proposalId']}"


async def check(page: Page, name: str) -> None:
    """Assert that a page is accessible and not too wide, and save a picture."""
    assert await serious(page) == []
    assert not await page.evaluate(_WIDER)
    await picture(page, "proposals", name)


async def test_a_coach_opens_the_address_on_a_phone(
    open_page: OpenPage, mcp: McpHttpClient, coach: CoachClient
) -> None:
    path = await propose(mcp, coach, "Ana")
    page = await open_page(**PHONE)
    await page.goto(path)
    await page.get_by_label("Email").fill(str(coach.ctx.caller.email))
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(f"**{path}")
    await check(page, "page-on-a-phone")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("status")).to_have_text("Approved and done.")
    assert await coach.names() == ["Ana"]


async def test_a_coach_decides_on_today_with_the_keyboard(
    open_page: OpenPage, mcp: McpHttpClient, coach: CoachClient
) -> None:
    await propose(mcp, coach, "Ana")
    await propose(mcp, coach, "Bo")
    client, _ = await coach.create_customer("Cleo"), await coach.create_exercise("Back squat")
    text = "Back squat: 4x8-10 @60kg rest 90s RPE8, 1xAMRAP @50kg\nreminder 08:30: Drink"
    day = {"date": TODAY, "name": "Legs", "text": text}
    tool_proposal(await mcp.call("create_workout", customerId=client["_id"], days=[day]), "CONTACT")
    page = await open_page(**DARK)
    await sign_in(page, coach)
    await page.goto("/app/attention")
    await expect(page.get_by_role("navigation", name="Main")).to_contain_text("3 proposals wait")
    section, today = page.locator("section.proposals"), page.locator("#today")
    count = page.get_by_role("link", name="3 proposals of your assistant")
    for width, height in ((1440, 900), (390, 844)):
        await page.set_viewport_size({"width": width, "height": height})
        await check(page, f"today-{width}")
        placed, listed = await section.bounding_box(), await today.bounding_box()
        lines = [await each.bounding_box() for each in await section.locator("summary").all()]
        assert placed is not None and listed is not None
        assert [each and each["height"] < 50 for each in lines] == [True] * 3
        assert placed["y"] == listed["y"] if width > 1000 else placed["y"] >= listed["y"] + listed["height"]
        assert (placed["x"] >= listed["x"] + listed["width"]) == (width > 1000)
        await expect(count).to_be_visible(visible=width < 1000)
    await count.click()
    await expect(section).to_be_in_viewport()
    await section.get_by_text("Create 1 workout of Cleo").first.click()
    await page.emulate_media(color_scheme="light")
    await check(page, "today-open-390")
    await page.set_viewport_size({"width": 1440, "height": 900})
    await section.locator("summary", has_text="the client Ana").focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Reject “Create the client Ana").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_have_text("Rejected. Nothing was changed.")
    await section.locator("summary", has_text="the client Bo").focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Approve “Create the client Bo").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_have_text("Approved and done.")
    await expect(count).to_have_count(0)
    assert await coach.names() == ["Bo", "Cleo"]
