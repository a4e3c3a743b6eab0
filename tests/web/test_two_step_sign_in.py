"""Pages of the second factor: signing in with a code, setting it up, recovery codes, and removing it."""

from __future__ import annotations

import html
import re
import time
from datetime import timedelta

import pyotp
import pytest
import time_machine

from coaching_service.core.database.documents import now
from coaching_service.people.sessions import service as sessions
from tests.conftest import PASSWORD
from tests.people.test_second_factor import address, code_of, set_up
from tests.support.client import CoachClient
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import ClientPage, Colleague, NewVisitor

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins", "wednesday")
CODE = "/app/sign-in/second-factor"
SECURITY = "/app/settings/security"


def secret_of(page: HtmlPage) -> str:
    """The secret that a page shows, also in its address and its QR code."""
    [address] = [link for link in page.links if link.startswith("otpauth:")]
    secret = pyotp.parse_uri(html.unescape(address)).secret
    assert secret in re.sub(r"\s", "", page.text)
    assert "<svg" in page.html.partition('class="qr-code"')[2]
    return secret


async def turn_on(visitor: Visitor, path: str) -> tuple[str, list[str]]:
    """Set up the second factor on the pages; returns the secret and the recovery codes."""
    page = await visitor.submit(
        (await visitor.get(path)).ok().says("your password alone is not enough"), f"{path}/begin"
    )
    secret = secret_of(page)
    wrong = await visitor.submit(page, f"{path}/confirm", code="000000")
    assert secret_of(wrong.ok(400)) == secret, "the same application can go on"
    done = await visitor.submit(wrong, f"{path}/confirm", code=code_of(secret, -1))
    codes = re.findall(r"<code>([a-z2-9-]{19})</code>", done.ok().says("Two-step sign-in is on").html)
    assert len(codes) == 10
    assert not re.search(r"<code>[a-z2-9-]{19}</code>", (await visitor.get(path)).ok().html), "they are shown once"
    return secret, codes


async def test_a_coach_turns_it_on_signs_in_and_turns_it_off(
    coach: CoachClient, owner_page: Visitor, new_visitor: NewVisitor
) -> None:
    secret, codes = await turn_on(owner_page, SECURITY)

    visitor = new_visitor()
    asked = await visitor.sign_in(address(coach), PASSWORD, f"/app/sign-in?next={SECURITY}")
    asked.ok().says("Confirm it is you")
    assert "coach_session" not in visitor.cookies(), "there is no session yet"
    wrong = await visitor.submit(asked, CODE, code="000 000")
    wrong.ok(401).says("The code is wrong, or has been used.")
    code = code_of(secret)
    signed_in = await visitor.submit(wrong, CODE, code=f"{code[:3]} {code[3:]}")
    assert signed_in.ok().path == SECURITY
    signed_in.says("10 recovery codes left")

    repeated = await new_visitor().submit(asked, CODE, code=code_of(secret, 1))
    repeated.ok(403), "a form of another browser"
    again = await visitor.submit(asked, CODE, code=code_of(secret, 1))
    assert again.path == SECURITY, "who is signed in already goes on"

    by_recovery = new_visitor()
    asked = await by_recovery.sign_in(address(coach), PASSWORD)
    (await by_recovery.submit(asked, CODE, code=codes[0].upper())).ok()
    removed = await by_recovery.submit(
        (await by_recovery.get(SECURITY)).ok().says("9 recovery codes left"), f"{SECURITY}/remove"
    )
    removed.ok().says("Two-step sign-in is off.")
    (await new_visitor().sign_in(address(coach), PASSWORD)).ok().says("Clients")


async def test_the_challenge_expires(coach: CoachClient, visitor: Visitor) -> None:
    secret, _ = await set_up(await coach.interactive())
    asked = await visitor.sign_in(address(coach), PASSWORD, f"/app/sign-in?next={SECURITY}")
    with time_machine.travel(time.time() + 301, tick=True):
        late = await visitor.submit(asked, CODE, code=code_of(secret))
    late.ok().says("That took too long. Sign in again.")
    assert late.form("/app/sign-in").action == "/app/sign-in?next=%2Fapp%2Fsettings%2Fsecurity"


