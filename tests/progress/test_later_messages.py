"""Message templates, and messages that are delivered later: until then only coaches see them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import time_machine

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.worker import run_due
from coaching_service.progress.conversation import service as conversation
from tests.core.test_uploads import form, picture, stored
from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import Json, client_path, employee_key

OWN, TEMPLATES, BULK = "/customer/messages", "/coach/message-templates", "/coach/customers/bulk/message"


def at(**ahead: float) -> str:
    """A time from now, as requests send it."""
    return f"{datetime.now(UTC) + timedelta(**ahead):%Y-%m-%dT%H:%M:%S.%fZ}"


async def pass_time(coach: CoachClient, **time: float) -> None:
    """Run the deliveries that are due after a time."""
    with time_machine.travel(datetime.now().astimezone() + timedelta(**time)):
        await run_due(coach.ctx.services, {conversation.DELIVER: conversation.deliver_waiting}, at=now())


async def texts(client: CoachClient, path: str) -> list[str | None]:
    """The texts of a conversation, newest first."""
    return [each["text"] for each in (await client.get(path)).ok()["docs"]]


async def template(coach: CoachClient, text: str, name: str = "Good week") -> Json:
    """A new message template."""
    created: Json = (await coach.post(TEMPLATES, {"name": name, "text": text})).ok(201)
    return created


async def test_templates_are_kept_by_the_company(coach: CoachClient, other_company: CoachClient) -> None:
    second = await template(coach, "Rest well", "rest")
    first = await template(coach, "Hi {firstName}", "Éclair")
    theirs = await template(other_company, "Theirs")
    assert [each["name"] for each in (await coach.get(TEMPLATES)).ok()] == ["Éclair", "rest"]
    assert set(first) == {"_id", "name", "text", "createdAt", "updatedAt", "version"}
    path = f"{TEMPLATES}/{second['_id']}"
    changed = (await coach.patch(path, {"text": "Sleep well", "version": 0})).ok()
    assert (changed["name"], changed["text"], changed["version"]) == ("rest", "Sleep well", 1)
    assert (await coach.patch(path, {"name": "x", "version": 0})).refused(409)["code"] == "VERSION_CONFLICT"
    (await coach.post(TEMPLATES, {"name": "", "text": "x"})).refused(400)
    (await coach.post(TEMPLATES, {"name": "Long", "text": "x" * 5_001})).refused(400)
    (await coach.delete(f"{TEMPLATES}/{theirs['_id']}")).refused(404)
    deleted = await coach.delete(path)
    deleted.ok(204)
    (await coach.post(f"/coach/changes/{deleted.headers['X-Change-Id']}/undo")).ok()
    assert [each["name"] for each in (await coach.get(TEMPLATES)).ok()] == ["Éclair", "rest"]
    viewer = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    assert len((await viewer.get(TEMPLATES)).ok()) == 2
    (await viewer.post(TEMPLATES, {"name": "x", "text": "x"})).refused(403, "customers.edit")
    (await viewer.delete(path)).refused(403, "customers.edit")


async def test_a_template_takes_the_place_of_the_text(coach: CoachClient, other_company: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana María", surname="Ruiz"), await coach.create_customer("Bo Lind")
    hello = await template(coach, "Hi {firstName} {lastName}, {firstName}!")
    path = client_path(ana, "messages")
    assert (await coach.post(path, {"templateId": hello["_id"]})).ok(201)["text"] == (
        "Hi Ana María {lastName}, Ana María!"
    )
    assert (await coach.post(path, {"text": "{firstName}"})).ok(201)["text"] == "{firstName}"
    both = {"text": "x", "templateId": hello["_id"]}
    assert (await coach.post(path, both)).refused(400)["errors"][0]["field"] == "templateId"
    assert (await coach.post(path, {})).refused(400)["errors"][0]["field"] == "text"
    theirs = await template(other_company, "Theirs")
    for unknown in (UNKNOWN, theirs["_id"]):
        (await coach.post(path, {"templateId": unknown})).refused(404)
        (await coach.post(BULK, {"ids": [ana["_id"]], "templateId": unknown, "dryRun": True})).refused(404)
    client = await coach.as_client(ana)
    (await client.post(OWN, {"templateId": hello["_id"]})).refused(400, "text")

    ids = [ana["_id"], bo["_id"]]
    assert (await coach.post(BULK, {"ids": ids, "templateId": hello["_id"]})).ok()["ok"] == 2
    assert (await texts(coach, client_path(bo, "messages")))[0] == "Hi Bo {lastName}, Bo!"
    assert (await coach.post(BULK, {"ids": ids, **both})).refused(400)["errors"][0]["field"] == "templateId"
    assert (await coach.post(BULK, {"ids": ids})).refused(400)["errors"][0]["field"] == "text"
    long = await template(coach, "{firstName}" * 454, "Long")
    assert (await coach.post(client_path(bo, "messages"), {"templateId": long["_id"]})).ok(201)
    cy = await coach.create_customer("Maximilianus")
    assert (await coach.post(client_path(cy, "messages"), {"templateId": long["_id"]})).refused(400)["errors"][0][
        "code"
    ] == "TOO_LONG"
    result = (await coach.post(BULK, {"ids": [bo["_id"], cy["_id"]], "templateId": long["_id"]})).ok()
    assert (result["ok"], [each["customerId"] for each in result["failed"]]) == (1, [cy["_id"]])


async def test_a_message_is_delivered_at_its_time(coach: CoachClient, interactive: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    client, path = await coach.as_client(ana), client_path(ana, "messages")
    for wrong, code in (
        (at(seconds=-5), "IN_THE_PAST"),
        (at(days=30, minutes=1), "TOO_FAR_AHEAD"),
        ("soon", "INVALID_TIME"),
    ):
        assert (await coach.post(path, {"text": "x", "deliverAt": wrong})).refused(400)["errors"][0]["code"] == code
        (await coach.post(BULK, {"ids": [ana["_id"]], "text": "x", "deliverAt": wrong})).refused(400)
    assert (await coach.post(path, {"text": "Now", "deliverAt": None})).ok(201)["deliverAt"] is None
    when = at(days=29, hours=23)
    later = (await interactive.post(path, {"text": "Later", "deliverAt": when})).ok(201)
    assert (later["deliverAt"][:19], later["notDelivered"], later["author"]["type"]) == (when[:19], None, "coach")
    again = (await interactive.post(path, {"text": "Recalled", "deliverAt": at(hours=2)})).ok(201)
    (await client.post(OWN, {"text": "Mine", "deliverAt": at(hours=2)})).ok(201)

    assert await texts(coach, path) == ["Mine", "Recalled", "Later", "Now"]
    assert await texts(client, OWN) == ["Mine", "Now"]
    assert (await coach.patch(f"{path}/{later['_id']}", {"text": "x"})).refused(409)["code"] == "MESSAGE_WAITING"
    with ZipFile(BytesIO((await client.get("/customer/export")).raw)) as archive:
        assert not any(b"Later" in archive.read(name) for name in archive.namelist())
    (await interactive.delete(f"{path}/{again['_id']}")).ok(204)
    await pass_time(coach, days=29, hours=22)
    assert await texts(client, OWN) == ["Mine", "Now"]
    for _ in range(2):
        await pass_time(coach, days=29, hours=23, minutes=1)
    assert await texts(client, OWN) == ["Later", "Mine", "Now"]
    delivered = (await coach.get(f"{path}/{later['_id']}")).ok()
    assert (delivered["deliverAt"], delivered["author"]["type"]) == (None, "coach")
    kept = await coach.ctx.db["waitingMessages"].find_one({"_id": ObjectId(later["_id"])})
    assert kept is not None
    assert kept["text"] == "", "what is kept for an undo has no words"

    bulk = await coach.post(BULK, {"ids": [ana["_id"]], "text": "To many", "deliverAt": at(hours=1)})
    assert bulk.ok()["ok"] == 1
    assert "To many" in await texts(coach, path)
    assert "To many" not in await texts(client, OWN)
    (await coach.post(f"/coach/changes/{bulk.headers['X-Change-Id']}/undo")).ok()
    assert await texts(coach, path) == ["Later", "Mine", "Now"]


async def test_the_files_of_a_message_wait_with_it(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    client, path = await coach.as_client(ana), client_path(ana, "messages")
    ids = []
    for _ in range(2):
        upload = (await coach.send("POST", f"{path}/attachments", data=form(picture(), "file"))).ok(201)
        body = {"text": "See", "attachments": [upload["_id"]], "deliverAt": at(hours=1)}
        message = (await coach.post(path, body)).ok(201)
        assert [each["_id"] for each in message["attachments"]] == [upload["_id"]]
        ids.append(message["_id"])
    files, lost = await stored(coach)
    (await coach.delete(f"{path}/{ids[0]}")).ok(204)
    await pass_time(coach, hours=1, minutes=1)
    [shown] = (await client.get(OWN)).ok()["docs"]
    assert len(shown["attachments"]) == 1
    assert await stored(coach) == (files // 2, lost)


async def test_what_may_not_reach_the_client_any_more_is_not_sent(coach: CoachClient, interactive: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    client, path = await coach.as_client(ana), client_path(ana, "messages")

    async def reason(message: Json) -> Any:
        return (await coach.get(f"{path}/{message['_id']}")).ok()["notDelivered"]

    async def plan(author: CoachClient) -> Json:
        message: Json = (await author.post(path, {"text": "Later", "deliverAt": at(hours=1)})).ok(201)
        return message

    # The client is archived at the time, and stays without the message when restored.
    archived = await plan(coach)
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    await pass_time(coach, hours=1, minutes=1)
    (await coach.put("/coach/customers/unarchive", {"id": ana["_id"]})).ok()
    await pass_time(coach, hours=2)
    assert await reason(archived) == "CLIENT_ARCHIVED"

    # Its author has been removed, may not change clients, or not this one any more; the key is deleted.
    employees = [await employee_key(coach, "customers.view", "customers.edit", scope="all") for _ in range(3)]
    authors = [coach.with_key(key) for key in employees]
    members = [(await author.get("/me")).ok()["_id"] for author in authors]
    planned = [await plan(author) for author in authors]
    extra = (await interactive.post("/coach/api-keys", {"name": "Extra"})).ok(201)
    planned.append(await plan(coach.with_key(extra["key"])))
    (await interactive.delete(f"/coach/employees/{members[0]}")).ok(204)
    rights = f"/coach/employees/{members[1]}/permissions"
    (await interactive.put(rights, {"permissions": ["customers.view"], "customersScope": "all"})).ok()
    rights = f"/coach/employees/{members[2]}/permissions"
    narrowed = {"permissions": ["customers.view", "customers.edit"], "customersScope": "assigned"}
    (await interactive.put(rights, narrowed)).ok()
    (await interactive.delete(f"/coach/api-keys/{extra['_id']}")).ok(204)
    await pass_time(coach, hours=1, minutes=1)
    assert [await reason(each) for each in planned] == ["AUTHOR_NOT_ALLOWED"] * 4
    assert await texts(client, OWN) == []

    # Then any coach may delete it; one that waits only its author.
    (await coach.delete(f"{path}/{planned[0]['_id']}")).ok(204)
    other = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    waiting_still = await plan(other)
    assert (await coach.delete(f"{path}/{waiting_still['_id']}")).refused(403)["code"] == "NOT_THE_AUTHOR"

    (await coach.post(client_path(bo, "messages"), {"text": "Later", "deliverAt": at(hours=1)})).ok(201)
    (await coach.delete(client_path(bo))).ok(204)
    await pass_time(coach, hours=1, minutes=1)
    assert await coach.ctx.db["messages"].count_documents({"customerId": ObjectId(bo["_id"])}) == 0
