"""`python -m benchmarks.pages`: what a page costs compared with the REST reads it consists of.

One service on one core, the demo company with one client's training logged. In each round every page is requested once,
and so is each of its reads, one after another; every other round in reverse. Target: the median page takes at
most three times the sum of its reads' medians.
"""

from __future__ import annotations

import http.client
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import click
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.servers import running_service, temporary_settings
from benchmarks.world import Api
from coaching_service import demo, features, runtime
from coaching_service.core.database.context import Context
from coaching_service.library.exercises import shared
from coaching_service.people.identities import service as identities
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions import web_sessions
from coaching_service.people.team import service as team
from coaching_service.settings import Settings

TARGET = 3.0
assert features.ROUTES  # the consequences of a log are subscribed there


@dataclass
class Compared:
    """A page, the reads it consists of, and the time of each: milliseconds, round by round."""

    name: str
    page: str
    reads: list[str]
    page_times: list[float] = field(default_factory=list)
    read_times: dict[str, list[float]] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """How many times the reads the page takes."""
        return median(self.page_times) / sum(median(times) for times in self.read_times.values())


async def prepare(settings: Settings) -> tuple[str, str, str]:
    """Create the demo company; returns a cookie's token, a bearer token and a key of its owner."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        await shared.publish(services)
        facts = await demo.ensure_demo(services)
        identity = await identities.find_by_email(services, facts["email"])
        owner = await team.get_principal(services, identity.subject_id) if identity else None
        assert owner is not None
        ctx = Context(services).acting_as(owner)
        tokens = await sessions.create_session(ctx, owner.id, "coach")
        session = await web_sessions.start_for_coach(ctx, owner.id)
        return session.token, tokens["accessToken"], facts["apiKey"]


async def train(base_url: str, key: str) -> dict[str, Any]:
    """Log four weeks of one client's training and some metrics; returns what the paths contain."""
    api = Api(base_url, key)
    try:
        page = "archived=false&pageSize=1&pageNum=1"
        client = (await api.call("GET", f"/coach/customers?{page}"))["docs"][0]["_id"]
        path, today = f"/coach/customers/{client}", datetime.now(UTC).date()
        blocks = await api.call("GET", f"{path}/wblock?startDate={today - timedelta(days=40)}&endDate={today}")
        for block in blocks:
            for item in (each for each in block["items"] if each["type"] == "EXERCISE"):
                sets = [{"index": n, "reps": 6, "load": 50, "isCompleted": True} for n in (1, 2, 3)]
                log = f"{path}/wblocks/{block['_id']}/witems/{item['_id']}/log"
                await api.call("PUT", log, {"isCompleted": True, "customerSets": sets})
        metrics = []
        for each in await api.call("GET", "/coach/metrics-sets"):
            await api.call("POST", f"{path}/metrics-sets", {"metricsSetId": each["_id"]})
            for metric in each["metrics"]:
                metrics.append(f"{path}/metrics-sets/{each['_id']}/metrics/{metric['_id']}/history")
                for days in range(0, 80, 4):
                    entry = {
                        "metricId": metric["_id"],
                        "date": str(today - timedelta(days=days)),
                        "value": 70 + days % 9,
                    }
                    await api.call("POST", f"{path}/metrics-sets/{each['_id']}/entries", entry)
        program = (await api.call("GET", f"/coach/programs?{page}"))["docs"][0]["_id"]
        return {"client": client, "block": blocks[-1]["_id"], "program": program, "metrics": metrics}
    finally:
        await api.http.close()


