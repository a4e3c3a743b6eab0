"""`python -m benchmarks.midnight`: the daily renewal of figures of many companies in one time zone, and changes during it."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import click
import uvloop
from pymongo import MongoClient
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.servers import child_named, running_service, temporary_settings
from benchmarks.slots import cpu_seconds
from coaching_service import features, runtime
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.installation.embedded import DatabaseUnavailable
from coaching_service.library.exercises import service as exercises
from coaching_service.people import team
from coaching_service.people.customers import batch
from coaching_service.seeding import seed_clients
from coaching_service.settings import Settings
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.models import BlockPlan
from coaching_service.training.workouts.blocks.service import ClientCalendar

CPU_TARGET_MS, CHANGE_TARGET_SECONDS, SCALE_TARGET = 2.5, 10.0, 2.5
_PROBE_SECONDS, _LOOK_SECONDS, _START_SECONDS = 1.0, 0.1, 5.0
assert features.ROUTES  # the consequences of a change of schedule are subscribed there

_DAYS, _ITEMS = ("02", "03", "05", "06", "07"), 6


async def create_week(ctx: Context) -> ClientCalendar:
    """Create a client with a week of 5 blocks with 6 items of 3 sets each."""
    created = [
        await exercises.create(
            ctx,
            {
                "name": f"Exercise {number}",
                "aliases": [],
                "type": "strength",
                "level": None,
                "defaultInstructions": None,
                "videoLink": None,
                "tags": [],
                "muscleGroups": [],
                "equipment": None,
                "loadType": "load",
                "media": [],
            },
        )
        for number in range(_ITEMS)
    ]
    client = await batch.create_customer(ctx, {"name": "Ana"})
    calendar = ClientCalendar(client["_id"])
    planned = {"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60, "isWarmup": False}
    sets = [{"index": index, "rest": 90, "rpe": None, "rir": 2, "tempo": None, **planned} for index in (1, 2, 3)]
    items: list[Any] = [
        {"type": "EXERCISE", "exerciseId": each["_id"], "exerciseSets": sets, "exerciseInstructions": None}
        for each in created
    ]
    plans: list[BlockPlan] = [
        {"name": "Strength", "isRest": False, "date": f"2026-03-{day}", "items": items} for day in _DAYS
    ]
    await batches.write(ctx, calendar, batches.Batch(created=plans), [])
    return calendar


@dataclass(frozen=True)
class Code:
    """A version of the service: the folder with its code, and the field by which it marks a client as changed."""

    name: str
    folder: Path
    mark: str


@dataclass(frozen=True)
class Window:
    """What one or several processes of a version did in some seconds; `ages` are of the changes, in seconds."""

    code: str
    processes: int
    seconds: float
    renewed: int
    cpu: float
    database_cpu: float
    ages: tuple[float, ...]


async def prepare(settings: Settings, clients: int, workouts: int) -> None:
    """Create a company with clients and their workouts, as the service stores them."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        await exercises.publish_shared(services)
        owner = await team.create_company(Context(services), "Bench", "Olga", "owner@example.com", "no hash")
        ctx = Context(services).acting_as(owner)
        calendar = await create_week(ctx)
        blocks, customers = services.db["workoutBlocks"], services.db["customers"]
        week = await blocks.find({"customerId": calendar.customer_id}).to_list(None)
        await blocks.delete_many({})
        await customers.delete_many({})
        await seed_clients(services, ctx, clients)
        await customers.update_many(
            {}, {"$set": {"customerRoleData.isArchived": False, "timezone": None}, "$unset": {"figuresChangedAt": ""}}
        )
        chance, today = random.Random(1), ctx.caller.today()
        ids = [client["_id"] async for client in customers.find({}, {"_id": 1})]
        await blocks.insert_many([_copy(chance, chance.choice(week), client, today) for client in ids * workouts])


def _copy(chance: random.Random, block: dict[str, Any], client: ObjectId, today: date) -> dict[str, Any]:
    """A workout like `block` of another client, in the last three months or the next two weeks; most past ones are done."""
    day = today + timedelta(days=chance.randint(-90, 14))
    is_done = day < today and chance.random() < 0.8
    items = [{**item, "_id": ObjectId(), "isCompleted": is_done} for item in block["items"]]
    done = {"sets": 18, "reps": 180, "volumeLoad": 10_800, "exercises": []} if is_done else None
    return {**block, "_id": ObjectId(), "customerId": client, "date": str(day), "items": items, "done": done}


