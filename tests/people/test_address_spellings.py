"""Spellings of an e-mail address that are the same address."""

from __future__ import annotations

import pytest

from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.people.test_sessions import mailed_token, sign_in
from tests.support.client import CoachClient


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("vic\u212ay@{}.test", "vicky@{}.test"),  # the Kelvin sign
        ("\uff56icky@\uff45{}.test", "vicky@e{}.test"),  # full width
        ("ﬁona@{}.test", "fiona@{}.test"),  # a ligature
        ("vicky@STRA\u1e9eE{}.test", "vicky@straße{}.test"),  # the capital ß, which is ß in domains
    ],
)
async def test_compatible_spellings_are_one_address(
    coach: CoachClient, anonymous: CoachClient, typed: str, stored: str
) -> None:
    """NFKC and IDNA make them equal, whichever was first; what is stored can be read."""
    company = {"companyName": "Gym", "name": "Vicky", "password": PASSWORD}
    for number, (first, later) in enumerate(((typed, stored), (stored, typed))):
        name = f"{number}a{coach.ctx.company_id}"
        (await anonymous.post("/auth/register", company | {"email": first.format(name)})).ok(201)
        (await anonymous.post("/auth/register", company | {"email": later.format(name)})).refused(409, "already used")
        (await sign_in(anonymous, later.format(name))).ok()
        identity = await coach.ctx.db["identities"].find_one({"address": stored.format(name)})
        assert identity is not None


async def test_tokens_are_mailed_to_the_stored_form_of_an_address(
    coach: CoachClient, interactive: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    """What was typed can be the mailbox of another person, who would confirm the address with the token."""
    typed, stored = (f"{name}@{coach.ctx.company_id}.test" for name in ("vic\u212ay", "vicky"))
    (await interactive.post("/coach/employees", {"name": "Vicky", "email": typed})).ok(201)
    assert await mailed_token(settings, stored)
    client = {"name": "Ana", "email": typed.replace("vic", "anic"), "sendInvitation": True}
    (await coach.post("/coach/customers", client)).ok(201)
    assert await mailed_token(settings, stored.replace("vic", "anic"))
    signed_up = typed.replace("vic", "nic")
    body = {"companyName": "Gym", "name": "Vicky", "password": PASSWORD, "email": signed_up}
    (await anonymous.post("/auth/register", body)).ok(201)
    assert await mailed_token(settings, stored.replace("vic", "nic"))


async def test_address_stored_before_there_was_one_form_still_signs_in(
    coach: CoachClient, anonymous: CoachClient
) -> None:
    """Also if another user has since signed up by the form that is stored now."""
    old, new = (f"{name}@{coach.ctx.company_id}.test" for name in ("vic\u212ay", "vicky"))
    company = {"companyName": "Gym", "name": "Vicky", "password": PASSWORD}
    first = (await anonymous.post("/auth/register", company | {"email": old})).ok(201)["accessToken"]
    await coach.ctx.db["identities"].update_one({"address": new}, {"$set": {"address": old}})
    me = (await anonymous.with_bearer(first).get("/me")).ok()
    (await anonymous.post("/auth/register", company | {"email": new})).ok(201)
    token = (await sign_in(anonymous, old)).ok()["accessToken"]
    assert (await anonymous.with_bearer(token).get("/me")).ok()["_id"] == me["_id"]
    (await anonymous.post("/auth/register", company | {"email": old})).refused(409, "already used")