def pages(world: dict[str, Any]) -> list[Compared]:
    """Every page that reads more than settings, and the reads it consists of."""
    client, app = f"/coach/customers/{world['client']}", f"/app/customers/{world['client']}"
    today = datetime.now(UTC).date()
    monday = today - timedelta(days=today.weekday())
    start = monday - timedelta(days=77)
    span = f"startDate={start}&endDate={today}"
    clients = "/coach/customers?archived=false&pageNum=1&pageSize="
    groups, employees = "/coach/customers/groups", "/coach/employees"
    week = f"{client}/wblock?startDate={monday}&endDate={monday + timedelta(days=6)}"
    progress = [
        f"{client}/workload?{span}&groupBy=week",
        f"{client}/musclegroups/volume?{span}",
        f"{client}/compliance?from={start}&to={monday + timedelta(days=6)}",
        f"{client}/metrics-sets",
        *world["metrics"],
    ]
    return [
        Compared("clients", "/app/customers", [f"{clients}25", groups, employees]),
        Compared("week", app, [client, week]),
        Compared(
            "workout",
            f"{app}/blocks/{world['block']}",
            [client, f"{client}/wblocks/{world['block']}", "/exercises/unified?pageSize=12&pageNum=1"],
        ),
        Compared("progress", f"{app}/progress", [client, *progress]),
        Compared("photos", f"{app}/photos", [client, f"{client}/progress-photos?pageSize=50&pageNum=1"]),
        Compared("notes", f"{app}/notes", [client, f"{client}/notes", f"{client}/activity-feed?page=1&limit=15"]),
        Compared("records", f"{app}/records", [client, f"{client}/personal-records"]),
        Compared("details", f"{app}/details", [client, groups, employees]),
        Compared("exercises", "/app/exercises", ["/exercises/unified?pageSize=24&pageNum=1"]),
        Compared("programs", "/app/programs", ["/coach/programs?archived=false&pageSize=24&pageNum=1"]),
        Compared(
            "program",
            f"/app/programs/{world['program']}",
            [
                f"/coach/programs/{world['program']}",
                f"/coach/programs/{world['program']}/wblock?startDay=1&endDay=371",
                f"{clients}50",
            ],
        ),
        Compared("API keys", "/app/settings/api-keys", ["/coach/api-keys", employees]),
        Compared("team", "/app/settings/team", [employees]),
    ]


class Caller:
    """One persistent connection."""

    def __init__(self, base_url: str, headers: dict[str, str]) -> None:
        self._http, self._headers = http.client.HTTPConnection(urlsplit(base_url).netloc), headers

    def took(self, path: str) -> float:
        """Return the milliseconds of a GET. Raises RuntimeError if its status is not 200."""
        began = time.perf_counter()
        self._http.request("GET", path, headers=self._headers)
        answer = self._http.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return (time.perf_counter() - began) * 1000


def measure(compared: list[Compared], visitor: Caller, rest: Caller, rounds: int) -> None:
    """Request everything, round by round; the first two rounds are a warm-up."""
    for number in range(rounds + 2):
        for each in compared:
            page = [visitor.took(each.page)] if number % 2 else []
            reads = {path: rest.took(path) for path in each.reads}
            page = page or [visitor.took(each.page)]
            if number >= 2:
                each.page_times += page
                for path, took in reads.items():
                    each.read_times.setdefault(path, []).append(took)


@click.command()
@click.option("--rounds", type=click.IntRange(3), default=40, show_default=True)
def main(rounds: int) -> None:
    """Compare pages with the reads they consist of; exits with 1 if a page misses the target."""
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        token, bearer, key = uvloop.run(prepare(settings))
        service = stack.enter_context(running_service(settings, cores[0]))
        compared = pages(uvloop.run(train(service.base_url, key)))
        visitor = Caller(service.base_url, {"Cookie": f"coach_session={token}", "Accept": "text/html"})
        measure(compared, visitor, Caller(service.base_url, {"Authorization": f"Bearer {bearer}"}), rounds)
    report(compared)
    sys.exit(any(each.ratio > TARGET for each in compared))


def report(compared: list[Compared]) -> None:
    """Print what was measured."""
    table = Table("page", "page, ms", "reads", "their sum, ms", f"times (at most {TARGET:g})")
    for each in compared:
        reads = sum(median(times) for times in each.read_times.values())
        cells = f"{median(each.page_times):.1f}", str(len(each.reads)), f"{reads:.1f}", f"{each.ratio:.2f}"
        table.add_row(each.name, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
