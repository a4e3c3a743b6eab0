"""Videos and pictures of sets: who sends, sees and deletes them, comments with marks, the inbox, notifications."""

from __future__ import annotations

from datetime import timedelta
from email.message import EmailMessage
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.progress import form_checks
from coaching_service.settings import Settings
from tests.core.test_uploads import PDF, fetch, form, picture, stored
from tests.support.client import CoachClient
from tests.support.mails import first_page, mails_once_sent, read_mail
from tests.support.media_files import ISO6709, box, mp4, webm
from tests.support.notifications import send_due
from tests.support.training import (
    Json,
    block_with,
    client_path,
    employee_key,
    exercise_of,
    form_of,
    own_log,
    path_of,
    read,
)

MP4 = mp4(data=bytes(5_000))
LINE: Json = {"kind": "line", "points": [[0, 0], [1, 0.5]]}
ANGLE: Json = {"kind": "angle", "points": [[0.1, 0.1], [0.2, 0.2], [0.3, 0.1]]}


@pytest.fixture
async def ana(coach: CoachClient) -> Json:
    return await coach.create_customer("Ana", email=f"ana-{ObjectId()}@example.com", sendInvitation=False)


@pytest.fixture
async def client(coach: CoachClient, ana: Json) -> CoachClient:
    return await coach.as_client(ana)


@pytest.fixture
async def block(coach: CoachClient, ana: Json) -> Json:
    """A workout with a squat and a task, on a Monday."""
    squat = await coach.create_exercise()
    return await block_with(coach, ana, exercise_of(squat), {"type": "TASK", "taskFields": {"title": "Walk"}})


def media_path(block: Json, at: int = 0, *, own: bool = True) -> str:
    """The path of the media of an item, for the client or for coaches."""
    item = block["items"][at]["_id"]
    return f"/customer/wblocks/{block['_id']}/witems/{item}/media" if own else f"{path_of(block)}/witems/{item}/media"


async def send(sender: CoachClient, path: str, content: bytes = MP4, name: str = "squat.mp4", **fields: str) -> Any:
    return await sender.send("POST", path, data=form(content, "file", name, **fields))


async def test_a_client_sends_a_video_of_a_set_and_both_sides_see_it(
    coach: CoachClient, client: CoachClient, ana: Json, block: Json
) -> None:
    squat = block["items"][0]["exerciseId"]
    located = mp4(data=bytes(5_000), moov=[box(b"udta", box(b"\xa9xyz", ISO6709))])

    sent = (await send(client, media_path(block), located, exerciseId=squat, index="2")).ok(201)

    about = {name: sent[name] for name in ("kind", "name", "posterUrl", "exerciseId", "round", "index", "version")}
    assert about == {
        "kind": "video",
        "name": "squat.mp4",
        "posterUrl": None,
        "exerciseId": squat,
        "round": None,
        "index": 2,
        "version": 0,
    }
    assert sent["author"] == {"type": "client", "_id": ana["_id"], "name": "Ana"}
    assert (sent["reviewedAt"], sent["reviewedBy"], sent["comments"]) == (None, None, [])
    shown = await fetch(coach, sent["url"], Range="bytes=0-99")
    assert (shown.status, shown.headers["Content-Type"], sent["size"]) == (206, "video/mp4", len(located))
    assert ISO6709 not in (await fetch(coach, sent["url"])).raw
    photo = (await send(client, media_path(block), picture(), "knee.exe")).ok(201)
    assert (photo["kind"], photo["contentType"]) == ("picture", "image/jpeg")
    assert (await fetch(coach, photo["posterUrl"])).headers["Content-Type"] == "image/jpeg"
    for reader, path in ((client, media_path(block)), (coach, media_path(block, own=False))):
        assert [each["_id"] for each in (await reader.get(path)).ok()] == [sent["_id"], photo["_id"]]
    assert [item["mediaCount"] for item in (await read(coach, block))["items"]] == [2, 0]
    calendar = (await client.get("/customer/wblock", startDate=block["date"], endDate=block["date"])).ok()
    assert [item["mediaCount"] for item in calendar[0]["items"]] == [2, 0]
    copied = (await coach.post(f"{path_of(block)}/copy", {"date": "2026-03-09"})).ok(201)
    assert [item["mediaCount"] for item in copied["items"]] == [0, 0], "a copy has nothing of what was done"
    [event] = (await coach.get("/coach/events", types="media.added", limit=1)).ok()["docs"]
    assert event["data"] == {"mediaId": sent["_id"], "wblockId": block["_id"], "witemId": block["items"][0]["_id"]}
    assert (event["customerId"], event["actor"]["type"]) == (ana["_id"], "client")