def multiply(db: Any, companies: int, progress: Progress) -> None:
    """Store so many companies like the first one, with the same clients and workouts under other identifiers.

    The clients of all companies are stored in any order, as they are added in the course of time.
    """
    stored = {name: list(db[name].find({})) for name in ("companies", "coaches", "customers", "workoutBlocks")}
    task = progress.add_task("Companies", total=companies - 1)
    customers = list(stored["customers"])
    db["customers"].delete_many({})
    for number in range(1, companies):
        ids = {each["_id"]: ObjectId() for documents in stored.values() for each in documents}
        copies = {name: [_under(each, ids, number) for each in documents] for name, documents in stored.items()}
        customers += copies.pop("customers")
        for name, documents in copies.items():
            db[name].insert_many(documents, ordered=False)
        progress.advance(task)
    random.Random(3).shuffle(customers)
    db["customers"].insert_many(customers, ordered=False)


def _under(document: dict[str, Any], ids: dict[ObjectId, ObjectId], number: int) -> dict[str, Any]:
    changed: dict[str, Any] = {
        name: ids.get(value, value) for name, value in document.items() if isinstance(value, ObjectId)
    }
    if document.get("email"):
        changed["email"] = f"{number}.{document['email']}"
    if "firstAccessHash" in document:
        changed["firstAccessHash"] = f"{number} {document['firstAccessHash']}"
    return {**document, **changed}


def measure(db: Any, code: Code, processes: int, seconds: float, settings: Settings) -> Window:
    """Start processes of a version, make all clients due since midnight, and let them renew for some seconds."""
    db["jobs"].delete_many({})
    db["customers"].update_many({}, {"$set": {"figuresUntil": now() + timedelta(days=1)}})
    with ExitStack() as stack:
        own = {"PYTHONPATH": str(code.folder), "PYTHONSAFEPATH": "1"}
        cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        pids = [
            stack.enter_context(running_service(settings, cores, f"service {number}", **own)).pid
            for number in range(processes)
        ]
        database = child_named("mongod")
        time.sleep(_START_SECONDS)  # starting is not measured
        before, began = (sum(map(cpu_seconds, pids)), cpu_seconds(database)), time.monotonic()
        midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
        change = {"$set": {"figuresUntil": midnight}, "$unset": {"figuresChangedAt": ""}}
        due = db["customers"].update_many({}, change).matched_count
        ages = _probe(db, code.mark, seconds)
        took, renewed = time.monotonic() - began, due - _count_due(db)
        spent = sum(map(cpu_seconds, pids)) - before[0], cpu_seconds(database) - before[1]
    return Window(code.name, processes, took, renewed, *spent, tuple(ages))


def _count_due(db: Any) -> int:
    count: int = db["customers"].count_documents(
        {"customerRoleData.isArchived": False, "figuresUntil": {"$lte": now()}}
    )
    return count


def _probe(db: Any, mark: str, seconds: float) -> list[float]:
    """Store a new client each second, and return for how long each has waited for its figures, at the end at least."""
    customers, chance = db["customers"], random.Random(2)
    examples = list(customers.find({}, limit=500))
    waiting: dict[ObjectId, float] = {}
    ages: list[float] = []
    end = time.monotonic() + seconds
    following = time.monotonic()
    while (clock := time.monotonic()) < end:
        if clock >= following:
            example = {**chance.choice(examples), "_id": ObjectId(), "firstAccessHash": str(ObjectId())}
            for name in ("attention", "figuresUntil", "figuresChangedAt", "email"):
                example.pop(name, None)
            customers.insert_one({**example, mark: now()})
            waiting[example["_id"]] = clock
            following += _PROBE_SECONDS
        where = {"_id": {"$in": list(waiting)}, "attention": {"$exists": True}}
        renewed = [client["_id"] for client in customers.find(where, {"_id": 1})]
        ages += [time.monotonic() - waiting.pop(each) for each in renewed]
        if len(ages) > 2 and not _count_due(db):
            break
        time.sleep(_LOOK_SECONDS)  # between two looks
    ages += [time.monotonic() - since for since in waiting.values()]
    customers.delete_many({"firstAccessHash": {"$regex": "^[0-9a-f]{24}$"}})
    return ages


