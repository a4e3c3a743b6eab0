"""The workout editor in Chromium: cards that save themselves, by mouse and by keyboard."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from playwright.async_api import Page, Route, expect

from coaching_service.library.exercises.service import store_counts
from tests.support import training
from tests.support.client import CoachClient
from tests.support.sampled import some
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in
from tests.web.browser.test_keyboard import tab_to
from tests.web.browser.test_task_counts import Counter

_LOOKS: dict[str, dict[str, Any]] = {
    f"{theme}-{width}": {"color_scheme": theme, "viewport": {"width": width, "height": 900}, "has_touch": width < 500}
    for width in (390, 1440, 768)
    for theme in ("dark", "light")
}


async def _workout(coach: CoachClient) -> tuple[dict[str, Any], str]:
    squat, press = await coach.create_exercise("Back squat"), await coach.create_exercise("Bench press")
    row, ana = await coach.create_exercise("Barbell row"), await coach.create_customer("Ana", surname="Flores")
    warm_up = {"type": "reps_load", "minPlannedReps": 5, "load": 40, "isWarmup": True, "rest": 90}
    sets = [warm_up, *[{"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60, "rest": 90}] * 3]
    block = await training.block_with(
        *(coach, ana, training.exercise_of(squat, *sets)),
        training.exercise_of(press, supersetId="A", exerciseInstructions="Elbows in."),
        training.exercise_of(row, supersetId="A"),
        training.circuit_of(squat, row, rounds=3),
        training.task("Walk 20 minutes"),
    )
    return block, f"/app/customers/{ana['_id']}/blocks/{block['_id']}"


async def _stored(coach: CoachClient, block: dict[str, Any], at: int = 0) -> list[Any]:
    sets = (await training.read(coach, block))["items"][at]["exerciseSets"]
    return [(each["minPlannedReps"], each["load"]) for each in sets]


async def test_cards_save_themselves(page: Page, coach: CoachClient, complaints: list[str]) -> None:
    block, path = await _workout(coach)
    await page.goto(path)
    card, other = (
        page.get_by_role("form", name="Sets of Back squat", exact=True),
        page.get_by_role("form", name="Sets of Bench press", exact=True),
    )
    await card.get_by_label("Set 2: Load").fill("70")
    await card.get_by_role("button", name="Fill down load").click()
    await other.get_by_label("Set 1: Reps").fill("6-8")
    await expect(card.get_by_role("status")).to_have_text("Saved")
    await expect(other.get_by_role("status")).to_have_text("Saved")
    await expect(page.get_by_text("3 × 8–10 × 70 kg, rest 90 s")).to_be_visible()

    await card.get_by_role("button", name="Add set").click()
    await expect(card.get_by_label("Set 5: Reps")).to_be_focused()
    await card.get_by_role("button", name="Remove set 2").click()
    await page.get_by_role("link", name="Log Bench press").click()  # not lost: the page waits until it is saved
    await expect(page.get_by_role("heading", name="Log Bench press")).to_be_visible()
    assert await _stored(coach, block) == [(5, 40), (8, 70), (8, 70), (8, 70)]
    assert (await _stored(coach, block, 1))[0] == (6, 60)

    await page.go_back()
    await card.get_by_label("Set 1: Reps").fill("many")
    await expect(card.get_by_text("This must be a number such as 8")).to_be_visible()
    await card.get_by_label("Set 1: Reps").fill("4")
    await expect(card.get_by_role("status")).to_have_text("Saved")
    assert all("400" in each for each in complaints), complaints
    complaints.clear()


async def test_nothing_is_lost_when_saving_fails(page: Page, coach: CoachClient, complaints: list[str]) -> None:
    block, path = await _workout(coach)
    await page.goto(path)
    card = page.get_by_role("form", name="Sets of Back squat", exact=True)
    status, reps = card.get_by_role("status"), card.get_by_label("Set 1: Reps")

    async def lose_answer(route: Route) -> None:
        await route.fetch()
        await route.abort("connectionreset")

    await page.route("**/card", lose_answer, times=1)
    await reps.fill("6")
    await expect(status).to_contain_text("Not saved: no connection")
    await expect(status).to_have_text("Saved")

    walk = block["items"][4]["_id"]
    renamed = {"taskFields": {"title": "Run"}}
    changed = await coach.patch(f"{training.path_of(block)}/witems/{walk}", renamed)
    await coach.wait_until_numbered(str(changed.headers["X-Change-Id"]))
    await reps.fill("7")
    await expect(status).to_contain_text("This has been changed since you opened the page, by Olga Owner (API key) on ")
    await picture(page, "editor", "changed-by-another")
    await status.get_by_role("button", name="Compare and save").click()
    await expect(page.get_by_text("Saved value: 6")).to_be_visible()
    await expect(reps).to_have_value("7")
    await reps.fill("9")
    await expect(status).to_have_text("Saved")
    assert (await _stored(coach, block))[0] == (9, 40)
    assert all("409" in each or "CONNECTION_RESET" in each for each in complaints), complaints
    complaints.clear()


async def test_a_workout_is_edited_by_keyboard(page: Page, coach: CoachClient) -> None:
    block, path = await _workout(coach)
    await page.goto(path)
    titles = page.locator(".cards h3")
    await tab_to(page, "Set 1: Load, kg")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_label("Set 2: Load").first).to_be_focused()
    await page.keyboard.type("62,5")
    await page.keyboard.press("Control+d")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.type("42.5")
    await page.keyboard.press("Enter")
    status = page.get_by_role("form", name="Sets of Back squat", exact=True).first.get_by_role("status")
    await expect(status).to_have_text("Saved")
    await tab_to(page, "Add set")
    await page.keyboard.press("Enter")
    await page.keyboard.type("12")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("1 × 12 × 62.5 kg, rest 90 s")).to_be_visible()
    assert await _stored(coach, block) == [(5, 42.5), (8, 62.5), (8, 62.5), (8, 62.5), (12, 62.5)]

    await tab_to(page, "Set 1: Load, kg", key="Shift+Tab")
    await tab_to(page, "More about Back squat", key="Shift+Tab")
    await page.keyboard.press("Enter")
    await tab_to(page, "Duplicate Back squat")
    await page.keyboard.press("Enter")
    await expect(titles.nth(1)).to_have_text("Back squat")
    await expect(page.get_by_role("status").first).to_contain_text("Back squat duplicated.")
    await expect(
        page.get_by_role("form", name="Sets of Back squat", exact=True).nth(1).get_by_label("Set 1: Reps")
    ).to_be_focused()
    await page.keyboard.type("3")
    await tab_to(page, "More about Back squat", key="Shift+Tab")
    await page.keyboard.press("Enter")
    await tab_to(page, "Move down Back squat")
    await page.keyboard.press("Enter")
    await expect(titles.nth(1)).to_have_text("A1 Bench press")
    await expect(page.locator("summary", has_text="More about Back squat").nth(1)).to_be_focused()

    await tab_to(page, "More about Barbell row in Finisher, 3 rounds")
    await page.keyboard.press("Enter")
    await tab_to(page, "Move up Barbell row in Finisher, 3 rounds")
    await page.keyboard.press("Enter")
    await expect(page.locator(".circuit h4").first).to_have_text("1 Barbell row")
    await tab_to(page, "Set 1: Reps")
    await page.keyboard.type("15")
    await tab_to(page, "Add exercise")
    await page.keyboard.type("bench")
    await expect(page.get_by_role("listbox", name="Exercises")).to_be_visible()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(titles).to_have_count(7)
    await expect(
        page.get_by_role("form", name="Sets of Bench press", exact=True).last.get_by_label("Set 1: Reps")
    ).to_be_focused()
    stored = (await training.read(coach, block))["items"]
    names = [(item.get("exercise") or {}).get("name", item["type"]) for item in stored]
    assert names == ["Back squat", "Bench press", "Back squat", "Barbell row", "CIRCUIT", "TASK", "Bench press"]
    assert stored[2]["exerciseSets"][0]["minPlannedReps"] == 3
    assert stored[4]["circuitExercises"][0]["sets"][0]["minPlannedReps"] == 15


async def test_exercises_are_added_as_their_names_are_typed(page: Page, coach: CoachClient) -> None:
    block, path = await _workout(coach)
    await store_counts(coach.ctx.services)  # the server of the pages is another one, which reads what is stored
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    await page.route("**/picker.*.js", hold)
    await page.goto(path, wait_until="commit")
    await page.get_by_label("Add exercise").click()
    released.set()
    first = page.get_by_role("listbox", name="Exercises").get_by_role("option").first
    await expect(first).to_contain_text("Back squat")  # the field was chosen before its script started
    counter = Counter(page)
    card = page.get_by_role("form", name="Sets of Back squat", exact=True).first
    await card.get_by_label("Set 1: Load").fill("45")
    field = page.get_by_role("combobox", name="Add exercise")
    await field.focus()
    await expect(first).to_contain_text("Back squat")
    await picture(page, "editor", "suggestions")
    assert await serious(page, within=page.locator("form", has=field)) == []
    await page.keyboard.type("barbel row")
    await page.keyboard.press("Enter")  # before the suggestions have arrived

    await expect(page.locator(".cards h3")).to_have_count(6)
    await expect(
        page.get_by_role("form", name="Sets of Barbell row", exact=True).last.get_by_label("Set 1: Reps")
    ).to_be_focused()
    await expect(page.get_by_role("status").first).to_contain_text("Barbell row added.")
    await page.keyboard.type("5")
    await field.fill("bench press")
    await expect(page.get_by_role("listbox", name="Exercises")).to_be_visible()
    await page.get_by_role("listbox", name="Exercises").get_by_role("option").first.click()
    await expect(page.locator(".cards h3")).to_have_count(7)
    await expect(
        page.get_by_role("form", name="Sets of Bench press", exact=True).last.get_by_label("Set 1: Reps")
    ).to_be_focused()
    stored = (await training.read(coach, block))["items"]
    assert stored[0]["exerciseSets"][0]["load"] == 45, "what was typed is saved before"
    assert stored[5]["exerciseSets"][0]["minPlannedReps"] == 5
    assert counter.loads == 0
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator(".cards h3")).to_have_count(6)


async def test_the_look_of_the_editor(open_page: OpenPage, coach: CoachClient) -> None:
    block, path = await _workout(coach)
    client, squat, press = {"_id": block["customerId"]}, *({"_id": each["exerciseId"]} for each in block["items"][:2])
    earlier = await training.block_with(coach, client, training.exercise_of(squat), date="2026-02-23")
    done = [{"index": index, "reps": reps, "load": 60, "isCompleted": True} for index, reps in enumerate((8, 8, 7), 1)]
    (await training.log(coach, earlier, earlier["items"][0], isCompleted=True, customerSets=done)).ok()
    maximum = f"/coach/customers/{client['_id']}/training-maxes/{press['_id']}"
    (await coach.put(maximum, {"value": 80})).ok()
    percents = [{"type": "reps_load", "minPlannedReps": 5, "loadPercent": each, "rpe": 8} for each in (70, 75, 80)]
    item = f"{training.path_of(block)}/witems/{block['items'][1]['_id']}"
    (await coach.patch(item, {"exerciseSets": percents})).ok()
    for look in some([*_LOOKS], 1):
        page = await open_page(**_LOOKS[look])
        await sign_in(page, coach)
        await page.goto(path)
        await picture(page, "editor", look)
        assert await serious(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        await page.context.close()


async def test_cards_are_moved_by_button_and_by_mouse(page: Page, coach: CoachClient) -> None:
    block, path = await _workout(coach)
    await page.set_viewport_size({"width": 1280, "height": 2400})
    await page.goto(path)
    titles = page.locator(".cards h3")
    await expect(titles.nth(2)).to_have_text("A2 Barbell row")
    await page.get_by_label("Set 1: Load").first.fill("45")
    await page.locator("summary", has_text="More about Walk 20 minutes").click()
    await page.get_by_role("button", name="Move up Walk 20 minutes").click()
    await expect(titles.nth(3)).to_have_text("Walk 20 minutes")
    await page.locator(".grip").nth(2).hover()
    await page.mouse.down()
    await page.locator(".cards .set-actions").nth(1).hover()
    await page.locator(".grip").nth(1).hover()
    await expect(titles.nth(1)).to_have_text("A2 Barbell row")
    await page.mouse.up()
    await expect(titles.nth(1)).to_have_text("A1 Barbell row")
    stored = (await training.read(coach, block))["items"]
    assert [item.get("supersetId") for item in stored] == [None, "A", "A", None, None]
    assert stored[0]["exerciseSets"][0]["load"] == 45, "what was typed is saved before the card is moved"


async def test_errors_of_cells_are_below_their_row(
    open_page: OpenPage, coach: CoachClient, complaints: list[str]
) -> None:
    _, path = await _workout(coach)
    for scripted, looks in ((True, some([*_LOOKS][::-1], 1)), (False, [])):
        page = await open_page(java_script_enabled=scripted)
        await sign_in(page, coach)
        await page.goto(path)
        card = page.get_by_role("form", name="Sets of Back squat", exact=True)
        await card.get_by_label("Set 2: Load").fill("7o")
        await card.get_by_label("Set 2: Reps").fill("10-8")
        if not scripted:
            await card.get_by_role("button", name="Save").click()
        row = card.get_by_role("group", name="Set 2", exact=True)
        await expect(row.locator(".error")).to_have_text([
            "Reps: This must end with the greater number.",
            "Load, kg: This must be a number such as 77.5 or 77,5, without thousands separators.",
        ])  # fmt: skip
        await expect(row.get_by_label("Load")).to_have_accessible_description(re.compile("^Load, kg: This must be"))
        cell, error = await row.get_by_label("Load").bounding_box(), await row.locator(".error").last.bounding_box()
        assert cell is not None
        assert error is not None
        assert error["y"] >= cell["y"] + cell["height"], "below the row"
        assert error["width"] > 3 * cell["width"], "with room for a sentence"
        for look in looks:
            await page.emulate_media(color_scheme=_LOOKS[look]["color_scheme"])
            await page.set_viewport_size(_LOOKS[look]["viewport"])
            assert await serious(page, within=card) == []
            await picture(page, "errors", look)
    assert complaints
    complaints.clear()


async def test_an_unusual_load_is_asked_about(page: Page, coach: CoachClient, complaints: list[str]) -> None:
    block, path = await _workout(coach)
    await page.goto(path)
    card = page.get_by_role("form", name="Sets of Back squat", exact=True)
    status, confirmation = card.get_by_role("status"), card.get_by_label("The load is right")
    await expect(confirmation).to_be_hidden()
    await card.get_by_label("Set 2: Load").fill("600")
    await expect(status).to_have_text("Not saved: please check the marked loads.")
    await expect(card.get_by_text(re.compile("This is unusual: .*600 kg"))).to_be_visible()
    assert await serious(page, within=card) == []
    await picture(page, "editor", "unusual-load")
    await confirmation.check()
    await expect(status).to_have_text("Saved")
    await expect(confirmation).to_be_hidden()
    assert (await _stored(coach, block))[1] == (8, 600)
    await card.get_by_label("Set 2: Load").fill("6000")
    await expect(status).to_have_text("Not saved: please check the marked loads.")
    await expect(confirmation).not_to_be_checked()
    await card.get_by_label("Set 2: Load").fill("60")
    await expect(status).to_have_text("Saved")
    assert all("400" in each for each in complaints), complaints
    complaints.clear()