async def test_a_photo_question_is_answered_with_pictures_that_name_it(
    coach: CoachClient, client: CoachClient, ana: Json, block: Json
) -> None:
    questions: list[Json] = [{"label": "From the front", "type": "photo", "required": True}, {"label": "How are you?"}]
    form_block = await block_with(coach, ana, form_of(*questions), date="2026-03-04")
    item, path = form_block["items"][0], media_path(form_block)
    front, words = (each["_id"] for each in item["form"]["questions"])
    for wrong in (words, item["_id"]):
        (await send(client, path, picture(), "a.jpg", questionId=wrong)).refused(404, "Question")
    (await send(client, media_path(block), picture(), "a.jpg", questionId=front)).refused(404, "Question")
    (await send(client, path, questionId=front)).refused(400, "file")

    sent = (await send(client, path, picture(), "front.jpg", questionId=front)).ok(201)

    assert (sent["questionId"], sent["question"], sent["kind"]) == (front, "From the front", "picture")
    [received] = (await coach.get("/coach/media")).ok()["docs"]
    assert (received["questionId"], received["question"]) == (front, "From the front")
    other = (await send(client, media_path(block))).ok(201)
    assert (other["questionId"], other["question"]) == (None, None)
    wrong_answer = [{"questionId": front, "value": "front.jpg"}]
    (await own_log(client, form_block, item, isCompleted=True, answers=wrong_answer)).refused(400, "answers.0.value")
    answers = [{"questionId": words, "value": "Well"}]
    (await own_log(client, form_block, item, isCompleted=True, answers=answers)).ok()
    [response] = (await coach.get("/coach/form-responses")).ok()["docs"]
    assert [each["label"] for each in response["answers"]] == ["How are you?"]


async def test_what_is_not_a_video_or_picture_of_the_item_is_refused(
    coach: CoachClient, interactive: CoachClient, client: CoachClient, ana: Json, block: Json
) -> None:
    path = media_path(block)
    for content in (PDF, b"text", MP4[:-1], picture()[:500]):
        (await send(client, path, content)).refused(400, "file")
    (await client.send("POST", path, data=form())).refused(400, "file")
    (await send(client, path, index="0")).refused(400, "index")
    (await send(client, path, round="1001")).refused(400, "round")
    (await send(client, path, index="two")).refused(400, "index")
    press = await coach.create_exercise("Press")
    (await send(client, path, exerciseId=press["_id"])).refused(404, "Exercise")
    (await send(client, path.replace(block["_id"], str(ObjectId())))).refused(404)
    (
        await coach.put(
            client_path(ana, "visibility"), {"startDate": block["date"], "endDate": block["date"], "isVisible": False}
        )
    ).ok()
    (await send(client, path)).refused(404)
    (await client.get(path)).refused(404)
    token = (await interactive.post(client_path(ana, "impersonate"))).ok()["accessToken"]
    assert (await send(coach.with_bearer(token), path)).refused(403)["code"] == "IMPERSONATED"
    assert await stored(coach) == (0, 0)


