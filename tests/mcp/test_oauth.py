"""A coach lets an assistant in: the whole way, and what holds afterwards."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from aiohttp.test_utils import TestServer
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from coaching_service.core.database.documents import now
from coaching_service.people.assistants import store
from coaching_service.people.identities import service as identities
from coaching_service.people.sessions import service as sessions
from tests.client import CoachClient
from tests.mcp.door import Knocker
from tests.mcp.oauth import Program, answer_in, decided, let_in, register
from tests.web.visitor import Visitor


async def opens(http: Knocker, token: str) -> bool:
    """Whether an access token opens the door."""
    return (await http.ask("tools/list", Authorization=f"Bearer {token}")).status == 200


async def test_a_coach_is_asked_and_the_assistant_gets_in(
    browser: Visitor, program: Program, stranger: Knocker, coach: CoachClient
) -> None:
    page = (await browser.get(program.question())).ok()
    page.says("Let Claude in?", "claude.ai", coach.ctx.caller.company.name, "Olga Owner")
    policy = page.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy and "form-action" not in policy

    sent_back = await browser.submit(page, "/oauth/authorize", follow=False, decision="allow")
    assert sent_back.headers["Location"].startswith("https://claude.ai/api/mcp/auth_callback?code=")
    answer = answer_in(sent_back)
    assert (answer["state"], answer["iss"]) == (program.state, stranger.base_url)

    reply = await program.exchange(answer["code"], resource=program.resource)
    tokens = reply.ok()
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, "mcp")
    assert (reply.headers["Cache-Control"], reply.headers["Pragma"]) == ("no-store", "no-cache")
    assert await opens(stranger, tokens["access_token"])


async def test_nobody_signed_in_is_led_to_sign_in_and_back(
    passer_by: Visitor, coach: CoachClient, program: Program
) -> None:
    question = program.question()
    page = await passer_by.get(question)
    assert page.path.startswith("/app/sign-in?next=")
    back = await passer_by.sign_in(str(coach.ctx.caller.email), "correct horse battery", at=page.path)
    back.says("Let Claude in?")
    assert parse_qsl(urlsplit(back.path).query) == parse_qsl(urlsplit(question).query)


async def test_a_coach_may_say_no(browser: Visitor, program: Program, stranger: Knocker) -> None:
    answer = answer_in(await decided(browser, program, "deny"))
    assert answer["error"] == "access_denied"
    assert (answer["state"], answer["iss"]) == (program.state, stranger.base_url)


async def test_an_assistant_let_in_to_read_is_shown_no_tool_that_writes(
    browser: Visitor, program: Program, stranger: Knocker
) -> None:
    code = answer_in(await decided(browser, program, "allow_reading"))["code"]
    token = (await program.exchange(code)).ok()["access_token"]
    listed = (await stranger.ask("tools/list", Authorization=f"Bearer {token}")).ok()["result"]["tools"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in listed)


async def test_a_refresh_token_is_exchanged_and_the_access_before_lives_on(
    browser: Visitor, program: Program, stranger: Knocker
) -> None:
    first = await let_in(browser, program)
    second = (await program.renew(first["refresh_token"])).ok()
    assert second["refresh_token"] != first["refresh_token"]
    assert await opens(stranger, first["access_token"]) and await opens(stranger, second["access_token"])
    assert (await program.renew(second["refresh_token"])).status == 200


async def test_parallel_refreshes_all_succeed_within_the_grace(
    browser: Visitor, program: Program, stranger: Knocker
) -> None:
    token = (await let_in(browser, program))["refresh_token"]
    replies = await asyncio.gather(*(program.renew(token) for _ in range(5)))
    assert [reply.status for reply in replies] == [200] * 5
    assert len({reply.json["refresh_token"] for reply in replies}) == 5
    assert all([await opens(stranger, reply.json["access_token"]) for reply in replies])


async def test_a_refresh_token_spent_long_ago_ends_the_whole_grant(
    browser: Visitor, program: Program, stranger: Knocker, coach: CoachClient
) -> None:
    first = await let_in(browser, program)
    second = (await program.renew(first["refresh_token"])).ok()
    long_ago = now() - store.REFRESH_GRACE - timedelta(seconds=1)
    grants = coach.ctx.db[store.grants.name]
    await grants.update_one(
        {"companyId": coach.ctx.company_id, "refresh.spentAt": {"$type": "date"}},
        {"$set": {"refresh.$.spentAt": long_ago}},
    )
    assert (await program.renew(first["refresh_token"])).json["error"] == "invalid_grant"
    assert not await opens(stranger, second["access_token"])
    assert (await program.renew(second["refresh_token"])).json["error"] == "invalid_grant"


async def test_a_code_is_good_once_even_for_many_at_a_time(browser: Visitor, program: Program) -> None:
    code = answer_in(await decided(browser, program))["code"]
    replies = await asyncio.gather(*(program.exchange(code) for _ in range(10)))
    assert sorted(reply.status for reply in replies) == [200] + [400] * 9


async def test_a_code_used_twice_ends_what_it_gave(browser: Visitor, program: Program, stranger: Knocker) -> None:
    code = answer_in(await decided(browser, program))["code"]
    tokens = (await program.exchange(code)).ok()
    assert (await program.exchange(code)).json["error"] == "invalid_grant"
    assert not await opens(stranger, tokens["access_token"])


async def test_a_code_and_an_access_token_run_out(
    browser: Visitor, program: Program, stranger: Knocker, coach: CoachClient
) -> None:
    grants = coach.ctx.db[store.grants.name]
    mine = {"companyId": coach.ctx.company_id}
    code = answer_in(await decided(browser, program))["code"]
    await grants.update_one(mine, {"$set": {"expiresAt": now() - timedelta(seconds=1)}})
    assert (await program.exchange(code)).json["error"] == "invalid_grant"
    await grants.delete_many(mine)

    tokens = await let_in(browser, program)
    await grants.update_one(mine, {"$set": {"access.0.until": now() - timedelta(seconds=1)}})
    reply = await stranger.ask("tools/list", Authorization=f"Bearer {tokens['access_token']}")
    assert reply.status == 401
    assert 'error="invalid_token"' in reply.headers["WWW-Authenticate"]
    assert await opens(stranger, (await program.renew(tokens["refresh_token"])).ok()["access_token"])


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
async def test_a_program_gives_its_grant_back(
    browser: Visitor, program: Program, stranger: Knocker, which: str
) -> None:
    tokens = await let_in(browser, program)
    another = await register(stranger, client_name="Another")
    (await another.post("/oauth/revoke", token=tokens[which])).ok()
    assert await opens(stranger, tokens["access_token"]), "only its own client may revoke a token"
    (await program.post("/oauth/revoke", token=tokens[which], token_type_hint="access_token")).ok()
    assert not await opens(stranger, tokens["access_token"])
    (await program.post("/oauth/revoke", token=tokens[which])).ok()


async def test_nothing_is_kept_that_would_let_anybody_in(
    browser: Visitor, stranger: Knocker, coach: CoachClient
) -> None:
    program = await register(stranger, token_endpoint_auth_method="client_secret_post")
    code = answer_in(await decided(browser, program))["code"]
    tokens = (await program.exchange(code)).ok()
    kept = str([each async for each in coach.ctx.db[store.grants.name].find({})])
    kept += str([each async for each in coach.ctx.db["oauthClients"].find({})])
    secrets = (code, tokens["access_token"], tokens["refresh_token"], program.registered["client_secret"])
    assert not any(part in kept for secret in secrets for part in secret.split("."))


async def test_whoever_sets_a_new_password_has_no_assistant_left(
    browser: Visitor, program: Program, stranger: Knocker, coach: CoachClient
) -> None:
    token = (await let_in(browser, program))["access_token"]
    reset = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
    await sessions.reset_password(coach.ctx, reset, "another long password")
    assert not await opens(stranger, token)


class _Memory(TokenStorage):
    """What the official client remembers."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("method", ["none", "client_secret_basic", "client_secret_post"])
