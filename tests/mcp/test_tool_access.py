"""Access to tools: listed and callable only with their permission, and restricted to the company."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Unpack

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.core.auth import CUSTOMERS, EXERCISES
from coaching_service.core.errors import NotFound
from coaching_service.core.mcp import Tool, tools_of
from coaching_service.people import api_keys, assistants, team
from coaching_service.people.api_keys import NewRestrictions
from coaching_service.people.assistants import GrantRejected, Scope
from tests.conftest import PASSWORD, NewCompany
from tests.support.assistants import authorize_assistant
from tests.support.client import MONDAY, UNKNOWN, CoachClient
from tests.support.declared_world import World, make_world
from tests.support.mcp_client import McpHttpClient, invitation, tool_error, tool_proposal

TODAY = str(datetime.now(UTC).date())  # what is written is not compared with it

TOOLS = tools_of(features.TOOLS)


async def listed(mcp: McpHttpClient) -> set[str]:
    return {tool["name"] for tool in (await mcp.request("tools/list")).ok()["result"]["tools"]}


def arguments(tool: Tool, world: World) -> dict[str, Any]:
    """Valid arguments with these identifiers."""
    of = {
        "workoutId": world["wblockId"],
        "fromWorkoutId": world["wblockId"],
        "toWorkoutId": world["wblockId"],
        "itemId": world["witemId"],
        "startDate": TODAY,
        "endDate": TODAY,
        "date": TODAY,
        "name": "Ana",
        "value": 7,
        "targetDate": TODAY,
        "exercise": world["exerciseId"],
        "withExercise": "Push-Up",
        "changes": [{"action": "add", "text": "task: Walk"}],
        "text": "Hello",
        "customers": [{"name": "Bo"}],
        "kind": "ill",
        "rows": [{"date": TODAY, "exercise": "Squat", "reps": 8}],
        **world,
    }
    given = {name: of[name] for name in tool.input_schema.get("required", ())}
    if tool.name == "find_workouts":
        given["customerIds"] = [world["customerId"]]
    elif "customerIds" in tool.takes.fields:
        given["customerId"] = world["customerId"]
    if tool.name == "log_workout":
        given["workoutId"] = world["wblockId"]
    return given | _OPTIONAL.get(tool.name, {})


# What tools need besides the arguments that are always required.
_OPTIONAL: dict[str, dict[str, Any]] = {
    "create_customer": {"name": "Ana"},
    "find_workouts": {"words": "a"},
    "adjust_schedule": {"addLoad": 2.5},
    "create_workout": {"days": [{"date": TODAY, "name": "Legs", "text": "task: Walk"}]},
    "log_workout": {"sessionRpe": 7},
    "save_program": {"name": "Base", "days": [{"day": 1, "name": "Legs", "text": "task: Walk"}]},
    "set_availability": {"until": TODAY},
    "schedule_check_in": {"task": "Walk", "weekday": 1},
    "update_workout": {"name": "Arms"},
}


async def result(mcp: McpHttpClient, tool: Tool, world: World) -> dict[str, Any]:
    return await mcp.call(tool.name, **arguments(tool, world))


@pytest.fixture(scope="module")
async def victim(new_company: NewCompany) -> CoachClient:
    """A company that has a document of each kind."""
    return await new_company()


@pytest.fixture(scope="module")
async def world(victim: CoachClient) -> World:
    return await make_world(victim)


@asynccontextmanager
async def tools_of_key(
    server: TestServer, coach: CoachClient, **restrictions: Unpack[NewRestrictions]
) -> AsyncIterator[McpHttpClient]:
    """POSTs to /mcp with a key that has these restrictions."""
    key = (await api_keys.create(coach.ctx, "Test", restrictions))["key"]
    async with McpHttpClient(server, {"X-API-Key": key}) as mcp:
        yield mcp


async def test_read_only_key_sees_and_calls_only_read_tools(
    public_server: TestServer, victim: CoachClient, world: World
) -> None:
    async with tools_of_key(public_server, victim, readOnly=True) as mcp:
        assert await listed(mcp) == {tool.name for tool in TOOLS if not tool.writes and not tool.unlisted}
        for tool in TOOLS:
            returned = await result(mcp, tool, world)
            if tool.name == "get_proposal":
                tool_error(returned, "Proposal not found")  # of another key
                continue
            assert returned.get("isError", False) is tool.writes, tool.name
            if tool.writes:
                tool_error(returned, "read-only", "a key, that is not read-only")


async def test_restricted_key_sees_and_calls_only_permitted_tools(
    public_server: TestServer, victim: CoachClient, world: World
) -> None:
    permitted = {tool.name for tool in TOOLS if set(tool.access.permissions) <= {CUSTOMERS.VIEW, EXERCISES.VIEW}}
    async with tools_of_key(public_server, victim, permissions=[CUSTOMERS.VIEW, EXERCISES.VIEW]) as mcp:
        assert await listed(mcp) == {tool.name for tool in TOOLS if tool.name in permitted and not tool.unlisted}
        for tool in TOOLS:
            if not tool.access.permissions:
                continue  # undo needs the permission for the reverse operation
            returned = await result(mcp, tool, world)
            assert returned.get("isError", False) is (tool.name not in permitted), tool.name
            if tool.name not in permitted:
                assert "reading" not in tool_error(
                    returned, "permission", "Tell the coach: this requires that permission."
                )


async def test_every_tool_declares_a_permission(mcp: McpHttpClient) -> None:
    assert all(tool.access.audience == "coach" for tool in TOOLS)
    assert {tool.name for tool in TOOLS if not tool.access.permissions} == {"undo", "get_proposal"}


async def test_company_can_read_its_own_records(public_server: TestServer, victim: CoachClient, world: World) -> None:
    async with McpHttpClient(public_server, {"X-API-Key": str(victim.key)}) as mcp:
        for tool in TOOLS:
            returned = await result(mcp, tool, world)
            assert not returned.get("isError"), (tool.name, returned)


async def test_records_of_another_company_are_not_found(mcp: McpHttpClient, world: World) -> None:
    for tool in TOOLS:
        returned = await result(mcp, tool, world)
        text = returned["content"][0]["text"]
        assert not any(identifier in text for name, identifier in world.items() if name != "name"), "a name is new here"
        if tool.input_schema.get("required", ["name"]) not in (["name"], ["customers"]):
            assert returned["isError"], tool.name
            assert "not found" in text, (tool.name, text)
        unknown = await mcp.call(tool.name, **arguments(tool, dict.fromkeys(world, UNKNOWN)))
        assert unknown.get("isError") == returned.get("isError"), tool.name


async def test_employee_is_limited_to_assigned_clients(public_server: TestServer, coach: CoachClient) -> None:
    email = f"eli-{coach.ctx.company_id}@example.com"
    hired = await team.create(coach.ctx, "Eli", email, [CUSTOMERS.VIEW], "assigned", "no hash")
    mine = await coach.create_customer(name="Mine", assignedTo=str(hired["_id"]))
    colleagues = await coach.create_customer(name="Colleague's")
    eli = await team.get_principal(coach.ctx.services, hired["_id"])
    assert eli is not None
    grant = await authorize_assistant(coach.ctx.acting_as(eli))
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as mcp:
        page = (await mcp.call("list_customers"))["structuredContent"]
        assert [each["_id"] for each in page["docs"]] == [mine["_id"]]
        returned = await mcp.call("get_workouts", customerId=colleagues["_id"], startDate=MONDAY, endDate=MONDAY)
        text = tool_error(returned, "assigned to another coach", "Tell the coach", "list_customers")
        assert "permission" not in text and "reading" not in text


async def test_read_only_assistant_cannot_write(public_server: TestServer, coach: CoachClient) -> None:
    grant = await authorize_assistant(coach.ctx, scopes=["read"])
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as mcp:
        assert await listed(mcp) == {tool.name for tool in TOOLS if not tool.writes and not tool.unlisted}


async def test_each_scope_allows_its_part_of_the_tools(public_server: TestServer, coach: CoachClient) -> None:
    mail = invitation(coach)
    chosen: list[list[Scope]] = [["read"], ["change"], ["read", "change"], ["change", "outreach"]]
    for scopes in chosen:
        grant = await authorize_assistant(coach.ctx, "Claude", scopes)
        async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as mcp:
            names = await listed(mcp)
            assert "get_proposal" in names, "whoever proposes may ask what was decided"
            kinds = {tool.writes for tool in TOOLS if tool.name in names - {"get_proposal"}}
            assert kinds == {kind == "change" for kind in scopes if kind != "outreach"}
            assert (await mcp.call("list_customers")).get("isError", False) is ("read" not in scopes)
            invited = await mcp.call("create_customer", **mail)
            if "outreach" in scopes:
                tool_proposal(invited, "CONTACT")
            else:
                tool_error(invited, "may not send mail" if "change" in scopes else "read-only")
    assert await coach.names() == []


async def test_grant_from_before_scopes_keeps_its_access(public_server: TestServer, coach: CoachClient) -> None:
    for read_only in (False, True):
        grant = await authorize_assistant(coach.ctx)
        stored = coach.ctx.services.db["assistantGrants"]
        await stored.update_one(
            {"_id": grant.grant["_id"]}, {"$set": {"readOnly": read_only}, "$unset": {"scopes": 1, "requested": 1}}
        )
        async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as mcp:
            assert {tool.writes for tool in TOOLS if tool.name in await listed(mcp)} == {False, not read_only}
        seen = (await (await coach.interactive()).get("/coach/assistants")).ok()[-1]
        assert seen["scopes"] == (["read"] if read_only else ["read", "change", "outreach"])
        renewed = await assistants.refresh_tokens(coach.ctx.services, str(grant.tokens.refresh), "a-client")
        assert len(renewed.scopes) == (1 if read_only else 3)


async def test_assistant_token_is_not_a_session(coach: CoachClient) -> None:
    token = (await authorize_assistant(coach.ctx)).tokens.access
    (await coach.with_bearer(token).get("/me")).refused(401)


async def test_assistant_of_a_removed_employee_loses_access_at_once(
    public_server: TestServer, coach: CoachClient
) -> None:
    email = f"eli-{coach.ctx.company_id}@example.com"
    hired = await team.create(coach.ctx, "Eli", email, [CUSTOMERS.VIEW], "all", "no hash")
    eli = await team.get_principal(coach.ctx.services, hired["_id"])
    assert eli is not None
    theirs = await authorize_assistant(coach.ctx.acting_as(eli), "Eli's")
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {theirs.tokens.access}"}) as mcp:
        assert "list_customers" in await listed(mcp)
        session = await coach.interactive()
        assert [each["clientName"] for each in (await session.get("/coach/assistants")).ok()] == ["Eli's"]
        (await session.delete(f"/coach/employees/{hired['_id']}")).ok(204)
        assert (await mcp.request("tools/list")).status == 401
    assert (await session.get("/coach/assistants")).ok() == []


async def test_assistants_of_a_deleted_company_lose_access_at_once(
    public_server: TestServer, new_company: NewCompany
) -> None:
    company = await new_company()
    grant = await authorize_assistant(company.ctx)
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as mcp:
        assert (await mcp.request("tools/list")).status == 200
        session = await company.interactive()
        (await session.send("DELETE", "/coach/account", json={"password": PASSWORD})).ok(204)
        assert (await mcp.request("tools/list")).status == 401
    with pytest.raises(GrantRejected):
        await assistants.refresh_tokens(company.ctx.services, str(grant.tokens.refresh), "a-client")


async def test_coach_lists_and_revokes_their_own_assistants(public_server: TestServer, coach: CoachClient) -> None:
    grant = await authorize_assistant(coach.ctx, "Claude")
    session = await coach.interactive()
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {grant.tokens.access}"}) as mcp:
        await listed(mcp)
        (seen,) = (await session.get("/coach/assistants")).ok()
        assert (seen["clientName"], seen["redirectHost"], seen["readOnly"]) == ("Claude", "claude.ai", False)
        assert seen["lastUsedAt"] is not None
        (await session.delete(f"/coach/assistants/{seen['_id']}")).ok(204)
        assert (await mcp.request("tools/list")).status == 401
        assert (await session.get("/coach/assistants")).ok() == []
        (await session.delete(f"/coach/assistants/{seen['_id']}")).refused(404)


async def test_employee_manages_own_assistants_and_owner_all_of_them(coach: CoachClient) -> None:
    email = f"eli-{coach.ctx.company_id}@example.com"
    employee = await team.create(coach.ctx, "Eli", email, [CUSTOMERS.VIEW], "all", "no hash")
    principal = await team.get_principal(coach.ctx.services, employee["_id"])
    assert principal is not None
    employee_ctx = coach.ctx.acting_as(principal)
    owners, employees = (
        await authorize_assistant(coach.ctx, "Owner's"),
        await authorize_assistant(employee_ctx, "Eli's"),
    )

    assert [each["clientName"] for each in await assistants.list_assistants(employee_ctx)] == ["Eli's"]
    with pytest.raises(NotFound):
        await assistants.disconnect_assistant(employee_ctx, owners.grant["_id"])
    assert {each["clientName"] for each in await assistants.list_assistants(coach.ctx)} == {"Owner's", "Eli's"}
    await assistants.disconnect_assistant(coach.ctx, employees.grant["_id"])
    assert await assistants.list_assistants(employee_ctx) == []


async def test_new_keys_may_not_contact_people_over_mcp_unless_set(
    coach: CoachClient, interactive: CoachClient, public_server: TestServer
) -> None:
    ana = await coach.create_customer("Ana")
    (await coach.post(f"/coach/customers/{ana['_id']}/notes", {"content": "Knee"})).ok(201)
    for outreach in (None, False, True):
        restrictions = None if outreach is None else {"outreach": outreach}
        created = (await interactive.post("/coach/api-keys", {"name": "A", "restrictions": restrictions})).ok(201)
        assert created["restrictions"]["outreach"] is bool(outreach)
        # REST is not restricted by it.
        text = {"text": "Hello"}
        (await coach.with_key(created["key"]).post(f"/coach/customers/{ana['_id']}/messages", text)).ok(201)
        async with McpHttpClient(public_server, {"X-API-Key": created["key"]}) as mcp:
            assert ("send_message" in await listed(mcp)) is bool(outreach)
            sent = await mcp.call("send_message", customerId=ana["_id"], **text)
            mail = {"name": "Bo", "email": "bo@example.com", "sendInvitation": True}
            invited = await mcp.call("create_customer", **mail)
            if outreach:
                tool_proposal(sent, "CONTACT")
                tool_proposal(invited, "CONTACT")
            else:
                tool_error(sent, "may not send mail or messages")
                tool_error(invited, "may not send mail or messages")