async def test_comments_have_a_time_and_marks_and_belong_to_their_authors(
    coach: CoachClient, client: CoachClient, block: Json
) -> None:
    video = (await send(client, media_path(block))).ok(201)
    photo = (await send(client, media_path(block), picture())).ok(201)
    path, own = (f"/{side}/media/{video['_id']}/comments" for side in ("coach", "customer"))

    comment = (await coach.post(path, {"text": "Chest up", "at": 4.25, "marks": [LINE, ANGLE]})).ok(201)
    answer = (await client.post(own, {"text": "Like this?"})).ok(201)

    assert (comment["at"], comment["marks"], comment["version"]) == (4.25, [LINE, ANGLE], 1)
    assert (answer["at"], answer["marks"], answer["author"]["name"], answer["version"]) == (None, [], "Ana", 2)
    wrong: list[tuple[Json, str]] = [
        ({"at": -1}, "at"),
        ({"at": 86_401}, "at"),
        ({"text": " "}, "text"),
        ({"text": "x" * 5_001}, "text"),
        ({"marks": [LINE] * 21}, "marks"),
        ({"marks": [LINE | {"kind": "angle"}]}, "points"),
        ({"marks": [ANGLE | {"kind": "arrow"}]}, "points"),
        ({"marks": [LINE | {"kind": "square"}]}, "kind"),
        ({"marks": [LINE | {"points": [[0, 0], [0, 1.1]]}]}, "points"),
        ({"marks": [LINE | {"points": [[0, 0], [0]]}]}, "points"),
    ]
    for change, field in wrong:
        (await coach.post(path, {"text": "x"} | change)).refused(400, field)
        (await coach.patch(f"{path}/{comment['_id']}", change)).refused(400, field)
    (await coach.post(f"/coach/media/{photo['_id']}/comments", {"text": "x", "at": 0})).refused(400, "at")
    (await coach.post(f"/coach/media/{photo['_id']}/comments", {"text": "x", "marks": [LINE] * 20})).ok(201)
    (await coach.patch(f"{path}/{answer['_id']}", {"text": "x"})).refused(403)
    (await client.patch(f"{own}/{comment['_id']}", {"text": "x"})).refused(403)
    (await client.delete(f"{own}/{comment['_id']}")).refused(403)
    (await coach.patch(f"{path}/{comment['_id']}", {"text": "x", "version": 1})).refused(409)
    changed = (await coach.patch(f"{path}/{comment['_id']}", {"text": "Chest up, please", "version": 2})).ok()
    assert (changed["text"], changed["at"], changed["marks"]) == ("Chest up, please", 4.25, [LINE, ANGLE])
    assert changed["editedAt"] is not None
    same = (await coach.patch(f"{path}/{comment['_id']}", {"text": "Chest up, please"})).ok()
    assert same == changed, "the same text changes nothing"
    (await client.delete(f"{own}/{answer['_id']}")).ok(204)
    (await client.delete(f"{own}/{answer['_id']}")).refused(404)
    [shown] = [each for each in (await client.get(media_path(block))).ok() if each["_id"] == video["_id"]]
    assert [each["text"] for each in shown["comments"]] == ["Chest up, please"]
    unread = (await client.get("/customer/today")).ok()["unreadMessages"]
    assert unread == 0, "comments are no messages"
    assert (await coach.get("/coach/conversations")).ok()["docs"] == []


