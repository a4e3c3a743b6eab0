"""Deliveries of webhooks to a receiver on this machine, on a database of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer, unused_port
from standardwebhooks import WebhookVerificationError

from coaching_service import features, runtime
from coaching_service.app import create_app
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue
from coaching_service.core.outbound.client import OutboundClient, Relaxations
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.team import service as team
from coaching_service.people.webhooks import deliveries
from coaching_service.settings import Settings
from tests.support.client import MONDAY, CoachClient
from tests.support.mails import read_mail
from tests.support.service_process import until
from tests.support.training import block_with, client_path, log, task
from tests.support.webhooks import Message, Receiver, receiving

Json = dict[str, Any]
RETRY_SECONDS = (0.1, 0.2)
_numbers = count()


@pytest.fixture(scope="module")
async def own_settings(settings: Settings) -> Settings:
    """Settings with which webhooks reach this machine, and are retried at once."""
    return settings.model_copy(
        update={
            "mongodb_database": f"{settings.mongodb_database}_webhooks",
            "webhooks_allow_http": True,
            "webhooks_allow_private": True,
            "webhook_retry_seconds": RETRY_SECONDS,
        }
    )


@pytest.fixture(scope="module")
async def own_services(own_settings: Settings) -> AsyncIterator[Services]:
    """Services on that database."""
    async with runtime.open_services(own_settings) as services:
        await services.db.client.drop_database(own_settings.mongodb_database)
        await runtime.make_indexes(services)
        yield services


@pytest.fixture(scope="module")
async def own_server(own_settings: Settings, own_services: Services) -> AsyncIterator[TestServer]:
    """The application that sends the webhooks."""
    async with TestServer(create_app(own_settings, own_services)) as server:
        yield server


NewCoach = Callable[[], Awaitable[CoachClient]]


@pytest.fixture
async def new_coach(own_services: Services, own_server: TestServer, password_hash: str) -> AsyncIterator[NewCoach]:
    """Makes a company on that database; returns a client with its owner's key."""
    clients: list[CoachClient] = []

    async def make() -> CoachClient:
        email = f"owner{next(_numbers)}@webhooks.test"
        owner = await team.create_company(Context(own_services), "Company", "Olga Owner", email, password_hash)
        ctx = Context(own_services).acting_as(replace(owner, via="apiKey"))
        clients.append(CoachClient(own_server, (await api_keys.create(ctx, "Test"))["key"], ctx))
        return clients[-1]

    yield make
    for client in clients:
        for webhook in (await client.get("/coach/webhooks")).ok():
            (await client.delete(f"/coach/webhooks/{webhook['_id']}")).ok(204)
        await client.close()


