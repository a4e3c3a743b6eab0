"""Proposals: what an assistant may not decide alone waits for its coach."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_proposal, tool_result

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
