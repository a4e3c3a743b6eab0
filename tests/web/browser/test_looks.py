"""What pages look like and how they move: typeface, toasts, sheets, cards of questions, and videos of other sites."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.async_api import expect

from tests.core.test_uploads import picture as a_photo
from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
_STYLE = "(each) => { const style = getComputedStyle(each); return [style.fontFamily.split(',')[0], style.fontWeight, style.fontSize] }"


async def test_one_typeface_in_four_weights_and_buttons_of_one_height(open_page: OpenPage, coach: CoachClient) -> None:
    for name in ("Łucja", "Bo"):
        await coach.create_customer(name, email=f"{name[0]}@example.com".lower())
    page = await open_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    fonts: list[str] = []
    page.on("response", lambda each: fonts.append(each.url) if ".woff2" in each.url else None)
    await sign_in(page, coach)
    await page.goto("/app/attention")
    assert {re.sub(r".*/([a-z-]+)\..*", r"\1", url) for url in fonts} == {"inter"}
    await page.goto("/app/customers")
    await page.evaluate("document.fonts.ready")
    assert await page.evaluate("[...document.fonts].filter((each) => each.status === 'loaded').length") == 2, "Ł"
    assert await page.locator("tbody td.number").first.evaluate(_STYLE) == ["Inter", "400", "13px"]
    assert await page.locator("tbody td").nth(2).evaluate("(each) => getComputedStyle(each).fontVariantNumeric") == (
        "tabular-nums"
    )
    assert await page.locator("h1").evaluate(_STYLE) == ["Inter", "600", "22px"]
    assert (await page.locator(".filter label").first.evaluate(_STYLE))[1] == "500"
    boxes = [await each.bounding_box() for each in await page.locator(".head .button").all()]
    assert len({(box["y"], box["height"]) for box in boxes if box}) == 1, "on one line, of one height"
    await page.goto("/app/customers/new")
    assert (await page.get_by_text("First name").first.evaluate(_STYLE))[1] == "500"
    boxes = [await each.bounding_box() for each in await page.locator("input[type=checkbox]").all()]
    assert {(round(box["width"]), round(box["height"])) for box in boxes if box} == {(18, 18)}
    moving = "[...document.querySelectorAll('*')].filter((each) => getComputedStyle(each).transitionDuration !== '0s').length"
    assert await page.evaluate(moving) == 0, "nothing moves for who asked for less motion"
    await page.emulate_media(reduced_motion="no-preference")
    assert await page.locator("main button").first.evaluate("(each) => getComputedStyle(each).transitionDuration") == (
        "0.12s, 0.12s, 0.12s"
    )


async def test_what_happened_is_a_toast_that_goes_after_a_sign_of_its_reader(
    open_page: OpenPage, coach: CoachClient
) -> None:
    ana = await coach.create_customer("Ana")
    page = await open_page()
    await sign_in(page, coach)
    here = f"/app/customers/{ana['_id']}?week={MONDAY}"
    await page.clock.install()
    await page.goto(here)
    top = await page.locator(".week").bounding_box()
    await page.locator("summary", has_text="Add").first.click()
    await page.get_by_label("Rest day").first.check()
    await page.get_by_role("button", name="Add workout").first.click()
    toast = page.locator(".toast")
    await expect(toast).to_contain_text("Undo")
    assert await page.locator(".week").bounding_box() == top, "the page does not move"
    await page.clock.run_for(60_000)
    await expect(toast).to_have_css("opacity", "1")
    await page.mouse.move(700, 400)
    await page.mouse.move(710, 400)
    await page.clock.run_for(5_500)
    await expect(toast).to_have_css("opacity", "0")
    await page.get_by_role("button", name="Undo").focus()
    await expect(toast).to_have_css("opacity", "1")
    await page.keyboard.press("Enter")
    await expect(page.locator(".toast")).to_contain_text("Undone.")

    plain = await open_page(java_script_enabled=False)
    await sign_in(plain, coach)
    await plain.goto(here)
    await plain.locator("summary", has_text="Add").first.click()
    await plain.get_by_label("Rest day").first.check()
    await plain.get_by_role("button", name="Add workout").first.click()
    await expect(plain.locator(".toast")).to_have_css("position", "static")


async def test_operations_are_a_sheet_and_their_preview_is_on_the_days(open_page: OpenPage, coach: CoachClient) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await coach.schedule(ana, date=MONDAY)
    items = f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems"
    (await coach.post(items, training.exercise_of(squat))).ok(201)
    page = await open_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    await sign_in(page, coach)
    await page.goto(f"/app/customers/{ana['_id']}?week={MONDAY}")
    button = page.locator("summary", has_text="Copy")
    await button.click()
    sheet = page.locator(".sheet[open] > .card")
    await expect(sheet.get_by_role("heading", name="Copy")).to_be_visible()
    last, edge = await page.locator(".day").last.bounding_box(), await sheet.bounding_box()
    assert last is not None
    assert edge is not None
    assert last["x"] + last["width"] <= edge["x"], "all days are in view beside it"
    await page.keyboard.press("Escape")
    await expect(sheet).to_have_count(0)
    await expect(button).to_be_focused()
    await button.click()
    await sheet.get_by_label("First day of the copy").fill("2026-03-06")
    await sheet.get_by_role("button", name="Preview").click()
    shown = page.locator("#day-2026-03-06 .would")
    await expect(shown).to_contain_text("Squat")
    await expect(shown).to_contain_text("new")
    await page.emulate_media(color_scheme="dark")
    assert await serious(page, within=sheet) == []
    await picture(page, "looks", "sheet")
    await sheet.get_by_role("button", name="Close").click()
    await expect(sheet).to_have_count(0)


async def test_a_coachs_phone_has_one_row_for_each_client(open_page: OpenPage, coach: CoachClient) -> None:
    for name in ("Ana", "Bartholomew-Alexander", "Cy"):
        await coach.create_customer(name, surname="Featherstonehaugh", groups=["Morning"] if name == "Cy" else [])
    page = await open_page(**PHONE)
    await sign_in(page, coach)
    await page.goto("/app/customers")
    rows = [await each.bounding_box() for each in await page.locator(".clients tbody tr").all()]
    assert len(rows) == 3
    assert all(row and row["height"] <= 64 for row in rows)
    await page.get_by_role("button", name="Filter").tap()
    await expect(page.get_by_label("Group")).to_be_visible()
    assert await serious(page) == []
    await picture(page, "looks", "filter-sheet")
    await page.get_by_label("Group").select_option("Morning")
    await expect(page.locator("#found")).to_have_text("1 active client found")
    await page.get_by_role("button", name="Done").tap()
    await expect(page.get_by_label("Group")).to_be_hidden()
    await page.get_by_role("link", name="Cy").tap()
    await page.wait_for_url(re.compile(r"/app/customers/\w+"))
    await page.goto(f"{page.url.partition('?')[0]}/details")
    tabs = page.locator(".tabs")
    assert await tabs.evaluate("(each) => each.scrollWidth > each.clientWidth && each.offsetHeight < 60")
    box = await tabs.locator("[aria-current]").bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 390, "the current tab is in view"


async def test_a_program_begins_with_its_plan(open_page: OpenPage, coach: CoachClient) -> None:
    squat = await coach.create_exercise("Back squat")
    program = (await coach.post("/coach/programs", {"name": "Base", "description": "Long.\n" * 30})).ok(201)
    block = {"name": "Legs", "day": 1, "items": [training.exercise_of(squat)]}
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", block)).ok(201)
    today = str(coach.ctx.caller.today())
    clients = [await coach.create_customer(f"Client {at:02}") for at in range(5)]
    for client in clients[:4]:
        body = {"customerId": client["_id"], "startDate": today}
        (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok(201)
    page = await open_page(viewport={"width": 1440, "height": 900})
    await sign_in(page, coach)
    await page.goto(f"/app/programs/{program['_id']}")
    plan = await page.get_by_role("link", name="Legs").bounding_box()
    assert plan is not None
    assert plan["y"] < 400
    await page.locator("summary", has_text="Assign").first.click()
    assert await serious(page, within=page.locator(".sheet[open]")) == []
    await picture(page, "looks", "assign")
    await page.get_by_label("Client", exact=True).select_option("Client 04")
    await page.get_by_role("button", name="Assign to this client").click()
    await expect(page.get_by_role("status")).to_contain_text("1 workout scheduled")

    await page.goto(f"/app/programs/{program['_id']}/sync")
    rows = page.locator(".sync > li")
    await expect(rows).to_have_count(5)
    first, second = await rows.nth(0).bounding_box(), await rows.nth(1).bounding_box()
    assert first is not None
    assert second is not None
    assert second["y"] - first["y"] <= 48, "one line for each client"
    await rows.nth(0).locator("summary").click()
    await expect(rows.nth(0)).to_contain_text("Legs")
    assert await serious(page) == []


async def test_video_of_another_site_is_loaded_after_a_click(
    open_page: OpenPage, coach: CoachClient, complaints: list[str]
) -> None:
    link = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
    exercise = await coach.create_exercise("Sled push", videoLink=link)
    page = await open_page()
    await page.route(
        "https://www.youtube-nocookie.com/**", lambda route: route.fulfill(body="<p>Film</p>", content_type="text/html")
    )
    await sign_in(page, coach)
    await page.goto(f"/app/exercises/{exercise['_id']}")
    film = page.get_by_role("link", name="Video of Sled push")
    await expect(film).to_have_attribute("href", link)
    assert await serious(page) == []
    assert complaints == []
    await film.click()
    await expect(page.frame_locator("iframe").get_by_text("Film")).to_be_visible()
    await expect(page.locator("iframe")).to_have_attribute("title", "Video of Sled push")
    assert [each for each in complaints if "youtube-nocookie.com/embed/dQw4w9WgXcQ?autoplay=1" not in each] == []
    complaints.clear()


async def test_questions_are_cards(open_page: OpenPage, coach: CoachClient) -> None:
    page = await open_page()
    await sign_in(page, coach)
    await page.goto("/app/settings/forms")
    await page.get_by_label("Name").fill("Check-in")
    cards = page.locator(".question-card:visible")
    await expect(cards).to_have_count(0)
    for kind, question in (
        ("Yes or no", "Did you sleep well?"),
        ("Scale 1 to 10", "Energy"),
        ("Text", "Anything else?"),
    ):
        await page.get_by_role("button", name=kind, exact=True).click()
        await page.keyboard.type(question)
    await page.get_by_role("button", name="Text", exact=True).click()
    await page.keyboard.type("A fourth one, of which no row was there")
    await cards.nth(1).get_by_role("button", name="Duplicate").click()
    await page.keyboard.press("Control+a")
    await page.keyboard.type("Mood")
    await cards.nth(4).get_by_role("button", name="Move up").click()
    await cards.nth(1).locator("[data-grip]").hover()
    await page.mouse.down()
    for y in (60, 30, 8):
        await cards.nth(0).hover(position={"x": 30, "y": y}, force=True)
    await expect(cards.nth(0).get_by_label("Question", exact=True)).to_have_value("Energy")
    await page.mouse.up()
    await expect(cards.nth(0).locator("legend")).to_have_text("Question 1")
    assert await serious(page) == []
    await picture(page, "looks", "questions")
    await page.get_by_role("button", name="Create form").click()
    await expect(page.get_by_role("status")).to_contain_text("Check-in created.")
    [form] = (await coach.get("/coach/forms")).ok()
    assert [(each["label"], each["type"], each["options"]) for each in form["questions"]] == [
        ("Energy", "rating", []),
        ("Did you sleep well?", "choice", ["Yes", "No"]),
        ("Mood", "rating", []),
        ("A fourth one, of which no row was there", "text", []),
        ("Anything else?", "text", []),
    ]
    await cards.nth(2).get_by_label("Remove question").check()
    await cards.nth(0).get_by_role("button", name="Move down").click()
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_role("status")).to_contain_text("Changes saved.")
    [form] = (await coach.get("/coach/forms")).ok()
    assert [each["label"][:8] for each in form["questions"]] == ["Did you ", "Energy", "A fourth", "Anything"]


async def test_tile_shows_the_chosen_photo(open_page: OpenPage, coach: CoachClient, tmp_path: Path) -> None:
    ana = await coach.create_customer("Ana")
    (tmp_path / "front.jpg").write_bytes(a_photo(size=(600, 800)))
    page = await open_page()
    await sign_in(page, coach)
    await page.goto(f"/app/customers/{ana['_id']}/photos")
    await page.get_by_label("Front", exact=True).set_input_files(tmp_path / "front.jpg")
    await expect(page.locator("[data-tile] canvas")).to_have_count(1)
    await picture(page, "looks", "photo-tiles")
    await page.get_by_role("button", name="Save photos").click()
    await expect(page.get_by_role("img", name=re.compile("Ana, front")).first).to_be_visible()
