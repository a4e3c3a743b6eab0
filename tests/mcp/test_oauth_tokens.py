"""Requests that the token and the revocation endpoint reject, with the error codes of OAuth."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.support.mcp_client import McpHttpClient
from tests.support.oauth_flow import CALLBACK, OAuthApplication, approve, decide, redirect_query, register
from tests.support.visitor import Visitor

REJECTED: tuple[tuple[dict[str, Any], int, str], ...] = (
    ({"grant_type": None}, 400, "invalid_request"),
    ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ({"grant_type": "client_credentials"}, 400, "unsupported_grant_type"),
    ({"code": None}, 400, "invalid_request"),
    ({"code": ""}, 400, "invalid_request"),
    ({"code": "made-up"}, 400, "invalid_grant"),
    ({"code_verifier": None}, 400, "invalid_request"),
    ({"code_verifier": "short"}, 400, "invalid_request"),
    ({"code_verifier": "x" * 129}, 400, "invalid_request"),
    ({"code_verifier": "ü" * 50}, 400, "invalid_request"),
    ({"code_verifier": "y" * 43}, 400, "invalid_grant"),
    ({"redirect_uri": "https://evil.example/"}, 400, "invalid_grant"),
    ({"redirect_uri": None}, 400, "invalid_grant"),
    ({"redirect_uri": ""}, 400, "invalid_grant"),
    ({"resource": "https://elsewhere.example/mcp"}, 400, "invalid_target"),
    ({"client_id": None}, 401, "invalid_client"),
    ({"client_id": ""}, 401, "invalid_client"),
    ({"client_id": "nobody"}, 401, "invalid_client"),
    ({"client_id": ["a", "b"]}, 400, "invalid_request"),
    ({"code_verifier": ["x" * 43, "x" * 43]}, 400, "invalid_request"),
    ({"grant_type": "refresh_token"}, 400, "invalid_request"),
    ({"grant_type": "refresh_token", "refresh_token": "made-up"}, 400, "invalid_grant"),
    ({"grant_type": "refresh_token", "refresh_token": "a.b.c"}, 400, "invalid_grant"),
)


async def test_rejected_token_request_does_not_use_up_the_code(browser: Visitor, application: OAuthApplication) -> None:
    code = redirect_query(await decide(browser, application))["code"]
    usual = {"grant_type": "authorization_code", "code": code, "code_verifier": application.verifier}
    for changed, status, error in REJECTED:
        reply = await application.post("/oauth/token", **{**usual, "redirect_uri": CALLBACK, **changed})
        assert (reply.status, reply.json["error"]) == (status, error), changed
        assert reply.headers["Cache-Control"] == "no-store"
        assert code not in reply.raw.decode()
    assert (await application.exchange(code)).status == 200


async def test_code_and_token_of_another_application_are_rejected(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient
) -> None:
    another = await register(unauthenticated, client_name="Another")
    code = redirect_query(await decide(browser, application))["code"]
    another.verifier = application.verifier
    assert (await another.exchange(code)).json["error"] == "invalid_grant"
    tokens = (await application.exchange(code)).ok()
    assert (await another.renew(tokens["refresh_token"])).json["error"] == "invalid_grant"
    assert (await application.renew(tokens["refresh_token"])).status == 200


def _basic(identifier: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{identifier}:{secret}".encode()).decode()}


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", None])
async def test_confidential_application_must_send_its_secret(
    browser: Visitor, unauthenticated: McpHttpClient, method: str | None
) -> None:
    metadata = {} if method is None else {"token_endpoint_auth_method": method}
    reply = await unauthenticated.send("POST", "/oauth/register", json={"redirect_uris": [CALLBACK], **metadata})
    application = OAuthApplication(unauthenticated, reply.ok(201))
    assert application.registered["token_endpoint_auth_method"] == method or "client_secret_basic"
    assert application.registered["client_secret_expires_at"] == 0
    identifier, secret = application.registered["client_id"], application.registered["client_secret"]
    code = redirect_query(await decide(browser, application))["code"]
    for wrong in (None, "", "wrong"):
        refused = await application.exchange(code, client_secret=wrong)
        assert (refused.status, refused.json["error"]) == (401, "invalid_client")
    alone: dict[str, Any] = {"client_id": None, "client_secret": None}
    for header in (
        _basic(identifier, "wrong"),
        _basic("nobody", secret),
        {"Authorization": "Basic ???"},
        {"Authorization": "Basic é"},
        {"Authorization": "Basic bm9jb2xvbg=="},
        {"Authorization": f"Bearer {secret}"},
    ):
        refused = await application.exchange(code, headers=header, **alone)
        assert (refused.status, refused.json["error"]) == (401, "invalid_client")
        assert refused.headers["WWW-Authenticate"].startswith("Basic")
    good = _basic(identifier, secret)
    assert (await application.exchange(code, headers=good)).json["error"] == "invalid_request", "one way only"
    other = await application.exchange(code, headers=good, client_id="another", client_secret=None)
    assert other.json["error"] == "invalid_request"
    assert (await application.exchange(code, headers=good, **alone)).status == 200


async def test_token_endpoint_accepts_only_urlencoded_forms(unauthenticated: McpHttpClient) -> None:
    for path in ("/oauth/token", "/oauth/revoke"):
        assert (await unauthenticated.send("POST", path, json={"grant_type": "authorization_code"})).status == 415
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for body in (b"a=" + b"x" * 70_000, b"&".join(b"a=1" for _ in range(60)), b"\xff=1"):
            reply = await unauthenticated.send("POST", path, data=body, headers=form)
            assert reply.status in (400, 401, 413)
            assert reply.json["error"] in ("invalid_request", "invalid_client")
        assert (await unauthenticated.send("GET", path)).status == 405


async def test_revocation_requires_token_and_client_and_ignores_unknown_tokens(
    application: OAuthApplication, unauthenticated: McpHttpClient
) -> None:
    assert (await application.post("/oauth/revoke")).json["error"] == "invalid_request"
    assert (await application.post("/oauth/revoke", token="x", client_id="nobody")).status == 401
    assert (await application.post("/oauth/revoke", token="unknown")).status == 200


async def test_application_without_refresh_grant_gets_no_refresh_token(
    browser: Visitor, unauthenticated: McpHttpClient
) -> None:
    application = await register(unauthenticated, grant_types=["authorization_code"])
    assert "refresh_token" not in await approve(browser, application)
