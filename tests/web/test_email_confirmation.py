"""The pages that confirm an e-mail address and decline invitations."""

from __future__ import annotations

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.people.invitations import service as invitations
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.people.test_sessions import mailed_token
from tests.support.client import CoachClient
from tests.support.visitor import Visitor

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins")


async def test_a_new_owner_is_asked_to_confirm_the_address(
    coach: CoachClient, visitor: Visitor, settings: Settings
) -> None:
    email = f"nora@{coach.ctx.company_id}.test"
    page = await visitor.get("/app/sign-up")
    sign_up = {"companyName": "New Gym", "name": "Nora", "email": email, "password": PASSWORD}
    page = await visitor.submit(page, "/app/sign-up", **sign_up)
    page.says("Confirm your email address: we sent a link to " + email)
    page = await visitor.submit(page, "/app/confirm-email/resend")
    page.says("We sent you a new link.")

    page = await visitor.get(f"/app/confirm-email?token={await mailed_token(settings, email)}")
    page = await visitor.submit(page, "/app/confirm-email")
    page.says("Your email address is confirmed.")
    assert "Confirm your email address" not in (await visitor.get("/app/customers")).text


async def test_a_link_that_confirms_nothing_says_what_to_do(visitor: Visitor) -> None:
    page = await visitor.get("/app/confirm-email")
    page.says("Open this page with the link from our email.")
    page = await visitor.submit(await visitor.get("/app/confirm-email?token=made-up"), "/app/confirm-email")
    page.says("The token is unknown or older than a week; sign in and request another")


async def test_a_person_declines_further_invitations(coach: CoachClient, visitor: Visitor) -> None:
    email = f"ana@{ObjectId()}.test"
    path = invitations.decline_link(coach.ctx, email).removeprefix(coach.ctx.services.base_url)
    page = await visitor.get(path)
    page.says(f"{coach.ctx.caller.company.name} will not be able to send another invitation to your email address.")
    page = await visitor.submit(page, "/train/no-invitations")
    page.says("You will receive no more invitations from them.")
    assert await invitations.reserve(coach.ctx, [email]) == [None]


async def test_a_forged_token_declines_nothing(
    coach: CoachClient, other_company: CoachClient, visitor: Visitor
) -> None:
    token = invitations.decline_link(coach.ctx, f"ana@{ObjectId()}.test").partition("token=")[2]
    company, address_hash, signature = token.split(".")
    for forged in (
        f"{other_company.ctx.company_id}.{address_hash}.{signature}",
        f"{company}.{'0' * 64}.{signature}",
        f"{company}.{address_hash}",
        "",
        "x" * 400,
    ):
        page = await visitor.get(f"/train/no-invitations?token={forged}")
        page.says("Open this page with the link from an invitation.")
