"""Setting a password says how many API keys the user has, and deletes them if asked to (contract 2)."""

from __future__ import annotations

from email.message import EmailMessage
from typing import Any

import pytest

from coaching_service.core.auth import REST_SCOPES
from coaching_service.core.ids import ObjectId
from coaching_service.people import api_keys, assistants, team
from coaching_service.people.identities import service as identities
from coaching_service.people.sessions import credentials
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient
from tests.support.mails import part_of, read_mail, read_mails
from tests.support.service_process import until
from tests.support.training import employee_key

SECOND, THIRD = "another long phrase", "yet another long phrase"


async def reset(coach: CoachClient, anonymous: CoachClient, password: str, **options: str) -> Any:
    token = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
    return await anonymous.post("/auth/password/reset", {"token": token, "password": password, **options})


async def key_names(coach: CoachClient) -> list[str]:
    return [key["name"] for key in await api_keys.list_api_keys(coach.ctx)]


async def test_keys_remain_unless_asked(coach: CoachClient, anonymous: CoachClient) -> None:
    await api_keys.create(coach.ctx, "Backend")

    assert (await reset(coach, anonymous, SECOND)).ok()["apiKeys"] == 2
    assert (await reset(coach, anonymous, THIRD, deleteApiKeys="none")).ok()["apiKeys"] == 2
    (await coach.get("/me")).ok()
    (await reset(coach, anonymous, THIRD, deleteApiKeys="some")).refused(400, "deleteApiKeys")


async def test_keys_since_the_last_change_are_deleted(coach: CoachClient, anonymous: CoachClient) -> None:
    """Before the first change they are those since the user exists."""
    await reset(coach, anonymous, SECOND)
    created = await api_keys.create(coach.ctx, "Made by an intruder")

    assert (await reset(coach, anonymous, THIRD, deleteApiKeys="sinceLastChange")).ok()["apiKeys"] == 1

    assert await key_names(coach) == ["Test"]
    refused = await anonymous.send("GET", "/me", headers={"X-API-Key": created["key"]})
    refused.refused(401)
    revoked = await coach.ctx.db["audit"].find({"companyId": coach.ctx.company_id, "action": "key.deleted"}).to_list()
    assert [entry["target"]["_id"] for entry in revoked] == [created["_id"]]


async def test_audit_log_has_what_a_mailed_link_changed(coach: CoachClient, anonymous: CoachClient) -> None:
    """The password, and what it ended: the assistant and the application; one that gave its access back before."""
    left = await authorize_assistant(coach.ctx, "Left")
    await assistants.revoke_token(coach.ctx.services, left.tokens.access, "a-client")
    assistant = (await authorize_assistant(coach.ctx)).grant["_id"]
    application = (await authorize_assistant(coach.ctx, "Planner", rest_scopes=REST_SCOPES)).grant["_id"]

    (await reset(coach, anonymous, SECOND)).ok()

    owner, actions = coach.ctx.caller.id, ["password.changed", "assistant.revoked", "application.revoked"]
    where = {"companyId": coach.ctx.company_id, "action": {"$in": actions}}
    entries = await coach.ctx.db["audit"].find(where).to_list()
    assert {
        (each["action"], each["target"]["_id"], each["target"]["name"], each["actor"]["_id"]) for each in entries
    } == {
        ("assistant.revoked", left.grant["_id"], "Left", None),
        ("password.changed", owner, None, owner),
        ("assistant.revoked", assistant, "Claude", owner),
        ("application.revoked", application, "Planner", owner),
    }


async def test_all_keys_are_deleted_but_not_those_of_colleagues(coach: CoachClient) -> None:
    colleague = coach.with_key(await employee_key(coach, "customers.view"))
    session = await coach.interactive()

    changed = await credentials.change_password(session.ctx, PASSWORD, SECOND, "all")

    assert changed["apiKeys"] == 0
    (await coach.get("/me")).refused(401)
    (await colleague.get("/me")).ok()


@pytest.mark.parametrize(("keys", "sentence"), [(1, "You have 1 API key,"), (2, "You have 2 API keys,")])
async def test_mail_says_the_number(coach: CoachClient, settings: Settings, keys: int, sentence: str) -> None:
    for number in range(1, keys):
        await api_keys.create(coach.ctx, f"Backend {number}")
    email = str(coach.ctx.caller.email)
    await credentials.request_password_reset(coach.ctx, email)

    def mailed() -> list[str]:
        mails = read_mails(settings.data_dir / "mail")
        return [part_of(mail, "plain") for mail in mails if mail["To"] == email and "password" in mail["Subject"]]

    [text] = await until(mailed, "the mail is sent")
    assert sentence in " ".join(text.split())


def mailed_changes(settings: Settings, email: str) -> list[EmailMessage]:
    """The mails that say that the password was changed."""
    mails = read_mails(settings.data_dir / "mail")
    return [mail for mail in mails if mail["To"] == email and mail["Subject"] == "Your password was changed"]


async def test_each_change_is_mailed_with_the_keys_that_stay(
    coach: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    email, session = str(coach.ctx.caller.email), await coach.interactive()
    backend = await api_keys.create(coach.ctx, "Backend")
    await credentials.change_password(session.ctx, PASSWORD, SECOND)
    [mail] = await until(lambda: mailed_changes(settings, email), "the change is mailed")
    text = " ".join(part_of(mail, "plain").split())
    read_mail(mail, coach.ctx.services.base_url)
    assert "was changed in your settings." in text
    test_key = next(key for key in await api_keys.list_api_keys(coach.ctx) if key["name"] == "Test")
    assert f"These API keys still work: Test (…{test_key['lastFour']}), Backend (…{backend['key'][-4:]})." in text
    assert backend["key"] not in text

    (await reset(coach, anonymous, THIRD, deleteApiKeys="all")).ok()
    mails = await until(lambda: (found := mailed_changes(settings, email))[1:] and found, "the reset is mailed")
    text = " ".join(part_of(mails[-1], "plain").split())
    assert "was changed with a link that was mailed to you." in text
    assert "You have no API key." in text
    assert SECOND not in text
    assert THIRD not in text


async def test_client_is_told_who_changed_the_password(coach: CoachClient, settings: Settings) -> None:
    """The first password of a client is no change."""
    email = f"ana-{ObjectId()}@example.com"
    ana = await coach.create_customer("Ana", email=email, sendInvitation=False)
    session = await coach.interactive()
    for password in (SECOND, THIRD):
        (await session.put(f"/coach/customers/{ana['_id']}/password", {"password": password})).ok()
    client = await coach.as_client(ana)
    (await client.put("/customer/me/password", {"currentPassword": THIRD, "password": SECOND})).ok()
    mails = await until(lambda: (found := mailed_changes(settings, email))[1:] and found, "both are mailed")
    texts = " ".join(" ".join(part_of(mail, "plain").split()) for mail in mails)
    assert f"was changed by {coach.ctx.caller.name}." in texts
    assert "was changed in your settings." in texts
    assert "API key" not in texts


async def test_first_password_of_a_colleague_is_no_change(
    coach: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    email = f"emil-{ObjectId()}@example.com"
    emil = await team.create(coach.ctx, "Emil", email, [], "all")
    for password in (SECOND, THIRD):
        token = await identities.create_reset_token(coach.ctx, emil["_id"], "coach")
        (await anonymous.post("/auth/password/reset", {"token": token, "password": password})).ok()
    [mail] = await until(lambda: mailed_changes(settings, email), "the change is mailed")
    assert "You have no API key." in part_of(mail, "plain")