async def test_the_official_client_finds_its_way_in(
    house: TestServer, browser: Visitor, coach: CoachClient, mode: str, method: str
) -> None:
    """From nothing but the address: discovery, registration, sign-in, consent, tokens, a call, a renewal."""
    await coach.create_customer("Ana")
    sent_to: list[str] = []
    memory = _Memory()

    async def open_browser(url: str) -> None:
        sent_to.append(url.removeprefix(str(house.make_url("/")).rstrip("/")))

    async def come_back() -> AuthorizationCodeResult:
        page = (await browser.get(sent_to[-1])).ok()
        answer = answer_in(await browser.submit(page, "/oauth/authorize", follow=False, decision="allow"))
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])

    metadata = OAuthClientMetadata(
        client_name="The official client",
        redirect_uris=["http://localhost:8123/callback"],  # type: ignore[list-item]
        token_endpoint_auth_method=method,  # type: ignore[arg-type]
    )
    provider = OAuthClientProvider(str(house.make_url("/mcp")), metadata, memory, open_browser, come_back)
    async with httpx2.AsyncClient(auth=provider) as http:
        transport = streamable_http_client(str(house.make_url("/mcp")), http_client=http)
        async with Client(transport, mode=mode) as client:
            found = await client.call_tool("list_customers", {})
            assert [each["name"] for each in found.structured_content["docs"]] == ["Ana"]  # type: ignore[index]
            assert len(sent_to) == 1
            await coach.ctx.db[store.grants.name].update_many(
                {"companyId": coach.ctx.company_id}, {"$set": {"access.0.until": now() - timedelta(seconds=1)}}
            )
            provider.context.token_expiry_time = 1
            assert not (await client.call_tool("list_customers", {})).is_error
            assert len(sent_to) == 1, "it renewed its tokens and asked nobody again"
