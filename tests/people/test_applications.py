"""Applications over REST: registered by an owner, allowed by a coach, with scopes, and revoked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.auth import CUSTOMERS, REST_SCOPES
from coaching_service.oauth import clients as oauth_clients
from coaching_service.people import team
from tests.conftest import PASSWORD, NewCompany
from tests.support.application_program import allowed_program
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient
from tests.support.oauth_flow import OAuthApplication, approve, decide, redirect_query, register, signed_in
from tests.support.service_process import until
from tests.support.training import client_path
from tests.support.visitor import Visitor

CALLBACK = "https://app.example/callback"


@pytest.fixture
async def http(public_server: TestServer) -> AsyncIterator[McpHttpClient]:
    async with McpHttpClient(public_server, {}) as client:
        yield client


@pytest.fixture
async def browser(public_server: TestServer, coach: CoachClient) -> AsyncIterator[Visitor]:
    visitor = await signed_in(public_server, coach)
    yield visitor
    await visitor.close()


async def allow(browser: Visitor, application: OAuthApplication, *scopes: str, **changed: Any) -> dict[str, Any]:
    """Return the tokens of an application that the coach allows these scopes."""
    asked = {"scope": " ".join(scopes), "resource": application.http.base_url, **changed}
    return await approve(browser, application, **asked)


async def test_token_has_the_scopes_that_were_allowed_and_works_over_rest_only(
    browser: Visitor, http: McpHttpClient, coach: CoachClient
) -> None:
    application = await register(http, client_name="Planner")
    page = (await browser.get(application.authorize_url(scope="customers:read messages:write unknown"))).ok()
    assert "Clients, calendars" in page.text, "the resource is the MCP endpoint, so these scopes mean nothing"
    page = (await browser.get(application.authorize_url(scope="customers:read messages:write", resource=None))).ok()
    assert "See your clients, their plans" in page.text and "Write to your clients" in page.text

    tokens = await allow(browser, application, "customers:read", "exercises:read", resource=None)
    assert (tokens["scope"], tokens["token_type"]) == ("customers:read exercises:read", "Bearer")
    assert "refresh_token" not in tokens, "that needs offline_access"
    ana = await coach.create_customer("Ana")
    planner = coach.with_bearer(tokens["access_token"])
    me = (await planner.get("/me")).ok()
    assert (me["via"], me["permissions"]) == ("application", ["customers.view", "exercises.view"])
    assert await planner.names() == ["Ana"]
    refused = (await planner.post("/coach/customers", {"name": "Bob", "email": "bob@example.com"})).refused(403)
    assert (refused["code"], refused["scope"]) == ("SCOPE_MISSING", "customers:write")
    messages = (await planner.get(client_path(ana, "messages"), limit=5)).refused(403)
    assert (messages["code"], messages["scope"]) == ("SCOPE_MISSING", "messages:read")
    assert (await planner.get("/coach/api-keys")).refused(403)["code"] == "SESSION_REQUIRED"
    assert (await planner.get("/coach/export")).refused(403)["code"] == "OWNER_ONLY"
    (await coach.with_bearer(tokens["access_token"] + "x").get("/me")).refused(401)

    assert (await http.request("tools/list", Authorization=f"Bearer {tokens['access_token']}")).status == 401
    for_tools = await approve(browser, application)
    (await coach.with_bearer(for_tools["access_token"]).get("/me")).refused(401)


async def test_messages_need_their_scope_and_nothing_else(
    browser: Visitor, http: McpHttpClient, coach: CoachClient
) -> None:
    ana = await coach.create_customer("Ana")
    application = await register(http, client_name="Writer")
    writer = coach.with_bearer((await allow(browser, application, "messages:write", "messages:read"))["access_token"])
    sent = (await writer.post(client_path(ana, "messages"), {"text": "Hello"})).ok(201)
    [message] = (await writer.get(client_path(ana, "messages"), limit=5)).ok()["docs"]
    assert message["_id"] == sent["_id"] and message["author"]["type"] == "application"
    assert (await writer.get(f"/coach/customers/{ana['_id']}")).refused(403)["scope"] == "customers:read"
    grants = (await (await coach.interactive()).get("/coach/applications")).ok()

    async def logged() -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = (await coach.get("/coach/events", types="message.created")).ok()["docs"]
        return events

    [event] = await until(logged, "the message is numbered")
    assert (event["actor"]["type"], event["actor"]["applicationId"]) == ("application", grants[0]["_id"])
    assert event["actor"]["keyId"] is None


async def test_application_has_no_permission_that_its_coach_has_not(
    public_server: TestServer, http: McpHttpClient, coach: CoachClient
) -> None:
    email = f"eli-{coach.ctx.company_id}@example.com"
    owner = await coach.ctx.db["identities"].find_one({"companyId": coach.ctx.company_id})
    assert owner is not None
    await team.create(coach.ctx, "Eli", email, [CUSTOMERS.VIEW], "all", owner["passwordHash"])
    browser = Visitor(public_server)
    (await browser.sign_in(email, PASSWORD)).ok()
    tokens = await allow(browser, await register(http), "customers:read", "customers:write")
    await browser.close()
    theirs = coach.with_bearer(tokens["access_token"])
    refused = (await theirs.post("/coach/customers", {"name": "Bob", "email": "bob@example.com"})).refused(403)
    assert (refused["code"], refused["permission"]) == ("PERMISSION_MISSING", "customers.create")


async def test_refresh_needs_offline_access_and_keeps_its_resource(
    browser: Visitor, http: McpHttpClient, coach: CoachClient
) -> None:
    application = await register(http)
    tokens = await allow(browser, application, "customers:read", "offline_access")
    refused = (await application.renew(tokens["refresh_token"], resource=f"{http.base_url}/mcp")).refused(400)
    assert refused["error"] == "invalid_grant"
    renewed = (await application.renew(tokens["refresh_token"], resource=http.base_url)).ok()
    assert renewed["scope"] == "customers:read offline_access"
    assert (await coach.with_bearer(renewed["access_token"]).get("/me")).ok()["via"] == "application"


async def test_coach_sees_and_revokes_applications(browser: Visitor, http: McpHttpClient, coach: CoachClient) -> None:
    application = await register(http, client_name="Planner")
    misspelt = application.authorize_url(scope="customer:read openid", resource=http.base_url)
    assert redirect_query(await browser.get(misspelt, follow=False))["error"] == "invalid_scope", "nothing of REST"
    tokens = await allow(browser, application, "customers:read")
    planner = coach.with_bearer(tokens["access_token"])
    (await planner.get("/me")).ok()
    session = await coach.interactive()
    [seen] = (await session.get("/coach/applications")).ok()
    assert (seen["clientName"], seen["scopes"]) == ("Planner", ["customers:read"])
    assert seen["lastUsedAt"] is not None and "access" not in seen
    assert (await session.get("/coach/assistants")).ok() == []
    (await session.delete(f"/coach/assistants/{seen['_id']}")).refused(404)
    page = (await browser.get("/app/settings/applications")).ok()
    assert "Planner" in page.text and "See your clients, their plans" in page.text
    page = (await browser.get(f"/app/settings/applications/allowed/{seen['_id']}/revoke")).ok()
    done = await browser.submit(page, f"/app/settings/applications/allowed/{seen['_id']}/revoke")
    assert "Access of Planner revoked." in done.text
    (await planner.get("/me")).refused(401)
    (await session.delete(f"/coach/applications/{seen['_id']}")).refused(404)


async def test_owner_registers_an_application_with_a_secret(
    public_server: TestServer, browser: Visitor, http: McpHttpClient, coach: CoachClient, new_company: NewCompany
) -> None:
    page = (await browser.get("/app/settings/applications")).ok()
    form = {"name": "Planner", "redirectUris": f"{CALLBACK}\nhttp://localhost/back", "scopes": ["customers:read"]}
    wrong = await browser.submit(page, "/app/settings/applications", **form | {"redirectUris": "http://app.example"})
    assert "must be https, except on loopback" in wrong.text
    page = (await browser.get("/app/settings/applications")).ok()
    many = "\n".join(f"{CALLBACK}/{number}" for number in range(21))
    wrong = await browser.submit(page, "/app/settings/applications", **form | {"redirectUris": many})
    assert "must not be more than 20 addresses" in wrong.text
    page = (await browser.get("/app/settings/applications")).ok()
    shown = await browser.submit(page, "/app/settings/applications", **form)
    client_id, secret = re.findall(r"<code[^>]*>([^<]{43})</code>", shown.html)[:2]
    registered = {"client_id": client_id, "client_secret": secret, "redirect_uris": [CALLBACK]}
    application = OAuthApplication(http, registered)

    answer = redirect_query(await browser.get(application.authorize_url(scope="programs:read"), follow=False))
    assert answer["error"] == "invalid_scope"
    tokens = await allow(browser, application, "customers:read", "programs:read")
    assert tokens["scope"] == "customers:read", "it is registered for no more"
    code = redirect_query(await decide(browser, application, scope="customers:read", resource=None))["code"]
    assert (await application.exchange(code, client_secret="wrong")).refused(401)["error"] == "invalid_client"

    stranger = await new_company()
    other = await signed_in(public_server, stranger)
    theirs = await allow(other, application, "customers:read")
    assert (await stranger.with_bearer(theirs["access_token"]).get("/me")).ok()["companyId"] == str(
        stranger.ctx.company_id
    )
    assert client_id not in (await other.get("/app/settings/applications")).ok().text, "it is another company's"

    page = (await browser.get("/app/settings/applications")).ok()
    [rotate] = [form.action for form in page.forms if form.action.endswith("/rotate-secret")]
    rotated = await browser.submit(page, rotate)
    new_secret = re.findall(r"<code[^>]*>([^<]{43})</code>", rotated.html)[1]
    assert new_secret != secret
    for valid in (secret, new_secret):
        code = redirect_query(await decide(browser, application, scope="customers:read", resource=None))["code"]
        (await application.exchange(code, client_secret=valid)).ok()
    delete = rotate.replace("rotate-secret", "delete")
    assert (await other.get(delete)).status == 404
    await browser.submit((await browser.get(delete)).ok(), delete)
    (await stranger.with_bearer(theirs["access_token"]).get("/me")).refused(401)
    (await coach.with_bearer(tokens["access_token"]).get("/me")).refused(401)
    ended = {"companyId": stranger.ctx.company_id, "action": "application.revoked"}
    [entry] = await stranger.ctx.db["audit"].find(ended).to_list()
    assert (entry["target"]["name"], entry["actor"]["type"]) == ("Planner", "system"), "its owner sees that it ended"
    await other.close()


async def test_a_deleted_company_ends_the_access_of_its_applications(
    public_server: TestServer, http: McpHttpClient, new_company: NewCompany
) -> None:
    author, stranger = await new_company(), await new_company()
    form: oauth_clients.NewApplication = {"name": "Planner", "redirectUris": [CALLBACK], "scopes": ["customers:read"]}
    registered, secret = await oauth_clients.register_application(author.ctx, form)
    known = {"client_id": registered["clientId"], "client_secret": secret, "redirect_uris": [CALLBACK]}
    application = OAuthApplication(http, known)
    browsers = [await signed_in(public_server, each) for each in (author, stranger)]
    tokens = [await allow(each, application, "customers:read") for each in browsers]
    theirs = stranger.with_bearer(tokens[1]["access_token"])
    (await theirs.get("/me")).ok()

    deleting = await author.interactive()
    (await deleting.send("DELETE", "/coach/account", json={"password": PASSWORD})).ok(204)

    (await theirs.get("/me")).refused(401)
    session = await stranger.interactive()
    assert (await session.get("/coach/applications")).ok() == []
    ended = {"companyId": stranger.ctx.company_id, "action": "application.revoked"}
    [entry] = await stranger.ctx.db["audit"].find(ended).to_list()
    assert entry["actor"]["type"] == "system"
    for each in browsers:
        await each.close()


async def test_program_of_the_task_page_reads_clients_and_events(
    public_server: TestServer, browser: Visitor, coach: CoachClient, tmp_path: Path
) -> None:
    """From registration to the first event, as a reader would copy it."""
    await coach.create_customer("Ana")
    base = str(public_server.make_url("")).rstrip("/")
    async with allowed_program(tmp_path, base, browser) as printed, asyncio.timeout(60):
        assert (await printed.readline()).decode() == "Clients: Ana\n"
        bob = await coach.create_customer("Bob")
        while (await printed.readline()).decode() != f"customer.created {bob['_id']}\n":
            pass


def test_scopes_are_those_of_the_contract() -> None:
    areas = ("customers", "exercises", "programs", "forms", "metrics", "nutrition", "messages")
    assert set(REST_SCOPES) == {f"{area}:{verb}" for area in areas for verb in ("read", "write")} | {
        "webhooks",
        "offline_access",
    }
