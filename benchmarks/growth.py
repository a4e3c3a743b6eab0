"""`python -m benchmarks.growth`: what reading costs in companies of 1,000 to 1,000,000 clients, with 1,000 others in the database."""

from __future__ import annotations

import http.client
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import quote, urlsplit

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks.growth_data import prepared_database
from benchmarks.growth_world import GrownCompany, Stored
from benchmarks.plots import plot
from benchmarks.servers import Server, running_service, wait_until_idle
from coaching_service.installation.embedded import DatabaseUnavailable

TARGET_RATIO, TARGET_MS = 5.0, 60.0
_WARM_UP, _WALKED_PAGE = 3, 50
_LIST = "/coach/customers?archived=false&pageNum=1"
_TOTAL_OF_COMMON = "contains, common"  # its exact total has no target above 10,000 hits


def requests_of(company: GrownCompany) -> dict[str, str]:
    """The paths that are read, by name."""
    page = f"{_LIST}&pageSize=50"
    return {
        "list, page 1": page,
        _TOTAL_OF_COMMON: f"{page}&contains=an",
        "contains, rare": f"{page}&contains={quote(company.rare)}",
        "contains, surname": f"{page}&contains=garcia",
        "contains, missing": f"{page}&contains=qqqq",
        "list of a group": f"{page}&groups=Strength",
        "groups with counts": "/coach/customers/groups",
        "attention": "/coach/attention?limit=20",
        "events": "/coach/events?limit=50",
    }


@dataclass
class Walk:
    """The milliseconds of each page of a walk by `after`."""

    times: list[float] = field(default_factory=list)

    def part(self, first: float, last: float) -> float:
        """The median of the pages between two shares of the walk."""
        return median(self.times[int(len(self.times) * first) : max(int(len(self.times) * last), 1)])


@dataclass
class Measured:
    """A company, the milliseconds of each request, and those of its walk."""

    company: GrownCompany
    times: dict[str, list[float]]
    walk: Walk = field(default_factory=Walk)


