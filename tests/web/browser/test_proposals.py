"""Deciding on proposals of an assistant in Chromium: on a phone from the address, and with the keyboard on Today."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page, expect

from tests.conftest import PASSWORD
from tests.mcp.conftest import mcp
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, tool_proposal
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in

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
    page = await open_page(**DARK)
    await sign_in(page, coach)
    await expect(page.get_by_role("navigation", name="Main")).to_contain_text("2 proposals wait")
    await check(page, "today")
    await page.get_by_role("button", name="Reject “Create the client Ana").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_have_text("Rejected. Nothing was changed.")
    await page.get_by_role("button", name="Approve “Create the client Bo").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_have_text("Approved and done.")
    await expect(page.get_by_role("heading", name="Your assistant proposes")).to_have_count(0)
    assert await coach.names() == ["Bo"]
