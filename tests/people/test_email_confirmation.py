"""Confirming e-mail addresses: who signs in by an address when several users want it (contract 2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
import time_machine

from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.people import team
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.people.test_sessions import mailed_token, mailed_tokens
from tests.support.client import CoachClient, Reply
from tests.support.mails import read_mails
from tests.support.sampled import some
from tests.support.service_process import until

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins")
SECOND_PASSWORD = "another long password"


async def sign_up(anonymous: CoachClient, email: str, password: str = PASSWORD) -> Reply:
    body = {"companyName": "New Gym", "name": "Nora", "email": email, "password": password}
    return await anonymous.post("/auth/register", body)


async def owner_of(anonymous: CoachClient, email: str) -> CoachClient:
    return anonymous.with_bearer((await sign_up(anonymous, email)).ok(201)["accessToken"])


def unique(coach: CoachClient, name: str = "nora") -> str:
    return f"{name}.{ObjectId()}@{coach.ctx.company_id}.test"


def is_to_reset(token: str) -> bool:
    """Whether a token sets a password, and does not confirm the address."""
    return "." not in token


async def test_a_new_owner_confirms_the_address(coach: CoachClient, anonymous: CoachClient, settings: Settings) -> None:
    email = unique(coach)
    owner = await owner_of(anonymous, email)
    assert (await owner.get("/me")).ok()["emailConfirmed"] is False
    token = await mailed_token(settings, email)

    for other in (token[:-1] + ("a" if token[-1] != "a" else "b"), token.replace(".", "-"), "x", token + "a"):
        (await anonymous.post("/auth/confirm-email", {"token": other})).refused(401)
    (await anonymous.post("/auth/confirm-email", {"token": token})).ok()
    (await anonymous.post("/auth/confirm-email", {"token": token})).ok()

    assert (await owner.get("/me")).ok()["emailConfirmed"] is True
    assert "already" in (await owner.post("/auth/confirm-email/resend")).ok()["message"]


async def test_a_token_expires_after_a_week_and_can_be_requested_again(
    coach: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    email = unique(coach)
    owner = await owner_of(anonymous, email)
    token = await mailed_token(settings, email)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=7, seconds=5)):
        (await anonymous.post("/auth/confirm-email", {"token": token})).refused(401)

    (await owner.post("/auth/confirm-email/resend")).ok()
    (await owner.post("/auth/confirm-email/resend")).ok()
    (await owner.post("/auth/confirm-email/resend")).ok()
    (await owner.post("/auth/confirm-email/resend")).refused(429)
    (await coach.post("/auth/confirm-email/resend")).refused(403)


async def test_the_mail_to_confirm_has_no_text_of_the_sign_up(
    coach: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    email = unique(coach)
    body = {"companyName": "Buy now", "name": "See shop", "email": email, "password": PASSWORD}
    (await anonymous.post("/auth/register", body)).ok(201)
    await mailed_token(settings, email)
    texts = [file.read_text() for file in (settings.data_dir / "mail").glob("*.eml")]
    [mail] = [text for text in texts if f"To: {email}" in text]
    assert "Buy now" not in mail
    assert "See shop" not in mail


async def mails_to(settings: Settings, email: str) -> int:
    return sum(mail["To"] == email for mail in read_mails(settings.data_dir / "mail"))


async def test_mail_to_others_waits_until_the_owner_is_confirmed(
    coach: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    email, ana, eli = unique(coach), unique(coach, "ana"), unique(coach, "eli")
    owner = await owner_of(anonymous, email)
    (await owner.post("/coach/customers", {"name": "Ana", "email": ana})).ok(201)
    (await owner.post("/coach/employees", {"name": "Eli", "email": eli})).ok(201)
    (await anonymous.post("/auth/password/forgot", {"email": eli})).ok()
    token = await mailed_token(settings, email)

    company_id = ObjectId((await owner.get("/me")).ok()["companyId"])

    async def is_held() -> bool:
        held = {"companyId": company_id, "kind": "send_mail", "isPaused": True}
        return await coach.ctx.db["jobs"].count_documents(held) == 1

    await until(is_held, "the invitation of the client waits")
    assert (await mails_to(settings, ana), await mails_to(settings, eli)) == (0, 0)
    (await anonymous.post("/auth/confirm-email", {"token": token})).ok()

    body = {"token": await mailed_token(settings, eli), "password": SECOND_PASSWORD}
    (await anonymous.post("/auth/password/reset", body)).ok()
    body = {"token": await mailed_token(settings, ana), "password": SECOND_PASSWORD}
    (await anonymous.post("/auth/first-access", body)).ok()


async def test_an_owner_who_has_sent_many_invitations_confirms_the_address(
    coach: CoachClient, anonymous: CoachClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The invitation of an employee counts when it is requested, though it is sent when the owner is confirmed."""
    monkeypatch.setattr(team, "FIRST_WEEK_PER_DAY", 2)
    email, eli = unique(coach), unique(coach, "eli")
    owner = await owner_of(anonymous, email)
    (await owner.post("/coach/employees", {"name": "Eli", "email": eli})).ok(201)
    (await owner.post("/coach/customers", {"name": "Ana", "email": unique(coach, "ana")})).ok(201)
    (await owner.post("/coach/employees", {"name": "Fay", "email": unique(coach, "fay")})).refused(429)
    (await anonymous.post("/auth/confirm-email", {"token": await mailed_token(settings, email)})).ok()
    body = {"token": await mailed_token(settings, eli), "password": SECOND_PASSWORD}
    (await anonymous.post("/auth/password/reset", body)).ok()


