"""`python -m benchmarks.workers`: CPU a request, idle CPU and memory of one process and of several workers."""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import click
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks import slots, world
from benchmarks.processes import Processes, memory_mb, processes_of
from benchmarks.servers import Server, child_named, running
from coaching_service.core.auth.secrets import new_master_key
from coaching_service.core.database.embedded import running_mongod
from coaching_service.settings import Settings

TARGET = 1.10
KINDS = {"list": "GET customers, page of 50", "week": "GET calendar week", "item": "POST witems"}
_LIST = "/coach/customers?archived=false&pageSize=50&pageNum=1"
_IDLE_SECONDS = 5.0


@dataclass
class Arm:
    """A service with a database of its own, and what it has measured: CPU in microseconds a request, by kind and connections."""

    workers: int
    server: Server
    processes: Processes
    company: world.World
    files: dict[str, list[str]]
    sent: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    cpu: defaultdict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    rate: defaultdict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    least_share: defaultdict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))

    def run(self, kind: str, connections: int, mongod: int, *, counts: bool) -> None:
        """Run one slot."""
        arguments = ["-H", f"X-API-Key: {self.company.key}"]
        if kind == "list":
            arguments.append(self.server.base_url + _LIST)
        else:
            paths, *body = self.files[kind]
            script = str(Path(__file__).with_name("in_turn.lua"))
            method = "POST" if body else "GET"
            arguments += ["-s", script, self.server.base_url, "--", method, paths, str(self.sent[kind]), *body]
        before = self.processes.cpu()
        slot = slots.run(arguments, connections, self.server.pid, mongod)
        used = {pid: seconds - before[pid] for pid, seconds in self.processes.cpu().items()}
        self.sent[kind] += slot.requests
        if counts:
            self.cpu[kind, connections].append(sum(used.values()) / slot.requests * 1e6)
            self.rate[kind, connections].append(slot.rate)
            by_worker = [used[pid] for pid in self.processes.workers]
            self.least_share[kind, connections].append(min(by_worker) / max(sum(by_worker), 0.01))


def prepare(stack: ExitStack, name: str, workers: int, uri: str, clients: int, cores: str, console: Console) -> Arm:
    """Start one arm on the database `name`."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coaching-bench-")))
    secret = new_master_key()
    settings = Settings(mongodb_uri=uri, mongodb_database=name, secret_keys=(secret,), data_dir=folder)
    key = uvloop.run(world.company(settings, clients, console))
    environment = {
        "MONGODB_URI": uri,
        "MONGODB_DATABASE": name,
        "SECRET_KEYS": secret,
        "DATA_DIR": str(folder),
        "LOG_FORMAT": "json",
        "WORKERS": str(workers),
    }
    server = stack.enter_context(
        running(f"{workers} workers", ["coaching_service", "serve"], environment, cores, folder / "service.log")
    )
    company = uvloop.run(world.schedule(settings, server.base_url, key))
    return Arm(workers, server, processes_of(server, workers), company, world.write_for_wrk(company, folder))


def show_cpu(console: Console, arms: list[Arm], kinds: list[str], connections: tuple[int, int]) -> bool:
    """Print CPU a request; returns whether the target is reached."""
    table = Table(
        title="CPU us a request, of all processes of an arm; medians, the ratio as minimum / median / maximum"
    )
    for heading in ("Request", "Conn.", *(f"{arm.workers} worker(s)" for arm in arms), "Ratio", "Least busy worker"):
        table.add_column(heading)
    reached = True
    for kind in kinds:
        for number in connections:
            pairs = (kind, connections[0]), (kind, number)
            measured = [arm.cpu[pair] for arm, pair in zip(arms, pairs, strict=True)]
            ratios = [several / single for single, several in zip(*measured, strict=True)]
            ratio = median(measured[1]) / median(measured[0])
            reached = reached and ratio <= TARGET
            table.add_row(
                KINDS[kind],
                f"{connections[0]}, {number}",
                *(
                    f"{median(arm.cpu[pair]):.0f} ({median(arm.rate[pair]):.0f} req/s)"
                    for arm, pair in zip(arms, pairs, strict=True)
                ),
                f"{min(ratios):.2f} / {ratio:.2f} / {max(ratios):.2f}",
                f"{median(arms[1].least_share[pairs[1]]):.0%} of CPU",
            )
    console.print(table)
    return reached


def show_idle(console: Console, arms: list[Arm]) -> None:
    """Print what the processes take while there are no requests."""
    table = Table(title=f"Idle: CPU over {_IDLE_SECONDS:.0f} s, memory after the requests")
    for heading in ("Arm", "Process", "CPU %", "Resident MB", "Private MB"):
        table.add_column(heading)
    before = [arm.processes.cpu() for arm in arms]
    time.sleep(_IDLE_SECONDS)
    for arm, began in zip(arms, before, strict=True):
        for pid, seconds in arm.processes.cpu().items():
            resident, private = memory_mb(pid)
            kind = "supervisor" if pid == arm.processes.supervisor else "worker"
            cpu = f"{(seconds - began[pid]) / _IDLE_SECONDS:.1%}"
            table.add_row(f"{arm.workers} worker(s)", kind, cpu, f"{resident:.0f}", f"{private:.0f}")
    console.print(table)


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Counted rounds.")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="1: a control.")
@click.option("--clients", type=click.IntRange(200), default=1_000, show_default=True)
@click.option("--connections", type=click.IntRange(1), default=16, show_default=True)
@click.option("--only", type=click.Choice(list(KINDS)), multiple=True, help="Only these; repeatable.")
@click.option("--spread", is_flag=True, help="All processes on all cores, instead of the services on the first.")
def main(rounds: int, workers: int, clients: int, connections: int, only: tuple[str, ...], spread: bool) -> None:
    """Compare one process with several workers on the same core, each arm on a database of its own.

    CPU a request is the measure: it is hardly affected by other programs, and tells what the supervisor, the shared
    socket and the changes between processes cost. Slots of one second, every other round reversed, one to warm up.
    The workers get as many connections as the one process, and as many for each of them: a process that has fewer
    requests at a time uses more CPU for each. Exit code 1 when a ratio is above 1.10.
    """
    console = Console(width=140)
    allowed = sorted(os.sched_getaffinity(0))
    cores = allowed[0], allowed[min(1, len(allowed) - 1)]
    if not spread:
        os.sched_setaffinity(0, {cores[1]})
    of_services = ",".join(map(str, allowed)) if spread else str(cores[0])
    kinds, both = list(only or KINDS), (connections, connections * workers)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coaching-bench-")))
        uri = stack.enter_context(running_mongod(folder / "data"))
        mongod = child_named("mongod")
        arms = [
            prepare(stack, f"bench{n}", number, uri, clients, of_services, console)
            for n, number in enumerate((1, workers))
        ]
        time.sleep(_IDLE_SECONDS)  # changes of the preparation are numbered
        for number in range(rounds + 1):
            for kind in kinds:
                slots_of = [(arms[0], both[0]), *((arms[1], each) for each in both)]
                for arm, each in slots_of if number % 2 else reversed(slots_of):
                    arm.run(kind, each, mongod, counts=number > 0)
        reached = show_cpu(console, arms, kinds, both)
        show_idle(console, arms)
        console.print(f"Load average {os.getloadavg()[0]:.1f}; {connections} connections, {clients} clients")
    raise SystemExit(0 if reached else 1)


if __name__ == "__main__":
    main()
