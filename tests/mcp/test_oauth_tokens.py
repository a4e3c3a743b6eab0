"""What the token and the revocation endpoint refuse, in OAuth's own words."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.mcp.door import Knocker
from tests.mcp.oauth import CALLBACK, Program, answer_in, decided, let_in, register
from tests.web.visitor import Visitor


@pytest.mark.parametrize(
    ("changed", "status", "error"),
    [
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
    ],
    ids=str,
)
async def test_the_token_endpoint_refuses_and_the_code_stays_good(
    browser: Visitor, program: Program, changed: dict[str, Any], status: int, error: str
) -> None:
    code = answer_in(await decided(browser, program))["code"]
    usual = {"grant_type": "authorization_code", "code": code, "code_verifier": program.verifier}
    reply = await program.post("/oauth/token", **{**usual, "redirect_uri": CALLBACK, **changed})
    assert (reply.status, reply.json["error"]) == (status, error)
    assert reply.headers["Cache-Control"] == "no-store"
    assert code not in reply.raw.decode()
    assert (await program.exchange(code)).status == 200


async def test_another_programs_code_and_token_are_nobodys(
    browser: Visitor, program: Program, stranger: Knocker
) -> None:
    another = await register(stranger, client_name="Another")
    code = answer_in(await decided(browser, program))["code"]
    another.verifier = program.verifier
    assert (await another.exchange(code)).json["error"] == "invalid_grant"
    tokens = (await program.exchange(code)).ok()
    assert (await another.renew(tokens["refresh_token"])).json["error"] == "invalid_grant"
    assert (await program.renew(tokens["refresh_token"])).status == 200


def _basic(identifier: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{identifier}:{secret}".encode()).decode()}


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", None])
async def test_a_program_with_a_secret_has_to_show_it(browser: Visitor, stranger: Knocker, method: str | None) -> None:
    asked = {} if method is None else {"token_endpoint_auth_method": method}
    reply = await stranger.send("POST", "/oauth/register", json={"redirect_uris": [CALLBACK], **asked})
    program = Program(stranger, reply.ok(201))
    assert program.registered["token_endpoint_auth_method"] == method or "client_secret_basic"
    assert program.registered["client_secret_expires_at"] == 0
    identifier, secret = program.registered["client_id"], program.registered["client_secret"]
    code = answer_in(await decided(browser, program))["code"]
    for wrong in (None, "", "wrong"):
        refused = await program.exchange(code, client_secret=wrong)
        assert (refused.status, refused.json["error"]) == (401, "invalid_client")
    alone: dict[str, Any] = {"client_id": None, "client_secret": None}
    for header in (
        _basic(identifier, "wrong"),
        _basic("nobody", secret),
        {"Authorization": "Basic ???"},
        {"Authorization": "Basic bm9jb2xvbg=="},
        {"Authorization": f"Bearer {secret}"},
    ):
        refused = await program.exchange(code, headers=header, **alone)
        assert (refused.status, refused.json["error"]) == (401, "invalid_client")
        assert refused.headers["WWW-Authenticate"].startswith("Basic")
    good = _basic(identifier, secret)
    assert (await program.exchange(code, headers=good)).json["error"] == "invalid_request", "one way only"
    other = await program.exchange(code, headers=good, client_id="another", client_secret=None)
    assert other.json["error"] == "invalid_request"
    assert (await program.exchange(code, headers=good, **alone)).status == 200


async def test_forms_are_forms(stranger: Knocker) -> None:
    for path in ("/oauth/token", "/oauth/revoke"):
        assert (await stranger.send("POST", path, json={"grant_type": "authorization_code"})).status == 415
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for body in (b"a=" + b"x" * 70_000, b"&".join(b"a=1" for _ in range(60)), b"\xff=1"):
            reply = await stranger.send("POST", path, data=body, headers=form)
            assert reply.status in (400, 401, 413)
            assert reply.json["error"] in ("invalid_request", "invalid_client")
        assert (await stranger.send("GET", path)).status == 405


async def test_revocation_needs_a_token_and_a_client_and_minds_no_unknown_one(
    program: Program, stranger: Knocker
) -> None:
    assert (await program.post("/oauth/revoke")).json["error"] == "invalid_request"
    assert (await program.post("/oauth/revoke", token="x", client_id="nobody")).status == 401
    assert (await program.post("/oauth/revoke", token="unknown")).status == 200


async def test_a_program_that_takes_no_refresh_token_gets_none(browser: Visitor, stranger: Knocker) -> None:
    program = await register(stranger, grant_types=["authorization_code"])
    assert "refresh_token" not in await let_in(browser, program)
