"""Using the application by keyboard only."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.conftest import PASSWORD
from tests.support.client import MONDAY, CoachClient
from tests.web.browser.conftest import OpenPage, picture

_FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return {
    name: (at.getAttribute("aria-label") || at.labels?.[0]?.textContent || at.textContent || "").trim(),
    seen: ring && box.width > 0 && box.height > 0,
    body: at === document.body,
  };
}"""


async def tab_to(page: Page, name: str, *, key: str = "Tab") -> None:
    """Press Tab until the control of this name has the focus; each focused control on the way must be visible."""
    for _ in range(120):
        await page.keyboard.press(key)
        focused = await page.evaluate(_FOCUSED)
        assert focused["seen"] or focused["body"], f"{focused['name']!r} has the focus and does not show it"
        if focused["name"] == name:
            return
    raise AssertionError(f"{name!r} cannot be reached by keyboard")


async def test_client_is_added_and_planned_by_keyboard(open_page: OpenPage, coach: CoachClient) -> None:
    page = await open_page()
    await page.goto("/app/sign-in")
    await tab_to(page, "Email")
    await page.keyboard.type(str(coach.ctx.caller.email))
    await tab_to(page, "Password")
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/app/attention")

    await tab_to(page, "Skip to content")
    await page.keyboard.press("Enter")
    await tab_to(page, "Add client")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Add client")).to_be_visible()
    await tab_to(page, "First name")
    await page.keyboard.type("Ana")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("Ana added.")

    await page.goto(f"{page.url}?week={MONDAY}")
    await tab_to(page, "Add a workout on Mon 2 Mar 2026")
    await page.keyboard.press("Enter")
    await tab_to(page, "Workout name")
    await page.keyboard.type("Legs")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_have_text("Legs added. Now add exercises to it.")


async def test_error_summary_receives_focus(open_page: OpenPage, complaints: list[str]) -> None:
    page = await open_page()
    await page.goto("/app/sign-up")
    for label, text in (("Company", "Nova"), ("Your name", "Nova"), ("Email", "n@example.com"), ("Password", "short")):
        await page.get_by_label(label).fill(text)
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("alert")).to_be_focused()
    await expect(page.get_by_label("Password")).to_have_accessible_description(
        "At least 12 characters. Several words are easy to remember. This must be at least 12 characters long."
    )
    await expect(page).to_have_title("Error: Sign up · Coaching")
    assert all("400" in each for each in complaints), "only the rejected form"
    complaints.clear()


async def test_a_menu_is_opened_and_closed_by_keyboard(page: Page, coach: CoachClient) -> None:
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    await page.goto(f"/app/programs/{program['_id']}")
    await tab_to(page, "More about Base")
    archive = page.get_by_role("button", name="Archive")
    await expect(archive).to_be_hidden()
    await page.keyboard.press("Enter")
    await tab_to(page, "Archive")
    await page.keyboard.press("Escape")
    await expect(archive).to_be_hidden()
    await expect(page.locator(".menu > summary")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Base").click()
    await expect(archive).to_be_hidden()
    await page.locator(".menu > summary").click()
    await picture(page, "light", "menu")
    await archive.click()
    await expect(page.get_by_role("status")).to_contain_text("Base archived.")