async def test_inbox_lists_what_clients_of_the_coach_have_sent_until_it_is_reviewed(
    coach: CoachClient, client: CoachClient, ana: Json, block: Json
) -> None:
    bea = await coach.create_customer("Bea")
    other = await block_with(coach, bea, {"type": "TASK", "taskFields": {"title": "Run"}})
    first = (await send(client, media_path(block), index="2")).ok(201)
    second = (await send(await coach.as_client(bea), media_path(other), picture())).ok(201)
    (await send(coach, media_path(block, own=False), picture())).ok(201)

    async def listed(reader: CoachClient = coach, **query: str) -> list[str]:
        return [each["_id"] for each in (await reader.get("/coach/media", **query)).ok()["docs"]]

    [newest, oldest] = (await coach.get("/coach/media")).ok()["docs"]
    assert [each["_id"] for each in (newest, oldest)] == [second["_id"], first["_id"]]
    assert oldest["customer"] == {"_id": ana["_id"], "name": "Ana"}
    assert (oldest["wblockId"], oldest["witemId"]) == (block["_id"], block["items"][0]["_id"])
    assert oldest["workout"] == {"name": "Legs", "date": block["date"], "item": block["items"][0]["exercise"]["name"]}
    assert newest["workout"]["item"] == "Run"
    page = (await coach.get("/coach/media", limit="1")).ok()
    assert page["hasMore"]
    assert await listed(limit="1", after=page["nextCursor"]) == [first["_id"]]
    (await coach.get("/coach/media", after=page["nextCursor"], reviewed="false")).refused(400, "after")

    reviewed = (await coach.put(f"/coach/media/{first['_id']}/reviewed", {"reviewed": True})).ok()
    again = (await coach.put(f"/coach/media/{first['_id']}/reviewed", {"reviewed": True})).ok()

    assert reviewed == again | {"url": reviewed["url"]}
    assert reviewed["reviewedBy"] == str(coach.ctx.caller.id)
    assert await listed(reviewed="false") == [second["_id"]]
    assert await listed(reviewed="true") == [first["_id"]]
    assert await listed(customerId=bea["_id"]) == [second["_id"]]
    assert await listed(customerId=str(ObjectId())) == []
    (await coach.put(f"/coach/media/{first['_id']}/reviewed", {"reviewed": False})).ok()
    assert await listed(reviewed="false") == [second["_id"], first["_id"]]
    emil = coach.with_key(await employee_key(coach, "customers.view"))
    assert await listed(emil) == []
    (await emil.get(f"/coach/media/{first['_id']}")).refused(403)


async def test_a_file_stays_with_its_item_and_outlives_it(
    coach: CoachClient, client: CoachClient, ana: Json, block: Json
) -> None:
    """A deletion of a workout can be undone, one of a file cannot: the coach deletes what is not needed any more."""
    sent = (await send(client, media_path(block))).ok(201)
    item, later = block["items"][0]["_id"], await coach.schedule(ana, date="2026-03-03", name="Later")
    target = {"wblockId": later["_id"], "index": 0}
    source = {"wblockId": block["_id"], "witemId": item}
    (await coach.put(client_path(ana, "witems", "move"), {"source": source, "target": target})).ok()
    moved = f"{path_of(later)}/witems/{item}/media"
    assert [each["_id"] for each in (await coach.get(moved)).ok()] == [sent["_id"]]
    (await coach.get(media_path(block, own=False))).refused(404)
    shown = (await coach.get(f"/coach/media/{sent['_id']}")).ok()
    assert (shown["wblockId"], shown["workout"]["name"]) == (later["_id"], "Later")

    removed = await coach.delete(path_of(later))

    kept = (await coach.get(f"/coach/media/{sent['_id']}")).ok()
    assert (kept["wblockId"], kept["workout"]) == (block["_id"], None)
    assert [each["_id"] for each in (await coach.get("/coach/media")).ok()["docs"]] == [sent["_id"]]
    (await client.post(f"/customer/media/{sent['_id']}/comments", {"text": "x"})).refused(404)
    (await coach.post(f"/coach/changes/{removed.headers['X-Change-Id']}/undo")).ok()
    assert [each["_id"] for each in (await coach.get(moved)).ok()] == [sent["_id"]]
    (await coach.delete(path_of(later))).ok(204)
    (await coach.delete(f"{media_path(block, own=False)}/{sent['_id']}")).ok(204)
    assert (await coach.get("/coach/media")).ok()["docs"] == []
    assert await stored(coach) == (0, 0)


