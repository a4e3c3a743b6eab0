"""Form values are kept when the session has expired or the form is stale, and only submitted by the user."""

from __future__ import annotations

from coaching_service.people.sessions import service as sessions
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import NewVisitor

COMPANY, NEW = "/app/settings/company", "/app/customers/new"


async def session_ends(coach: CoachClient) -> None:
    await sessions.end_sessions(coach.ctx, coach.ctx.caller.id)


async def sign_in_again(visitor: Visitor, page: HtmlPage, coach: CoachClient, action: str, password: str) -> HtmlPage:
    return await visitor.submit(
        page, action, reauthentication__email=str(coach.ctx.caller.email), reauthentication__password=password
    )


async def test_form_is_restored_after_signing_in_again(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(NEW)
    await session_ends(coach)

    ended = await owner_page.submit(page, NEW, name="Ana", phone="1", groups=["A, b\r\nC"], sendInvitation=None)
    ended.ok(401).says("Your session has ended", "with your entries")
    wrong = await sign_in_again(owner_page, ended, coach, NEW, "not the password")
    wrong.ok(401).says("The e-mail address or the password is wrong.")
    back = await sign_in_again(owner_page, wrong, coach, NEW, PASSWORD)

    assert back.ok().path == NEW
    back.says("Nothing has been changed yet: check your entries and submit the form.")
    assert await coach.names() == [], "the form is not submitted automatically"
    (await owner_page.submit(back, NEW)).ok().says("Ana added.")
    (ana,) = (await coach.customers())["docs"]
    assert (ana["phone"], ana["customerRoleData"]["groups"]) == ("1", ["A, b", "C"])


async def test_password_is_not_carried_over(coach: CoachClient, owner_page: Visitor) -> None:
    here = "/app/settings/delete-account"
    page = await owner_page.get(here)
    await session_ends(coach)
    ended = await owner_page.submit(page, here, password=PASSWORD)
    assert PASSWORD not in ended.ok(401).html
    back = await sign_in_again(owner_page, ended, coach, here, PASSWORD)
    assert PASSWORD not in back.ok().html
    (await coach.get("/me")).ok()


async def test_form_of_another_site_is_not_restored(new_visitor: NewVisitor) -> None:
    anonymous = new_visitor()
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {}):
        confirmation = await anonymous.send("POST", NEW, data={"name": "Planted"}, headers=headers)
        assert confirmation.ok().path == "/app/sign-in"
        assert "Planted" not in confirmation.html


async def test_stale_form_is_shown_again_with_its_values(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(NEW)
    (await owner_page.submit(await owner_page.get("/app"), "/app/sign-out")).ok()
    (await owner_page.sign_in(str(coach.ctx.caller.email), PASSWORD)).ok()

    stale = await owner_page.submit(page, NEW, name="Ana")

    stale.ok(403).says("This page was out of date, so nothing was changed.")
    assert "Ask the owner" not in stale.text
    assert stale.form(NEW).controls["name"]["value"] == "Ana"
    (await owner_page.submit(stale, NEW)).ok().says("Ana added.")


async def test_sign_in_form_works_after_signing_in_in_another_tab(coach: CoachClient, visitor: Visitor) -> None:
    second = await visitor.get(COMPANY)
    (await visitor.sign_in(str(coach.ctx.caller.email), PASSWORD)).ok()
    arrived = await visitor.submit(second, "/app/sign-in", email=str(coach.ctx.caller.email), password=PASSWORD)
    assert arrived.ok().path == COMPANY


async def test_signing_out_twice_redirects_to_sign_in(owner_page: Visitor) -> None:
    page = await owner_page.get("/app")
    (await owner_page.submit(page, "/app/sign-out")).ok()
    assert (await owner_page.submit(page, "/app/sign-out")).ok().path == "/app/sign-in"


async def test_preview_is_shown_again_after_signing_in(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    clear = f"/app/customers/{ana['_id']}/schedule/clear"
    preview = f"{clear}/preview?startDate=2026-03-02&endDate=2026-03-08&week=2026-03-02"
    (await owner_page.get(preview)).ok().says("Preview: 0 workouts removed")
    await session_ends(coach)

    reloaded = await owner_page.get(preview, headers={"Sec-Fetch-Site": "same-origin"})

    assert reloaded.ok().path.startswith("/app/sign-in?next="), reloaded.text
    email = str(coach.ctx.caller.email)
    back = await owner_page.submit(reloaded, "/app/sign-in", email=email, password=PASSWORD)
    assert back.ok().says("Preview: 0 workouts removed").path == preview
