"""Kill, freeze, cut off and step down databases and processes while writers are busy, then compare what is stored.

    scripts/torture [--minutes N] [--writers N] [--fault NAME] [--no-backups] [--report FILE] [--folder DIR]

Three mongods and two processes of the service run on loopback, and backups are made one after another. Ends with 1 if
anything was lost, doubled or half done, if a request failed with another status than 503 or after more than 3 s, if
/readyz was wrong, if recovery took too long, if the service is not whole at the end (tests/support/drill.py), or if
the last backup cannot be restored; with 2 if the run did not complete.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from coaching_service import __version__, runtime
from coaching_service.core.auth import new_master_key
from coaching_service.core.database.context import Context, Services
from coaching_service.people import api_keys, team
from coaching_service.settings import Settings
from tests.reliability.deployment import Node
from tests.reliability.torture.backups import Backups
from tests.reliability.torture.database import ELECTION_SECONDS, Members
from tests.reliability.torture.faults import LONGEST_SECONDS, Faults
from tests.reliability.torture.ledger import Ledger
from tests.reliability.torture.load import record_readiness
from tests.reliability.torture.operations import BULK_CLIENTS, World, Writer
from tests.reliability.torture.processors import ProcessorTime
from tests.reliability.torture.report import Conditions, find_problems, write_report
from tests.reliability.torture.verification import Verification
from tests.support.service_process import until

NODES, PROGRAM_DAYS = 2, (1, 3, 5)
console = Console(stderr=True)


def main() -> int:
    """Run it and write the report."""
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="how long faults are caused (default: 30)")
    parser.add_argument("--writers", type=int, default=8, help="writers at the same time (default: 8)")
    parser.add_argument(
        "--fault", action="append", default=[], help="only faults with this text in their name; may be repeated"
    )
    parser.add_argument("--no-backups", action="store_true", help="make no backups meanwhile")
    parser.add_argument("--report", type=Path, help="write the report to this file too")
    parser.add_argument("--folder", type=Path, help="keep data and logs there (default: a temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).absolute()
        load = Load(arguments.minutes, arguments.writers, tuple(arguments.fault), with_backups=not arguments.no_backups)
        try:
            report, problems = asyncio.run(run(folder, load))
        except Exception as error:  # noqa: BLE001 - whatever ends the run is said in a sentence
            console.print(f"The run did not complete: {'; '.join(_reasons(error))}", highlight=False)
            return 2
    print(report)
    if arguments.report:
        arguments.report.write_text(report, "utf-8")
    return 1 if problems else 0


def _reasons(error: BaseException) -> list[str]:
    """What went wrong, of each error of a group."""
    if isinstance(error, BaseExceptionGroup):
        return [reason for each in error.exceptions for reason in _reasons(each)]
    return [f"{type(error).__name__}: {error}"]


@dataclass(frozen=True)
class Load:
    """What to run, for how many minutes. `faults`: texts in the names of those to cause, none for all."""

    minutes: float
    writers: int
    faults: tuple[str, ...]
    with_backups: bool

    @property
    def command(self) -> str:
        """The command that runs it."""
        options = "".join(f' --fault "{text}"' for text in self.faults) + ("" if self.with_backups else " --no-backups")
        return f"scripts/torture --minutes {self.minutes:g} --writers {self.writers}{options}"


async def run(folder: Path, chosen: Load) -> tuple[str, list[str]]:
    """Return the report and the problems."""
    members, ledger, world = Members(folder), Ledger(), World()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(members.close)
        await members.start_all()
        settings = Settings(
            mongodb_uri=members.uri,
            mongodb_database="torture",
            secret_keys=(new_master_key(),),
            data_dir=folder / "none",
        )
        services = await stack.enter_async_context(runtime.open_services(settings))
        key = await create_company(services)
        nodes = [Node(folder / f"service{number}", settings, key) for number in range(NODES)]
        stack.callback(end_all, nodes)
        await asyncio.gather(*(node.start() for node in nodes))
        async with nodes[0].session(1) as http:
            await create_world(http, world, chosen.writers * BULK_CLIENTS)
        began, processors = time.monotonic(), ProcessorTime.now()
        urls = [node.url for node in nodes]
        load = [Writer(number, urls, key, ledger, world) for number in range(chosen.writers + 1)]
        backups = Backups(settings, folder / "backups")
        await load_with_faults(members, nodes, ledger, load, chosen, backups)
        seconds, others = time.monotonic() - began, processors.share_of_others()
        await until(nodes[1].is_ready, "the service is ready")
        async with nodes[1].session(4) as http:
            verification = Verification(http, services, ledger, len(PROGRAM_DAYS))
            await verification.run()
        try:
            await nodes[1].require_whole()
        except AssertionError as error:
            verification.problems.append(f"The service is not whole after the faults: {error}")
        if chosen.with_backups:
            await backups.verify()
        mongodb = (await services.db.client.server_info())["version"]
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    conditions = Conditions(
        chosen.command, seconds, date, __version__, mongodb, os.cpu_count() or 1, ELECTION_SECONDS, others
    )
    problems = verification.problems + find_problems(ledger, conditions) + backups.problems
    checked = [*verification.checked.items(), *backups.counts()]
    return write_report(conditions, ledger, checked, problems), problems


async def load_with_faults(
    members: Members, nodes: list[Node], ledger: Ledger, load: list[Writer], chosen: Load, backups: Backups
) -> None:
    """Run writers, checks of readiness, backups and the faults at the same time; the last writer imports files."""
    seconds = chosen.minutes * 60
    end = time.monotonic() + seconds
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("Load", total=seconds)

        def report(fault: str) -> None:
            bar.update(task, description=fault, completed=seconds - (end - time.monotonic()))

        async def cause_faults() -> None:
            await Faults(members, nodes, ledger).run(end - LONGEST_SECONDS, report, chosen.faults)
            is_over.set()
            for check in checks:
                check.cancel()

        is_over = asyncio.Event()
        checks = [asyncio.create_task(record_readiness(number, node.url, ledger)) for number, node in enumerate(nodes)]
        async with asyncio.TaskGroup() as tasks:
            for writer in load[:-1]:
                tasks.create_task(writer.run(is_over))
            tasks.create_task(load[-1].run_imports(is_over))
            tasks.create_task(cause_faults())
            if chosen.with_backups:
                tasks.create_task(backups.run(is_over))


async def create_company(services: Services) -> str:
    """Create the indexes and a company; return its API key."""
    await runtime.make_indexes(services)
    owner = await team.create_company(Context(services), "Torture", "Olga", "olga@torture.test", "no hash")
    return str((await api_keys.create(Context(services).acting_as(owner), "Torture"))["key"])


async def create_world(http: aiohttp.ClientSession, world: World, clients: int) -> None:
    """Create what the writers use: clients, an exercise, and a program with three workouts."""
    create = creator(http)
    world.exercise = await create("/exercises", {"name": "Squat"})
    world.program = await create("/coach/programs", {"name": "Base"})
    for day in PROGRAM_DAYS:
        await create(f"/coach/programs/{world.program}/wblocks", {"name": f"Day {day}", "day": day})
    for number in range(clients):
        world.clients.append(await create("/coach/customers", {"name": f"Client {number}"}))


def creator(http: aiohttp.ClientSession) -> Callable[..., Any]:
    """Return a function that creates something and returns its identifier."""

    async def create(path: str, body: dict[str, object]) -> str:
        async with http.post(path, json=body) as response:
            document = await response.json()
            assert response.status == 201, document
            return str(document["_id"])

    return create


def end_all(nodes: list[Node]) -> None:
    """Kill the processes that still run."""
    for node in nodes:
        if node.process is not None:
            node.process.kill()
            node.process.wait()


if __name__ == "__main__":
    sys.exit(main())