async def test_changes_need_a_recent_sign_in(coach: CoachClient, owner_page: Visitor) -> None:
    """Signing in again renews the session of the browser, in place of a second one."""
    page = (await owner_page.get(SECURITY)).ok()
    stored = coach.ctx.db["sessions"]
    of_owner = {"companyId": coach.ctx.company_id, "application": "web"}
    await stored.update_many(of_owner, {"$set": {"createdAt": now() - timedelta(minutes=11)}})
    late = await owner_page.submit(page, f"{SECURITY}/begin")
    late.ok().says("Sign in again first. Nothing was changed.", "Sign in again…")
    before = owner_page.cookies()["coach_session"]
    [link] = [link for link in late.links if "again" in link]
    again = await owner_page.submit(
        (await owner_page.get(html.unescape(link))).ok(), "/app/sign-in", email=address(coach), password=PASSWORD
    )
    assert again.ok().path == SECURITY
    assert again.form(f"{SECURITY}/begin")
    assert owner_page.cookies()["coach_session"] != before
    assert await stored.count_documents(of_owner) == 1
    secret, _ = await turn_on(owner_page, SECURITY)
    await stored.update_many(of_owner, {"$set": {"createdAt": now() - timedelta(minutes=11)}})
    asked = await owner_page.submit(
        await owner_page.get(html.unescape(link)), "/app/sign-in", email=address(coach), password=PASSWORD
    )
    assert (await owner_page.submit(asked, CODE, code=code_of(secret))).ok().path == SECURITY
    assert await stored.count_documents(of_owner) == 1


async def test_a_form_is_restored_after_signing_in_again(coach: CoachClient, owner_page: Visitor) -> None:
    new = "/app/customers/new"
    page = await owner_page.get(new)
    secret, _ = await set_up(await coach.interactive())
    await sessions.end_sessions(coach.ctx, coach.ctx.caller.id)
    ended = await owner_page.submit(page, new, name="Ana", sendInvitation=None)
    given = {"reauthentication__email": address(coach), "reauthentication__password": PASSWORD}
    asked = await owner_page.submit(ended.ok(401), new, **given)
    wrong = await owner_page.submit(asked.ok(401), new, reauthentication__code="000000")
    wrong.ok(401).says("The code is wrong")
    back = await owner_page.submit(wrong, new, reauthentication__code=code_of(secret))
    back.ok().says("You are signed in again. Nothing has been changed yet")
    (await owner_page.submit(back, new)).ok().says("Ana added.")


async def test_a_client_turns_it_on(coach: CoachClient, client_page: ClientPage, new_visitor: NewVisitor) -> None:
    email = f"ana@{coach.ctx.company_id}.test"
    ana = await coach.create_customer("Ana", email=email, sendInvitation=False)
    (await (await coach.interactive()).put(f"/coach/customers/{ana['_id']}/password", {"password": PASSWORD})).ok()
    secret, _ = await turn_on(await client_page(coach, ana), "/train/settings/security")
    visitor = new_visitor()
    asked = await visitor.sign_in(email, PASSWORD, "/app/sign-in?next=/train/settings/security")
    signed_in = await visitor.submit(asked.ok(), CODE, code=code_of(secret))
    assert signed_in.ok().path == "/train/settings/security"


async def test_a_coach_without_it_is_redirected_to_set_it_up(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    employee = await colleague("customers.view")
    company = await owner_page.submit(
        await owner_page.get("/app/settings/company"), "/app/settings/company", requireSecondFactor="true"
    )
    company.ok(409).says("Set up two-step sign-in for yourself first, under Security.")
    await turn_on(owner_page, SECURITY)
    page = await owner_page.get("/app/settings/company")
    (await owner_page.submit(page, "/app/settings/company", requireSecondFactor="true")).ok().says("Changes saved.")

    redirected = await employee.get("/app/customers")
    assert redirected.ok().path == SECURITY
    redirected.says("Your company requires two-step sign-in. Set it up to go on.")
    await turn_on(employee, SECURITY)
    (await employee.get("/app/customers")).ok().says("Clients")

    team_page = (await owner_page.get("/app/settings/team")).ok()
    [reset] = [link for link in team_page.links if link.endswith("/reset-second-factor")]
    done = await owner_page.submit((await owner_page.get(reset)).ok().says("Reset two-step sign-in of Eli?"), reset)
    done.ok().says("Eli can sign in with the password alone.")
    assert (await employee.get("/app/customers")).path.startswith("/app/sign-in"), "signed out"
