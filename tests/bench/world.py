"""What the benchmark asks about: a company with many clients, one busy week, and many blocks to add items to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from bson import ObjectId
from rich.console import Console

from coaching_service import runtime
from coaching_service.kernel.storage.context import Context, Services
from coaching_service.library.exercises import shared
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.team import service as team
from coaching_service.seeding import progress_bar, seed_clients
from coaching_service.settings import Settings

MONDAY = date(2026, 3, 2)
CLIENTS_WITH_BLOCKS, BLOCKS_EACH = 100, 100
ITEMS_A_DAY = 6


@dataclass(frozen=True)
class World:
    """The company's key, the client with a busy week, an item to add, and the paths to add it at."""

    key: str
    client: str
    item: dict[str, Any]
    item_paths: list[str]


class Api:
    """The service, asked with the company's key."""

    def __init__(self, base_url: str, key: str) -> None:
        self.http = aiohttp.ClientSession(base_url, headers={"X-API-Key": key})

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of a successful answer."""
        async with self.http.request(method, path, json=body) as response:
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {await response.text()}")
            return await response.json()


async def company(settings: Settings, clients: int, console: Console) -> str:
    """Make the company with its clients, straight into the database; gives its key."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        await shared.publish(services)
        ctx = Context(services)
        owner = await team.found_company(ctx, "Bench", "Olga Owner", "owner@example.com", "correct horse battery")
        ctx = ctx.acting_as(owner)
        with progress_bar(console, clients) as progress:
            await seed_clients(services, ctx, clients, progress)
        return str((await api_keys.create(ctx, "Bench"))["key"])


async def schedule(settings: Settings, base_url: str, key: str) -> World:
    """Fill calendars: one week through the service, and empty blocks that are copies of one it made."""
    api = Api(base_url, key)
    async with api.http, runtime.open_services(settings) as services:
        listed = await api.call("GET", "/exercises/unified?pageSize=50&pageNum=1")
        exercises = [exercise["_id"] for exercise in listed["docs"]]
        clients = []
        for page in range(1, CLIENTS_WITH_BLOCKS // 50 + 2):
            found = await api.call("GET", f"/coach/customers?archived=false&pageSize=50&pageNum={page}")
            clients += [client["_id"] for client in found["docs"]]
        busy, *others = clients[: CLIENTS_WITH_BLOCKS + 1]
        for day in range(7):
            block = await _block(api, busy, MONDAY + timedelta(day))
            for at in range(ITEMS_A_DAY):
                # One item a day is a task, the others are different exercises.
                item = exercise_item(exercises[(day * 3 + at) % len(exercises)]) if at else _TASK
                await api.call("POST", f"/coach/customers/{busy}/wblocks/{block}/witems", item)
        paths = await _copies(services, await _block(api, others[0], MONDAY), others)
        return World(key, busy, exercise_item(exercises[0]), paths)


async def _block(api: Api, client: str, day: date) -> str:
    created = await api.call("POST", f"/coach/customers/{client}/wblocks", {"name": "Legs", "date": str(day)})
    return str(created["_id"])


async def _copies(services: Services, block: str, clients: list[str]) -> list[str]:
    """Copies of an empty block for each of `clients`, one a day; the paths of their items."""
    blocks = services.db["workoutBlocks"]
    pattern = await blocks.find_one({"_id": ObjectId(block)})
    assert pattern is not None
    paths = []
    for client in clients:
        copies = [
            pattern | {"_id": ObjectId(), "customerId": ObjectId(client), "date": str(MONDAY + timedelta(days))}
            for days in range(BLOCKS_EACH)
        ]
        await blocks.insert_many(copies)
        paths += [f"/coach/customers/{client}/wblocks/{copy['_id']}/witems" for copy in copies]
    return paths


_TASK = {"type": "TASK", "taskFields": {"title": "Walk", "description": "Half an hour"}}


def exercise_item(exercise: str) -> dict[str, Any]:
    """An exercise with a warm-up and three working sets."""
    sets = [
        {"type": "reps_load", "index": 1, "minPlannedReps": 12, "maxPlannedReps": 12, "load": 40, "isWarmup": True},
        *(
            {"type": "reps_load", "index": at, "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60, "rest": 90}
            for at in (2, 3, 4)
        ),
    ]
    return {"type": "EXERCISE", "exerciseId": exercise, "exerciseSets": sets, "exerciseInstructions": "Pause below"}


def write_for_wrk(world: World, folder: Path) -> tuple[str, str]:
    """The paths and the body of the items, as files that add_items.lua reads; gives their names."""
    paths, body = folder / "paths.txt", folder / "item.json"
    paths.write_text("\n".join(world.item_paths) + "\n")
    body.write_text(json.dumps(world.item))
    return str(paths), str(body)
