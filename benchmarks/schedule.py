"""`python -m benchmarks.schedule`: copying a week, compared with plain inserts of the same blocks in one transaction."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

import click
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.servers import temporary_settings
from coaching_service import features, runtime
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import creation
from coaching_service.people.team import service as team
from coaching_service.settings import Settings
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import CopyRequest
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.models import BlockPlan
from coaching_service.training.workouts.blocks.owners import ClientCalendar

TARGET = 2.0
_DAYS, _ITEMS = ("02", "03", "05", "06", "07"), 6
_WARM_UP = 20


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
    client = await creation.create_customer(ctx, {"name": "Ana"})
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


class Arms:
    """The operations that are compared; each puts the same week of blocks on the calendar."""

    def __init__(self, ctx: Context, calendar: ClientCalendar, stored: list[dict[str, Any]]) -> None:
        self._ctx, self._calendar, self._stored = ctx, calendar, stored

    async def bare(self) -> None:
        """Insert the documents with the driver, in one transaction."""
        documents = [{**block, "_id": ObjectId()} for block in self._stored]
        session = await self._ctx.db.client.start_session()
        async with session, session.start_transaction():
            await self._ctx.db["workoutBlocks"].insert_many(documents, session=session)

    async def insert(self) -> None:
        """Insert the blocks with the service: with identifiers, totals, and what every change of a schedule updates."""
        plans: list[Any] = [
            {name: block[name] for name in ("name", "isRest", "date", "items")} for block in self._stored
        ]
        await batches.write(self._ctx, self._calendar, batches.Batch(created=plans), [])

    async def copy(self) -> None:
        """Copy the week, 2.5 kg heavier, and return the new blocks."""
        request = CopyRequest("2026-03-02", "2026-03-08", "2026-03-09", progression={"load": {"add": 2.5}})
        result = await schedule.copy_days(self._ctx, self._calendar, request)
        if [len(block["items"]) for block in result["created"]] != [_ITEMS] * len(_DAYS):
            raise RuntimeError("the copy is not complete")


async def _seconds(work: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def measure(settings: Settings, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each operation: one of each a round, after which the new blocks are removed."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        assert features.ROUTES  # the consequences of a change of schedule are subscribed there
        owner = await team.create_company(Context(services), "Bench", "Olga", "olga@example.com", "no hash")
        ctx = Context(services).acting_as(owner)
        calendar = await create_week(ctx)
        # The company has stored loads, as every company has after its first week.
        fresh = await team.get_principal(services, owner.id)
        ctx = Context(services).acting_as(fresh or owner)
        blocks = services.db["workoutBlocks"]
        stored = await blocks.find({"customerId": calendar.customer_id}).sort("date").to_list(None)
        arms = Arms(ctx, calendar, stored)
        names = ("bare", "insert", "copy")
        seconds: dict[str, list[float]] = {name: [] for name in names}
        originals = {"$nin": [block["_id"] for block in stored]}
        for number in range(rounds + _WARM_UP):
            for name in names if number % 2 else reversed(names):
                took = await _seconds(getattr(arms, name))
                await blocks.delete_many({"customerId": calendar.customer_id, "_id": originals})
                if number >= _WARM_UP:
                    seconds[name].append(took)
    return seconds


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=300, show_default=True)
def main(rounds: int) -> None:
    """Compare copying a week of 5 blocks with 30 items with plain inserts of the same blocks, without HTTP.

    Each is one transaction. The driver's arm only inserts; the service's insert shows how much of the difference every
    operation of the service has. Exit code 1 when the median ratio to the driver's insert misses its target.
    """
    with temporary_settings() as settings:
        seconds = uvloop.run(measure(settings, rounds))
    ratios = {name: median(seconds["copy"]) / median(seconds[name]) for name in seconds}
    table = Table(title=f"A week of {len(_DAYS)} blocks with {len(_DAYS) * _ITEMS} items, {rounds} rounds")
    for column in ("Operation", "Median ms", "Copy compared with it"):
        table.add_column(column)
    for name, about in (("bare", "Driver"), ("insert", "Service, insert"), ("copy", "Service, copy with progression")):
        table.add_row(about, f"{median(seconds[name]) * 1000:.2f}", f"{ratios[name]:.2f}")
    console = Console()
    console.print(table)
    console.print(f"Load average {os.getloadavg()[0]:.1f}; target {TARGET} compared with the insert of the driver")
    sys.exit(0 if ratios["bare"] <= TARGET else 1)


if __name__ == "__main__":
    main()
