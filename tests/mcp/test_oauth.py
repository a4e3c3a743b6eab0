"""A coach connects an assistant: the complete flow, and the access that results from it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from aiohttp.test_utils import TestServer
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from coaching_service.core.database.documents import now
from coaching_service.people import assistants
from coaching_service.people.identities import service as identities
from coaching_service.people.sessions import credentials
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient
from tests.support.oauth_flow import OAuthApplication, approve, decide, redirect_query, register
from tests.support.stored import stored_document
from tests.support.visitor import Visitor


async def opens(http: McpHttpClient, token: str) -> bool:
    """Whether /mcp accepts an access token."""
    return (await http.request("tools/list", Authorization=f"Bearer {token}")).status == 200


async def test_coach_approves_and_the_assistant_gets_access(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient, coach: CoachClient
) -> None:
    page = (await browser.get(application.authorize_url())).ok()
    page.says("Connect Claude?", "claude.ai", coach.ctx.caller.company.name, "Olga Owner")
    policy = page.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy and "form-action" not in policy

    sent_back = await browser.submit_only(page, "/oauth/authorize", decision="allow")
    assert sent_back.headers["Location"].startswith("https://claude.ai/api/mcp/auth_callback?code=")
    answer = redirect_query(sent_back)
    assert (answer["state"], answer["iss"]) == (application.state, unauthenticated.base_url)

    reply = await application.exchange(answer["code"], resource=application.resource)
    tokens = reply.ok()
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, "mcp")
    assert (reply.headers["Cache-Control"], reply.headers["Pragma"]) == ("no-store", "no-cache")
    assert await opens(unauthenticated, tokens["access_token"])


async def test_signed_out_browser_is_redirected_to_sign_in_and_back(
    signed_out_browser: Visitor, coach: CoachClient, application: OAuthApplication
) -> None:
    url = application.authorize_url()
    page = await signed_out_browser.get(url)
    assert page.path.startswith("/app/sign-in?next=")
    back = await signed_out_browser.sign_in(str(coach.ctx.caller.email), "correct horse battery", at=page.path)
    back.says("Connect Claude?")
    assert parse_qsl(urlsplit(back.path).query) == parse_qsl(urlsplit(url).query)


async def test_coach_can_deny_access(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient
) -> None:
    answer = redirect_query(await decide(browser, application, "deny"))
    assert answer["error"] == "access_denied"
    assert (answer["state"], answer["iss"]) == (application.state, unauthenticated.base_url)


async def test_read_only_assistant_does_not_see_write_tools(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient
) -> None:
    page = (await browser.get(application.authorize_url())).ok()
    form = dict(page.form("/oauth/authorize").fields)
    assert {name: form.get(name) for name in ("read", "change", "outreach")} == {
        "read": "true",
        "change": "true",
        "outreach": None,
    }
    send = partial(browser.submit_only, page, "/oauth/authorize", decision="allow")
    (await send(read=None, change=None)).ok(400).says("Choose at least one kind of access")
    page = (await browser.get(application.authorize_url())).ok()
    answer = await browser.submit_only(page, "/oauth/authorize", decision="allow", change=None)
    token = (await application.exchange(redirect_query(answer)["code"])).ok()["access_token"]
    listed = (await unauthenticated.request("tools/list", Authorization=f"Bearer {token}")).ok()["result"]["tools"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in listed)


@pytest.mark.parametrize("chosen", [None, "true"])
async def test_coach_switches_approval_in_the_chat_on(
    browser: Visitor, application: OAuthApplication, coach: CoachClient, chosen: str | None
) -> None:
    page = (await browser.get(application.authorize_url())).ok()
    assert dict(page.form("/oauth/authorize").fields).get("confirmInChat") is None
    answer = await browser.submit_only(page, "/oauth/authorize", decision="allow", confirmInChat=chosen)
    (await application.exchange(redirect_query(answer)["code"])).ok()
    [assistant] = (await (await coach.interactive()).get("/coach/assistants")).ok()
    assert assistant["confirmInChat"] is (chosen is not None)
    settings = (await browser.get("/app/settings/assistants")).ok()
    assert ("Approved in the chat" in settings.text) is (chosen is not None)


async def test_application_is_allowed_at_most_the_scopes_it_requests(
    browser: Visitor, application: OAuthApplication
) -> None:
    page = (await browser.get(application.authorize_url(scope="mcp:read mcp:outreach other"))).ok()
    assert "change" not in dict(page.form("/oauth/authorize").fields)
    submitted = await browser.submit_only(page, "/oauth/authorize", decision="allow", change="true", outreach="true")
    tokens = (await application.exchange(redirect_query(submitted)["code"])).ok()
    assert tokens["scope"] == "mcp:read mcp:outreach"
    assert (await application.renew(tokens["refresh_token"])).ok()["scope"] == "mcp:read mcp:outreach"


async def test_refreshing_keeps_the_previous_access_token_valid(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient
) -> None:
    first = await approve(browser, application)
    second = (await application.renew(first["refresh_token"])).ok()
    assert second["refresh_token"] != first["refresh_token"]
    assert await opens(unauthenticated, first["access_token"]) and await opens(unauthenticated, second["access_token"])
    assert (await application.renew(second["refresh_token"])).status == 200


async def test_parallel_refreshes_succeed_within_the_grace_period(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient
) -> None:
    token = (await approve(browser, application))["refresh_token"]
    replies = await asyncio.gather(*(application.renew(token) for _ in range(5)))
    assert [reply.status for reply in replies] == [200] * 5
    assert len({reply.json["refresh_token"] for reply in replies}) == 5
    assert all([await opens(unauthenticated, reply.json["access_token"]) for reply in replies])


async def test_reuse_of_a_spent_refresh_token_revokes_the_grant(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient, coach: CoachClient
) -> None:
    first = await approve(browser, application)
    second = (await application.renew(first["refresh_token"])).ok()
    long_ago = now() - assistants.REFRESH_GRACE - timedelta(seconds=1)
    grants = coach.ctx.db[assistants.grants.name]
    await grants.update_one(
        {"companyId": coach.ctx.company_id, "refresh.spentAt": {"$type": "date"}},
        {"$set": {"refresh.$.spentAt": long_ago}},
    )
    assert (await application.renew(first["refresh_token"])).json["error"] == "invalid_grant"
    assert not await opens(unauthenticated, second["access_token"])
    assert (await application.renew(second["refresh_token"])).json["error"] == "invalid_grant"


async def test_use_within_the_grace_period_does_not_extend_it(
    browser: Visitor, application: OAuthApplication, coach: CoachClient
) -> None:
    token = (await approve(browser, application))["refresh_token"]
    grants = coach.ctx.db[assistants.grants.name]
    spent = {"companyId": coach.ctx.company_id, "refresh.spentAt": {"$type": "date"}}

    async def pass_time(grace: timedelta) -> None:
        """Make the first token one that was spent so long ago."""
        stored = await grants.find_one(spent)
        assert stored is not None
        assert [each["spentAt"] for each in stored["refresh"] if each["spentAt"]] == [stored["refresh"][0]["spentAt"]]
        at = stored["refresh"][0]["spentAt"] - grace
        assert (await grants.update_one(spent, {"$set": {"refresh.0.spentAt": at}})).modified_count == 1

    (await application.renew(token)).ok()
    await pass_time(assistants.REFRESH_GRACE * 0.6)
    (await application.renew(token)).ok()
    await pass_time(assistants.REFRESH_GRACE * 0.6)
    assert (await application.renew(token)).json["error"] == "invalid_grant"


async def test_code_is_valid_once_under_concurrent_exchanges(browser: Visitor, application: OAuthApplication) -> None:
    code = redirect_query(await decide(browser, application))["code"]
    replies = await asyncio.gather(*(application.exchange(code) for _ in range(10)))
    assert sorted(reply.status for reply in replies) == [200] + [400] * 9


async def test_second_use_of_a_code_revokes_its_tokens(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient
) -> None:
    code = redirect_query(await decide(browser, application))["code"]
    tokens = (await application.exchange(code)).ok()
    assert (await application.exchange(code)).json["error"] == "invalid_grant"
    assert not await opens(unauthenticated, tokens["access_token"])


async def test_code_and_access_token_expire(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient, coach: CoachClient
) -> None:
    grants = coach.ctx.db[assistants.grants.name]
    mine = {"companyId": coach.ctx.company_id}
    code = redirect_query(await decide(browser, application))["code"]
    grant = await stored_document(grants, mine)
    assert grant["expiresAt"] <= now() + timedelta(minutes=5)
    await grants.update_one(mine, {"$set": {"expiresAt": now() - timedelta(seconds=1)}})
    assert (await application.exchange(code)).json["error"] == "invalid_grant"
    await grants.delete_many(mine)

    tokens = await approve(browser, application)
    await grants.update_one(mine, {"$set": {"access.0.until": now() - timedelta(seconds=1)}})
    reply = await unauthenticated.request("tools/list", Authorization=f"Bearer {tokens['access_token']}")
    assert reply.status == 401
    assert 'error="invalid_token"' in reply.headers["WWW-Authenticate"]
    assert await opens(unauthenticated, (await application.renew(tokens["refresh_token"])).ok()["access_token"])


async def test_reuse_after_the_successor_was_used_revokes_the_grant(
    browser: Visitor, application: OAuthApplication
) -> None:
    """Also within the grace period: an application that has used the successor has received it."""
    first = (await approve(browser, application))["refresh_token"]
    second, sibling = [(await application.renew(first)).ok()["refresh_token"] for _ in range(2)]
    third = (await application.renew(second)).ok()["refresh_token"]
    assert (await application.renew(first)).json["error"] == "invalid_grant"
    for token in (third, sibling):
        assert (await application.renew(token)).json["error"] == "invalid_grant"


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
async def test_application_revokes_its_own_grant(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient, which: str
) -> None:
    tokens = await approve(browser, application)
    another = await register(unauthenticated, client_name="Another")
    (await another.post("/oauth/revoke", token=tokens[which])).ok()
    assert await opens(unauthenticated, tokens["access_token"]), "only its own client may revoke a token"
    (await application.post("/oauth/revoke", token=tokens[which], token_type_hint="access_token")).ok()
    assert not await opens(unauthenticated, tokens["access_token"])
    (await application.post("/oauth/revoke", token=tokens[which])).ok()


async def test_no_token_or_code_is_stored_in_clear_text(
    browser: Visitor, unauthenticated: McpHttpClient, coach: CoachClient
) -> None:
    application = await register(unauthenticated, token_endpoint_auth_method="client_secret_post")
    code = redirect_query(await decide(browser, application))["code"]
    tokens = (await application.exchange(code)).ok()
    stored = str([each async for each in coach.ctx.db[assistants.grants.name].find({})])
    stored += str([each async for each in coach.ctx.db["oauthClients"].find({})])
    secrets = (code, tokens["access_token"], tokens["refresh_token"], application.registered["client_secret"])
    assert not any(part in stored for secret in secrets for part in secret.split("."))


async def test_password_change_revokes_all_assistants(
    browser: Visitor, application: OAuthApplication, unauthenticated: McpHttpClient, coach: CoachClient
) -> None:
    token = (await approve(browser, application))["access_token"]
    reset = await identities.create_reset_token(coach.ctx, coach.ctx.caller.id, "coach")
    await credentials.reset_password(coach.ctx, reset, "another long password")
    assert not await opens(unauthenticated, token)


class _Memory(TokenStorage):
    """The storage of the official client."""

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


@pytest.mark.parametrize(
    ("mode", "method"), [("auto", "none"), ("legacy", "client_secret_basic"), ("auto", "client_secret_post")]
)
async def test_official_client_completes_the_oauth_flow(
    public_server: TestServer, browser: Visitor, coach: CoachClient, mode: str, method: str
) -> None:
    """Starting with only the address: discovery, registration, sign-in, consent, tokens, a call, a renewal."""
    await coach.create_customer("Ana")
    sent_to: list[str] = []
    memory = _Memory()

    async def open_browser(url: str) -> None:
        sent_to.append(url.removeprefix(str(public_server.make_url("/")).rstrip("/")))

    async def come_back() -> AuthorizationCodeResult:
        page = (await browser.get(sent_to[-1])).ok()
        answer = redirect_query(await browser.submit_only(page, "/oauth/authorize", decision="allow"))
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])

    metadata = OAuthClientMetadata(
        client_name="The official client",
        redirect_uris=["http://localhost:8123/callback"],  # type: ignore[list-item]
        token_endpoint_auth_method=method,  # type: ignore[arg-type]
    )
    provider = OAuthClientProvider(str(public_server.make_url("/mcp")), metadata, memory, open_browser, come_back)
    async with httpx2.AsyncClient(auth=provider) as http:
        transport = streamable_http_client(str(public_server.make_url("/mcp")), http_client=http)
        async with Client(transport, mode=mode) as client:
            result = await client.call_tool("list_customers", {})
            assert [each["line"] for each in result.structured_content["docs"]] == ["«Ana»"]
            assert len(sent_to) == 1
            await coach.ctx.db[assistants.grants.name].update_many(
                {"companyId": coach.ctx.company_id}, {"$set": {"access.0.until": now() - timedelta(seconds=1)}}
            )
            provider.context.token_expiry_time = 1
            assert not (await client.call_tool("list_customers", {})).is_error
            assert len(sent_to) == 1, "it renewed its tokens without another consent"
