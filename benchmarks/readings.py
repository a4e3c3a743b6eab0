"""`python -m benchmarks.readings`: what reading three years of daily training costs compared with the calendar week."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from urllib.parse import urlsplit

import click
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.servers import running_service, temporary_settings
from coaching_service import features, runtime
from coaching_service.core.database.context import Context
from coaching_service.core.database.embedded import DatabaseUnavailable
from coaching_service.library.exercises import shared
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.customers import creation
from coaching_service.people.team import service as team
from coaching_service.settings import Settings
from tests.support.three_years import FIRST, LAST, Years, train

READING_TARGET, LOG_TARGET = 5.0, 3.0
_WARM_UP = 5
assert features.ROUTES  # the consequences of a log are subscribed there


@dataclass
class Request:
    """One request, what it may cost, and what it cost: milliseconds, round by round."""

    name: str
    method: str
    path: str
    target: float | None = None
    body: Callable[[int], object] | None = None
    times: list[float] = field(default_factory=list)
    size: int = 0


def readings(years: Years) -> list[Request]:
    """The requests: the plain calendar week, then every reading."""
    dates = f"startDate={FIRST}&endDate={LAST}"
    week = f"/wblock?startDate=2026-03-02&endDate={LAST}"
    paths = {
        "calendar week": week,
        "exercise history, page of 50": f"/exercise/{years.exercises[0]}/history?pageSize=50&pageNum=1",
        "the same with includeIncomplete": f"/exercise/{years.exercises[0]}/history?pageSize=50&pageNum=1"
        "&includeIncomplete=true",
        "personal records": "/personal-records",
        "activity feed, page of 50": "/activity-feed?page=1&limit=50",
        "muscle-group volume, 3 years": f"/musclegroups/volume?{dates}",
        "workload by day, 3 years": f"/workload?{dates}&groupBy=day",
        "workload by week, 3 years": f"/workload?{dates}&groupBy=week",
        "compliance, 3 years": f"/compliance?from={FIRST}&to={LAST}",
        "form responses, all": "/form-responses",
        "one client, with rates": "",
    }
    return [
        Request(name, "GET", years.path + path, READING_TARGET if name != "calendar week" else None)
        for name, path in paths.items()
    ]


def writings(years: Years) -> list[Request]:
    """A plain PATCH of an item, then logs of it: an ordinary one, and one that is better each time."""

    def done(load: Callable[[int], float]) -> Callable[[int], object]:
        return lambda at: {"customerSets": [{"index": index, "reps": 8, "load": load(at)} for index in (1, 2, 3, 4)]}

    log = years.item_path + "/log"
    return [
        Request("PATCH item", "PATCH", years.item_path, None, lambda at: {"exerciseInstructions": f"Pause {at}"}),
        Request("PUT item log, ordinary", "PUT", log, LOG_TARGET, done(lambda at: 40 + at % 2)),
        Request("PUT item log, a record", "PUT", log, None, done(lambda at: 500 + at)),
        Request("PUT item log, the record undone", "PUT", log, None, lambda at: {"isCompleted": False}),
    ]


class Caller:
    """Sends one request after another on one connection."""

    def __init__(self, base_url: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=30)
        self._headers = {"X-API-Key": key, "Content-Type": "application/json"}

    def send(self, request: Request, number: int) -> float:
        """Send it; returns milliseconds. Raises RuntimeError when it is refused."""
        body = json.dumps(request.body(number)).encode() if request.body else None
        began = time.perf_counter()
        self._connection.request(request.method, request.path, body, self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        took = (time.perf_counter() - began) * 1000
        if response.status != 200:
            raise RuntimeError(f"{request.method} {request.path}: {response.status} {answer[:300]!r}")
        request.size = len(answer)
        return took


async def prepare(settings: Settings) -> tuple[str, Years]:
    """Create a company with one client and three years of training; returns its key."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        await shared.publish(services)
        ctx = Context(services)
        owner = await team.create_company(ctx, "Bench", "Olga Owner", "owner@example.com", "no hash")
        ctx = ctx.acting_as(owner)
        client = await creation.create_customer(ctx, {"name": "Ana"})
        years = await train(ctx, client["_id"])
        return str((await api_keys.create(ctx, "Bench"))["key"]), years


@contextmanager
def prepared() -> Iterator[tuple[Caller, Years]]:
    """Start the database and the service, the service on a core of its own where there are two."""
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        key, years = uvloop.run(prepare(settings))
        service = stack.enter_context(running_service(settings, min(os.sched_getaffinity(0))))
        yield Caller(service.base_url, key), years


def measure(caller: Caller, requests: list[Request], rounds: int) -> None:
    """Run the rounds, each request once in each, every other round in reverse order; the first rounds are not counted."""
    for number in range(rounds + _WARM_UP):
        for request in requests if number % 2 else reversed(requests):
            took = caller.send(request, number)
            if number >= _WARM_UP:
                request.times.append(took)


def show(console: Console, title: str, requests: list[Request]) -> list[str]:
    """Print the cost of each relative to the first; returns the names of those over their target."""
    table = Table(title=title)
    for heading in ("Request", "kB", "Median ms", "Ratio: least / median / most", "Target"):
        table.add_column(heading, justify="left" if heading in ("Request", "Target") else "right", no_wrap=True)
    plain, over = requests[0], []
    for request in requests:
        ratios = [ours / theirs for ours, theirs in zip(request.times, plain.times, strict=True)]
        ratio = median(request.times) / median(plain.times)
        verdict = ""
        if request.target is not None:
            missed = ratio > request.target
            over += [request.name] if missed else []
            verdict = f"{request.target:.0f} {'[red]over[/]' if missed else '[green]met[/]'}"
        spread = f"{min(ratios):.2f} / [bold]{ratio:.2f}[/] / {max(ratios):.2f}"
        table.add_row(request.name, f"{request.size / 1000:.1f}", f"{median(request.times):.1f}", spread, verdict)
    console.print(table)
    return over


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=41, show_default=True, help="Counted rounds.")
def main(rounds: int) -> None:
    """Measure every reading of a client with three years of daily training (1,099 blocks, 6,594 items).

    Over HTTP, one request at a time, in turn. A reading may take 5 times the client's plain calendar week (7 blocks
    with 6 items), the log of an item 3 times a PATCH of it. Ratios are of the medians; the least and the most of any
    round. Exit code 1 when one takes longer.
    """
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        with prepared() as (caller, years):
            read, written = readings(years), writings(years)
            measure(caller, read, rounds)
            measure(caller, written, rounds)
    except DatabaseUnavailable as error:
        raise click.ClickException(str(error)) from None
    over = show(console, "Readings relative to the calendar week", read)
    over += show(console, "The log of an item relative to a PATCH of it", written)
    console.print(f"{rounds} rounds. Load average {os.getloadavg()[0]:.1f}; well over 2 means others disturbed it.")
    if over:
        console.print(f"Over the target: {', '.join(over)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
