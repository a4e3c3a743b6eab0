"""Browsers that signed in before, and API keys on the pages that set a password."""

from __future__ import annotations

import pytest

from coaching_service.people import api_keys
from coaching_service.people.identities import service as identities
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import NewVisitor

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins")
NEW = "another fine phrase"


async def lock(new_visitor: NewVisitor, email: str) -> None:
    """Lock an account for unknown devices."""
    stranger = new_visitor()
    for _ in range(6):
        await stranger.sign_in(email, "not the password")
    (await stranger.sign_in(email, PASSWORD)).ok(429)


def device_cookie(page: HtmlPage) -> str:
    """The cookie of the device that a response sets."""
    [cookie] = [cookie for cookie in page.cookies if cookie.startswith("coach_device=")]
    return cookie


async def test_browser_that_signed_in_before_is_not_locked(
    coach: CoachClient, other_company: CoachClient, visitor: Visitor, new_visitor: NewVisitor
) -> None:
    """Also when another account has signed in on it since."""
    email, other = str(coach.ctx.caller.email), str(other_company.ctx.caller.email)
    for each in (email, other):
        page = (await visitor.sign_in(each, PASSWORD)).ok()
        await visitor.submit(page, "/app/sign-out")
        await lock(new_visitor, each)

    (await visitor.sign_in(email, PASSWORD)).ok()


async def test_cookie_of_the_device(coach: CoachClient, visitor: Visitor) -> None:
    page = await visitor.get("/app/sign-in")
    signed_in = await visitor.submit_only(page, "/app/sign-in", email=str(coach.ctx.caller.email), password=PASSWORD)
    assert {"HttpOnly", "Max-Age=15552000", "Path=/", "SameSite=Lax"} <= set(device_cookie(signed_in).split("; "))


async def test_session_that_ended_is_renewed_on_a_locked_account(
    coach: CoachClient, visitor: Visitor, new_visitor: NewVisitor
) -> None:
    email = str(coach.ctx.caller.email)
    (await visitor.sign_in(email, PASSWORD)).ok()
    page = await visitor.get("/app/settings/company")
    await coach.ctx.db["sessions"].delete_many({"companyId": coach.ctx.company_id})
    await lock(new_visitor, email)

    expired = (await visitor.submit(page, "/app/settings/company", companyName="Gym")).ok(401)
    names = {"reauthentication__email": email, "reauthentication__password": PASSWORD}
    (await visitor.submit(expired, "/app/settings/company", **names)).ok().says("You are signed in again.")


async def test_reset_on_a_page_helps_under_attack(
    coach: CoachClient, visitor: Visitor, new_visitor: NewVisitor
) -> None:
    email = str(coach.ctx.caller.email)
    token = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
    page = await visitor.get(f"/app/reset-password?token={token}")
    (await visitor.submit(page, "/app/reset-password", password=NEW)).ok()
    await lock(new_visitor, email)

    (await visitor.sign_in(email, NEW)).ok()


async def test_page_of_a_reset_offers_to_delete_api_keys(coach: CoachClient, visitor: Visitor) -> None:
    await api_keys.create(coach.ctx, "Backend")
    token = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
    page = (await visitor.get(f"/app/reset-password?token={token}")).ok()
    page.says("You have 2 API keys, which a new password does not change.")
    short = (await visitor.submit(page, "/app/reset-password", password="short", deleteApiKeys="all")).ok(400)
    short.says("You have 2 API keys, which a new password does not change.")

    (await visitor.submit(short, "/app/reset-password", password=NEW)).ok().says("Sign in with your new password.")

    assert await api_keys.list_api_keys(coach.ctx) == []
    used = (await visitor.get(f"/app/reset-password?token={token}")).ok()
    assert "API key" not in used.text


async def test_page_of_an_account_offers_to_delete_api_keys(
    coach: CoachClient, owner_page: Visitor, new_visitor: NewVisitor
) -> None:
    path = "/app/settings/my-account"
    page = (await owner_page.get(path)).ok()
    page.says("You have 1 API key, which a new password does not change.")
    unchanged = await owner_page.submit(page, path, currentPassword=PASSWORD, password=NEW)
    unchanged.ok().says("Your API key still works.")
    since = {"deleteApiKeys": "sinceLastChange"}
    await api_keys.create(coach.ctx, "Backend")
    (await owner_page.submit(unchanged, path, currentPassword=NEW, password=PASSWORD, **since)).ok()
    assert [key["name"] for key in await api_keys.list_api_keys(coach.ctx)] == ["Test"]

    await lock(new_visitor, str(coach.ctx.caller.email))
    changed = await owner_page.get(path)
    (await owner_page.submit(changed, path, currentPassword=PASSWORD, password=NEW)).ok()
