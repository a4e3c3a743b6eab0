"""Signing up, in and out; renewing; forgotten passwords (contract 2)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from argon2 import Type

from coaching_service.app import SERVICES
from coaching_service.core.database.context import in_transaction
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.identities import service as identities
from coaching_service.settings import Settings
from tests.conftest import CHEAP_HASHER, PASSWORD, SERVICE_HASHER
from tests.support.client import CoachClient
from tests.support.mails import part_of, read_mails
from tests.support.other_process import AsServed
from tests.support.service_process import until

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins")


async def sign_in(anonymous: CoachClient, email: str, password: str = PASSWORD) -> Any:
    return await anonymous.post("/auth/login", {"email": email, "password": password})


def address(coach: CoachClient) -> str:
    return str(coach.ctx.caller.email)


async def test_sign_up_creates_a_company_and_signs_the_owner_in(anonymous: CoachClient) -> None:
    email = "new.owner@signup.test"
    body = {"companyName": "New Gym", "name": "Nora", "email": email, "password": PASSWORD}
    tokens = (await anonymous.post("/auth/register", body)).ok(201)

    owner = anonymous.with_bearer(tokens["accessToken"])
    me = (await owner.get("/me")).ok()
    assert (me["role"], me["via"], me["email"]) == ("OWNER", "session", email)
    assert (tokens["tokenType"], tokens["expiresIn"]) == ("Bearer", 3600)
    assert (await owner.customers())["totalDocs"] == 0, "a new company has no clients"
    assert (await owner.get("/coach/account")).ok()["companyName"] == "New Gym"
    (await anonymous.post("/auth/register", body | {"email": email.upper()})).refused(409)
    (await anonymous.post("/auth/register", body | {"email": "x@y.test", "password": " " * 12})).refused(
        400, "password"
    )
    (await anonymous.post("/auth/register", body | {"email": "x@y.test", "password": "short"})).refused(
        400, "password", "12"
    )


async def test_signing_in_and_out(coach: CoachClient, anonymous: CoachClient) -> None:
    tokens = (await sign_in(anonymous, address(coach).upper())).ok()
    session = anonymous.with_bearer(tokens["accessToken"])
    assert (await session.get("/me")).ok()["_id"] == str(coach.ctx.caller.id)

    (await session.post("/auth/logout")).ok()

    assert (await session.get("/me")).refused(401) == {"statusCode": 401, "message": "Unauthorized"}
    (await anonymous.post("/auth/refresh", {"refreshToken": tokens["refreshToken"]})).refused(401)
    (await coach.post("/auth/logout")).refused(403)


async def test_unknown_address_and_wrong_password_get_the_same_response(
    coach: CoachClient, anonymous: CoachClient
) -> None:
    wrong = (await sign_in(anonymous, address(coach), "not this one, sorry")).refused(401)
    unknown = (await sign_in(anonymous, "nobody@nowhere.test")).refused(401)
    assert wrong == unknown
    assert set(wrong) == {"statusCode", "message", "error", "code", "docs"}


async def test_abandoned_sign_in_is_not_verified(coach: CoachClient, as_served: AsServed) -> None:
    """Sign-ins wait for one another; an abandoned one is skipped and does not count as a failure."""
    body = json.dumps({"email": address(coach), "password": "wrong password"})
    head = f"POST /auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    services = as_served.app[SERVICES]
    line, registry = services.sign_in_slot, services.metrics.registry
    async with line.holding("another"):  # another sign-in is being verified
        _, writer = await asyncio.open_connection(as_served.host, as_served.port)
        writer.write(f"{head}\r\n\r\n{body}".encode())
        await until(lambda: line.queued == 1, "the request waits in line")
        writer.close()
        await writer.wait_closed()
        await until(as_served.all_disconnected, "the service notices it")

    is_disconnected = {"method": "POST", "route": "/auth/login", "status": "499"}
    await until(lambda: registry.get_sample_value("http_requests_total", is_disconnected), "the line moves on")
    assert await coach.ctx.db["rateLimits"].count_documents({}) == 0


async def test_account_is_locked_from_the_sixth_failure(coach: CoachClient, anonymous: CoachClient) -> None:
    """Contract 2: from the 6th failure of an account in 15 minutes 429 with `Retry-After`; a success clears it."""
    email = address(coach)
    for _ in range(4):
        (await sign_in(anonymous, email, "wrong password")).refused(401)
    (await sign_in(anonymous, email)).ok()
    for _ in range(5):
        (await sign_in(anonymous, email, "wrong password")).refused(401)
    sixth = await sign_in(anonymous, email, "wrong password")
    sixth.refused(429)
    assert 0 < int(sixth.headers["Retry-After"]) <= 901
    (await sign_in(anonymous, email)).refused(429), "not even the right one"

    await coach.ctx.db["rateLimits"].update_many({}, {"$set": {"until": now() - timedelta(seconds=1)}})
    (await sign_in(anonymous, email)).ok()


async def test_concurrent_guesses_are_counted(coach: CoachClient, anonymous: CoachClient) -> None:
    replies = await asyncio.gather(*(sign_in(anonymous, address(coach), f"guess number {n}") for n in range(12)))
    assert sorted(reply.status for reply in replies) == [401] * 5 + [429] * 7


async def test_many_users_sign_in_concurrently(coach: CoachClient, anonymous: CoachClient) -> None:
    replies = await asyncio.gather(*(sign_in(anonymous, address(coach)) for _ in range(10)))
    assert [reply.status for reply in replies] == [200] * 10


async def test_network_address_is_locked_from_the_thirtieth_failure(coach: CoachClient, anonymous: CoachClient) -> None:
    for number in range(29):
        (await sign_in(anonymous, f"nobody{number}@nowhere.test", "x")).refused(401)
    (await sign_in(anonymous, "nobody29@nowhere.test", "x")).refused(429)
    (await sign_in(anonymous, address(coach))).refused(429)
    await coach.ctx.db["rateLimits"].delete_many({})
    for _ in range(31):
        (await sign_in(anonymous, address(coach))).ok()


async def test_password_resets_of_a_network_address_are_limited(coach: CoachClient, anonymous: CoachClient) -> None:
    """No credential is needed, and each request causes work."""
    for number in range(20):
        (await anonymous.post("/auth/password/forgot", {"email": f"nobody{number}@nowhere.test"})).ok()
    known = await anonymous.post("/auth/password/forgot", {"email": address(coach)})
    unknown = await anonymous.post("/auth/password/forgot", {"email": "one.too.many@nowhere.test"})
    assert known.refused(429) == unknown.refused(429)
    assert 0 < int(unknown.headers["Retry-After"]) <= 901
    (await sign_in(anonymous, address(coach))).ok()


async def test_sign_ups_of_a_network_address_are_limited(coach: CoachClient, anonymous: CoachClient) -> None:
    """Also those that are refused count: each could reveal whether an address signs in."""
    body = {"companyName": "Gym", "name": "Nora", "email": address(coach), "password": PASSWORD}
    replies = await asyncio.gather(*(anonymous.post("/auth/register", body) for _ in range(32)))
    assert sorted(reply.status for reply in replies) == [409] * 30 + [429] * 2
    late = await anonymous.post("/auth/register", body | {"email": f"late@{coach.ctx.company_id}.test"})
    late.refused(429)
    assert 0 < int(late.headers["Retry-After"]) <= 901


async def test_session_is_renewed_and_ended_by_a_spent_token(coach: CoachClient, anonymous: CoachClient) -> None:
    """Contract 2: rotation; use of a spent refresh token is 401 and revokes the whole family at once."""
    first = (await sign_in(anonymous, address(coach))).ok()
    second = (await anonymous.post("/auth/refresh", {"refreshToken": first["refreshToken"]})).ok()
    assert second["refreshToken"] != first["refreshToken"]
    for tokens in (first, second):
        (await anonymous.with_bearer(tokens["accessToken"]).get("/me")).ok()

    (await anonymous.post("/auth/refresh", {"refreshToken": first["refreshToken"]})).refused(401)

    (await anonymous.post("/auth/refresh", {"refreshToken": second["refreshToken"]})).refused(401)
    for tokens in (first, second):
        (await anonymous.with_bearer(tokens["accessToken"]).get("/me")).refused(401)


@pytest.mark.parametrize("token", ["", "x", ".", "a.b", "é", "\u0000"])
async def test_unknown_refresh_token_is_rejected(anonymous: CoachClient, token: str) -> None:
    reply = await anonymous.post("/auth/refresh", {"refreshToken": token})
    assert reply.status in (400, 401)


async def test_access_token_expires(coach: CoachClient, anonymous: CoachClient) -> None:
    tokens = (await sign_in(anonymous, address(coach))).ok()
    past = now() - timedelta(seconds=1)
    await coach.ctx.db["sessions"].update_many({"companyId": coach.ctx.company_id}, {"$set": {"access.0.until": past}})
    (await anonymous.with_bearer(tokens["accessToken"]).get("/me")).refused(401)
    (await anonymous.post("/auth/refresh", {"refreshToken": tokens["refreshToken"]})).ok()


async def test_tokens_are_stored_only_as_hashes(coach: CoachClient, anonymous: CoachClient) -> None:
    tokens = (await sign_in(anonymous, address(coach))).ok()
    stored = repr(await coach.ctx.db["sessions"].find({"companyId": coach.ctx.company_id}).to_list(None))
    family, secret = tokens["refreshToken"].split(".")
    for part in (tokens["accessToken"], family, secret):
        assert part not in stored


def mailed_tokens(settings: Settings, email: str) -> list[str]:
    """The tokens in the mails to this address, the newest first."""
    texts = [part_of(mail, "plain") for mail in read_mails(settings.data_dir / "mail") if mail["To"] == email]
    return [token for text in reversed(texts) for token in re.findall(r"token=([\w.-]+)", text)[:1]]


async def mailed_token(settings: Settings, email: str, is_wanted: Callable[[str], bool] = bool) -> str:
    """The newest token that is wanted in the mails to this address, which need not be sent in the order of requests."""
    return str(
        await until(
            lambda: next(filter(is_wanted, mailed_tokens(settings, email)), None), f"a token that is wanted for {email}"
        )
    )


async def test_forgotten_password_is_reset_once(coach: CoachClient, anonymous: CoachClient, settings: Settings) -> None:
    email, fresh = address(coach), "another long password"
    session = await coach.interactive()
    expected = (await anonymous.post("/auth/password/forgot", {"email": email})).ok()
    assert (await anonymous.post("/auth/password/forgot", {"email": "nobody@nowhere.test"})).ok() == expected
    token = await mailed_token(settings, email)

    (await anonymous.post("/auth/password/reset", {"token": token, "password": "short"})).refused(400, "password")
    (await anonymous.post("/auth/password/reset", {"token": token, "password": fresh})).ok()

    (await session.get("/me")).refused(401), "every session ends"
    (await sign_in(anonymous, email)).refused(401)
    (await sign_in(anonymous, email, fresh)).ok()
    (await anonymous.post("/auth/password/reset", {"token": token, "password": PASSWORD})).refused(401)
    (await anonymous.post("/auth/password/reset", {"token": "made up", "password": PASSWORD})).refused(401)


async def test_of_two_mails_to_reset_a_password_one_is_used(coach: CoachClient) -> None:
    """Whichever is used voids the other; a password that is set otherwise voids both."""
    ctx, me = coach.ctx, coach.ctx.caller.id

    async def use(token: str) -> str | None:
        return await in_transaction(ctx, lambda tx: identities.reset_password(tx, me, token, "no hash"))

    for used in (0, 1):
        tokens = [await identities.create_reset_token(ctx, me, "coach") for _ in range(2)]
        assert await use(tokens[used]) == address(coach)
        for token in tokens:
            assert await identities.find_by_reset_token(ctx.services, token) is None
    token = await identities.create_reset_token(ctx, me, "coach")
    await in_transaction(ctx, lambda tx: identities.set_password(tx, me, "no hash"))
    assert await identities.find_by_reset_token(ctx.services, token) is None


async def test_confirmation_is_of_the_address_that_it_was_sent_to(coach: CoachClient) -> None:
    """The address may change between the check of the token and the confirmation."""

    async def confirm(email: str) -> bool:
        return await in_transaction(coach.ctx, lambda tx: identities.confirm_email(tx, coach.ctx.caller.id, email))

    assert not await confirm(f"other-{address(coach)}")
    assert await confirm(address(coach))


async def test_reset_mail_is_sent_to_the_stored_address(
    coach: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    await anonymous.post("/auth/password/forgot", {"email": f" {address(coach).upper()}"})
    assert await mailed_token(settings, address(coach))


async def test_look_alike_addresses_are_distinct(coach: CoachClient, anonymous: CoachClient) -> None:
    """Case folding takes ß for ss, and people take a Cyrillic a for another: these addresses belong to other users."""
    number = coach.ctx.company_id
    known, alike = f"vicka@strasse{number}.test", [f"vicka@straße{number}.test", f"vick\u0430@strasse{number}.test"]
    company = {"companyName": "Gym", "name": "Vicky", "password": PASSWORD}
    victim = anonymous.with_bearer(
        (await anonymous.post("/auth/register", company | {"email": known})).ok(201)["accessToken"]
    )
    victims = {"companyId": ObjectId((await victim.get("/me")).ok()["companyId"])}
    where = {"kind": "password_forgotten", "arguments.email": {"$in": alike}}
    db = coach.ctx.db

    async def looked_for() -> bool:
        return await db["jobs"].find_one(where) is None

    for other in alike:
        (await sign_in(anonymous, other)).refused(401)
        (await anonymous.post("/auth/password/forgot", {"email": other})).ok()
    await until(looked_for, "the worker has looked for them")
    assert await db["passwordResets"].count_documents(victims) == 0
    await anonymous.post("/auth/password/forgot", {"email": known.upper()})
    await until(lambda: db["passwordResets"].find_one(victims), "the owner of the address is sent a token")

    for other in alike:
        (await anonymous.post("/auth/register", company | {"email": other})).ok(201)
        (await sign_in(anonymous, other)).ok()


async def test_reset_token_expires_after_an_hour(
    coach: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    await anonymous.post("/auth/password/forgot", {"email": address(coach)})
    token = await mailed_token(settings, address(coach))
    old = now() - timedelta(hours=1, seconds=1)
    await coach.ctx.db["passwordResets"].update_many({"companyId": coach.ctx.company_id}, {"$set": {"createdAt": old}})
    (await anonymous.post("/auth/password/reset", {"token": token, "password": PASSWORD})).refused(401)


async def test_password_reset_unlocks_the_account(
    coach: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    for _ in range(6):
        await sign_in(anonymous, address(coach), "not this one, sorry")
    (await sign_in(anonymous, address(coach))).refused(429)
    await anonymous.post("/auth/password/forgot", {"email": address(coach)})
    body = {"token": await mailed_token(settings, address(coach)), "password": "another long password"}
    (await anonymous.post("/auth/password/reset", body)).ok()
    (await sign_in(anonymous, address(coach), "another long password")).ok()


async def test_counters_do_not_reveal_the_address(coach: CoachClient, anonymous: CoachClient) -> None:
    """A plain hash of an address can be found by trying addresses."""
    await sign_in(anonymous, address(coach), "not this one, sorry")
    stored = [str(counter) async for counter in coach.ctx.db["rateLimits"].find({})]
    assert stored
    guesses = [hashlib.sha256(f"{kind}{address(coach)}".encode()).hexdigest() for kind in ("", "account\0")]
    assert not [each for each in stored if any(guess[:24] in each for guess in guesses) or address(coach) in each]


@pytest.mark.parametrize(
    ("typed", "later"), [("Caf\u00e9 con leche", "Cafe\u0301 con leche"), ("\u2460 twelve chars", "1 twelve chars")]
)
async def test_equivalent_spellings_of_a_password_are_equal(anonymous: CoachClient, typed: str, later: str) -> None:
    """Keyboards differ in how they compose letters: NFKC makes them equal."""
    email = f"{secrets.token_hex(6)}@signup.test"
    body = {"companyName": "Gym", "name": "Zoe", "email": email, "password": typed}
    (await anonymous.post("/auth/register", body)).ok(201)
    (await sign_in(anonymous, email, later)).ok()
    (await sign_in(anonymous, email, typed)).ok()


async def test_password_stored_before_normalisation_is_accepted(coach: CoachClient, anonymous: CoachClient) -> None:
    typed = "Cafe\u0301 con leche"
    stored = CHEAP_HASHER.hash(typed)
    await coach.ctx.db["identities"].update_one({"address": address(coach)}, {"$set": {"passwordHash": stored}})
    (await sign_in(anonymous, address(coach), typed)).ok()


@pytest.mark.parametrize("name", ["\u200b", "\u2060\ufeff", " \u00ad ", "\u3164", "\u2800", "\u0301"])
async def test_invisible_name_is_empty(anonymous: CoachClient, name: str) -> None:
    body = {"companyName": "Gym", "name": name, "email": "x@invisible.test", "password": PASSWORD}
    (await anonymous.post("/auth/register", body)).refused(400, "name")


async def test_address_is_the_same_with_its_domain_in_punycode(anonymous: CoachClient) -> None:
    """Browsers send the domain that a user types in Unicode as it is in the Domain Name System."""
    body = {"companyName": "Gym", "name": "Nora", "password": PASSWORD}
    typed, sent = "nora@Exämple-signup.test", "nora@xn--exmple-signup-cfb.test"
    (await anonymous.post("/auth/register", {**body, "email": typed})).ok(201)
    (await sign_in(anonymous, sent)).ok()
    (await sign_in(anonymous, sent.upper())).ok()
    (await anonymous.post("/auth/register", {**body, "email": sent})).refused(409, "already used")

    typed, sent = "nora@straße-signup.test", "nora@xn--strae-signup-o9a.test"
    (await anonymous.post("/auth/register", {**body, "email": sent})).ok(201)
    (await sign_in(anonymous, typed)).ok()
    (await sign_in(anonymous, "nora@strasse-signup.test")).refused(401)
    (await anonymous.post("/auth/register", {**body, "email": typed})).refused(409, "already used")


async def test_failures_of_all_spellings_of_an_address_count_together(anonymous: CoachClient) -> None:
    for spelling in ("x@exämple.test", "x@xn--exmple-cua.test", "X@EXÄMPLE.test") * 2:
        rejected = await sign_in(anonymous, spelling, "wrong password")
    assert rejected.status == 429


@pytest.mark.parametrize("label", ["xn--", "xn--a", "xn--zzzzzzzzzzzz99999", "xn--abc-", "xn--ä-cua"])
async def test_malformed_punycode_is_an_address_like_others(anonymous: CoachClient, label: str) -> None:
    (await sign_in(anonymous, f"x@{label}.test")).refused(401)


def test_hashes_of_passwords_have_the_parameters_that_owasp_recommends() -> None:
    """The other tests use cheaper ones."""
    hasher = SERVICE_HASHER
    assert (hasher.type, hasher.memory_cost, hasher.time_cost, hasher.parallelism) == (Type.ID, 19_456, 2, 1)
