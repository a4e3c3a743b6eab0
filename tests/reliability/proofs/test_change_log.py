"""The change log loses and repeats nothing while services and databases are killed.

CHANGE_LOG_WRITES and CHANGE_LOG_KILLS in the environment make the first test longer: 1,000 and 5 for an acceptance.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from coaching_service.core.changes import numbering
from coaching_service.core.database.across_companies import LEASE
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings
from tests.reliability.deployment import Deployment, Node, deployed
from tests.reliability.replica_set import ReplicaSet
from tests.support.client import CoachClient
from tests.support.drill import database_of, require_whole
from tests.support.service_process import until

WRITES = int(os.environ.get("CHANGE_LOG_WRITES", "240"))
KILLS = int(os.environ.get("CHANGE_LOG_KILLS", "2"))
WRITERS, CLIENTS = 16, 4
PATIENCE_SECONDS = 120.0
BUSY_MACHINE_SECONDS = 20.0


@dataclass
class Write:
    """A write that was acknowledged: when it was first sent, and when it was acknowledged."""

    client: str
    began: float
    ended: float


@dataclass
class Log:
    """The responses that writers have received, by the identifier of the note they created, and what a consumer has read."""

    acknowledged: dict[str, Write] = field(default_factory=dict)
    consumed: list[dict[str, Any]] = field(default_factory=list)

    def check(self) -> None:
        """Every acknowledged write was consumed exactly once, in the order of the numbers and of the writes."""
        numbers = [event["seq"] for event in self.consumed]
        assert numbers == sorted(set(numbers))
        identifiers = Counter(event["data"]["noteId"] for event in self.consumed)
        assert set(identifiers) == set(self.acknowledged)
        assert max(identifiers.values()) == 1
        latest_began: defaultdict[str, float] = defaultdict(float)
        for event in self.consumed:
            write = self.acknowledged[event["data"]["noteId"]]
            assert write.client == event["customerId"]
            assert write.ended >= latest_began[write.client], "a later write has the smaller number"
            latest_began[write.client] = max(latest_began[write.client], write.began)


async def send_until_answered(
    http: aiohttp.ClientSession, method: str, path: str, expected: int, **options: Any
) -> dict[str, Any]:
    """Send a request again until the service responds to it as expected."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            async with http.request(method, path, **options) as response:
                body: dict[str, Any] = await response.json()
                if response.status == expected:
                    return body
                assert response.status in (409, 503), body
        except (aiohttp.ClientError, TimeoutError):
            pass
        assert time.monotonic() < deadline, f"{method} {path} is not answered"
        await asyncio.sleep(0.05)


async def write_notes(http: aiohttp.ClientSession, clients: list[str], writer: int, count: int, log: Log) -> None:
    """Create notes for the clients in turn, each once."""
    for number in range(count):
        client, began = clients[(writer + number) % len(clients)], time.monotonic()
        note = await send_until_answered(
            http,
            "POST",
            f"/coach/customers/{client}/notes",
            201,
            json={"content": f"{writer} {number}"},
            headers={"Idempotency-Key": f"note-{writer}-{number}"},
        )
        log.acknowledged[note["_id"]] = Write(client, began, time.monotonic())


async def consume(http: aiohttp.ClientSession, log: Log, expected: int, after: str = "0") -> None:
    """Read events from the cursor of the previous page until so many notes have been created."""
    query: dict[str, Any] = {"limit": 50, "wait": 5, "types": "note.created", "after": after}
    while len(log.consumed) < expected:
        page = await send_until_answered(http, "GET", "/coach/events", 200, params=query)
        log.consumed += page["docs"]
        query["after"] = page["nextCursor"]


async def create_clients(http: aiohttp.ClientSession) -> list[str]:
    created = [
        await send_until_answered(http, "POST", "/coach/customers", 201, json={"name": f"Client {number}"})
        for number in range(CLIENTS)
    ]
    return [client["_id"] for client in created]


@pytest.fixture
async def deployment(tmp_path: Path) -> AsyncIterator[tuple[Deployment, Services]]:
    """A database of its own with a company."""
    async with deployed(tmp_path) as opened:
        yield opened


def assert_single_structured_lines(node: Node) -> None:
    for line in node.logged.splitlines():
        assert isinstance(json.loads(line), dict), line


