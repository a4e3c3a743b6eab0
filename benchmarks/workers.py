"""`python -m benchmarks.workers`: CPU a request, idle CPU and memory of one process and of several workers."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import click
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks import slots, world
from benchmarks.processes import Processes, memory_mb, processes_of
from benchmarks.servers import Server, child_named, running_service, temporary_settings
from coaching_service.settings import Settings

TARGET = 1.10
KINDS = {"list": "GET customers, page of 50", "week": "GET calendar week", "item": "POST witems"}
_LIST = "/coach/customers?archived=false&pageSize=50&pageNum=1"
_IDLE_SECONDS = 5.0


@dataclass
class Arm:
    """Processes with a database of their own, and what they have measured: CPU in microseconds a request, by kind."""

    name: str
    servers: list[Server]
    processes: list[Processes]
    company: world.World
    files: dict[str, list[str]]
    sent: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    cpu: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    rate: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    least_share: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def used(self) -> dict[int, float]:
        """The seconds of CPU that each process has used."""
        return {pid: seconds for each in self.processes for pid, seconds in each.cpu().items()}

    def run(self, kind: str, connections: int, mongod: int, *, counts: bool) -> None:
        """Run one slot, with the connections shared by the servers."""
        before = self.used()
        with ThreadPoolExecutor() as threads:
            run = partial(self._run_on, kind, connections // len(self.servers), mongod)
            results = list(threads.map(run, self.servers))
        used = {pid: seconds - before[pid] for pid, seconds in self.used().items()}
        requests = sum(slot.requests for slot in results)
        self.sent[kind] += requests
        if counts:
            self.cpu[kind].append(sum(used.values()) / requests * 1e6)
            self.rate[kind].append(sum(slot.rate for slot in results))
            by_worker = [used[pid] for each in self.processes for pid in each.workers]
            self.least_share[kind].append(min(by_worker) / max(sum(by_worker), 0.01))

    def _run_on(self, kind: str, connections: int, mongod: int, server: Server) -> slots.Slot:
        arguments = ["-H", f"X-API-Key: {self.company.key}"]
        if kind == "list":
            arguments.append(server.base_url + _LIST)
        else:
            paths, *body = self.files[kind]
            script = str(Path(__file__).with_name("in_turn.lua"))
            method = "POST" if body else "GET"
            arguments += ["-s", script, server.base_url, "--", method, paths, str(self.sent[kind]), *body]
        return slots.run(arguments, connections, server.pid, mongod)


def prepare(
    stack: ExitStack, name: str, workers: int, count: int, shared: Settings, clients: int, cores: str, console: Console
) -> Arm:
    """Start one arm: `count` services, each with so many workers."""
    folder = shared.data_dir / name
    folder.mkdir()
    settings = shared.model_copy(update={"mongodb_database": name.replace(" ", "_"), "data_dir": folder})
    key = uvloop.run(world.company(settings, clients, console))
    servers = [
        stack.enter_context(running_service(settings, cores, f"{name} {number}", WORKERS=str(workers)))
        for number in range(count)
    ]
    company = uvloop.run(world.schedule(settings, servers[0].base_url, key))
    processes = [processes_of(server, workers) for server in servers]
    return Arm(name, servers, processes, company, world.write_for_wrk(company, folder))


def show_cpu(console: Console, arms: list[Arm], kinds: list[str]) -> bool:
    """Print CPU a request; returns whether the target is reached."""
    table = Table(title="CPU us a request, of all processes of an arm: medians")
    single, several, separate = arms
    for heading in ("Request", *(arm.name for arm in arms), "Workers / one", "Workers / separate", "Least busy worker"):
        table.add_column(heading)
    reached = True
    for kind in kinds:
        ratio = median(several.cpu[kind]) / median(single.cpu[kind])
        reached = reached and ratio <= TARGET
        table.add_row(
            KINDS[kind],
            *(f"{median(arm.cpu[kind]):.0f} ({median(arm.rate[kind]):.0f} req/s)" for arm in arms),
            f"{ratio:.2f} (target {TARGET:.2f})",
            f"{median(several.cpu[kind]) / median(separate.cpu[kind]):.2f}",
            f"{median(several.least_share[kind]):.0%} of CPU",
        )
    console.print(table)
    return reached


def show_idle(console: Console, arms: list[Arm]) -> None:
    """Print what the processes take while there are no requests."""
    table = Table(title=f"Idle: CPU over {_IDLE_SECONDS:.0f} s, memory after the requests")
    for heading in ("Arm", "Process", "CPU %", "Resident MB", "Private MB"):
        table.add_column(heading)
    before = [arm.used() for arm in arms]
    time.sleep(_IDLE_SECONDS)
    for arm, began in zip(arms, before, strict=True):
        supervisors = [each.supervisor for each in arm.processes]
        for pid, seconds in arm.used().items():
            resident, private = memory_mb(pid)
            kind = "supervisor" if pid in supervisors else "worker"
            cpu = f"{(seconds - began[pid]) / _IDLE_SECONDS:.1%}"
            table.add_row(arm.name, kind, cpu, f"{resident:.0f}", f"{private:.0f}")
    console.print(table)


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Counted rounds.")
@click.option("--workers", type=click.IntRange(2), default=2, show_default=True)
@click.option("--clients", type=click.IntRange(200), default=1_000, show_default=True)
@click.option("--connections", type=click.IntRange(1), default=16, show_default=True)
@click.option("--only", type=click.Choice(list(KINDS)), multiple=True, help="Only these; repeatable.")
@click.option("--spread", is_flag=True, help="All processes on all cores, instead of the services on the first.")
def main(rounds: int, workers: int, clients: int, connections: int, only: tuple[str, ...], spread: bool) -> None:
    """Compare one process with several workers on the same core, each arm on a database of its own.

    The third arm is as many separate processes, each with its share of the connections: what only several processes
    cost, without a supervisor. CPU a request is the measure. Slots of one second, every other round reversed, one to
    warm up. Exit code 1 when workers take more than 1.10 times the CPU of one process.
    """
    console = Console(width=140)
    allowed = sorted(os.sched_getaffinity(0))
    cores = allowed[0], allowed[min(1, len(allowed) - 1)]
    if not spread:
        os.sched_setaffinity(0, {cores[1]})
    of_services = ",".join(map(str, allowed)) if spread else str(cores[0])
    kinds = list(only or KINDS)
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        mongod = child_named("mongod")
        arms = [
            prepare(stack, name, number, times, settings, clients, of_services, console)
            for name, number, times in (("one process", 1, 1), ("workers", workers, 1), ("separate", 1, workers))
        ]
        time.sleep(_IDLE_SECONDS)  # changes of the preparation are numbered
        for number in range(rounds + 1):
            for kind in kinds:
                for arm in arms if number % 2 else reversed(arms):
                    arm.run(kind, connections, mongod, counts=number > 0)
        reached = show_cpu(console, arms, kinds)
        show_idle(console, arms)
        console.print(f"Load average {os.getloadavg()[0]:.1f}; {connections} connections, {clients} clients")
    raise SystemExit(0 if reached else 1)


if __name__ == "__main__":
    main()
