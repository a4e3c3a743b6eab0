"""What recording reads in the audit log costs: two services on one database, of which one records nothing, in turns."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from timeit import repeat

import click
import uvloop
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import slots, world
from benchmarks.__main__ import LIST
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
from benchmarks.slots import Slot
from coaching_service import __main__ as program
from coaching_service import runtime
from coaching_service.core import audit
from coaching_service.core.database.context import Context
from coaching_service.installation.embedded import DatabaseUnavailable
from coaching_service.people import team
from coaching_service.settings import Settings

TARGET = 1.03


def serve_without_recording() -> None:
    """Serve as the service does, but note no read."""

    def ignore(ctx: Context, kind: str) -> None:
        pass

    audit.record_access = ignore
    sys.argv[1:] = ["serve"]
    program.run()


async def time_recording(settings: Settings) -> float:
    """Return the microseconds of CPU that one call takes which notes the read of a list: the least of many."""
    async with runtime.open_services(settings) as services:
        [company_id] = await services.db["companies"].distinct("_id")
        ctx = Context(services, await team.get_owner(services, company_id))
        ctx.clients_seen.in_list = True
        services.pending_entries.take()
        best = min(repeat(lambda: audit.record_access(ctx, "customers"), time.process_time, number=1000, repeat=100))
        services.pending_entries.take()
        return best * 1000


def measure(rounds: int, clients: int, connections: int, console: Console) -> tuple[list[Slot], list[Slot], float]:
    """Return the slots with and without recording, one of each in a round, and the microseconds of one call.

    Every other round is in reverse order.
    """
    allowed = sorted(os.sched_getaffinity(0))
    cores = allowed[0], allowed[min(1, len(allowed) - 1)]
    os.sched_setaffinity(0, {cores[1]})  # of this process, and so of wrk and mongod
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        key = uvloop.run(world.company(settings, clients, console))
        silent = running(
            "without", ["benchmarks.audit", "--serve"], environment_of(settings), cores[0], log_of(settings, "without")
        )
        # The first service does the background work of all: with it, the two that are compared differ in nothing else.
        stack.enter_context(running_service(settings, cores[1], "background"))
        arms = stack.enter_context(running_service(settings, cores[0])), stack.enter_context(silent)
        with console.status("Waiting until the service has nothing to do in the background ..."):
            for server in arms:
                wait_until_idle([server.pid])
        database = child_named("mongod")

        def send(server: Server) -> Slot:
            arguments = ["-H", f"X-API-Key: {key}", server.base_url + LIST]
            return slots.run(arguments, connections, server.pid, database, seconds=2)

        measured: dict[Server, list[Slot]] = {server: [] for server in arms}
        for number in track(range(rounds + 1), "Measuring", console=console):
            for server in arms if number % 2 else reversed(arms):
                slot = send(server)
                if number:  # the first round warms up
                    measured[server].append(slot)
        return measured[arms[0]], measured[arms[1]], uvloop.run(time_recording(settings))


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=16, show_default=True, help="Counted rounds.")
@click.option("--clients", type=click.IntRange(50), default=1_000, show_default=True, help="Clients of the company.")
@click.option("--connections", type=click.IntRange(1), default=16, show_default=True)
@click.option("--serve", is_flag=True, hidden=True)
def main(rounds: int, clients: int, connections: int, *, serve: bool) -> None:
    """Compare a list of clients (page of 50) with and without recording who has read it.

    Target: at most 3 % of the throughput, as the median of the rounds. Exit code 1 when it is missed.
    """
    if serve:
        serve_without_recording()
    if missing := [name for name in ("wrk", "taskset") if shutil.which(name) is None]:
        raise click.ClickException(f"{missing[0]} is needed")
    load, console = os.getloadavg()[0], Console(stderr=True)
    try:
        *arms, microseconds = measure(rounds, clients, connections, console)
    except (DatabaseUnavailable, slots.BadSlot) as error:
        raise click.ClickException(str(error)) from None
    table = Table("", "With", "Without", "Ratio (least, median, most)", title="GET customers, page of 50")
    figures: dict[str, Callable[[Slot], float]] = {
        "Requests a second": lambda slot: slot.rate,
        "CPU of the service, us a request": lambda slot: slot.cpu,
        "CPU of MongoDB, us a request": lambda slot: slot.database_cpu,
    }
    costs = []
    for name, figure in figures.items():
        recording, silent = ([figure(slot) for slot in slots_of] for slots_of in arms)
        ratios = sorted(with_it / without for with_it, without in zip(recording, silent, strict=True))
        costs.append(median(ratios))
        shown = " / ".join(f"{each:.3f}" for each in (ratios[0], median(ratios), ratios[-1]))
        table.add_row(name, f"{median(recording):.0f}", f"{median(silent):.0f}", shown)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    share = microseconds / median(slot.cpu for slot in arms[1])
    click.echo(f"The call that notes a read, by itself: {microseconds:.1f} us, {share:.1%} of the CPU of a list")
    click.echo(f"{rounds} rounds of 2 s, {clients} clients, {connections} connections; load average {load:.1f} before")
    sys.exit(0 if 1 / costs[0] <= TARGET else 1)


if __name__ == "__main__":
    main()
