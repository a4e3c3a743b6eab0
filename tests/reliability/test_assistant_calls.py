"""Calls of an assistant over several processes, and processes that are killed while they carry out what was proposed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.mcp.test_budgets import is_done, let_ten_minutes_pass
from tests.support.client import CoachClient
from tests.support.database_proxy import Moment
from tests.support.mcp_client import McpHttpClient, tool_change, tool_proposal
from tests.support.other_process import proxied, running
from tests.support.own_application import OwnApplication
from tests.support.sampled import MORE, proof
from tests.support.training import Json, client_path

# By the clock of the processes, which is not moved.
DAYS = [str(datetime.now(UTC).date() + timedelta(days=number)) for number in range(60)]


async def texts(coach: CoachClient, client: Json) -> list[tuple[str, bool]]:
    """The messages to a client, and whether each waits to be delivered."""
    docs = (await coach.get(client_path(client, "messages"))).ok()["docs"]
    return [(each["text"], each["deliverAt"] is not None) for each in docs]


async def test_processes_share_the_budgets_of_an_assistant(
    application: OwnApplication, coach: CoachClient, tmp_path: Path
) -> None:
    """Two applications with their own connections, which in the proofs are two processes."""
    ana = await coach.create_customer("Ana")
    headers = {"X-API-Key": str(coach.key)}
    settings = application.settings
    async with (
        proxied(settings, coach.key) if MORE == 1 else running(settings, coach.key, tmp_path) as other,
        McpHttpClient(application.server, headers) as here,
        McpHttpClient(other, headers) as there,
    ):
        both = (here, there)

        async def add_note(number: int) -> bool:
            return is_done(await both[number % 2].call("add_note", customerId=ana["_id"], text=f"Note {number}"))

        assert all(await asyncio.gather(*map(add_note, range(20))))
        assert [await add_note(number) for number in range(20, 32)] == [True] * 10 + [False] * 2
        await let_ten_minutes_pass(coach)
        done = []
        for first in range(40, 72, 8):  # more at once may find the service busy
            done += await asyncio.gather(*map(add_note, range(first, first + 8)))
        assert len((await coach.get(client_path(ana, "notes"))).ok()) == 30 + sum(done)
        assert sum(done) <= 30

        await let_ten_minutes_pass(coach)
        for day in DAYS[:14]:  # empty days of one call would count as one
            await coach.schedule(ana, day, "Run")
        for number, client in enumerate(both):
            days = [{"date": DAYS[7 * number + day], "name": "Legs"} for day in range(7)]
            tool_change(await client.call("create_workout", customerId=ana["_id"], days=days))
        for client in both:
            more = await client.call("create_workout", customerId=ana["_id"], days=[{"date": DAYS[20], "name": "A"}])
            tool_proposal(more, "MANY_CLIENT_DAYS")


# The moment, and whether the message is stored then.
MOMENTS = (
    (Moment("commitTransaction", done=True, of="waitingMessages"), True),
    (Moment("findAndModify", "proposals", done=True), False),
    (Moment("insert", "waitingMessages", done=True), False),
    (Moment("commitTransaction", of="waitingMessages"), False),
)


@proof
@pytest.mark.parametrize(("moment", "is_stored"), MOMENTS)
async def test_an_approval_whose_process_is_killed_is_carried_out_once(
    application: OwnApplication,
    coach: CoachClient,
    tmp_path: Path,
    moment: Moment,
    *,
    is_stored: bool,
) -> None:
    clients = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    async with McpHttpClient(application.server, {"X-API-Key": str(coach.key)}) as mcp:
        about = {"customerIds": [each["_id"] for each in clients], "text": "See you"}
        proposal = tool_proposal(await mcp.call("send_message", **about), "CONTACT", "MANY_CLIENTS")
    path, key = f"/coach/proposals/{proposal['proposalId']}", {"Idempotency-Key": "approve"}
    session = await coach.interactive()
    async with running(application.settings, coach.key, tmp_path) as process:
        process.act_for_session(session)
        process.proxy.wait_for(moment, process.kill)
        assert await process.send("POST", f"{path}/approve", headers=key) is None
        assert process.proxy.reached.is_set()
    await coach.ctx.db.client.admin.command("killSessions", [moment.session])  # else it ends within a minute
    sent = [("See you", True)] if is_stored else []
    assert [await texts(coach, each) for each in clients] == [sent] * 2
    assert (await session.get(path)).ok()["status"] == ("executed" if is_stored else "pending")

    approved = (await session.post(f"{path}/approve", headers=key)).ok()

    assert approved["status"] == "executed"
    assert approved["result"]["changeId"]
    assert [await texts(coach, each) for each in clients] == [[("See you", True)]] * 2
    (await session.post(f"{path}/approve", headers={"Idempotency-Key": "again"})).refused(409, "decided")
