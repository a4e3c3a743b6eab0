"""The most common passwords of 12 and more characters are refused wherever a password is set."""

from __future__ import annotations

import pytest

from coaching_service.people.identities.passwords import is_common
from tests.conftest import PASSWORD
from tests.support.client import CoachClient

COMMON = (
    *("password1234", "Password123!", "P@ssw0rd2024", "passwordpassword", "Password1!Password1!", "Passwort2025"),
    *("123456789012", "987654321098", "111122223333", "aaaaaaaaaaaa", "abcabcabcabc", "123123123123", "!@#$%^&*()_+"),
    *("qwertyuiop123", "qwerty123456", "1q2w3e4r5t6y", "1qaz2wsx3edc", "zaq12wsxcde3", "asdfghjkl123", "q1w2e3r4t5y6"),
    *(
        "iloveyou2024",
        "letmein12345",
        "football2023!",
        "Summer2024!!",
        "administrator",
        "changeme1234",
        "welcome-welcome",
    ),
    *("coachcoach123", "ｐａｓｓｗｏｒｄ１２３４"),
)
UNCOMMON = (
    *("correct horse battery staple", "another long password", "839201746582", "hVd7-2kqLmZp", "training with my dog"),
    *("password for the gym door", "Übungsplan für Anna", "ichliebekaese42", "קוראת ספרים בלילה"),
)


@pytest.mark.parametrize("password", COMMON)
def test_common(password: str) -> None:
    assert is_common(password)


@pytest.mark.parametrize("password", UNCOMMON)
def test_uncommon(password: str) -> None:
    assert not is_common(password)


async def test_refused_wherever_a_password_is_set(coach: CoachClient, anonymous: CoachClient) -> None:
    session = await coach.interactive()
    ana = await coach.create_customer("Ana", email=f"ana.{coach.ctx.company_id}@common.test")
    first_access, common = str(ana["firstAccessToken"]), {"password": "password1234"}
    company = {"companyName": "Gym", "name": "Nora", "email": "nora@common.test"}
    for reply in (
        await anonymous.post("/auth/register", company | common),
        await anonymous.post("/auth/password/reset", {"token": "x"} | common),
        await anonymous.post("/auth/first-access", {"token": first_access} | common),
        await session.put(f"/coach/customers/{ana['_id']}/password", common),
    ):
        [error] = reply.refused(400, "password")["errors"]
        assert error["code"] == "COMMON_PASSWORD"
    client = await coach.as_client(ana)
    changed = await client.put("/customer/me/password", {"currentPassword": PASSWORD} | common)
    assert changed.refused(400, "password")["errors"][0]["code"] == "COMMON_PASSWORD"
