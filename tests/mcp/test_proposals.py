"""Proposals: what an assistant may not decide alone waits for its coach."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.auth.permissions import CUSTOMERS, EXERCISES, METRICS
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job
from coaching_service.integrations.proposals import service
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.sessions import service as sessions
from coaching_service.people.team import service as team
from tests.support.client import CoachClient
from tests.support.mcp_client import TODAY, McpHttpClient, approve, tool_change, tool_error, tool_proposal, tool_result
from tests.support.service_process import until
from tests.support.training import client_path, metric_set

Json = dict[str, Any]


@pytest.fixture
async def session(coach: CoachClient) -> CoachClient:
    """The coach's interactive session."""
    return await coach.interactive()


def invitation(coach: CoachClient, name: str = "Ana") -> Json:
    """Arguments of create_customer with which mail is sent."""
    return {"name": name, "email": f"{name.lower()}-{coach.ctx.company_id}@example.com", "sendInvitation": True}


async def test_call_that_needs_confirmation_waits_for_its_coach(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    ana = {**invitation(coach), "idempotencyKey": "once"}
    proposed = await mcp.call("create_customer", **ana)
    content = tool_proposal(proposed, "CONTACT")
    assert "oken" not in str(proposed["content"]) + str(content)
    assert await mcp.call("create_customer", **ana) == proposed
    assert await mcp.call("create_customer", **invitation(coach)) == proposed
    assert await coach.names() == []

    listed = (await session.get("/coach/proposals?status=pending")).ok()
    [proposal] = listed["docs"]
    assert proposal["_id"] == content["proposalId"]
    assert proposal["tool"] == "create_customer"
    assert proposal["summary"] == "Created the client «Ana» and invited them by e-mail."
    assert proposal["reasons"] == ["CONTACT"]
    assert (proposal["status"], proposal["result"], proposal["decidedBy"]) == ("pending", None, None)
    assert proposal["assistant"]["name"] == "Test"
    assert proposal.keys() == {
        *("_id", "createdAt", "updatedAt", "version", "expiresAt", "status", "tool", "summary", "reasons", "changes"),
        *("assistant", "coachId", "decidedAt", "decidedBy", "result"),
    }
    waiting = tool_result(await mcp.call("get_proposal", proposalId=proposal["_id"]))
    assert (waiting["status"], waiting.get("result")) == ("pending", None)

    result = await approve(coach, content)
    approved = (await session.get(f"/coach/proposals/{proposal['_id']}")).ok()
    assert approved["decidedBy"]["_id"] == str(coach.ctx.caller.id)
    assert approved["result"] == result
    assert await coach.names() == ["Ana"]
    done = await mcp.call("get_proposal", proposalId=proposal["_id"])
    assert "changeId: " in done["content"][0]["text"]
    assert done["structuredContent"]["status"] == "executed"
    assert done["structuredContent"]["result"] == approved["result"]
    # The idempotency key of the call is honoured.
    again = tool_change(await mcp.call("create_customer", **ana))
    assert again["changeId"] == approved["result"]["changeId"]
    assert await coach.names() == ["Ana"]


async def test_decision_is_final_and_done_once(mcp: McpHttpClient, coach: CoachClient, session: CoachClient) -> None:
    first = tool_proposal(await mcp.call("create_customer", **invitation(coach)), "CONTACT")
    path = f"/coach/proposals/{first['proposalId']}"
    replies = await asyncio.gather(*(session.post(f"{path}/approve") for _ in range(4)))
    assert sorted(reply.status for reply in replies) == [200, 409, 409, 409]
    assert {reply.json["code"] for reply in replies if reply.status == 409} == {"PROPOSAL_CLOSED"}
    assert await coach.names() == ["Ana"]
    (await session.post(f"{path}/reject")).refused(409, "decided")

    second = tool_proposal(await mcp.call("create_customer", **invitation(coach, "Bo")), "CONTACT")
    path = f"/coach/proposals/{second['proposalId']}"
    rejected = (await session.post(f"{path}/reject")).ok()
    assert (rejected["status"], rejected["result"]) == ("rejected", None)
    (await session.post(f"{path}/approve")).refused(409, "decided")
    answer = await mcp.call("get_proposal", proposalId=second["proposalId"])
    assert "rejected" in answer["content"][0]["text"]
    assert await coach.names() == ["Ana"]


async def test_decision_is_made_once_for_each_key(mcp: McpHttpClient, coach: CoachClient, session: CoachClient) -> None:
    key = {"Idempotency-Key": "decide"}
    ana = await coach.create_customer()
    for decision in ("approve", "reject"):
        call = {"customerId": ana["_id"], "text": "Hello", "idempotencyKey": decision}
        proposal = tool_proposal(await mcp.call("send_message", **call), "CONTACT")
        path = f"/coach/proposals/{proposal['proposalId']}/{decision}"
        first, second = [await session.post(path, headers=key) for _ in range(2)]
        assert (second.ok(), second.headers["Idempotent-Replayed"]) == (first.ok(), "true")
        assert second.headers["X-Change-Id"] == first.headers["X-Change-Id"]
        # The process ended before the response was stored: only the decision is.
        about = {"companyId": coach.ctx.company_id, "about": ObjectId(proposal["proposalId"])}
        if decision == "approve":
            assert (await coach.ctx.db["replays"].delete_one(about)).deleted_count == 1
            assert (await session.post(path, headers=key)).ok() == first.json
        (await session.post(path, headers={"Idempotency-Key": "other"})).refused(409, "decided")
    (await coach.delete(f"/coach/customers/{ana['_id']}")).ok(204)
    assert await coach.ctx.db["replays"].count_documents(about) == 0, "what it says of an erased client"


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
    hired = await team.create_employee(coach.ctx, name, email, permissions, scope, "no hash")
    principal = await team.get_principal(coach.ctx.services, hired["_id"])
    assert principal is not None
    key = await api_keys.create(coach.ctx.acting_as(principal), f"Key of {name}", {"outreach": True})
    tokens = await sessions.create_session(coach.ctx, hired["_id"], "coach")
    return Employee(hired["_id"], coach.with_key(key["key"]), coach.with_bearer(tokens["accessToken"]))


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


async def test_approval_is_refused_if_the_records_have_changed(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    client = await coach.create_customer()
    known = {"customerId": client["_id"]}
    created = tool_change(await mcp.call("create_workout", **known, days=[{"date": TODAY, "name": "Legs"}]))
    text = "task: Walk"
    edit = [{"action": "add", "text": text}]
    item = tool_change(await mcp.call("update_workout_items", **known, workoutId=created["workoutId"], changes=edit))
    [item_id] = item["itemIds"]
    path = f"{client_path(client, 'wblocks')}/{created['workoutId']}"
    (await coach.put(f"{path}/witems/{item_id}/log", {"isCompleted": True})).ok()
    call = {**known, "workoutId": created["workoutId"]}
    first = tool_proposal(await mcp.call("remove_workout", **call), "DONE_WORK")
    (await coach.patch(path, {"name": "Arms"})).ok()

    stale = (await session.post(f"/coach/proposals/{first['proposalId']}/approve")).refused(409)
    assert stale["code"] == "PROPOSAL_STALE"
    assert (await session.get(f"/coach/proposals/{first['proposalId']}")).ok()["status"] == "pending"
    second = tool_proposal(await mcp.call("remove_workout", **call), "DONE_WORK")
    assert second["proposalId"] != first["proposalId"]
    assert (await session.get(f"/coach/proposals/{first['proposalId']}")).ok()["status"] == "expired"
    [replaced] = (await session.get("/coach/proposals?status=expired")).ok()["docs"]
    assert replaced["_id"] == first["proposalId"]
    (await coach.delete(path)).ok(204)
    gone = (await session.post(f"/coach/proposals/{second['proposalId']}/approve")).refused(409)
    assert gone["code"] == "PROPOSAL_STALE"


async def test_proposal_expires_after_a_day(mcp: McpHttpClient, coach: CoachClient, session: CoachClient) -> None:
    first = tool_proposal(await mcp.call("create_customer", **invitation(coach)), "CONTACT")
    path = f"/coach/proposals/{first['proposalId']}"
    created = (await session.get(path)).ok()
    lifetime = datetime.fromisoformat(created["expiresAt"]) - datetime.fromisoformat(created["createdAt"])
    assert timedelta(hours=23, minutes=59) < lifetime <= timedelta(hours=24)
    past = datetime.now(UTC) - timedelta(seconds=1)
    await coach.ctx.db["proposals"].update_one({"_id": ObjectId(first["proposalId"])}, {"$set": {"expiresAt": past}})

    assert (await session.get(path)).ok()["status"] == "expired"
    assert (await session.get("/coach/proposals?status=pending")).ok()["docs"] == []
    [listed] = (await session.get("/coach/proposals?status=expired")).ok()["docs"]
    assert listed["_id"] == first["proposalId"]
    assert (await session.post(f"{path}/approve")).refused(409)["code"] == "PROPOSAL_CLOSED"
    arguments = {"companyId": coach.ctx.company_id, "proposalId": ObjectId(first["proposalId"])}
    await service.expire_step(coach.ctx.services, Job(ObjectId(), arguments, 1))
    stored = await coach.ctx.db["proposals"].find_one({"_id": ObjectId(first["proposalId"])})
    assert stored is not None and stored["status"] == "expired"
    await service.expire_step(coach.ctx.services, Job(ObjectId(), arguments, 1))  # again: nothing
    again = tool_proposal(await mcp.call("create_customer", **invitation(coach)), "CONTACT")
    assert again["proposalId"] != first["proposalId"]

    async def decided() -> list[Json]:
        events = (await coach.get("/coach/events?types=proposal.created&types=proposal.decided")).ok()["docs"]
        return events if len(events) == 3 else []

    events = await until(decided, "the events are numbered")
    assert [(each["type"], each["actor"]["type"]) for each in events] == [
        ("proposal.created", "assistant"),
        ("proposal.decided", "system"),
        ("proposal.created", "assistant"),
    ]
    assert events[1]["data"] == {
        "proposalId": first["proposalId"],
        "tool": "create_customer",
        "assistantId": created["assistant"]["_id"],
        "status": "expired",
    }


async def test_changes_are_shown_before_and_after_in_words(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    await coach.create_exercise("Squat")
    client = await coach.create_customer()
    days = [{"date": str(day), "name": "Legs", "text": "Squat: 4x8 @60kg"} for day in range_of_days(9)]
    known = {"customerId": client["_id"]}
    for some in (days[:7], days[7:]):
        tool_change(await mcp.call("create_workout", **known, days=some))
    dates = {"startDate": days[0]["date"], "endDate": days[8]["date"]}
    proposal = tool_proposal(await mcp.call("adjust_schedule", **known, **dates, addLoad=2.5), "MANY_DAYS")
    shown = (await session.get(f"/coach/proposals/{proposal['proposalId']}")).ok()["changes"]
    assert len(shown) == 9
    day = datetime.fromisoformat(days[0]["date"])
    title = f"Legs, {day:%a} {day.day} {day:%b %Y}"
    assert shown[0] == {
        "kind": "workout",
        "customer": {"_id": client["_id"], "name": "Ana"},
        "date": days[0]["date"],
        "before": f"{title}\nSquat · Planned sets: 4 × 8, 60\N{NO-BREAK SPACE}kg",
        "after": f"{title}\nSquat · Planned sets: 4 × 8, 62.5\N{NO-BREAK SPACE}kg",
    }
    result = await approve(coach, proposal)
    change = (await coach.get(f"/coach/changes/{result['changeId']}")).ok()
    assert change["approvedBy"] == {"_id": str(coach.ctx.caller.id), "name": "Olga Owner"}
    assert (change["via"], change["actor"]["type"]) == ("assistant", "assistant")
    listed = (await coach.get("/coach/changes", limit=2)).ok()["docs"]
    assert [(each["operation"], each["summary"]) for each in listed] == [
        ("adjust_schedule", "9 workouts changed"),
        ("propose_change", "1 proposal created"),
    ]
    tool_change(await mcp.call("undo", changeId=tool_change(await mcp.call("add_note", **known, text="A"))["changeId"]))


def range_of_days(count: int) -> list[date]:
    """So many days from tomorrow."""
    return [date.fromisoformat(TODAY) + timedelta(days=number + 1) for number in range(count)]


async def test_client_that_opens_addresses_shows_the_page_of_the_proposal(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    call = {"name": "create_customer", "arguments": invitation(coach)}
    asks: Json = {"elicitation": {"url": {}}}

    async def send(**answer: Any) -> Json:
        result: Json = (await mcp.request_modern("tools/call", {**call, **answer}, asks)).ok()["result"]
        return result

    question = await send()
    assert question["resultType"] == "input_required"
    params = question["inputRequests"]["confirm"]["params"]
    [proposal] = (await session.get("/coach/proposals")).ok()["docs"]
    assert (params["mode"], params["url"]) == ("url", f"{mcp.base_url}/app/proposals/{proposal['_id']}")
    opened = {"requestState": question["requestState"], "inputResponses": {"confirm": {"action": "accept"}}}
    assert tool_proposal(await send(**opened), "CONTACT")["proposalId"] == proposal["_id"]
    result = await approve(coach, {"proposalId": proposal["_id"]})
    assert tool_change(await send(**opened)) == result
    assert await coach.names() == ["Ana"]
    declined = {"requestState": question["requestState"], "inputResponses": {"confirm": {"action": "decline"}}}
    tool_error(await send(**declined), "declined")

    call["arguments"] = invitation(coach, "Bo")
    question = await send()
    [waiting] = (await session.get("/coach/proposals?status=pending")).ok()["docs"]
    (await session.post(f"/coach/proposals/{waiting['_id']}/reject")).ok()
    rejected = await send(requestState=question["requestState"], inputResponses={"confirm": {"action": "accept"}})
    assert rejected["structuredContent"] == {"executed": False, "status": "rejected"}
    assert rejected["content"][0]["text"].startswith("The coach has rejected it; nothing was changed.")
    assert (await session.get("/coach/proposals?status=pending")).ok()["docs"] == []


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


async def test_proposals_are_listed_newest_first_in_parts(
    mcp: McpHttpClient, coach: CoachClient, session: CoachClient
) -> None:
    made = [
        tool_proposal(await mcp.call("create_customer", **invitation(coach, name)), "CONTACT")["proposalId"]
        for name in ("Ana", "Bo", "Cy")
    ]
    (await session.post(f"/coach/proposals/{made[1]}/reject")).ok()
    first = (await session.get("/coach/proposals", limit=2)).ok()
    assert ([each["_id"] for each in first["docs"]], first["hasMore"]) == ([made[2], made[1]], True)
    rest = (await session.get("/coach/proposals", limit=2, after=first["nextCursor"])).ok()
    assert ([each["_id"] for each in rest["docs"]], rest["hasMore"]) == ([made[0]], False)
    for status, expected in (("pending", [made[2], made[0]]), ("rejected", [made[1]]), ("executed", [])):
        docs = (await session.get("/coach/proposals", status=status)).ok()["docs"]
        assert [each["_id"] for each in docs] == expected
    (await session.get("/coach/proposals", status="unknown")).refused(400, "status")
