"""Uploads in bounded memory: what 32 of 5 MB at once add to the process, and an export of 320 MB.

    .venv/bin/python -m benchmarks.uploads

In one run, each arm on a fresh process: the service (photos, then plans) and a bare handler that streams the same bodies
into Motor's own GridFS upload stream. Targets: the service grows by at most 100 MB, an export by at most 50.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import aiohttp
import click
import uvloop
from PIL import Image
from rich.console import Console
from rich.table import Table

from benchmarks.servers import Server, environment_of, log_of, running, running_service, temporary_settings
from coaching_service import runtime
from coaching_service.core.database.context import Context
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.customers import creation
from coaching_service.people.team import service as team
from coaching_service.settings import Settings

AT_ONCE, SIZE, TARGET, EXPORT_TARGET = 32, 5_000_000, 100.0, 50.0
EXPORT = "an export of 320 MB"


@dataclass(frozen=True)
class Slot:
    """What 32 uploads did: MB the server grew by, the peak MB of its children, MB a second that arrived."""

    growth: float
    children: float
    rate: float


@dataclass
class Arm:
    """One kind of upload: the program, the path and the file."""

    module: list[str]
    path: str
    fields: dict[str, str]
    name: str
    file: bytes
    slots: list[Slot] = field(default_factory=list)


def photo() -> bytes:
    """A noisy JPEG of 12 megapixels and about 5 MB, taken with the phone upright."""
    exif, out = Image.Exif(), io.BytesIO()
    exif[0x0112] = 6
    Image.effect_noise((4000, 3000), 48).convert("RGB").save(out, "JPEG", quality=70, exif=exif)
    return out.getvalue()


def plan() -> bytes:
    """A scanned page: a PDF of about 5 MB."""
    out = io.BytesIO()
    Image.effect_noise((4000, 3000), 48).convert("RGB").save(out, "PDF", quality=70)
    return out.getvalue()


def _status(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1000


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@asynccontextmanager
async def grown(pid: int, figures: list[float]) -> AsyncIterator[None]:
    """Record by how many MB a process grows during the block at most, and the peak MB of its children."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # noqa: ASYNC240 - from here on its peak is what it uses now
    before, children = _status(pid, "VmRSS"), 0.0

    async def watch() -> None:
        nonlocal children
        while True:
            children = max(children, sum(_status(child, "VmRSS") for child in _children(pid)))
            await asyncio.sleep(0.02)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        figures += [_status(pid, "VmHWM") - before, children]


async def uploads(server: Server, arm: Arm, key: str) -> Slot:
    """Send 32 at once, each to its own date. Raises RuntimeError when one is refused."""

    async def upload(number: int) -> None:
        data = aiohttp.FormData(default_to_multipart=True)
        for name, value in arm.fields.items():
            data.add_field(name, value.format(number + 1))
        data.add_field(arm.name, io.BytesIO(arm.file), filename="file")
        async with http.post(server.base_url + arm.path, data=data, headers={"X-API-Key": key}) as response:
            if response.status != 201:
                raise RuntimeError(f"{response.status}: {(await response.text())[:300]}")

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(300)) as http:
        figures: list[float] = []
        async with grown(server.pid, figures):
            began = time.monotonic()
            await asyncio.gather(*map(upload, range(AT_ONCE)))
            took = time.monotonic() - began
    growth, children = figures
    return Slot(growth, children, AT_ONCE * len(arm.file) / 1e6 / took)


async def export(server: Server, path: str, key: str) -> Slot:
    """Export a client with 64 plans of 5 MB."""
    size = 0
    figures: list[float] = []
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(300)) as http, grown(server.pid, figures):
        began = time.monotonic()
        async with http.get(f"{server.base_url}{path}/export", headers={"X-API-Key": key}) as response:
            async for piece in response.content.iter_any():
                size += len(piece)
        took = time.monotonic() - began
    growth, children = figures
    return Slot(growth, children, size / 1e6 / took)


async def prepare(settings: Settings) -> tuple[str, list[str]]:
    """Create a company with two clients; returns its key and their paths."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        owner = await team.create_company(Context(services), "Bench", "Olga", "owner@example.com", "no hash")
        ctx = Context(services).acting_as(owner)
        clients = [await creation.create_customer(ctx, {"name": name}) for name in ("Ana", "Ben")]
        key = await api_keys.create(ctx, "Bench")
        return str(key["key"]), [f"/coach/customers/{client['_id']}" for client in clients]


def measure(rounds: int) -> dict[str, list[Slot]]:
    """Run every arm in every round, each on a process of its own that has just started; then the export."""
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        key, (ana, ben) = uvloop.run(prepare(settings))
        core, pdf, service = min(os.sched_getaffinity(0)), plan(), ["coaching_service", "serve"]
        environment, log = environment_of(settings), log_of(settings)
        dated = {"imageSideIndex": "1", "createdAt": "20{:02}-01-01"}
        arms = {
            "photos": Arm(service, f"{ana}/progress-photos", dated, "imageFile", photo()),
            "plans": Arm(service, f"{ana}/nutrition-plans", {}, "file", pdf),
            "Motor's upload stream": Arm(["benchmarks.bare_uploads"], "/upload", {}, "file", pdf),
        }
        for number in range(rounds):
            for arm in list(arms.values())[:: -1 if number % 2 else 1]:
                with running("server", arm.module, environment, core, log) as server:
                    arm.slots.append(asyncio.run(uploads(server, arm, key)))
        to_export = replace(arms["plans"], path=f"{ben}/nutrition-plans")
        with running_service(settings, core) as server:
            for _ in range(2):
                asyncio.run(uploads(server, to_export, key))
        with running_service(settings, core) as server:
            exported = asyncio.run(export(server, ben, key))
    return {name: arm.slots for name, arm in arms.items()} | {EXPORT: [exported]}


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
def main(rounds: int) -> None:
    """Measure what 32 uploads of 5 MB at once, and an export of 320 MB, add to the process.

    Photos are decoded, rotated and re-encoded; Motor's stream takes the bytes as they are. Exit code 1 when one is over
    its target.
    """
    slots, over = measure(rounds), False
    table = Table(title=f"{AT_ONCE} uploads of {SIZE / 1e6:.0f} MB at once; medians of {rounds} rounds")
    for heading in ("Arm", "Process grew by, MB", "Peak of its children, MB", "MB/s", "Target, MB"):
        table.add_column(heading, justify="left" if heading == "Arm" else "right")
    for name, seen in slots.items():
        growth = median(slot.growth for slot in seen)
        target = EXPORT_TARGET if name == EXPORT else TARGET
        over |= growth > target and "Motor" not in name
        figures = (growth, median(slot.children for slot in seen), median(slot.rate for slot in seen))
        table.add_row(name, *(f"{figure:.0f}" for figure in figures), "" if "Motor" in name else f"{target:.0f}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
