"""Sign-in pages: sign in and out, sign up, confirmed addresses, password reset, first access of clients."""

from __future__ import annotations

import asyncio
import json
import re
import secrets

import pytest

from coaching_service.app import SERVICES
from coaching_service.core import rate_limits
from coaching_service.core.ids import ObjectId
from coaching_service.people import team
from coaching_service.people.identities import service as identities
from coaching_service.people.sessions import service as sessions
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.people.test_sessions import mailed_token
from tests.support.client import CoachClient
from tests.support.other_process import AsServed
from tests.support.service_process import until
from tests.support.visitor import Visitor
from tests.web.conftest import NewVisitor


async def test_sign_up_creates_a_company_and_signs_in(visitor: Visitor) -> None:
    page = await visitor.get("/app/sign-up")
    address = f"new-{secrets.token_hex(6)}@example.com"

    arrived = await visitor.submit(
        page, "/app/sign-up", companyName="Nova Gym", name="Nova", email=address, password=PASSWORD
    )

    arrived.ok().says("Welcome, Nova. Nova Gym is ready.")
    assert "/app/settings" in arrived.links
    assert "Nova Gym is ready" not in (await visitor.get("/app")).text, "a notice is shown once"


async def test_rejected_sign_up_keeps_values_and_marks_the_field(visitor: Visitor) -> None:
    page = await visitor.get("/app/sign-up")
    wrong = await visitor.submit(page, "/app/sign-up", companyName="Nova", name=" ", email="nova", password="short one")

    form = wrong.ok(400).form("/app/sign-up")
    assert form.controls["companyName"]["value"] == "Nova"
    assert form.controls["email"]["value"] == "nova"
    assert form.controls["password"]["value"] == "", "a password is never sent back"
    assert [name for name, control in form.controls.items() if control.get("aria-invalid")] == [
        "name",
        "email",
        "password",
    ]
    wrong.says("This must be an e-mail address.", "This must be at least 12 characters long.")


async def test_email_in_use_cannot_sign_up(coach: CoachClient, visitor: Visitor) -> None:
    page = await visitor.get("/app/sign-up")
    known = await visitor.submit(
        page, "/app/sign-up", companyName="N", name="N", email=str(coach.ctx.caller.email), password=PASSWORD
    )
    known.ok(409).says("This e-mail address is already used to sign in.")


async def test_sign_in_returns_to_the_requested_page(coach: CoachClient, visitor: Visitor) -> None:
    confirmation = await visitor.get("/app/settings/nowhere?a=1")
    confirmation.ok(404)
    confirmation = await visitor.get("/app/settings/company?a=1")
    assert confirmation.path.startswith("/app/sign-in?next=")

    arrived = await visitor.submit(confirmation, "/app/sign-in", email=str(coach.ctx.caller.email), password=PASSWORD)

    assert arrived.ok().path == "/app/settings/company?a=1"
    assert (await visitor.get("/app/sign-in")).path == "/app/attention", "a signed-in coach is redirected"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/app\\@evil.example",
        "javascript:alert(1)",
        "/application",
        "/coach/customers",
        "app",
        "/app\r\nSet-Cookie: a=b",
        " /app",
        "/app/\u202egro.live",
        "/app/../docs",
        "/app/..//evil.invalid",
        "/app/%2e%2e/docs",
        "/app/customers//evil.example",
        "",
    ],
)
async def test_next_cannot_redirect_to_another_site(coach: CoachClient, visitor: Visitor, elsewhere: str) -> None:
    token = (await visitor.get("/app/sign-in")).form("/app/sign-in").fields[0][1]
    data = {"csrf": token, "email": str(coach.ctx.caller.email), "password": PASSWORD}
    arrived = await visitor.send("POST", "/app/sign-in", params={"next": elsewhere}, data=data, follow=False)
    assert arrived.ok(303).headers["Location"] == "/app"


async def test_wrong_password_and_unknown_email_have_the_same_message(coach: CoachClient, visitor: Visitor) -> None:
    wrong = await visitor.sign_in(str(coach.ctx.caller.email), "not the password")
    unknown = await visitor.sign_in("nobody@example.com", "not the password")

    assert wrong.status == unknown.status == 401
    wrong.says("The e-mail address or the password is wrong.")
    assert wrong.text == unknown.text
    assert wrong.form("/app/sign-in").controls["email"]["value"] == coach.ctx.caller.email


