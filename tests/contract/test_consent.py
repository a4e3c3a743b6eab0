"""Every tool and every operation of applications is called about a client who has declined: nothing of them is there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from coaching_service import features
from coaching_service.app import SERVICES
from coaching_service.core.auth import REST_SCOPES
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import tools_of
from coaching_service.people import audit_log
from tests.contract.test_areas import NAME, Studio, text_of
from tests.contract.test_declared import fill_path, request_options
from tests.mcp.test_tool_access import arguments
from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient

TOOLS = tools_of(features.TOOLS)
ROUTES = [
    route
    for route in routes_of(features.ROUTES)
    if route.access.audience in ("coach", "anyone") and not (route.access.session_only or route.access.owner_only)
]


@pytest.fixture
def studio(named_client: Studio) -> Studio:
    return named_client


async def decline(studio: Studio, **consent: bool) -> None:
    client = await studio.coach.as_client({"_id": studio.world["customerId"]})
    (await client.patch("/customer/me", {"consent": consent})).ok()


@pytest.fixture
async def application(studio: Studio) -> CoachClient:
    allowed = await authorize_assistant(studio.coach.ctx, "Planner", rest_scopes=REST_SCOPES)
    return studio.coach.with_bearer(allowed.tokens.access)


@pytest.fixture
async def assistant(studio: Studio) -> AsyncIterator[McpHttpClient]:
    allowed = await authorize_assistant(studio.coach.ctx)
    async with McpHttpClient(studio.server, {"Authorization": f"Bearer {allowed.tokens.access}"}) as mcp:
        yield mcp


def mentions(studio: Studio, text: str) -> bool:
    return NAME in text or studio.world["customerId"] in text


async def test_no_tool_shows_or_changes_a_client_who_has_declined(studio: Studio, assistant: McpHttpClient) -> None:
    world = studio.world
    shown = str(await assistant.call("get_customer", customerId=world["customerId"]))
    assert NAME in shown, "else nothing is tested"
    await decline(studio, assistants=False)
    leaks = []
    for tool in TOOLS:
        returned = await assistant.call(tool.name, **arguments(tool, world))
        if mentions(studio, str(returned)):
            leaks.append((tool.name, str(returned)[:300]))
        if "customerId" in tool.input_schema.get("required", ()):
            assert returned["isError"], tool.name
            assert "turned off" in returned["content"][0]["text"], (tool.name, returned)
    assert leaks == []
    (await studio.coach.get(f"/coach/customers/{world['customerId']}")).ok(), "API keys over REST are no assistants"
    await decline(studio, assistants=True)
    assert NAME in str(await assistant.call("get_customer", customerId=world["customerId"]))


async def test_no_operation_of_applications_shows_or_changes_a_client_who_has_declined(
    studio: Studio, application: CoachClient
) -> None:
    world = studio.world
    path = f"/coach/customers/{world['customerId']}"
    assert (await application.get(path)).ok()["consent"] == {"assistants": True, "applications": True}
    await decline(studio, applications=False)
    assert (await studio.coach.get(path)).ok()["consent"] == {"assistants": True, "applications": False}
    assert (await application.get(path)).refused(403)["code"] == "CLIENT_DECLINED"
    leaks = []
    for route in ROUTES:
        reply = await call(application, studio, route)
        if reply.status < 300 and mentions(studio, text_of(reply.raw)) and route.path not in ECHOES:
            leaks.append((route.method, route.path, reply.raw[:300]))
        if "{customerId}" in route.path:
            assert (reply.status, reply.json.get("code")) == (403, "CLIENT_DECLINED"), (route.path, reply.raw)
    assert leaks == []
    declined = ObjectId(world["customerId"])
    about = {"companyId": studio.coach.ctx.company_id, "customerId": declined, "via": "application"}
    assert await studio.coach.ctx.db["changes"].count_documents(about) == 0
    await decline(studio, applications=True)
    (await application.get(path)).ok()


# Bulk operations name the clients for whom they failed.
ECHOES = {route.path for route in ROUTES if "/bulk/" in route.path}


async def call(application: CoachClient, studio: Studio, route: Route) -> Any:
    application.checks = False
    return await application.send(route.method, fill_path(route, studio.world), **request_options(route, studio.world))


async def test_bulk_operations_fail_for_a_client_who_has_declined(studio: Studio, application: CoachClient) -> None:
    await decline(studio, applications=False)
    ids = [studio.world["customerId"]]
    result = (await application.post("/coach/customers/bulk/groups-add", {"ids": ids, "groups": ["Runners"]})).ok()
    assert [(each["customerId"], each["code"]) for each in result["failed"]] == [(ids[0], "CLIENT_DECLINED")]
    await decline(studio, applications=True)


async def test_links_to_files_of_an_application_end_with_the_consent(
    studio: Studio, application: CoachClient, anonymous: CoachClient
) -> None:
    plans = f"/coach/customers/{studio.world['customerId']}/plan-versions?pageSize=1&pageNum=1"
    links = []
    for reader in (studio.coach, application):
        [plan] = (await reader.get(plans)).ok()["docs"]
        links.append(re.findall(r"/files/[^']+", str(plan))[0])
    await decline(studio, assistants=False)
    assert [(await anonymous.send("GET", link)).status for link in links] == [200, 200]
    await decline(studio, applications=False)
    assert [(await anonymous.send("GET", link)).status for link in links] == [200, 403]
    await decline(studio, assistants=True, applications=True)
    assert (await anonymous.send("GET", links[1])).status == 200


async def test_clients_see_which_assistant_or_application_has_looked(studio: Studio, anonymous: CoachClient) -> None:
    """Also two assistants of one coach within an hour, and who has opened a file."""
    customer_id = studio.world["customerId"]
    for name in ("First", "Second"):
        allowed = await authorize_assistant(studio.coach.ctx, name)
        async with McpHttpClient(studio.server, {"Authorization": f"Bearer {allowed.tokens.access}"}) as assistant:
            await assistant.call("get_customer", customerId=customer_id)
    diary = await authorize_assistant(studio.coach.ctx, "Diary", rest_scopes=REST_SCOPES)
    application = studio.coach.with_bearer(diary.tokens.access)
    [plan] = (await application.get(f"/coach/customers/{customer_id}/plan-versions?pageSize=1&pageNum=1")).ok()["docs"]
    assert (await anonymous.send("GET", re.findall(r"/files/[^']+", str(plan))[0])).status == 200
    for services in (studio.coach.ctx.services, studio.server.app[SERVICES]):
        await audit_log.store_pending(services)
    client = await studio.coach.as_client({"_id": customer_id})
    access = (await client.get("/customer/access")).ok()
    reads = {(each["actor"]["type"], each["actor"]["name"]): each["reads"] for each in access}
    assert (reads["assistant", "First"], reads["assistant", "Second"], reads["application", "Diary"]) == (1, 1, 2)


async def test_the_calendar_of_an_application_ends_with_the_consent(
    studio: Studio, application: CoachClient, anonymous: CoachClient
) -> None:
    path = f"/coach/customers/{studio.world['customerId']}/calendar-link"
    urls = [(await each.post(path)).ok(201)["url"] for each in (studio.coach, application)]
    assert [(await each.get(path)).ok()["url"] for each in (studio.coach, application)] == urls
    links = [url.partition("/calendar/")[2] for url in urls]

    async def read() -> list[int]:
        return [(await anonymous.send("GET", f"/calendar/{link}")).status for link in links]

    await decline(studio, assistants=False)
    assert await read() == [200, 200]
    await decline(studio, applications=False)
    assert await read() == [200, 404]
    await decline(studio, assistants=True, applications=True)
    assert await read() == [200, 200]


async def test_an_external_identifier_does_not_lead_to_a_client_who_has_declined(
    studio: Studio, application: CoachClient
) -> None:
    coach, other = studio.coach, (await studio.coach.create_customer("Bo"))["_id"]
    path = f"/coach/customers/{studio.world['customerId']}"
    (await coach.patch(path, {"externalId": "crm:1"})).ok()
    workout = {"name": "Legs", "date": studio.world["date"], "externalId": "watch:1"}
    (await coach.post(f"{path}/wblocks", workout)).ok(201)
    await decline(studio, applications=False)
    client, blocks = {"name": "Cai", "externalId": "crm:1"}, f"/coach/customers/{other}/wblocks"
    for sent_to, body in (("/coach/customers", client), (blocks, workout)):
        assert "_id" in (await coach.post(sent_to, body)).refused(409)
        refusal = (await application.post(sent_to, body)).refused(409)
        assert (refusal["code"], "_id" in refusal) == ("EXTERNAL_ID_TAKEN", False)
    for sent_to, many, code in (
        (f"{blocks}/upsert", {"blocks": [workout]}, "EXTERNAL_ID_TAKEN"),
        ("/coach/customers/batch", {"customers": [client]}, "EXTERNAL_ID_TAKEN"),
        ("/coach/customers/batch", {"customers": [client], "onConflict": "update"}, "CLIENT_DECLINED"),
    ):
        [result] = (await application.post(sent_to, many)).ok()["results"]
        assert [(each["code"], "_id" in each) for each in result["errors"]] == [(code, False)]
