"""The security headers of every kind of response, written by hand."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.core.test_uploads import PDF, form
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient
from tests.support.oauth_flow import register
from tests.support.visitor import Visitor

SECURITY_HEADERS = (
    "Cache-Control",
    "Content-Security-Policy",
    "Cross-Origin-Opener-Policy",
    "Cross-Origin-Resource-Policy",
    "Permissions-Policy",
    "Referrer-Policy",
    "Server",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-Powered-By",
)
PERMISSIONS = (
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), "
    "midi=(), payment=(), usb=()"
)
JSON = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "coaching-service",
    "X-Content-Type-Options": "nosniff",
}
CONSENT_PAGE = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; media-src 'self' blob:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "frame-src https://www.youtube-nocookie.com https://player.vimeo.com"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": PERMISSIONS,
    "Referrer-Policy": "same-origin",
    "Server": "coaching-service",
    "X-Content-Type-Options": "nosniff",
}
PAGE = CONSENT_PAGE | {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; media-src 'self' blob:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "frame-src https://www.youtube-nocookie.com https://player.vimeo.com; form-action 'self'"
    ),
}
REDIRECT = JSON | {"Referrer-Policy": "same-origin"}
STATIC_FILE = JSON | {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
DOCUMENTATION = JSON | {
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": PERMISSIONS,
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
}
UPLOADED_FILE = JSON | {
    "Cache-Control": "private, max-age=3600",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}
OAUTH_METADATA = JSON | {"Cache-Control": "public, max-age=300"}


def security_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a response that concern security."""
    return {name: headers[name] for name in SECURITY_HEADERS if name in headers}


@pytest.fixture
async def visitor(public_server: TestServer) -> AsyncIterator[Visitor]:
    """A browser without a session."""
    visitor = Visitor(public_server)
    yield visitor
    await visitor.close()


@pytest.fixture
async def owner(public_server: TestServer, coach: CoachClient) -> AsyncIterator[Visitor]:
    """A browser in which the company's owner is signed in."""
    owner = Visitor(public_server)
    (await owner.sign_in(str(coach.ctx.caller.email), PASSWORD)).ok()
    yield owner
    await owner.close()


async def test_headers_of_pages(visitor: Visitor, owner: Visitor) -> None:
    for page in (
        (await visitor.get("/app/sign-in")).ok(),
        (await owner.get("/app/customers")).ok(),
        (await owner.get("/app/settings/company")).ok(),
    ):
        assert security_headers(page.headers) == PAGE, page.path


async def test_headers_of_error_pages(visitor: Visitor, owner: Visitor) -> None:
    for error_page in (
        (await owner.get("/app/nowhere")).ok(404),
        (await owner.send("PUT", "/app/sign-in")).ok(405),
        (await owner.send("POST", "/app/sign-out", data={"csrf": ""}, headers={"Origin": "null"})).ok(403),
    ):
        assert security_headers(error_page.headers) == PAGE, error_page.path
    invalid = (await visitor.get("/oauth/authorize")).ok(400)
    expected = {name: value for name, value in PAGE.items() if name != "Cross-Origin-Opener-Policy"}
    assert security_headers(invalid.headers) == expected


async def test_headers_of_redirects(visitor: Visitor, owner: Visitor) -> None:
    for redirect in (
        (await visitor.get("/app/customers", follow=False)).ok(303),
        (await owner.get("/app", follow=False)).ok(303),
        (await owner.get("/", follow=False)).ok(303),
    ):
        assert security_headers(redirect.headers) == REDIRECT, redirect.path


async def test_headers_of_static_files(visitor: Visitor) -> None:
    page = await visitor.get("/app/sign-in")
    paths = re.findall(r'"(/app/static/[^"]+)"', page.html)
    assert len(paths) == 4, "icon, typeface, stylesheet and script"
    for path in paths:
        assert security_headers((await visitor.get(path)).ok().headers) == STATIC_FILE, path