@pytest.fixture
async def coach(new_coach: NewCoach) -> CoachClient:
    """A company's owner."""
    return await new_coach()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver of webhooks."""
    async with receiving() as started:
        yield started


async def subscribe(coach: CoachClient, receiver: Receiver, **fields: Any) -> Json:
    """A webhook of the receiver."""
    created: Json = (await coach.post("/coach/webhooks", {"url": receiver.url, **fields})).ok(201)
    return created


async def deliveries_of(coach: CoachClient, webhook: Json, **query: Any) -> list[Json]:
    """The deliveries of a webhook, newest first."""
    page = (await coach.get(f"/coach/webhooks/{webhook['_id']}/deliveries", limit=100, **query)).ok()
    docs: list[Json] = page["docs"]
    return docs


async def received(receiver: Receiver, number: int) -> list[Message]:
    """The messages once there are so many."""
    await until(lambda: len(receiver.messages) >= number, f"{number} messages", 60)
    return receiver.messages


async def settled(coach: CoachClient, webhook: Json, status: str, number: int = 1) -> list[Json]:
    """The deliveries with a status once there are so many."""

    async def reached() -> list[Json]:
        docs = await deliveries_of(coach, webhook, status=status)
        return docs if len(docs) >= number else []

    return await until(reached, f"{number} deliveries {status}", 60)


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


async def test_first_attempts_have_the_order_of_the_events(coach: CoachClient, receiver: Receiver) -> None:
    """Some of them fail; the failures delay none of the others."""
    receiver.respond = lambda message, before: 500 if message.event["seq"] % 3 == 0 and not before else 200
    await subscribe(coach, receiver)
    for number in range(12):
        await coach.create_customer(f"Client {number}")
    await received(receiver, 16)
    assert list(dict.fromkeys(receiver.sequence)) == list(range(1, 13))
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
    assert (await coach.get(f"/coach/webhooks/{webhook['_id']}")).ok()["failingSince"] is None


@pytest.mark.parametrize("status", [302, 400, 500])
async def test_delivery_fails_after_the_last_retry_and_can_be_sent_again(
    coach: CoachClient, receiver: Receiver, status: int
) -> None:
    receiver.respond = lambda _message, _before: status
    webhook = await subscribe(coach, receiver)
    await coach.create_customer("Ana")
    [failed] = await settled(coach, webhook, "failed")
    assert (failed["attempts"], failed["responseStatus"], failed["nextAttemptAt"]) == (3, status, None)
    assert (await coach.get(f"/coach/webhooks/{webhook['_id']}")).ok()["failingSince"] is not None
    receiver.respond = lambda _message, _before: 204
    path = f"/coach/webhooks/{webhook['_id']}/deliveries/{failed['_id']}/redeliver"
    assert (await coach.post(path)).ok()["status"] == "pending"
    [sent_again] = await settled(coach, webhook, "succeeded")
    assert (sent_again["_id"], sent_again["attempts"]) == (failed["_id"], 4)
    assert set(receiver.count_by_id().values()) == {4}


async def test_failure_without_a_response_has_a_code(coach: CoachClient, receiver: Receiver) -> None:
    receiver.url = "http://127.0.0.1:1/"
    webhook = await subscribe(coach, receiver)
    await coach.create_customer("Ana")
    [failed] = await settled(coach, webhook, "failed")
    assert (failed["responseStatus"], failed["error"]) == (None, "CONNECTION_FAILED")


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


async def is_empty(collection: Any, where: Json) -> bool:
    return await collection.count_documents(where) == 0


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
    [mail_to_owner] = await mails_to(own_services, coach)
    parts = read_mail(mail_to_owner, own_services.base_url)
    assert "Our CRM" in parts.text
    assert f"{own_services.base_url}/app/settings/webhooks/{webhook['_id']}" in parts.links
    receiver.respond = lambda _message, _before: 200
    active = (await coach.patch(path, {"isActive": True})).ok()
    assert (active["disabledAt"], active["failingSince"]) == (None, None)
    await received(receiver, sent + 1)


async def mails_to(services: Services, coach: CoachClient) -> list[EmailMessage]:
    """The mails about webhooks to the owner, which are in the folder of mails or still queued."""
    await queue.run_due(services, {mail.SEND: features.STEPS[mail.SEND]})
    folder = services.mail_sender.folder  # type: ignore[attr-defined]
    files = sorted(folder.glob("*.eml")) if folder.exists() else []
    sent = [message_from_bytes(file.read_bytes(), policy=default) for file in files]
    return [each for each in sent if "webhook" in each["Subject"] and each["To"] == coach.ctx.caller.email]


async def test_hanging_receiver_delays_no_other(new_coach: NewCoach, receiver: Receiver) -> None:
    """Neither of the same company nor of another one."""
    coach, other = await new_coach(), await new_coach()
    async with receiving() as same_company, receiving() as other_company:
        receiver.is_hanging = True
        await subscribe(coach, receiver)
        await subscribe(coach, same_company)
        await subscribe(other, other_company)
        for number in range(20):
            await coach.create_customer(f"Client {number}")
            await other.create_customer(f"Client {number}")
        await received(same_company, 20)
        await received(other_company, 20)
        assert same_company.sequence == other_company.sequence == list(range(1, 21))
        assert 1 <= receiver.hanging <= 2, "no more attempts as a webhook gets that does not respond"
        receiver.is_hanging = False
        receiver.released.set()
        await until(lambda: len(set(receiver.sequence)) == 20, "the rest is sent", 60)


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
    assert (failed["responseStatus"], failed["error"]) == (None, "ADDRESS_NOT_ALLOWED")
    assert receiver.messages == []
    await strict.close()


async def test_metrics_show_attempts_by_outcome_and_what_is_pending(coach: CoachClient, receiver: Receiver) -> None:
    before = await figures(coach)
    receiver.respond = lambda _message, earlier: 200 if earlier else 500
    webhook = await subscribe(coach, receiver)
    await coach.create_customer()
    await settled(coach, webhook, "succeeded")
    after = await figures(coach)
    for outcome in ("rejected", "succeeded"):
        name = f'webhook_attempts_total{{outcome="{outcome}"}}'
        assert after[name] > before[name], outcome
    assert (after["webhook_deliveries_pending"], after["webhook_oldest_pending_seconds"]) == (0, 0)

    waiting = deliveries.new_delivery(ObjectId(webhook["_id"]), f"{ObjectId()}.0", 7, "customer.created", None)
    in_an_hour, minutes_ago = now() + timedelta(hours=1), now() - timedelta(minutes=2)
    stored = waiting | {"companyId": coach.ctx.company_id, "createdAt": minutes_ago, "nextAttemptAt": in_an_hour}
    stored.pop("isQueued", None)
    await coach.ctx.db["webhookDeliveries"].insert_one(dict(stored))
    pending = await figures(coach)
    assert pending["webhook_deliveries_pending"] == 1
    assert 120 <= pending["webhook_oldest_pending_seconds"] < 1000
    (await coach.patch(f"/coach/webhooks/{webhook['_id']}", {"isActive": False})).ok()
    assert (await figures(coach))["webhook_deliveries_pending"] == 0, "nothing is sent to a webhook that is not active"


async def figures(coach: CoachClient) -> dict[str, float]:
    """The metrics, by name and labels."""
    coach.checks = False
    lines = (await coach.get("/metrics")).raw.decode().splitlines()
    coach.checks = True
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


async def test_logs_have_neither_addresses_nor_secrets(
    coach: CoachClient, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.respond = lambda _message, _before: 500
    receiver.url += "?token=Zanzibar"
    webhook = await subscribe(coach, receiver)
    await coach.create_customer("Secretname")
    await settled(coach, webhook, "failed")
    stored = await coach.ctx.services.db["webhookDeliveries"].find_one({"webhookId": ObjectId(webhook["_id"])})
    output = capsys.readouterr()
    for text in (output.out, output.err, json.dumps(stored, default=str)):
        assert "Zanzibar" not in text
        assert "Secretname" not in text
        assert webhook["secret"].removeprefix("whsec_") not in text


GUIDE = Path(__file__).parents[2] / "docs" / "tasks" / "react-to-a-finished-workout.md"


async def test_program_of_the_guide_reacts_to_a_finished_workout(coach: CoachClient, tmp_path: Path) -> None:
    program, port = tmp_path / "receiver.py", unused_port()
    program.write_text(GUIDE.read_text("utf-8").partition("```python\n")[2].partition("```")[0])
    body = {"url": f"http://127.0.0.1:{port}/", "types": ["workout.completed"]}
    webhook = (await coach.post("/coach/webhooks", body)).ok(201)
    settings = {
        "BASE": coach.address("/").rstrip("/"),
        "KEY": str(coach.key),
        "SECRET": webhook["secret"],
        "PORT": str(port),
        "DATABASE": str(tmp_path / "receiver.db"),
    }
    output = tmp_path / "output"
    receiver = start(program, settings, output)
    try:
        ana = await coach.create_customer("Ana")
        block = await block_with(coach, ana, task("Walk"), name="Legs", date=MONDAY)
        (await log(coach, block, block["items"][0])).ok()
        expected = f"Ana has completed Legs of {MONDAY}\n"
        await until(lambda: expected in output.read_text(), "the program reacts", 60)
        [delivery] = await settled(coach, webhook, "succeeded")
        (await coach.post(f"/coach/webhooks/{webhook['_id']}/deliveries/{delivery['_id']}/redeliver")).ok()
        await until(lambda: output.read_text().count("204") == 2, "the message has arrived twice", 60)
        assert output.read_text().count(expected) == 1
    finally:
        receiver.kill()
        receiver.wait()


def start(program: Path, settings: dict[str, str], output: Path) -> subprocess.Popen[bytes]:
    """Start a Python program whose output goes to a file."""
    with output.open("w") as file:
        return subprocess.Popen([sys.executable, str(program)], env=os.environ | settings, stdout=file, stderr=file)
