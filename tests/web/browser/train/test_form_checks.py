"""Form checks in Chromium: a client sends a video, also without a connection, and a coach answers it with marks."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

from playwright.async_api import BrowserContext, FilePayload, Page, expect

from tests.core.test_uploads import form
from tests.core.test_uploads import picture as a_photo
from tests.support.client import CoachClient
from tests.support.sampled import proof
from tests.support.service_process import until
from tests.support.training import Json, form_of
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in
from tests.web.browser.phone import Trainee
from tests.web.browser.test_task_counts import Counter

FILM = FilePayload(
    name="squat.webm", mimeType="video/webm", buffer=(files("coaching_service.demo") / "squat.webm").read_bytes()
)


async def holds(page: Page, expression: str) -> None:
    """Wait until an expression is true on a page, whose policy allows no polling by the browser driver."""
    await until(lambda: page.evaluate(expression), expression, 10)


async def choose(page: Page, which: str, file: FilePayload = FILM) -> None:
    """Open the menu of the first exercise and choose a video of a set; its picture is made."""
    await page.locator("details.wk-menu > summary").first.click()
    upload = page.locator(".wk-upload").first
    await upload.get_by_label("Which set").select_option(label=which)
    await upload.get_by_label("Video or picture").set_input_files(file)
    await holds(page, "document.querySelector('.wk-upload input[name=poster]').files.length === 1")


async def has_arrived(coach: CoachClient) -> bool:
    """Whether the answers, and a photo after the video, have been received."""
    [responses, media] = [(await coach.get(f"/coach/{each}")).ok()["docs"] for each in ("form-responses", "media")]
    return (len(responses), len(media)) == (1, 2)


async def test_videos_of_sets_and_photos_of_check_ins_wait_for_the_network_with_their_size_and_keep_no_set_waiting(
    page: Page, phone: BrowserContext, ana: Trainee
) -> None:
    await page.locator("details.wk-menu > summary").first.click()
    upload = page.locator(".wk-upload").first
    field = upload.get_by_label("Video or picture")
    await field.evaluate("input => (input.dataset.most = 1000)")
    await field.set_input_files(FILM)
    await upload.get_by_role("button", name="Send to your coach").click()
    assert "choose one of at most 1 kB" in await field.evaluate("input => input.validationMessage")
    assert (await ana.coach.get("/coach/media")).ok()["docs"] == []
    await page.reload()

    await phone.set_offline(True)
    await choose(page, "Bench press, set 2")
    await page.locator(".wk-upload").first.get_by_role("button", name="Send to your coach").click()
    await expect(page.locator(".wk-upload").first.get_by_role("status")).to_contain_text("Not sent yet")
    await expect(page.locator(".wk-upload").first.get_by_role("status")).to_contain_text("squat.webm")
    await expect(page.locator("[data-queue-bar]")).to_contain_text("kB) not sent yet")
    await picture(page, "small", "train-form-check-offline")
    await ana.done(page, 0, 1).click()
    assert (await ana.coach.get("/coach/media")).ok()["docs"] == []

    await phone.set_offline(False)

    await expect(page.locator(".wk-media").first).to_contain_text("Set 2")
    await expect(ana.state(page, 0, 1)).to_have_text("Done")
    [sent] = (await ana.coach.get("/coach/media")).ok()["docs"]
    assert (sent["index"], sent["kind"], sent["contentType"]) == (2, "video", "video/webm")
    assert sent["posterUrl"] is not None, "the browser has made a picture"
    assert sent["size"] == len(FILM["buffer"])
    assert await serious(page) == []
    await picture(page, "small", "train-form-check")

    path = f"/coach/customers/{ana.customer['_id']}/wblocks/{ana.block['_id']}/witems"
    questions: list[Json] = [{"label": "From the front", "type": "photo", "required": True}, {"label": "How was it?"}]
    check_in = (await ana.coach.post(path, form_of(*questions))).ok(201)
    await page.goto(f"{ana.path}/items/{check_in['_id']}/form")
    await expect(page.get_by_role("button", name="Send photo")).to_be_hidden()
    await page.get_by_label("How was it?").fill("Hard")
    await phone.set_offline(True)
    photo = FilePayload(name="front.jpg", mimeType="image/jpeg", buffer=a_photo())
    await page.get_by_label("Take or choose a photo").set_input_files(photo)
    await expect(page.locator("[data-queue-bar]")).to_contain_text("kB) not sent yet")
    await page.get_by_role("button", name="Send answers").tap()
    await picture(page, "small", "train-photo-question")
    assert await serious(page) == []

    await phone.set_offline(False)

    await until(lambda: has_arrived(ana.coach), "the answers", 10)
    files = (await ana.coach.get("/coach/media")).ok()["docs"]
    assert [(each["question"], each["kind"]) for each in files if each["question"]] == [("From the front", "picture")]


async def open_desk(coach: CoachClient, ana: Trainee, open_page: OpenPage) -> Page:
    """Send a video of two sets as the client, and open a window of the coach."""
    client, bench = await coach.as_client(ana.customer), ana.items[0]
    path = f"/customer/wblocks/{ana.block['_id']}/witems/{bench['_id']}/media"
    for index in ("1", "2"):
        sent = form(FILM["buffer"], "file", FILM["name"], exerciseId=bench["exerciseId"], index=index)
        (await client.send("POST", path, data=sent)).ok(201)
    desk = await open_page()
    await sign_in(desk, coach)
    return desk


async def test_a_coach_answers_a_check_with_marks_in_two_loads_and_three_clicks(
    phone: BrowserContext, ana: Trainee, coach: CoachClient, open_page: OpenPage
) -> None:
    desk = await open_desk(coach, ana, open_page)
    counter = Counter(desk)

    await desk.goto("/app/inbox")
    await counter.click(desk.locator(".check-tile a").first)
    answer = desk.get_by_label("Your answer")
    await expect(answer).to_be_focused()
    await desk.keyboard.type("Good depth.")
    assert await serious(desk) == []
    await counter.click(desk.get_by_role("button", name="Send, then the next one"))
    await expect(desk.get_by_role("heading", level=1)).to_contain_text("Set 1")

    assert (counter.loads, counter.clicks) == (2, 2)
    await expect(desk.get_by_role("status")).to_have_text("Comment sent.")
    await expect(answer).to_be_focused()
    [left] = (await coach.get("/coach/media", reviewed="false")).ok()["docs"]
    assert left["index"] == 1

    # Speed, frames and marks of the next one, which has taken the place of the first.
    video = desk.locator("video").first
    await video.evaluate("video => { video.load(); return new Promise((done) => (video.onloadeddata = done)); }")
    await desk.get_by_role("button", name="0.25×").click()
    assert await video.evaluate("video => video.playbackRate") == 0.25
    for _ in range(3):
        await desk.get_by_role("button", name="One frame forward").click()
    await holds(desk, "Math.abs(document.querySelector('video').currentTime - 0.1) < 0.01")
    box = await desk.locator(".player-stage").bounding_box()
    assert box is not None
    await desk.get_by_role("button", name="Arrow").click()
    await desk.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.5)
    await desk.mouse.down()
    await desk.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.25, steps=3)
    await desk.mouse.up()
    # By keyboard the mark appears in the middle, and its points are moved with the arrow keys.
    await desk.get_by_role("button", name="Angle").focus()
    await desk.keyboard.press("Enter")
    await expect(desk.get_by_role("button", name="First end of the angle")).to_be_focused()
    await desk.keyboard.press("ArrowLeft")
    await picture(desk, "desktop", "form-check-drawing")
    assert await serious(desk) == []
    await answer.fill("Elbow here.")
    await desk.get_by_role("button", name="Send only").click()
    await expect(desk.locator(".check-comment")).to_contain_text("Elbow here.")

    [comment] = (await coach.get(f"/coach/media/{left['_id']}")).ok()["comments"]
    assert abs(comment["at"] - 0.1) < 0.01
    assert [mark["kind"] for mark in comment["marks"]] == ["arrow", "angle"]
    for point, expected in zip(comment["marks"][0]["points"], [(0.25, 0.5), (0.5, 0.25)], strict=True):
        assert abs(point[0] - expected[0]) < 0.02
        assert abs(point[1] - expected[1]) < 0.02
    assert comment["marks"][1]["points"][0] == [0.39, 0.45]
    page = await phone.new_page()
    await page.goto(ana.path)
    await page.get_by_role("button", name="0:00").click()
    await expect(page.locator("[data-marks] .mark")).to_have_count(3)  # a line, its head, and the sides of the angle
    await holds(page, "Math.abs(document.querySelector('.wk-media video').currentTime - 0.1) < 0.05")
    assert await serious(page) == []
    await picture(page, "small", "train-form-check-answered")


@proof
async def test_two_videos_move_together(ana: Trainee, coach: CoachClient, open_page: OpenPage) -> None:
    desk = await open_desk(coach, ana, open_page)
    first = (await coach.get("/coach/media")).ok()["docs"][0]
    (await coach.post(f"/coach/media/{first['_id']}/comments", {"text": "Slow down", "at": 1.5})).ok(201)
    await desk.goto(f"/app/form-checks/{first['_id']}")
    await desk.get_by_label("Compare with").select_option(index=1)
    await desk.get_by_role("button", name="Compare").click()
    await expect(desk.locator("video")).to_have_count(2)
    load = "video => { video.load(); return new Promise((done) => (video.onloadeddata = done)); }"
    for at in range(2):
        await desk.locator("video").nth(at).evaluate(load)
    await desk.get_by_role("button", name="One frame forward").first.click()
    await holds(desk, "[...document.querySelectorAll('video')].every((video) => video.currentTime > 0.03)")
    await desk.get_by_role("button", name="0.5×").first.click()
    assert await desk.evaluate("[...document.querySelectorAll('video')].map((video) => video.playbackRate)") == [
        0.5,
        0.5,
    ]
    await desk.get_by_label("Move both together").uncheck()
    await desk.get_by_role("button", name="1×").first.click()
    assert await desk.evaluate("[...document.querySelectorAll('video')].map((video) => video.playbackRate)") == [1, 0.5]
    looks: list[tuple[Literal["light", "dark"], int]] = [
        *(("light", 390), ("dark", 390), ("light", 820), ("dark", 820), ("dark", 1440), ("light", 1440))
    ]
    for scheme, width in looks:
        await desk.emulate_media(color_scheme=scheme)
        await desk.set_viewport_size({"width": width, "height": 900})
        assert await serious(desk) == []
        assert await desk.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await picture(desk, f"checks-{scheme}-{width}", "two")
