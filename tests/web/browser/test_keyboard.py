"""Using the application by keyboard only."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.conftest import PASSWORD
from tests.support.client import MONDAY, CoachClient
from tests.web.browser.conftest import OpenPage, picture

_FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  // Within a date, the browser itself marks the part that has the focus.
  const ring = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2) || at.type === "date";
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
    await expect(page.get_by_role("status").first).to_have_text("Legs added. Now add exercises to it.")


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
    await expect(page.locator("main .menu > summary")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Base").click()
    await expect(archive).to_be_hidden()
    await page.locator("main .menu > summary").click()
    await picture(page, "light", "menu")
    await archive.click()
    await expect(page.get_by_role("status")).to_contain_text("Base archived.")


async def test_a_week_is_planned_moved_copied_and_undone_by_keyboard(page: Page, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    await coach.create_exercise("Squat")
    await page.goto(f"/app/customers/{ana['_id']}?week={MONDAY}")
    await tab_to(page, "Add a workout on Mon 2 Mar 2026")
    await page.keyboard.press("Enter")
    await tab_to(page, "Workout name")
    await page.keyboard.type("Legs")
    await tab_to(page, "Exercises optional")
    await page.keyboard.type("Squat: 3x8 @60kg")
    await tab_to(page, "Add workout")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_have_text("Legs added.")

    await tab_to(page, "Move workoutMove the workout Legs")
    await page.keyboard.press("Enter")
    await tab_to(page, "To")
    await page.keyboard.type("03042026")
    await tab_to(page, "Move")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_have_text("Legs moved to Wed 4 Mar 2026.")

    await tab_to(page, "Copy")
    await page.keyboard.press("Enter")
    await tab_to(page, "How many times")
    await page.keyboard.type("2")
    await tab_to(page, "Load +/−")
    await page.keyboard.type("2.5")
    await tab_to(page, "Preview")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Preview")).to_be_focused()
    await expect(page.locator(".previewed")).to_contain_text("65 kg")
    await tab_to(page, "Copy", key="Shift+Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("2 workouts")
    copied = await coach.calendar(ana, end="2026-03-22")
    assert [each["date"] for each in copied] == ["2026-03-04", "2026-03-11", "2026-03-18"]

    await tab_to(page, "Undo")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("Undone")
    assert [each["date"] for each in await coach.calendar(ana, end="2026-03-22")] == ["2026-03-04"]