class Reader:
    """Reads with the key of one company, one request after another on one connection."""

    def __init__(self, server: Server, key: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(server.base_url).netloc, timeout=120)
        self._headers = {"X-API-Key": key}

    def read(self, path: str) -> tuple[float, Any]:
        """Return the milliseconds, and the JSON. Raises RuntimeError when it is refused."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        took = (time.perf_counter() - began) * 1000
        if response.status != 200:
            raise RuntimeError(f"GET {path}: {response.status} {body[:300]!r}")
        return took, json.loads(body)


def measure(server: Server, companies: list[GrownCompany], rounds: int, progress: Progress) -> list[Measured]:
    """Read everything of each company once a round, every other round in reverse order; then walk through each list."""
    readers = {company.clients: Reader(server, company.key) for company in companies}
    measured = [Measured(company, {name: [] for name in requests_of(company)}) for company in companies]
    task = progress.add_task("Reading", total=rounds + _WARM_UP)
    for number in range(rounds + _WARM_UP):
        for each in measured if number % 2 else reversed(measured):
            for name, path in requests_of(each.company).items():
                took, _ = readers[each.company.clients].read(path)
                if number >= _WARM_UP:
                    each.times[name].append(took)
        progress.advance(task)
    for each in measured:
        _walk(readers[each.company.clients], each, progress)
    return measured


def _walk(reader: Reader, measured: Measured, progress: Progress) -> None:
    path = f"{_LIST}&pageSize={_WALKED_PAGE}"
    task = progress.add_task(f"Walking through {measured.company.clients:,}", total=None)
    seen, after = 0, ""
    while True:
        took, page = reader.read(path + after)
        measured.walk.times.append(took)
        seen += len(page["docs"])
        progress.update(task, total=page["totalDocs"], completed=seen)
        if page["nextCursor"] is None:
            break
        after = f"&after={quote(page['nextCursor'])}"
    if seen != page["totalDocs"]:
        raise RuntimeError(f"the walk returned {seen} of {page['totalDocs']} clients")


def show(console: Console, measured: list[Measured]) -> list[str]:
    """Print the table; returns what misses its target."""
    table = Table("Median (95 %) in ms", *(f"{each.company.clients:,} clients" for each in measured), "Ratio")
    missed = []
    for name in measured[0].times:
        medians = [median(each.times[name]) for each in measured]
        cells = [f"{median(each.times[name]):.1f} ({_p95(each.times[name]):.1f})" for each in measured]
        ratio = medians[-1] / medians[0]
        table.add_row(name, *cells, f"{ratio:.1f}")
        if name != _TOTAL_OF_COMMON and (ratio > TARGET_RATIO or medians[-1] > TARGET_MS):
            missed.append(name)
    for text, first, last in (("walk, first tenth", 0.0, 0.1), ("walk, last tenth", 0.9, 1.0)):
        parts = [each.walk.part(first, last) for each in measured]
        table.add_row(text, *(f"{part:.1f}" for part in parts), f"{parts[-1] / parts[0]:.1f}")
    console.print(table)
    return missed


def _p95(times: list[float]) -> float:
    return quantiles(times, n=20)[-1] if len(times) > 1 else times[0]


def show_stored(console: Console, stored: list[Stored]) -> None:
    """Print the bytes of each collection with many documents."""
    table = Table("Collection", "Documents", "Bytes each", "Index bytes each", "On disk each")
    for each in stored:
        if each.documents >= 1_000:
            sizes = (each.bytes, each.index_bytes, each.disk_bytes)
            table.add_row(each.collection, f"{each.documents:,}", *(f"{size / each.documents:,.0f}" for size in sizes))
    console.print(table)


def write(file: Path, measured: list[Measured], stored: list[Stored], setting: dict[str, Any]) -> None:
    """Write the report, and in the same folder the plots."""
    report = {
        "setting": setting,
        "requests": {
            name: {
                each.company.clients: {"medianMs": median(t), "p95Ms": _p95(t)}
                for each in measured
                if (t := each.times[name])
            }
            for name in measured[0].times
        },
        "walks": {
            each.company.clients: {
                "pages": len(each.walk.times),
                "firstTenthMs": each.walk.part(0, 0.1),
                "lastTenthMs": each.walk.part(0.9, 1),
                "longestMs": max(each.walk.times),
            }
            for each in measured
        },
        "collections": [asdict(each) for each in stored],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(report, indent=2) + "\n")
    lines = {
        name: [(each.company.clients, median(each.times[name])) for each in measured] for name in measured[0].times
    }
    file.with_suffix(".svg").write_text(plot("Requests by clients of the company", "clients", "ms", lines))
    walks = {f"{each.company.clients:,} clients": _walked(each.walk) for each in measured}
    drawn = plot("Pages of 50 clients, walking by after", "page", "ms", walks)
    file.with_name(f"{file.stem}-walks.svg").write_text(drawn)


def _walked(walk: Walk) -> list[tuple[float, float]]:
    """At most 40 points of a walk, each the median of the pages around it."""
    step = max(len(walk.times) // 40, 1)
    return [(at + 1, median(walk.times[at : at + step])) for at in range(0, len(walk.times), step)]


@click.command()
@click.option(
    "--largest",
    type=click.IntRange(1_000),
    default=1_000_000,
    show_default=True,
    help="Clients of the largest company.",
)
@click.option(
    "--companies",
    type=click.IntRange(1),
    default=1_000,
    show_default=True,
    help="Small companies in the same database.",
)
@click.option("--rounds", type=click.IntRange(1), default=50, show_default=True)
@click.option("--cache", type=float, default=2.0, show_default=True, help="Gigabytes of the database's cache.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the data, which stays: prepared if it is missing, otherwise used again.",
)
@click.option("--only-prepare", is_flag=True, help="End when the data is prepared.")
@click.option("--report", type=click.Path(path_type=Path), default=Path("test-output/growth.json"), show_default=True)
def main(
    largest: int, companies: int, rounds: int, cache: float, data: Path | None, report: Path, *, only_prepare: bool
) -> None:
    """Read from companies of 1,000, 10,000, 100,000 and 1,000,000 clients in one database with 1,000 small companies.

    Over HTTP, one request at a time, in turn. Each request may take 5 times as long in the largest company as in that of
    1,000 clients, and 60 ms; the exact total of a common term is only reported. Exit code 1 when one misses that. Also
    prints what a document of each collection takes, with its indexes. One million clients take
    about 6 GB on the disk of the temporary folder, or of `--data`.
    """
    console = Console(width=None if sys.stdout.isatty() else 140)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    load = [os.getloadavg()[0]]
    try:
        with ExitStack() as stack:
            progress = stack.enter_context(Progress(*columns, console=Console(stderr=True)))
            temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coaching-growth-")))
            folder = data or temporary
            prepared = stack.enter_context(prepared_database(folder, largest, companies, cache, progress))
            if only_prepare:
                return
            settings = prepared.settings
            server = stack.enter_context(running_service(settings, min(os.sched_getaffinity(0))))
            wait_until_idle([server.pid])
            measured = measure(server, prepared.companies, rounds, progress)
    except DatabaseUnavailable as error:
        raise click.ClickException(str(error)) from None
    load.append(os.getloadavg()[0])
    missed = show(console, measured)
    show_stored(console, prepared.stored)
    setting = {"largest": largest, "companies": companies, "rounds": rounds, "cacheGigabytes": cache, "load": load}
    write(report, measured, prepared.stored, setting)
    console.print(
        f"Load average {load[0]:.1f} before, {load[1]:.1f} after: well over 2 means others disturbed it. {report}"
    )
    if missed:
        console.print(f"Missed: {', '.join(missed)}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
