"""`python -m benchmarks.long_polls`: a company's requests before and after a write that many waiting requests wait for."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

import aiohttp
import click
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.servers import has_lost_database, running_service, temporary_settings
from coaching_service import runtime
from coaching_service.core.database.context import Context
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.team import service as team
from coaching_service.seeding import seed_clients
from coaching_service.settings import Settings

TARGET_MS = 300.0  # of the 95th percentile after the write
_COMPANIES, _KEYS, _POLLS_OF_A_KEY, _CLIENTS = 10, 3, 16, 50
_CONNECTIONS, _WAIT_SECONDS, _SETTLE_SECONDS = 2, 25, 2.0


@dataclass(frozen=True)
class Company:
    """The keys of a company, and one of its clients."""

    keys: list[str]
    client: str


@dataclass
class Figures:
    """Milliseconds of the requests of the company that does not wait, and seconds until all who wait had the event."""

    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    delivered: list[float] = field(default_factory=list)
    failures: int = 0


async def _make_companies(settings: Settings) -> list[Company]:
    companies = []
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        for number in range(_COMPANIES + 1):
            owner = await team.create_company(Context(services), "Bench", "Owner", f"o{number}@bench.test", "no hash")
            ctx = Context(services).acting_as(owner)
            await seed_clients(services, ctx, _CLIENTS)
            client = await services.db["customers"].find_one({"companyId": ctx.company_id})
            keys = [str((await api_keys.create(ctx, f"Key {each}"))["key"]) for each in range(_KEYS)]
            companies.append(Company(keys, str(client["_id"] if client else "")))
    return companies


class Poller:
    """Requests for the events of a company: the next when one is answered."""

    def __init__(self, http: aiohttp.ClientSession, key: str) -> None:
        self._http, self._headers = http, {"X-API-Key": key}
        self.waits, self.arrived = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Poll until cancelled."""
        after = await self._last_cursor()
        self.waits.set()
        while True:
            page = await self._read({"after": after, "wait": str(_WAIT_SECONDS)})
            after = page["nextCursor"]
            if page["docs"]:
                self.arrived.set()

    async def _last_cursor(self) -> str:
        page = await self._read({"limit": "500"})
        while page["hasMore"]:
            page = await self._read({"limit": "500", "after": page["nextCursor"]})
        return str(page["nextCursor"])

    async def _read(self, query: dict[str, str]) -> dict[str, Any]:
        while True:
            async with self._http.get("/coach/events", params=query, headers=self._headers) as response:
                page: dict[str, Any] = await response.json()
                if response.status == 200:
                    return page
                if response.status != 503 or "database" in page["message"]:
                    raise RuntimeError(f"GET /coach/events: {response.status} {page}")
            await asyncio.sleep(int(response.headers.get("Retry-After", "1")))  # all begin at once: it is busy


async def _request(http: aiohttp.ClientSession, company: Company, seconds: float, figures: Figures) -> list[float]:
    """Send requests of three kinds, the next when the last is answered; returns the milliseconds of each."""
    took: list[float] = []
    client, headers = f"/coach/customers/{company.client}", {"X-API-Key": company.keys[0]}
    kinds = (("GET", "/coach/customers?archived=false&pageSize=50&pageNum=1"), ("GET", client), ("PATCH", client))
    ends = time.perf_counter() + seconds

    async def repeat() -> None:
        for number in itertools.count():
            method, path = kinds[number % len(kinds)]
            began = time.perf_counter()
            if began > ends:
                return
            body = {"phone": str(number)} if method == "PATCH" else None
            async with http.request(method, path, json=body, headers=headers) as response:
                await response.read()
            took.append((time.perf_counter() - began) * 1000)
            figures.failures += response.status != 200

    await asyncio.gather(*(repeat() for _ in range(_CONNECTIONS)))
    return took


async def _write(http: aiohttp.ClientSession, company: Company, number: int) -> None:
    path, headers = f"/coach/customers/{company.client}", {"X-API-Key": company.keys[0]}
    async with http.patch(path, json={"surname": f"Round {number}"}, headers=headers) as response:
        if response.status != 200:
            raise RuntimeError(f"PATCH {path}: {response.status} {await response.text()}")


async def _measure(base_url: str, companies: list[Company], rounds: int, seconds: float) -> dict[int, Figures]:
    """Measure writes of one company, and of all at once, in turn."""
    quiet, *waiting = companies
    figures = {1: Figures(), len(waiting): Figures()}
    timeout, connector = aiohttp.ClientTimeout(60), aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(base_url, timeout=timeout, connector=connector) as http:
        pollers = {
            company.client: [Poller(http, key) for key in company.keys for _ in range(_POLLS_OF_A_KEY)]
            for company in waiting
        }
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each.run()) for several in pollers.values() for each in several]
            await asyncio.gather(*(each.waits.wait() for several in pollers.values() for each in several))
            await asyncio.sleep(_SETTLE_SECONDS)
            await _request(http, quiet, seconds, Figures())  # the first requests of a process take longer
            for number in range(rounds):
                for count, each in figures.items():
                    each.before += await _request(http, quiet, seconds, each)
                    writers = waiting[:count]
                    waited_for = [poller for company in writers for poller in pollers[company.client]]
                    for poller in waited_for:
                        poller.arrived.clear()
                    began = time.perf_counter()
                    requests = asyncio.create_task(_request(http, quiet, seconds, each))
                    await asyncio.gather(*(_write(http, company, number) for company in writers))
                    async with asyncio.timeout(60):
                        await asyncio.gather(*(poller.arrived.wait() for poller in waited_for))
                    each.delivered.append(time.perf_counter() - began)
                    each.after += await requests
                    await asyncio.sleep(_SETTLE_SECONDS)
            for task in tasks:
                task.cancel()
    return figures


def _show(figures: dict[int, Figures]) -> bool:
    polls = _KEYS * _POLLS_OF_A_KEY
    table = Table(title=f"A company's requests while {polls * _COMPANIES} of {_COMPANIES} others wait for events")
    headings = ("Answered at once", "p50 before", "p95 before", "p50 after", "p95 after", "All answered (s, worst)")
    for heading in headings:
        table.add_column(heading, justify="right")
    for count, each in figures.items():
        table.add_row(
            str(count * polls),
            *(f"{value:.0f} ms" for times in (each.before, each.after) for value in (median(times), _p95(times))),
            f"{max(each.delivered):.2f}",
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    failures = sum(each.failures for each in figures.values())
    console.print(f"{failures} failed. Target: {TARGET_MS:.0f} ms. Load average {os.getloadavg()[0]:.1f}.")
    return not failures and all(_p95(each.after) <= TARGET_MS for each in figures.values())


def _p95(times: list[float]) -> float:
    return quantiles(times, n=20)[18]


async def _run(rounds: int, seconds: float) -> bool:
    async with AsyncExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        companies = await _make_companies(settings)
        connections = {"MAX_CONNECTIONS_PER_ADDRESS": "1000"}  # all who wait are on this machine
        server = stack.enter_context(running_service(settings, 0, **connections))
        reached = _show(await _measure(server.base_url, companies, rounds, seconds))
        return reached and not has_lost_database(settings)


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--seconds", type=float, default=3.0, show_default=True, help="Of requests before and after each write.")
def main(rounds: int, seconds: float) -> None:
    """Measure a company's requests before and after a write that wakes up waiting requests; exit code 1 above the target."""
    sys.exit(0 if uvloop.run(_run(rounds, seconds)) else 1)


if __name__ == "__main__":
    main()
