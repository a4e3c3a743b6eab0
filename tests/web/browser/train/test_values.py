"""What is typed into a workout: wrong values, corrections, drafts, more sets than planned, answers and comments."""

from __future__ import annotations

import time

from aiohttp.test_utils import TestServer
from playwright.async_api import BrowserContext, Page, expect

from tests.support.training import block_with, exercise_of, form_of, log, task
from tests.web.browser.conftest import picture, serious
from tests.web.browser.phone import Complaints, Trainee

BAR = "[data-queue-bar]"


async def test_every_set_has_fields_at_every_width_and_five_exercises_fit_a_phone(page: Page, ana: Trainee) -> None:
    for width in (360, 768, 1440):
        await page.set_viewport_size({"width": width, "height": 900})
        for index in (1, 2, 3):
            for field in await ana.row(page, 0, index).locator(".set-line .set-amount").all():
                box = await field.bounding_box()
                assert box is not None
                assert (box["width"] > 40, box["height"] > 40) == (True, True), f"a field of set {index}: {box}"

    names = ("Incline bench press", "Chest-supported row", "Lateral raise", "Triceps pushdown", "Hammer curl")
    planned = {"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 20, "rest": 60}
    items = [
        {**exercise_of(await ana.coach.create_exercise(name), *[planned] * 3), "supersetId": "A"} for name in names
    ]
    block = await block_with(ana.coach, ana.customer, *items, date=ana.block["date"])
    await page.goto(f"/train/workouts/{block['_id']}")
    for width in (390, 360):
        await page.set_viewport_size({"width": width, "height": 844})
        box = await page.locator(".wk-superset").bounding_box()
        assert box is not None
        assert box["height"] < 1_800, f"{box['height']} px at {width} px"
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.locator("summary", has_text="Comment, video, swap or skip: Lateral raise").tap()
    await expect(page.get_by_role("link", name="Swap for another exercise")).to_be_visible()
    await picture(page, "small", "train-superset-of-five")
    assert await serious(page) == []


async def test_wrong_and_unusual_values_are_explained_at_their_set_and_corrected_there(
    page: Page, phone: BrowserContext, ana: Trainee, observed: Complaints
) -> None:
    observed.expected += ("400",)
    await ana.row(page, 0, 1).get_by_label("Reps").fill("eight")
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Not saved")
    await expect(ana.row(page, 0, 1)).to_contain_text("Reps must be a whole number.")
    await expect(ana.done(page, 0, 1)).to_have_attribute("aria-pressed", "false")
    section = page.get_by_role("region", name="Not saved")
    await section.locator("summary").tap()
    async with page.expect_response("**/sets"):
        await section.get_by_role("button", name="Try again").tap()
    await expect(section).to_contain_text("Reps: eight")
    await page.reload()
    await expect(ana.row(page, 0, 1).get_by_label("Reps")).to_have_value("eight")
    await ana.row(page, 0, 1).get_by_label("Reps").fill("8")
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    await expect(section).to_have_count(0)

    hold = {"type": "time", "minPlannedSeconds": 1_620, "maxPlannedSeconds": 1_620}
    run = exercise_of(await ana.coach.create_exercise("Run"), hold)
    block = await block_with(ana.coach, ana.customer, run, date=ana.block["date"])
    await page.goto(f"/train/workouts/{block['_id']}")
    row = page.locator("form.set-row").first
    time, done = row.get_by_label("Run, set 1: time"), row.get_by_role("button", name="Done")
    await expect(time).to_have_value("27:00")
    await expect(row).to_contain_text("27:00")
    await time.fill("1:01:00")
    await done.tap()
    await expect(row.get_by_label("This is right, although")).to_be_focused()
    await time.fill("26:30")
    await done.tap()
    await expect(row.locator("[data-set-state]")).to_have_text("Done")
    await expect(time).to_have_value("26:30")
    await page.goto(ana.path)
    bench = ana.row(page, 0, 2)
    await bench.get_by_label("Reps").fill("101")
    await ana.done(page, 0, 2).tap()
    await expect(bench.get_by_label("This is right, although")).to_be_focused()
    await bench.get_by_label("Reps").fill("eight")
    await ana.done(page, 0, 2).tap()
    await expect(bench.locator("[data-set-error]")).to_have_text("Reps must be a whole number.")
    await bench.get_by_label("Reps").fill("8")
    await expect(bench.locator("[data-set-error]")).to_be_empty()
    await expect(ana.state(page, 0, 2)).to_be_empty()

    # Also without a network, and of a set that is corrected.
    await phone.set_offline(True)
    row, question = ana.row(page, 1, 1), ana.row(page, 1, 1).get_by_label("This is right, although")
    await expect(question).to_be_hidden()
    await row.get_by_label("Load").fill("600")
    await ana.done(page, 1, 1).tap()
    await expect(question).to_be_focused()
    await expect(ana.done(page, 1, 1)).to_have_attribute("aria-pressed", "false")
    await question.tap()
    await ana.done(page, 1, 1).tap()
    await expect(ana.state(page, 1, 1)).to_have_text("Not sent yet")
    await row.get_by_label("Load").fill("45")
    await row.get_by_label("Reps").focus()
    await expect(question).to_be_hidden()

    second = ana.row(page, 1, 2)
    await ana.done(page, 1, 2).tap()
    await expect(ana.state(page, 1, 2)).to_have_text("Not sent yet")
    await second.get_by_label("Load").fill("6000")
    await second.get_by_label("Reps").tap()
    await expect(second.get_by_label("This is right, although")).to_be_visible()
    await expect(ana.state(page, 1, 2)).to_have_text("Changed, not saved")
    await phone.set_offline(False)
    await expect(ana.state(page, 1, 1)).to_have_text("Done")
    assert (await ana.sets(1))[0][2] == 45


async def test_more_sets_than_planned_are_logged_without_a_network_and_those_done_are_corrected(
    page: Page, phone: BrowserContext, ana: Trainee
) -> None:
    earlier = exercise_of({"_id": ana.items[0]["exerciseId"]})
    block = await block_with(ana.coach, ana.customer, earlier)
    best = [{"index": 1, "reps": 8, "load": 60, "isCompleted": True}]
    (await log(ana.coach, block, block["items"][0], isCompleted=True, customerSets=best)).ok()
    await phone.set_offline(True)
    for index, load in ((4, "65"), (5, "70")):
        await page.locator("details.set-extra").first.locator("summary").tap()
        await ana.row(page, 0, index).get_by_label("Load").fill(load)
        await ana.done(page, 0, index).tap()
        await expect(ana.state(page, 0, index)).to_have_text("Not sent yet")
    await phone.set_offline(False)
    await expect(ana.state(page, 0, 5)).to_have_text("Done")
    await expect(page.locator("[data-records]")).to_contain_text("New record Bench press: heaviest set: 70 kg")
    assert await ana.sets(0) == [(4, 8, 65, True), (5, 8, 70, True)]

    other = await phone.new_page()
    await other.goto(ana.path)
    now = time.time()
    await page.clock.set_system_time(now + 3600)  # the clock of the phone is ahead, and is set right later
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    await page.clock.set_system_time(now)
    await ana.row(page, 0, 1).get_by_label("Reps").fill("6")
    await expect(ana.state(page, 0, 1)).to_have_text("Changed, not saved")
    await page.locator("h1").tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    assert (await ana.sets(0))[0] == (1, 6, 60, True)
    await expect(ana.state(other, 0, 1)).to_have_text("Done")
    await expect(ana.row(other, 0, 1).get_by_label("Reps")).to_have_value("6")
    await page.reload()
    await ana.row(page, 0, 1).get_by_label("Reps").fill("5")
    async with page.expect_response("**/sets"):
        await ana.done(page, 0, 1).tap()  # this saves too, and does not take the set back
    await expect(ana.row(other, 0, 1).get_by_label("Reps")).to_have_value("5")
    assert (await ana.sets(0))[0] == (1, 5, 60, True)


async def test_draft_gives_way_to_a_newer_value_of_the_server_and_ends_with_the_session_that_wrote_it(
    page: Page, phone: BrowserContext, ana: Trainee, public_server: TestServer
) -> None:
    """As saved pages do: the device may be another person's by then."""
    await ana.row(page, 0, 1).get_by_label("Reps").fill("6")
    await ana.row(page, 0, 2).get_by_label("Reps").fill("7")
    await page.wait_for_timeout(300)
    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/witems/{ana.items[0]['_id']}/log"
    (await ana.coach.put(path, {"isCompleted": False, "customerSets": [{"index": 1, "reps": 5, "load": 60}]})).ok()
    await page.reload()
    await expect(ana.row(page, 0, 2).get_by_label("Reps")).to_have_value("7")
    await expect(ana.row(page, 0, 1).get_by_label("Reps")).to_have_value("5")

    await ana.sign_in(phone, public_server)  # another session of the same client
    await page.reload()
    await expect(ana.row(page, 0, 2).get_by_label("Reps")).not_to_have_value("7")
    assert await page.evaluate("train.store.readAll('drafts')") == []
    assert await page.evaluate("Object.keys(localStorage).filter((name) => name.startsWith('train draft'))") == []


async def test_check_in_task_comment_and_the_end_of_a_workout_wait_for_the_network_in_order(
    page: Page, phone: BrowserContext, ana: Trainee
) -> None:
    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/witems"
    (await ana.coach.post(path, task("Stretch"))).ok(201)
    form = (await ana.coach.post(path, form_of({"label": "How was it?", "type": "text"}))).ok(201)
    address = f"{ana.path}/items/{form['_id']}/form"
    await page.goto(address)
    await page.get_by_label("How was it?").fill("Hard")
    await page.reload()
    await expect(page.get_by_label("How was it?")).to_have_value("Hard")
    await phone.set_offline(True)
    await page.get_by_role("button", name="Send answers").tap()
    await expect(page.locator(BAR)).to_contain_text("1 change not sent yet")
    await phone.set_offline(False)
    await expect(page.get_by_text("Saved", exact=True).or_(page.get_by_text("Check-in sent."))).to_be_visible()

    await page.goto(f"{address}?edit=true")
    await page.get_by_label("How was it?").fill("Very hard")
    async with page.expect_response(lambda response: response.request.method == "POST"):
        await page.get_by_role("button", name="Save changes").tap()
    await expect(page.get_by_text("Check-in sent. Your coach will see your answers.")).to_be_visible()
    (response,) = (await ana.coach.get("/coach/form-responses", customerId=ana.customer["_id"])).ok()["docs"]
    assert [answer["value"] for answer in response["answers"]] == ["Very hard"]

    await page.goto(ana.path)
    await phone.set_offline(True)
    await page.locator("form.wk-task button").tap()
    await expect(page.locator("form.wk-task button")).to_have_attribute("aria-pressed", "true")
    await page.locator("details.wk-menu > summary").first.tap()
    for text in ("Light", "Heavy"):
        await page.get_by_label("Comment").first.fill(text)
        await page.wait_for_timeout(600)
        await page.get_by_role("button", name="Save comment").first.tap()
    await page.get_by_label("Minutes").fill("45")
    await page.get_by_role("button", name="Finish workout").tap()
    await expect(page.locator(BAR)).to_contain_text("4 changes not sent yet")
    await phone.set_offline(False)
    await expect(page.locator(BAR)).to_be_hidden()
    day = str(ana.coach.ctx.caller.today())
    client = f"/coach/customers/{ana.customer['_id']}/wblock"
    (block,) = (await ana.coach.get(client, startDate=day, endDate=day)).ok()
    assert (block["durationMinutes"], block["items"][0]["comment"], block["items"][2]["isCompleted"]) == (
        45,
        "Heavy",
        True,
    )

    page = await phone.new_page()  # the other one opens the summary
    await page.goto(ana.path)
    await page.get_by_label("Minutes").fill("50")
    await page.locator("form[action$='/finish'] button").last.tap()
    await page.wait_for_url("**/summary")
