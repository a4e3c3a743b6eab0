"""Messages that appear on open pages: of a coach and of a client, in two browsers."""

from __future__ import annotations

import time

from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, Page, expect

from tests.support.client import CoachClient
from tests.support.training import client_path
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in
from tests.web.browser.phone import PHONE, Complaints, sign_client_in

# A message appears within three seconds on a machine that has nothing else to do.
BUSY_MACHINE = 30_000


async def send(page: Page, text: str) -> float:
    """Write a message on its page; returns when."""
    await page.get_by_label("Message", exact=True).fill(text)
    began = time.monotonic()
    await page.get_by_role("button", name="Send").click()
    return began


async def expect_soon(page: Page, text: str, began: float) -> None:
    """Expect a message on a page that is not loaded again."""
    await expect(page.get_by_role("log").get_by_text(text)).to_be_visible(timeout=BUSY_MACHINE)
    print(f"{text}: {time.monotonic() - began:.2f} s")


async def test_messages_appear_in_two_browsers(
    open_page: OpenPage, chromium: Browser, public_server: TestServer, coach: CoachClient
) -> None:
    customer = await coach.create_customer("Ana")
    messages = client_path(customer, "messages")
    of_coach, complaints = await open_page(), Complaints()
    await sign_in(of_coach, coach)
    await of_coach.goto(f"/app/customers/{customer['_id']}/messages")
    phone = await chromium.new_context(base_url=str(public_server.make_url("/")), **PHONE)
    complaints.watch(phone, public_server)
    await sign_client_in(phone, public_server, coach, customer["_id"])
    of_client = await phone.new_page()
    await of_client.goto("/train/messages")
    loads: list[str] = []
    of_coach.on("load", lambda _: loads.append(of_coach.url))
    draft = of_coach.get_by_label("Message", exact=True)
    await draft.fill("A draft")

    await expect_soon(of_coach, "My knee hurts", await send(of_client, "My knee hurts"))
    await expect_soon(of_coach, "Since Monday", await send(of_client, "Since Monday"))
    assert loads == []
    assert await draft.input_value() == "A draft"
    assert all(each["readAt"] for each in (await coach.get(messages)).ok()["docs"]), "the open page reads"
    await expect(of_coach.get_by_role("log").get_by_role("article")).to_have_count(2)
    assert await serious(of_coach) == []
    await picture(of_coach, "large", "live-messages")

    await expect_soon(of_client, "Rest for two days", await send(of_coach, "Rest for two days"))
    assert await serious(of_client) == []
    await picture(of_client, "small", "train-live-messages")
    await phone.close()
    assert complaints.unexpected() == []


async def test_inbox_follows_and_ends_with_the_session(open_page: OpenPage, coach: CoachClient) -> None:
    customer = await coach.create_customer("Ana")
    client = await coach.as_client(customer)
    page = await open_page()
    await sign_in(page, coach)
    await page.goto("/app/inbox")
    await expect(page.get_by_text("Everything is read")).to_be_visible()
    (await client.post("/customer/messages", {"text": "Which shoes?"})).ok(201)
    await expect(page.get_by_text("Which shoes?")).to_be_visible(timeout=BUSY_MACHINE)
    await expect(page.get_by_role("status").filter(has_text="New messages")).to_have_count(1)
    other = await page.context.new_page()
    await other.goto("/app/inbox")
    await other.locator("summary", has_text="Account of").click()
    await other.get_by_role("button", name="Sign out").click()
    await other.wait_for_url("**/app/sign-in*")
    (await client.post("/customer/messages", {"text": "The flat ones?"})).ok(201)
    await page.wait_for_url("**/app/sign-in*", timeout=BUSY_MACHINE)


async def test_words_for_again_are_inserted_and_sent_by_keyboard(open_page: OpenPage, coach: CoachClient) -> None:
    customer = await coach.create_customer("Ana")
    for number in range(12):
        (await coach.post(client_path(customer, "messages"), {"text": f"Message {number}\n" * 4})).ok(201)
    (await coach.post("/coach/message-templates", {"name": "Praise", "text": "Well done, {firstName}!"})).ok(201)
    sizes = ({"width": 1440, "height": 900}, {"width": 390, "height": 844})
    for size, newest in zip(sizes, ("Message 11", "Hi. Well done, Ana!"), strict=True):
        page = await open_page(viewport=size)
        await sign_in(page, coach)
        await page.goto(f"/app/customers/{customer['_id']}/messages")
        await expect(page.get_by_role("log").get_by_text(newest).first).to_be_in_viewport()
        draft = page.get_by_label("Message", exact=True)
        await draft.fill("Hi. ")
        await page.get_by_text("Templates", exact=True).click()
        await page.get_by_role("link", name="Praise").click()
        await expect(draft).to_have_value("Hi. Well done, Ana!")
        await expect(draft).to_be_focused()
        if size["width"] < 500:
            assert await serious(page) == []
        await draft.press("Control+Enter")
        await expect(page.get_by_role("log").get_by_text("Hi. Well done, Ana!").last).to_be_in_viewport()
        await expect(draft).to_have_value("")
        await expect(draft).to_be_in_viewport()
