"""Deliveries of webhooks to a receiver: which events, in which order, and how they are signed and listed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from standardwebhooks import WebhookVerificationError

from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.training import client_path
from tests.support.webhook_deliveries import NewCoach, deliveries_of, received, settled, subscribe
from tests.support.webhooks import Receiver, receiving


async def test_message_is_the_signed_event(coach: CoachClient, receiver: Receiver) -> None:
    webhook = await subscribe(coach, receiver)
    ana = await coach.create_customer("Ana")
    [message] = await received(receiver, 1)
    [event] = (await coach.get("/coach/events", limit=10)).ok()["docs"]
    assert message.verify(webhook["secret"]) == event
    assert event["customerId"] == ana["_id"]
    assert message.headers["content-type"] == "application/json"
    [delivery] = await settled(coach, webhook, "succeeded")
    assert message.id == f"msg_{delivery['_id']}"
    assert (delivery["eventId"], delivery["seq"], delivery["type"]) == (event["id"], 1, "customer.created")
    assert (delivery["attempts"], delivery["responseStatus"], delivery["error"]) == (1, 200, None)
    assert delivery["customerId"] == ana["_id"]
    assert delivery["durationMs"] >= 0
    assert delivery["nextAttemptAt"] is None
    with pytest.raises(WebhookVerificationError):
        message.verify("whsec_" + "A" * 44)


async def test_a_webhook_without_a_position_continues_with_the_next_event(
    coach: CoachClient, own_services: Services, receiver: Receiver
) -> None:
    webhook = await subscribe(coach, receiver)
    lacks = own_services.db["webhooks"], {"_id": ObjectId(webhook["_id"]), "position": {"$exists": False}}
    await lacks[0].update_one({"_id": lacks[1]["_id"]}, {"$unset": {"position": ""}})

    async def has_position() -> bool:
        return await lacks[0].count_documents(lacks[1]) == 0

    await coach.create_customer("Ana")
    await until(has_position, "it has a position")
    bo = await coach.create_customer("Bo")
    await until(lambda: bo["_id"] in {each.event["customerId"] for each in receiver.messages}, "the next event arrives")


async def test_first_attempts_have_the_order_of_the_events(coach: CoachClient, receiver: Receiver) -> None:
    """Some of them fail; the failures delay none of the others."""
    receiver.respond = lambda message, before: 500 if message.event["seq"] % 3 == 0 and not before else 200
    await subscribe(coach, receiver)
    for number in range(7):
        await coach.create_customer(f"Client {number}")
    await received(receiver, 9)
    assert list(dict.fromkeys(receiver.sequence)) == list(range(1, 8))
    assert set(receiver.count_by_id().values()) == {1, 2}


async def test_only_the_types_of_a_webhook_are_sent_from_its_creation_on(
    coach: CoachClient, receiver: Receiver
) -> None:
    ana = await coach.create_customer("Ana")
    (await coach.post(client_path(ana, "notes"), {"content": "Before"})).ok(201)
    (await coach.get("/coach/events", limit=1, types="note.created", wait=20)).ok()
    webhook = await subscribe(coach, receiver, types=["note.created", "customer.archived"])
    note = (await coach.post(client_path(ana, "notes"), {"content": "Hello"})).ok(201)
    await coach.create_customer("Bo")
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    await received(receiver, 2)
    assert [message.event["type"] for message in receiver.messages] == ["note.created", "customer.archived"]
    assert receiver.messages[0].event["data"] == {"noteId": note["_id"]}
    assert len(await deliveries_of(coach, webhook)) == 2


async def test_messages_have_two_signatures_after_a_rotation(
    coach: CoachClient, receiver: Receiver, own_services: Services
) -> None:
    webhook = await subscribe(coach, receiver)
    rotated = (await coach.post(f"/coach/webhooks/{webhook['_id']}/rotate-secret")).ok()
    await coach.create_customer("Ana")
    [message] = await received(receiver, 1)
    assert message.verify(webhook["secret"]) == message.verify(rotated["secret"])
    expired = {"secrets.1.expiresAt": now() - timedelta(seconds=1)}
    await own_services.db["webhooks"].update_one({"_id": ObjectId(webhook["_id"])}, {"$set": expired})
    await coach.create_customer("Bo")
    *_, message = await received(receiver, 2)
    message.verify(rotated["secret"])
    with pytest.raises(WebhookVerificationError):
        message.verify(webhook["secret"])


async def test_test_event_is_sent_once(coach: CoachClient, receiver: Receiver) -> None:
    webhook = await subscribe(coach, receiver, types=["form.deleted"])
    path = f"/coach/webhooks/{webhook['_id']}/test"
    queued = (await coach.post(path)).ok(201)
    assert (queued["type"], queued["seq"], queued["status"]) == ("webhook.test", 0, "pending")
    [message] = await received(receiver, 1)
    event = message.verify(webhook["secret"])
    assert (event["type"], event["data"]) == ("webhook.test", {"webhookId": webhook["_id"]})
    assert event["companyId"] == str(coach.ctx.company_id)
    sample = (await coach.post(path, {"type": "workout.completed"})).ok(201)
    (await coach.post(path, {"type": "workout.eaten"})).refused(400)
    sent = (await received(receiver, 2))[1].verify(webhook["secret"])
    [known] = (await coach.get("/coach/events/samples", types="workout.completed")).ok()
    same = ("type", "customerId", "actor", "data")
    assert [sent[name] for name in same] == [known[name] for name in same]
    assert (sent["id"], sent["seq"], sent["companyId"]) == (sample["eventId"], 0, str(coach.ctx.company_id))
    receiver.respond = lambda _message, _before: 500
    (await coach.post(path)).ok(201)
    [failed] = await settled(coach, webhook, "failed")
    assert failed["attempts"] == 1
    assert (await coach.get(f"/coach/webhooks/{webhook['_id']}")).ok()["failingSince"] is None


async def test_inactive_webhook_receives_nothing_and_continues_with_later_events(
    coach: CoachClient, receiver: Receiver
) -> None:
    webhook = await subscribe(coach, receiver)
    path = f"/coach/webhooks/{webhook['_id']}"
    (await coach.patch(path, {"isActive": False})).ok()
    await coach.create_customer("Ana")
    (await coach.get("/coach/events", limit=1, wait=20)).ok()
    (await coach.patch(path, {"isActive": True})).ok()
    await coach.create_customer("Bo")
    await received(receiver, 1)
    assert receiver.sequence == [2]


async def test_deliveries_are_listed_by_cursor(coach: CoachClient, receiver: Receiver) -> None:
    webhook = await subscribe(coach, receiver)
    for number in range(5):
        await coach.create_customer(f"Client {number}")
    await settled(coach, webhook, "succeeded", 5)
    path, cursor, seen = f"/coach/webhooks/{webhook['_id']}/deliveries", None, []
    while True:
        page = (await coach.get(path, limit=2, **({"after": cursor} if cursor else {}))).ok()
        seen += [delivery["seq"] for delivery in page["docs"]]
        cursor = page["nextCursor"]
        if not page["hasMore"]:
            break
    assert sorted(seen) == [1, 2, 3, 4, 5]
    other = (await coach.get(path, limit=2)).ok()["nextCursor"]
    (await coach.get(path, limit=2, after=other, status="failed")).refused(400)


async def test_hanging_receiver_delays_no_other(new_coach: NewCoach, receiver: Receiver) -> None:
    """Neither of the same company nor of another one."""
    coach, other = await new_coach(), await new_coach()
    async with receiving() as same_company, receiving() as other_company:
        receiver.is_hanging = True
        await subscribe(coach, receiver)
        await subscribe(coach, same_company)
        await subscribe(other, other_company)
        for number in range(6):
            await coach.create_customer(f"Client {number}")
            await other.create_customer(f"Client {number}")
        await received(same_company, 6)
        await received(other_company, 6)
        assert same_company.sequence == other_company.sequence == list(range(1, 7))
        assert 1 <= receiver.hanging <= 2, "no more attempts as a webhook gets that does not respond"
        receiver.is_hanging = False
        receiver.released.set()
        await until(lambda: len(set(receiver.sequence)) == 6, "the rest is sent", 60)
