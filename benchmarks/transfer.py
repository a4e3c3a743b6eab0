"""Export and import of a large company in bounded memory, with the importing process killed once.

    .venv/bin/python -m benchmarks.transfer

A company with 10,000 clients and 100,000 logged blocks is exported, imported into an empty company, and exported again.
The service runs as it is served. Half-way through the import it is killed and started again. Targets: neither the export
nor the import grows the process by more than 150 MB, and everything arrives once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import click
import uvloop

from benchmarks.servers import Server, running_service, temporary_settings
from coaching_service import runtime, seeding
from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people import api_keys, team
from coaching_service.people.customers import batch
from coaching_service.progress import personal_records
from coaching_service.progress.logs import service as logs
from coaching_service.settings import Settings

BLOCKS_OF_CLIENT = 10
TARGET = 150.0
_BATCH = 5_000
_SETS, _ITEMS = 3, 4


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


async def prepare(settings: Settings, clients: int) -> tuple[str, str]:
    """Create the company with its clients and blocks, and an empty one; returns their keys."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        await exercises.publish_shared(services)
        source, target = [await _company(services, name) for name in ("source", "target")]
        await seeding.seed_clients(services, source, clients - 1)
        for customer_id in await _add_blocks(source, clients):
            await personal_records.rebuild_records(source, customer_id)  # as the import does
        keys = [await api_keys.create(ctx, "Bench") for ctx in (source, target)]
        return keys[0]["key"], keys[1]["key"]


async def _company(services: Services, name: str) -> Context:
    owner = await team.create_company(Context(services), name, "Olga", f"{name}@example.com", "no hash")
    return Context(services).acting_as(owner)


