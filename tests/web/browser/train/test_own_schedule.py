"""Moving a workout on the phone: two taps, also without a connection."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from playwright.async_api import BrowserContext, Page, expect

from tests.web.browser.conftest import picture, serious
from tests.web.browser.phone import Complaints, Thumb, Trainee

BAR = "[data-queue-bar]"


def in_days(ana: Trainee, days: int) -> str:
    return str(ana.coach.ctx.caller.today() + timedelta(days=days))


async def stored(ana: Trainee) -> tuple[Any, Any]:
    block = (await ana.coach.get(f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}")).ok()
    return block["date"], block["plannedDate"]


async def test_a_workout_is_moved_with_two_taps_also_without_a_connection(
    page: Page, phone: BrowserContext, ana: Trainee, observed: Complaints
) -> None:
    for start in ("/train", ana.path):
        await page.goto(start)
        thumb = Thumb()
        await thumb.tap(page.locator(".wk-move summary"))
        await picture(page, "small", "train-move" if start == "/train" else "train-workout-move")
        assert start == "/train" or await serious(page) == []
        target = 1 if start == "/train" else 2
        await thumb.tap(page.locator(f'.wk-move button[value="{in_days(ana, target)}"]'))
        await page.wait_for_url("**/train/calendar?**")
        await expect(page.get_by_role("main").get_by_role("status")).to_contain_text("Upper body moved to")
        assert thumb.taps == 2
        assert await stored(ana) == (in_days(ana, target), in_days(ana, 0))
    await picture(page, "small", "train-moved")

    await page.goto(ana.path)
    await phone.set_offline(True)
    await page.locator(".wk-move summary").tap()
    await page.locator(f'.wk-move button[value="{in_days(ana, 3)}"]').tap()
    await expect(page.locator(".wk-move")).to_contain_text("Not sent yet")
    await expect(page.locator(BAR)).to_contain_text("1 change not sent yet")
    assert await stored(ana) == (in_days(ana, 2), in_days(ana, 0))
    await phone.set_offline(False)
    await expect(page.locator(BAR)).to_be_hidden()
    assert await stored(ana) == (in_days(ana, 3), in_days(ana, 0))

    # A move that is not accepted says why, and where to.
    observed.expected += ("409",)
    await page.goto(ana.path)
    await phone.set_offline(True)
    await page.locator(".wk-move summary").tap()
    button = page.locator(f'.wk-move button[value="{in_days(ana, 1)}"]')
    label = await button.inner_text()
    await button.tap()
    await expect(page.locator(".wk-move")).to_contain_text("Not sent yet")
    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/log"
    (await ana.coach.put(path, {"durationMinutes": 40, "sessionRpe": None, "comment": None})).ok()
    await phone.set_offline(False)
    section = page.get_by_role("region", name="Not saved")
    await section.locator("summary").tap()
    await expect(section).to_contain_text("Move Upper body")
    await expect(section).to_contain_text(label)
    await expect(section).to_contain_text("Something of this workout is done")
    assert await stored(ana) == (in_days(ana, 3), in_days(ana, 0))


async def test_an_own_workout_is_picked_in_two_loads_and_twelve_taps_and_kept_without_a_connection(
    page: Page, phone: BrowserContext, ana: Trainee
) -> None:
    run = await ana.coach.create_exercise("Zz evening run", type="cardio")
    await page.goto("/train")
    loads: list[Page] = []
    page.on("domcontentloaded", lambda _: loads.append(page))
    thumb = Thumb()
    await thumb.tap(page.get_by_role("link", name="Add a workout"))
    field, options = page.get_by_role("combobox", name="Add an exercise"), page.get_by_role("option")
    await thumb.tap(field)
    await thumb.tap(options.filter(has_text="Bench press"))
    await thumb.tap(field)
    await thumb.tap(options.filter(has_text="Seated row"))
    await field.press_sequentially("evening run")
    await thumb.tap(options.filter(has_text="Zz evening run").first)
    await thumb.tap(page.get_by_role("button", name="More: Bench press, sets"))
    await thumb.tap(page.get_by_role("button", name="More: Zz evening run, time"))
    await page.get_by_label("Bench press: load").fill("50")
    await picture(page, "small", "train-own-workout")
    assert await serious(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await thumb.tap(page.get_by_role("button", name="Add workout"))
    await page.wait_for_url("**/train/workouts/**")
    assert (len(loads) <= 2, thumb.taps <= 12) == (True, True), (len(loads), thumb.taps)
    day = in_days(ana, 0)
    path = f"/coach/customers/{ana.customer['_id']}/wblock"
    own = (await ana.coach.get(path, startDate=day, endDate=day)).ok()[-1]
    names = [(item["exercise"]["name"], len(item["exerciseSets"])) for item in own["items"]]
    assert names == [("Bench press", 4), ("Seated row", 3), (run["name"], 1)]
    assert own["items"][0]["exerciseSets"][0]["load"] == 50
    assert own["items"][2]["exerciseSets"][0]["minPlannedSeconds"] == 1_260

    # A name that is not picked is not lost, and another measure has an amount of its own.
    await page.goto("/train/add-workout")
    await field.tap()
    await page.get_by_role("option", name="Bench press").tap()
    await page.get_by_label("Bench press: counted in").select_option("Time")
    await expect(page.get_by_label("Bench press: time")).to_have_value("30")
    await page.get_by_label("Bench press: time").fill("1:30")
    await page.get_by_label("Bench press: counted in").select_option("Metres")
    await expect(page.get_by_label("Bench press: metres")).to_have_value("100")
    await field.fill("Seated")
    await field.blur()
    await page.get_by_role("button", name="Add workout").tap()
    await expect(page).to_have_url(re.compile("/train/add-workout"))
    assert (
        await field.evaluate("field => field.validationMessage") == "Pick an exercise of the list, or clear this field."
    )
    await field.tap()
    await page.get_by_role("option", name="Seated row").tap()
    await page.get_by_role("button", name="Add workout").tap()
    await page.wait_for_url("**/train/workouts/**")
    await expect(page.get_by_role("heading", name="Seated row")).to_be_visible()

    await page.goto("/train/add-workout")
    row = page.locator(".own-row")
    await field.tap()
    await page.get_by_role("option", name="Bench press").tap()
    await page.get_by_label("Bench press: load").fill("47.5")
    await page.reload()
    await expect(row).to_have_count(1)
    await expect(page.get_by_label("Bench press: load")).to_have_value("47.5")
    await field.tap()
    await page.get_by_role("option", name="Seated row").tap()
    await expect(row).to_have_count(2)
    await page.get_by_role("button", name="Remove Bench press").tap()
    await expect(row).to_have_count(1)

    await phone.set_offline(True)
    await page.get_by_role("button", name="Add workout").tap()
    await expect(page.locator(BAR)).to_contain_text("1 change not sent yet")
    await expect(page.locator(".own-form")).to_contain_text("Not sent yet")
    await page.wait_for_timeout(600)  # a second tap at once would be ignored
    await page.get_by_role("button", name="Add workout").tap()
    await expect(page.locator(BAR)).to_contain_text("1 change not sent yet")
    await phone.set_offline(False)
    await page.wait_for_url("**/train/workouts/**")
    await expect(page.get_by_role("heading", name="My workout")).to_be_visible()
    await expect(page.get_by_role("heading", name="Seated row")).to_be_visible()
