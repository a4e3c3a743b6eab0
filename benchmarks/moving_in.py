"""Import of years of training history, and what other companies notice of it.

    .venv/bin/python -m benchmarks.moving_in

The file is an export of Hevy with 50,000 sets of one client. Meanwhile another company reads and changes clients. Targets:
the import takes under 120 seconds and under 100 MB above idle, and the 99th percentile of the other company's requests
at most doubles.
"""

from __future__ import annotations

import asyncio
import csv
import io
import itertools
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from random import Random
from statistics import quantiles
from typing import Any

import aiohttp
import click
import uvloop

from benchmarks.servers import Server, running_service, temporary_settings
from benchmarks.transfer import grown, resident, wait_until_ready
from coaching_service import runtime, seeding
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.library.exercises import service as exercises
from coaching_service.people import api_keys, team
from coaching_service.people.customers import batch
from coaching_service.settings import Settings

MOST_SECONDS, MOST_MB, MOST_RATIO = 120.0, 100.0, 2.0
_SETS_OF_SESSION, _SETS_OF_EXERCISE = 20, 4
_SERVICE_CORE = 0
_CONNECTIONS = 2
_EXERCISES = (
    "Bench Press (Barbell)",
    "Squat (Barbell)",
    "Deadlift (Barbell)",
    "Bent Over Row (Barbell)",
    "Overhead Press (Barbell)",
    "Hammer Curl (Dumbbell)",
    "Triceps Pushdown (Cable)",
    "Lat Pulldown (Cable)",
    "Leg Press (Machine)",
    "Sled Push on the Lawn",
)
_HEADINGS = [
    "title",
    "start_time",
    "end_time",
    "description",
    "exercise_title",
    "superset_id",
    "exercise_notes",
    "set_index",
    "set_type",
    "weight_kg",
    "reps",
    "distance_km",
    "duration_seconds",
    "rpe",
]


