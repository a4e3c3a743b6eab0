"""Who reads proposals and decides on them, by the permissions of the moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.auth import CUSTOMERS, EXERCISES, METRICS
from coaching_service.core.ids import ObjectId
from coaching_service.people import api_keys, team
from coaching_service.people.sessions import service as sessions
from tests.support.client import CoachClient
from tests.support.mcp_client import TODAY, McpHttpClient, invitation, tool_error, tool_proposal, tool_result
from tests.support.training import client_path, metric_set


@dataclass(frozen=True)
class Employee:
    """An employee, with a key that may contact people, and a session."""

    id: ObjectId
    key: CoachClient
    session: CoachClient


async def hire(coach: CoachClient, name: str, *more: str, scope: Literal["all", "assigned"] = "all") -> Employee:
    """A new employee who may change clients, all or the assigned ones, and has `more` permissions."""
    email = f"{name.lower()}-{coach.ctx.company_id}@example.com"
    permissions = [CUSTOMERS.VIEW, CUSTOMERS.EDIT, *more]
    hired = await team.create(coach.ctx, name, email, permissions, scope, "no hash")
    principal = await team.get_principal(coach.ctx.services, hired["_id"])
    assert principal is not None
    key = await api_keys.create(coach.ctx.acting_as(principal), f"Key of {name}", {"outreach": True})
    tokens = await sessions.create_session(coach.ctx, hired["_id"], "coach")
    return Employee(hired["_id"], coach.with_key(key["key"]), coach.with_bearer(tokens["accessToken"]))


async def test_only_the_coach_of_the_assistant_and_the_owner_decide(
    public_server: TestServer, mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    """Never a key, nor the assistant itself."""
    eli, zoe = [await hire(coach, name) for name in ("Eli", "Zoe")]
    client = await coach.create_customer()
    async with McpHttpClient(public_server, {"X-API-Key": str(eli.key.key)}) as of_eli:
        proposal = tool_proposal(await of_eli.call("send_message", customerId=client["_id"], text="Hi"), "CONTACT")
        other = await mcp.call("get_proposal", proposalId=proposal["proposalId"])
        tool_error(other, "Proposal not found")
    path = f"/coach/proposals/{proposal['proposalId']}"
    assert [each["_id"] for each in (await session.get("/coach/proposals")).ok()["docs"]] == [proposal["proposalId"]]

    for stranger in (zoe.key, eli.key):
        for method, address in (("GET", "/coach/proposals"), ("GET", path), ("POST", f"{path}/approve")):
            assert (await stranger.send(method, address)).refused(403)["code"] == "SESSION_REQUIRED"
    zoe_session = zoe.session
    assert (await zoe_session.get("/coach/proposals")).ok()["docs"] == []
    for method, address in (("GET", path), ("POST", f"{path}/approve"), ("POST", f"{path}/reject")):
        (await zoe_session.send(method, address)).refused(404, "Proposal not found")
    (await (await coach.as_client(client)).get("/coach/proposals")).refused(403)

    assert (await eli.session.get(path)).ok()["assistant"]["name"] == "Key of Eli"
    assert (await session.post(f"{path}/approve")).ok()["decidedBy"]["name"] == "Olga Owner"
    [message] = (await coach.get(client_path(client, "messages"))).ok()["docs"]
    assert (message["text"], message["author"]["name"]) == ("Hi", "Eli")


async def test_who_works_with_assigned_clients_decides_on_new_ones(
    public_server: TestServer, coach: CoachClient
) -> None:
    eli = await hire(coach, "Eli", CUSTOMERS.CREATE, scope="assigned")
    async with McpHttpClient(public_server, {"X-API-Key": str(eli.key.key)}) as mcp:
        proposal = tool_proposal(await mcp.call("create_customer", **invitation(coach)), "CONTACT")
        waiting = tool_result(await mcp.call("get_proposal", proposalId=proposal["proposalId"]))
    assert waiting["status"] == "pending"
    [listed] = (await eli.session.get("/coach/proposals")).ok()["docs"]
    assert listed["_id"] == proposal["proposalId"]
    approved = (await eli.session.post(f"/coach/proposals/{proposal['proposalId']}/approve")).ok()
    assert approved["status"] == "executed"
    assert await coach.names() == ["Ana"]


@pytest.mark.parametrize("gone", ["deleted", "expired", "outreach", "permission", "scope"])
async def test_approval_needs_the_permissions_of_now(
    public_server: TestServer, coach: CoachClient, session: CoachClient, gone: str
) -> None:
    eli, client = await hire(coach, "Eli"), await coach.create_customer()
    async with McpHttpClient(public_server, {"X-API-Key": str(eli.key.key)}) as mcp:
        asked = await mcp.call("send_message", customerId=client["_id"], text="Hi")
    path = f"/coach/proposals/{tool_proposal(asked, 'CONTACT')['proposalId']}"
    [key] = [each for each in (await session.get("/coach/api-keys")).ok() if each["name"] == "Key of Eli"]
    employee = f"/coach/employees/{eli.id}"
    if gone == "deleted":
        (await session.delete(f"/coach/api-keys/{key['_id']}")).ok(204)
    elif gone == "outreach":
        where = {"_id": ObjectId(key["_id"])}
        await coach.ctx.db["apiKeys"].update_one(where, {"$set": {"restrictions.outreach": False}})
    elif gone == "permission":
        (await session.put(f"{employee}/permissions", {"permissions": [CUSTOMERS.VIEW]})).ok()
    elif gone == "scope":
        (await session.patch(employee, {"customersScope": "assigned"})).ok()
    elif gone == "expired":
        await coach.ctx.db["apiKeys"].update_one(
            {"_id": ObjectId(key["_id"])}, {"$set": {"restrictions.expiresAt": datetime.now(UTC)}}
        )

    (await session.post(f"{path}/approve")).refused(403)
    failed = (await session.get(path)).ok()
    assert failed["status"] == "failed"
    assert failed["result"].keys() == {"code", "message"}
    assert (await session.post(f"{path}/approve")).refused(409)["code"] == "PROPOSAL_CLOSED"
    assert (await coach.get(client_path(client, "messages"))).ok()["docs"] == []


async def test_reader_sees_no_changes_in_areas_without_permission(
    public_server: TestServer, coach: CoachClient, session: CoachClient
) -> None:
    client, body = await coach.create_customer(), await metric_set(coach, "Weight")
    (await coach.post(client_path(client, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    eli = await hire(coach, "Eli", METRICS.VIEW, METRICS.EDIT)
    value = {"customerId": client["_id"], "metricsSetId": body["_id"], "metricId": body["metrics"][0]["_id"]}
    long_ago = str(date.fromisoformat(TODAY) - timedelta(days=400))
    async with McpHttpClient(public_server, {"X-API-Key": str(eli.key.key)}) as mcp:
        asked = await mcp.call("record_metric", **value, date=long_ago, value=81.5)
    path = f"/coach/proposals/{tool_proposal(asked, 'FAR_DATE')['proposalId']}"
    seen = (await eli.session.get(path)).ok()
    assert "81.5" in seen["summary"] and "81.5" in seen["changes"][0]["after"]
    permissions = {"permissions": [CUSTOMERS.VIEW, CUSTOMERS.EDIT]}
    (await session.put(f"/coach/employees/{eli.id}/permissions", permissions)).ok()
    limited = (await eli.session.get(path)).ok()
    assert (limited["summary"], limited["changes"]) == ("It changes records that you may not see.", [])
    assert "81.5" in (await session.get(path)).ok()["summary"]
    of_eli = f"/coach/employees/{eli.id}/permissions"
    (await session.put(of_eli, {"permissions": [CUSTOMERS.VIEW, METRICS.VIEW, METRICS.EDIT]})).ok()
    (await session.post(f"{path}/approve")).ok()
    (await session.put(of_eli, permissions)).ok()
    result = (await session.get(path)).ok()["result"]
    assert "81.5" in str(result)
    assert (await eli.session.get(path)).ok()["result"] is None, "what was done is not told either"


async def test_reader_who_may_no_longer_see_clients_sees_no_changes_of_them(
    public_server: TestServer, coach: CoachClient, session: CoachClient
) -> None:
    eli = await hire(coach, "Eli", CUSTOMERS.CREATE)
    ana = await coach.create_customer("Ana")
    async with McpHttpClient(public_server, {"X-API-Key": str(eli.key.key)}) as mcp:
        asked = [
            await mcp.call("send_message", customerId=ana["_id"], text="Rest your knee"),
            await mcp.call("create_customer", **invitation(coach, "Bo")),
        ]
    paths = [f"/coach/proposals/{tool_proposal(each, 'CONTACT')['proposalId']}" for each in asked]
    seen = [(await eli.session.get(path)).raw.decode() for path in paths]
    assert "Rest your knee" in seen[0] and "Bo" in seen[1]
    (await session.put(f"/coach/employees/{eli.id}/permissions", {"permissions": [EXERCISES.VIEW]})).ok()
    for path in paths:
        limited = (await eli.session.get(path)).ok()
        assert (limited["summary"], limited["changes"]) == ("It changes records that you may not see.", [])
    assert "Rest your knee" in (await session.get(paths[0])).raw.decode()
