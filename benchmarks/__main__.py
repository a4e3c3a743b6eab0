"""`scripts/bench`: one run with all arms in it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import uvloop
from rich.console import Console
from rich.progress import Progress

from benchmarks import slots, world
from benchmarks.report import Match, Memory, show, write
from benchmarks.servers import (
    Server,
    child_named,
    environment_of,
    log_of,
    running,
    running_service,
    temporary_settings,
    wait_until_idle,
)
from coaching_service.installation.embedded import DatabaseUnavailable

REPORT = Path("test-output/bench.json")
KINDS = {"list": ("GET customers, page of 50", 1.2), "item": ("POST witems", 0.8), "week": ("GET calendar week", 0.8)}
LIST = "/coach/customers?archived=false&pageSize=50&pageNum=1"


@dataclass
class Bench:
    """The servers, and the requests that are sent to them."""

    service: Server
    bare: Server
    mongod: int
    company: world.World
    files: dict[str, list[str]]
    sent: Counter[str] = field(default_factory=Counter)

    def slot(self, kind: str, connections: int, server: Server) -> slots.Slot:
        """Send one kind of request for one second."""
        arguments = ["-H", f"X-API-Key: {self.company.key}"]
        if kind == "list":
            arguments.append(server.base_url + LIST)
        else:
            paths, *body = self.files[kind]
            method = "POST" if body else "GET"
            script = str(Path(__file__).with_name("in_turn.lua"))
            arguments += ["-s", script, server.base_url, "--", method, paths, str(self.sent[kind]), *body]
        slot = slots.run(arguments, connections, server.pid, self.mongod)
        self.sent[kind] += slot.requests
        return slot

    def compare(self) -> None:
        """Check that both servers return the same documents. Raises RuntimeError."""
        responses = [
            [_get(server, path, self.company.key) for path in (LIST, self.company.weeks[-1])] for server in self.both
        ]
        seen = [
            ([doc["_id"] for doc in page["docs"]], page["totalDocs"], [(b["_id"], len(b["items"])) for b in week])
            for page, week in responses
        ]
        if seen[0] != seen[1] or len(seen[0][0]) != 50 or [count for _, count in seen[0][2]] != [6] * 7:
            raise RuntimeError(f"the service and the bare handlers do not return the same: {seen}")

    @property
    def both(self) -> tuple[Server, Server]:
        """The processes of both arms."""
        return self.service, self.bare

    def memory(self) -> dict[str, float]:
        """Resident memory by process."""
        memory = {server.name: slots.resident_mb(server.pid) for server in self.both}
        return memory | {"mongod": slots.resident_mb(self.mongod)}


def _get(server: Server, path: str, key: str) -> Any:
    request = urllib.request.Request(server.base_url + path, headers={"X-API-Key": key})
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


@contextmanager
def prepared(clients: int, cores: tuple[int, int], console: Console) -> Iterator[Bench]:
    """Start the database on the second core, with the company, and both servers on the first."""
    os.sched_setaffinity(0, {cores[1]})  # of this process, and so of wrk and mongod
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        key = uvloop.run(world.company(settings, clients, console))
        environment = environment_of(settings) | {"LOOKUP_KEY": world.lookup_key(settings)}
        bare = running("bare", ["benchmarks.bare"], environment, cores[0], log_of(settings, "bare"))
        arms = stack.enter_context(running_service(settings, cores[0])), stack.enter_context(bare)
        company = uvloop.run(world.schedule(settings, arms[0].base_url, key))
        bench = Bench(*arms, child_named("mongod"), company, world.write_for_wrk(company, settings.data_dir))
        bench.compare()
        with console.status("Waiting until the service has nothing to do in the background ..."):
            wait_until_idle([server.pid for server in arms])
        yield bench


def measured(bench: Bench, matches: dict[tuple[str, int], Match], rounds: int, console: Console) -> None:
    """Run all rounds after a warm-up; every other round in reverse order."""
    order = [(kind, connections, arm) for kind, connections in matches for arm in ("service", "bare")]
    with Progress(console=console) as bar:
        task = bar.add_task("Measuring", total=(rounds + 1) * len(order))
        for number in range(rounds + 1):
            for kind, connections, arm in order if number % 2 else reversed(order):
                slot = bench.slot(kind, connections, getattr(bench, arm))
                if number:
                    getattr(matches[kind, connections], arm).append(slot)
                bar.advance(task)


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=8, show_default=True, help="Counted rounds; 6 are enough.")
@click.option("--clients", type=click.IntRange(200), default=10_000, show_default=True, help="Clients of the company.")
@click.option("--connections", type=click.IntRange(1), multiple=True, default=(16, 64), show_default=True)
@click.option("--only", type=click.Choice(list(KINDS)), multiple=True, help="Measure only these; repeatable.")
@click.option("--json", "file", type=click.Path(path_type=Path), default=REPORT, show_default=True)
def main(rounds: int, clients: int, connections: tuple[int, ...], only: tuple[str, ...], file: Path) -> None:
    """Compare the service with bare aiohttp handlers on the same database.

    The bare handlers (benchmarks/bare.py) use the same driver, indexes, uvloop and orjson, make the same look-ups (key,
    company, client, exercises) and the same write. They do not validate, check permissions, derive fields or log. The
    result is the ratio of requests per second, service to bare, in the same round: absolute figures depend on the
    machine.

    \b
      list   GET /coach/customers, page of 50 with its total      target 1.2
      item   POST an exercise to a workout block                  target 0.8
      week   GET a week of 50 clients in turn, each 7 blocks with
             6 items                                              target 0.8

    All servers run from the start; only one gets requests at a time. A round is one slot of wrk (1 s) of each arm;
    the order is reversed every other round; the first round warms up and is dropped. Every slot is checked for
    failures. Exit code 1 when the median ratio of one misses its target.
    """
    console = Console(stderr=True)
    if missing := [name for name in ("wrk", "taskset") if shutil.which(name) is None]:
        raise click.ClickException(
            f"{missing[0]} is needed: install it (Debian, Ubuntu: apt-get install wrk util-linux)"
        )
    allowed = sorted(os.sched_getaffinity(0))
    cores = allowed[0], allowed[min(1, len(allowed) - 1)]
    chosen = [(kind, number) for kind in (only or KINDS) for number in connections]
    matches = {(kind, number): Match(KINDS[kind][0], number, KINDS[kind][1]) for kind, number in chosen}
    load = [os.getloadavg()[0]]
    try:
        with prepared(clients, cores, console) as bench:
            memory: Memory = {"idle": bench.memory()}
            measured(bench, matches, rounds, console)
            memory["after"] = bench.memory()
    except (DatabaseUnavailable, slots.BadSlot) as error:
        raise click.ClickException(str(error)) from None
    load.append(os.getloadavg()[0])
    by_server = {name: {when: figures[name] for when, figures in memory.items()} for name in memory["idle"]}
    setting = (
        f"{clients} clients; {rounds} rounds of 1 s slots, one more to warm up; service (LOG_LEVEL=info, JSON lines to a "
        f"file) and bare on core {cores[0]}, mongod and wrk on core {cores[1]}. Medians of the rounds; the ratio as minimum"
        f" / median / maximum. CPU per request: of the server, of mongod. Load average {load[0]:.1f} before, {load[1]:.1f}"
        " after: well over 2 means that other programs disturbed it."
    )
    show(Console(width=None if sys.stdout.isatty() else 150), list(matches.values()), by_server, setting)
    write(file, list(matches.values()), by_server, {"rounds": rounds, "clients": clients, "cores": cores, "load": load})
    click.echo(f"Every slot: {file}")
    sys.exit(0 if all(match.reached for match in matches.values()) else 1)


if __name__ == "__main__":
    main()
