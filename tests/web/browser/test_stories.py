"""Main tasks of a coach in Chromium."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp.test_utils import TestServer
from playwright.async_api import Page, Route, expect

from coaching_service.people.sessions import service as sessions
from tests.conftest import PASSWORD
from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.figures import renew_figures
from tests.support.mcp_client import McpHttpClient
from tests.support.oauth_flow import CALLBACK, register
from tests.support.sampled import some
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in


async def test_sign_up_then_create_use_and_delete_an_api_key(open_page: OpenPage, anonymous: CoachClient) -> None:
    page = await open_page()
    await page.goto("/app/sign-up")
    await page.get_by_label("Company").fill("Nova Gym")
    await page.get_by_label("Your name").fill("Nova")
    await page.get_by_label("Email").fill(f"nova-{secrets.token_hex(6)}@example.com")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Create company").click()
    await expect(page.get_by_role("status")).to_have_text("Welcome, Nova. Nova Gym is ready.")

    await page.get_by_role("link", name="Settings").click()
    await page.get_by_role("link", name="API keys").click()
    await page.get_by_role("textbox", name="Name").fill("Website")
    await page.get_by_role("button", name="Create API key").click()
    secret = await page.locator("#secret").inner_text()
    caller = anonymous.with_key(secret)
    assert (await caller.get("/me")).ok()["name"] == "Nova"
    await caller.create_customer("Ana")

    await page.get_by_role("link", name="Clients").click()
    await expect(page.get_by_role("link", name="Ana")).to_be_visible()
    await page.get_by_role("link", name="Settings").click()
    await page.get_by_role("link", name="API keys").click()
    await page.get_by_role("link", name="Delete Website").click()
    await expect(page.get_by_text("will lose access immediately")).to_be_visible()
    await page.get_by_role("button", name="Delete key").click()
    await expect(page.get_by_role("status")).to_have_text("Website deleted. Requests with it are rejected from now on.")
    (await caller.get("/me")).refused(401)


async def test_sign_up_proposes_the_browser_time_zone(open_page: OpenPage) -> None:
    page = await open_page(timezone_id="America/Bogota")
    await page.goto("/app/sign-up")
    await expect(page.get_by_label("Time zone")).to_have_value("America/Bogota")


async def test_form_values_survive_an_expired_session(page: Page, coach: CoachClient, complaints: list[str]) -> None:
    await page.goto("/app/customers/new")
    await page.get_by_label("First name", exact=True).fill("Ana")
    await sessions.end_sessions(coach.ctx, coach.ctx.caller.id)
    await page.get_by_role("button", name="Add client").click()

    await expect(page.get_by_role("heading", name="Your session has ended")).to_be_visible()
    assert await serious(page) == []
    await picture(page, "light", "session-ended")
    await page.get_by_label("Email").fill(str(coach.ctx.caller.email))
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_label("First name", exact=True)).to_have_value("Ana")
    await picture(page, "light", "session-ended-back")
    assert await coach.names() == []
    await page.get_by_role("button", name="Add client").click()
    await expect(page.get_by_role("status")).to_contain_text("Ana added.")
    assert all("401" in each for each in complaints), "only the expired session"
    complaints.clear()


async def two_workouts(coach: CoachClient) -> dict[str, str]:
    ana: dict[str, str] = await coach.create_customer("Ana")
    for day, name, titles in ((MONDAY, "Legs", ("Walk", "Run")), (TUESDAY, "Arms", ("Swim",))):
        block = await coach.schedule(ana, day, name)
        for title in titles:
            path = f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems"
            (await coach.post(path, {"type": "TASK", "taskFields": {"title": title}})).ok(201)
    return ana


async def list_titles(coach: CoachClient, ana: dict[str, str]) -> list[list[str]]:
    calendar = await coach.calendar(ana)
    return [[item["taskFields"]["title"] for item in block["items"]] for block in calendar]


async def test_items_are_dragged_between_workouts(page: Page, coach: CoachClient) -> None:
    ana = await two_workouts(coach)
    await page.goto(f"/app/customers/{ana['_id']}?week={TUESDAY}")
    await expect(page.get_by_role("heading", name="2 – 8 Mar 2026")).to_be_visible()
    legs, arms = page.get_by_role("article", name="Legs"), page.get_by_role("article", name="Arms")
    await expect(legs.locator(".item")).to_have_text(["Walk", "Run"])

    await legs.locator("[data-item]").first.locator("[data-grip]").drag_to(arms.get_by_text("Swim", exact=True))

    await expect(page.get_by_role("status")).to_have_text("Moved to Arms.")
    assert sorted((await list_titles(coach, ana))[1]) == ["Swim", "Walk"]
    await page.get_by_role("link", name="Next").click()
    await expect(page.get_by_text("No workouts this week")).to_be_visible()


async def test_workouts_are_dragged_by_their_whole_card(page: Page, coach: CoachClient) -> None:
    ana = await two_workouts(coach)
    await page.goto(f"/app/customers/{ana['_id']}?week={TUESDAY}")
    legs = page.get_by_role("article", name="Legs")
    for handle, day, name in (
        (legs.get_by_role("link", name="Legs"), "2026-03-05", "Thu 5 Mar 2026"),
        (legs.get_by_text("Run", exact=True), "2026-03-06", "Fri 6 Mar 2026"),
        (legs.locator("[data-lift]"), "2026-03-07", "Sat 7 Mar 2026"),
    ):
        target = page.locator(f"[data-day='{day}']")
        await handle.drag_to(target)
        await expect(page.get_by_role("status")).to_have_text(f"Legs moved to {name}.")
        await expect(target.get_by_role("article", name="Legs")).to_be_visible()


async def test_workouts_are_moved_by_keyboard(page: Page, coach: CoachClient) -> None:
    ana = await two_workouts(coach)
    await page.goto(f"/app/customers/{ana['_id']}?week={TUESDAY}")
    announced = page.locator("[data-announce]")
    lift = page.get_by_role("button", name="Move Legs with the arrow keys")

    await lift.focus()
    await page.keyboard.press("Enter")
    await expect(lift).to_have_attribute("aria-pressed", "true")
    await expect(announced).to_contain_text("Legs lifted. Arrow keys move it")
    await page.keyboard.press("ArrowRight")
    await expect(lift).to_be_focused()
    assert await serious(page, within=page.get_by_role("article", name="Legs")) == []
    await page.keyboard.press("Escape")
    await expect(announced).to_have_text("Legs put back.")
    await expect(page.locator(f"[data-day='{MONDAY}']").get_by_role("article", name="Legs")).to_be_visible()

    await page.keyboard.press("Space")
    await page.keyboard.press("ArrowRight")
    await expect(announced).to_contain_text("2 of 2")
    await page.keyboard.press("ArrowUp")
    await expect(announced).to_contain_text("1 of 2")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("Legs moved to")
    await expect(page.locator(f"[data-day='{TUESDAY}'] article")).to_have_count(2)
    await expect(page.locator(f"[data-day='{TUESDAY}'] article").first).to_have_attribute("aria-label", "Legs")
    await expect(lift).to_be_focused()


async def test_bulk_action_shows_its_progress(page: Page, coach: CoachClient) -> None:
    entries = [{"name": f"Client {number:02}"} for number in range(40)]
    assert (await coach.post("/coach/customers/batch", {"customers": entries})).ok()["created"] == 40
    await page.goto("/app/customers")
    await page.get_by_label("Select Client 00").check()
    await page.get_by_label("Select Client 01").check()
    await expect(page.locator("[data-chosen]")).to_have_text("2 selected")
    await page.get_by_label("Select all 40 active clients").check()
    await expect(page.locator("[data-chosen]")).to_have_text("All selected")
    await page.get_by_label("Bulk action").select_option("Add to groups…")
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_label("New groups, one per line").fill("Spring")
    await page.get_by_role("button", name="Add to groups").click()

    await expect(page.get_by_role("heading", name="40 clients changed")).to_be_visible()
    await page.get_by_role("link", name="Back to clients").click()
    await expect(page.get_by_label("Group")).to_contain_text("Spring (40)")


async def test_application_works_without_javascript(open_page: OpenPage, coach: CoachClient) -> None:
    ana = await two_workouts(coach)
    page = await open_page(java_script_enabled=False)
    await sign_in(page, coach)
    await page.goto(f"/app/customers/{ana['_id']}?week={MONDAY}")
    legs = page.get_by_role("article", name="Legs")
    await legs.locator("summary").first.click()
    await legs.get_by_label("Move to").first.select_option("Tue: Arms")
    await legs.get_by_role("button", name="Move").first.click()

    await expect(page.get_by_role("status")).to_have_text("Moved to Arms.")
    assert await list_titles(coach, ana) == [["Run"], ["Walk", "Swim"]]


async def test_assistant_is_connected_and_disconnected(
    open_page: OpenPage, public_server: TestServer, coach: CoachClient, complaints: list[str]
) -> None:
    """The consent page, whose policy must allow the redirect to the assistant."""
    page = await open_page()

    async with McpHttpClient(public_server, {}) as mcp:
        claude = await register(mcp)
        await page.goto(claude.authorize_url())
        await page.get_by_label("Email").fill(str(coach.ctx.caller.email))
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", name="Connect Claude?")).to_be_visible()
        assert await serious(page) == []
        await picture(page, "light", "oauth-authorize")
        async with page.expect_request(lambda request: request.url.startswith(CALLBACK)) as redirected:
            await page.get_by_role("button", name="Allow", exact=True).click()
        code = parse_qs(urlsplit((await redirected.value).url).query)["code"][0]
        await page.wait_for_url("chrome-error://*/")  # no test reaches another host
        (await claude.exchange(code)).ok()

    await page.goto("/app/settings/assistants")
    await page.get_by_role("link", name="Disconnect Claude").click()
    await page.get_by_role("button", name="Disconnect").click()
    await expect(page.get_by_role("status")).to_have_text("Claude disconnected.")
    assert [each for each in complaints if CALLBACK not in each] == []
    complaints.clear()  # the assistant's URL is the only other host


async def test_phone_shows_every_tab_and_accepts_a_decimal_comma(open_page: OpenPage, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    block = await coach.schedule(ana)
    page = await open_page(viewport={"width": 360, "height": 740})
    await sign_in(page, coach)
    await page.goto(f"/app/customers/{ana['_id']}/blocks/{block['_id']}?keywords=press")
    for tab in await page.get_by_role("navigation", name="Ana").get_by_role("link").all():
        await tab.scroll_into_view_if_needed()
        assert (box := await tab.bounding_box())
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360

    await page.get_by_role("group", name="Exercise").get_by_role("radio").first.check()
    await page.get_by_label("Load, kg").fill("")
    await page.get_by_label("Load, kg").press_sequentially("77,5")
    await page.get_by_role("button", name="Add exercise").click()

    await expect(page.locator(".notice").get_by_role("status")).to_contain_text("added.")
    (seen,) = await coach.calendar(ana)
    assert seen["items"][0]["exerciseSets"][0]["load"] == 77.5
    await expect(page.get_by_role("heading", name="Add an exercise")).to_be_in_viewport()
    await page.get_by_role("searchbox", name="Search exercises").fill("squat")
    await page.get_by_role("button", name="Search").click()
    await page.wait_for_url("**keywords=squat#more")
    await expect(page.get_by_role("heading", name="Add an exercise")).to_be_in_viewport()


async def test_interrupted_form_can_be_sent_again(page: Page, coach: CoachClient) -> None:
    tries: list[str] = []

    async def stop_the_first(route: Route) -> None:
        tries.append(route.request.method)
        await (route.abort("aborted") if len(tries) == 1 else route.continue_())

    await page.clock.install()
    await page.goto("/app/customers/new")
    await page.route("**/app/customers/new", stop_the_first)
    await page.get_by_label("First name", exact=True).fill("Ana")
    button = page.get_by_role("button", name="Add client")
    async with page.expect_event("requestfailed"):
        await button.dblclick()
    assert tries == ["POST"], "a double click sends the form once"

    await page.clock.fast_forward(5_000)
    await button.click()

    await expect(page.get_by_role("status")).to_contain_text("Ana added.")
    assert await coach.names() == ["Ana"]


LOOKS: dict[str, dict[str, Any]] = {
    "small": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
}


@pytest.mark.parametrize("look", some([*LOOKS], 1))
async def test_coach_starts_with_the_clients_who_need_attention(
    open_page: OpenPage, coach: CoachClient, look: str
) -> None:
    ana = await coach.create_customer("Ana", surname="Ruiz", groups=["Strength"])
    bo = await coach.create_customer("Wilhelmina-Theodora", surname="Featherstonehaugh-Cholmondeley")
    for customer, text in ((ana, "Knee pain"), (bo, "Back pain"), (bo, "Shoulder pain")):
        (await coach.post(f"/coach/customers/{customer['_id']}/notes", {"content": text, "isHealth": True})).ok(201)
    client = await coach.as_client(ana)
    (await client.post("/customer/messages", {"text": "Hello"})).ok(201)
    await renew_figures(coach.ctx)
    page = await open_page(**LOOKS[look])
    await sign_in(page, coach)
    await page.goto("/app/attention")
    await expect(page.get_by_role("heading", name="Today")).to_be_visible()
    await expect(page.get_by_role("listitem").filter(has_text="Ana Ruiz").first).to_contain_text("1 unread message")
    await picture(page, look, "attention-story")
    assert await serious(page) == []

    await page.get_by_role("button", name="Dismiss “1 health note” of Ana Ruiz").click()
    await expect(page.get_by_role("status")).to_have_text("Dismissed until something new happens.")
    await expect(page.get_by_text("1 health note")).to_have_count(0)
    await picture(page, look, "attention-story-dismissed")
    await page.get_by_role("link", name="1 unread message").click()
    await expect(page.get_by_text("Hello")).to_be_visible()


async def test_new_company_starts_with_adding_a_client(page: Page) -> None:
    await page.goto("/app/attention")
    await picture(page, "light", "attention-empty")
    assert await serious(page) == []
    await page.get_by_role("link", name="Add client").click()
    await expect(page.get_by_label("First name", exact=True)).to_be_visible()
