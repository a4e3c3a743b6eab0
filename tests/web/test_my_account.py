"""The account page: changing the password."""

from __future__ import annotations

import secrets

import pytest

from coaching_service.people import assistants, team
from coaching_service.people.identities import service as identities
from tests.conftest import PASSWORD
from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient
from tests.support.visitor import Visitor
from tests.web.conftest import NewVisitor

YOU, FRESH, WRONG = "/app/settings/my-account", "another long password", "This is not your password."


@pytest.fixture(autouse=True)
async def reset_sign_in_limits(coach: CoachClient) -> None:
    """Clear the counters: all tests share one network address."""
    await coach.ctx.db["rateLimits"].delete_many({})


async def test_password_change_ends_all_other_sessions(
    coach: CoachClient, owner_page: Visitor, new_visitor: NewVisitor, interactive: CoachClient
) -> None:
    email = str(coach.ctx.caller.email)
    elsewhere = new_visitor()
    (await elsewhere.sign_in(email, PASSWORD)).ok()
    await authorize_assistant(coach.ctx)
    page = (await owner_page.get(YOU)).ok().says("Olga Owner", email)

    saved = await owner_page.submit(page, YOU, currentPassword=PASSWORD, password=FRESH)

    saved.ok().says("Password changed.")
    assert (await owner_page.get("/app/customers")).path == "/app/customers", "this session continues"
    assert (await elsewhere.get("/app/customers")).ok().path.startswith("/app/sign-in")
    (await interactive.get("/me")).refused(401)
    assert await assistants.list_assistants(coach.ctx) == []
    (await coach.get("/me")).ok(), "API keys go on"
    (await elsewhere.sign_in(email, PASSWORD)).ok(401)
    assert (await elsewhere.sign_in(email, FRESH)).ok().path == "/app/attention"
    kept_of_it = {"companyId": coach.ctx.company_id, "action": "password.changed"}
    assert await coach.ctx.db["audit"].count_documents(kept_of_it) == 1


async def test_password_change_requires_the_current_and_a_valid_new_password(
    coach: CoachClient, owner_page: Visitor
) -> None:
    page = await owner_page.get(YOU)
    wrong = await owner_page.submit(page, YOU, currentPassword="not my password", password=FRESH)
    wrong.ok(400).says(WRONG)
    assert FRESH not in wrong.html
    short = await owner_page.submit(wrong, YOU, currentPassword=PASSWORD, password="short")
    short.ok(400).says("This must be at least 12 characters long.")
    empty = await owner_page.submit(wrong, YOU, currentPassword="", password="")
    assert empty.ok(400).text.count("This should not be empty.") == 2
    assert await identities.check_password(coach.ctx, coach.ctx.caller.id, PASSWORD)


async def test_wrong_current_passwords_count_as_failed_sign_ins(
    coach: CoachClient, owner_page: Visitor, new_visitor: NewVisitor
) -> None:
    page = await owner_page.get(YOU)
    for number in range(5):
        guessed = await owner_page.submit(page, YOU, currentPassword=f"guess number {number}", password=FRESH)
        guessed.ok(400).says(WRONG)

    sixth = await owner_page.submit(page, YOU, currentPassword="guess number 6", password=FRESH)
    sixth.ok(429).says("Too many attempts. Try again in 15 minutes.")
    right = await owner_page.submit(page, YOU, currentPassword=PASSWORD, password=FRESH)
    right.ok(429), "the correct password is limited too"
    (await new_visitor().sign_in(str(coach.ctx.caller.email), PASSWORD)).ok(), "guesses in a session lock no one out"
    assert (await owner_page.get(YOU)).ok().path == YOU, "the coach stays signed in"


async def test_password_change_invalidates_reset_links(coach: CoachClient, owner_page: Visitor) -> None:
    token = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
    page = await owner_page.get(YOU)
    (await owner_page.submit(page, YOU, currentPassword=PASSWORD, password=FRESH)).ok()

    assert await identities.find_by_reset_token(coach.ctx.services, token) is None


async def test_every_coach_has_the_account_page(
    coach: CoachClient, new_visitor: NewVisitor, password_hash: str
) -> None:
    email = f"eli-{secrets.token_hex(6)}@example.com"
    await team.create(coach.ctx, "Eli", email, [], "all", password_hash)
    eli = new_visitor()
    arrived = (await eli.sign_in(email, PASSWORD)).ok()
    page = (await eli.get(YOU)).ok().says("Eli", email, "The owner of your company can change your name and email.")
    assert YOU in page.links, arrived.path
    (await eli.submit(page, YOU, currentPassword=PASSWORD, password=FRESH)).ok().says("Password changed.")
    assert await identities.check_password(coach.ctx, coach.ctx.caller.id, PASSWORD), "other passwords are unchanged"


async def test_password_is_not_carried_over_after_the_session_has_ended(
    coach: CoachClient, owner_page: Visitor
) -> None:
    page = await owner_page.get(YOU)
    await coach.ctx.db["sessions"].delete_many({"companyId": coach.ctx.company_id})
    ended = await owner_page.submit(page, YOU, currentPassword=PASSWORD, password=FRESH)
    ended.ok(401).says("Your session has ended")
    assert PASSWORD not in ended.html
    assert FRESH not in ended.html