async def test_failed_sign_ins_count_for_page_and_rest(
    coach: CoachClient, visitor: Visitor, anonymous: CoachClient
) -> None:
    email = str(coach.ctx.caller.email)
    for _ in range(3):
        await visitor.sign_in(email, "not the password")
        await anonymous.post("/auth/login", {"email": email, "password": "not the password"})
    slowed = await visitor.sign_in(email, PASSWORD)

    slowed.ok(429).says("Too many attempts. Try again in 15 minutes.")
    assert int(slowed.headers["Retry-After"]) > 0


async def test_disconnected_sign_in_is_skipped_in_the_queue(coach: CoachClient, as_served: AsServed) -> None:
    email, services = str(coach.ctx.caller.email), as_served.app[SERVICES]
    visitor = Visitor(as_served)
    async with services.sign_in_slot.holding("another"):  # another sign-in is in progress
        trying = asyncio.create_task(visitor.sign_in(email, "not the password"))
        await until(lambda: services.sign_in_slot.queued == 1, "the form waits in line")
        trying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trying
        await visitor.close()
        await until(as_served.all_disconnected, "the service notices it")

    left = {"method": "POST", "route": "/app/sign-in", "status": "499"}
    await until(
        lambda: services.metrics.registry.get_sample_value("http_requests_total", left),
        "the queue continues",
    )
    assert await rate_limits.get_count(services, "account", email) == (0, 0)


async def test_password_is_reset_with_the_emailed_link(coach: CoachClient, visitor: Visitor) -> None:
    confirmation = await visitor.submit(
        await visitor.get("/app/forgotten-password"), "/app/forgotten-password", email="nobody@example.com"
    )
    confirmation.ok().says("If the address has an account, we sent an email with a link.")
    token = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
    page = await visitor.get(f"/app/reset-password?token={token}")
    short = await visitor.submit(page, "/app/reset-password", password="short")
    short.ok(400).says("This must be at least 12 characters long.")

    done = await visitor.submit(short, "/app/reset-password", password="another fine phrase")

    done.ok().says("Password changed. Sign in with your new password.")
    (await visitor.sign_in(str(coach.ctx.caller.email), PASSWORD)).ok(401)
    (await visitor.sign_in(str(coach.ctx.caller.email), "another fine phrase")).ok()
    again = await visitor.submit(short, "/app/reset-password", password="another fine phrase")
    again.ok(403).says("This page was out of date, so nothing was changed.")


async def test_used_reset_link_is_reported(coach: CoachClient, visitor: Visitor) -> None:
    page = await visitor.get("/app/reset-password?token=unknown")
    used = await visitor.submit(page, "/app/reset-password", password="another fine phrase")
    used.ok(401).says("The token is unknown, used or older than an hour; ask for another")
    (await visitor.get("/app/reset-password")).ok().says("Open this page with the link from our email.")


async def test_invited_client_sets_a_password_and_lands_on_today(
    coach: CoachClient, visitor: Visitor, new_visitor: NewVisitor
) -> None:
    email = f"ana-{secrets.token_hex(6)}@example.com"
    customer = await coach.create_customer("Ana", email=email, sendInvitation=False)
    page = await visitor.get(f"/app/first-access?token={customer['firstAccessToken']}")
    assert page.ok().path == f"/train/first-access?token={customer['firstAccessToken']}", "older mails lead there"

    company = coach.ctx.caller.company.name
    page.says(f"Welcome to {company}")
    assert f"<title>Welcome · {company}</title>" in page.html
    (address,) = re.findall(r'<link rel="manifest" href="([^"]+)"', page.html)
    assert json.loads((await new_visitor().get(address)).ok().html)["name"] == company

    done = await visitor.submit(page, "/train/first-access", password=PASSWORD, timezone="America/Lima")

    assert done.ok().says("Welcome, Ana.").path == "/train"
    manifest = await visitor.get("/train/manifest.webmanifest")
    assert manifest.headers["Content-Type"] == "application/manifest+json"
    assert json.loads(manifest.html).items() >= {"name": company, "short_name": company, "id": "/train"}.items()
    assert (await coach.get(f"/coach/customers/{customer['_id']}")).ok()["timezone"] == "America/Lima"
    assert (await visitor.get(page.path)).path == "/train", "the link in the mail opens the application from now on"
    assert (await new_visitor().sign_in(email, PASSWORD)).ok().path == "/train"


