"""Lists that are searched while a coach types."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.support.client import CoachClient


async def test_results_appear_while_typing(page: Page, coach: CoachClient) -> None:
    for name in ("Zercher carry", "Quarter turn"):
        await coach.create_exercise(name)
        (await coach.post("/coach/programs", {"name": name})).ok(201)
    loads: list[str] = []
    page.on("domcontentloaded", lambda _: loads.append(page.url))
    for path in ("/app/exercises", "/app/programs"):
        await page.goto(path)
        loads.clear()

        await page.locator("#keywords").press_sequentially("Zercher")

        results = page.locator("#results")
        await expect(results.get_by_role("link", name="Zercher carry")).to_be_visible()
        await expect(results.get_by_role("link", name="Quarter turn")).to_have_count(0)
        await page.wait_for_url("**keywords=Zercher*", wait_until="commit")
        assert loads == []
