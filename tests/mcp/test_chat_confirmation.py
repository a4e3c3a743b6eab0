"""Confirmation in the chat: an assistant with `confirmInChat` confirms itself, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, invitation, tool_change, tool_error, tool_proposal
from tests.support.schedules import batch

Json = dict[str, Any]


async def key_client(server: TestServer, coach: CoachClient, name: str, *, chat: bool = True) -> McpHttpClient:
    """A client with a new key of the coach that may contact people and, with `chat`, confirm itself."""
    session = await coach.interactive()
    restrictions = {"outreach": True, "confirmInChat": chat}
    created = (await session.post("/coach/api-keys", {"name": name, "restrictions": restrictions})).ok(201)
    assert created["restrictions"]["confirmInChat"] is chat
    return McpHttpClient(server, {"X-API-Key": created["key"]})


@pytest.fixture
async def chat(public_server: TestServer, coach: CoachClient) -> AsyncIterator[McpHttpClient]:
    """POSTs to /mcp with a key that may confirm in the chat."""
    async with await key_client(public_server, coach, "Chat") as client:
        yield client


def asked(result: Json, *reasons: str) -> Json:
    """Assert that the assistant has to ask in the chat, and return the data."""
    content: Json = result["structuredContent"]
    assert content.keys() == {"executed", "summary", "reasons", "confirmationToken", "hint"}
    assert (content["executed"], content["reasons"]) == (False, list(reasons))
    assert content["confirmationToken"] in result["content"][0]["text"] and "Ask the coach" in content["hint"]
    return content


async def test_confirmation_is_valid_once_for_one_caller_and_the_same_arguments(
    public_server: TestServer, chat: McpHttpClient, coach: CoachClient
) -> None:
    ana = invitation(coach)
    proposal = asked(await chat.call("create_customer", **ana), "CONTACT")
    assert proposal["summary"] == "Create the client «Ana» and invite them by e-mail."
    assert await coach.names() == []

    token = proposal["confirmationToken"]
    changed = {**ana, "name": "Bo"}
    async with await key_client(public_server, coach, "Other") as other_key:
        for client, arguments in ((other_key, ana), (chat, changed), (chat, {**ana, "groups": ["A"]})):
            refused = await client.call("create_customer", **arguments, confirmationToken=token)
            asked(refused, "CONTACT")
            assert "That confirmation is not valid" in refused["content"][0]["text"]
    assert await coach.names() == []

    tool_change(await chat.call("create_customer", **ana, confirmationToken=token))
    asked(await chat.call("create_customer", **ana, confirmationToken=token), "CONTACT")
    assert await coach.names() == ["Ana"]


async def test_confirmation_expires_and_is_used_by_one_of_two_calls(chat: McpHttpClient, coach: CoachClient) -> None:
    ana = invitation(coach)
    token = asked(await chat.call("create_customer", **ana), "CONTACT")["confirmationToken"]
    await coach.ctx.db["confirmations"].update_many(
        {"companyId": coach.ctx.company_id}, {"$set": {"createdAt": datetime.now(UTC) - timedelta(minutes=11)}}
    )
    proposal = asked(await chat.call("create_customer", **ana, confirmationToken=token), "CONTACT")
    token = proposal["confirmationToken"]
    stored = await coach.ctx.db["confirmations"].find_one({"companyId": coach.ctx.company_id})
    assert stored is not None and token not in str(stored)

    results = await asyncio.gather(*(chat.call("create_customer", **ana, confirmationToken=token) for _ in range(4)))
    executed = [each for each in results if each["structuredContent"].get("executed", True)]
    assert len(executed) == 1
    assert await coach.names() == ["Ana"]


async def test_without_the_switch_a_token_does_nothing(
    public_server: TestServer, chat: McpHttpClient, mcp: McpHttpClient, coach: CoachClient
) -> None:
    ana = invitation(coach)
    token = asked(await chat.call("create_customer", **ana), "CONTACT")["confirmationToken"]
    tool_proposal(await mcp.call("create_customer", **ana, confirmationToken=token), "CONTACT")
    listed = {}
    for name, client in (("mcp", mcp), ("chat", chat)):
        tools = (await client.request("tools/list")).ok()["result"]["tools"]
        listed[name] = {each["name"] for each in tools if "confirmationToken" in each["inputSchema"]["properties"]}
    assert listed["mcp"] == set()
    # Any tool that writes may exceed what is done without a confirmation.
    assert {"create_customer", "send_message", "remove_workout", "add_note", "set_training_max"} <= listed["chat"]
    assert not {"list_customers", "get_proposal"} & listed["chat"]
    # The user of a client with forms confirms there, and never the assistant.
    call = {"name": "create_customer", "arguments": {**ana, "confirmationToken": token}}
    result = (await chat.request_modern("tools/call", call, {"elicitation": {}})).ok()["result"]
    assert result["resultType"] == "input_required"
    stolen = {**ana, "confirmationToken": result["requestState"]}
    asked(await chat.call("create_customer", **stolen), "CONTACT")
    assert await coach.names() == []


async def test_assistant_confirms_five_messages_in_ten_minutes(chat: McpHttpClient, coach: CoachClient) -> None:
    clients = [(await coach.create_customer(f"Client {number}"))["_id"] for number in range(6)]

    async def write(**to: Any) -> Json:
        first = await chat.call("send_message", **to, text="Hello")
        token = first["structuredContent"].get("confirmationToken")
        return await chat.call("send_message", **to, text="Hello", confirmationToken=token) if token else first

    tool_proposal(await write(customerIds=clients), "CONTACT", "MANY_CLIENTS")
    tool_change(await write(customerIds=clients[:3]))
    calls = [await chat.call("send_message", customerId=each, text="You?") for each in clients]
    tokens = [asked(each, "CONTACT")["confirmationToken"] for each in calls]
    results = await asyncio.gather(
        *(
            chat.call("send_message", customerId=each, text="You?", confirmationToken=token)
            for each, token in zip(clients, tokens, strict=True)
        )
    )
    executed = [each for each in results if each["structuredContent"].get("executed", True)]
    assert len(executed) == 2
    tool_proposal(await write(customerId=clients[0]), "CONTACT")

    credential = {"companyId": coach.ctx.company_id}
    long_ago = datetime.now(UTC) - timedelta(minutes=11)
    await coach.ctx.db["chatConfirmations"].update_many(credential, {"$set": {"confirmed.$[].at": long_ago}})
    tool_change(await write(customerId=clients[0]))


async def test_assistant_confirms_twenty_other_calls_in_ten_minutes(chat: McpHttpClient, coach: CoachClient) -> None:
    client, stored = await coach.create_customer(), coach.ctx.db["chatConfirmations"]
    about, far = {"customerId": client["_id"]}, datetime.now(UTC).date() + timedelta(days=400)
    for number in range(3):
        days = [{"date": str(far + timedelta(days=number)), "name": f"Legs {number}"}]
        result = await chat.call("create_workout", **about, days=days)
        if number == 2:
            tool_proposal(result, "FAR_DATE")
            continue
        token = asked(result, "FAR_DATE")["confirmationToken"]
        tool_change(await chat.call("create_workout", **about, days=days, confirmationToken=token))
        if number == 0:  # 18 more like it
            confirmed = {"$concatArrays": ["$confirmed"] * 19}
            await stored.update_many({"companyId": coach.ctx.company_id}, [{"$set": {"confirmed": confirmed}}])


@pytest.mark.parametrize("allowed", [True, False])
async def test_assistant_of_a_grant_with_the_switch_confirms_itself(
    public_server: TestServer, coach: CoachClient, *, allowed: bool
) -> None:
    assistant = await authorize_assistant(coach.ctx, confirm_in_chat=allowed)
    session = await coach.interactive()
    [listed] = (await session.get("/coach/assistants")).ok()
    assert listed["confirmInChat"] is allowed
    async with McpHttpClient(public_server, {"Authorization": f"Bearer {assistant.tokens.access}"}) as client:
        result = await client.call("create_customer", **invitation(coach))
    if allowed:
        asked(result, "CONTACT")
    else:
        tool_proposal(result, "CONTACT")


async def test_a_token_confirms_the_workout_that_was_shown(chat: McpHttpClient, coach: CoachClient) -> None:
    client, day = await coach.create_customer(), str(datetime.now(UTC).date())
    about = {"customerId": client["_id"]}
    workout = tool_change(await chat.call("create_workout", **about, days=[{"date": day, "name": "Legs"}]))["workoutId"]
    tool_change(await chat.call("log_workout", **about, date=day, sessionRpe=7))
    again = {**about, "date": day, "sessionRpe": 8}
    token = asked(await chat.call("log_workout", **again), "DONE_WORK")["confirmationToken"]
    await batch(coach, client, {"name": "Run", "date": day})
    logged = tool_change(await chat.call("log_workout", **again, confirmationToken=token))
    assert logged["workoutId"] == workout
    tool_error(await chat.call("log_workout", **again, confirmationToken=token), "date has 2 workouts")
