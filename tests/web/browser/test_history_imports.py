"""Import of training history in Chromium: clicks of a client, and a coach who matches names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, expect

from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from tests.support.client import CoachClient
from tests.support.done_workouts import BENCH
from tests.support.real_exports import EXPORTS
from tests.support.sampled import some
from tests.support.training import exercise_of
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in
from tests.web.browser.phone import PHONE, Complaints
from tests.web.browser.test_task_counts import Counter

STRONG = next(each for each in EXPORTS if each.name == "Strong to 2023")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An export of Strong without units."""
    path = tmp_path / "strong.csv"
    path.write_bytes(STRONG.build(80))
    return path


async def with_bench_press_today(coach: CoachClient) -> dict[str, Any]:
    """A client with the bench press of the shared library to do today."""
    mara = await coach.create_customer("Mara", surname="Quill")
    [found] = (await coach.post("/exercises/resolve", {"names": [BENCH]})).ok()["results"]
    today = str(coach.ctx.caller.today())
    item = exercise_of(found["match"], {"type": "reps_load", "minPlannedReps": 8, "load": 60})
    body = {"name": "Push", "date": today, "items": [item]}
    (await coach.post(f"/coach/customers/{mara['_id']}/wblocks", body)).ok(201)
    return mara


async def test_a_client_sees_the_last_time_after_six_clicks(
    chromium: Browser, public_server: TestServer, coach: CoachClient, file: Path
) -> None:
    """From the file to what was lifted last time, in the workout of today."""
    mara, observed = await with_bench_press_today(coach), Complaints()
    context = await chromium.new_context(base_url=str(public_server.make_url("/")), **PHONE)
    observed.watch(context, public_server)
    session = await sessions.start_for_customer(coach.ctx, ObjectId(mara["_id"]), "Phone")
    await context.add_cookies(
        [{"name": "coach_session", "value": session.token, "url": str(public_server.make_url("/"))}]
    )
    page = await context.new_page()
    await page.goto("/train/settings/import")
    counter = Counter(page)

    counter.clicks += 1
    await page.locator("input[type=file]").set_input_files(file)
    await counter.click(page.get_by_role("button", name="Upload"))
    await counter.click(page.get_by_role("radio", name="Kilograms"))
    await counter.click(page.get_by_role("radio", name="Kilometers"))
    await picture(page, "phone", "bring-your-history")
    assert await serious(page) == []
    await counter.click(page.get_by_role("button", name="Import"))
    await expect(page.get_by_text("Imported.")).to_be_visible()
    await picture(page, "phone", "history-imported")
    await counter.click(page.get_by_role("link", name="To today’s workout"))
    await expect(page.get_by_text("Last: ").first).to_be_visible()

    assert counter.clicks <= 6
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert observed.unexpected() == []
    await context.close()


@pytest.mark.parametrize("look", some(["dark", "light"], 1))
async def test_a_coach_matches_names(open_page: OpenPage, coach: CoachClient, file: Path, look: str) -> None:
    mara = await coach.create_customer("Mara", surname="Quill")
    page = await open_page(color_scheme=look)
    await sign_in(page, coach)
    await page.goto(f"/app/import?customerId={mara['_id']}")
    await page.locator("input[type=file]").set_input_files(file)
    await page.get_by_role("button", name="Upload").click()
    await page.get_by_role("radio", name="Kilograms").check()
    await page.get_by_role("radio", name="Kilometers").check()
    search = page.get_by_role("combobox", name="Search an exercise for Push Up")
    await search.focus()
    await page.keyboard.type("burpee")
    await page.keyboard.press("Enter")
    becomes = page.get_by_role("combobox", name="Push Up becomes")
    await expect(becomes.locator("option:checked")).to_contain_text("Burpee")
    await picture(page, look, "import-history")
    assert await serious(page) == []

    await page.get_by_role("button", name="Import").press("Enter")
    await expect(page.get_by_text("Imported.")).to_be_visible()
    await picture(page, look, "history-imported")
    [block] = await coach.calendar(mara, "2025-03-28", "2025-03-28")
    assert "Burpee" in block["items"][-1]["exercise"]["name"]
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("The import was undone.")).to_be_visible()
    assert await coach.calendar(mara, "2025-03-28", "2025-03-28") == []
