"""The filter of /docs."""

from __future__ import annotations

from playwright.async_api import expect

from tests.web.browser.conftest import OpenPage, serious

# Articles that are hidden, and all but ten schemas: the check would take a minute for hundreds of the same form.
_REMOVE_MOST = """
const shown = [...document.querySelectorAll("main article")].filter((each) => each.checkVisibility() || each.remove());
shown.filter((each) => each.id.startsWith("schema-")).slice(10).forEach((each) => each.remove());
"""


async def test_operations_are_filtered_by_words_of_name_path_and_method(open_page: OpenPage) -> None:
    page = await open_page()
    await page.goto("/docs")
    shown = page.locator("main article:not([id^=schema-]):visible")
    operations = await shown.count()
    await page.get_by_label("Filter operations").fill("adjust POST")
    await page.keyboard.press("Enter")
    ids = await shown.evaluate_all("articles => articles.map(article => article.id)")
    assert ids == ["bulkAdjustSchedule", "adjustSchedule"]
    assert await page.locator("#filter-count").inner_text() == "2 operations"

    await page.evaluate("location.hash = 'createNote'")
    await page.locator("#createNote").wait_for(state="visible")
    assert await shown.count() == operations

    await page.get_by_label("Filter operations").fill("adjust POST")
    await page.keyboard.press("Enter")
    await expect(shown).to_have_count(2)
    await page.evaluate(_REMOVE_MOST)
    assert await page.locator("main article").count() > 1
    assert await serious(page) == []


async def test_there_is_no_filter_without_scripts(open_page: OpenPage) -> None:
    page = await open_page(java_script_enabled=False)
    await page.goto("/docs")
    assert not await page.locator("#filter").is_visible()
    await page.locator("a", has_text="Integrations").first.click()
    await page.get_by_role("heading", name="Authentication").wait_for()