def history_file(sets: int) -> bytes:
    """An export of Hevy with so many sets, a session every other day until yesterday."""
    out, random = io.StringIO(), Random(40)
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(_HEADINGS)
    day = now().date() - timedelta(days=1)
    for _ in range(sets // _SETS_OF_SESSION):
        start, end = (f"{day.day} {day:%b} {day.year}, {clock}" for clock in ("18:00", "19:05"))
        for name in random.sample(_EXERCISES, _SETS_OF_SESSION // _SETS_OF_EXERCISE):
            for index in range(_SETS_OF_EXERCISE):
                load, reps = random.randint(8, 60) * 2.5, random.randint(3, 12)
                cells = ("Full body", start, end, "", name, "", "", index, "normal", load, reps, "", "", "")
                writer.writerow(cells)
        day -= timedelta(days=2)
    return out.getvalue().encode()


async def prepare(settings: Settings) -> tuple[str, str, str, str]:
    """Create both companies; returns the key and a client of the one that imports, then of the other one."""
    found: list[str] = []
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        await exercises.publish_shared(services)
        for name in ("importing", "other"):
            owner = await team.create_company(Context(services), name, "Olga", f"{name}@example.com", "no hash")
            ctx = Context(services).acting_as(owner)
            client = await batch.create_customer(ctx, {"name": "Mara"})
            if name == "other":
                await seeding.seed_clients(services, ctx, 100)
            found += [(await api_keys.create(ctx, "Bench"))["key"], str(client["_id"])]
    return found[0], found[1], found[2], found[3]


async def run_import(server: Server, key: str, client: str, content: bytes) -> dict[str, Any]:
    """Import the file; returns the job once it has ended."""
    timeout = aiohttp.ClientTimeout(3600)
    async with aiohttp.ClientSession(server.base_url, timeout=timeout, headers={"X-API-Key": key}) as http:
        form = aiohttp.FormData(default_to_multipart=True)
        form.add_field("file", content, filename="hevy.csv")
        form.add_field("customerId", client)
        async with http.post("/coach/import", data=form) as response:
            job: dict[str, Any] = await response.json()
            response.raise_for_status()
        while job["status"] in ("queued", "running"):
            await asyncio.sleep(0.2)  # between reads of the progress
            async with http.get(f"/coach/jobs/{job['_id']}") as response:
                response.raise_for_status()
                job = await response.json()
    return job


async def send_requests(server: Server, key: str, client: str, until: asyncio.Event) -> list[float]:
    """Read lists and a client, and change the client, until the event; returns the milliseconds of each."""
    took: list[float] = []
    path = f"/coach/customers/{client}"
    requests = (("GET", "/coach/customers?archived=false&pageSize=50&pageNum=1"), ("GET", path), ("PATCH", path))

    async def repeat(http: aiohttp.ClientSession, numbers: Iterator[int]) -> None:
        while not until.is_set():
            number = next(numbers)
            method, address = requests[number % len(requests)]
            began = time.perf_counter()
            body = {"phone": str(number)} if method == "PATCH" else None
            async with http.request(method, address, json=body) as response:
                await response.read()
                response.raise_for_status()
            took.append((time.perf_counter() - began) * 1000)

    async with aiohttp.ClientSession(server.base_url, headers={"X-API-Key": key}) as http:
        numbers = itertools.count()
        await asyncio.gather(*(repeat(http, numbers) for _ in range(_CONNECTIONS)))
    return took


async def alone_for(seconds: float, server: Server, key: str, client: str) -> list[float]:
    """Send the other company's requests for some seconds; returns the milliseconds of each."""
    is_over = asyncio.Event()
    took, _ = await asyncio.gather(send_requests(server, key, client, is_over), _after(seconds, is_over))
    return took


async def _after(seconds: float, event: asyncio.Event) -> None:
    await asyncio.sleep(seconds)  # the time of the measurement
    event.set()


def _p99(took: list[float]) -> float:
    return quantiles(took, n=100)[98]


async def measure(server: Server, companies: tuple[str, str, str, str], content: bytes, seconds: float) -> bool:
    """Measure and print the figures; returns whether all targets are reached."""
    key, client, other_key, other_client = companies
    async with aiohttp.ClientSession() as http:
        await wait_until_ready(http, server)
    await alone_for(seconds, server, other_key, other_client)  # the first requests of a process take longer
    alone = await alone_for(seconds, server, other_key, other_client)
    idle, figures = resident(server), list[float]()
    has_ended, began = asyncio.Event(), time.monotonic()

    async def import_it() -> tuple[dict[str, Any], float]:
        async with grown(server.pid, figures):
            job = await run_import(server, key, client, content)
        has_ended.set()
        return job, time.monotonic() - began

    (job, took), next_to = await asyncio.gather(import_it(), send_requests(server, other_key, other_client, has_ended))
    alone += await alone_for(seconds, server, other_key, other_client)
    ratio = _p99(next_to) / _p99(alone)
    print(
        f"import {job['status']} in {took:.1f} s, {figures[0]:.0f} MB above idle ({idle:.0f} MB): {job['result']['created']}"
    )
    print(f"p99 of others: alone {_p99(alone):.1f} ms, meanwhile {_p99(next_to):.1f} ms, ratio {ratio:.2f}")
    return job["status"] == "done" and took <= MOST_SECONDS and figures[0] <= MOST_MB and ratio <= MOST_RATIO


@click.command()
@click.option("--sets", type=click.IntRange(_SETS_OF_SESSION), default=50_000, show_default=True)
@click.option("--seconds", type=float, default=10.0, show_default=True, help="Of the other company's requests alone.")
def main(sets: int, seconds: float) -> None:
    """Import a history into a service that another company uses. Exit code 1 when a target is missed."""
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        companies = uvloop.run(prepare(settings))
        server = stack.enter_context(running_service(settings, _SERVICE_CORE))
        is_reached = uvloop.run(measure(server, companies, history_file(sets), seconds))
    sys.exit(0 if is_reached else 1)


if __name__ == "__main__":
    main()
