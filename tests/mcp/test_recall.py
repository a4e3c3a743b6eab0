"""Messages of assistants: they are delivered after a minute, exactly once, and can be recalled (contract, section 18)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job
from coaching_service.core.jobs.worker import run_due
from coaching_service.people import api_keys
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.messages import Message, MessageSubjectInput
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_error, tool_proposal, tool_result
from tests.support.service_process import until
from tests.support.training import Json, block_with, client_path, task

OWN = "/customer/messages"


async def as_assistant(coach: CoachClient) -> Context:
    """The context of an assistant that has the coach's key."""
    caller = await api_keys.authenticate(coach.ctx.services, coach.key or "")
    return replace(coach.ctx, principal=caller, interface="assistant", operation="send_message", change_ids=[])


async def send(
    coach: CoachClient, customer: Json, text: str = "Well done", about: MessageSubjectInput | None = None
) -> tuple[Message, str]:
    """Send a message as an assistant; returns it and the identifier of the change."""
    ctx = await as_assistant(coach)
    message = await conversation.create(ctx, ObjectId(customer["_id"]), {"text": text, "about": about})
    return message, str(ctx.change_ids[-1])


async def after_a_minute(coach: CoachClient, seconds: int = 61) -> None:
    """Run the jobs that are due so many seconds from now."""
    with time_machine.travel(datetime.now().astimezone() + timedelta(seconds=seconds)):
        await run_due(coach.ctx.services, {conversation.DELIVER: conversation.deliver_waiting}, at=now())


async def listed(client: CoachClient, path: str, **query: Any) -> list[tuple[str | None, bool]]:
    """The text of each message, newest first, and whether it waits."""
    docs = (await client.get(path, **query)).ok()["docs"]
    return [(each["text"], each["deliverAt"] is not None) for each in docs]


async def require_events(coach: CoachClient, *expected: str) -> None:
    """Wait until all changes are numbered, and assert which events about messages there are."""

    async def are_numbered() -> bool:
        pending = {"companyId": coach.ctx.company_id, "pending": {"$exists": True}}
        return await coach.ctx.db["changes"].count_documents(pending) == 0

    await until(are_numbered, "the numbers of the changes")
    docs = (await coach.get("/coach/events", limit=500)).ok()["docs"]
    assert [each["type"] for each in docs if each["type"].startswith("message.")] == list(expected)


