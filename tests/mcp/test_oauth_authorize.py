"""Authorization requests: errors are shown on a page or sent in the redirect, and only to registered addresses."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from coaching_service.people import assistants
from coaching_service.people.sessions import service as sessions
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient
from tests.support.oauth_flow import CALLBACK, OAuthApplication, approve, decide, redirect_query, register
from tests.support.visitor import Visitor


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": None},
        {"client_id": ""},
        {"client_id": "nobody"},
        {"client_id": ["nobody", "nobody"]},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": CALLBACK + "/"},
        {"redirect_uri": CALLBACK + "?x=1"},
        {"redirect_uri": CALLBACK.upper()},
        {"redirect_uri": CALLBACK.replace("https", "http")},
        {"redirect_uri": CALLBACK.replace("claude.ai", "claude.ai:8443")},
        {"redirect_uri": [CALLBACK, CALLBACK]},
    ],
    ids=str,
)
async def test_unknown_client_or_redirect_uri_shows_a_page_without_redirect(
    signed_out_browser: Visitor, application: OAuthApplication, changed: dict[str, Any]
) -> None:
    page = (await signed_out_browser.get(application.authorize_url(**changed), follow=False)).ok(400)
    page.says("start again from there" if "client_id" in changed else "not its own")
    assert "Location" not in page.headers


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": ["code", "code"]}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "too-short"}, "invalid_request"),
        ({"code_challenge": "x" * 42 + "="}, "invalid_request"),
        ({"code_challenge": "x" * 128}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
        ({"resource": "mcp"}, "invalid_target"),
        ({"resource": "http://[bad"}, "invalid_target"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"request": "a.b.c"}, "request_not_supported"),
        ({"request_uri": "https://claude.ai/request"}, "request_not_supported"),
        ({"prompt": "none"}, "interaction_required"),
        ({"state": None, "response_type": None}, "invalid_request"),
        ({"scope": ["mcp", "mcp"]}, "invalid_request"),
    ],
    ids=str,
)
async def test_invalid_request_redirects_with_the_reason(
    signed_out_browser: Visitor, application: OAuthApplication, changed: dict[str, Any], error: str
) -> None:
    page = await signed_out_browser.get(application.authorize_url(**changed), follow=False)
    answer = redirect_query(page)
    assert page.headers["Location"].startswith(CALLBACK + "?error=")
    state = None if "state" in changed else application.state
    assert (answer["error"], answer.get("state"), answer["iss"]) == (error, state, application.http.base_url)


async def test_too_long_state_is_rejected(signed_out_browser: Visitor, application: OAuthApplication) -> None:
    answer = redirect_query(await signed_out_browser.get(application.authorize_url(state="/" * 900), follow=False))
    assert answer["error"] == "invalid_request"
    assert (await signed_out_browser.get(application.authorize_url(state="\\/" * 400))).path.startswith(
        "/app/sign-in?next="
    )


@pytest.mark.parametrize("name", ["state", "resource", "scope", "prompt", "request", "redirect_uri"])
async def test_parameter_without_value_is_ignored(browser: Visitor, application: OAuthApplication, name: str) -> None:
    answer = redirect_query(await decide(browser, application, **{name: ""}))
    assert answer.get("state") == (None if name == "state" else application.state)
    uri = None if name == "redirect_uri" else CALLBACK
    assert (await application.exchange(answer["code"], redirect_uri=uri, resource="")).status == 200


async def test_required_parameter_without_value_is_missing(
    signed_out_browser: Visitor, application: OAuthApplication
) -> None:
    for name in ("response_type", "code_challenge", "code_challenge_method"):
        answer = redirect_query(await signed_out_browser.get(application.authorize_url(**{name: ""}), follow=False))
        assert (answer["error"], answer["state"]) == ("invalid_request", application.state)
    several = await register(application.http, redirect_uris=[CALLBACK, CALLBACK + "/two"])
    (await signed_out_browser.get(several.authorize_url(redirect_uri=""), follow=False)).ok(400).says("not its own")


async def test_repeated_state_is_not_returned(signed_out_browser: Visitor, application: OAuthApplication) -> None:
    answer = redirect_query(await signed_out_browser.get(application.authorize_url(state=["one", "two"]), follow=False))
    assert answer["error"] == "invalid_request"
    assert "state" not in answer


@pytest.mark.parametrize("resource", ["{base}/mcp", "{base}", "{base}/", "{base}/mcp/", None])
async def test_resource_is_accepted_in_the_spellings_clients_use(
    browser: Visitor, application: OAuthApplication, resource: str | None
) -> None:
    spelled = resource.format(base=application.http.base_url.replace("http:", "HTTP:")) if resource else None
    assert "access_token" in await approve(browser, application, resource=spelled, scope="mcp offline_access claudeai")


REDIRECTS = (
    ("http://localhost:8123/callback", "http://localhost:50123/callback", True),
    ("http://127.0.0.1/", "http://127.0.0.1:33418/", True),
    ("http://[::1]:1/callback", "http://[::1]:2/callback", True),
    ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback", True),
    ("com.example.app:/callback", "com.example.app:/callback", True),
    ("https://vscode.dev/redirect?x=1", "https://vscode.dev/redirect?x=1", True),
    ("http://localhost:8123/callback?x=1", "http://localhost:50123/callback?x=1", True),
    ("http://localhost:8123", "http://localhost:50123", True),
    ("http://localhost:8123/callback", "http://localhost/callback", True),
    ("http://localhost:8123/callback", "http://localhost:8123/callback?", False),
    ("http://localhost:8123/callback?", "http://localhost:50123/callback", False),
    ("http://localhost:8123/callback", "http://localhost:/callback", False),
    ("http://localhost:8123/callback", "http://localhost:99999/callback", False),
    ("http://localhost:8123/callback", "http://localhost:8_1/callback", False),
    ("http://localhost:8123/callback", "http://LOCALHOST:8123/callback", False),
    ("http://localhost:8123/callback", "http://localhost:8123.evil.example/callback", False),
    ("http://localhost:8123/callback", "http://127.0.0.1:8123/callback", False),
    ("http://localhost:8123/callback", "http://localhost:8123/other", False),
    ("http://localhost:8123/callback", "http://localhost:8123/callback?x=1", False),
    ("http://localhost:8123/callback", "https://localhost:8123/callback", False),
    ("http://localhost:8123/callback", "http://evil@localhost:8123/callback", False),
    ("http://localhost:8123/callback", "http://localhost:8123/callback#x", False),
    ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor://evil/oauth/callback", False),
)


async def test_redirect_uri_matches_exactly_except_for_the_loopback_port(
    browser: Visitor, unauthenticated: McpHttpClient
) -> None:
    applications: dict[str, OAuthApplication] = {}
    for registered, used, lets_in in REDIRECTS:
        if registered not in applications:
            applications[registered] = await register(unauthenticated, redirect_uris=[registered])
        application = applications[registered]
        if not lets_in:
            (await browser.get(application.authorize_url(redirect_uri=used), follow=False)).ok(400)
            continue
        answer = await decide(browser, application, redirect_uri=used)
        assert answer.headers["Location"].startswith(used)
        assert (await application.exchange(redirect_query(answer)["code"], redirect_uri=used)).status == 200, used


async def test_consent_requires_the_csrf_token(browser: Visitor, application: OAuthApplication) -> None:
    url = application.authorize_url()
    await browser.get(url)
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-origin"}, {}):
        refused = await browser.send("POST", url, follow=False, headers=headers, data={"decision": "allow"})
        refused.ok(403)
    page = (await browser.get(url)).ok()
    (await browser.submit_only(page, "/oauth/authorize", decision="perhaps")).ok(400).says("Connect Claude?")


async def test_resubmitted_consent_form_issues_no_second_code(
    browser: Visitor, application: OAuthApplication, coach: CoachClient
) -> None:
    page = (await browser.get(application.authorize_url())).ok()
    send = partial(browser.submit_only, page, "/oauth/authorize", decision="allow")
    first, second = sorted(await asyncio.gather(send(), send()), key=lambda each: each.status)
    third = await send()

    for again in (second, third):
        again.ok(409).says("This request has already been answered.", "Connect Claude?")
    assert await coach.ctx.db[assistants.grants.name].count_documents({"companyId": coach.ctx.company_id}) == 1
    assert (await application.exchange(redirect_query(first)["code"])).status == 200
    once_more = await browser.submit_only(third, "/oauth/authorize", decision="deny")
    assert redirect_query(once_more)["error"] == "access_denied"


async def test_consent_after_sign_out_returns_to_the_consent_page(
    browser: Visitor, application: OAuthApplication, coach: CoachClient
) -> None:
    url = application.authorize_url()
    page = (await browser.get(url)).ok()
    await sessions.end_sessions(coach.ctx, coach.ctx.caller.id)

    form = page.form("/oauth/authorize")
    from_us, sent = {"Sec-Fetch-Site": "same-origin"}, {**dict(form.fields), "decision": "allow"}
    rejected = (await browser.send("POST", form.action, headers=from_us, data=sent)).ok()
    rejected.says("Your session has ended, so nothing was changed.")
    back = await browser.sign_in(str(coach.ctx.caller.email), PASSWORD, at=rejected.path)

    back.ok().says("Connect Claude?")
    assert parse_qsl(urlsplit(back.path).query) == parse_qsl(urlsplit(url).query)
    assert await coach.ctx.db[assistants.grants.name].count_documents({"companyId": coach.ctx.company_id}) == 0
