"""Deliveries that fail: retries, webhooks that are disabled, and clients who are deleted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, worker
from coaching_service.core.outbound import OutboundClient, Relaxations
from coaching_service.people.webhooks import dispatcher, service
from coaching_service.people.webhooks.service import new_delivery
from tests.support.client import CoachClient
from tests.support.mails import read_mail, read_mails
from tests.support.service_process import until
from tests.support.webhook_deliveries import Json, deliveries_of, is_empty, received, settled, subscribe
from tests.support.webhooks import Message, Receiver


async def test_failed_delivery_is_tried_again_with_the_same_id(coach: CoachClient, receiver: Receiver) -> None:
    receiver.respond = lambda _message, before: 200 if before == 2 else 503
    webhook = await subscribe(coach, receiver)
    await coach.create_customer("Ana")
    first, second, third = await received(receiver, 3)
    assert first.id == second.id == third.id
    assert first.body == second.body == third.body
    third.verify(webhook["secret"])
    [delivery] = await settled(coach, webhook, "succeeded")
    assert (delivery["attempts"], delivery["responseStatus"]) == (3, 200)

    async def is_working() -> bool:  # recorded after the delivery
        return (await coach.get(f"/coach/webhooks/{webhook['_id']}")).ok()["failingSince"] is None

    await until(is_working, "the webhook is known to work")


async def test_delivery_fails_after_the_last_retry_and_can_be_sent_again(
    coach: CoachClient, receiver: Receiver
) -> None:
    """Redirections are failures too."""
    receiver.respond = lambda _message, before: 500 if before == 0 else 302
    webhook = await subscribe(coach, receiver)
    await coach.create_customer("Ana")
    [failed] = await settled(coach, webhook, "failed")
    assert (failed["attempts"], failed["responseStatus"], failed["nextAttemptAt"]) == (3, 302, None)
    assert (await coach.get(f"/coach/webhooks/{webhook['_id']}")).ok()["failingSince"] is not None
    receiver.respond = lambda _message, _before: 204
    path = f"/coach/webhooks/{webhook['_id']}/deliveries/{failed['_id']}/redeliver"
    assert (await coach.post(path)).ok()["status"] == "pending"
    [sent_again] = await settled(coach, webhook, "succeeded")
    assert (sent_again["_id"], sent_again["attempts"]) == (failed["_id"], 4)
    assert set(receiver.count_by_id().values()) == {4}


async def test_delivery_is_sent_again_if_that_is_requested_during_the_last_attempt(
    coach: CoachClient, receiver: Receiver
) -> None:
    def respond(_message: Message, before: int) -> int:
        receiver.is_hanging = before == 1  # the next attempt, which is the last one
        return 500 if before < 3 else 204

    receiver.respond = respond
    webhook = await subscribe(coach, receiver)
    await coach.create_customer("Ana")
    await until(lambda: receiver.hanging == 1, "the last attempt has no response")
    [delivery] = await deliveries_of(coach, webhook)
    path = f"/coach/webhooks/{webhook['_id']}/deliveries/{delivery['_id']}/redeliver"
    (await coach.post(path)).ok()
    receiver.is_hanging = False
    receiver.released.set()
    [sent_again] = await settled(coach, webhook, "succeeded")
    assert (sent_again["attempts"], sent_again["responseStatus"], sent_again["nextAttemptAt"]) == (4, 204, None)


async def test_failure_without_a_response_has_a_code(coach: CoachClient, receiver: Receiver) -> None:
    receiver.url = "http://127.0.0.1:1/"
    webhook = await subscribe(coach, receiver)
    await coach.create_customer("Ana")
    [failed] = await settled(coach, webhook, "failed")
    assert (failed["responseStatus"], failed["error"]) == (None, "CONNECTION_FAILED")


async def test_address_that_is_no_longer_allowed_is_not_requested(coach: CoachClient, receiver: Receiver) -> None:
    """Such as one with a port that was allowed when the webhook was created."""
    webhook = await subscribe(coach, receiver)
    where = {"_id": ObjectId(webhook["_id"])}
    await coach.ctx.db["webhooks"].update_one(where, {"$set": {"url": "https://hooks.example\n:22/"}})
    await coach.create_customer("Ana")
    [failed] = await settled(coach, webhook, "failed")
    assert (failed["responseStatus"], failed["error"]) == (None, "URL_INVALID")


async def test_events_of_an_erased_client_are_not_sent(coach: CoachClient, receiver: Receiver) -> None:
    """They were waiting for a retry; that the client was deleted is sent."""
    receiver.respond = lambda message, _before: 200 if message.event["type"] == "customer.deleted" else 500
    webhook = await subscribe(coach, receiver)
    own = coach.ctx.services.db["webhookDeliveries"]
    ana = await coach.create_customer("Ana")
    await settled(coach, webhook, "failed")
    sent = len(receiver.messages)
    (await coach.delete(f"/coach/customers/{ana['_id']}")).ok(204)
    [deleted] = await settled(coach, webhook, "succeeded")
    assert (deleted["type"], deleted["customerId"]) == ("customer.deleted", None)
    await until(lambda: is_empty(own, {"customerId": ObjectId(ana["_id"])}), "the deliveries are erased", 60)
    assert len(receiver.messages) == sent + 1


async def test_delivery_for_a_deleted_client_is_dropped(coach: CoachClient, receiver: Receiver) -> None:
    """A delivery that has not been erased yet is not sent either."""
    receiver.respond = lambda message, _before: 500
    webhook = await subscribe(coach, receiver)
    db = coach.ctx.services.db
    ana = await coach.create_customer("Ana")
    [failed] = await settled(coach, webhook, "failed")
    stored = await db["customers"].find_one_and_delete({"_id": ObjectId(ana["_id"])})
    assert stored is not None
    sent = len(receiver.messages)
    (await coach.post(f"/coach/webhooks/{webhook['_id']}/deliveries/{failed['_id']}/redeliver")).ok()
    await until(lambda: is_empty(db["webhookDeliveries"], {"_id": ObjectId(failed["_id"])}), "it is dropped", 60)
    assert len(receiver.messages) == sent


async def test_webhook_is_disabled_after_three_days_of_failures(
    coach: CoachClient, receiver: Receiver, own_services: Services
) -> None:
    receiver.respond = lambda _message, _before: 500
    webhook = await subscribe(coach, receiver, description="Our CRM")
    path = f"/coach/webhooks/{webhook['_id']}"
    await coach.create_customer("Ana")
    await settled(coach, webhook, "failed")
    almost = {"failingSince": now() - timedelta(days=3) + timedelta(minutes=10)}
    await own_services.db["webhooks"].update_one({"_id": ObjectId(webhook["_id"])}, {"$set": almost})
    await coach.create_customer("Bo")
    await settled(coach, webhook, "failed", 2)
    assert (await coach.get(path)).ok()["isActive"] is True
    assert await mails_to(own_services, coach) == []

    long_ago = {"failingSince": now() - timedelta(days=3, seconds=1)}
    await own_services.db["webhooks"].update_one({"_id": ObjectId(webhook["_id"])}, {"$set": long_ago})
    await coach.create_customer("Cai")

    async def disabled() -> Json | None:
        read: Json = (await coach.get(path)).ok()
        return None if read["isActive"] else read

    assert (await until(disabled, "the webhook is disabled", 60))["disabledAt"] is not None
    sent = len(receiver.messages)
    [mail_to_owner] = await until(lambda: mails_to(own_services, coach), "the mail is sent", 60)
    parts = read_mail(mail_to_owner, own_services.base_url)
    assert "Our CRM" in parts.text
    assert f"{own_services.base_url}/app/settings/webhooks/{webhook['_id']}" in parts.links
    receiver.respond = lambda _message, _before: 200
    active = (await coach.patch(path, {"isActive": True})).ok()
    assert (active["disabledAt"], active["failingSince"]) == (None, None)
    await received(receiver, sent + 1)


async def test_a_receiver_that_is_gone_disables_the_webhook(
    coach: CoachClient, receiver: Receiver, own_services: Services
) -> None:
    receiver.respond = lambda _message, _before: 410
    webhook = await subscribe(coach, receiver, types=["customer.created"])
    path = f"/coach/webhooks/{webhook['_id']}"
    await coach.create_customer("Ana")
    [failed] = await settled(coach, webhook, "failed")
    assert (failed["attempts"], failed["responseStatus"], failed["nextAttemptAt"]) == (1, 410, None)

    async def disabled() -> Json | None:
        read: Json = (await coach.get(path)).ok()
        return None if read["isActive"] else read

    assert (await until(disabled, "the webhook is disabled", 60))["disabledAt"] is not None
    [mail_to_owner] = await until(lambda: mails_to(own_services, coach), "the mail is sent", 60)
    assert "gone" in read_mail(mail_to_owner, own_services.base_url).text


async def test_a_receiver_that_asks_to_wait_gets_the_time(
    coach: CoachClient, receiver: Receiver, own_services: Services
) -> None:
    """The later of the schedule and `Retry-After`, at most the delay of the step after."""
    receiver.respond = lambda _message, _before: 503
    delivery: Any = {"seq": 1}
    own_services = replace(own_services, webhook_retry_seconds=(5.0, 300.0, 1800.0))
    ctx = replace(coach.ctx, services=own_services)
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=200), usegmt=True)
    for sent, retries, least, most in (
        ("", 0, 4, 6),
        ("2", 0, 4, 6),
        ("60", 0, 59, 61),
        ("99999999999999999999", 0, 299, 301),
        ("1000", 1, 999, 1001),
        ("999999", 2, 1799, 1801),
        ("-1", 0, 4, 6),
        ("1.5", 0, 4, 6),
        ("soon", 0, 4, 6),
        (later, 0, 190, 201),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 4, 6),
        ("Wed, 21 Oct 99999999999999999999 07:28:00 GMT", 0, 4, 6),
    ):
        receiver.headers = {"retry-after": sent} if sent else {}
        response = await own_services.outbound.post(receiver.url, b"{}", {"webhook-id": "x"})
        outcome = dispatcher.Response(503, None, now(), 0, wait=response.wait_seconds)
        delivery["retries"] = retries
        result = dispatcher._result(ctx, delivery, outcome)
        assert result["nextAttemptAt"] is not None
        assert least <= (result["nextAttemptAt"] - now()).total_seconds() <= most, sent


async def test_another_address_is_not_blamed_for_the_failures_of_the_previous_one(
    coach: CoachClient, receiver: Receiver, own_services: Services
) -> None:
    """Another description is: the address is the same."""
    webhook = (await coach.post("/coach/webhooks", {"url": receiver.url, "isActive": False})).ok(201)
    path, since = f"/coach/webhooks/{webhook['_id']}", now() - timedelta(days=2)
    await own_services.db["webhooks"].update_one({"_id": ObjectId(webhook["_id"])}, {"$set": {"failingSince": since}})
    described = (await coach.patch(path, {"description": "Our CRM", "url": receiver.url})).ok()
    assert described["failingSince"] is not None
    assert (await coach.patch(path, {"url": f"{receiver.url}other"})).ok()["failingSince"] is None
    assert (await coach.get(path)).ok()["failingSince"] is None


@pytest.mark.parametrize("since", [None, timedelta(minutes=1)], ids=["works", "fails again"])
async def test_webhook_stays_active_if_a_delivery_has_succeeded_meanwhile(
    coach: CoachClient, receiver: Receiver, own_services: Services, since: timedelta | None
) -> None:
    """Between the beginning of an attempt, which found it failing for three days, and its end."""
    webhook = (await coach.post("/coach/webhooks", {"url": receiver.url, "isActive": False})).ok(201)
    webhook_id = ObjectId(webhook["_id"])
    own = own_services.db["webhooks"]
    failing = {"isActive": True, "failingSince": now() - timedelta(days=4)}
    await own.update_one({"_id": webhook_id}, {"$set": failing})
    stored = await service.find_to_send(coach.ctx, webhook_id)
    assert stored is not None
    new: Any = new_delivery(webhook_id, f"{ObjectId()}.0", 1, "note.created", None)
    delivery: Any = {**new, **await service.deliveries.insert(coach.ctx, new)}
    message = dispatcher.Message(delivery, stored, b"{}")
    await own.update_one({"_id": webhook_id}, {"$set": {"failingSince": None if since is None else now() - since}})
    await dispatcher.record(coach.ctx, message, dispatcher.Response(500, None, now(), 1))
    assert (await coach.get(f"/coach/webhooks/{webhook['_id']}")).ok()["isActive"] is True
    await own.update_one({"_id": webhook_id}, {"$set": {"failingSince": now() - timedelta(days=4)}})
    await dispatcher.record(coach.ctx, message, dispatcher.Response(500, None, now(), 1))
    assert (await coach.get(f"/coach/webhooks/{webhook['_id']}")).ok()["isActive"] is False


async def test_the_retry_that_is_due_longest_is_first(coach: CoachClient, receiver: Receiver) -> None:
    """Neither the newest delivery nor that of the latest event; one that is not due is not tried."""
    webhook = (await coach.post("/coach/webhooks", {"url": receiver.url, "isActive": False})).ok(201)
    webhook_id = ObjectId(webhook["_id"])
    waiting = {}
    for minutes in (5, 30, 10, -5):
        new = new_delivery(webhook_id, f"{ObjectId()}.0", minutes + 10, "note.created", None)
        fields = {**new, "nextAttemptAt": now() - timedelta(minutes=minutes)}
        waiting[(await service.deliveries.insert(coach.ctx, fields))["_id"]] = minutes
    due = await service.list_due(coach.ctx, webhook_id, now(), 10, without=[])
    assert [waiting[delivery["_id"]] for delivery in due] == [30, 10, 5]
    [first] = await service.list_due(coach.ctx, webhook_id, now(), 1, without=[due[0]["_id"]])
    assert waiting[first["_id"]] == 10


async def mails_to(services: Services, coach: CoachClient) -> list[EmailMessage]:
    """The mails about webhooks to the owner, except one that the application is about to send."""
    await worker.run_due(services, {mail.SEND: features.STEPS[mail.SEND]})
    assert isinstance(services.mail_sender, mail.FolderMailSender)
    sent = read_mails(services.mail_sender.folder)
    return [each for each in sent if "webhook" in each["Subject"] and each["To"] == coach.ctx.caller.email]


async def test_name_with_a_private_address_is_checked_at_each_delivery(
    coach: CoachClient, receiver: Receiver, own_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name was public when the webhook was created, as far as anyone knew."""
    strict = OutboundClient(Relaxations(http=True), lookup=lambda _host, _port: ["127.0.0.1"])
    webhook = await subscribe(coach, receiver)
    named = receiver.url.replace("127.0.0.1", "receiver.example")
    (await coach.patch(f"/coach/webhooks/{webhook['_id']}", {"url": named})).ok()
    monkeypatch.setattr(own_services.outbound, "post", strict.post)
    await coach.create_customer("Ana")
    [failed] = await settled(coach, webhook, "failed")
    assert (failed["responseStatus"], failed["error"]) == (None, "CONNECTION_FAILED"), "as for a closed port"
    assert receiver.messages == []
    await strict.close()
