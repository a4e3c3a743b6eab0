"""The servers that are compared, on one database, and what is sent to them."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import uvloop
from rich.console import Console

from benchmarks import world
from benchmarks.__main__ import Bench
from benchmarks.peers import mcp_calls, written
from benchmarks.peers.install import Programs
from benchmarks.peers.kinds import KINDS, arms_of
from benchmarks.peers.report import SERVICE
from benchmarks.peers.requests import Requests, own_bodies
from benchmarks.servers import (
    Server,
    child_named,
    environment_of,
    log_of,
    running_program,
    running_service,
    temporary_settings,
    wait_until_idle,
)
from coaching_service import runtime
from coaching_service.core.database.context import Context
from coaching_service.people import api_keys, team
from coaching_service.settings import Settings

_EVENTS, _EVENTS_AFTER = 100, 1
_NEW_CLIENTS = 500
_WEEKS = 100  # that each arm copies to, of each client
_WAIT_SECONDS = 120.0


@contextmanager
def prepared(
    clients: int, cores: tuple[int, int], programs: Programs, logs: int, console: Console
) -> Iterator[Requests]:
    """Start the database on the second core, with two companies, and all servers on the first.

    `logs`: how many calls of log_workout each of its arms gets, 0 if it is not measured.
    """
    os.sched_setaffinity(0, {cores[1]})  # of this process, and so of wrk and mongod
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        uri, folder = settings.mongodb_uri or "", settings.data_dir
        key = uvloop.run(world.company(settings, clients, console))
        with console.status("Starting the servers ..."):
            servers = _started(stack, settings, cores[0], programs)
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


def _started(stack: ExitStack, settings: Settings, core: int, programs: Programs) -> dict[str, Server]:
    common = environment_of(settings) | {"LOOKUP_KEY": world.lookup_key(settings)}
    bare = [sys.executable, "-m", "benchmarks.bare"]
    fastapi = [programs.python, "-m", "benchmarks.peers.fastapi_server"]
    started = {
        SERVICE: running_service(settings, core),
        **{
            name: running_program(name, program, common | own, core, log_of(settings, name))
            for name, program, own in (
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
    await written.write_logs(bench, uri, folder)
    await written.write_copies(bench, uri, folder)
    await written.create_indexes(uri)
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
        time.sleep(0.2)  # between two looks at the state; the deadline is above
    raise RuntimeError("the service does not number its changes")
