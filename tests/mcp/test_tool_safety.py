"""What protects the data of a company from its assistants: confirmation, repeated calls, and undo."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date, timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from mcp.client.context import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult

from tests.support.client import CoachClient
from tests.support.mcp_client import (
    TODAY,
    McpHttpClient,
    approve,
    invitation,
    official_client,
    tool_change,
    tool_error,
    tool_proposal,
)

Json = dict[str, Any]
LONG_AGO = str(date.fromisoformat(TODAY) - timedelta(days=370))


@pytest.fixture
async def other_key(public_server: TestServer, coach: CoachClient) -> AsyncIterator[McpHttpClient]:
    """POSTs to /mcp with another key of the same coach."""
    session = await coach.interactive()
    key = (await session.post("/coach/api-keys", {"name": "Other"})).ok(201)["key"]
    async with McpHttpClient(public_server, {"X-API-Key": key}) as client:
        yield client


async def test_client_that_can_ask_its_user_is_told_to(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = {"name": "create_customer", "arguments": invitation(coach)}

    async def call(capabilities: Json, **answer: Any) -> Json:
        result: Json = (await mcp.request_modern("tools/call", {**ana, **answer}, capabilities)).ok()["result"]
        return result

    tool_proposal(await call({}), "CONTACT")
    forms: Json = {"elicitation": {}}
    question = await call(forms)
    assert question["resultType"] == "input_required"
    request = question["inputRequests"]["confirm"]
    assert request["method"] == "elicitation/create"
    assert "Create the client «Ana» and invite them" in request["params"]["message"]
    assert "structuredContent" not in question

    state = question["requestState"]
    for action in ("decline", "cancel"):
        tool_error(await call(forms, requestState=state, inputResponses={"confirm": {"action": action}}), "declined")
    tool_error(await call(forms, requestState=state), "declined")
    assert await coach.names() == []
    agreed = {"confirm": {"action": "accept", "content": {}}}
    asked_again = await call(forms, requestState=state, inputResponses=agreed)
    assert asked_again["resultType"] == "input_required", "who has declined is asked again"
    state = asked_again["requestState"]
    assert (await call(forms, requestState="unknown", inputResponses=agreed))["resultType"] == "input_required"
    tool_change(await call(forms, requestState=state, inputResponses=agreed))
    assert await coach.names() == ["Ana"]


@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_official_client_asks_its_user(public_server: TestServer, coach: CoachClient, action: Any) -> None:
    questions: list[str] = []

    async def ask(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    headers = {"X-API-Key": str(coach.key)}
    async with official_client(public_server, headers, "auto", elicitation_callback=ask) as assistant:
        result = await assistant.call_tool("create_customer", invitation(coach))
    assert len(questions) == 1 and "«Ana»" in questions[0]
    assert result.is_error is (action == "decline")
    assert await coach.names() == (["Ana"] if action == "accept" else [])


async def test_same_key_executes_a_call_once(mcp: McpHttpClient, other_key: McpHttpClient, coach: CoachClient) -> None:
    ana = {"name": "Ana", "idempotencyKey": "one"}
    first = await mcp.call("create_customer", **ana)
    assert await mcp.call("create_customer", **ana) == first
    tool_error(
        await mcp.call("create_customer", **{**ana, "name": "Bo"}),
        "This idempotencyKey was used with another",
        "Use a new",
    )
    assert await coach.names() == ["Ana"]
    tool_change(await other_key.call("create_customer", **ana))
    assert await coach.names() == ["Ana", "Ana"]

    cy = {**invitation(coach, "Cy"), "idempotencyKey": "two"}
    done = await approve(coach, tool_proposal(await mcp.call("create_customer", **cy), "CONTACT"))
    for _ in range(2):
        assert tool_change(await mcp.call("create_customer", **cy)) == done
    assert await coach.names() == ["Ana", "Ana", "Cy"]


async def test_assistant_undoes_what_it_has_done_and_nothing_else(
    mcp: McpHttpClient, other_key: McpHttpClient, coach: CoachClient
) -> None:
    client, unit = await coach.create_customer(), (await coach.get("/metrics-units")).ok()[0]["_id"]
    metrics = {"name": "Body", "metrics": [{"name": "Weight", "metricUnitId": unit}]}
    metric_set = (await coach.post("/coach/metrics-sets", metrics)).ok(201)
    known = {
        "customerId": client["_id"],
        "metricsSetId": metric_set["_id"],
        "metricId": metric_set["metrics"][0]["_id"],
    }
    (await coach.post(f"/coach/customers/{client['_id']}/metrics-sets", {"metricsSetId": metric_set["_id"]})).ok(201)
    far = await mcp.call("record_metric", **known, date=LONG_AGO, value=80)
    tool_proposal(far, "FAR_DATE")
    recorded = tool_change(await mcp.call("record_metric", **known, date=TODAY, value=80))
    tool_error(await other_key.call("undo", changeId=recorded["changeId"]), "only what it has changed itself")

    undone = tool_change(await mcp.call("undo", changeId=recorded["changeId"]))
    assert undone["summary"] == "Undid: removed 1 metric value of «Ana»."
    history = (await mcp.call("get_metric_history", **known))["structuredContent"]
    assert history["docs"] == []
    tool_error(await mcp.call("undo", changeId=recorded["changeId"]), "undone already")
    redone = tool_change(await mcp.call("undo", changeId=undone["changeId"]))
    assert redone["changeId"] != recorded["changeId"]
    assert len((await mcp.call("get_metric_history", **known))["structuredContent"]["docs"]) == 1


async def test_undo_says_what_it_does_and_what_prevents_it(mcp: McpHttpClient, coach: CoachClient) -> None:
    client = await coach.create_customer()
    about = {"customerId": client["_id"]}
    created = tool_change(await mcp.call("create_workout", **about, days=[{"date": TODAY, "name": "Legs"}]))
    known = {**about, "workoutId": created["workoutId"]}
    removed = tool_change(await mcp.call("remove_workout", **known))
    restored = tool_change(await mcp.call("undo", changeId=removed["changeId"]))
    assert restored["summary"] == f"Undid: restored 1 workout of «Ana», {TODAY}."

    renamed = tool_change(await mcp.call("update_workout", **known, name="Arms"))
    refused = await mcp.call("undo", changeId=created["changeId"])
    tool_error(
        refused, f"the workout «Legs» of {TODAY} [{created['workoutId']}] has been changed again", "tell the coach"
    )
    undone = tool_change(await mcp.call("undo", changeId=renamed["changeId"]))
    assert undone["summary"] == f"Undid: changed back 1 workout of «Ana», {TODAY}."

    tomorrow = str(date.fromisoformat(TODAY) + timedelta(days=1))
    moved = tool_change(await mcp.call("update_workout", **known, date=tomorrow))
    undone = tool_change(await mcp.call("undo", changeId=moved["changeId"]))
    assert undone["summary"] == f"Undid: changed back 1 workout of «Ana», moved back from {tomorrow} to {TODAY}."
    (block,) = await coach.calendar(client, TODAY, tomorrow)
    assert block["date"] == TODAY
