"""What events say: their data, what changed, the change they are part of, and what its author used."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people import api_keys
from coaching_service.people.changes import events
from coaching_service.progress import notes
from coaching_service.progress.notes import NewNote
from tests.core.test_uploads import PDF
from tests.support.assistants import authorize_assistant
from tests.support.client import MONDAY, UNKNOWN, CoachClient, Reply
from tests.support.declared_world import small_picture
from tests.support.service_process import until
from tests.support.training import QUESTIONS, block_with, client_path, exercise_of, form_of, log, metric_set, task

Json = dict[str, Any]
Event = tuple[str, Json]


async def events_of(coach: CoachClient, *replies: Reply) -> list[Event]:
    """The type and the data of the events of each change or batch."""
    listed: list[Event] = []
    for reply in replies:
        change_id = ObjectId(reply.headers["X-Change-Id"])
        where = {"companyId": coach.ctx.company_id, "$or": [{"_id": change_id}, {"batchId": change_id}]}
        ids = {str(change["_id"]) for change in await coach.ctx.db["changes"].find(where).to_list(None)}
        for each in ids:
            await coach.wait_until_numbered(each)
        page = (await coach.get("/coach/events", limit=500)).ok()
        listed += [(event["type"], event["data"]) for event in page["docs"] if event["changeId"] in ids]
    return listed


def form(**fields: str | bytes) -> aiohttp.FormData:
    """A multipart body."""
    body = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        body.add_field(name, value, filename="file.png" if isinstance(value, bytes) else None)
    return body


async def test_notes(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    created = await coach.post(client_path(ana, "notes"), {"content": "Left knee"})
    path = client_path(ana, "notes", created.json["_id"])
    about = {"noteId": created.json["_id"]}
    changed = await coach.patch(path, {"content": "Right knee", "isHealth": True, "isPinned": False})
    deleted = await coach.delete(path)
    undone = await coach.undo(deleted)
    assert await events_of(coach, created, changed, deleted, undone) == [
        ("note.created", about),
        ("note.updated", {**about, "fields": ["content", "isHealth"]}),
        ("note.deleted", about),
        ("note.created", about),
    ]


async def test_messages(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    created = await coach.post(client_path(ana, "messages"), {"text": "Well done"})
    path = client_path(ana, "messages", created.json["_id"])
    about = {"messageId": created.json["_id"]}
    changed = await coach.patch(path, {"text": "Well done!"})
    deleted = await coach.delete(path)
    client = await coach.as_client(ana)
    own = await client.post("/customer/messages", {"text": "Thanks"})
    own_changed = await client.patch(f"/customer/messages/{own.json['_id']}", {"text": "Thank you"})
    own_deleted = await client.delete(f"/customer/messages/{own.json['_id']}")
    own_about = {"messageId": own.json["_id"]}
    assert await events_of(coach, created, changed, deleted, own_changed, own_deleted) == [
        ("message.created", about),
        ("message.updated", {**about, "fields": ["editedAt", "text"]}),
        ("message.deleted", about),
        ("message.updated", {**own_about, "fields": ["editedAt", "text"]}),
        ("message.deleted", own_about),
    ]


async def test_photos_and_plans(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path, picture = client_path(ana, "progress-photos"), small_picture()
    added = await coach.send("POST", path, data=form(createdAt=MONDAY, imageSideIndex="1", imageFile=picture))
    photos = f"{path}/{added.json['_id']}"
    replaced = await coach.send("PUT", photos, data=form(imageSideIndex="3", imageFile=picture))
    deleted = await coach.delete(photos)
    about = {"photoId": added.json["_id"], "date": MONDAY}
    plan = await coach.send("POST", client_path(ana, "nutrition-plans"), data=form(file=PDF))
    plan_deleted = await coach.delete(client_path(ana, "plan-versions", plan.json["_id"]))
    plan_about = {"planId": plan.json["_id"], "number": 1}
    assert await events_of(coach, added, replaced, deleted, plan, plan_deleted) == [
        ("photo.added", {**about, "side": "front"}),
        ("photo.added", {**about, "side": "side"}),
        ("photo.deleted", about),
        ("plan.uploaded", plan_about),
        ("plan.deleted", plan_about),
    ]


async def test_programs_of_a_client(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    program = (await coach.post("/coach/programs", {"name": "Strength"})).ok(201)
    day = await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Day one", "day": 1})
    assign = {"customerId": ana["_id"], "startDate": MONDAY}
    assigned = await coach.post(f"/coach/programs/{program['_id']}/assign", assign)
    about = {"programId": program["_id"], "assignmentId": assigned.json["assignmentId"]}
    end_path = client_path(ana, "programs", about["assignmentId"], "end")
    ended = await coach.post(end_path)
    again = await coach.post(end_path)
    assert "X-Change-Id" not in again.headers
    undone = await coach.undo(ended)
    removed = await coach.undo(assigned)
    written = await events_of(coach, day, assigned, ended, undone, removed)
    assert [event for event in written if event[0].startswith("program")] == [
        ("program.updated", {"programId": program["_id"], "fields": ["wblocks"]}),
        ("program.assigned", {**about, "startDate": MONDAY, "blocks": 1}),
        ("program.ended", about),
        ("program.assigned", {**about, "startDate": MONDAY, "blocks": 0}),
        ("program.ended", about),
    ]


async def test_metric_sets_of_a_client(coach: CoachClient) -> None:
    body = await metric_set(coach)
    ana = await coach.create_customer()
    path = client_path(ana, "metrics-sets")
    assigned = await coach.post(path, {"metricsSetId": body["_id"]})
    unassigned = await coach.delete(f"{path}/{body['_id']}")
    again = await coach.post(
        "/coach/customers/bulk/assign-metrics-set", {"ids": [ana["_id"]], "metricsSetId": body["_id"]}
    )
    undone = await coach.undo(again)
    about = {"metricsSetId": body["_id"]}
    assert await events_of(coach, assigned, unassigned, again, undone) == [
        ("metrics_set.assigned", about),
        ("metrics_set.unassigned", about),
        ("metrics_set.assigned", about),
        ("metrics_set.unassigned", about),
    ]


async def test_repeating_reports_nothing_again(coach: CoachClient) -> None:
    """Assigning a set that is assigned, alone and to many clients, and asking for the erasure again."""
    body, ana = await metric_set(coach), await coach.create_customer()
    assign = {"metricsSetId": body["_id"]}
    (await coach.post(client_path(ana, "metrics-sets"), assign)).ok(201)
    client, path = await coach.as_client(ana), "/customer/me/erasure-request"
    asked = (await client.post(path)).ok()
    for again in (
        await coach.post(client_path(ana, "metrics-sets"), assign),
        await coach.post("/coach/customers/bulk/assign-metrics-set", {"ids": [ana["_id"]], **assign}),
        await client.post(path),
    ):
        assert again.status < 300 and "X-Change-Id" not in again.headers
    assert (await client.post(path)).ok() == asked, "the time of the first request"


async def test_metric_sets_that_new_clients_are_assigned(coach: CoachClient) -> None:
    body = await metric_set(coach, assignAutomatically=True)
    created = await coach.post("/coach/customers", {"name": "Ana"})
    assert await events_of(coach, created) == [
        ("customer.created", {"customerId": created.json["_id"]}),
        ("metrics_set.assigned", {"metricsSetId": body["_id"]}),
    ]


async def test_check_ins(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path, weekly = (
        client_path(ana, "check-ins"),
        {"taskFields": {"title": "Weigh in"}, "weekday": 1, "startDate": MONDAY},
    )
    created = await coach.post(path, weekly)
    ended = await coach.delete(f"{path}/{created.json['_id']}")
    about = {"checkInId": created.json["_id"]}
    written = await events_of(coach, created, ended)
    assert [event for event in written if event[0].startswith("check_in")] == [
        ("check_in.created", about),
        ("check_in.ended", about),
    ]


async def test_records_and_responses_name_what_can_be_read(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await block_with(coach, ana, form_of(*QUESTIONS[:1]), exercise_of(squat))
    question = block["items"][0]["form"]["questions"][0]["_id"]
    answered = await log(coach, block, block["items"][0], answers=[{"questionId": question, "value": "Well"}])
    best = {"exerciseId": squat["_id"], "type": "heaviest_load", "value": 100, "reps": 1, "date": MONDAY}
    entered = await coach.post(client_path(ana, "personal-records"), best)
    data = dict(await events_of(coach, answered, entered))
    response = (await coach.get(f"/coach/form-responses/{data['form.submitted']['responseId']}")).ok()
    assert [answer["value"] for answer in response["answers"]] == ["Well"]
    record = await coach.get(client_path(ana, "personal-records", data["record.achieved"]["recordId"]))
    assert record.ok()["value"] == 100
    assert data["record.achieved"] == {
        "recordId": record.json["_id"],
        "exerciseId": squat["_id"],
        "recordType": "heaviest_load",
        "value": 100,
        "unit": "kg",
        "reps": 1,
        "date": MONDAY,
        "isFirst": False,
    }
    assert data["form.submitted"].keys() == {"wblockId", "witemId", "itemType", "date", "responseId"}
    assert data["item.logged"].keys() == {"wblockId", "witemId", "itemType", "date"}


async def test_fields_name_what_changed(coach: CoachClient) -> None:
    """Neither private nor unchanged ones; several changes of one program are one event with the fields of all."""
    ana = await coach.create_customer(surname="Flores")
    path = client_path(ana)
    named = await coach.patch(path, {"name": "Anna", "surname": "Flores", "groups": ["Team"]})
    unchanged = await coach.patch(path, {"name": "Anna"})
    picture = await coach.send("PUT", f"{path}/profile-photo", data=form(profilePhotoFile=small_picture()))
    block = await block_with(coach, ana, task())
    moved = await coach.patch(f"{path}/wblocks/{block['_id']}", {"date": "2026-03-04", "name": "Arms"})
    added = await coach.post(f"{path}/wblocks/{block['_id']}/witems", task("Run"))
    squat = await coach.create_exercise()
    exercise = await coach.patch(f"/exercises/{squat['_id']}", {"name": "Front squat", "aliases": ["FS"]})
    data = [data["fields"] for _, data in await events_of(coach, named, unchanged, picture, moved, added, exercise)]
    assert data == [
        ["customerRoleData.groups", "name"],
        [],
        ["profilePhotoUrl"],
        ["date", "name", "order"],
        ["items"],
        ["aliases", "name"],
    ]


async def test_fields_of_a_shared_exercise_that_a_company_changes(coach: CoachClient) -> None:
    shared = await coach.ctx.db["exercises"].find_one({"companyId": None, "deletedAt": None})
    assert shared is not None
    path = f"/exercises/{shared['_id']}/override"
    changed, removed = await coach.put(path, {"aliases": ["Mine"]}), await coach.delete(path)
    about = {"exerciseId": str(shared["_id"]), "fields": ["aliases"]}
    assert await events_of(coach, changed, removed) == [("exercise.updated", about), ("exercise.updated", about)]


async def actor_of(coach: CoachClient, change_id: object) -> Json:
    """The actor of the first event of a change."""
    await coach.wait_until_numbered(str(change_id))
    page = (await coach.get("/coach/events", limit=500)).ok()
    actor: Json = next(event["actor"] for event in page["docs"] if event["changeId"] == str(change_id))
    return actor


async def test_actor_has_the_key_or_the_application_that_was_used(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path, note = client_path(ana, "notes"), {"content": "Hello"}
    key = await api_keys.create(coach.ctx, "Other")
    by_key = await coach.with_key(str(key["key"])).post(path, note)
    by_session = await (await coach.interactive()).post(path, note)
    by_client = await (await coach.as_client(ana)).post("/customer/messages", {"text": "Hello"})
    me = str(coach.ctx.caller.id)
    nothing = {"keyId": None, "applicationId": None}
    assert await actor_of(coach, by_key.headers["X-Change-Id"]) == {
        "type": "key",
        "_id": me,
        **nothing,
        "keyId": str(key["_id"]),
    }
    assert await actor_of(coach, by_session.headers["X-Change-Id"]) == {"type": "coach", "_id": me, **nothing}
    assert await actor_of(coach, by_client.headers["X-Change-Id"]) == {"type": "client", "_id": ana["_id"], **nothing}


@pytest.mark.parametrize("via", ["mcp", "apiKey"])
async def test_actor_of_an_assistant_is_its_grant_or_its_key(coach: CoachClient, via: Any) -> None:
    ana = await coach.create_customer()
    grant = (await authorize_assistant(coach.ctx)).grant
    used = grant["_id"] if via == "mcp" else coach.ctx.caller.credential_id
    caller = replace(coach.ctx.caller, via=via, credential_id=used)
    assistant = replace(coach.ctx.acting_as(caller), interface="assistant", operation="add_note")
    new: NewNote = {"content": "Hello", "isPinned": False, "isHealth": False}
    await notes.create(assistant, ObjectId(ana["_id"]), new)
    change = await coach.ctx.db["changes"].find_one({"companyId": coach.ctx.company_id, "operation": "add_note"})
    assert change is not None
    assert await actor_of(coach, change["_id"]) == {
        "type": "assistant",
        "_id": str(coach.ctx.caller.id),
        "keyId": str(used) if via == "apiKey" else None,
        "applicationId": str(used) if via == "mcp" else None,
    }


async def test_cursor_ahead_of_the_log_is_refused(coach: CoachClient) -> None:
    """Such as that of a reader whose database was restored from an older backup; so does one of a client."""
    ana = await coach.create_customer()
    last = (await coach.get("/coach/events", wait=20)).ok()["nextCursor"]
    (await coach.get("/coach/events", after=last)).ok()
    for query in ({}, {"customerId": ana["_id"]}, {"wait": 1}):
        refused = (await coach.get("/coach/events", after=str(int(last) + 1), **query)).refused(410)
        assert refused["code"] == "CURSOR_EXPIRED"


async def test_a_hundred_events_are_returned_by_default(coach: CoachClient) -> None:
    customers = [{"name": f"Client {number}"} for number in range(101)]
    (await coach.post("/coach/customers/batch", {"customers": customers})).ok()

    async def is_numbered() -> bool:
        reply = await coach.get("/coach/events", after="100", limit=1)
        return reply.status == 200 and bool(reply.json["docs"])

    await until(is_numbered, "all are numbered")
    page = (await coach.get("/coach/events")).ok()
    assert (len(page["docs"]), page["hasMore"]) == (100, True)


async def test_every_record_that_an_event_names_is_read_by_its_identifier(
    coach: CoachClient, other_company: CoachClient
) -> None:
    ana, bo, squat = (
        await coach.create_customer("Ana"),
        await coach.create_customer("Bo"),
        await coach.create_exercise(),
    )
    best = {"exerciseId": squat["_id"], "type": "heaviest_load", "value": 100, "date": MONDAY}
    weekly = {"taskFields": {"title": "Weigh in"}, "weekday": 1, "startDate": MONDAY}
    photo, plan = form(createdAt=MONDAY, imageSideIndex="1"), form(file=PDF)
    created = {
        "notes": await coach.post(client_path(ana, "notes"), {"content": "Left knee"}),
        "messages": await coach.post(client_path(ana, "messages"), {"text": "Well done"}),
        "personal-records": await coach.post(client_path(ana, "personal-records"), best),
        "check-ins": await coach.post(client_path(ana, "check-ins"), weekly),
        "progress-photos": await coach.send("POST", client_path(ana, "progress-photos"), data=photo),
        "plan-versions": await coach.send("POST", client_path(ana, "nutrition-plans"), data=plan),
    }
    for name, reply in created.items():
        record = reply.ok(201)
        read = (await coach.get(client_path(ana, name, record["_id"]))).ok()
        assert without_links(read) == without_links(record), name
        (await coach.get(client_path(bo, name, record["_id"]))).refused(404)
        (await coach.get(client_path(ana, name, UNKNOWN))).refused(404)
        (await other_company.get(client_path(ana, name, record["_id"]))).refused(404)


def without_links(value: Any) -> Any:
    """A value without links, which are signed again each time."""
    if isinstance(value, dict):
        return {name: without_links(each) for name, each in value.items() if not name.lower().endswith("url")}
    return value


async def test_webhook_continues_where_events_are_available(coach: CoachClient) -> None:
    """One that is behind continues with the oldest event; one ahead of a damaged log at its end, and sends none again."""
    await coach.create_customer()
    last = int((await coach.get("/coach/events", wait=20)).ok()["nextCursor"])
    long_ago = {"$set": {"numberedAt": now() - timedelta(days=31)}}
    await coach.ctx.db["changeNumbers"].update_many({"companyId": coach.ctx.company_id}, long_ago)
    await coach.create_customer()
    (await coach.get("/coach/events", after=str(last), wait=20)).ok()
    assert await events.find_available(coach.ctx, 0) == last
    assert await events.find_available(coach.ctx, last + 9) == last + 1
