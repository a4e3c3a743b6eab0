"""Forwarding events to a program under development (`coaching-service listen`)."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp.test_utils import TestServer

from tests.support.client import CoachClient
from tests.support.commands import type_in
from tests.support.service_process import until
from tests.support.webhooks import Receiver, receiving


@asynccontextmanager
async def listening(base: str, key: str, target: str, *options: str) -> AsyncIterator[str]:
    """Run the command, and return the secret that it prints."""
    arguments = ("--url", base, "--key", key, "--forward-to", target, *options)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "coaching_service", "listen", *arguments), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        secret = (await process.stdout.readline()).decode().removeprefix("Secret: ").strip()
        assert (await process.stdout.readline()).decode() == f"Forwarding to {target}\n"
        yield secret
    finally:
        process.kill()
        await process.wait()


def clients_of(receiver: Receiver) -> list[str]:
    """The clients of the messages, each once, in the order in which they arrived first."""
    return list(dict.fromkeys(message.event["customerId"] for message in receiver.messages))


async def test_events_are_forwarded_signed_in_order_and_from_where_the_last_run_ended(
    public_server: TestServer, coach: CoachClient, tmp_path: Path
) -> None:
    """The first run is killed; the second, on a thread of this process, ends once its key is deleted."""
    base, state = str(public_server.make_url("")).rstrip("/"), tmp_path / "state.json"
    options = ("--state", str(state), "--type", "customer.created")
    before = await coach.create_customer("Before")
    (await coach.get("/coach/events", limit=1, wait=20)).ok()
    async with receiving() as receiver:
        receiver.respond = lambda message, times: 500 if times == 0 else 200
        async with listening(base, str(coach.key), receiver.url, *options) as secret:
            created = [(await coach.create_customer(f"Client {number}"))["_id"] for number in range(3)]
            await until(lambda: len(receiver.messages) == 6, "each is sent again after a failure")
        assert clients_of(receiver) == created and before["_id"] not in created
        assert [message.verify(secret)["customerId"] for message in receiver.messages] == [
            each for each in created for _ in range(2)
        ]
        assert receiver.messages[0].id == receiver.messages[1].id != receiver.messages[2].id
        assert state.stat().st_mode & 0o077 == 0, "it has the secret"
        missed = await coach.create_customer("Missed")
        receiver.messages.clear()
        session = await coach.interactive()
        own = (await session.post("/coach/api-keys", {"name": "Listen"})).ok(201)
        words = ("listen", "--url", base, "--key", own["key"], "--forward-to", receiver.url, *options)
        ended = asyncio.create_task(asyncio.to_thread(type_in, *words))
        try:
            await until(lambda: len(receiver.messages) == 2, "what happened meanwhile is sent")
        finally:
            (await session.delete(f"/coach/api-keys/{own['_id']}")).ok(204)
            last = await coach.create_customer("Last")  # else it waits for an event for 25 seconds
            result = await ended
    assert (result.exit_code, result.err) == (1, f"Error: {base} refuses: 401 Invalid API key\n")
    assert result.out.startswith(f"Secret: {secret}\nForwarding to {receiver.url}\n")
    assert clients_of(receiver)[0] == missed["_id"] and {*clients_of(receiver)} <= {missed["_id"], last["_id"]}
    assert json.loads(state.read_text("utf-8"))["secret"] == secret


async def test_a_key_that_is_refused_ends_the_command_with_a_sentence(
    public_server: TestServer, tmp_path: Path
) -> None:
    base = str(public_server.make_url("")).rstrip("/")
    options = ("--forward-to", "http://127.0.0.1:9/", "--state", str(tmp_path / "state.json"))
    result = await asyncio.to_thread(type_in, "listen", "--url", base, "--key", "cs_ak_wrong", *options)
    assert (result.exit_code, result.err) == (1, f"Error: {base} refuses: 401 Invalid API key\n")
