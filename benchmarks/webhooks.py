"""`python -m benchmarks.webhooks`: deliveries to a receiver that fails, and while others hang."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Sized
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median, quantiles
from typing import Any

import aiohttp
import click
import orjson
import uvloop
from aiohttp import web
from rich.console import Console

from benchmarks.servers import running_service, temporary_settings
from coaching_service import runtime
from coaching_service.core.database.context import Context
from coaching_service.people import api_keys, team
from coaching_service.settings import Settings

_CLIENTS, _CONNECTIONS = 1_000, 32
_RETRY_SECONDS = ",".join(["0.5"] * 9)
_EVENTS_A_SECOND = 20
_FOLLOW_SECONDS = 0.1
_HANGING = 10


@dataclass
class Receiver:
    """A receiver that rejects this share of the messages, or responds to none."""

    failing: float = 0.0
    hangs: bool = False
    url: str = ""
    arrivals: list[tuple[str, int, float]] = field(default_factory=list)  # identifier, number, time; also of rejected
    accepted: dict[str, bytes] = field(default_factory=dict)
    _random: random.Random = field(default_factory=lambda: random.Random(19))
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        identifier = request.headers["webhook-id"]
        self.arrivals.append((identifier, orjson.loads(body)["seq"], time.time()))
        self._arrived.set()
        if self.hangs:
            await self._released.wait()
        if self._random.random() < self.failing:
            return web.Response(status=503)
        self.accepted[identifier] = body
        self._arrived.set()
        return web.Response()

    async def wait(self, collected: Sized, number: int, seconds: float) -> None:
        """Wait until `arrivals` or `accepted` has so many entries, at most so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(collected) < number:
                    self._arrived.clear()
                    await self._arrived.wait()

    async def serve(self, stack: AsyncExitStack) -> Receiver:
        app = web.Application()
        app.router.add_post("/", self.receive)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        stack.callback(self._released.set)
        return self


class Company:
    """A company, by its owner's key."""

    def __init__(self, base_url: str, key: str) -> None:
        connector = aiohttp.TCPConnector(limit=_CONNECTIONS)
        self.http = aiohttp.ClientSession(base_url, headers={"X-API-Key": key}, connector=connector)

    async def call(self, method: str, path: str, **options: Any) -> Any:
        async with self.http.request(method, path, **options) as response:
            content = await response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {content[:200]!r}")
            return orjson.loads(content) if content else None

    async def wait_until_ready(self) -> None:
        async with asyncio.timeout(60):
            while True:
                async with self.http.get("/readyz") as response:
                    if response.status == 200:
                        return
                await asyncio.sleep(0.1)  # between attempts to reach a service that is starting

    async def subscribe(self, receiver: Receiver) -> None:
        await self.call("POST", "/coach/webhooks", json={"url": receiver.url, "types": ["customer.updated"]})

    async def create_clients(self, number: int) -> list[str]:
        created = await asyncio.gather(
            *(self.call("POST", "/coach/customers", json={"name": f"Client {each}"}) for each in range(number))
        )
        return [client["_id"] for client in created]

    async def change_all(self, group: str) -> None:
        """One event for each client."""
        body = {"filter": {"archived": False}, "groups": [group]}
        accepted = await self.call("POST", "/coach/customers/bulk/groups-add", json=body)
        while "jobId" in accepted:  # more than 500 clients
            await asyncio.sleep(_FOLLOW_SECONDS)
            job = await self.call("GET", f"/coach/jobs/{accepted['jobId']}")
            if job["status"] in ("failed", "cancelled"):
                raise RuntimeError(f"groups-add: {job['status']} {job['errors']}")
            if job["status"] == "done":
                return


async def _open(settings: Settings, base_url: str, number: int) -> Company:
    async with runtime.open_services(settings) as services:
        owner = await team.create_company(Context(services), "Bench", "Owner", f"o{number}@bench.test", "no hash")
        key = (await api_keys.create(Context(services).acting_as(owner), "Bench"))["key"]
    return Company(base_url, key)


