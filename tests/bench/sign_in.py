"""Sign-in under load: how much slower the customer list gets while 20 sign-ins are in flight.

    .venv/bin/python -m tests.bench.sign_in

One run, rounds interleaved: a slot of the list alone, then one with 20 sign-ins in flight (each is one argon2id hash).
Target: the 99th percentile of the list stays under three times its idle value.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from statistics import median

import aiohttp
from rich.console import Console
from rich.table import Table

from coaching_service import runtime
from coaching_service.kernel.auth.secrets import new_master_key
from coaching_service.kernel.storage.context import Context
from coaching_service.kernel.storage.embedded import running_mongod
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.team import service as team
from coaching_service.seeding import seed_clients
from coaching_service.settings import Settings
from tests.bench.servers import running
from tests.bench.slots import Slot, read

IN_FLIGHT, CONNECTIONS, ROUNDS, TARGET = 20, 4, 9, 3.0
_EMAIL, _PASSWORD = "bench@example.com", "a password for the bench"


async def _company(settings: Settings) -> str:
    """A company of 1,000 clients; gives its key."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        ctx = Context(services)
        owner = await team.found_company(ctx, "Bench", "Owner", _EMAIL, await hash_password(_PASSWORD))
        ctx = ctx.acting_as(owner)
        await seed_clients(services, ctx, 1_000)
        return str((await api_keys.create(ctx, "Bench"))["key"])


async def _slot(base_url: str, key: str) -> Slot:
    """A second of the list."""
    address = f"{base_url}/coach/customers?archived=false&pageSize=50&pageNum=1"
    command = ("wrk", "-t1", f"-c{CONNECTIONS}", "-d2s", "--latency", "-H", f"X-API-Key: {key}", address)
    wrk = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    told, _ = await wrk.communicate()
    return read(told.decode(), 0, 0)


async def _sign_in_for_ever(http: aiohttp.ClientSession, done: list[int]) -> None:
    while True:
        async with http.post("/auth/login", json={"email": _EMAIL, "password": _PASSWORD}) as response:
            done.append(response.status)


async def _busy_slot(base_url: str, key: str, done: list[int]) -> Slot:
    async with aiohttp.ClientSession(base_url) as http:
        signing_in = [asyncio.create_task(_sign_in_for_ever(http, done)) for _ in range(IN_FLIGHT)]
        try:
            return await _slot(base_url, key)
        finally:
            for task in signing_in:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*signing_in)


async def _measure(base_url: str, key: str) -> bool:
    await _slot(base_url, key)  # warm
    idle, busy, done = [], [], []  # type: ignore[var-annotated]
    for _ in range(ROUNDS):
        idle.append(await _slot(base_url, key))
        busy.append(await _busy_slot(base_url, key, done))
    ratios = sorted(b.p99 / i.p99 for i, b in zip(idle, busy, strict=True))
    table = Table(title=f"GET /coach/customers beside {IN_FLIGHT} sign-ins in flight, {ROUNDS} rounds")
    for heading in ("", "Req/s", "p50 ms", "p99 ms"):
        table.add_column(heading, justify="right")
    for name, slots in (("idle", idle), ("busy", busy)):
        figures = (median(getattr(slot, figure) for slot in slots) for figure in ("rate", "p50", "p99"))
        table.add_row(name, *(f"{figure:.1f}" for figure in figures))
    console = Console()
    console.print(table)
    reached = median(ratios) < TARGET
    console.print(
        f"p99 busy / idle: {ratios[0]:.2f} / {median(ratios):.2f} / {ratios[-1]:.2f} (min, median, max); "
        f"target under {TARGET}: {'reached' if reached else 'missed'}. "
        f"{len(done)} sign-ins, {sum(status != 200 for status in done)} of them refused."
    )
    return reached


def main() -> None:
    """Measure, and end with 1 when the target is missed."""
    with tempfile.TemporaryDirectory() as folder, running_mongod(Path(folder)) as uri:
        keys = new_master_key()
        settings = Settings(mongodb_uri=uri, mongodb_database="bench", secret_keys=(keys,))
        key = asyncio.run(_company(settings))
        environment = {
            "MONGODB_URI": uri,
            "MONGODB_DATABASE": "bench",
            "SECRET_KEYS": keys,
            "DATA_DIR": folder,
            "LOG_FORMAT": "json",
        }
        with running("service", ["coaching_service", "serve"], environment, 0, Path(folder) / "log") as server:
            sys.exit(0 if asyncio.run(_measure(server.base_url, key)) else 1)


if __name__ == "__main__":
    main()
