"""Security of the web application: cookies, CSRF, inline code, error pages without internals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from aiohttp.test_utils import TestServer
from yarl import URL

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as web_sessions
from coaching_service.settings import Settings
from coaching_service.web import views
from coaching_service.web.pages import Page
from tests.conftest import PASSWORD, NewCompany
from tests.core.test_protocol import exchange
from tests.support.client import UNKNOWN, CoachClient
from tests.support.sampled import some
from tests.support.stored import stored_document
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import NewVisitor

PAGES = views.list_pages()
FORMS = [page for page in PAGES if page.method == "POST"]


def filled(page: Page) -> str:
    path = page.path
    for wire, _ in page.path_parameters:
        path = path.replace(f"{{{wire}}}", UNKNOWN)
    return path


def csrf_token_of(page: HtmlPage) -> str:
    return page.html.partition('name="csrf" value="' if "data-csrf" not in page.html else 'data-csrf="')[2].partition(
        '"'
    )[0]


async def test_session_cookie_attributes(coach: CoachClient, visitor: Visitor) -> None:
    arrived = await visitor.sign_in(str(coach.ctx.caller.email), PASSWORD)
    (cookie,) = [c for c in arrived.cookies if c.startswith("coach_session=")]
    assert {"HttpOnly", "Path=/", "SameSite=Lax", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie, "the tests use http"


@pytest.fixture
async def https_server(settings: Settings, services: Services) -> AsyncIterator[TestServer]:
    """The same service with an https URL."""
    secure = TestServer(create_app(settings, replace(services, base_url="https://coaching.test")))
    await secure.start_server()
    yield secure
    await secure.close()


async def test_https_cookies_are_secure_and_host_only(https_server: TestServer) -> None:
    visitor = Visitor(https_server)
    page = await visitor.get("/app/sign-in")
    await visitor.close()
    (cookie,) = page.cookies
    assert cookie.startswith("__Host-visitor=")
    assert {"HttpOnly", "Path=/", "SameSite=Lax", "Secure"} <= set(cookie.split("; "))
    assert "Domain" not in cookie


async def test_cookie_is_rejected_by_rest_and_bearer_token_by_pages(
    interactive: CoachClient, owner_page: Visitor, new_visitor: NewVisitor, anonymous: CoachClient
) -> None:
    token = owner_page.cookies()["coach_session"]
    (await owner_page.get("/me")).ok(401)
    (await anonymous.with_bearer(token).get("/me")).refused(401)

    bearer = interactive._headers["Authorization"].removeprefix("Bearer ")
    stranger = new_visitor()
    stranger.keep(coach_session=bearer)
    assert (await stranger.get("/app")).path == "/app/sign-in"
    (await stranger.get("/app", headers={"Authorization": f"Bearer {bearer}"})).says("Sign in")


@pytest.mark.parametrize("cookie", ["coach_visitor", "coach_session", "coach_notice"])
async def test_undecodable_cookie_is_ignored(owner_page: Visitor, server: TestServer, cookie: str) -> None:
    garbled = f"Cookie: {cookie}=\udcff.x".encode("utf-8", "surrogateescape")
    confirmation = b"GET /app/sign-in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + garbled + b"\r\n\r\n"
    head, body = await exchange(server.port or 0, confirmation)
    assert head.startswith(b"HTTP/1.1 200")
    assert b"Sign in" in body


async def test_client_signs_in_with_a_browser_that_sends_bytes_that_are_not_utf8(
    coach: CoachClient, anonymous: CoachClient, visitor: Visitor, server: TestServer
) -> None:
    email = f"ana@{coach.ctx.company_id}.test"
    ana = await coach.create_customer("Ana", email=email, sendInvitation=False)
    (await anonymous.post("/auth/first-access", {"token": ana["firstAccessToken"], "password": PASSWORD})).ok()
    page = await visitor.get("/app/sign-in")
    typed = {**dict(page.form("/app/sign-in").fields), "email": email, "password": PASSWORD}
    body = urlencode(typed).encode()
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies().items())
    lines = [
        b"POST /app/sign-in HTTP/1.1",
        b"Host: x",
        b"Connection: close",
        b"Sec-Fetch-Site: same-origin",
        f"Cookie: {cookies}".encode(),
        b"Content-Type: " + FORM.encode(),
        f"Content-Length: {len(body)}".encode(),
        b"User-Agent: Zanzibar \xff",
    ]
    head, _ = await exchange(server.port or 0, b"\r\n".join([*lines, b"", body]))
    assert head.startswith(b"HTTP/1.1 303")
    stored = await stored_document(coach.ctx.db["sessions"], {"companyId": coach.ctx.company_id, "application": "web"})
    assert stored["device"] == "Zanzibar \ufffd"


async def test_only_a_hash_of_the_cookie_is_stored(coach: CoachClient, owner_page: Visitor) -> None:
    token = owner_page.cookies()["coach_session"]
    stored = await coach.ctx.db["sessions"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert [session["application"] for session in stored] == ["web"]
    assert token not in str(stored)


async def test_session_expires(coach: CoachClient) -> None:
    ctx, sessions = coach.ctx, coach.ctx.db["sessions"]
    token = (await web_sessions.start_for_coach(ctx, ctx.caller.id)).token

    async def until(**access: Any) -> Any:
        await sessions.update_one({"companyId": ctx.company_id}, {"$set": access})
        who = await web_sessions.find_web_principal(ctx.services, token)
        stored = await sessions.find_one({"companyId": ctx.company_id})
        return who, stored["access"][0]["until"] if stored else None

    who, prolonged = await until(**{"access.0.until": now() + timedelta(minutes=10)})
    assert who is not None
    assert prolonged > now() + timedelta(minutes=110), "each request extends it by two hours"
    end = now() + timedelta(minutes=30)
    _, prolonged = await until(**{"expiresAt": end, "access.0.until": now() + timedelta(minutes=1)})
    assert prolonged == end, "never beyond twelve hours in total"
    who, _ = await until(**{"access.0.until": now() - timedelta(seconds=1)})
    assert who is None


WITHOUT_ORIGIN = (
    "/app/confirm-email",
    "/app/reset-password",
    "/app/settings/notifications/off",
    "/train/first-access",
    "/train/no-invitations",
    "/train/reset-password",
    "/train/settings/notifications/off",
)


@dataclass
class User:
    """A user who is signed in, and the token of their forms."""

    visitor: Visitor
    csrf: str


@pytest.fixture(scope="module")
async def users(new_company: NewCompany, server: TestServer) -> AsyncIterator[dict[str, User]]:
    """The owner and a client of a company, by the audience of pages."""
    ctx = (coach := await new_company()).ctx
    customer_id = ObjectId((await coach.create_customer())["_id"])
    owner, client = Visitor(server), Visitor(server)
    owner.keep(coach_session=(await web_sessions.start_for_coach(ctx, ctx.caller.id)).token)
    client.keep(coach_session=(await web_sessions.start_for_customer(ctx, customer_id, "Test browser")).token)
    signed_in = {"coach": User(owner, csrf_token_of(await owner.get("/app")))}
    yield signed_in | {"customer": User(client, csrf_token_of(await client.get("/train")))}
    await owner.close()
    await client.close()


def user_of(users: dict[str, User], page: Page) -> User:
    return users.get(page.access.audience, users["coach"])


async def test_form_without_csrf_token_is_rejected(users: dict[str, User], visitor: Visitor) -> None:
    """Each form with a false token, of its user and of a visitor without a session; without any, one of each kind."""
    for page in FORMS:
        user, path = user_of(users, page).visitor, filled(page)
        rejected = await user.send("POST", path, data={"csrf": "x" * 43})
        rejected.ok(403).says("This page was out of date, so nothing was changed.")
        stranger = await visitor.send("POST", path, data={"csrf": "x" * 43}, follow=False)
        if page.access.audience != "public":
            assert stranger.ok(303).headers["Location"].startswith("/app/sign-in"), path
        else:
            stranger.ok(403).says("This page was out of date, so nothing was changed.")
    for page in some(FORMS, 30):
        rejected = await user_of(users, page).visitor.send("POST", filled(page), data=aiohttp.FormData({}))
        assert rejected.status in (403, 415), page.path
    ended = await visitor.send("POST", "/app/settings/api-keys", data={"csrf": "x" * 43})
    assert ended.ok().says("Your session has ended, so nothing was changed.").path == "/app/sign-in"


# What a browser says of a form of another site.
FOREIGN = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
)


async def test_cross_site_form_is_rejected(users: dict[str, User]) -> None:
    """Each form that has no mailed token also when the browser does not say from where it is."""
    for page in FORMS:
        user = user_of(users, page)
        for headers in FOREIGN if page.path in WITHOUT_ORIGIN else ({"Origin": "null"},):
            rejected = await user.visitor.send("POST", filled(page), data={"csrf": user.csrf}, headers=headers)
            rejected.ok(403).says("This form was sent from another site")


async def test_form_of_another_site_is_rejected_whatever_the_browser_says(users: dict[str, User]) -> None:
    user = users["coach"]
    for headers in FOREIGN:
        rejected = await user.visitor.send("POST", "/app/settings/api-keys", data={"csrf": user.csrf}, headers=headers)
        rejected.ok(403).says("This form was sent from another site")


async def test_address_in_a_header_that_is_not_valid_is_no_address(users: dict[str, User], visitor: Visitor) -> None:
    path, form = "/app/settings/api-keys", {"csrf": users["coach"].csrf}
    for address in ("http://[", "http://[x]/a"):
        rejected = await users["coach"].visitor.send("POST", path, data=form, headers={"Origin": address})
        rejected.ok(403).says("This form was sent from another site")
        ended = await visitor.send("POST", path, headers={"Referer": address})
        ended.ok().says("Your session has ended, so nothing was changed.")


@pytest.mark.parametrize("path", WITHOUT_ORIGIN)
async def test_form_with_a_mailed_token_needs_no_origin(visitor: Visitor, path: str) -> None:
    """Its page sends no referrer; browsers without `Sec-Fetch-Site` then send a null origin."""
    csrf = csrf_token_of(await visitor.get(f"{path}?token=x"))
    form = {"csrf": csrf, "token": "x", "password": "another fine phrase"}
    reply = await visitor.send("POST", path, data=form, headers={"Origin": "null"})
    assert "This form was sent from another site" not in reply.text
    assert (await visitor.send("POST", path, data=form | {"csrf": ""}, headers={"Origin": "null"})).status == 403


async def test_csrf_token_of_another_session_is_rejected(owner_page: Visitor, new_visitor: NewVisitor) -> None:
    stranger = new_visitor()
    token = (await stranger.get("/app/sign-in")).form("/app/sign-in").fields[0][1]
    rejected = await owner_page.send("POST", "/app/sign-out", data={"csrf": token})
    rejected.ok(403).says("This page was out of date, so nothing was changed.")


async def test_pages_have_no_inline_style_or_script(owner_page: Visitor, new_visitor: NewVisitor) -> None:
    pages = [await new_visitor().get(path) for path in ("/app/sign-in", "/app/nowhere")]
    for page in [*pages, await owner_page.get("/app")]:
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "form-action 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert page.headers["Referrer-Policy"] == "same-origin"
        assert page.headers["Cache-Control"] == "no-store"
        assert "<style" not in page.html
        assert " style=" not in page.html
        assert " on" not in [part[:3] for part in page.html.split('"') if "=" in part]


async def test_static_files_are_cached_by_content_hash(visitor: Visitor) -> None:
    page = await visitor.get("/app/sign-in")
    address = page.html.partition('rel="stylesheet" href="')[2].partition('"')[0]
    style = await visitor.get(address)
    assert style.ok().headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert style.headers["Content-Type"] == "text/css; charset=utf-8"
    (await visitor.get("/app/static/style.000000000000.css")).ok(404)


async def test_errors_are_pages_with_advice(owner_page: Visitor) -> None:
    token = (await owner_page.get("/app")).form("/app/sign-out").fields[0][1]
    (await owner_page.get("/app/nowhere")).ok(404).says("Page not found", "Back to home")
    rejected = await owner_page.send("PUT", "/app/sign-in")
    assert rejected.ok(405).headers["Allow"] == "GET, HEAD, POST"
    (await owner_page.send("PUT", "/app/sign-out")).ok(405)
    (await owner_page.send("POST", "/app/sign-in", data={"csrf": token, "email": "x" * 300_000})).ok(413)
    (await owner_page.send("POST", "/app/sign-in", json={})).ok(415)
    (await owner_page.send("POST", "/app/sign-in", data=b"\xff", headers={"Content-Type": FORM})).ok(400)


async def test_opening_a_form_path_redirects_to_its_page(coach: CoachClient, owner_page: Visitor) -> None:
    ana = f"/app/customers/{(await coach.create_customer('Ana'))['_id']}"
    week = await owner_page.get(f"{ana}?week=2026-03-02")
    rejected = await owner_page.submit(week, f"{ana}/blocks", name=" ", date="2026-03-02")
    rejected.ok(400)

    assert (await owner_page.get(rejected.path)).ok().path == week.path
    assert (await owner_page.get(f"{ana}/invite")).ok().path == f"{ana}/details"
    assert (await owner_page.get("/app/sign-in?next=/app/sign-out")).ok().path == "/app/attention"
    (await owner_page.get(f"{ana}/blocks/nothing")).ok(404)


async def test_closing_slash_is_removed_from_an_address(owner_page: Visitor) -> None:
    shown = await owner_page.get("/app/customers/?keywords=Ana")
    assert shown.ok().path == "/app/customers?keywords=Ana"
    for path in ("/app/%0D%0AX-Planted:%20yes/", "/app/a%2F", "/app///"):
        answer = await owner_page.get(URL(path, encoded=True), follow=False)
        assert "X-Planted" not in answer.headers
        assert (answer.status, answer.headers.get("Location")) in ((303, path.rstrip("/")), (404, None))


FORM = "application/x-www-form-urlencoded"


async def test_root_redirects_browsers_only(visitor: Visitor, anonymous: CoachClient) -> None:
    assert (await visitor.get("/")).path == "/app/sign-in"
    (await anonymous.get("/")).refused(404, "Cannot GET /")


async def test_unreachable_database_is_a_page_and_keeps_the_session(settings: Settings) -> None:
    uri = "mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=50&connectTimeoutMS=50"
    lost = settings.model_copy(update={"mongodb_uri": uri, "database_response_seconds": 0.2})
    async with runtime.open_services(lost) as services, TestServer(create_app(lost, services)) as server:
        visitor = Visitor(server)
        visitor.keep(coach_session="a token")
        page = await visitor.get("/app/customers")
        await visitor.close()
    page.ok(503).says("Temporarily unavailable", "Try again shortly.")
    assert "127.0.0.1" not in page.html
    assert not [cookie for cookie in page.cookies if "coach_session" in cookie]


async def test_internal_error_page_has_no_details(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    await coach.ctx.db["customers"].update_one(
        {"_id": ObjectId(ana["_id"])}, {"$unset": {"customerRoleData.groups": 1}}
    )

    page = await owner_page.get(f"/app/customers/{ana['_id']}")

    page.ok(500).says("Something went wrong", "This is our fault.", "Back to home")
    for word in ("Traceback", "Undefined", "groups", "jinja", "File"):
        assert word not in page.html
