"""Sending to a push service that decrypts what it receives, refuses, delays and hangs (contract, section 19)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
import time_machine
from cryptography.hazmat.primitives.asymmetric import ec
from multidict import CIMultiDict

from coaching_service.core.auth import Vault, new_master_key, parse_master_key
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.outbound import OutboundResponse
from coaching_service.people import push
from coaching_service.people.notifications import PushMessage, Recipient
from coaching_service.people.push import BrowserKeys
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.push_service import Device, PushService, decode, encode, push_service
from tests.support.service_process import until

Json = dict[str, Any]


def new_message(title: str = "Deadlift day", *, minutes: float = 30, text: str = "Today") -> PushMessage:
    """A message that is over after so many minutes."""
    recipient: Recipient = {"type": "client", "_id": ObjectId()}
    until = now() + timedelta(minutes=minutes)
    return PushMessage(recipient, None, f"workout-{ObjectId()}", title, text, "/train/workouts/1", until)


async def subscribe(phones: PushService, user: CoachClient, **options: Any) -> Device:
    """A device of a user that has subscribed."""
    key = (await user.get("/push-public-key")).ok()["key"]
    device = phones.new_device(key, **options)
    subscription = {**device.subscription, "userAgent": "Phone"}
    reply = await user.post("/customer/push-subscriptions", subscription)
    if reply.status == 403:
        reply = await user.post("/push-subscriptions", subscription)
    reply.ok(201)
    return device


@transactional
async def send(ctx: Context, subject_id: ObjectId, message: PushMessage) -> None:
    """Queue a message to a person."""
    await push.enqueue(ctx, replace(message, recipient={**message.recipient, "_id": subject_id}))


async def jobs_of(coach: CoachClient) -> list[Json]:
    """The messages that wait."""
    return await coach.ctx.db["jobs"].find({"companyId": coach.ctx.company_id, "kind": push.SEND}).to_list(None)


async def is_done(coach: CoachClient) -> bool:
    """Whether no message waits."""
    return not await jobs_of(coach)


def test_a_message_is_encrypted_as_the_standard_says() -> None:
    """With the keys and the salt of RFC 8291, appendix A; the result is that of http_ece 1.2.1."""
    sender = int.from_bytes(decode("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big")
    keys: BrowserKeys = {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    }
    encrypted = push.encrypt_with(
        b"When I grow up, I want to be a watermelon",
        keys,
        ec.derive_private_key(sender, ec.SECP256R1()),
        decode("DGv6ra1nlYgCS1FRnbzlwA"),
    )
    assert encode(encrypted) == (
        "DGv6ra1nlYgCS1FRnbzlwAAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
        "7A-LHfulM66AsIRhxj2lc8B5KMgDAh8s0FdXw41vke9reg4UO92W2FYs2Df_GOUHP3HV-5EOpGHwJK7b"
    )


async def test_every_device_of_a_person_receives_a_message_once(coach: CoachClient, phones: PushService) -> None:
    customer = await coach.create_customer()
    client = await coach.as_client(customer)
    first, second = await subscribe(phones, client), await subscribe(phones, client)
    other = await subscribe(phones, await coach.as_client(await coach.create_customer("Ben")))
    message = new_message()
    await send(coach.ctx, ObjectId(customer["_id"]), message)
    await until(lambda: first.messages and second.messages, "both devices")
    await until(lambda: is_done(coach), "no message waits")
    expected = {"title": "Deadlift day", "body": "Today", "path": "/train/workouts/1"}
    assert first.contents == second.contents == [{**expected, "tag": message.tag}]
    headers = first.messages[0].headers
    assert 0 < int(headers["TTL"]) <= 30 * 60
    assert headers["Topic"] and len(headers["Topic"]) <= 32
    assert (other.messages, phones.rejected) == ([], [])
    assert all(each["lastUsedAt"] for each in (await client.get("/customer/push-subscriptions")).ok())


async def test_what_waits_is_encrypted_and_what_is_over_is_not_sent(coach: CoachClient, phones: PushService) -> None:
    user = await coach.interactive()
    device = await subscribe(phones, user, respond=500)
    await send(coach.ctx, coach.ctx.caller.id, new_message("A secret title"))
    await until(lambda: device.attempts, "an attempt")
    [job] = await jobs_of(coach)
    assert "secret title" not in repr(job) and device.endpoint not in repr(job)
    await coach.ctx.db["jobs"].delete_one({"_id": job["_id"]})
    await send(coach.ctx, coach.ctx.caller.id, new_message(minutes=-1))
    await until(lambda: is_done(coach), "no message waits")
    assert (len(device.attempts), device.messages) == (1, [])


@pytest.mark.parametrize("status", [404, 410])
async def test_a_device_that_is_gone_is_removed(coach: CoachClient, phones: PushService, status: int) -> None:
    user = await coach.interactive()
    device = await subscribe(phones, user, respond=status)
    other = await subscribe(phones, user)
    await send(coach.ctx, coach.ctx.caller.id, new_message())
    await until(lambda: is_done(coach), "no message waits")
    assert (len(device.attempts), len(other.messages)) == (1, 1)
    assert len((await user.get("/push-subscriptions")).ok()) == 1


@pytest.mark.parametrize(("status", "removed"), [(400, False), (403, False), (413, False)])
async def test_a_rejected_message_is_not_repeated(
    coach: CoachClient, phones: PushService, status: int, removed: bool
) -> None:
    user = await coach.interactive()
    device = await subscribe(phones, user, respond=status)
    await send(coach.ctx, coach.ctx.caller.id, new_message())
    await until(lambda: is_done(coach), "no message waits")
    assert len(device.attempts) == 1
    assert len((await user.get("/push-subscriptions")).ok()) == 1


async def test_429_is_repeated_after_the_time_that_the_push_service_states(
    coach: CoachClient, phones: PushService
) -> None:
    user = await coach.interactive()
    device = await subscribe(phones, user, respond=429, retry_after="2")
    await send(coach.ctx, coach.ctx.caller.id, new_message())
    await until(lambda: device.attempts, "an attempt")
    device.respond = 201
    await until(lambda: device.messages, "the message")
    first, second = device.attempts
    assert second - first >= 2
    await until(lambda: is_done(coach), "no message waits")


async def test_429_for_longer_than_the_message_is_valid_ends_it(coach: CoachClient, phones: PushService) -> None:
    user = await coach.interactive()
    device = await subscribe(phones, user, respond=429, retry_after="3600")
    await send(coach.ctx, coach.ctx.caller.id, new_message(minutes=30))
    await until(lambda: is_done(coach), "no message waits")
    assert len(device.attempts) == 1


async def test_a_push_service_that_hangs_does_not_hold_up_others(coach: CoachClient, phones: PushService) -> None:
    """More messages than there are places wait for one host, and a device of another host receives its own."""
    user = await coach.interactive()
    hanging = await subscribe(phones, user, is_hanging=True)
    for _ in range(push.CONNECTIONS + 10):
        await send(coach.ctx, coach.ctx.caller.id, new_message())
    await until(lambda: hanging.hanging, "a message that hangs")
    async with push_service() as others:
        customer = await coach.create_customer()
        client = await coach.as_client(customer)
        device = await subscribe(others, client)
        await send(coach.ctx, ObjectId(customer["_id"]), new_message())
        await until(lambda: device.messages, "the message of another push service")
    assert not hanging.messages
    await coach.ctx.db["jobs"].delete_many({"kind": push.SEND})


async def test_nothing_is_sent_to_a_session_that_has_ended(coach: CoachClient, phones: PushService) -> None:
    """Also what waits at that time."""
    user = await coach.interactive()
    device = await subscribe(phones, user, respond=429, retry_after="1")
    await send(coach.ctx, coach.ctx.caller.id, new_message())
    await until(lambda: device.attempts, "an attempt")
    (await user.post("/auth/logout")).ok()
    device.respond = 201
    await until(lambda: is_done(coach), "no message waits")
    assert device.messages == []
    await send(coach.ctx, coach.ctx.caller.id, new_message())
    assert await is_done(coach)


async def test_a_new_key_is_for_new_devices_and_the_others_go_on(coach: CoachClient, phones: PushService) -> None:
    user = await coach.interactive()
    old = await subscribe(phones, user)
    published = await push.rotate_key(coach.ctx.services)
    assert (await user.get("/push-public-key")).ok() == {"key": published} != {"key": old.server_key}
    new = await subscribe(phones, user)
    assert new.server_key == published
    await send(coach.ctx, coach.ctx.caller.id, new_message())
    await until(lambda: old.messages and new.messages, "both devices")
    assert phones.rejected == []


async def test_a_long_text_is_shortened_to_what_push_services_take(coach: CoachClient, phones: PushService) -> None:
    user = await coach.interactive()
    device = await subscribe(phones, user)
    await send(coach.ctx, coach.ctx.caller.id, new_message("ä" * 500, text="𝄞" * 5000))
    await until(lambda: device.messages, "the message")
    [content] = device.contents
    assert content["title"] == "ä" * 119 + "…" and content["body"].endswith("…")


async def test_the_signature_names_the_push_service_and_the_operator() -> None:
    private_key = push.new_private_key()
    header = push.authorization_of("https://push.example.com:8443/a?b", private_key, "mailto:op@example.com")
    token = header.removeprefix("vapid t=").partition(",")[0]
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["aud"], claims["sub"]) == ("https://push.example.com:8443", "mailto:op@example.com")


async def test_secrets_are_encrypted_with_a_new_master_key(
    coach: CoachClient, phones: PushService, settings: Settings
) -> None:
    await coach.ctx.db["pushSubscriptions"].delete_many({})
    device, services = await subscribe(phones, await coach.interactive()), coach.ctx.services
    old, new = parse_master_key(settings.secret_keys[0]), parse_master_key(new_master_key())
    both, only_new = (replace(services, vault=Vault(each)) for each in ([new, old], [new]))
    keys: int = await coach.ctx.db["pushKeys"].count_documents({})
    assert [each async for each in push.rotate_master_key(both)] == [True] * (keys + 1)
    assert [each async for each in push.rotate_master_key(both)] == [False] * (keys + 1)
    stored: Any = await coach.ctx.db["pushSubscriptions"].find_one({})
    assert push.open_target(only_new.vault, stored)["endpoint"] == device.endpoint
    for iterate_unreadable in (push.iterate_unreadable_keys, push.iterate_unreadable):
        assert [each async for each in iterate_unreadable(only_new)] == []
    assert [each async for each in push.iterate_unreadable(services)] == [stored["_id"]]
    await coach.ctx.db["pushKeys"].delete_many({})  # other tests have only the old master key


async def test_a_subscription_that_has_expired_is_not_used(coach: CoachClient, phones: PushService) -> None:
    """MongoDB deletes it up to a minute later."""
    user = await coach.interactive()
    expired, device = await subscribe(phones, user), await subscribe(phones, user)
    subscriptions = coach.ctx.db["pushSubscriptions"]
    [oldest, _] = await subscriptions.find({"companyId": coach.ctx.company_id}).sort("_id", 1).to_list(None)
    await subscriptions.update_one({"_id": oldest["_id"]}, {"$set": {"expiresAt": now() - timedelta(seconds=1)}})
    await send(coach.ctx, coach.ctx.caller.id, new_message())
    await until(lambda: device.messages, "the message")
    await until(lambda: is_done(coach), "no message waits")
    assert expired.attempts == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("Mon, 01 Jan 2029 12:01:30 GMT", 90),
        ("Mon, 01 Jan 2029 11:00:00 -0100", 0),
        ("Mon, 01 Jan 2029 12:00:30", 30),
        ("Mon, 01 Jan 2029 11:59:00 GMT", 0),
        ("17", 17),
        ("soon", 0),
        ("Mon, 01 Jan 99999999999999999999 12:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 -1400", 1_000_000_000),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str, seconds: int) -> None:
    response = OutboundResponse(429, CIMultiDict({"retry-after": header}), b"", is_truncated=False)
    with time_machine.travel(datetime(2029, 1, 1, 12, tzinfo=UTC), tick=False):
        assert response.wait_seconds == seconds