async def test_a_client_deletes_own_files_and_a_coach_any(
    coach: CoachClient, client: CoachClient, ana: Json, block: Json
) -> None:
    own, coachs = media_path(block), media_path(block, own=False)
    first, second = [(await send(client, own, content)).ok(201) for content in (MP4, picture())]
    third = (await send(coach, coachs, webm(data=bytes(50)))).ok(201)
    (await client.delete(f"{own}/{third['_id']}")).refused(403)
    (await client.delete(f"{media_path(block, 1)}/{first['_id']}")).refused(404)
    (await client.delete(f"{own}/{first['_id']}")).ok(204)
    (await coach.delete(f"{coachs}/{second['_id']}")).ok(204)
    assert [each["_id"] for each in (await client.get(own)).ok()] == [third["_id"]]
    assert await stored(coach) == (1, 0), "files and thumbnails of the others are gone"
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    assert [each["_id"] for each in (await coach.get(coachs)).ok()] == [third["_id"]]
    (await coach.delete(client_path(ana))).ok(204)
    (await coach.get(f"/coach/media/{third['_id']}")).refused(404)
    assert (await fetch(coach, third["url"])).status == 404


async def test_an_item_and_a_file_hold_only_so_much(
    coach: CoachClient, client: CoachClient, block: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (form_checks.MAX_OF_ITEM, form_checks.MAX_COMMENTS) == (20, 100)
    monkeypatch.setattr(form_checks, "MAX_OF_ITEM", 2)
    monkeypatch.setattr(form_checks, "MAX_COMMENTS", 1)
    sent = [(await send(client, media_path(block), picture())).ok(201) for _ in range(2)]
    refused = (await send(coach, media_path(block, own=False))).refused(409)
    assert refused["code"] == "TOO_MANY_MEDIA"
    (await send(client, media_path(block, 1))).ok(201)
    path = f"/coach/media/{sent[0]['_id']}/comments"
    (await coach.post(path, {"text": "x"})).ok(201)
    assert (await coach.post(path, {"text": "x"})).refused(409)["code"] == "TOO_MANY_COMMENTS"


async def test_each_side_is_told_once_what_the_other_has_added_unless_it_has_seen_it(
    coach: CoachClient, client: CoachClient, ana: Json, block: Json, settings: Settings
) -> None:
    async def sent_to(address: str, after: int) -> list[EmailMessage]:
        await send_due(coach.ctx, after=timedelta(minutes=after))
        mails = await mails_once_sent(coach.ctx.services, settings.data_dir / "mail", about=ObjectId(ana["_id"]))
        return [each for each in mails if each["To"] == address]

    owner, own = coach.ctx.caller.email or "", ana["email"]
    video = (await send(client, media_path(block))).ok(201)
    assert await sent_to(owner, 9) == []

    [to_coach] = await sent_to(owner, 11)

    parts = read_mail(to_coach, coach.ctx.services.base_url)
    assert next(iter(parts.links)) == f"{coach.ctx.services.base_url}/app/form-checks/{video['_id']}"
    assert "Ana has sent a video" in parts.text
    (await coach.post(f"/coach/media/{video['_id']}/comments", {"text": "Secret words"})).ok(201)
    [to_client] = await sent_to(own, 11)
    parts = read_mail(to_client, coach.ctx.services.base_url)
    assert "Secret words" not in parts.text + parts.html
    workout = f"{coach.ctx.services.base_url}/train/workouts/{block['_id']}#item-{block['items'][0]['_id']}"
    assert first_page(parts) == workout

    (await coach.post(f"/coach/media/{video['_id']}/comments", {"text": "One more"})).ok(201)
    caller = await customers.load_principal(
        coach.ctx.services, coach.ctx.company_id, ObjectId(ana["_id"]), is_author=True
    )
    assert caller is not None
    await form_checks.mark_seen(coach.ctx.acting_as(caller), caller.id, [ObjectId(video["_id"])])
    assert len(await sent_to(own, 200)) == 1
    (await coach.post(f"/coach/media/{video['_id']}/comments", {"text": "And more"})).ok(201)
    hidden = {"startDate": block["date"], "endDate": block["date"], "isVisible": False}
    (await coach.put(client_path(ana, "visibility"), hidden)).ok()
    assert len(await sent_to(own, 400)) == 1
