"""Setting a password says how many API keys the user has, and deletes them if asked to (contract 2)."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.identities import service as identities
from coaching_service.people.sessions import passwords
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.mails import part_of, read_mails
from tests.support.service_process import until
from tests.support.training import employee_key

SECOND, THIRD = "another long phrase", "yet another long phrase"


async def reset(coach: CoachClient, anonymous: CoachClient, password: str, **options: str) -> Any:
    token = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
    return await anonymous.post("/auth/password/reset", {"token": token, "password": password, **options})


async def key_names(coach: CoachClient) -> list[str]:
    return [key["name"] for key in await api_keys.list_keys(coach.ctx)]


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
    revoked = (
        await coach.ctx.db["audit"].find({"companyId": coach.ctx.company_id, "action": "apiKey.revoked"}).to_list()
    )
    assert [entry["keyId"] for entry in revoked] == [created["_id"]]


async def test_all_keys_are_deleted_but_not_those_of_colleagues(coach: CoachClient) -> None:
    colleague = coach.with_key(await employee_key(coach, "customers.view"))
    session = await coach.interactive()

    changed = await passwords.change_password(session.ctx, PASSWORD, SECOND, "all")

    assert changed["apiKeys"] == 0
    (await coach.get("/me")).refused(401)
    (await colleague.get("/me")).ok()


@pytest.mark.parametrize(("keys", "sentence"), [(1, "You have 1 API key,"), (2, "You have 2 API keys,")])
async def test_mail_says_the_number(coach: CoachClient, settings: Settings, keys: int, sentence: str) -> None:
    for number in range(1, keys):
        await api_keys.create(coach.ctx, f"Backend {number}")
    email = str(coach.ctx.caller.email)
    await passwords.request_password_reset(coach.ctx, email)

    def mailed() -> list[str]:
        mails = read_mails(settings.data_dir / "mail")
        return [part_of(mail, "plain") for mail in mails if mail["To"] == email and "password" in mail["Subject"]]

    [text] = await until(mailed, "the mail is sent")
    assert sentence in " ".join(text.split())
