"""Webhooks lose nothing while processes and the database are killed: every event arrives at least once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coaching_service.core.database.context import Services
from tests.reliability.deployment import Deployment, deployed
from tests.reliability.proofs.test_change_log import Log, create_clients, send_until_answered, write_notes
from tests.support.service_process import until
from tests.support.webhooks import Receiver, receiving

WRITERS, EACH = 4, 30
SETTINGS = {"WEBHOOK_RETRY_SECONDS": "0.1,0.5,1,2"}


@pytest.fixture
async def deployment(tmp_path: Path) -> AsyncIterator[tuple[Deployment, Services]]:
    """A database of its own with a company."""
    async with deployed(tmp_path) as opened:
        yield opened


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that rejects every fifth event once."""
    async with receiving() as started:
        started.respond = lambda message, before: 500 if message.event["seq"] % 5 == 0 and not before else 200
        yield started


async def test_every_event_arrives_while_processes_and_database_are_killed(
    deployment: tuple[Deployment, Services], receiver: Receiver
) -> None:
    deployed_here, services = deployment
    first, second = deployed_here.add_node(**SETTINGS), deployed_here.add_node(**SETTINGS)
    await first.start()
    await until(lambda: services.db["leases"].find_one({"holder": {"$ne": ""}}), "the first one has the lease")
    await second.start()
    log, count = Log(), WRITERS * EACH
    async with second.session(8) as http, asyncio.TaskGroup() as tasks:
        body = {"url": receiver.url, "types": ["note.created"]}
        webhook = await send_until_answered(http, "POST", "/coach/webhooks", 201, json=body)
        clients = await create_clients(http)
        for writer in range(WRITERS):
            tasks.create_task(write_notes(http, clients, writer, EACH, log))
        await until(lambda: len(receiver.messages) > 20, "messages arrive")
        await first.end(signal.SIGKILL)
        await until(lambda: len(log.acknowledged) > count // 2, "writes are acknowledged")
        await asyncio.to_thread(deployed_here.kill_database)
    await until(lambda: len(noted(receiver)) == count, "every event has arrived")
    assert noted(receiver) == set(log.acknowledged)
    events = {message.id: message.verify(webhook["secret"])["id"] for message in receiver.messages}
    assert len(events) == len(set(events.values())) == count, "a repeated message has the same id"
    await until(lambda: count_others(services, "succeeded", 0), "every delivery has succeeded")
    await second.require_whole()


async def test_one_of_several_processes_sends(deployment: tuple[Deployment, Services], receiver: Receiver) -> None:
    deployed_here, _ = deployment
    receiver.respond = lambda _message, _before: 200
    nodes = [deployed_here.add_node(**SETTINGS) for _ in range(2)]
    for node in nodes:
        await node.start()
    async with nodes[0].session(4) as http, nodes[1].session(4) as other:
        body = {"url": receiver.url, "types": ["note.created"]}
        await send_until_answered(http, "POST", "/coach/webhooks", 201, json=body)
        clients, log = await create_clients(http), Log()
        await asyncio.gather(write_notes(http, clients, 0, 20, log), write_notes(other, clients, 1, 20, log))
    await until(lambda: len(noted(receiver)) == 40, "every event has arrived")
    assert len(receiver.messages) == 40
    assert receiver.sequence == sorted(receiver.sequence)


def noted(receiver: Receiver) -> set[str]:
    """The notes whose events have been accepted."""
    accepted = {message.id: message for message in receiver.messages}
    return {message.event["data"]["noteId"] for message in accepted.values()}


async def count_others(services: Services, status: str, expected: int) -> bool:
    """Whether so many deliveries have another status."""
    return await services.db["webhookDeliveries"].count_documents({"status": {"$ne": status}}) == expected
