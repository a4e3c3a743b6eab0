"""`python -m benchmarks.bulk`: clients archived by one call and restored by its undo, compared with a bare `update_many`."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import aiohttp
import click
from rich.console import Console
from rich.table import Table

from benchmarks.servers import Server, has_lost_database, running_service, temporary_settings
from coaching_service import runtime
from coaching_service.core.database.connection import connect, database
from coaching_service.core.database.context import Collection, Context
from coaching_service.core.ids import ObjectId
from coaching_service.installation.embedded import DatabaseUnavailable
from coaching_service.people import api_keys, team
from coaching_service.people.customers import bulk
from coaching_service.seeding import seed_clients
from coaching_service.settings import Settings

CLIENTS, CONNECTIONS, TARGET = 10_000, 4, 5.0
_FOLLOW_SECONDS = 0.1
_ALONE_SECONDS = 3.0
_ARCHIVED = "customerRoleData.isArchived"
_LIST = "/coach/customers?archived=false&pageSize=50&pageNum=1"


@dataclass
class Figures:
    """Seconds of each kind of archiving, and milliseconds of each list request during an archiving and without one."""

    bare: list[float] = field(default_factory=list)
    by_filter: list[float] = field(default_factory=list)
    by_ids: list[float] = field(default_factory=list)
    undo: list[float] = field(default_factory=list)
    during: list[float] = field(default_factory=list)
    during_undo: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    busy: int = 0  # list requests that were answered with 503: the service has Retry-After for them


@dataclass(frozen=True)
class Company:
    """A company with active clients."""

    key: str
    id: ObjectId
    clients: list[ObjectId]


async def create_company(settings: Settings, name: str, count: int) -> Company:
    """Create a company with `count` active clients."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        owner = await team.create_company(Context(services), name, "Olga", f"{name}@example.com", "no hash")
        ctx = Context(services).acting_as(owner)
        await seed_clients(services, ctx, count)
        clients = services.db["customers"].find({"companyId": ctx.company_id}, {"_id": 1})
        ids = [client["_id"] for client in await clients.to_list(None)]
        await bulk.set_archived(ctx, ids, archived=False)
        return Company(str((await api_keys.create(ctx, "Bench"))["key"]), ctx.company_id, ids)


async def seconds(work: Awaitable[Any]) -> float:
    """Return the seconds that the work takes."""
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def request_repeatedly(http: aiohttp.ClientSession, key: str, times: list[float], figures: Figures) -> None:
    """Send one list request after another, and record the milliseconds of each; those that find it busy are counted."""
    while True:
        began = time.perf_counter()
        async with http.get(_LIST, headers={"X-API-Key": key}) as response:
            await response.read()
            if response.status == 503:
                figures.busy += 1
            elif response.status != 200:
                raise RuntimeError(f"{_LIST}: {response.status}")
        times.append((time.perf_counter() - began) * 1000)


async def while_requesting(
    http: aiohttp.ClientSession, key: str, times: list[float], figures: Figures, work: Awaitable[Any]
) -> None:
    """Do `work` while the list is requested on a few connections."""
    asking = [asyncio.create_task(request_repeatedly(http, key, times, figures)) for _ in range(CONNECTIONS)]
    try:
        await work
    finally:
        for task in asking:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*asking)


class Archiver:
    """Archives and restores all clients of a company, in turn, in each way."""

    def __init__(self, http: aiohttp.ClientSession, customers: Collection, company: Company) -> None:
        self._http, self._customers, self._company = http, customers, company
        self._archived = False
        self._batch = ""

    async def bare(self) -> None:
        """Archive with the driver."""
        where = {"companyId": self._company.id, _ARCHIVED: self._archived}
        self._archived = not self._archived
        await self._customers.update_many(where, {"$set": {_ARCHIVED: self._archived}})

    async def by_filter(self) -> None:
        """Archive by a filter."""
        await self._call({"filter": {"archived": self._archived}})

    async def by_ids(self) -> None:
        """Archive by identifiers."""
        await self._call({"ids": [str(each) for each in self._company.clients]})

    async def undo(self) -> None:
        """Undo the last call."""
        await self._follow(f"/coach/changes/{self._batch}/undo", None)

    async def _call(self, selection: dict[str, Any]) -> None:
        await self._follow("/coach/customers/bulk/" + ("unarchive" if self._archived else "archive"), selection)

    async def _follow(self, path: str, body: dict[str, Any] | None) -> None:
        self._archived = not self._archived
        async with self._http.post(path, json=body, headers={"X-API-Key": self._company.key}) as response:
            result = await response.json()
            self._batch = response.headers.get("X-Change-Id", "")
        if response.status == 202:
            result = await self._read_job_at_end(result["jobId"])
        result = result.get("result") or result
        if result.get("ok") != len(self._company.clients):
            raise RuntimeError(f"{path}: {response.status} {str(result)[:300]}")

    async def _read_job_at_end(self, job_id: str) -> dict[str, Any]:
        while True:
            async with self._http.get(f"/coach/jobs/{job_id}", headers={"X-API-Key": self._company.key}) as response:
                job: dict[str, Any] = await response.json()
            if response.status not in (200, 503):  # 503: the service is busy
                raise RuntimeError(f"GET /coach/jobs: {response.status} {job}")
            if job.get("status") in ("done", "failed", "cancelled"):
                return job
            await asyncio.sleep(_FOLLOW_SECONDS)


