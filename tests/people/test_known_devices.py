"""Devices that signed in before: failures of others do not lock them (contract 2)."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

from coaching_service.people.identities import models
from coaching_service.people.identities import service as identities
from coaching_service.people.sessions import credentials
from tests.conftest import PASSWORD
from tests.support.client import CoachClient, Reply

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins")
WRONG = "not this one, sorry"


def address(coach: CoachClient) -> str:
    return str(coach.ctx.caller.email)


async def sign_in(
    anonymous: CoachClient, email: str, password: str = PASSWORD, device_token: str | None = None
) -> Reply:
    body: dict[str, Any] = {"email": email, "password": password}
    return await anonymous.post("/auth/login", body if device_token is None else body | {"deviceToken": device_token})


async def new_device(anonymous: CoachClient, coach: CoachClient) -> str:
    """Sign in on a device, and return its token."""
    return str((await sign_in(anonymous, address(coach))).ok()["deviceToken"])


async def lock(anonymous: CoachClient, email: str) -> None:
    """Lock an account for unknown devices."""
    for _ in range(6):
        await sign_in(anonymous, email, WRONG)
    (await sign_in(anonymous, email)).refused(429)


async def test_failures_of_others_do_not_lock_a_known_device(coach: CoachClient, anonymous: CoachClient) -> None:
    token = await new_device(anonymous, coach)
    await lock(anonymous, address(coach))

    (await sign_in(anonymous, address(coach), device_token=token)).ok()


async def test_a_locked_network_address_does_not_lock_a_known_device(
    coach: CoachClient, anonymous: CoachClient
) -> None:
    token = await new_device(anonymous, coach)
    for number in range(30):
        await sign_in(anonymous, f"nobody{number}@nowhere.test", WRONG)
    (await sign_in(anonymous, address(coach))).refused(429)

    (await sign_in(anonymous, address(coach), device_token=token)).ok()


async def test_a_known_device_is_locked_from_its_sixth_failure(coach: CoachClient, anonymous: CoachClient) -> None:
    token, other = await new_device(anonymous, coach), await new_device(anonymous, coach)
    for _ in range(5):
        (await sign_in(anonymous, address(coach), WRONG, token)).refused(401)
    sixth = await sign_in(anonymous, address(coach), WRONG, token)
    sixth.refused(429)
    assert 0 < int(sixth.headers["Retry-After"]) <= 901
    (await sign_in(anonymous, address(coach), device_token=token)).refused(429)
    (await sign_in(anonymous, address(coach), device_token=other)).ok()
    (await sign_in(anonymous, address(coach))).ok(), "failures of a device do not count for the account"


async def test_a_token_is_valid_for_one_account_and_180_days(
    coach: CoachClient, other_company: CoachClient, anonymous: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await new_device(anonymous, coach)
    foreign = await new_device(anonymous, other_company)
    await lock(anonymous, address(coach))
    changed = token[:-2] + ("AA" if token[-2:] != "AA" else "BB")
    for invalid in (foreign, changed, "", "x", "a.b.c.d", "é" * 20, token + "."):
        (await sign_in(anonymous, address(coach), device_token=invalid)).refused(429)

    identity = await identities._find_by_email(coach.ctx.services, address(coach))
    assert models.find_device(coach.ctx.services, identity, [token]) is not None
    later = time.time() + timedelta(days=180).total_seconds() + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert models.find_device(coach.ctx.services, identity, [token]) is None


async def test_mailed_reset_helps_under_attack(coach: CoachClient, anonymous: CoachClient) -> None:
    """The answer of the reset makes the device known, so that failures after it do not lock it either."""
    await lock(anonymous, address(coach))
    token = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
    body = {"token": token, "password": "another long password"}
    reset = (await anonymous.post("/auth/password/reset", body)).ok()
    await lock(anonymous, address(coach))

    (await sign_in(anonymous, address(coach), "another long password", reset["deviceToken"])).ok()


async def test_reset_mail_can_be_requested_from_a_known_device(coach: CoachClient, anonymous: CoachClient) -> None:
    token = await new_device(anonymous, coach)
    for number in range(21):
        await anonymous.post("/auth/password/forgot", {"email": f"nobody{number}@nowhere.test"})
    body = {"email": address(coach)}
    (await anonymous.post("/auth/password/forgot", body)).refused(429)
    (await anonymous.post("/auth/password/forgot", body | {"deviceToken": "x"})).refused(429)

    (await anonymous.post("/auth/password/forgot", body | {"deviceToken": token})).ok()


async def test_devices_of_an_earlier_password_share_a_counter(coach: CoachClient, anonymous: CoachClient) -> None:
    """A user of the earlier password may have collected many tokens: together they have six guesses."""
    tokens = [await new_device(anonymous, coach) for _ in range(3)]
    session = await coach.interactive()
    changed = await credentials.change_password(session.ctx, PASSWORD, "another long password")
    statuses = [(await sign_in(anonymous, address(coach), WRONG, tokens[n % 3])).status for n in range(6)]
    assert statuses == [401] * 5 + [429]
    (await sign_in(anonymous, address(coach), "another long password", tokens[0])).refused(429)

    (await sign_in(anonymous, address(coach), "another long password", changed["deviceToken"])).ok()


async def test_users_of_a_network_address_do_not_lock_it_for_one_another(
    coach: CoachClient, other_company: CoachClient, anonymous: CoachClient
) -> None:
    """Failures of an account that signs in then no longer count for the network address; those of others do."""
    for _ in range(8):
        for _ in range(4):
            (await sign_in(anonymous, address(coach), WRONG)).refused(401)
        (await sign_in(anonymous, address(coach))).ok()

    for number in range(29):
        (await sign_in(anonymous, f"nobody{number}@nowhere.test", WRONG)).refused(401)
    (await sign_in(anonymous, "nobody29@nowhere.test", WRONG)).refused(429)
    (await sign_in(anonymous, address(other_company))).refused(429)


async def test_a_signed_in_user_is_not_locked_by_others(coach: CoachClient, anonymous: CoachClient) -> None:
    email = f"ana.{coach.ctx.company_id}@devices.test"
    ana = await coach.create_customer("Ana", email=email)
    first_access = {"token": ana["firstAccessToken"], "password": PASSWORD}
    tokens = (await anonymous.post("/auth/first-access", first_access)).ok()
    client = anonymous.with_bearer(tokens["accessToken"])
    await lock(anonymous, email)

    body = {"currentPassword": PASSWORD, "password": "another long password"}
    changed = (await client.put("/customer/me/password", body)).ok()
    assert changed["apiKeys"] == 0
    (await sign_in(anonymous, email, "another long password", changed["deviceToken"])).ok()
