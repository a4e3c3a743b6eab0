"""Making a program of a pasted table, on a phone and on a large screen."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

from tests.support.client import CoachClient
from tests.support.sampled import some
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in

SCREENS: dict[str, dict[str, Any]] = {
    "phone": {"viewport": {"width": 360, "height": 740}},
    "desk": {"viewport": {"width": 1280, "height": 900}},
}
TABLE = (
    "Week\tDay\tExercise\tSets\tReps\tLoad\tRest\tSuperset\tNotes\n"
    "1\tDay 1: Push\tBench press\t3\t8-10\t60\t90\t\tSlow down\n"
    "\t\tLeo's rope flow with a long name\t2\t30s\theavy\t\tA\t\n"
    "\t\tPull-ups\t3\tAMRAP\t\t\tA\t\n"
    "\tDay 2\tREST\t\t\t\t\t\t\n"
)


@pytest.mark.parametrize("screen", some([*SCREENS], 1))
async def test_a_pasted_table_becomes_a_program(open_page: OpenPage, coach: CoachClient, screen: str) -> None:
    page = await open_page(**SCREENS[screen])
    await sign_in(page, coach)
    await page.goto("/app/programs")
    await page.get_by_role("link", name="Import from a sheet").click()
    await page.get_by_label("Or paste the table here").fill(TABLE)
    await page.get_by_role("button", name="Preview").click()
    await page.get_by_role("heading", name="Preview").wait_for()
    await picture(page, screen, "program-sheet")
    assert await serious(page) == []
    width = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0, "nothing is wider than the window"
    await page.get_by_text("heavy could not be read").click()
    await page.get_by_label("Load", exact=True).fill("20 kg")
    await picture(page, screen, "program-sheet-cell")
    await page.get_by_label("Load", exact=True).press("Enter")
    await expect(page.get_by_text("2x30s @20kg", exact=True)).to_be_visible()
    await expect(page.get_by_text("could not be read")).to_have_count(0)
    await page.get_by_label("Leo's rope flow with a long name becomes").select_option("skip")
    await page.get_by_label("Search an exercise for Pull-ups").fill("goblet")
    await page.get_by_role("option", name="Goblet Squat").first.click()
    await expect(page.get_by_label("Pull-ups becomes").locator("option:checked")).to_have_text("Goblet Squat")
    await page.get_by_label("Name of the program").first.fill("Spring")
    await page.get_by_role("button", name="Create program").first.click()
    await page.get_by_role("heading", name="Spring").wait_for()
    await expect(page.get_by_text("Goblet Squat").first).to_be_visible()
