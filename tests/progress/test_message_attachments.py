"""Files of messages: uploaded first, sent with a message, deleted if they are not."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from PIL import Image

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Steps
from coaching_service.core.jobs.worker import run_due
from coaching_service.progress.conversation import messages
from tests.core.test_uploads import PDF, fetch, form, picture, stored
from tests.support.client import CoachClient
from tests.support.media_files import ISO6709, box, mp4, webm
from tests.support.training import Json, client_path

OWN = "/customer/messages"


MP4, WEBM = mp4(data=bytes(5_000)), webm(data=bytes(3_000))


async def upload(sender: CoachClient, path: str, content: bytes, name: str = "file") -> Any:
    return await sender.send("POST", f"{path}/attachments", data=form(content, "file", name))


@pytest.fixture
async def ana(coach: CoachClient) -> Json:
    return await coach.create_customer()


@pytest.mark.parametrize(
    ("content", "content_type", "kind"),
    [
        (picture(), "image/jpeg", "picture"),
        (picture("PNG"), "image/png", "picture"),
        (picture("WEBP"), "image/webp", "picture"),
        (PDF, "application/pdf", "document"),
        (MP4, "video/mp4", "video"),
        (mp4(brand=b"mp42", compatible=b"isom"), "video/mp4", "video"),
        (mp4(brand=b"xxxx", compatible=b"mp41"), "video/mp4", "video"),
        (WEBM, "video/webm", "video"),
        (webm(live=True, data=bytes(3_000)), "video/webm", "video"),
    ],
)
async def test_file_is_recognised_by_its_content_and_sent(
    coach: CoachClient, ana: Json, content: bytes, content_type: str, kind: str
) -> None:
    client = await coach.as_client(ana)

    attachment = (await upload(client, OWN, content, "squat.exe")).ok(201)
    message = (await client.post(OWN, {"text": "My squat", "attachments": [attachment["_id"]]})).ok(201)

    assert (attachment["contentType"], attachment["kind"]) == (content_type, kind)
    [sent] = message["attachments"]
    [read] = (await coach.get(client_path(ana, "messages"))).ok()["docs"][0]["attachments"]
    assert {**sent, "url": ""} == {**read, "url": ""} == {**attachment, "url": ""}
    shown = await fetch(coach, sent["url"])
    assert (shown.status, shown.headers["Content-Type"], len(shown.raw)) == (200, content_type, sent["size"])
    assert shown.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in shown.headers["Content-Security-Policy"]
    if kind == "video":
        assert shown.raw == content
        part = await fetch(coach, sent["url"], Range="bytes=100-199")
        assert (part.status, part.raw) == (206, content[100:200])
    assert (await fetch(coach, sent["url"].replace("signature=", "signature=x"))).status == 403


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        b"<html><script>alert(1)</script></html>",
        mp4(brand=b"heic", compatible=b"mif1"),
        mp4(brand=b"M4A "),
        MP4[:-1],
        box(b"ftyp", b"isom\0\0\2\0"),
        box(b"ftyp", b"isom\0\0\2\0") + box(b"mdat", bytes(50)),
        MP4 + b"trailing",
        webm(doc_type=b"matroska"),
        WEBM[:-1],
        WEBM[:30],
        b"GIF89a" + bytes(100),
        PDF[:-8],
        picture()[:500],
    ],
)
async def test_other_or_incomplete_files_are_refused(coach: CoachClient, ana: Json, content: bytes) -> None:
    (await upload(coach, client_path(ana, "messages"), content, "video.mp4")).refused(400, "file")
    assert await stored(coach) == (0, 0)


async def test_location_is_removed_from_pictures(coach: CoachClient, ana: Json) -> None:
    exif = Image.Exif()
    exif.get_ifd(0x8825)[2] = (40.0, 25.0, 0.0)
    content = picture(exif=exif)
    assert Image.open(io.BytesIO(content)).getexif().get_ifd(0x8825)
    attachment = (await upload(coach, client_path(ana, "messages"), content)).ok(201)
    await coach.post(client_path(ana, "messages"), {"text": "x", "attachments": [attachment["_id"]]})
    shown = await fetch(coach, attachment["url"])
    assert not Image.open(io.BytesIO(shown.raw)).getexif()


async def test_location_is_removed_from_videos(coach: CoachClient, ana: Json) -> None:
    content = mp4(moov=[box(b"udta", box(b"\xa9xyz", ISO6709))])
    attachment = (await upload(coach, client_path(ana, "messages"), content)).ok(201)
    await coach.post(client_path(ana, "messages"), {"text": "x", "attachments": [attachment["_id"]]})
    shown = await fetch(coach, attachment["url"])
    assert ISO6709 not in shown.raw
    assert len(shown.raw) == len(content)


async def test_only_the_person_who_uploaded_a_file_sends_it_and_once(coach: CoachClient, ana: Json) -> None:
    path = client_path(ana, "messages")
    bo = await coach.create_customer("Bo")
    client = await coach.as_client(ana)
    attachment = (await upload(coach, path, PDF)).ok(201)
    body = {"text": "Plan", "attachments": [attachment["_id"]]}

    (await client.post(OWN, body)).refused(404, "Attachment")
    (await coach.post(client_path(bo, "messages"), body)).refused(404, "Attachment")
    (await coach.post(path, body | {"attachments": [attachment["_id"]] * 2})).refused(404, "Attachment")
    (await coach.post(path, body)).ok(201)
    (await coach.post(path, body)).refused(404, "Attachment")
    (await coach.post(path, body | {"attachments": [attachment["_id"]] * 4})).refused(400, "attachments")
    assert len((await coach.get(path)).ok()["docs"]) == 1


async def test_three_files_are_sent_in_their_order_and_deleted_with_the_message(coach: CoachClient, ana: Json) -> None:
    path = client_path(ana, "messages")
    ids = [(await upload(coach, path, content)).ok(201)["_id"] for content in (PDF, MP4, picture())]
    message = (await coach.post(path, {"text": "Look", "attachments": ids})).ok(201)
    assert [each["_id"] for each in message["attachments"]] == ids
    assert [each["kind"] for each in message["attachments"]] == ["document", "video", "picture"]
    assert await stored(coach) == (4, 0), "the picture has a thumbnail"

    (await coach.delete(f"{path}/{message['_id']}")).ok(204)

    assert await stored(coach) == (0, 0)
    assert (await fetch(coach, message["attachments"][0]["url"])).status == 404


async def test_file_that_is_not_sent_is_deleted_after_a_day(coach: CoachClient, ana: Json) -> None:
    path = client_path(ana, "messages")
    sent, unsent = [(await upload(coach, path, PDF)).ok(201) for _ in range(2)]
    (await coach.post(path, {"text": "x", "attachments": [sent["_id"]]})).ok(201)
    steps: Steps = {messages.DISCARD_ATTACHMENT: messages.discard_unsent_attachment}
    await run_due(coach.ctx.services, steps, at=now() + timedelta(hours=23))
    assert await stored(coach) == (2, 0)

    await run_due(coach.ctx.services, steps, at=now() + timedelta(hours=25))

    assert await stored(coach) == (1, 0)
    assert (await fetch(coach, sent["url"])).status == 200
    (await coach.post(path, {"text": "x", "attachments": [unsent["_id"]]})).refused(404, "Attachment")


async def test_upload_needs_a_file_and_a_session_of_the_client(
    coach: CoachClient, interactive: CoachClient, ana: Json
) -> None:
    for data in (form(), aiohttp.FormData({"x": "y"}, default_to_multipart=True)):
        (await coach.send("POST", client_path(ana, "messages", "attachments"), data=data)).refused(400, "file")
    token = (await interactive.post(client_path(ana, "impersonate"))).ok()["accessToken"]
    assert (await upload(coach.with_bearer(token), OWN, PDF)).refused(403)["code"] == "IMPERSONATED"
    assert await stored(coach) == (0, 0)


async def test_export_and_erasure_cover_messages_and_files(coach: CoachClient, ana: Json) -> None:
    client = await coach.as_client(ana)
    attachment = (await upload(client, OWN, MP4)).ok(201)
    (await client.post(OWN, {"text": "Secret words", "attachments": [attachment["_id"]]})).ok(201)
    exported = (await coach.get(client_path(ana, "export"))).raw
    assert b"records/messages.jsonl" in exported
    assert f"{ObjectId(attachment['url'].split('/files/')[1][:24])}.mp4".encode() in exported
