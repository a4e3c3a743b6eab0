"""Charts of values by date: uPlot with script, the SVG without it and on paper."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.async_api import Page, expect

from tests.support import training
from tests.support.client import CoachClient
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in

VALUES = ((70, 82.5), (30, 81), (3, 79.5), (0, 79.25))  # days ago, kg


async def measured_client(coach: CoachClient, *values: tuple[int, float]) -> str:
    """Create a client with these weights, each so many days ago; returns the page of their progress."""
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach)
    path = training.client_path(ana, "metrics-sets")
    (await coach.post(path, {"metricsSetId": body["_id"]})).ok(201)
    for days, value in values:
        day = str(coach.ctx.caller.today() - timedelta(days=days))
        entry = {"metricId": body["metrics"][0]["_id"], "date": day, "value": value}
        (await coach.post(f"{path}/{body['_id']}/entries", entry)).ok(201)
    return f"/app/customers/{ana['_id']}/progress"


@pytest.fixture
async def progress_path(coach: CoachClient) -> str:
    """The page of a client with four weights, which are not equally far apart."""
    return await measured_client(coach, *VALUES)


async def point(page: Page, share: float) -> None:
    """Move the pointer over the chart, `share` of its width from the left."""
    await page.locator(".u-over").scroll_into_view_if_needed()
    box = await page.locator(".u-over").bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


async def test_pointer_shows_the_value_and_the_date(
    open_page: OpenPage, coach: CoachClient, progress_path: str
) -> None:
    today = coach.ctx.caller.today()
    page = await open_page(color_scheme="dark")
    await sign_in(page, coach)
    await page.goto(progress_path)
    await expect(page.locator(".u-over")).to_be_visible()
    await expect(page.locator(".plot > svg")).to_be_hidden()
    await expect(page.locator(".plot-value")).to_be_hidden()
    for days, value in VALUES:
        day = today - timedelta(days=days)
        await point(page, 1 - days / 70 - (0.01 if days == 0 else -0.005))
        text = f"{day:%a} {day.day} {day:%b %Y}: {value:g} kg"
        await expect(page.locator(".plot-value")).to_have_text(text)
    await point(page, 0.56)
    await picture(page, "dark", "chart-with-pointer")
    assert await serious(page) == []
    await page.get_by_text("Show data").last.click()
    await expect(page.get_by_role("cell", name="82.5")).to_be_visible()
    await page.emulate_media(media="print")
    await expect(page.locator(".plot > svg")).to_be_visible()
    await expect(page.locator(".u-over")).to_be_hidden()


async def test_long_times_have_months_and_years_on_the_axis(open_page: OpenPage, coach: CoachClient) -> None:
    path = await measured_client(coach, *((days, 80 + days % 7) for days in range(0, 350, 50)))
    page = await open_page(viewport={"width": 390, "height": 800}, is_mobile=True, has_touch=True)
    await sign_in(page, coach)
    await page.goto(f"{path}?weeks=52")
    await page.locator(".u-over").scroll_into_view_if_needed()
    await page.locator(".u-over").tap()
    await expect(page.locator(".plot-value")).to_contain_text(" kg")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await picture(page, "small", "chart-of-a-year")


async def test_a_lift_has_charts_of_its_sessions(open_page: OpenPage, coach: CoachClient) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    today = coach.ctx.caller.today()
    for days, load in ((40, 80), (21, 82.5), (2, 85)):
        day = today - timedelta(days=days)
        block = await training.block_with(coach, ana, training.exercise_of(squat), date=str(day))
        (await training.log(coach, block, block["items"][0], customerSets=[{"reps": 6, "load": load}])).ok()
    page = await open_page(color_scheme="dark")
    await sign_in(page, coach)
    await page.goto(f"/app/customers/{ana['_id']}/progress")
    await page.get_by_role("link", name="Squat").click()
    await expect(page.locator(".u-over")).to_have_count(2)
    box = await page.locator(".u-over").first.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 30)
    last = today - timedelta(days=2)
    text = f"{last:%a} {last.day} {last:%b %Y}: 102 kg"
    await expect(page.locator(".plot-value").first).to_have_text(text)
    await expect(page.get_by_role("cell", name="6 × 82.5 kg")).to_be_visible()
    await picture(page, "dark", "lift")
    assert await serious(page) == []


async def test_without_script_the_drawing_is_shown(open_page: OpenPage, coach: CoachClient, progress_path: str) -> None:
    page = await open_page(java_script_enabled=False)
    await sign_in(page, coach)
    await page.goto(progress_path)
    await expect(page.locator(".plot > svg")).to_be_visible()
    await expect(page.locator(".plot > svg circle")).to_have_count(4)
