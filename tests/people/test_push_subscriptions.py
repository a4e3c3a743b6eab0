"""The devices on which coaches and clients receive notifications (contract, section 19)."""

from __future__ import annotations

import secrets
from typing import Any, cast

import pytest

from coaching_service.core.errors import Unauthorized
from coaching_service.core.ids import ObjectId
from coaching_service.people import push
from coaching_service.people.push import NewPushSubscription
from coaching_service.people.sessions import service as sessions
from tests.support.client import UNKNOWN, CoachClient
from tests.support.push_service import Device

Json = dict[str, Any]
BOTH = pytest.mark.parametrize("kind", ["coach", "client"])
_PATHS = {"coach": "/push-subscriptions", "client": "/customer/push-subscriptions"}


def new_subscription(**fields: Any) -> Json:
    """A subscription of a browser with an endpoint of its own."""
    device = Device(f"https://push.invalid/send/{secrets.token_urlsafe(12)}", "")
    return {**device.subscription, "userAgent": "Phone", **fields}


async def person(coach: CoachClient, kind: str) -> CoachClient:
    """A session of the coach, or of a new client."""
    return await coach.interactive() if kind == "coach" else await coach.as_client(await coach.create_customer())


async def stored_of(coach: CoachClient, created: Json) -> Json | None:
    """The document of a subscription."""
    found: Json | None = await coach.ctx.db["pushSubscriptions"].find_one({"_id": ObjectId(created["_id"])})
    return found


@BOTH
async def test_a_device_subscribes_replaces_and_ends_its_subscription(coach: CoachClient, kind: str) -> None:
    user, path = await person(coach, kind), _PATHS[kind]
    subscription = new_subscription()
    created = (await user.post(path, subscription)).ok(201)
    assert set(created) == {"_id", "userAgent", "createdAt", "lastUsedAt"}
    assert (created["userAgent"], created["lastUsedAt"]) == ("Phone", None)
    replaced = (await user.post(path, {**subscription, "userAgent": "Phone, updated"})).ok(200)
    assert replaced == {**created, "userAgent": "Phone, updated"}
    second = (await user.post(path, {**new_subscription(), "expirationTime": None})).ok(201)
    assert (await user.get(path)).ok() == [second, replaced]
    (await user.delete(f"{path}/{created['_id']}")).ok(204)
    (await user.delete(f"{path}/{created['_id']}")).refused(404)
    (await user.delete(f"{path}/{UNKNOWN}")).refused(404)
    assert (await user.get(path)).ok() == [second]
    long = "Mozilla/5.0 (application with a browser) " * 20
    assert (await user.post(path, {**subscription, "userAgent": long})).ok(201)["userAgent"] == long.strip()
    subscription = new_subscription()
    subscription.pop("userAgent")
    assert (await user.post(path, subscription)).ok(201)["userAgent"] == ""


async def test_addresses_and_keys_of_devices_are_stored_encrypted(coach: CoachClient) -> None:
    user, subscription = await coach.interactive(), new_subscription()
    stored = await stored_of(coach, (await user.post("/push-subscriptions", subscription)).ok(201))
    for secret in (subscription["endpoint"], *subscription["keys"].values()):
        assert secret not in repr(stored)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"endpoint": "http://push.example.com/a"}, "INVALID_PUSH_ENDPOINT"),
        ({"endpoint": "https://127.0.0.1/a"}, "INVALID_PUSH_ENDPOINT"),
        ({"endpoint": "https://localhost/a"}, "INVALID_PUSH_ENDPOINT"),
        ({"endpoint": "no address"}, "INVALID_PUSH_ENDPOINT"),
        ({"endpoint": None}, "NULL"),
        ({"endpoint": "https://push.example.com/" + "a" * 2000}, "TOO_LONG"),
        ({"keys": {"p256dh": "AAAA", "auth": "BTBZMqHH6r4Tts7J_aSIgg"}}, "INVALID_PUSH_KEY"),
        ({"keys": {"auth": "BTBZMqHH6r4Tts7J_aSIgg"}}, "REQUIRED"),
        ({"userAgent": 7}, "NOT_A_STRING"),
    ],
)
async def test_invalid_subscriptions_are_refused(coach: CoachClient, change: Json, code: str) -> None:
    user = await coach.interactive()
    reply = await user.post("/push-subscriptions", {**new_subscription(), **change})
    assert [each["code"] for each in reply.refused(400)["errors"]] == [code]


async def test_the_secret_of_a_subscription_has_16_bytes(coach: CoachClient) -> None:
    user, subscription = await coach.interactive(), new_subscription()
    subscription["keys"]["auth"] = "AAAA"
    (await user.post("/push-subscriptions", subscription)).refused(400, "keys.auth")


async def test_api_keys_and_impersonation_cannot_subscribe(coach: CoachClient) -> None:
    (await coach.post("/push-subscriptions", new_subscription())).refused(403)
    customer = await coach.create_customer()
    session = await coach.interactive()
    token = (await session.post(f"/coach/customers/{customer['_id']}/impersonate")).ok(200)["accessToken"]
    reply = await coach.with_bearer(token).post("/customer/push-subscriptions", new_subscription())
    assert reply.refused(403)["code"] == "IMPERSONATED"


