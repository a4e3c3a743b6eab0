"""Sign-in under load: how much slower the customer list gets while 20 sign-ins are in flight, and how long those take.

    .venv/bin/python -m benchmarks.sign_in

One run, rounds interleaved: slots of the list alone, then as many with 20 sign-ins in flight throughout (each is one
argon2id hash). The service has one core, which the list alone fills. Target: the 99th percentile of the list stays under
three times its idle value, and sign-ins are answered meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass, field
from statistics import median

import aiohttp
from rich.console import Console
from rich.table import Table

from benchmarks.servers import running_service, temporary_settings
from benchmarks.slots import Slot, read
from coaching_service import runtime
from coaching_service.core.database.context import Context
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.team import service as team
from coaching_service.seeding import seed_clients
from coaching_service.settings import Settings

IN_FLIGHT, CONNECTIONS, ROUNDS, SLOTS, TARGET = 20, 4, 3, 4, 3.0
_EMAIL, _PASSWORD = "bench@example.com", "a password for the bench"


async def _company(settings: Settings) -> str:
    """Create a company of 1,000 clients; returns its key."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        ctx = Context(services)
        owner = await team.create_company(ctx, "Bench", "Owner", _EMAIL, await hash_password(_PASSWORD))
        ctx = ctx.acting_as(owner)
        await seed_clients(services, ctx, 1_000)
        return str((await api_keys.create(ctx, "Bench"))["key"])


async def _slot(base_url: str, key: str) -> Slot:
    """Request the list for two seconds."""
    address = f"{base_url}/coach/customers?archived=false&pageSize=50&pageNum=1"
    command = ("wrk", "-t1", f"-c{CONNECTIONS}", "-d2s", "--latency", "-H", f"X-API-Key: {key}", address)
    wrk = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await wrk.communicate()
    return read(output.decode(), 0, 0)


@dataclass
class SignIns:
    """A constant number of sign-ins in flight, and the seconds that each completed one took."""

    http: aiohttp.ClientSession
    took: list[float] = field(default_factory=list)
    refused: int = 0

    async def sign_in_repeatedly(self) -> None:
        """Sign in repeatedly."""
        while True:
            began = time.perf_counter()
            async with self.http.post("/auth/login", json={"email": _EMAIL, "password": _PASSWORD}) as response:
                self.refused += response.status != 200
            self.took.append(time.perf_counter() - began)


@dataclass
class Measured:
    """The slots of the list, and the sign-ins during them: how many a second, and the time of each."""

    idle: list[Slot] = field(default_factory=list)
    busy: list[Slot] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    refused: int = 0

    @property
    def ratios(self) -> list[float]:
        """The 99th percentile of the list with sign-ins relative to without, pair by pair."""
        return sorted(busy.p99 / idle.p99 for idle, busy in zip(self.idle, self.busy, strict=True))


async def _busy_slots(base_url: str, key: str, into: Measured) -> None:
    """Run slots with sign-ins in flight all the time; those in flight at the end are cancelled, as if their callers disconnected."""
    async with aiohttp.ClientSession(base_url, connector=aiohttp.TCPConnector(limit=IN_FLIGHT)) as http:
        signing = SignIns(http)
        tasks = [asyncio.create_task(signing.sign_in_repeatedly()) for _ in range(IN_FLIGHT)]
        began = time.perf_counter()
        into.busy += [await _slot(base_url, key) for _ in range(SLOTS)]
        into.rates.append(len(signing.took) / (time.perf_counter() - began))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    into.took += signing.took
    into.refused += signing.refused


async def _measure(base_url: str, key: str) -> bool:
    await _slot(base_url, key)  # warm-up
    figures = Measured()
    for _ in range(ROUNDS):
        figures.idle += [await _slot(base_url, key) for _ in range(SLOTS)]
        await _busy_slots(base_url, key, figures)
    return _show(figures)


def _show(figures: Measured) -> bool:
    """Print what was measured; returns whether the target was reached."""
    slots = ROUNDS * SLOTS
    table = Table(
        title=f"GET /coach/customers, {CONNECTIONS} connections, with {IN_FLIGHT} sign-ins, {slots} slots each"
    )
    for heading in ("", "Req/s", "p50 ms", "p99 ms"):
        table.add_column(heading, justify="right")
    for name, measured in (("idle", figures.idle), ("busy", figures.busy)):
        medians = (median(getattr(slot, figure) for slot in measured) for figure in ("rate", "p50", "p99"))
        table.add_row(name, *(f"{each:.1f}" for each in medians))
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    ratios, took = figures.ratios, sorted(figures.took)
    reached = median(ratios) < TARGET and bool(took) and not figures.refused
    console.print(
        f"p99 busy / idle: {ratios[0]:.2f} / {median(ratios):.2f} / {ratios[-1]:.2f} (min, median, max); "
        f"target under {TARGET}: {'reached' if reached else 'missed'}."
    )
    if took:
        console.print(
            f"Sign-ins answered: {len(took)} ({figures.refused} refused), {median(figures.rates):.1f} a second; each took "
            f"{median(took):.1f} s (median), {took[-1]:.1f} s (most). Load average {os.getloadavg()[0]:.1f}."
        )
    return reached


def main() -> None:
    """Measure; exit with 1 when the target is missed."""
    with temporary_settings() as settings:
        key = asyncio.run(_company(settings))
        with running_service(settings, 0) as server:
            sys.exit(0 if asyncio.run(_measure(server.base_url, key)) else 1)


if __name__ == "__main__":
    main()
