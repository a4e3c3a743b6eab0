"""Messages of a client on a phone: written without a network, with long links, and with a file."""

from __future__ import annotations

from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, expect

from tests.core.test_uploads import picture as picture_bytes
from tests.support.client import CoachClient
from tests.support.training import client_path
from tests.web.browser.conftest import picture
from tests.web.browser.phone import PHONE, Complaints, sign_client_in

LINK = "https://www.youtube.com/watch?v=abcdefghijk&list=abcdefghijklmnopqrstuvwxyz"
_WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


async def test_messages_wait_for_the_network_and_none_is_lost_or_repeated(
    chromium: Browser, public_server: TestServer, coach: CoachClient
) -> None:
    customer = await coach.create_customer("Ana")
    messages = client_path(customer, "messages")
    (await coach.post(messages, {"text": LINK})).ok(201)
    complaints = Complaints()
    context = await chromium.new_context(base_url=str(public_server.make_url("/")), **PHONE)
    complaints.watch(context, public_server)
    await sign_client_in(context, public_server, coach, customer["_id"])
    page = await context.new_page()
    await page.goto("/train/messages")
    field, send = page.get_by_label("Message", exact=True), page.get_by_role("button", name="Send")
    await field.fill(LINK)
    assert not await page.evaluate(_WIDER)
    box = await send.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 360, "a long link does not push the button off the screen"

    await context.set_offline(True)
    await field.fill("My knee hurts")
    await send.tap()
    await expect(field).to_have_value("")
    await expect(page.get_by_text("Not sent yet. Message: My knee hurts")).to_be_visible()
    await page.wait_for_timeout(600)  # a second tap within half a second is the same one
    await field.fill("Only on stairs")
    await send.tap()
    await expect(page.get_by_text("2 changes not sent yet.")).to_be_visible()
    await picture(page, "small", "train-message-offline")
    await context.set_offline(False)
    await expect(page.get_by_role("article").get_by_text("Only on stairs")).to_be_visible()
    await expect(field).to_have_value("")

    await page.wait_for_timeout(600)
    await field.fill("Like this")
    await page.get_by_text("Add a photo, video or PDF").tap()
    await page.get_by_label("Photo, video or PDF").set_input_files(
        {"name": "knee.png", "mimeType": "image/png", "buffer": picture_bytes()}
    )
    await send.tap()
    await expect(page.get_by_role("img", name="Picture 1 from you")).to_be_visible()
    await expect(field).to_have_value("")
    sent = (await coach.get(messages)).ok()["docs"][::-1]
    assert [each["text"] for each in sent] == [LINK, "My knee hurts", "Only on stairs", "Like this"]
    assert complaints.unexpected() == []
    await context.close()