async def test_the_public_key_is_the_same_for_everybody(coach: CoachClient) -> None:
    first = (await coach.get("/push-public-key")).ok()
    client = await coach.as_client(await coach.create_customer())
    assert first == (await client.get("/push-public-key")).ok()
    assert len(first["key"]) == 87 and first["key"].startswith("B")


async def test_a_device_belongs_to_whoever_signed_in_on_it_last(coach: CoachClient, other_company: CoachClient) -> None:
    subscription = new_subscription()
    ana = await coach.as_client(await coach.create_customer("Ana"))
    ben = await coach.as_client(await coach.create_customer("Ben"))
    stranger = await other_company.interactive()
    (await ana.post("/customer/push-subscriptions", subscription)).ok(201)
    (await ben.post("/customer/push-subscriptions", subscription)).ok(201)
    assert (await ana.get("/customer/push-subscriptions")).ok() == []
    (await stranger.post("/push-subscriptions", subscription)).ok(201)
    assert (await ben.get("/customer/push-subscriptions")).ok() == []
    assert len((await stranger.get("/push-subscriptions")).ok()) == 1


@BOTH
async def test_signing_out_ends_only_the_devices_of_the_session(coach: CoachClient, kind: str) -> None:
    customer = await coach.create_customer()

    async def sign_in() -> CoachClient:
        return await coach.interactive() if kind == "coach" else await coach.as_client(customer)

    first, second, path = await sign_in(), await sign_in(), _PATHS[kind]
    ended = (await first.post(path, new_subscription())).ok(201)
    other = (await second.post(path, new_subscription())).ok(201)
    (await first.post("/auth/logout")).ok()
    assert await stored_of(coach, ended) is None
    assert (await second.get(path)).ok() == [other]


async def test_a_new_password_ends_the_devices_of_the_other_sessions(coach: CoachClient) -> None:
    customer = await coach.create_customer(email=f"{secrets.token_hex(6)}@example.com")
    password, session = "a long password of a client", await coach.interactive()
    (await session.put(f"/coach/customers/{customer['_id']}/password", {"password": password})).ok()
    first, second = await coach.as_client(customer), await coach.as_client(customer)
    path = "/customer/push-subscriptions"
    ended = (await first.post(path, new_subscription())).ok(201)
    remaining = (await second.post(path, new_subscription())).ok(201)
    change = {"currentPassword": password, "password": "another long password"}
    (await second.put("/customer/me/password", change)).ok()
    assert await stored_of(coach, ended) is None
    assert (await second.get(path)).ok() == [remaining]
    (await session.put(f"/coach/customers/{customer['_id']}/password", {"password": password})).ok()
    assert await stored_of(coach, remaining) is None


async def test_a_spent_refresh_token_ends_the_devices_of_its_session(coach: CoachClient) -> None:
    tokens = await sessions.create_session(coach.ctx, coach.ctx.caller.id, "coach")
    user = coach.with_bearer(tokens["accessToken"])
    created = (await user.post("/push-subscriptions", new_subscription())).ok(201)
    spent = {"refreshToken": tokens["refreshToken"]}
    (await user.post("/auth/refresh", spent)).ok()
    assert await stored_of(coach, created) is not None
    (await user.post("/auth/refresh", spent)).refused(401)
    assert await stored_of(coach, created) is None


async def test_a_session_that_ended_meanwhile_cannot_subscribe(coach: CoachClient) -> None:
    tokens = await sessions.create_session(coach.ctx, coach.ctx.caller.id, "coach")
    principal = await sessions.authenticate(coach.ctx.services, tokens["accessToken"])
    ctx = coach.ctx.acting_as(principal)
    await sessions.sign_out(ctx)
    with pytest.raises(Unauthorized):
        await push.create_push_subscription(ctx, cast("NewPushSubscription", new_subscription()))


async def test_a_removed_employee_has_no_devices(coach: CoachClient, interactive: CoachClient) -> None:
    email = f"{secrets.token_hex(6)}@example.com"
    employee = (await interactive.post("/coach/employees", {"name": "Eli", "email": email})).ok(201)
    tokens = await sessions.create_session(coach.ctx, ObjectId(employee["_id"]), "coach")
    created = (await coach.with_bearer(tokens["accessToken"]).post("/push-subscriptions", new_subscription())).ok(201)
    (await interactive.delete(f"/coach/employees/{employee['_id']}")).ok(204)
    assert await stored_of(coach, created) is None


async def test_of_more_than_20_devices_the_oldest_end(coach: CoachClient) -> None:
    user = await coach.interactive()
    created = [(await user.post("/push-subscriptions", new_subscription())).ok(201) for _ in range(21)]
    listed = (await user.get("/push-subscriptions")).ok()
    assert [each["_id"] for each in listed] == [each["_id"] for each in reversed(created[1:])]