async def test_consumer_sees_every_write_once_while_service_and_database_are_killed(
    deployment: tuple[Deployment, Services],
) -> None:
    deployed_here, _ = deployment
    node = deployed_here.add_node()
    await node.start()
    log = Log()
    async with node.session(WRITERS) as http, node.session(1) as reading, asyncio.TaskGroup() as tasks:
        clients = await create_clients(http)
        for writer in range(WRITERS):
            tasks.create_task(write_notes(http, clients, writer, WRITES // WRITERS, log))
        tasks.create_task(consume(reading, log, WRITES // WRITERS * WRITERS))
        for kill in range(KILLS):
            reached = (kill + 1) * WRITES // (KILLS + 1)
            await until(partial(_has_acknowledged, log, reached), "writes are acknowledged")
            if kill % 2:
                await node.end(signal.SIGKILL)
                await node.start()
            else:
                await asyncio.to_thread(deployed_here.kill_database)
                await until(node.is_ready, "the service is ready again")
    log.check()
    await node.require_whole()
    assert_single_structured_lines(node)


async def test_another_process_takes_over_within_the_lease(deployment: tuple[Deployment, Services]) -> None:
    deployed_here, services = deployment
    first, second = deployed_here.add_node(), deployed_here.add_node()
    await first.start()
    holder = await until(lambda: holder_of(services), "the first one numbers")
    await second.start()
    log = Log()
    async with second.session(WRITERS) as http, first.session(2) as other, asyncio.TaskGroup() as tasks:
        clients = await create_clients(http)
        await write_notes(other, clients, WRITERS, 4, log)
        assert await holder_of(services) == holder
        writers = 4
        for writer in range(writers):
            tasks.create_task(write_notes(http, clients, writer, 10, log))
        tasks.create_task(consume(http, log, 4 + writers * 10))
        await until(lambda: len(log.acknowledged) > 10, "writes are acknowledged")
        await first.end(signal.SIGKILL)
        killed = time.monotonic()
    assert time.monotonic() - killed < LEASE.total_seconds() + BUSY_MACHINE_SECONDS
    log.check()
    assert await holder_of(services) != holder
    [company_id] = await services.db["changes"].distinct("companyId")
    await check_stored_numbers(services, company_id)
    await second.require_whole()


async def holder_of(services: Services) -> str | None:
    """Which process numbers the changes."""
    lease = await services.db["leases"].find_one({"_id": numbering.LEASE})
    return lease["holder"] if lease else None


def _has_acknowledged(log: Log, count: int) -> bool:
    return len(log.acknowledged) >= count


async def check_stored_numbers(services: Services, company_id: Any) -> None:
    """The numbers of a company follow one another without gaps, and its batches name all changes in this order."""

    async def all_have_numbers() -> bool:  # also the changes that renewals of figures have made
        return (
            await services.db["changes"].count_documents({"companyId": company_id, "pending": {"$exists": True}}) == 0
        )

    await until(all_have_numbers, "all changes have numbers")
    last = 0
    stages: list[Mapping[str, Any]] = [
        {"$match": {"companyId": company_id}},
        {"$sort": {"last": 1}},
        {"$unwind": "$changes"},
    ]
    named = [batch["changes"] async for batch in services.db["changeNumbers"].aggregate(stages)]
    order = services.db["changes"].find({"companyId": company_id}, {"lastSeq": 1}).sort("lastSeq")
    assert named == await order.to_list(None)
    async for change in (
        services.db["changes"].find({"companyId": company_id}, {"seq": 1, "lastSeq": 1}).sort("lastSeq")
    ):
        assert change["seq"] == last + 1
        last = change["lastSeq"]
    counter = await services.db["changeCounters"].find_one({"_id": company_id})
    assert counter is not None and counter["lastSeq"] == last


@pytest.mark.parametrize("failure", ["stepped down", "frozen"])
async def test_numbering_continues_on_another_primary(
    replica_set_coach: CoachClient, replica_set: ReplicaSet, settings: Settings, failure: str
) -> None:
    coach, services, log = replica_set_coach, replica_set_coach.ctx.services, Log()
    headers = {"X-API-Key": str(coach.key)}
    base_url = coach.address("/").rstrip("/")
    timeout = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(base_url, headers=headers, timeout=timeout) as http:
        start = await send_until_answered(http, "GET", "/coach/events", 200, params={"limit": 500, "wait": 0})
        clients = await create_clients(http)
        primary = replica_set.primary()
        try:
            async with asyncio.TaskGroup() as tasks:
                for writer in range(4):
                    tasks.create_task(write_notes(http, clients, len(failure) * 100 + writer, 40, log))
                tasks.create_task(consume(http, log, 160, start["nextCursor"]))
                await until(lambda: len(log.acknowledged) > 5, "writes are acknowledged")
                if failure == "frozen":
                    replica_set.freeze(primary)
                else:
                    await asyncio.to_thread(step_down, primary)
        finally:
            replica_set.thaw()
    log.check()
    await check_stored_numbers(services, coach.ctx.company_id)
    await require_whole(base_url, str(coach.key), **database_of(settings) | {"MONGODB_URI": replica_set.uri})


def step_down(port: int) -> None:
    """Make a primary step down."""
    with MongoClient[dict[str, Any]]("127.0.0.1", port, directConnection=True) as client:
        try:
            client.admin.command({"replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 4, "force": True})
        except PyMongoError as error:  # it may close the connection
            print(f"step down: {error}")


async def test_stop_does_not_wait_for_those_who_wait_for_events(deployment: tuple[Deployment, Services]) -> None:
    deployed_here, _ = deployment
    node = deployed_here.add_node()
    await node.start()
    async with node.session(8) as http:
        waiting = [
            asyncio.create_task(
                send_until_answered(http, "GET", "/coach/events", 200, params={"limit": 5, "wait": 25, "after": "0"})
            )
            for _ in range(8)
        ]
        await asyncio.wait(waiting, timeout=1)
        assert not any(task.done() for task in waiting)
        began = time.monotonic()
        assert await node.end() == 0
        print(f"stopped after {time.monotonic() - began:.2f} s")
        assert time.monotonic() - began < node.settings.shutdown_seconds + 3
        assert [(await task)["docs"] for task in waiting] == [[]] * 8
    assert "took too long" not in node.logged
    assert_single_structured_lines(node)