async def _deliver_all(company: Company, receiver: Receiver, events: int, console: Console) -> None:
    """Every event arrives at a receiver that fails; the numbers restore the order."""
    await company.create_clients(_CLIENTS)
    await company.subscribe(receiver)
    began = time.time()
    for number in range(events // _CLIENTS):
        await company.change_all(f"Group {number}")
    written = time.time()
    with console.status("Waiting for all events ..."):
        await receiver.wait(receiver.accepted, events, 1_800)
    seconds = time.time() - began
    log, after = [], "0"
    while True:
        query = {"limit": "500", "after": after, "types": "customer.updated"}
        page = await company.call("GET", "/coach/events", params=query)
        log, after = log + page["docs"], page["nextCursor"]
        if not page["hasMore"]:
            break
    received = sorted((orjson.loads(body) for body in receiver.accepted.values()), key=lambda event: event["seq"])
    first = list(dict.fromkeys(number for _, number, _ in receiver.arrivals))
    swapped = sum(later < earlier for earlier, later in pairwise(first))
    console.print(
        f"{len(receiver.accepted)} of {events} events accepted, {seconds:.1f} s after the first was written (writing took "
        f"{written - began:.1f} s): {len(receiver.accepted) / seconds:.0f} a second; {len(receiver.arrivals)} attempts"
    )
    console.print(f"sorted by seq equal to GET /coach/events: {received == log}")
    console.print(f"first attempts that arrived after a later one: {swapped}")


async def _measure_delay(company: Company, receiver: Receiver, client: str, seconds: int) -> list[float]:
    """The seconds from an event until it has arrived, for events at a steady rate."""
    written: dict[int, float] = {}
    start, count = len(receiver.arrivals), seconds * _EVENTS_A_SECOND
    for number in range(count):
        due = asyncio.create_task(asyncio.sleep(1 / _EVENTS_A_SECOND))  # a steady rate
        await company.call("PATCH", f"/coach/customers/{client}", json={"phone": str(number)})
        written[number] = time.time()
        await due
    await receiver.wait(receiver.arrivals, start + count, 60)
    arrived = sorted(receiver.arrivals[start:], key=lambda arrival: arrival[1])
    return [at - written[number] for number, (_, _, at) in enumerate(arrived)]


def _print_delay(console: Console, what: str, delays: list[float], expected: int) -> None:
    console.print(
        f"{what}: {len(delays)} of {expected} arrived; delay median {median(delays) * 1000:.0f} ms, "
        f"95 % {quantiles(delays, n=20)[-1] * 1000:.0f} ms, longest {max(delays) * 1000:.0f} ms"
    )


async def _run(settings: Settings, base_url: str, events: int, seconds: int, console: Console) -> None:
    async with AsyncExitStack() as stack:
        flaky, healthy = await Receiver(failing=0.2).serve(stack), await Receiver().serve(stack)
        hanging = await Receiver(hangs=True).serve(stack)
        first, second, third = [await _open(settings, base_url, number) for number in range(3)]
        for company in (first, second, third):
            stack.push_async_callback(company.http.close)
            await company.wait_until_ready()
        console.rule(f"{events} events, a receiver that fails 20 % of the time")
        await _deliver_all(first, flaky, events, console)
        console.rule("Receivers that hang")
        [client], [neighbour] = await second.create_clients(1), await third.create_clients(1)
        await second.subscribe(healthy)
        await _measure_delay(second, healthy, client, 3)
        expected = seconds * _EVENTS_A_SECOND
        _print_delay(console, "alone", await _measure_delay(second, healthy, client, seconds), expected)
        for _ in range(_HANGING):
            await second.subscribe(hanging)
            await third.subscribe(hanging)
        for number in range(20):
            await third.call("PATCH", f"/coach/customers/{neighbour}", json={"phone": str(number)})
        delays = await _measure_delay(second, healthy, client, seconds)
        _print_delay(console, f"with {2 * _HANGING} webhooks that hang", delays, expected)
        console.print(f"attempts that hang or have timed out: {len(hanging.arrivals)}")


@click.command()
@click.option("--events", type=click.IntRange(_CLIENTS), default=10_000, show_default=True)
@click.option("--seconds", type=click.IntRange(1), default=20, show_default=True, help="Of each measurement of delay.")
def main(events: int, seconds: int) -> None:
    """Deliver events to a receiver that rejects 20 % of the messages, then measure how long others are delayed.

    The events of the first part are bulk changes of 1,000 clients. In the second part 20 events a second go to a
    healthy receiver, alone and together with 20 webhooks of two companies whose receiver never responds.
    """
    console = Console()
    allowed = sorted(os.sched_getaffinity(0))
    with temporary_settings() as settings:
        own = {
            "WEBHOOKS_ALLOW_HTTP": "true",
            "WEBHOOKS_ALLOW_PRIVATE": "true",
            "WEBHOOK_RETRY_SECONDS": _RETRY_SECONDS,
        }
        with running_service(settings, allowed[0], **own) as server:
            uvloop.run(_run(settings, server.base_url, events, seconds, console))


if __name__ == "__main__":
    main()
