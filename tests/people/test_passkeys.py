"""Passkeys over REST, with an authenticator in software: registered, used with and without the password, and refused."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
import time_machine

from coaching_service.people import second_factor
from tests.conftest import PASSWORD
from tests.people.test_second_factor import (
    address,
    answer,
    challenged,
    code_of,
    employee_of,
    set_up,
    sign_in,
    sign_in_again_later,
)
from tests.support.authenticator import PRESENT, VERIFIED, Authenticator, register
from tests.support.client import CoachClient

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins", "wednesday")
PASSKEYS, OPTIONS = "/auth/passkeys", "/auth/second-factor/options"


async def begin(anonymous: CoachClient) -> Any:
    """Begin to sign in with a passkey."""
    return (await anonymous.post(OPTIONS, {})).ok()


async def use(anonymous: CoachClient, challenge: str, assertion: dict[str, Any]) -> Any:
    return await anonymous.post("/auth/second-factor", {"challenge": challenge, "assertion": assertion})


async def test_a_passkey_signs_in_without_the_password_and_with_it(coach: CoachClient, anonymous: CoachClient) -> None:
    session = await coach.interactive()
    public_key = (await session.post(f"{PASSKEYS}/options", {})).ok()["publicKey"]
    assert public_key["rp"]["id"] == "coaching.test"
    assert public_key["user"]["name"] == address(coach)
    selection = public_key["authenticatorSelection"]
    assert (selection["residentKey"], selection["userVerification"]) == ("required", "required")
    phone = Authenticator(counter=1)
    created = (await session.post(PASSKEYS, {"name": "Phone", "credential": phone.create(public_key)})).ok(201)
    assert set(created) == {"_id", "name", "createdAt", "lastUsedAt"}
    assert (created["name"], created["lastUsedAt"]) == ("Phone", None)
    again = (await session.post(f"{PASSKEYS}/options", {})).ok()["publicKey"]
    assert [each["id"] for each in again["excludeCredentials"]] == [phone.create(again)["id"]]
    assert (await session.get("/auth/second-factor")).ok() == {"methods": ["passkey"], "recoveryCodesLeft": 0}

    options = await begin(anonymous)
    assert set(options) == {"challenge", "publicKey"}
    assert options["publicKey"]["rpId"] == "coaching.test"
    assert options["publicKey"]["userVerification"] == "required"
    assert options["publicKey"].get("allowCredentials", []) == [], "nobody is named"
    phone.counter = 2
    tokens = (await use(anonymous, options["challenge"], phone.get(options["publicKey"]))).ok()
    assert (await anonymous.with_bearer(tokens["accessToken"]).get("/me")).ok()["email"] == address(coach)
    (listed,) = (await session.get(PASSKEYS)).ok()
    assert listed["_id"] == created["_id"]
    assert listed["lastUsedAt"] is not None

    refused = (await sign_in(anonymous, address(coach))).refused(401)
    assert refused["code"] == "SECOND_FACTOR_REQUIRED"
    assert refused["methods"] == ["passkey"]
    assert [each["id"] for each in refused["publicKey"]["allowCredentials"]] == [phone.create(again)["id"]]
    phone.counter = 3
    (await use(anonymous, refused["challenge"], phone.get(refused["publicKey"]))).ok()

    (await session.delete(f"{PASSKEYS}/{created['_id']}")).ok(204)
    assert (await session.get(PASSKEYS)).ok() == []
    (await session.delete(f"{PASSKEYS}/{created['_id']}")).refused(404)
    (await sign_in(anonymous, address(coach))).ok()
    options = await begin(anonymous)
    phone.counter = 4
    gone = (await use(anonymous, options["challenge"], phone.get(options["publicKey"]))).refused(401)
    assert gone["code"] == "PASSKEY_REJECTED"
    where = {"companyId": coach.ctx.company_id, "target.kind": "passkey"}
    actions = await coach.ctx.db["audit"].find(where).sort("_id", 1).to_list()
    assert [each["action"] for each in actions] == ["passkey.added", "passkey.removed"]


WRONG_ANSWERS: tuple[dict[str, Any], ...] = (
    {"origin": "http://coaching.test.evil.example"},
    {"origin": "https://coaching.test"},
    {"origin": "http://coaching.test:81"},
    {"host": "evil.example"},
    {"host": "test"},
    {"flags": PRESENT},
    {"flags": VERIFIED},
    {"counter": 4},
    {"counter": 5},
    {"counter": 0},
    {"key": Authenticator().key},
    {"credential_id": b"of nobody at all"},
)


async def test_wrong_answers(coach: CoachClient, anonymous: CoachClient) -> None:
    """Of another origin or host, without its user, with a counter that does not go up, or with another key."""
    session = await coach.interactive()
    phone = await register(session, counter=5)
    for wrong in WRONG_ANSWERS:
        options = await begin(anonymous)
        asserted = replace(phone, **{"counter": 6, **wrong}).get(options["publicKey"])
        assert (await use(anonymous, options["challenge"], asserted)).refused(401)["code"] == "PASSKEY_REJECTED", wrong
        asked = (await sign_in(anonymous, address(coach))).refused(401)
        asserted = replace(phone, **{"counter": 6, **wrong}).get(asked["publicKey"])
        assert (await use(anonymous, asked["challenge"], asserted)).refused(401)["code"] == "PASSKEY_REJECTED", wrong
        await coach.ctx.db["rateLimits"].delete_many({})
    phone.counter = 6
    (await use(anonymous, options["challenge"], phone.get(options["publicKey"]))).ok(), "the right one still answers"


async def test_wrong_registrations(coach: CoachClient) -> None:
    session = await coach.interactive()
    wrongs: tuple[dict[str, Any], ...] = (
        {"origin": "http://evil.example"},
        {"host": "evil.example"},
        {"flags": PRESENT},
        {"flags": VERIFIED},
    )
    for wrong in wrongs:
        public_key = (await session.post(f"{PASSKEYS}/options", {})).ok()["publicKey"]
        credential = Authenticator(**wrong).create(public_key)
        (await session.post(PASSKEYS, {"name": "Phone", "credential": credential})).refused(400, "credential")
    assert (await session.get(PASSKEYS)).ok() == []


async def test_challenges_are_answered_once_by_whom_they_ask(
    coach: CoachClient, other_company: CoachClient, anonymous: CoachClient
) -> None:
    session, stranger = await coach.interactive(), await other_company.interactive()
    public_key = (await session.post(f"{PASSKEYS}/options", {})).ok()["publicKey"]
    phone = Authenticator()
    body: dict[str, Any] = {"name": "Phone", "credential": phone.create(public_key)}
    (await stranger.post(PASSKEYS, body)).refused(400), "the challenge of another user"
    made_up = {"name": "Phone", "credential": phone.create({"challenge": "bWFkZS11cA"})}
    (await session.post(PASSKEYS, made_up)).refused(400)
    damaged = {"clientDataJSON": "AQ", "attestationObject": body["credential"]["response"]["attestationObject"]}
    for broken in (damaged, {**body["credential"]["response"], "attestationObject": "AQ"}):
        (await session.post(PASSKEYS, {**body, "credential": {**body["credential"], "response": broken}})).refused(400)
    with time_machine.travel(time.time() + 301, tick=True):
        (await session.post(PASSKEYS, body)).refused(400), "too late"
    (await session.post(PASSKEYS, body)).ok(201)
    (await session.post(PASSKEYS, body)).refused(400), "used"
    other_key = (await stranger.post(f"{PASSKEYS}/options", {})).ok()["publicKey"]
    copied = {"name": "Copy", "credential": phone.create(other_key)}
    assert (await stranger.post(PASSKEYS, copied)).refused(409)["code"] == "PASSKEY_EXISTS"

    other_phone = await register(stranger)
    asked = (await sign_in(anonymous, address(coach))).refused(401)
    of_other = other_phone.get(asked["publicKey"])
    assert (await use(anonymous, asked["challenge"], of_other)).refused(401)["code"] == "PASSKEY_REJECTED"
    (await use(anonymous, public_key["challenge"], phone.get(public_key))).refused(401), "not of a sign-in"
    options = await begin(anonymous)
    replayed = phone.get(options["publicKey"])
    elsewhere = phone.get(options["publicKey"], challenge=(await begin(anonymous))["challenge"])
    (await use(anonymous, options["challenge"], elsewhere)).refused(401), "it answers another challenge"
    both = await asyncio.gather(*(use(anonymous, options["challenge"], replayed) for _ in range(2)))
    assert sorted(reply.status for reply in both) == [200, 401], "one challenge begins one session"
    refused = (await use(anonymous, options["challenge"], replayed)).refused(401)
    assert refused["code"] == "CHALLENGE_REJECTED"
    late = await begin(anonymous)
    with time_machine.travel(time.time() + 301, tick=True):
        (await use(anonymous, late["challenge"], phone.get(late["publicKey"]))).refused(401)
    me = (await session.delete(f"{PASSKEYS}/{(await stranger.get(PASSKEYS)).ok()[0]['_id']}")).refused(404)
    assert me["code"] == "PASSKEY_NOT_FOUND"


async def test_changes_need_a_recent_sign_in(coach: CoachClient) -> None:
    session = await coach.interactive()
    public_key = (await session.post(f"{PASSKEYS}/options", {})).ok()["publicKey"]
    await register(session)
    (listed,) = (await session.get(PASSKEYS)).ok()
    await sign_in_again_later(coach)
    body = {"name": "Phone", "credential": Authenticator().create(public_key)}
    for refused in (
        await session.post(f"{PASSKEYS}/options", {}),
        await session.post(PASSKEYS, body),
        await session.delete(f"{PASSKEYS}/{listed['_id']}"),
    ):
        assert refused.refused(403)["code"] == "SIGN_IN_AGAIN"
    assert (await session.get(PASSKEYS)).ok() == [listed]
    (await coach.post(f"{PASSKEYS}/options", {})).refused(403), "no API key"


async def test_passkeys_beside_an_application(coach: CoachClient, anonymous: CoachClient) -> None:
    """Either answers a challenge; wrong passwords of others do not lock the passkey; a removed factor ends both."""
    session = await coach.interactive()
    secret, _ = await set_up(session)
    phone = await register(session)
    asked = (await sign_in(anonymous, address(coach))).refused(401)
    assert asked["methods"] == ["totp", "recoveryCode", "passkey"]
    (await answer(anonymous, asked["challenge"], code=code_of(secret))).ok()
    for _ in range(7):
        await sign_in(anonymous, address(coach), "a wrong password")
    (await sign_in(anonymous, address(coach))).refused(429)
    options = await begin(anonymous)
    (await use(anonymous, options["challenge"], phone.get(options["publicKey"]))).ok()
    (await session.delete("/auth/second-factor")).ok(204)
    (await sign_in(anonymous, address(coach))).ok()
    assert (await session.get(PASSKEYS)).ok() == []
    options = await begin(anonymous)
    (await use(anonymous, options["challenge"], phone.get(options["publicKey"]))).refused(401)


async def test_wrong_answers_are_failures_of_the_passkey(coach: CoachClient, anonymous: CoachClient) -> None:
    phone = await register(await coach.interactive())
    options = await begin(anonymous)
    forged = replace(phone, key=Authenticator().key).get(options["publicKey"])
    replies = [(await use(anonymous, options["challenge"], forged)).status for _ in range(7)]
    assert replies == [401] * 5 + [429] * 2
    (await use(anonymous, options["challenge"], phone.get(options["publicKey"]))).refused(429)


async def test_the_rule_accepts_passkeys(coach: CoachClient, anonymous: CoachClient) -> None:
    """A session that registers one counts as one with a second factor, until it is removed."""
    owner = await coach.interactive()
    await register(owner)
    _, email = await employee_of(coach, anonymous)
    employee = anonymous.with_bearer((await sign_in(anonymous, email)).ok()["accessToken"])
    (await owner.patch("/coach/account", {"requireSecondFactor": True})).ok()
    assert (await employee.get("/coach/account")).refused(403)["code"] == "SECOND_FACTOR_REQUIRED"
    phone = await register(employee)
    (await employee.get("/coach/account")).ok()
    options = await begin(anonymous)
    tokens = (await use(anonymous, options["challenge"], phone.get(options["publicKey"]))).ok()
    (await anonymous.with_bearer(tokens["accessToken"]).get("/coach/account")).ok()
    (listed,) = (await employee.get(PASSKEYS)).ok()
    (await employee.delete(f"{PASSKEYS}/{listed['_id']}")).ok(204)
    (await employee.get("/coach/account")).refused(403)


async def test_passkeys_of_clients_end_with_their_access(coach: CoachClient, anonymous: CoachClient) -> None:
    email = f"ana@{coach.ctx.company_id}.test"
    ana = await coach.create_customer("Ana", email=email, sendInvitation=False)
    body = {"token": ana["firstAccessToken"], "password": PASSWORD}
    session = anonymous.with_bearer((await anonymous.post("/auth/first-access", body)).ok()["accessToken"])
    phone = await register(session)
    options = await begin(anonymous)
    tokens = (await use(anonymous, options["challenge"], phone.get(options["publicKey"]))).ok()
    assert (await anonymous.with_bearer(tokens["accessToken"]).get("/customer/me")).ok()["_id"] == ana["_id"]
    owner = await coach.interactive()
    acting = anonymous.with_bearer((await owner.post(f"/coach/customers/{ana['_id']}/impersonate")).ok()["accessToken"])
    assert (await acting.post(f"{PASSKEYS}/options", {})).refused(403)["code"] == "IMPERSONATED"
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    options = await begin(anonymous)
    (await use(anonymous, options["challenge"], phone.get(options["publicKey"]))).refused(401)
    (await coach.put("/coach/customers/unarchive", {"id": ana["_id"]})).ok()
    (await owner.delete(f"/coach/customers/{ana['_id']}/second-factor")).ok(204)
    assert await coach.ctx.db["passkeys"].count_documents({"companyId": coach.ctx.company_id}) == 0


async def test_limits_and_addresses(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_factor, "MAX_PASSKEYS", 1)
    session = await coach.interactive()
    public_key = (await session.post(f"{PASSKEYS}/options", {})).ok()["publicKey"]
    await register(session)
    assert (await session.post(f"{PASSKEYS}/options", {})).refused(409)["code"] == "TOO_MANY_PASSKEYS"
    body = {"name": "Phone", "credential": Authenticator().create(public_key)}
    (await session.post(PASSKEYS, body)).refused(409)
    for base, host in (
        ("http://127.0.0.1:8080", None),
        ("http://127.1", None),
        ("https://[2001:db8::1]", None),
        ("https://Coach.Example.com:443", "coach.example.com"),
        ("https://exämple.com", "xn--exmple-cua.com"),
        ("http://localhost:8080", "localhost"),
    ):
        services = replace(coach.ctx.services, base_url=base)
        assert second_factor.relying_party(services) == host


async def test_no_passkeys_at_an_address_without_a_name(
    public_server: Any, coach: CoachClient, anonymous: CoachClient
) -> None:
    """A user who has one still needs it: the address of the service may be a mistake."""
    session = await coach.interactive()
    await register(session)
    at_address = CoachClient(public_server, None, coach.ctx)
    with_session = at_address.with_bearer(session.headers["Authorization"].removeprefix("Bearer "))
    for refused in (await at_address.post(OPTIONS, {}), await with_session.post(f"{PASSKEYS}/options", {})):
        assert refused.refused(409)["code"] == "PASSKEYS_UNAVAILABLE"
    asked = (await sign_in(at_address, address(coach))).refused(401)
    assert asked["methods"] == []
    assert "publicKey" not in asked
    await at_address.close()
    assert (await challenged(anonymous, address(coach))) != ""