@pytest.mark.parametrize(
    ("wanted", "of_coach", "of_client"),
    [
        ("/app/customers", "/app/customers", "/train"),
        ("/train/calendar", "/app", "/train/calendar"),
        ("/trainer", "/app", "/train"),
        ("//evil.example/train", "/app", "/train"),
    ],
)
async def test_one_sign_in_form_serves_coaches_and_clients(
    coach: CoachClient, new_visitor: NewVisitor, wanted: str, of_coach: str, of_client: str
) -> None:
    email = f"ana-{secrets.token_hex(6)}@example.com"
    customer = await coach.create_customer("Ana", email=email, sendInvitation=False)
    first = {"token": customer["firstAccessToken"], "password": PASSWORD}
    (await coach.post("/auth/first-access", first)).ok()
    for address, landing in ((str(coach.ctx.caller.email), of_coach), (email, of_client)):
        visitor = new_visitor()
        token = (await visitor.get("/app/sign-in")).form("/app/sign-in").fields[0][1]
        data = {"csrf": token, "email": address, "password": PASSWORD}
        signed_in = await visitor.send("POST", "/app/sign-in", params={"next": wanted}, data=data, follow=False)
        assert signed_in.ok(303).headers["Location"] == landing


async def test_removed_employee_is_signed_out_immediately(
    coach: CoachClient, new_visitor: NewVisitor, password_hash: str
) -> None:
    email = f"eli-{secrets.token_hex(6)}@example.com"
    hired = await team.create(coach.ctx, "Eli", email, [], "all", password_hash)
    eli = new_visitor()
    (await eli.sign_in(email, PASSWORD)).ok()

    await team.delete_employee(coach.ctx, hired["_id"])

    assert (await eli.get("/app")).path == "/app/sign-in"


async def test_sign_out_invalidates_every_copy_of_the_cookie(coach: CoachClient, owner_page: Visitor) -> None:
    token = owner_page.cookies()["coach_session"]
    out = await owner_page.submit(await owner_page.get("/app"), "/app/sign-out")

    out.ok().says("You are signed out.")
    assert "coach_session" not in owner_page.cookies()
    assert await sessions.find_web_principal(coach.ctx.services, token) is None


async def test_invalid_first_access_link_has_no_form(
    coach: CoachClient, visitor: Visitor, new_visitor: NewVisitor
) -> None:
    customer = await coach.create_customer(email=f"ana-{secrets.token_hex(6)}@example.com", sendInvitation=False)
    link = f"/train/first-access?token={customer['firstAccessToken']}"
    first = {"password": PASSWORD, "timezone": "Moon/Unknown"}  # of a browser with newer zones
    (await visitor.submit(await visitor.get(link), "/train/first-access", **first)).ok()

    for dead in (link, "/train/first-access?token=nonsense", "/train/first-access"):
        page = await new_visitor().get(dead)
        assert page.ok().forms == [], dead
    (await new_visitor().get(link)).says("This link has been used")


async def test_sign_up_stores_the_time_zone(visitor: Visitor) -> None:
    page = (await visitor.get("/app/sign-up")).ok()
    assert '<option value="America/Bogota">' in page.html
    who = {"companyName": "Nova", "name": "Nova", "email": f"n-{secrets.token_hex(6)}@example.com"}
    wrong = await visitor.submit(page, "/app/sign-up", **who, password=PASSWORD, timezone="Nowhere")
    wrong.ok(400).says("This must be a time zone such as")
    (await visitor.submit(wrong, "/app/sign-up", password=PASSWORD, timezone="bogota")).ok()
    assert 'value="America/Bogota"' in (await visitor.get("/app/settings/company")).html


async def test_trailing_slash_is_redirected(owner_page: Visitor) -> None:
    assert (await owner_page.get("/app/")).ok().path == "/app/attention"
    assert (await owner_page.get("/app/exercises/")).ok().path == "/app/exercises"


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
    path = team.decline_link(coach.ctx, email).removeprefix(coach.ctx.services.base_url)
    page = await visitor.get(path)
    page.says(f"{coach.ctx.caller.company.name} will not be able to send another invitation to your email address.")
    page = await visitor.submit(page, "/train/no-invitations")
    page.says("You will receive no more invitations from them.")
    assert await team.reserve_invitations(coach.ctx, [email]) == [None]


async def test_a_forged_token_declines_nothing(
    coach: CoachClient, other_company: CoachClient, visitor: Visitor
) -> None:
    token = team.decline_link(coach.ctx, f"ana@{ObjectId()}.test").partition("token=")[2]
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
