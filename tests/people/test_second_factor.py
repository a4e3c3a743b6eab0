"""The second factor of a sign-in: codes of an authenticator application, recovery codes, throttling."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pyotp
import pytest
import time_machine

from coaching_service import features
from coaching_service.core import audit
from coaching_service.core.database.documents import now
from coaching_service.core.errors import NotFound
from coaching_service.core.http.routes import routes_of
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle import administration
from coaching_service.people import team
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password
from coaching_service.settings import Settings
from coaching_service.web import views
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.mails import read_mail, read_mails
from tests.support.service_process import until

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins", "wednesday")
TOTP = "/auth/second-factor/totp"


def code_of(secret: str, steps: int = 0) -> str:
    """The code of an authenticator application whose clock is some steps of 30 seconds ahead."""
    return pyotp.TOTP(secret).at(int(time.time()), counter_offset=steps)


def address(coach: CoachClient) -> str:
    return str(coach.ctx.caller.email)


async def sign_in(anonymous: CoachClient, email: str, password: str = PASSWORD, **device: str) -> Any:
    return await anonymous.post("/auth/login", {"email": email, "password": password, **device})


async def challenged(anonymous: CoachClient, email: str, **device: str) -> str:
    """Sign in with the password; returns the challenge."""
    return str((await sign_in(anonymous, email, **device)).refused(401, "second factor")["challenge"])


async def answer(anonymous: CoachClient, challenge: str, **given: str) -> Any:
    return await anonymous.post("/auth/second-factor", {"challenge": challenge, **given})


async def set_up(session: CoachClient) -> tuple[str, list[str]]:
    """Set up a second factor with the code of the step before; returns the secret and the recovery codes."""
    secret = (await session.post(TOTP, {})).ok()["secret"]
    codes = (await session.post(f"{TOTP}/confirm", {"code": code_of(secret, -1)})).ok()["recoveryCodes"]
    return secret, codes


async def sign_in_again_later(coach: CoachClient) -> None:
    """Let the last sign-in of all sessions be 11 minutes ago."""
    await coach.ctx.db["sessions"].update_many({}, {"$set": {"createdAt": now() - timedelta(minutes=11)}})


async def test_a_sign_in_needs_the_code(coach: CoachClient, anonymous: CoachClient) -> None:
    session = await coach.interactive()
    begun = (await session.post(TOTP, {})).ok()
    assert set(begun) == {"secret", "otpauthUrl"}
    assert begun["otpauthUrl"].startswith("otpauth://totp/")
    assert f"secret={begun['secret']}" in begun["otpauthUrl"]
    (await sign_in(anonymous, address(coach))).ok(), "nothing is asked before it is confirmed"
    (await session.post(f"{TOTP}/confirm", {"code": "000000"})).refused(400, "code")
    (await session.post(f"{TOTP}/confirm", {"code": code_of(begun["secret"], -2)})).refused(400, "code")
    confirmed = (await session.post(f"{TOTP}/confirm", {"code": code_of(begun["secret"])})).ok()
    assert len(set(confirmed["recoveryCodes"])) == 10

    refused = (await sign_in(anonymous, address(coach))).refused(401)
    assert refused["code"] == "SECOND_FACTOR_REQUIRED"
    assert refused["methods"] == ["totp", "recoveryCode"]
    assert set(refused) == {"statusCode", "message", "error", "code", "docs", "challenge", "methods"}
    for hint in (str(coach.ctx.caller.id), str(coach.ctx.company_id), address(coach)):
        assert hint not in refused["challenge"]
    (await anonymous.with_bearer(refused["challenge"]).get("/me")).refused(401), "it is no credential"
    (await anonymous.post("/auth/refresh", {"refreshToken": refused["challenge"]})).refused(401)

    secret = begun["secret"]
    (await answer(anonymous, refused["challenge"], code=code_of(secret))).refused(401), "spent when it was confirmed"
    tokens = (await answer(anonymous, refused["challenge"], code=code_of(secret, 1))).ok()
    assert set(tokens) == {"accessToken", "tokenType", "expiresIn", "refreshToken", "deviceToken"}
    assert (await anonymous.with_bearer(tokens["accessToken"]).get("/me")).ok()["email"] == address(coach)
    renewed = (await anonymous.post("/auth/refresh", {"refreshToken": tokens["refreshToken"]})).ok()
    (await anonymous.with_bearer(renewed["accessToken"]).get("/me")).ok()

    again = (await answer(anonymous, refused["challenge"], code=code_of(secret, -1))).refused(401)
    assert again["code"] == "CHALLENGE_REJECTED", "a challenge is answered once"
    challenge = await challenged(anonymous, address(coach))
    (await answer(anonymous, challenge, code=code_of(secret, 1))).refused(401), "each step is accepted once"
    (await answer(anonymous, challenge, code=f" {code_of(secret, -1)[:3]} {code_of(secret, -1)[3:]}")).ok()
    (await coach.get("/me")).ok(), "API keys are not affected"


@pytest.mark.parametrize(("steps", "is_accepted"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
async def test_clocks_may_differ_by_a_step(
    coach: CoachClient, anonymous: CoachClient, steps: int, is_accepted: bool
) -> None:
    session = await coach.interactive()
    secret = (await session.post(TOTP, {})).ok()["secret"]
    (await session.post(f"{TOTP}/confirm", {"code": code_of(secret)})).ok()
    with time_machine.travel(time.time() + 3600, tick=True):
        reply = await answer(anonymous, await challenged(anonymous, address(coach)), code=code_of(secret, steps))
        assert reply.status == (200 if is_accepted else 401)


async def test_challenges_that_are_not_valid(
    coach: CoachClient, other_company: CoachClient, anonymous: CoachClient
) -> None:
    secret, _ = await set_up(await coach.interactive())
    challenge = await challenged(anonymous, address(coach))
    for wrong in ("made-up", "ä", challenge[:-4], challenge[1:], challenge[:20], f"{challenge[:-8]}AAAAAAAA"):
        refused = (await answer(anonymous, wrong, code=code_of(secret))).refused(401)
        assert refused["code"] == "CHALLENGE_REJECTED", wrong
    (await answer(anonymous, challenge)).refused(400, "code")
    with time_machine.travel(time.time() + 301, tick=True):
        assert (await answer(anonymous, challenge, code=code_of(secret))).refused(401)["code"] == "CHALLENGE_REJECTED"
    other_secret, _ = await set_up(await other_company.interactive())
    other = await challenged(anonymous, address(other_company))
    (await answer(anonymous, other, code=code_of(secret))).refused(401), "the code of another user"
    (await answer(anonymous, other, code=code_of(other_secret))).ok()
    both = await asyncio.gather(
        answer(anonymous, challenge, code=code_of(secret)), answer(anonymous, challenge, code=code_of(secret, 1))
    )
    assert sorted(reply.status for reply in both) == [200, 401], "one challenge begins one session"


async def test_a_new_password_ends_challenges_and_asks_for_the_code(coach: CoachClient, anonymous: CoachClient) -> None:
    secret, _ = await set_up(await coach.interactive())
    challenge = await challenged(anonymous, address(coach))
    token = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
    (await anonymous.post("/auth/password/reset", {"token": token, "password": "another long phrase"})).ok()
    assert (await answer(anonymous, challenge, code=code_of(secret))).refused(401)["code"] == "CHALLENGE_REJECTED"
    asked = (await sign_in(anonymous, address(coach), "another long phrase")).refused(401)
    (await answer(anonymous, asked["challenge"], code=code_of(secret))).ok()


async def test_recovery_codes_sign_in_once(coach: CoachClient, anonymous: CoachClient) -> None:
    session = await coach.interactive()
    _, codes = await set_up(session)
    challenge = await challenged(anonymous, address(coach))
    (await answer(anonymous, challenge, recoveryCode="abcd-efgh-jkmn-pqrs")).refused(401)
    (await answer(anonymous, challenge, recoveryCode=f" {codes[0].upper().replace('-', ' ')} ")).ok()
    assert (await session.get("/auth/second-factor")).ok() == {
        "methods": ["totp", "recoveryCode"],
        "recoveryCodesLeft": 9,
    }
    challenge = await challenged(anonymous, address(coach))
    (await answer(anonymous, challenge, recoveryCode=codes[0])).refused(401), "each is accepted once"
    for code in codes[1:]:
        (await answer(anonymous, await challenged(anonymous, address(coach)), recoveryCode=code)).ok()
    assert (await sign_in(anonymous, address(coach))).refused(401)["methods"] == ["totp"]


async def test_secrets_are_encrypted_and_codes_hashed(coach: CoachClient) -> None:
    secret, codes = await set_up(await coach.interactive())
    (stored,) = await coach.ctx.db["secondFactors"].find({"companyId": coach.ctx.company_id}).to_list()
    text = str(stored)
    assert secret not in text
    assert not any(code in text or code.replace("-", "") in text for code in codes)
    actions = (
        await coach.ctx.db["audit"].find({"companyId": coach.ctx.company_id, "target.kind": "second_factor"}).to_list()
    )
    assert [each["action"] for each in actions] == ["second_factor.enabled"]


async def test_wrong_codes_are_failures_of_the_account(coach: CoachClient, anonymous: CoachClient) -> None:
    """The right password in between does not reset them, nor does a challenge of another network or device."""
    secret, _ = await set_up(await coach.interactive())
    for _ in range(5):
        challenge = await challenged(anonymous, address(coach))
        assert (await answer(anonymous, challenge, code="000000")).refused(401)["code"] == "SECOND_FACTOR_REJECTED"
    sixth = await answer(anonymous, challenge, code="000000")
    sixth.refused(429)
    assert 0 < int(sixth.headers["Retry-After"]) <= 901
    (await answer(anonymous, challenge, code=code_of(secret))).refused(429), "not even the right one"
    (await sign_in(anonymous, address(coach))).refused(429)


async def test_new_devices_do_not_renew_the_count_of_codes(coach: CoachClient, anonymous: CoachClient) -> None:
    """Who can reset the password gets the token of a device each time, with a counter of wrong passwords of its own."""
    secret, _ = await set_up(await coach.interactive())
    for number in range(3):
        password = f"another long phrase {number}"
        token = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
        body = {"token": token, "password": password}
        device = (await anonymous.post("/auth/password/reset", body)).ok()["deviceToken"]
        asked = (await sign_in(anonymous, address(coach), password, deviceToken=device)).refused(401)
        replies = [await answer(anonymous, asked["challenge"], code="000000") for _ in range(2)]
    assert [reply.status for reply in replies] == [401, 429]
    (await answer(anonymous, asked["challenge"], code=code_of(secret))).refused(429)


async def test_strangers_do_not_lock_a_known_device(coach: CoachClient, anonymous: CoachClient) -> None:
    session = await coach.interactive()
    device = (await sign_in(anonymous, address(coach))).ok()["deviceToken"]
    secret, _ = await set_up(session)
    for _ in range(6):
        await sign_in(anonymous, address(coach), "a wrong password")
    (await sign_in(anonymous, address(coach))).refused(429)
    challenge = await challenged(anonymous, address(coach), deviceToken=device)
    (await answer(anonymous, challenge, code=code_of(secret))).ok()


async def test_changes_need_a_recent_sign_in(coach: CoachClient, anonymous: CoachClient) -> None:
    session = await coach.interactive()
    await sign_in_again_later(coach)
    assert (await session.post(TOTP, {})).refused(403)["code"] == "SIGN_IN_AGAIN"
    assert (await session.post(f"{TOTP}/confirm", {"code": "123456"})).refused(403)["code"] == "SIGN_IN_AGAIN"
    (await coach.post(TOTP, {})).refused(403), "no API key"
    fresh = anonymous.with_bearer((await sign_in(anonymous, address(coach))).ok()["accessToken"])
    (await fresh.post(f"{TOTP}/confirm", {"code": "123456"})).refused(409)
    (await fresh.delete("/auth/second-factor")).refused(404)
    secret, _ = await set_up(fresh)
    await sign_in_again_later(coach)
    assert (await fresh.delete("/auth/second-factor")).refused(403)["code"] == "SIGN_IN_AGAIN"
    challenge = await challenged(anonymous, address(coach))
    again = anonymous.with_bearer((await answer(anonymous, challenge, code=code_of(secret))).ok()["accessToken"])
    other_secret, other_codes = await set_up(again)
    assert other_secret != secret
    challenge = await challenged(anonymous, address(coach))
    (await answer(anonymous, challenge, code=code_of(secret, 1))).refused(401), "the application was replaced"
    (await answer(anonymous, challenge, recoveryCode=other_codes[0])).ok()
    (await again.delete("/auth/second-factor")).ok(204)
    (await sign_in(anonymous, address(coach))).ok()
    of_factors = {"companyId": coach.ctx.company_id, "target.kind": "second_factor"}
    actions = await coach.ctx.db["audit"].find(of_factors).sort("createdAt").to_list()
    assert [each["action"] for each in actions] == ["second_factor.enabled"] * 2 + ["second_factor.disabled"]


async def test_clients_have_one_too(coach: CoachClient, anonymous: CoachClient) -> None:
    """A coach who acts as the client can neither add nor remove it; a password that the coach sets does not help."""
    email = f"ana@{coach.ctx.company_id}.test"
    ana = await coach.create_customer("Ana", email=email, sendInvitation=False)
    body = {"token": ana["firstAccessToken"], "password": PASSWORD}
    session = anonymous.with_bearer((await anonymous.post("/auth/first-access", body)).ok()["accessToken"])
    owner = await coach.interactive()
    path = f"/coach/customers/{ana['_id']}"
    acting = anonymous.with_bearer((await owner.post(f"{path}/impersonate")).ok()["accessToken"])
    assert (await acting.post(TOTP, {})).refused(403)["code"] == "IMPERSONATED"
    secret, _ = await set_up(session)
    assert (await acting.delete("/auth/second-factor")).refused(403)["code"] == "IMPERSONATED"
    (await owner.put(f"{path}/password", {"password": "another long phrase"})).ok()
    asked = (await sign_in(anonymous, email, "another long phrase")).refused(401)
    tokens = (await answer(anonymous, asked["challenge"], code=code_of(secret))).ok()
    assert (await anonymous.with_bearer(tokens["accessToken"]).get("/customer/me")).ok()["_id"] == ana["_id"]

    asked = (await sign_in(anonymous, email, "another long phrase")).refused(401)
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    (await answer(anonymous, asked["challenge"], code=code_of(secret, 1))).refused(401), "archived meanwhile"


async def employee_of(coach: CoachClient, anonymous: CoachClient) -> tuple[str, str]:
    """The identifier and the address of an employee with the usual password."""
    email = f"eli@{coach.ctx.company_id}.test"
    employee = await team.create(coach.ctx, "Eli", email, ["customers.view"], "all", await hash_password(PASSWORD))
    return str(employee["_id"]), email


async def test_the_owner_requires_it_of_coaches(coach: CoachClient, anonymous: CoachClient) -> None:
    """sessions that began with a password alone are 403 from the next request, but for setting it up."""
    ana = await coach.create_customer("Ana", email=f"ana@{coach.ctx.company_id}.test", sendInvitation=False)
    client = await coach.as_client(ana)
    _, email = await employee_of(coach, anonymous)
    employee = anonymous.with_bearer((await sign_in(anonymous, email)).ok()["accessToken"])
    owner, second = await coach.interactive(), await coach.interactive()
    acting = anonymous.with_bearer(
        (await second.post(f"/coach/customers/{ana['_id']}/impersonate")).ok()["accessToken"]
    )
    assert (await owner.get("/coach/account")).ok()["requireSecondFactor"] is False
    turn_on = {"requireSecondFactor": True}
    assert (await owner.patch("/coach/account", turn_on)).refused(409)["code"] == "SECOND_FACTOR_MISSING"
    (await coach.patch("/coach/account", turn_on)).refused(409), "nor by an API key"
    secret, _ = await set_up(owner)
    (await owner.patch("/coach/account", turn_on)).ok()

    assert (await owner.get("/coach/customers", archived="false", pageSize=1, pageNum=1)).ok(), "it has confirmed one"
    for session in (employee, second, acting):
        path = "/customer/today" if session is acting else "/coach/account"
        assert (await session.get(path)).refused(403)["code"] == "SECOND_FACTOR_REQUIRED"
        (await session.get("/me")).ok()
    (await coach.get("/coach/account")).ok(), "API keys are not affected"
    (await client.get("/customer/today")).ok(), "nor clients"

    (await employee.get("/auth/second-factor")).ok()
    employee_secret, _ = await set_up(employee)
    (await employee.get("/coach/account")).ok()
    (await second.post("/auth/logout")).ok()
    challenge = await challenged(anonymous, email)
    tokens = (await answer(anonymous, challenge, code=code_of(employee_secret))).ok()
    again = anonymous.with_bearer(tokens["accessToken"])
    (await again.get("/coach/account")).ok()
    (await again.delete("/auth/second-factor")).ok(204)
    for session in (again, employee):
        (await session.get("/coach/account")).refused(403), "it counted while there was one"
    password_only = anonymous.with_bearer((await sign_in(anonymous, email)).ok()["accessToken"])
    (await password_only.get("/coach/account")).refused(403)
    (await owner.patch("/coach/account", {"requireSecondFactor": False})).ok()
    (await password_only.get("/coach/account")).ok()
    (await answer(anonymous, await challenged(anonymous, address(coach)), code=code_of(secret))).ok()


def test_what_a_session_without_the_required_second_factor_may_do() -> None:
    allowed = {f"{each.method} {each.path}" for each in routes_of(features.ROUTES) if each.access.with_password_only}
    assert allowed == {
        "GET /me",
        "PATCH /me",
        "POST /auth/logout",
        "GET /auth/second-factor",
        "DELETE /auth/second-factor",
        "POST /auth/second-factor/totp",
        "POST /auth/second-factor/totp/confirm",
        "POST /auth/passkeys/options",
        "POST /auth/passkeys",
        "GET /auth/passkeys",
        "DELETE /auth/passkeys/{passkeyId}",
    }
    pages = {f"{page.method} {page.path}" for page in views.list_pages() if page.access.with_password_only}
    prefix = "/app/settings/security"
    of_factor = ("begin", "confirm", "remove", "disconnect")
    of_passkeys = ("passkeys/begin", "passkeys", "passkeys/{passkeyId}/remove")
    assert pages == {f"GET {prefix}", *(f"POST {prefix}/{name}" for name in (*of_factor, *of_passkeys))}


async def test_who_has_lost_it(coach: CoachClient, other_company: CoachClient, anonymous: CoachClient) -> None:
    """The owner resets an employee's, a coach a client's: sessions end, the user gets a mail, and it is audited."""
    employee_id, email = await employee_of(coach, anonymous)
    employee = anonymous.with_bearer((await sign_in(anonymous, email)).ok()["accessToken"])
    ana = await coach.create_customer("Ana", email=f"ana@{coach.ctx.company_id}.test", sendInvitation=False)
    body = {"token": ana["firstAccessToken"], "password": PASSWORD}
    client = anonymous.with_bearer((await anonymous.post("/auth/first-access", body)).ok()["accessToken"])
    owner, stranger = await coach.interactive(), await other_company.interactive()
    paths = f"/coach/employees/{employee_id}/second-factor", f"/coach/customers/{ana['_id']}/second-factor"
    for path in paths:
        (await owner.delete(path)).ok(204), "without one nothing changes"
    await set_up(employee)
    await set_up(client)
    for path in paths:
        (await coach.delete(path)).refused(403), "no API key"
        (await employee.delete(path)).refused(403), "no colleague without the permission"
        (await stranger.delete(path)).refused(404)
    await sign_in(anonymous, email)
    for path in paths:
        (await owner.delete(path)).ok(204)
    (await employee.get("/me")).refused(401)
    (await client.get("/me")).refused(401)
    (await sign_in(anonymous, email)).ok()
    (await sign_in(anonymous, f"ana@{coach.ctx.company_id}.test")).ok()
    where = {"companyId": coach.ctx.company_id, "action": "second_factor.disabled"}
    entries = await coach.ctx.db["audit"].find(where).sort("_id", 1).to_list()
    assert [(str(each["target"]["_id"]), each["actor"]["_id"]) for each in entries] == [
        (employee_id, coach.ctx.caller.id),
        (ana["_id"], coach.ctx.caller.id),
    ]
    assert str(entries[1]["customerId"]) == ana["_id"]


async def test_the_operator_resets_that_of_an_owner(coach: CoachClient, anonymous: CoachClient) -> None:
    session = await coach.interactive()
    await set_up(session)
    operator = administration.Operator(coach.ctx.services, "op")
    assert await administration.reset_second_factor(operator, address(coach)) == coach.ctx.caller.id
    (await session.get("/me")).refused(401)
    (await sign_in(anonymous, address(coach))).ok()
    last = await audit.find_last_operator_action(coach.ctx.services, "person.secondFactorReset")
    assert last is not None
    assert (last["operator"], last["subjectId"]) == ("op", coach.ctx.caller.id)
    with pytest.raises(NotFound):
        await administration.reset_second_factor(operator, address(coach))


async def test_a_removed_employee_leaves_none(coach: CoachClient, anonymous: CoachClient) -> None:
    employee_id, email = await employee_of(coach, anonymous)
    await set_up(anonymous.with_bearer((await sign_in(anonymous, email)).ok()["accessToken"]))
    await team.delete_employee(coach.ctx, ObjectId(employee_id))
    assert await coach.ctx.db["secondFactors"].count_documents({"companyId": coach.ctx.company_id}) == 0


async def test_the_user_gets_a_mail(coach: CoachClient, settings: Settings) -> None:
    session = await coach.interactive()
    await set_up(session)
    (await session.delete("/auth/second-factor")).ok(204)

    def mailed() -> list[str] | None:
        mails = [mail for mail in read_mails(settings.data_dir / "mail") if mail["To"] == address(coach)]
        for mail in mails:
            read_mail(mail, coach.ctx.services.base_url)
        return sorted(mail["Subject"] for mail in mails) if len(mails) == 2 else None

    assert await until(mailed, "both are mailed") == ["Two-step sign-in is off", "Two-step sign-in is on"]
