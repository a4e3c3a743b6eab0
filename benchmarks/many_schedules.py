"""`python -m benchmarks.many_schedules`: loads of 500 clients adjusted by one job, and another company's requests meanwhile."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles
from typing import Any

import aiohttp
import click
from rich.console import Console

from benchmarks.bulk import Company, Figures, create_company, while_requesting
from benchmarks.servers import Server, has_lost_database, running_service, temporary_settings
from coaching_service.core.database.embedded import DatabaseUnavailable

CLIENTS, WORKOUTS, TARGET = 500, 12, 2.0
_SETS = [{"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60}] * 3
_ALONE_SECONDS = 10.0
_FOLLOW_SECONDS = 0.2
_AT_ONCE = 8


async def _request(
    http: aiohttp.ClientSession,
    key: str,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> Any:
    """Send a request, again while the service is busy, and return its JSON."""
    while True:
        async with http.request(method, path, json=body, headers={"X-API-Key": key, **(headers or {})}) as response:
            result = await response.json()
            if response.status < 300:
                return result
            if response.status != 503:
                raise RuntimeError(f"{method} {path}: {response.status} {str(result)[:300]}")
        await asyncio.sleep(_FOLLOW_SECONDS)


async def _schedule(http: aiohttp.ClientSession, company: Company) -> dict[str, Any]:
    """Schedule workouts with three exercises for each client; returns the days."""
    names = ("Squat", "Press", "Row")
    exercises = [await _request(http, company.key, "POST", "/exercises", {"name": name}) for name in names]
    items = [{"type": "EXERCISE", "exerciseId": each["_id"], "exerciseSets": _SETS} for each in exercises]
    today = datetime.now(UTC).date()
    days = [str(today + timedelta(days=2 * number)) for number in range(WORKOUTS)]
    body = {"blocks": [{"name": "Full body", "date": day, "items": items} for day in days]}
    waiting = asyncio.Semaphore(_AT_ONCE)

    async def fill(customer_id: Any) -> None:
        async with waiting:
            await _request(http, company.key, "POST", f"/coach/customers/{customer_id}/wblocks/batch", body)

    await asyncio.gather(*map(fill, company.clients))
    return {"startDate": days[0], "endDate": days[-1]}


async def _adjust(http: aiohttp.ClientSession, company: Company, days: dict[str, Any], add: float) -> None:
    """Adjust the loads of all clients by one job, and wait for its end."""
    body = {"filter": {"archived": False}, **days, "progression": {"load": {"add": add}}}
    path, later = "/coach/customers/bulk/schedule-adjust", {"Prefer": "respond-async"}
    job_id = (await _request(http, company.key, "POST", path, body, later))["jobId"]
    while True:
        job = await _request(http, company.key, "GET", f"/coach/jobs/{job_id}")
        if job["status"] not in ("queued", "running"):
            break
        await asyncio.sleep(_FOLLOW_SECONDS)
    changed = {each["changed"] for each in job["result"]["results"]}
    if (job["result"]["ok"], changed) != (len(company.clients), {WORKOUTS}):
        raise RuntimeError(f"the job has changed something else: {str(job)[:300]}")


async def measure(server: Server, company: Company, others_key: str, rounds: int) -> tuple[Figures, list[float]]:
    """Adjust all clients once a round while another company reads its list; returns its requests and seconds of jobs."""
    figures, seconds = Figures(), []
    async with aiohttp.ClientSession(server.base_url, timeout=aiohttp.ClientTimeout(total=None)) as http:
        days = await _schedule(http, company)
        for number in range(rounds):
            await while_requesting(http, others_key, figures.alone, figures, asyncio.sleep(_ALONE_SECONDS))
            began = time.perf_counter()
            work = _adjust(http, company, days, 2.5 if number % 2 == 0 else -2.5)
            await while_requesting(http, others_key, figures.during, figures, work)
            seconds.append(time.perf_counter() - began)
    return figures, seconds


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Rounds.")
@click.option("--clients", type=click.IntRange(1), default=CLIENTS, show_default=True, help="Clients of the company.")
def main(rounds: int, clients: int) -> None:
    """Adjust the loads of 12 workouts of each client by one job, while another company reads its list of clients.

    The 99th percentile of the other company's requests may be at most twice what it is without the job. Exit code 1 otherwise.
    """
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        with ExitStack() as stack:
            settings = stack.enter_context(temporary_settings())
            company = asyncio.run(create_company(settings, "Bench", clients))
            other = asyncio.run(create_company(settings, "Other", 1_000))
            server = stack.enter_context(running_service(settings, min(os.sched_getaffinity(0))))
            figures, seconds = asyncio.run(measure(server, company, other.key, rounds))
            is_lost = has_lost_database(settings)
    except DatabaseUnavailable as error:
        raise click.ClickException(str(error)) from None
    p99 = {name: quantiles(times, n=100)[98] for name, times in (("alone", figures.alone), ("during", figures.during))}
    for name, times in (("alone", figures.alone), ("during the job", figures.during)):
        console.print(
            f"GET /coach/customers {name}: {len(times)} answered, p50 {median(times):.1f} ms, "
            f"p99 {quantiles(times, n=100)[98]:.1f} ms"
        )
    ratio = p99["during"] / p99["alone"]
    console.print(
        f"{clients} clients with {WORKOUTS} workouts: {median(seconds):.1f} s a job; p99 is {ratio:.2f} times that without it."
    )
    console.print(f"{figures.busy} requests were answered with 503. Load average {os.getloadavg()[0]:.1f}.")
    is_met = ratio <= TARGET and not is_lost
    console.print(f"Target at most {TARGET:.0f}: {'met' if is_met else 'missed'}")
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