async def _add_blocks(ctx: Context, clients: int) -> list[ObjectId]:
    """Log one block as a client does, store copies of it for all clients, and return these."""
    squat = (await exercises.list_shared_ids(ctx))[0]
    client = await batch.create_customer(ctx, {"name": "First"})
    planned = [
        {"type": "reps_load", "index": n, "load": 60, "minPlannedReps": 8, "maxPlannedReps": 10} for n in (1, 2, 3)
    ]
    plain = {"rest": 90, "rpe": None, "rir": None, "tempo": None, "isWarmup": False}
    item = {"type": "EXERCISE", "exerciseId": squat, "exerciseSets": [{**each, **plain} for each in planned]}
    done = {"exerciseId": None, "round": None, "reps": 8, "load": 60.0, "seconds": None, "meters": None}
    sets = [{**done, "index": n, "rpe": 8, "rir": None, "isCompleted": True} for n in range(1, _SETS + 1)]
    log: Any = {"isCompleted": True, "comment": "Felt good", "customerSets": sets}
    block: Any = {
        "plan": {"name": "Legs", "date": "2026-01-05", "isRest": False, "items": [item] * _ITEMS},
        "logs": [log] * _ITEMS,
        "loggedAt": datetime(2026, 1, 5, 18),  # noqa: DTZ001 - as it is stored
        "durationMinutes": 50,
        "sessionRpe": 7,
        "comment": None,
    }
    await logs.create_logged_blocks(ctx, client["_id"], [block])
    collection = ctx.db["workoutBlocks"]
    stored = await collection.find_one({"companyId": ctx.company_id})
    ids: list[ObjectId] = [
        each["_id"] async for each in ctx.db["customers"].find({"companyId": ctx.company_id}, {"_id": 1})
    ]
    copies: list[dict[str, Any]] = []
    for number in range(clients * BLOCKS_OF_CLIENT - 1):
        copies.append(_copy(stored or {}, ids[number % len(ids)], number // len(ids)))
        if len(copies) == _BATCH:
            await collection.insert_many(copies, ordered=False)
            copies = []
    await collection.insert_many(copies, ordered=False)
    return ids


def _copy(block: Mapping[str, Any], client: ObjectId, week: int) -> dict[str, Any]:
    items = [{**item, "_id": ObjectId()} for item in block["items"]]
    day = str(date(2026, 1, 6) + timedelta(weeks=week))
    return {**block, "_id": ObjectId(), "customerId": client, "date": day, "items": items}


async def measured_export(server: Server, key: str, file: Path, name: str) -> float:
    """Export, print the figures, and return the MB by which the process grew."""
    figures: list[float] = []
    size, headers = 0, {"X-API-Key": key}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(3600)) as http:
        await wait_until_ready(http, server)
        async with grown(server.pid, figures):
            began = time.monotonic()
            async with http.get(f"{server.base_url}/coach/export", headers=headers) as response:
                response.raise_for_status()
                with file.open("wb") as output:
                    async for piece in response.content.iter_any():
                        size += output.write(piece)
            took = time.monotonic() - began
    print(f"{name}: {took:.1f} s, {size / 1e6:.1f} MB, resident {resident(server):.0f} MB, grew {figures[0]:.0f} MB")
    return figures[0]


async def wait_until_ready(http: aiohttp.ClientSession, server: Server) -> None:
    """Wait until the service accepts requests."""
    while True:
        async with http.get(f"{server.base_url}/readyz") as response:
            if response.status == 200:
                return
        await asyncio.sleep(0.2)  # between attempts to reach a service that is starting


def resident(server: Server) -> float:
    """The resident memory of the process, in MB."""
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


async def upload(server: Server, key: str, file: Path) -> str:
    """Begin the import of a file; returns the job."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(3600)) as http:
        with file.open("rb") as content:
            form = aiohttp.FormData()
            form.add_field("file", content, filename="export.zip")
            headers = {"X-API-Key": key}
            async with http.post(f"{server.base_url}/coach/import", data=form, headers=headers) as response:
                response.raise_for_status()
                return str((await response.json())["_id"])


async def follow(server: Server, key: str, job_id: str, until: float) -> tuple[dict[str, Any], float]:
    """Wait until a share of an import is done, or it has ended; returns the job and the MB the process grew by."""
    figures: list[float] = []
    async with aiohttp.ClientSession() as http, grown(server.pid, figures):
        await wait_until_ready(http, server)
        while True:
            async with http.get(f"{server.base_url}/coach/jobs/{job_id}", headers={"X-API-Key": key}) as response:
                response.raise_for_status()
                job = await response.json()
            share = job["done"] / job["total"] if job["total"] else 0.0
            if job["status"] in ("done", "failed") or share >= until:
                break
            await asyncio.sleep(0.5)  # between reads of the progress
    return job, figures[0]


def records(file: Path) -> dict[str, int]:
    """The number of records of each collection in an export."""
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if name.startswith("records/")]
        counts = {}
        for name in names:
            with archive.open(name) as lines:
                counts[name] = sum(1 for _ in lines)
        return counts


@click.command()
@click.option("--clients", type=click.IntRange(10), default=10_000, show_default=True)
def main(clients: int) -> None:
    """Export and import a company with ten blocks for each client. Exit code 1 when a target is missed."""
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        began = time.monotonic()
        source, target = uvloop.run(prepare(settings, clients))
        print(f"prepared {clients} clients in {time.monotonic() - began:.0f} s")
        core = min(os.sched_getaffinity(0))
        first, second = settings.data_dir / "first.zip", settings.data_dir / "second.zip"
        growth: list[float] = []
        began = time.monotonic()
        with running_service(settings, core) as server:
            growth.append(asyncio.run(measured_export(server, source, first, "export")))
            began = time.monotonic()
            job_id = asyncio.run(upload(server, target, first))
            job, grew = asyncio.run(follow(server, target, job_id, 0.5))
            growth.append(grew)
            print(
                f"killed at {job['done']} of {job['total']} after {time.monotonic() - began:.1f} s, grew {grew:.0f} MB"
            )
            os.kill(server.pid, signal.SIGKILL)
        with running_service(settings, core) as server:
            job, grew = asyncio.run(follow(server, target, job_id, 2.0))
            growth.append(grew)
            took = time.monotonic() - began
            print(f"import {job['status']} after {took:.1f} s, grew {grew:.0f} MB: {job['result']} {job['errors'][:3]}")
            growth.append(asyncio.run(measured_export(server, target, second, "export of the import")))
        is_equal = records(first) == records(second)
        print(f"records of both exports are {'equal' if is_equal else 'NOT equal'}: {records(second)}")
    sys.exit(0 if is_equal and job["status"] == "done" and max(growth) <= TARGET else 1)


if __name__ == "__main__":
    main()
