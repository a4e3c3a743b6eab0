"""Messages in the web application: the conversation with a client, the inbox, and comments on workouts."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.web.views import messages as message_pages
from tests.core.test_uploads import PDF, picture
from tests.mcp.test_recall import after_a_minute, send
from tests.progress.test_message_attachments import MP4, upload
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.training import Json, block_with, client_path, task
from tests.support.visitor import Visitor
from tests.web.conftest import Colleague

INBOX = "/app/inbox"


def messages_of(customer: Json) -> str:
    return f"/app/customers/{customer['_id']}/messages"


async def stored(coach: CoachClient, customer: Json) -> list[Json]:
    messages: list[Json] = (await coach.get(client_path(customer, "messages"))).ok()["docs"]
    return messages


async def write(client: CoachClient, text: str) -> None:
    (await client.post("/customer/messages", {"text": text})).ok(201)


async def test_coach_reads_and_answers_a_message(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    client = await coach.as_client(ana)
    (await owner_page.get(INBOX)).ok().says("Everything is read")
    await write(client, "My <b>knee</b>\nhurts")

    inbox = (await owner_page.get(INBOX)).ok().says("Ana", "My <b>knee</b> hurts", "1")
    assert messages_of(ana) in inbox.links
    assert (await stored(coach, ana))[0]["readAt"] is None, "the inbox does not open the conversation"
    page = (await owner_page.get(messages_of(ana))).ok().says("My <b>knee</b>", "New messages")
    assert "&lt;b&gt;knee" in page.html
    assert (await stored(coach, ana))[0]["readAt"] is not None, "opening the conversation reads it"
    (await owner_page.get(INBOX)).says("Everything is read")
    assert "New" not in (await owner_page.get(messages_of(ana))).text

    await write(client, "Since Monday")
    page = await owner_page.submit(page, messages_of(ana), text="Rest for two days.")

    page.ok().says("Message sent.", "Rest for two days.", "Olga Owner")
    answer, *questions = await stored(coach, ana)
    assert page.text.index("My <b>knee") < page.text.index("Since Monday") < page.text.index("Rest for two days.")
    assert page.html.index("Rest for two days.") < page.html.index("<textarea"), "the composer is below the messages"
    assert (answer["text"], answer["author"]["type"]) == ("Rest for two days.", "coach")
    assert all(question["readAt"] for question in questions), "answered, so it is read"
    (await owner_page.get(INBOX)).says("Everything is read")
    (await owner_page.get(f"{INBOX}?all=true")).says("Rest for two days.")


async def test_opening_a_conversation_reads_only_what_may_be_changed(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_pages, "_PAGE_SIZE", 3)
    ana = await coach.create_customer("Ana")
    client = await coach.as_client(ana)
    for number in range(5):
        await write(client, f"Number {number}.")
    viewer = await colleague("customers.view")
    (await viewer.get(messages_of(ana))).ok().says("New messages", "Number 4.")
    assert not any(message["readAt"] for message in await stored(coach, ana)), "a viewer changes nothing"

    page = (await owner_page.get(messages_of(ana))).ok()
    (await owner_page.get(next(link for link in page.links if "after=" in link))).ok().says("Number 0.")
    assert all(message["readAt"] for message in await stored(coach, ana))


async def test_empty_and_overlong_messages_are_rejected(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    page = await owner_page.get(messages_of(ana))
    (await owner_page.submit(page, messages_of(ana), text=" ")).ok(400).says("should not be empty")
    (await owner_page.submit(page, messages_of(ana), text="x" * 5_001)).ok(400).says("must not be longer")
    assert await stored(coach, ana) == []


async def test_files_are_shown_in_the_page(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    client, conversation = await coach.as_client(ana), messages_of(ana)
    block = await block_with(coach, ana, task("Squat"))
    squat = (await upload(client, "/customer/messages", MP4, "squat.mp4")).ok(201)
    about = {"wblockId": block["_id"], "witemId": block["items"][0]["_id"]}
    check = {"text": "Is my back straight?", "about": about, "attachments": [squat["_id"]]}
    (await client.post("/customer/messages", check)).ok(201)
    await renew_figures(coach.ctx)
    for name, content in (("plan.pdf", PDF), ("x.png", picture())):
        page = await owner_page.get(conversation)
        page = (await owner_page.submit(page, conversation, text=name, file=(name, content))).ok().says("Message sent.")
    page.says("Document 1 from Olga Owner")
    files = re.findall(rf"{conversation}/[0-9a-f]{{24}}/attachments/[0-9a-f]{{24}}/file", page.html)
    video, document, photo = dict.fromkeys(files)
    assert f'<video class="attachment" src="{video}" controls' in page.html
    assert f'<img src="{photo}?size=small"' in page.html
    assert {photo, document} <= set(page.links)
    for address in (video, document, photo, f"{photo}?size=small"):
        assert (await owner_page.get(address)).status == 200
    other = messages_of(await coach.create_customer("Bo"))
    assert (await owner_page.get(video.replace(conversation, other))).status == 404

    path = f"/app/customers/{ana['_id']}/blocks/{block['_id']}"
    (await coach.post(client_path(ana, "messages"), {"text": "Yes!", "about": about})).ok(201)
    for where in (path, f"{path}/review"):
        page = (await owner_page.get(where)).ok()
        assert f'src="{video}" controls' in page.html, "a form check is seen where the workout is"
        places = [page.html.index("Is my back"), page.html.index("Yes!"), page.html.rindex("<textarea")]
        assert places == sorted(places), "oldest first, and the composer below"


async def test_video_of_an_unread_message_is_shown_in_today(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    client = await coach.as_client(ana)
    video = (await upload(client, "/customer/messages", MP4, "squat.mp4")).ok(201)
    (await client.post("/customer/messages", {"text": "Look", "attachments": [video["_id"]]})).ok(201)
    await renew_figures(coach.ctx)
    page = (await owner_page.get(f"/app/attention/{ana['_id']}")).ok().says("Look")
    assert re.search(rf'<video class="attachment" src="{messages_of(ana)}/[^"]+" controls', page.html)


async def test_rejected_file_is_not_sent(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    page = await owner_page.get(messages_of(ana))
    rejected = await owner_page.submit(page, messages_of(ana), text="x", file=("x.exe", b"MZ"))
    rejected.ok(400).says("must be a PDF, or an MP4, MOV or WebM video, or a JPEG, PNG, WebP or HEIC picture")
    assert await stored(coach, ana) == []


async def test_coach_deletes_own_messages_only(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    await write(await coach.as_client(ana), "Hello")
    page = await owner_page.get(messages_of(ana))
    page = await owner_page.submit(page, messages_of(ana), text="Oops")
    message, other = await stored(coach, ana)
    delete = f"{messages_of(ana)}/{message['_id']}/delete"
    assert f"{messages_of(ana)}/{other['_id']}/delete" not in page.html
    (await owner_page.submit(page, delete)).ok().says("Message deleted.", "This message was deleted.")
    assert (await stored(coach, ana))[0]["text"] is None
    (await owner_page.submit(page, delete)).ok()


async def test_long_conversation_is_read_in_parts(
    coach: CoachClient, owner_page: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_pages, "_PAGE_SIZE", 3)
    ana = await coach.create_customer("Ana")
    for number in range(5):
        (await coach.post(client_path(ana, "messages"), {"text": f"Number {number}."})).ok(201)
    page = (await owner_page.get(messages_of(ana))).says("Number 4.", "Number 2.")
    assert "Number 1." not in page.text
    [earlier] = [link for link in page.links if "after=" in link]
    page = (await owner_page.get(earlier.replace("&amp;", "&"))).says("Number 1.", "Number 0.", "Newest messages")
    assert not re.search(r"Number 2\.", page.text)
    (await owner_page.get(f"{messages_of(ana)}?after=x")).ok().says("Number 4.")
    (await owner_page.get(f"{INBOX}?after=x")).ok()


async def test_comments_on_a_workout_are_messages(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    block = await block_with(coach, ana, task("Walk"), task("Run"))
    item, path = block["items"][1], f"/app/customers/{ana['_id']}/blocks/{block['_id']}"
    page = (await owner_page.get(path)).says("No comments yet.")

    page = await owner_page.submit(page, f"{path}/comments", text="Slowly", item=item["_id"])
    page.ok().says("Comment sent.", "Slowly", "About Run")
    page = await owner_page.submit(page, f"{path}/comments", text="Well done", item="")
    page.ok().says("Well done")

    second, first = await stored(coach, ana)
    assert first["about"] == {"wblockId": block["_id"], "witemId": item["_id"]}
    assert second["about"] == {"wblockId": block["_id"], "witemId": None}
    assert f"{path}/review" in (await owner_page.get(messages_of(ana))).links
    (await owner_page.submit(page, f"{path}/comments", text=" ")).ok(400).says("should not be empty")
    (await coach.delete(client_path(ana, "wblocks", block["_id"], "witems", item["_id"]))).ok(204)
    (await owner_page.get(path)).says("About an item that was removed")


async def test_program_has_no_comments(coach: CoachClient, owner_page: Visitor) -> None:
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    block = (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "One", "day": 1})).ok(201)
    page = (await owner_page.get(f"/app/programs/{program['_id']}/blocks/{block['_id']}")).ok()
    assert "Comments" not in page.text


async def test_message_to_many_clients(coach: CoachClient, owner_page: Visitor) -> None:
    clients = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    bulk = "/app/customers/bulk"
    query = "&".join(f"ids={client['_id']}" for client in clients)
    page = (await owner_page.get(f"{bulk}?action=message&{query}")).ok().says("Send a message", "2 clients")
    (await owner_page.submit(page, bulk, text=" ")).ok(400)
    (await owner_page.submit(page, bulk, text="Closed on Monday.")).ok().says("2 clients written to")
    for client in clients:
        assert [message["text"] for message in await stored(coach, client)] == ["Closed on Monday."]


async def test_notes_are_pinned_and_marked_as_health(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    path = f"/app/customers/{ana['_id']}/notes"
    page = await owner_page.get(path)
    page = await owner_page.submit(page, path, content="Knee", isHealth="true", isPinned="true")
    page.ok().says("Knee", "Pinned", "Health", "Olga Owner")
    page = await owner_page.submit(page, path, content="Likes rowing")
    [plain, flagged] = (await coach.get(client_path(ana, "notes"))).ok()
    assert (plain["isPinned"], plain["isHealth"], flagged["isPinned"], flagged["isHealth"]) == (
        False,
        False,
        True,
        True,
    )
    assert page.text.index("Knee") < page.text.index("Likes rowing"), "pinned notes come first"

    page = await owner_page.submit(page, f"{path}/{flagged['_id']}/pin")

    page.ok().says("Note unpinned.")
    assert "Pinned" not in page.text
    [_, changed] = (await coach.get(client_path(ana, "notes"))).ok()
    assert (changed["isPinned"], changed["isHealth"], changed["content"]) == (False, True, flagged["content"])
    (await owner_page.submit(page, f"{path}/{flagged['_id']}/pin")).ok().says("Note pinned.", "Pinned")


async def test_words_of_the_client_are_not_a_field_of_the_log_form(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    question = {"label": "How was it?", "type": "text", "required": True}
    block = await block_with(
        coach, ana, task("Walk"), {"type": "FORM", "form": {"name": "Check-in", "questions": [question]}}
    )
    walk, form = block["items"]
    client = await coach.as_client(ana)
    log = f"/customer/wblocks/{block['_id']}"
    answers = [{"questionId": form["form"]["questions"][0]["_id"], "value": "Hard"}]
    (await client.put(f"{log}/witems/{walk['_id']}/log", {"comment": "My words"})).ok()
    (await client.put(f"{log}/witems/{form['_id']}/log", {"answers": answers})).ok()
    (await client.put(f"{log}/log", {"comment": "Whole session", "sessionRpe": 5})).ok()
    path = f"/app/customers/{ana['_id']}/blocks/{block['_id']}"

    page = (await owner_page.get(f"{path}/items/{walk['_id']}/log")).says(
        "My words", "only the client can change this text"
    )
    assert "comment" not in page.form(f"{path}/items/{walk['_id']}/log/task").controls
    (await owner_page.submit(page, f"{path}/items/{walk['_id']}/log/task")).ok().says("Log saved.")
    page = (await owner_page.get(f"{path}/items/{form['_id']}/log")).says("How was it?", "Hard")
    (await owner_page.submit(page, f"{path}/items/{form['_id']}/log/form", comment="From me")).ok().says("Log saved.")
    page = (await owner_page.get(f"{path}/log")).says("Whole session")
    (await owner_page.submit(page, f"{path}/log", sessionRpe="7")).ok().says("Session saved.")

    read = (await coach.get(client_path(ana, "wblocks", block["_id"]))).ok()
    assert (read["comment"], read["sessionRpe"]) == ("Whole session", 7)
    assert [item["comment"] for item in read["items"]] == ["My words", "From me"]
    assert [answer["value"] for answer in read["items"][1]["answers"]] == ["Hard"]
    page = (await owner_page.get(f"{path}/items/{walk['_id']}/log")).says("What Ana wrote stays.")
    (await owner_page.submit(page, f"{path}/items/{walk['_id']}/log/undo")).ok()
    cleared = (await coach.get(client_path(ana, "wblocks", block["_id"]))).ok()["items"][0]
    assert (cleared["isCompleted"], cleared["comment"]) == (False, "My words")


async def test_mail_about_messages_is_turned_off_for_the_company(coach: CoachClient, owner_page: Visitor) -> None:
    path = "/app/settings/company"
    page = await owner_page.get(path)
    (await owner_page.submit(page, path, companyName="Renamed")).ok()
    assert (await coach.get("/coach/account")).ok()["notifications"] == {"messages": True}
    page = await owner_page.get(path)
    (await owner_page.submit(page, path, notifications__messages=None)).ok().says("Changes saved.")
    assert (await coach.get("/coach/account")).ok()["notifications"] == {"messages": False}


async def test_coach_sees_and_recalls_a_waiting_message_on_the_page(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    await send(coach, ana, "See you on <Monday>")
    path = f"/app/customers/{ana['_id']}/messages"
    page = (await owner_page.get(path)).ok().says("See you on <Monday>", "Will be sent in a minute.", "Recall")
    message_id = (await stored(coach, ana))[0]["_id"]
    page = await owner_page.submit(page, f"{path}/{message_id}/delete")
    page.ok().says("Message recalled.", "No messages yet")
    await after_a_minute(coach)
    assert await stored(coach, ana) == []


async def test_a_message_waits_until_its_local_time(coach: CoachClient, owner_page: Visitor) -> None:
    zone = "Asia/Kolkata"
    ana = await coach.create_customer("Ana", surname="Ruiz", timezone=zone)
    path = f"/app/customers/{ana['_id']}/messages"
    template = {"name": "Week", "text": "Good week, {firstName}!"}
    template = (await coach.post("/coach/message-templates", template)).ok(201)
    page = (await owner_page.get(path)).ok().says("Send later", "Week")
    filled = await owner_page.get(f"{path}?templateId={template['_id']}")
    assert dict(filled.form(path).fields)["text"].strip() == "Good week, Ana!"
    for when, problem in (("2020-01-01T09:00", "must not be in the past"), ("soon", "must be a date and a time")):
        (await owner_page.submit(page, path, text="Hi", deliverAt=when)).ok(400).says(problem)
    day = coach.ctx.caller.today(zone) + timedelta(days=2)
    sent = await owner_page.submit(filled, path, deliverAt=f"{day}T07:30")
    sent.ok().says("The message waits.", "Good week, Ana!", "Will be sent", "07:30", "Waiting")
    [message] = (await coach.get(f"/coach/customers/{ana['_id']}/messages")).ok()["docs"]
    assert message["deliverAt"] == f"{day}T02:00:00.000Z"
    (await owner_page.submit(sent, f"{path}/{message['_id']}/delete")).ok().says("Message recalled.", "No messages yet")

    where = {"_id": ObjectId(message["_id"])}
    assert await coach.ctx.db["waitingMessages"].count_documents(where) == 0
    again = await coach.post(f"/coach/customers/{ana['_id']}/messages", {"text": "x", "deliverAt": f"{day}T02:00:00Z"})
    where = {"_id": ObjectId(again.ok(201)["_id"])}
    await coach.ctx.db["waitingMessages"].update_one(where, {"$set": {"notDelivered": "CLIENT_ARCHIVED"}})
    shown = (await owner_page.get(path)).says("Not sent", "It was to be sent", "but Ana was archived")
    (await owner_page.submit(shown, f"{path}/{again.json['_id']}/delete")).ok().says("Message deleted.")