def show(console: Console, windows: Sequence[Window], clients: int) -> list[str]:
    """Print the windows; returns what misses its target, of this version."""
    columns = ("Version", "Processes", "Clients renewed", "Clients/s", "CPU ms a client", "database", "Oldest change s")
    table = Table(*columns)
    for each in windows:
        own, database = _cpu_of(each), 1000 * each.database_cpu / max(each.renewed, 1)
        table.add_row(
            *(each.code, str(each.processes), f"{each.renewed:,} in {each.seconds:.0f} s", f"{_rate(each):.0f}"),
            *(f"{own:.2f}", f"{database:.2f}", f"{max(each.ages):.1f}"),
        )
    console.print(table)
    new = [each for each in windows if each.code == "this"]
    missed = []
    if max(map(_cpu_of, new)) > CPU_TARGET_MS:
        missed.append(f"more than {CPU_TARGET_MS} ms of CPU a client")
    if max(max(each.ages) for each in new) > CHANGE_TARGET_SECONDS:
        missed.append(f"a change waited for more than {CHANGE_TARGET_SECONDS:.0f} s")
    single, several = (max(map(_rate, [w for w in new if (w.processes == 1) is alone])) for alone in (True, False))
    console.print(
        f"Several processes renew {several / single:.2f} times as many clients as one; the target is {SCALE_TARGET}."
    )
    console.print(f"{clients:,} clients take one process {clients / single:.0f} s.")
    return missed


def _cpu_of(window: Window) -> float:
    return 1000 * window.cpu / max(window.renewed, 1)


def _rate(window: Window) -> float:
    return window.renewed / window.seconds


@contextmanager
def prepared(companies: int, clients: int, workouts: int, console: Console) -> Iterator[tuple[Any, Settings]]:
    """Start the database with the companies; yields it, and the settings of the service."""
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        uvloop.run(prepare(settings, clients, workouts))
        client: Any = stack.enter_context(MongoClient(settings.mongodb_uri))
        with Progress(console=console, disable=not console.is_terminal) as progress:
            multiply(client[settings.mongodb_database], companies, progress)
        yield client[settings.mongodb_database], settings


@click.command()
@click.option("--companies", type=click.IntRange(2), default=2_000, show_default=True)
@click.option("--clients", type=click.IntRange(1), default=30, show_default=True, help="Clients of each company.")
@click.option("--workouts", type=click.IntRange(1), default=8, show_default=True, help="Workouts of each client.")
@click.option("--seconds", type=click.FloatRange(5), default=30.0, show_default=True, help="Of each window.")
@click.option("--rounds", type=click.IntRange(1), default=2, show_default=True)
@click.option("--processes", type=click.IntRange(2), default=4, show_default=True, help="Compared with one.")
@click.option(
    "--before", type=click.Path(path_type=Path, exists=True), help="Folder with an earlier version, to compare."
)
def main(
    companies: int, clients: int, workouts: int, seconds: float, rounds: int, processes: int, before: Path | None
) -> None:
    """Renew the figures of companies whose clients have their midnight at the same moment, before they were spread.

    In each round, the earlier version, this one, and several processes of this one have some seconds each, on all cores
    that this program may use. Meanwhile a client is added each second, and the time until it has figures is measured.
    Exit code 1 when a target is missed that does not depend on the number of cores.
    """
    console = Console(width=None if sys.stdout.isatty() else 120)
    this = Code("this", Path(__file__).parents[1], "figuresChangedAt")
    runs = [(Code("before", before.absolute(), "figuresUntil"), 1)] if before else []
    runs += [(this, 1), (this, processes)]
    windows: list[Window] = []
    try:
        with prepared(companies, clients, workouts, console) as (db, settings):
            for number in range(rounds):
                for code, count in runs if number % 2 == 0 else reversed(runs):
                    windows.append(measure(db, code, count, seconds, settings))
                    console.print(f"{windows[-1].renewed:,} clients renewed by {code.name} ({count})", style="dim")
    except DatabaseUnavailable as error:
        raise click.ClickException(str(error)) from None
    missed = show(console, windows, companies * clients)
    console.print(
        f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}: more than the cores, and others disturbed it."
    )
    for each in missed:
        console.print(f"Missed: {each}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