async def test_headers_of_the_documentation(visitor: Visitor) -> None:
    page = (await visitor.get("/docs")).ok()
    assert security_headers(page.headers) == DOCUMENTATION
    files = re.findall(r'<(?:link rel="stylesheet" href|script src)="([^"]+)"', page.html)
    assert len(files) == 2
    for path in files:
        assert security_headers((await visitor.get(path)).ok().headers) == JSON | {"Cache-Control": "no-cache"}, path
    guide = (await visitor.get("/docs/guides/integrations")).ok()
    assert security_headers(guide.headers) == DOCUMENTATION


async def test_headers_of_json_responses(visitor: Visitor) -> None:
    for path, status in (("/me", 401), ("/nowhere", 404), ("/healthz", 200), ("/readyz", 200)):
        assert security_headers((await visitor.get(path)).ok(status).headers) == JSON, path
    document = (await visitor.get("/swagger-json")).ok()
    assert security_headers(document.headers) == JSON | {"Cache-Control": "no-cache"}
    assert security_headers((await visitor.send("POST", "/mcp", json={})).ok(401).headers) == JSON


async def test_headers_of_files(coach: CoachClient, anonymous: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    plans = f"/coach/customers/{ana['_id']}/nutrition-plans"
    plan = (await coach.send("POST", plans, data=form(PDF, "file", "plan.pdf"))).ok(201)
    path = str(plan["url"]).removeprefix("http://coaching.test")
    assert security_headers((await anonymous.get(path)).headers) == UPLOADED_FILE
    assert security_headers((await anonymous.get(path.partition("?")[0])).headers) == JSON | {
        "Cross-Origin-Resource-Policy": "cross-origin"
    }, "without a signature"


async def test_headers_of_oauth(public_server: TestServer, visitor: Visitor, owner: Visitor) -> None:
    async with McpHttpClient(public_server, {}) as http:
        application = await register(http)
        metadata = await http.send("GET", "/.well-known/oauth-authorization-server")
        rejected = await application.exchange("unknown code")
    assert security_headers(metadata.headers) == OAUTH_METADATA
    assert security_headers(rejected.headers) == JSON
    url = application.authorize_url()
    assert security_headers((await visitor.get(url, follow=False)).ok(303).headers) == REDIRECT
    consent_page = (await owner.get(url)).ok()
    assert security_headers(consent_page.headers) == CONSENT_PAGE
    redirect = await owner.submit_only(consent_page, "/oauth/authorize", decision="deny")
    assert security_headers(redirect.ok(302).headers) == JSON | {"Referrer-Policy": "no-referrer"}


async def test_applications_that_ask_for_access_keep_their_window(visitor: Visitor) -> None:
    """Cross-Origin-Opener-Policy would cut an application off from the window in which the user consents."""
    page = (await visitor.get("/app/sign-in?next=/oauth/authorize%3Fclient_id=x")).ok()
    assert "Cross-Origin-Opener-Policy" not in page.headers
    page = (await visitor.get("/app/sign-in?next=/app/customers")).ok()
    assert page.headers["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.parametrize(
    "path",
    [
        "/app/reset-password",
        "/app/confirm-email",
        "/app/first-access",
        "/train/first-access",
        "/train/reset-password",
        "/train/no-invitations",
        "/app/nowhere",
    ],
)
async def test_tokens_in_the_query_are_not_sent_as_referrer(visitor: Visitor, path: str) -> None:
    reply = await visitor.get(f"{path}?token=secret", follow=False)
    assert reply.headers["Referrer-Policy"] == "no-referrer"


async def test_https_is_required_for_a_year(settings: Settings, services: Services, visitor: Visitor) -> None:
    secure = replace(services, base_url="https://coaching.test")
    async with TestServer(create_app(settings, secure)) as server:
        browser = Visitor(server)
        for path in ("/app/sign-in", "/me", "/app", "/app/static/nothing", "/docs/docs.js"):
            headers = (await browser.get(path, follow=False)).headers
            assert headers["Strict-Transport-Security"] == "max-age=31536000", path
        await browser.close()
    assert "Strict-Transport-Security" not in (await visitor.get("/app/sign-in")).headers, "over http"
