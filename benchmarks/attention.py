"""`python -m benchmarks.attention`: what the attention list costs compared with the list of clients, and its renewal."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, datetime, timedelta
from typing import Any

import click
import uvloop
from rich.console import Console

from benchmarks.readings import Caller, Request, measure, show
from benchmarks.schedule import create_week
from benchmarks.servers import running_service, temporary_settings
from coaching_service import features, runtime
from coaching_service.core.database.context import Context
from coaching_service.core.database.embedded import DatabaseUnavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.library.exercises import shared
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.team import service as team
from coaching_service.progress.attention.renewal import renew_daily
from coaching_service.seeding import seed_clients
from coaching_service.settings import Settings

TARGET = 2.0
_LIST = "/coach/attention?limit=20"
_BATCH = 1_000  # workouts in one insert
_LONG_AGO = datetime(2000, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone
assert features.ROUTES  # the consequences of a change of schedule are subscribed there


def requests() -> list[Request]:
    """The requests: the first page of the clients, then attention lists."""
    paths = {
        "clients, page of 20": "/coach/customers?archived=false&pageSize=20&pageNum=1",
        "attention, 20": _LIST,
        "attention, 20, one reason": f"{_LIST}&reason=inactive",
        "attention, 20, two reasons": f"{_LIST}&reason=inactive&reason=missed_workout",
        "attention, 20, one group": f"{_LIST}&groups=Strength",
        "attention, 20, without a trainer": f"{_LIST}&assignedTo=none",
    }
    names = list(paths)
    return [Request(name, "GET", path, TARGET if name == names[1] else None) for name, path in paths.items()]


async def prepare(settings: Settings, clients: int, workouts: int) -> tuple[str, float]:
    """Create a company with clients and their workouts; returns its key, and the seconds to renew all figures."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        await shared.publish(services)
        owner = await team.create_company(Context(services), "Bench", "Olga", "owner@example.com", "no hash")
        ctx = Context(services).acting_as(owner)
        calendar = await create_week(ctx)
        await seed_clients(services, ctx, clients)
        blocks, customers = services.db["workoutBlocks"], services.db["customers"]
        stored = await blocks.find({"customerId": calendar.customer_id}).to_list(None)
        ids = [client["_id"] async for client in customers.find({"companyId": ctx.company_id}, {"_id": 1})]
        chance = random.Random(1)
        copies = [_copy(chance, chance.choice(stored), client, ctx.caller.today()) for client in ids * workouts]
        for first in range(0, len(copies), _BATCH):
            await blocks.insert_many(copies[first : first + _BATCH])
        await customers.update_many({"companyId": ctx.company_id}, {"$set": {"figuresUntil": _LONG_AGO}})
        began = time.perf_counter()
        again: RunAgain | None = RunAgain(progress={"last": None})
        while again is not None:
            again = await renew_daily(services, Job(ObjectId(), again.progress or {}, 1, ctx.company_id))
        return str((await api_keys.create(ctx, "Bench"))["key"]), time.perf_counter() - began


def _copy(chance: random.Random, block: dict[str, Any], client: ObjectId, today: date) -> dict[str, Any]:
    """A workout like `block` of another client, on a date of the last or the next month; half of the past are done."""
    day = today + timedelta(days=chance.randint(-60, 20))
    is_done = day < today and chance.random() < 0.5
    items = [{**item, "_id": ObjectId(), "isCompleted": is_done} for item in block["items"]]
    totals = {"sets": 18, "reps": 180, "volumeLoad": 10_800, "exercises": []}
    return {
        **block,
        "_id": ObjectId(),
        "customerId": client,
        "date": str(day),
        "items": items,
        "done": totals if is_done else None,
    }


@contextmanager
def prepared(clients: int, workouts: int) -> Iterator[tuple[Caller, float]]:
    """Start the database and the service, the service on a core of its own where there are two."""
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        key, seconds = uvloop.run(prepare(settings, clients, workouts))
        service = stack.enter_context(running_service(settings, min(os.sched_getaffinity(0))))
        caller = Caller(service.base_url, key)
        _wait_until_ready(caller)
        yield caller, seconds


def _wait_until_ready(caller: Caller, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            caller.send(Request("ready", "GET", "/readyz"), 0)
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)  # between attempts to reach a service that is starting
        else:
            return


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=200, show_default=True, help="Counted rounds.")
@click.option("--clients", type=click.IntRange(100), default=10_000, show_default=True)
@click.option("--workouts", type=click.IntRange(1), default=8, show_default=True, help="Workouts of each client.")
def main(rounds: int, clients: int, workouts: int) -> None:
    """Compare the attention list of a company with many clients with the first page of its list of clients.

    Over HTTP, one request at a time, in turn. The list may take twice the time of the page. Also shows how long it
    takes to renew the figures and reasons of all clients, as once a day. Exit code 1 when the target is missed.
    """
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        with prepared(clients, workouts) as (caller, seconds):
            compared = requests()
            measure(caller, compared, rounds)
    except DatabaseUnavailable as error:
        raise click.ClickException(str(error)) from None
    over = show(console, f"The attention list of {clients:,} clients relative to a page of clients", compared)
    console.print(f"Figures and reasons of all clients with {workouts} workouts each: {seconds:.1f} s.")
    console.print(f"{rounds} rounds. Load average {os.getloadavg()[0]:.1f}; well over 2 means others disturbed it.")
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