async def test_a_message_of_an_assistant_is_delivered_after_a_minute(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    client, path = await coach.as_client(ana), client_path(ana, "messages")
    workout = await block_with(coach, ana, task("Walk"))
    await coach.post(path, {"text": "From me"})
    message, change_id = await send(coach, ana, about={"wblockId": ObjectId(workout["_id"])})
    message_id = str(message["_id"])

    assert await listed(coach, path) == [("Well done", True), ("From me", False)]
    assert await listed(coach, path, wblockId=workout["_id"]) == [("Well done", True)]
    assert await listed(coach, path, limit=1) == [("Well done", True)]
    assert (await coach.get(f"{path}/{message_id}")).ok()["deliverAt"] is not None
    assert (await coach.patch(f"{path}/{message_id}", {"text": "Other"})).refused(409)["code"] == "MESSAGE_WAITING"
    await after_a_minute(coach, seconds=40)
    assert await listed(client, OWN) == [("From me", False)]
    assert await listed(client, OWN, wblockId=workout["_id"]) == []
    assert (await coach.get("/coach/conversations")).ok()["docs"][0]["lastMessage"]["text"] == "From me"
    await require_events(coach, "message.created")
    (change,) = [each for each in (await coach.get("/coach/changes")).ok()["docs"] if each["_id"] == change_id]
    assert (change["via"], change["undoableUntil"] is not None) == ("assistant", True)

    for _ in range(2):
        await after_a_minute(coach)
    assert await listed(client, OWN) == await listed(coach, path) == [("Well done", False), ("From me", False)]
    delivered = (await coach.get(f"{path}/{message_id}")).ok()
    assert (delivered["author"]["type"], delivered["about"]["wblockId"]) == ("assistant", workout["_id"])
    assert delivered["createdAt"] > message["createdAt"].isoformat()
    assert (await client.get("/customer/today")).ok()["unreadMessages"] == 2
    await require_events(coach, "message.created", "message.created")
    stored = await coach.ctx.db["waitingMessages"].find_one({"_id": message["_id"]})
    assert stored is not None and stored["text"] == ""


async def test_messages_of_others_do_not_wait(coach: CoachClient, interactive: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    client, path = await coach.as_client(ana), client_path(ana, "messages")
    for sender in (coach, interactive):
        assert (await sender.post(path, {"text": "Now"})).ok(201)["deliverAt"] is None
    bulk = {"ids": [ana["_id"]], "text": "Now"}
    (await coach.post("/coach/customers/bulk/message", bulk)).ok()
    (await client.post(OWN, {"text": "Now"})).ok(201)
    assert await listed(client, OWN) == [("Now", False)] * 4


async def test_undo_recalls_a_message_until_it_is_delivered(coach: CoachClient, mcp: McpHttpClient) -> None:
    ana = await coach.create_customer("Ana")
    client, path = await coach.as_client(ana), client_path(ana, "messages")
    _, by_tool = await send(coach, ana)
    tool_change(await mcp.call("undo", changeId=by_tool))
    _, by_coach = await send(coach, ana)
    undone = (await coach.post(f"/coach/changes/{by_coach}/undo")).ok()
    message, _ = await send(coach, ana)
    (await coach.delete(f"{path}/{message['_id']}")).ok(204)

    await after_a_minute(coach)
    assert await listed(client, OWN) == await listed(coach, path) == []
    await require_events(coach)
    assert (
        await coach.ctx.db["jobs"].count_documents({"kind": conversation.DELIVER, "about": ObjectId(ana["_id"])}) == 0
    )
    again = (await coach.post(f"/coach/changes/{undone['changeId']}/undo")).refused(409)
    assert again["code"] == "NOT_UNDOABLE", "a recalled message is not sent again"


async def test_undo_deletes_a_delivered_message_only_while_it_is_unread(coach: CoachClient, mcp: McpHttpClient) -> None:
    ana = await coach.create_customer("Ana")
    client, path = await coach.as_client(ana), client_path(ana, "messages")
    _, change_id = await send(coach, ana)
    await after_a_minute(coach)
    by_mail = {"customerId": ObjectId(ana["_id"]), "channels": "mail", "sendAt": {"$ne": None}}
    assert await coach.ctx.db["notifications"].count_documents(by_mail) == 1
    tool_change(await mcp.call("undo", changeId=change_id))
    assert await listed(client, OWN) == await listed(coach, path) == [(None, False)]
    assert (await client.get("/customer/today")).ok()["unreadMessages"] == 0
    assert await coach.ctx.db["notifications"].count_documents(by_mail) == 0, "the mail about it"
    await require_events(coach, "message.created", "message.deleted")

    _, change_id = await send(coach, ana, "Read")
    await after_a_minute(coach)
    (await client.put(f"{OWN}/read")).ok()
    assert (await coach.post(f"/coach/changes/{change_id}/undo")).refused(409, "has read")["code"] == "NOT_UNDOABLE"
    tool_error(await mcp.call("undo", changeId=change_id), "has read")
    assert await listed(client, OWN) == [("Read", False), (None, False)]


async def test_undo_deletes_the_messages_that_are_unread_and_names_the_others(
    coach: CoachClient, mcp: McpHttpClient
) -> None:
    clients = [await coach.create_customer(name) for name in ("Ana", "Ben", "Cai")]
    sent = {"customerIds": [each["_id"] for each in clients], "text": "Hi"}
    change_id = (await approve(coach, await tool_proposed(mcp, "send_message", **sent)))["changeId"]
    await after_a_minute(coach)
    accounts = [await coach.as_client(each) for each in clients]
    (await accounts[1].put(f"{OWN}/read")).ok()

    proposal = await tool_proposed(mcp, "undo", changeId=change_id)
    assert "remove 2 messages" in proposal["summary"] and "«Ana», «Cai»" in proposal["summary"]
    assert "«Ben» stays: The client has read this message" in proposal["summary"]
    assert await listed(accounts[0], OWN) == [("Hi", False)]
    await approve(coach, proposal)
    assert [await listed(each, OWN) for each in accounts] == [[(None, False)], [("Hi", False)], [(None, False)]]
    assert (await accounts[1].get("/customer/today")).ok()["unreadMessages"] == 0
    tool_error(await mcp.call("undo", changeId=change_id))

    change_id = (await approve(coach, await tool_proposed(mcp, "send_message", **sent | {"text": "Both read"})))[
        "changeId"
    ]
    await after_a_minute(coach)
    for each in accounts:
        (await each.put(f"{OWN}/read")).ok()
    tool_error(await mcp.call("undo", changeId=change_id), "has read")


async def tool_proposed(mcp: McpHttpClient, tool: str, **arguments: Any) -> Json:
    """The proposal of a call that has to be confirmed."""
    called = await mcp.call(tool, **arguments)
    assert "structuredContent" in called, called
    result: Json = called["structuredContent"]
    assert result["executed"] is False, result
    return result


async def test_a_message_is_delivered_once_or_recalled_when_both_happen(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    client = await coach.as_client(ana)
    for number in range(3):
        message, change_id = await send(coach, ana, f"Number {number}")
        key = {"customerId": ObjectId(ana["_id"]), "messageId": message["_id"]}
        job = Job(message["_id"], {"companyId": coach.ctx.company_id, **key}, 1)
        with time_machine.travel(datetime.now().astimezone() + timedelta(seconds=61)):
            _, _, undone = await asyncio.gather(
                conversation.deliver_waiting(coach.ctx.services, job),
                conversation.deliver_waiting(coach.ctx.services, job),
                coach.post(f"/coach/changes/{change_id}/undo"),
            )
        undone.ok()
        assert f"Number {number}" not in [text for text, _ in await listed(client, OWN)]
        assert await coach.ctx.db["messages"].count_documents({"_id": message["_id"]}) <= 1
    assert (await client.get("/customer/today")).ok()["unreadMessages"] == 0


async def test_nothing_is_delivered_to_a_deleted_client_or_after_a_rollback(coach: CoachClient) -> None:
    ana, ben = await coach.create_customer("Ana"), await coach.create_customer("Ben")
    await send(coach, ana)
    (await coach.delete(client_path(ana))).ok(204)
    await after_a_minute(coach)
    assert await coach.ctx.db["messages"].count_documents({"customerId": ObjectId(ana["_id"])}) == 0

    async def send_and_fail(tx: Context) -> None:
        await conversation.create(tx, ObjectId(ben["_id"]), {"text": "Not sent"})
        raise LookupError

    with pytest.raises(LookupError):
        await in_transaction(await as_assistant(coach), send_and_fail)
    await after_a_minute(coach)
    assert await listed(coach, client_path(ben, "messages")) == []


async def test_a_proposal_shows_that_its_messages_were_recalled(coach: CoachClient, mcp: McpHttpClient) -> None:
    session = await coach.interactive()
    ana, ben = await coach.create_customer("Ana"), await coach.create_customer("Ben")
    ids = [ana["_id"], ben["_id"]]

    async def status_of(proposal: Json) -> str:
        found = (await session.get(f"/coach/proposals/{proposal['proposalId']}")).ok()
        listed = (await session.get(f"/coach/proposals?status={found['status']}")).ok()["docs"]
        assert found["_id"] in [each["_id"] for each in listed]
        return str(tool_result(await mcp.call("get_proposal", proposalId=found["_id"]))["status"])

    both = tool_proposal(await mcp.call("send_message", customerIds=ids, text="Hi"), "CONTACT", "MANY_CLIENTS")
    await approve(coach, both)
    assert await status_of(both) == "executed"
    for index, client in enumerate((ana, ben)):
        path = client_path(client, "messages")
        (waiting_message,) = (await session.get(path)).ok()["docs"]
        (await session.delete(f"{path}/{waiting_message['_id']}")).ok(204)
        assert await status_of(both) == ("executed", "recalled")[index]

    single = tool_proposal(await mcp.call("send_message", customerId=ana["_id"], text="Hi"), "CONTACT")
    change_id = (await approve(coach, single))["changeId"]
    await after_a_minute(coach)
    tool_change(await mcp.call("undo", changeId=change_id))
    assert await status_of(single) == "recalled"

    again = tool_proposal(await mcp.call("send_message", customerIds=ids, text="Hello"), "CONTACT", "MANY_CLIENTS")
    batch_id = (await approve(coach, again))["changeId"]
    (await session.post(f"/coach/changes/{batch_id}/undo")).ok()
    assert await status_of(again) == "recalled"