async def test_a_reset_token_confirms_the_owner_too(
    coach: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    email, ana = unique(coach), unique(coach, "ana")
    owner = await owner_of(anonymous, email)
    (await owner.post("/coach/customers", {"name": "Ana", "email": ana})).ok(201)
    confirmation = await mailed_token(settings, email)
    (await anonymous.post("/auth/password/forgot", {"email": email})).ok()

    token = await mailed_token(settings, email, lambda token: token != confirmation)
    (await anonymous.post("/auth/password/reset", {"token": token, "password": SECOND_PASSWORD})).ok()

    assert await mailed_token(settings, ana)


# --- several users want one address ----------------------------------------------------------------------------------


@dataclass
class World:
    """Two companies of the operator, and the address that users of several companies want."""

    coach: CoachClient
    owner: CoachClient
    other: CoachClient
    anonymous: CoachClient
    settings: Settings
    password_hash: str
    email: str

    async def new_client(self, *, invited: bool) -> dict[str, Any]:
        return await self.coach.create_customer("Ana", email=self.email, sendInvitation=invited)


async def by_sign_up(world: World) -> bool:
    """A company signs up with the address."""
    return (await sign_up(world.anonymous, world.email)).status == 201


async def by_operator(world: World) -> bool:
    """The operator creates a company."""
    try:
        await team.create_company(Context(world.coach.ctx.services), "Gym", "Olga", world.email, world.password_hash)
    except Conflict:
        return False
    return True


async def by_coach(world: World) -> bool:
    """A coach sets the password of a client."""
    ana = await world.new_client(invited=False)
    path = f"/coach/customers/{ana['_id']}/password"
    return (await world.owner.put(path, {"password": PASSWORD})).status == 200


async def by_returned_token(world: World) -> bool:
    """A client uses the first-access token that the coach received."""
    ana = await world.new_client(invited=False)
    body = {"token": ana["firstAccessToken"], "password": PASSWORD}
    return (await world.anonymous.post("/auth/first-access", body)).status == 200


async def by_mailed_first_access(world: World) -> bool:
    """A client uses the first-access token of an invitation."""
    await world.coach.ctx.db["invitationRecipients"].delete_many({})  # an earlier one would delay it
    ana = await world.new_client(invited=True)
    token = await mailed_token(world.settings, world.email, lambda token: token.startswith(ana["firstAccessToken"]))
    body = {"token": token, "password": PASSWORD}
    return (await world.anonymous.post("/auth/first-access", body)).status == 200


async def by_employee_invitation(world: World) -> bool:
    """An employee of another company sets a password by the mailed token."""
    earlier = mailed_tokens(world.settings, world.email)
    reply = await world.other.post("/coach/employees", {"name": "Eli", "email": world.email})
    if reply.status != 201:
        return False
    token = await mailed_token(world.settings, world.email, lambda token: is_to_reset(token) and token not in earlier)
    body = {"token": token, "password": PASSWORD}
    return (await world.anonymous.post("/auth/password/reset", body)).status == 200


Way = Callable[[World], Awaitable[bool]]
UNCONFIRMED: tuple[Way, ...] = (by_sign_up, by_coach, by_returned_token)
CONFIRMED: tuple[Way, ...] = (by_operator, by_mailed_first_access, by_employee_invitation)
PAIRS = [*permutations((*UNCONFIRMED, *CONFIRMED), 2), *((way, way) for way in (*UNCONFIRMED, *CONFIRMED))]


@pytest.fixture
async def world(
    coach: CoachClient,
    interactive: CoachClient,
    other_company: CoachClient,
    anonymous: CoachClient,
    settings: Settings,
    password_hash: str,
) -> World:
    other = await other_company.interactive()
    return World(coach, interactive, other, anonymous, settings, password_hash, unique(coach, "wanted"))


@pytest.mark.parametrize(("first", "second"), some(PAIRS, 12), ids=lambda way: way.__name__)
async def test_only_a_confirmed_user_displaces_an_unconfirmed_one(world: World, first: Way, second: Way) -> None:
    """The first of two unconfirmed users stays; a mailed token wins over it; a confirmed address is taken."""
    assert await first(world)
    stored = await world.coach.ctx.db["identities"].find_one({"address": world.email})
    assert stored is not None
    assert stored["isConfirmed"] is (first in CONFIRMED)
    reply = await world.anonymous.post("/auth/login", {"email": world.email, "password": PASSWORD})
    session = world.anonymous.with_bearer(reply.ok()["accessToken"])

    is_displaced = await second(world)

    assert is_displaced is (first in UNCONFIRMED and second in CONFIRMED)
    (await session.get("/me")).refused(401) if is_displaced else (await session.get("/me")).ok()
    now = await world.coach.ctx.db["identities"].find({"address": world.email}).to_list(None)
    assert len(now) == 1
    assert (now[0]["subjectId"] == stored["subjectId"]) is not is_displaced
    assert now[0]["isConfirmed"] is (is_displaced or first in CONFIRMED)


async def test_a_claimed_address_is_the_employees_once_the_mailed_token_is_used(
    coach: CoachClient, interactive: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    """Forgotten password mails the employee too, not only the company that signed up with the address."""
    email = unique(coach, "eli")
    squatter = await owner_of(anonymous, email)
    eli = (await interactive.post("/coach/employees", {"name": "Eli", "email": email})).ok(201)
    assert (await squatter.get("/me")).ok()["role"] == "OWNER"
    db = coach.ctx.db
    await db["passwordResets"].delete_many({})
    (await anonymous.post("/auth/password/forgot", {"email": email})).ok()

    async def both() -> bool:
        return await db["passwordResets"].count_documents({}) == 2

    await until(both, "a token for both users of the address")
    await db["passwordResets"].delete_many({"subjectId": {"$ne": ObjectId(eli["_id"])}})

    (await interactive.delete(f"/coach/employees/{eli['_id']}")).ok(204)
    assert await db["identityClaims"].count_documents({"subjectId": ObjectId(eli["_id"])}) == 0
    (await squatter.get("/me")).ok()


async def test_a_claimed_address_that_its_user_has_confirmed_is_taken(
    coach: CoachClient, interactive: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    email = unique(coach, "eli")
    user = await owner_of(anonymous, email)
    confirmation = await mailed_token(settings, email)
    (await interactive.post("/coach/employees", {"name": "Eli", "email": email})).ok(201)
    (await anonymous.post("/auth/confirm-email", {"token": confirmation})).ok()

    token = await mailed_token(settings, email, is_to_reset)
    body = {"token": token, "password": SECOND_PASSWORD}
    assert (await anonymous.post("/auth/password/reset", body)).refused(409)["code"] == "EMAIL_TAKEN"
    (await user.get("/me")).ok()


async def test_an_employee_can_change_to_an_address_that_another_uses_unconfirmed(
    coach: CoachClient, interactive: CoachClient, anonymous: CoachClient, settings: Settings, password_hash: str
) -> None:
    wanted = unique(coach, "wanted")
    squatter = await owner_of(anonymous, wanted)
    eli = await team.create(interactive.ctx, "Eli", unique(coach, "eli"), [], "all", password_hash)

    (await interactive.patch(f"/coach/employees/{eli['_id']}", {"email": wanted})).ok()

    (await squatter.get("/me")).ok()

    token = await mailed_token(settings, wanted, is_to_reset)
    body = {"token": token, "password": SECOND_PASSWORD}
    (await anonymous.post("/auth/password/reset", body)).ok()
    (await squatter.get("/me")).refused(401)
    tokens = (await anonymous.post("/auth/login", {"email": wanted, "password": SECOND_PASSWORD})).ok()
    me = (await anonymous.with_bearer(tokens["accessToken"]).get("/me")).ok()
    assert (me["_id"], me["emailConfirmed"]) == (str(eli["_id"]), True)

    changed = unique(coach, "changed")
    (await interactive.patch(f"/coach/employees/{eli['_id']}", {"email": changed})).ok()
    tokens = (await anonymous.post("/auth/login", {"email": changed, "password": SECOND_PASSWORD})).ok()
    me = (await anonymous.with_bearer(tokens["accessToken"]).get("/me")).ok()
    assert me["emailConfirmed"] is False, "no mail to the new address has been answered"
