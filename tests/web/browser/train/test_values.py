"""What is typed into a workout: wrong values, corrections, drafts, more sets than planned, answers and comments."""

from __future__ import annotations

import time

import pytest
from aiohttp.test_utils import TestServer
from playwright.async_api import BrowserContext, Page, expect

from tests.support.training import block_with, exercise_of, form_of, log, task
from tests.web.browser.phone import Complaints, Trainee

BAR = "[data-queue-bar]"


@pytest.mark.parametrize("width", [360, 768, 1440])
async def test_every_set_has_fields_at_every_width(page: Page, ana: Trainee, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 900})
    for index in (1, 2, 3):
        for field in await ana.row(page, 0, index).locator(".set-line .set-amount").all():
            box = await field.bounding_box()
            assert box is not None
            assert (box["width"] > 40, box["height"] > 40) == (True, True), f"a field of set {index}: {box}"


async def test_wrong_value_is_explained_at_its_set_and_corrected_there(
    page: Page, ana: Trainee, observed: Complaints
) -> None:
    observed.expected += ("400",)
    await ana.row(page, 0, 1).get_by_label("Reps").fill("eight")
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_contain_text("Not saved:")
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


async def test_unusual_load_is_asked_about_before_it_is_stored(page: Page, phone: BrowserContext, ana: Trainee) -> None:
    """Also without a network, and of a set that is corrected."""
    await phone.set_offline(True)
    row, question = ana.row(page, 0, 1), ana.row(page, 0, 1).get_by_label("This is right, although")
    await expect(question).to_be_hidden()
    await row.get_by_label("Load").fill("600")
    await ana.done(page, 0, 1).tap()
    await expect(question).to_be_focused()
    await expect(ana.done(page, 0, 1)).to_have_attribute("aria-pressed", "false")
    await question.tap()
    await ana.done(page, 0, 1).tap()
    await expect(ana.state(page, 0, 1)).to_have_text("Not sent yet")
    await row.get_by_label("Load").fill("60")
    await row.get_by_label("Reps").focus()
    await expect(question).to_be_hidden()

    second = ana.row(page, 0, 2)
    await ana.done(page, 0, 2).tap()
    await expect(ana.state(page, 0, 2)).to_have_text("Not sent yet")
    await second.get_by_label("Load").fill("6000")
    await second.get_by_label("Reps").tap()
    await expect(second.get_by_label("This is right, although")).to_be_visible()
    await expect(ana.state(page, 0, 2)).to_have_text("Changed, not saved")
    await phone.set_offline(False)
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    assert (await ana.sets(0))[0][2] == 60


async def test_more_sets_than_planned_are_logged_without_a_network_and_records_celebrated(
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


async def test_values_of_a_set_that_is_done_are_corrected(page: Page, phone: BrowserContext, ana: Trainee) -> None:
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
    assert await ana.sets(0) == [(1, 6, 60, True)]
    await expect(ana.state(other, 0, 1)).to_have_text("Done")
    await expect(ana.row(other, 0, 1).get_by_label("Reps")).to_have_value("6")
    await page.reload()
    await ana.row(page, 0, 1).get_by_label("Reps").fill("5")
    async with page.expect_response("**/sets"):
        await ana.done(page, 0, 1).tap()  # this saves too, and does not take the set back
    await expect(ana.row(other, 0, 1).get_by_label("Reps")).to_have_value("5")
    assert await ana.sets(0) == [(1, 5, 60, True)]


async def test_draft_gives_way_to_a_newer_value_of_the_server(page: Page, ana: Trainee) -> None:
    await ana.row(page, 0, 1).get_by_label("Reps").fill("6")
    await ana.row(page, 0, 2).get_by_label("Reps").fill("7")
    await page.wait_for_timeout(300)
    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/witems/{ana.items[0]['_id']}/log"
    (await ana.coach.put(path, {"isCompleted": False, "customerSets": [{"index": 1, "reps": 5, "load": 60}]})).ok()
    await page.reload()
    await expect(ana.row(page, 0, 2).get_by_label("Reps")).to_have_value("7")
    await expect(ana.row(page, 0, 1).get_by_label("Reps")).to_have_value("5")


async def test_draft_ends_with_the_session_that_wrote_it(
    page: Page, phone: BrowserContext, ana: Trainee, public_server: TestServer
) -> None:
    """As saved pages do: the device may be another person's by then."""
    await ana.row(page, 0, 1).get_by_label("Reps").fill("6")
    await page.reload()
    await expect(ana.row(page, 0, 1).get_by_label("Reps")).to_have_value("6")
    await ana.sign_in(phone, public_server)  # another session of the same client
    await page.reload()
    await expect(ana.row(page, 0, 1).get_by_label("Reps")).not_to_have_value("6")
    assert await page.evaluate("train.store.readAll('drafts')") == []
    assert await page.evaluate("Object.keys(localStorage).filter((name) => name.startsWith('train draft'))") == []


async def test_check_in_is_kept_without_a_network_and_leads_on_with_one(
    page: Page, phone: BrowserContext, ana: Trainee
) -> None:
    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/witems"
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


async def test_task_comment_and_the_end_of_a_workout_wait_for_the_network_in_order(
    page: Page, phone: BrowserContext, ana: Trainee
) -> None:
    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/witems"
    (await ana.coach.post(path, task("Stretch"))).ok(201)
    await page.reload()
    await phone.set_offline(True)
    await page.locator("form.wk-task button").tap()
    await expect(page.locator("form.wk-task button")).to_have_attribute("aria-pressed", "true")
    await page.locator("details.wk-menu").first.locator("summary").tap()
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

    await page.goto(ana.path)
    await page.get_by_label("Minutes").fill("50")
    await page.locator("form[action$='/finish'] button").last.tap()
    await page.wait_for_url("**/summary")
