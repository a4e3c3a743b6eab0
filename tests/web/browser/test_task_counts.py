"""How many page loads and clicks the tasks of a coach's day take, in Chromium; the limits are written by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import aiohttp
from playwright.async_api import Locator, Page, expect

from coaching_service.web.formatting import format_date
from tests.core.test_uploads import picture as a_photo
from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.support.figures import renew_figures
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in

_WEEK = ("2026-03-02", "2026-03-04", "2026-03-06")


class Counter:
    """Counts the pages loaded and the clicks made in one window. Typing into a field that has the focus is no click."""

    def __init__(self, page: Page) -> None:
        self.page, self.loads, self.clicks = page, 0, 0
        page.on("domcontentloaded", self._count_load)

    def _count_load(self, _: Page) -> None:
        self.loads += 1

    async def click(self, target: Locator) -> None:
        """Click once."""
        self.clicks += 1
        await target.click()

    async def type(self, target: Locator, text: str) -> None:
        """Click into a field and type."""
        await self.click(target)
        await target.fill(text)


async def create_clients(coach: CoachClient, number: int) -> None:
    """Create clients who need a coach: nothing is scheduled for them."""
    entries = [{"name": f"Client {at:02}"} for at in range(number)]
    assert (await coach.post("/coach/customers/batch", {"customers": entries})).ok()["created"] == number
    await renew_figures(coach.ctx)


async def test_clients_are_reviewed_on_one_page(coach: CoachClient, open_page: OpenPage) -> None:
    await create_clients(coach, 5)  # more would be one line
    page = await open_page()
    await sign_in(page, coach)
    counter = Counter(page)

    await page.goto("/app/attention")
    for left in range(4, -1, -1):
        await counter.click(page.get_by_role("button", name="Dismiss").first)
        await expect(page.locator("#count")).to_have_text(f"{left} left")
    await expect(page.get_by_text("That was everyone here")).to_be_visible()

    assert counter.loads <= 1
    assert counter.clicks <= 5
    assert (await coach.get("/coach/attention")).ok()["docs"] == []
    assert await serious(page) == []


async def test_client_is_onboarded_on_one_page(coach: CoachClient, open_page: OpenPage) -> None:
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    block = {"name": "Full body", "day": 1}
    (await coach.post(f"/coach/programs/{program['_id']}/wblocks", block)).ok(201)
    page = await open_page()
    await sign_in(page, coach)
    await page.goto("/app/customers")
    counter = Counter(page)

    await counter.click(page.get_by_role("link", name="Add client").first)
    await page.get_by_label("First name").fill("Ana")
    await page.get_by_role("textbox", name="Email").fill("ana@example.com")
    await expect(page.get_by_label("Send invitation")).to_be_checked()
    await page.get_by_role("combobox", name="Program").select_option("Base")
    await page.get_by_label("First day").fill(MONDAY)
    await page.get_by_role("combobox", name="Check-in").select_option("Task or habit")
    await page.get_by_role("textbox", name="Task").fill("Weigh in")
    await counter.click(page.get_by_role("button", name="Add client"))
    await expect(page.get_by_role("status")).to_contain_text(
        "Ana added. Invitation sent. 1 workout scheduled. Weigh in is scheduled"
    )

    assert counter.loads <= 4
    [ana] = (await coach.customers())["docs"]
    assert [each["name"] for each in await coach.calendar(ana)][:1] == ["Full body"]
    [check_in] = (await coach.get(f"/coach/customers/{ana['_id']}/check-ins")).ok()
    assert check_in["name"] == "Weigh in"


async def test_next_week_with_more_load(coach: CoachClient, open_page: OpenPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    for day in _WEEK:
        block = await coach.schedule(ana, date=day)
        path = f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems"
        (await coach.post(path, training.exercise_of(squat))).ok(201)
    page = await open_page()
    await sign_in(page, coach)
    counter = Counter(page)

    await page.goto(f"/app/customers/{ana['_id']}?week={MONDAY}")
    await counter.click(page.locator("summary", has_text="Copy"))
    await picture(page, "tasks", "copy-week")
    panel = page.locator("details[open]")
    assert await serious(page, within=panel) == []
    await counter.type(panel.get_by_label("Load +/−"), "2.5")
    await counter.click(panel.get_by_role("button", name="Copy"))
    await expect(page.get_by_role("status")).to_have_text("3 workouts copied.")

    assert counter.loads <= 2
    assert counter.clicks <= 8
    listed: list[dict[str, Any]] = (
        await coach.get(f"/coach/customers/{ana['_id']}/wblock", startDate="2026-03-09", endDate="2026-03-15")
    ).ok()
    assert [block["date"] for block in listed] == ["2026-03-09", "2026-03-11", "2026-03-13"]
    assert {each["load"] for block in listed for item in block["items"] for each in item["exerciseSets"]} == {62.5}
    await picture(page, "tasks", "copied-week")


async def test_program_of_four_weeks_for_five_clients(coach: CoachClient, open_page: OpenPage) -> None:
    for name in ("Back squat", "Bench press", "Barbell row"):
        await coach.create_exercise(name)
    clients = [await coach.create_customer(name) for name in ("Ana", "Bea", "Cem", "Dev", "Eva")]
    page = await open_page()
    await sign_in(page, coach)
    counter = Counter(page)

    await page.goto("/app/programs")
    if not await page.get_by_role("textbox", name="Workouts optional").is_visible():  # open while there are no programs
        await counter.click(page.locator("summary", has_text="New program"))
    await counter.type(page.get_by_label("Name", exact=True), "Strength")
    await counter.type(
        page.get_by_role("textbox", name="Workouts optional"),
        "\n".join(
            f"Day {day}: Full body\nA1 Back squat: 4x8 @60kg\nA2 Bench press: 4x8 @50kg\nBarbell row: 3x10 @40kg"
            for day in (1, 3, 5)
        ),
    )
    await counter.click(page.get_by_role("button", name="Create program"))
    await counter.click(page.locator("summary", has_text="Copy days"))
    panel = page.locator("details[open]")
    await counter.type(panel.get_by_label("How many times"), "3")
    await counter.type(panel.get_by_label("Load +/−"), "2.5")
    await counter.click(panel.get_by_role("button", name="Copy"))
    await expect(page.get_by_role("status")).to_have_text("9 workouts copied.")
    await counter.click(page.locator("summary", has_text="Assign").first)
    await counter.click(page.get_by_text("Assign to several clients"))
    assert await serious(page, within=page.locator(".sheet[open]")) == []
    for client in clients:
        await counter.click(page.get_by_label(client["name"]))
    await counter.click(page.get_by_role("button", name="Choose the start date…"))
    await page.get_by_label("Start date").fill(MONDAY)
    await counter.click(page.get_by_role("button", name="Assign program"))
    await expect(page.get_by_text("5 clients changed")).to_be_visible()

    assert counter.loads <= 10
    assert counter.clicks <= 60
    for client in clients:
        path = f"/coach/customers/{client['_id']}/wblock"
        blocks = (await coach.get(path, startDate=MONDAY, endDate="2026-03-29")).ok()
        loads = [block["items"][0]["exerciseSets"][0]["load"] for block in blocks]
        assert loads == [60] * 3 + [62.5] * 3 + [65] * 3 + [67.5] * 3
        assert {item["supersetId"] is None for item in blocks[0]["items"][:2]} == {False}


async def test_session_is_reviewed_and_commented(coach: CoachClient, open_page: OpenPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await training.block_with(coach, ana, training.exercise_of(squat), training.task("Walk"))
    client = await coach.as_client(ana)
    sets = [{"index": at, "reps": 8 - at, "load": 60, "isCompleted": True} for at in (1, 2)]
    (await training.own_log(client, block, block["items"][0], isCompleted=True, customerSets=sets)).ok()
    message = {"text": "The last set was too much", "about": {"wblockId": block["_id"]}}
    (await client.post("/customer/messages", message)).ok(201)
    await renew_figures(coach.ctx)
    page = await open_page()
    await sign_in(page, coach)
    counter = Counter(page)

    await page.goto("/app/attention")
    entry = page.locator(f"#client-{ana['_id']}")
    await counter.click(entry.locator("summary", has_text="1 unread message"))
    await counter.click(entry.get_by_role("link", name="about a workout"))
    await expect(page.get_by_role("region", name="Sets of Squat")).to_contain_text("2 reps less")
    await counter.type(page.get_by_role("textbox", name="Comment"), "Two sets are enough next time")
    await counter.click(page.get_by_role("button", name="Send comment"))
    await expect(page.get_by_role("status")).to_have_text("Comment sent.")
    await expect(page.locator("#thread article")).to_have_count(2)
    await expect(page.get_by_role("textbox", name="Comment")).to_have_value("")

    assert counter.loads <= 2
    assert counter.clicks <= 4
    await picture(page, "tasks", "review")
    assert await serious(page, within=page.locator("#thread")) == []
    newest, question = (await coach.get(f"/coach/customers/{ana['_id']}/messages")).ok()["docs"]
    assert newest["about"]["wblockId"] == block["_id"]
    assert question["readAt"] is not None


async def test_photos_and_measurements_over_three_months(coach: CoachClient, open_page: OpenPage) -> None:
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach, "Body weight")
    path = training.client_path(ana)
    (await coach.post(f"{path}/metrics-sets", {"metricsSetId": body["_id"]})).ok(201)
    today = coach.ctx.caller.today()
    for days, value in ((200, 90), (92, 84), (40, 82), (0, 80)):
        day = str(today - timedelta(days=days))
        entry = {"metricId": body["metrics"][0]["_id"], "date": day, "value": value}
        (await coach.post(f"{path}/metrics-sets/{body['_id']}/entries", entry)).ok(201)
        for side in ("1", "3"):
            form = aiohttp.FormData({"createdAt": day, "imageSideIndex": side}, default_to_multipart=True)
            form.add_field("imageFile", a_photo(size=(300, 400)), filename="photo.jpg")
            (await coach.send("POST", f"{path}/progress-photos", data=form)).ok(201)
    page = await open_page()
    await sign_in(page, coach)
    counter = Counter(page)

    await page.goto("/app/customers")
    await counter.click(page.get_by_role("link", name="Ana"))
    await counter.click(page.get_by_role("link", name="Progress"))

    shown = page.get_by_role("region", name="Front").get_by_role("figure")
    then, now = format_date(today - timedelta(days=92)), format_date(today)
    await expect(shown.nth(0)).to_contain_text(f"{then} Body weight: 84 kg")
    await expect(shown.nth(1)).to_contain_text(f"{now} Body weight: 80 kg")
    await expect(page.get_by_role("img", name=f"Ana, front, {then}")).to_be_visible()
    weights = page.get_by_role("region", name="Body weight", exact=True)
    await expect(weights.locator(".figures")).to_contain_text("-4 kg")
    await expect(weights.locator(".figures")).to_contain_text(f"since {then}")
    await expect(weights.locator(".u-over")).to_be_visible()
    assert counter.loads <= 3
    assert counter.clicks <= 2
    await page.locator("[data-compare]").last.scroll_into_view_if_needed()
    await picture(page, "tasks", "three-months")


async def test_exercise_is_changed_for_everyone_on_a_program(coach: CoachClient, open_page: OpenPage) -> None:
    """Contract 20: what changes for each client is shown before it is applied; one undo restores all."""
    squat, _ = await coach.create_exercise("Back squat"), await coach.create_exercise("Leg press")
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    for day in (1, 8):
        block = {"name": "Legs", "day": day, "items": [training.exercise_of(squat)]}
        (await coach.post(f"/coach/programs/{program['_id']}/wblocks", block)).ok(201)
    today = str(coach.ctx.caller.today())
    clients = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy")]
    for client in clients:
        body = {"customerId": client["_id"], "startDate": today}
        (await coach.post(f"/coach/programs/{program['_id']}/assign", body)).ok(201)
    page = await open_page()
    await sign_in(page, coach)
    await page.goto(f"/app/programs/{program['_id']}")
    counter = Counter(page)

    await counter.click(page.locator("summary", has_text="Change for everyone"))
    everyone = page.locator("details", has_text="3 clients are on this program")
    await everyone.get_by_label("Replace").select_option("Back squat")
    await counter.type(everyone.get_by_label("With"), "Leg press")
    await counter.click(everyone.get_by_role("button", name="Preview"))
    await expect(page.get_by_role("heading", name="Preview: 6 workouts changed")).to_be_visible()
    for name in ("Ana", "Bo", "Cy"):
        await expect(page.get_by_role("listitem").filter(has_text=name)).to_contain_text("2 workouts changed")
    await picture(page, "tasks", "change-for-everyone")
    assert await serious(page) == []
    await counter.click(page.get_by_role("button", name="Apply to 3 clients"))
    await expect(page.get_by_role("heading", name="3 clients changed")).to_be_visible()

    assert counter.loads <= 2
    assert counter.clicks <= 4
    names = [block["items"][0]["exercise"]["name"] for block in await coach.calendar(clients[0], today, "9999-12-31")]
    assert names == ["Leg press"] * 2
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("Undone.")).to_be_visible()
    names = [block["items"][0]["exercise"]["name"] for block in await coach.calendar(clients[2], today, "9999-12-31")]
    assert names == ["Back squat"] * 2
