"""Messages of a client on /train."""

from __future__ import annotations

import re

import pytest

from coaching_service.web.views import messages as message_pages
from tests.core.test_uploads import PDF, picture
from tests.progress.test_message_attachments import MP4
from tests.support.client import CoachClient
from tests.support.stored import stored_document
from tests.support.training import Json, client_path
from tests.web.conftest import ClientPage

MESSAGES = "/train/messages"


async def send(coach: CoachClient, customer: Json, text: str) -> Json:
    message: Json = (await coach.post(client_path(customer, "messages"), {"text": text})).ok(201)
    return message


async def stored(coach: CoachClient, customer: Json) -> list[Json]:
    messages: list[Json] = (await coach.get(client_path(customer, "messages"))).ok()["docs"]
    return messages


async def test_client_reads_and_answers(coach: CoachClient, client_page: ClientPage) -> None:
    customer = await coach.create_customer("Ana", timezone="America/New_York")
    ana = await client_page(coach, customer)
    (await ana.get(MESSAGES)).ok().says("No messages yet")
    first = await send(coach, customer, "Well <b>done</b>")
    await send(coach, customer, "See https://example.com/squat")
    sent = await stored_document(coach.ctx.db["messages"], {"text": "Well <b>done</b>"})
    await coach.ctx.db["messages"].update_one(
        {"_id": sent["_id"]}, {"$set": {"createdAt": sent["createdAt"].replace(year=2026, month=3, day=3, hour=2)}}
    )

    assert "2 unread" in (await ana.get("/train")).text
    page = (await ana.get(MESSAGES)).ok().says("New messages", "Today", "Well <b>done</b>", "Olga Owner")
    assert "Mon 2 Mar 2026" in page.text, "the date in New York, where the client is"
    assert page.text.index("Well") < page.text.index("See https"), "the newest is the last"
    assert "unread" not in page.text
    assert "https://example.com/squat" in page.links
    assert all(message["readAt"] for message in await stored(coach, customer))
    again = (await ana.get(MESSAGES)).ok()
    assert "New messages" not in again.text
    assert "unread" not in (await ana.get("/train")).text

    page = await ana.submit(again, MESSAGES, text="Thank you")
    page.ok().says("Thank you", "Sent")
    answer = (await stored(coach, customer))[0]
    assert (answer["text"], answer["author"]["type"], answer["attachments"]) == ("Thank you", "client", [])
    (await coach.put(client_path(customer, "messages/read"), {})).ok()
    (await ana.get(MESSAGES)).says("Read")

    delete = f"{MESSAGES}/{answer['_id']}/delete"
    assert f"{MESSAGES}/{first['_id']}/delete" not in page.html, "only own messages can be deleted"
    (await ana.submit(page, delete)).ok().says("Message deleted.", "This message was deleted.")
    assert (await stored(coach, customer))[0]["text"] is None


async def test_client_sends_files(coach: CoachClient, client_page: ClientPage) -> None:
    customer = await coach.create_customer("Ana")
    ana = await client_page(coach, customer)
    for name, content, tag in (("plan.pdf", PDF, "<a"), ("squat.mp4", MP4, "<video"), ("x.png", picture(), "<img")):
        page = await ana.submit(await ana.get(MESSAGES), MESSAGES, text=name, file=(name, content))
        page.ok().says(name)
        [source] = re.findall(rf'{tag}[^>]* (?:href|src)="({MESSAGES}/[^"]*/file)', page.html)
        async with ana._http.get(source) as response:
            assert (response.status, response.headers["Cache-Control"]) == (200, "no-store")
            body = await response.read()
        assert body == content or tag != "<a"
    files = await coach.ctx.db["fs.files"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert {str(file["customerId"]) for file in files} == {customer["_id"]}, "erased with the client"

    stranger = await client_page(coach, await coach.create_customer("Bea"))
    (await stranger.get(source)).ok(404).says("Page not found")

    rejected = await ana.submit(page, MESSAGES, text="Look at this", file=("x.exe", b"MZ"))
    rejected.ok(400).says("must be a PDF, or an MP4, MOV or WebM video", "Look at this", "Choose the file again.")
    (await ana.submit(page, MESSAGES, text=" ")).ok(400).says("should not be empty")
    assert len(await stored(coach, customer)) == 3


async def test_older_messages_are_on_other_pages(
    coach: CoachClient, client_page: ClientPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_pages, "_PAGE_SIZE", 3)
    customer = await coach.create_customer("Ana")
    for number in range(5):
        await send(coach, customer, f"Number {number}.")
    ana = await client_page(coach, customer)
    page = (await ana.get(MESSAGES)).says("Number 4.", "Number 2.")
    assert not re.search(r"Number [01]\.", page.text)
    [earlier] = [link for link in page.links if "after=" in link]
    older = (await ana.get(earlier.replace("&amp;", "&"))).ok().says("Number 0.", "Number 1.", "Newest messages")
    assert "New messages" not in older.text
    (await ana.get(f"{MESSAGES}?after=x")).ok().says("Number 4.")