async def measure(settings: Settings, server: Server, company: Company, others_key: str, rounds: int) -> Figures:
    """Run each way once a round, every other round in reverse order; then once while another company reads its list."""
    figures = Figures()
    client = connect(settings.mongodb_uri or "")
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(server.base_url, timeout=timeout) as http:
        archiver = Archiver(http, database(client, settings.mongodb_database)["customers"], company)
        await archiver.bare()  # warm-up
        ways = [(figures.bare, archiver.bare), (figures.by_filter, archiver.by_filter)]
        ways += [(figures.by_ids, archiver.by_ids)]
        for number in range(rounds):
            for times, way in ways if number % 2 else reversed(ways):
                times.append(await seconds(way()))
            await while_requesting(http, others_key, figures.during, figures, archiver.by_filter())
            took = while_requesting(http, others_key, figures.during_undo, figures, archiver.undo())
            figures.undo.append(await seconds(took))
            await while_requesting(http, others_key, figures.alone, figures, asyncio.sleep(_ALONE_SECONDS))
    client.close()
    return figures


def peak_mb(pid: int) -> float:
    """The peak memory of a process so far, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"the peak memory of process {pid} is not available")


def show(console: Console, figures: Figures, clients: int) -> bool:
    """Print the figures; returns whether the target is met."""
    table = Table(title=f"{clients} clients archived by one call")
    for heading in ("", "Median s", "Ratio: least / median / most"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    worst = 0.0
    for name, times in (
        ("bare update_many", figures.bare),
        ("by filter", figures.by_filter),
        ("by ids", figures.by_ids),
    ):
        ratios = sorted(ours / theirs for ours, theirs in zip(times, figures.bare, strict=True))
        worst = max(worst, median(ratios))
        spread = f"{ratios[0]:.2f} / [bold]{median(ratios):.2f}[/] / {ratios[-1]:.2f}"
        table.add_row(name, f"{median(times):.2f}", spread)
    console.print(table)
    console.print(f"Undo of a call, while another company reads: {median(figures.undo):.1f} s")
    for name, times in (
        ("alone", figures.alone),
        ("during a bulk call", figures.during),
        ("during its undo", figures.during_undo),
    ):
        p99 = quantiles(times, n=100)[98]
        console.print(
            f"GET /coach/customers {name}: {len(times)} answered, p50 {median(times):.1f} ms, p99 {p99:.1f} ms"
        )
    console.print(f"{figures.busy} of them were answered with 503.")
    console.print(f"Target at most {TARGET:.0f}: {'met' if worst <= TARGET else 'missed'}")
    return worst <= TARGET


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Rounds.")
@click.option("--clients", type=click.IntRange(1), default=CLIENTS, show_default=True, help="Clients of the company.")
def main(rounds: int, clients: int) -> None:
    """Archive clients by one call, compared with a bare update_many of the same clients, alternately in one run.

    Undo one call a round. It may take 5 times as long. Another company's list of clients is read meanwhile on 4 connections. Exit code 1 when it takes longer.
    """
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        with ExitStack() as stack:
            settings = stack.enter_context(temporary_settings())
            company = asyncio.run(create_company(settings, "Bench", clients))
            other = asyncio.run(create_company(settings, "Other", 1_000))
            server = stack.enter_context(running_service(settings, min(os.sched_getaffinity(0))))
            before = peak_mb(server.pid)
            figures = asyncio.run(measure(settings, server, company, other.key, rounds))
            grown = peak_mb(server.pid) - before
            is_lost = has_lost_database(settings)
    except DatabaseUnavailable as error:
        raise click.ClickException(str(error)) from None
    is_met = show(console, figures, clients) and not is_lost
    console.print(
        f"The database did {'NOT respond for a while' if is_lost else 'respond all the time'}, says the service."
    )
    console.print(f"The service used at most {grown:.0f} MB more than at its start ({before:.0f} MB).")
    console.print(f"{rounds} rounds. Load average {os.getloadavg()[0]:.1f}; well over 2 means others disturbed it.")
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
