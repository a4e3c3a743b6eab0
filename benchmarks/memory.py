"""`python -m benchmarks.memory`: where an idle worker's memory goes, and whether it grows with requests."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from itertools import count
from typing import Any

import aiohttp
import click
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks import world
from benchmarks.processes import memory_mb, processes_of, proportional_mb
from benchmarks.servers import running_service, temporary_settings

IDLE_TARGET = 120.0
_SAMPLES = 50
_CONNECTIONS = 16
Send = Callable[[str, str, Any], Awaitable[Any]]


class Mix:
    """Sends requests of ten kinds in turn on a few connections."""

    def __init__(self, send: Send, company: world.World) -> None:
        self._send, self._company = send, company
        self._numbers = count()
        self.sent = 0

    async def run(self, requests: int, connections: int) -> None:
        """Send that many requests. Raises RuntimeError if one fails."""
        end = self.sent + requests

        async def work() -> None:
            while self.sent < end:
                self.sent += 1
                await self._send_next(next(self._numbers))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(connections):
                tasks.create_task(work())

    async def _send_next(self, number: int) -> None:
        company, turn = self._company, number // 10
        week = company.weeks[turn % len(company.weeks)]
        client = week.split("/wblock")[0]
        items = company.item_paths[turn % len(company.item_paths)]
        kinds: list[tuple[str, str, Any]] = [
            ("GET", "/coach/customers?archived=false&pageSize=50&pageNum=1", None),
            ("GET", week, None),
            ("POST", items, company.item),
            ("GET", client, None),
            ("GET", "/coach/attention?pageSize=20&pageNum=1", None),
            ("POST", f"{client}/notes", {"content": f"Note {number}"}),
            ("GET", "/exercises/unified?pageSize=20&pageNum=1&search=press", None),
            ("GET", f"{client}/compliance?from=2026-03-02&to=2026-03-08", None),
            ("POST", "/mcp", _tool_call(number)),
            ("GET", "/me", None),
        ]
        await self._send(*kinds[number % len(kinds)])


def _tool_call(number: int) -> dict[str, Any]:
    parameters = {"name": "list_customers", "arguments": {"pageSize": 20}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": parameters}


def slope(points: list[tuple[int, float]]) -> float:
    """The least-squares slope of memory, in kB for 10,000 requests."""
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return above / sum((x - mean_x) ** 2 for x, _ in points) * 1e7


def show_idle(console: Console, workers: list[int], supervisor: int) -> None:
    """Print the memory of the processes."""
    table = Table(title="Idle memory, MB")
    for heading in ("Process", "Resident", "Proportional", "Private", "Target"):
        table.add_column(heading)
    for name, pid in (
        ("supervisor", supervisor),
        *((f"worker {number}", pid) for number, pid in enumerate(workers, 1)),
    ):
        resident, private = memory_mb(pid)
        target = "" if name == "supervisor" else f"{IDLE_TARGET:.0f}"
        table.add_row(name, f"{resident:.0f}", f"{proportional_mb(pid):.0f}", f"{private:.0f}", target)
    console.print(table)


async def measure(
    base_url: str, company: world.World, pid: int, requests: int, warm_up: int
) -> list[tuple[int, float]]:
    """Send the requests; returns the resident memory in MB after so many, from the end of the warm-up."""
    connector = aiohttp.TCPConnector(limit=_CONNECTIONS)
    async with aiohttp.ClientSession(base_url, headers={"X-API-Key": company.key}, connector=connector) as http:

        async def send(method: str, path: str, body: Any) -> None:
            headers = {"Accept": "application/json, text/event-stream"} if path == "/mcp" else {}
            async with http.request(method, path, json=body, headers=headers) as response:
                answer = await response.read()
                if response.status >= 300:
                    raise RuntimeError(f"{method} {path}: {response.status} {answer[:300]!r}")

        mix = Mix(send, company)
        await mix.run(warm_up, _CONNECTIONS)
        points = [(0, memory_mb(pid)[0])]
        for number in range(1, _SAMPLES + 1):
            await mix.run(requests * number // _SAMPLES - points[-1][0], _CONNECTIONS)
            points.append((requests * number // _SAMPLES, memory_mb(pid)[0]))
        return points


@click.command()
@click.option("--requests", type=click.IntRange(1_000), default=200_000, show_default=True)
@click.option("--warm-up", type=click.IntRange(0), default=5_000, show_default=True, help="Requests before.")
@click.option("--clients", type=click.IntRange(200), default=1_000, show_default=True)
def main(requests: int, warm_up: int, clients: int) -> None:
    """Print the memory of idle workers, and of one process after many mixed requests.

    The requests are of ten kinds: lists, a week, a client, attention, exercises, compliance, a tool of assistants, and
    writes of items and notes. Caches are bounded and fill during the warm-up.
    """
    console = Console(width=140)
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        key = uvloop.run(world.company(settings, clients, console))
        cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        with running_service(settings, cores, "workers", WORKERS="2") as server:
            processes = processes_of(server, 2)
            time.sleep(2)
            show_idle(console, processes.workers, server.pid)
        server = stack.enter_context(running_service(settings, cores))
        console.print(f"One process, idle: {memory_mb(server.pid)[0]:.1f} MB")
        company = uvloop.run(world.schedule(settings, server.base_url, key))
        began = time.monotonic()
        points = uvloop.run(measure(server.base_url, company, server.pid, requests, warm_up))
        seconds = time.monotonic() - began
    half = points[len(points) // 2 :]
    shown = ", ".join(f"{number // 1000}k: {size:.1f}" for number, size in points[:: max(1, _SAMPLES // 10)])
    console.print(f"Resident MB after requests: {shown}")
    console.print(
        f"{requests} requests after {warm_up} in {seconds:.0f} s: {points[0][1]:.1f} MB to {points[-1][1]:.1f} MB; "
        f"slope {slope(points):.0f} kB for 10,000 requests, in the second half {slope(half):.0f} kB"
    )


if __name__ == "__main__":
    main()
