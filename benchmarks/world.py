"""The data of the benchmark: a company with many clients, some busy weeks, and many blocks to add items to."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any

import aiohttp
from bson import ObjectId
from rich.console import Console

from coaching_service import runtime
from coaching_service.core.auth import Vault, parse_master_key
from coaching_service.core.database.context import Context, Services
from coaching_service.library.exercises import service as shared
from coaching_service.people import api_keys, team
from coaching_service.seeding import progress_bar, seed_clients
from coaching_service.settings import Settings

MONDAY = date(2026, 3, 2)
BUSY_CLIENTS = 50
CLIENTS_WITH_BLOCKS, BLOCKS_EACH = 100, 100
DAYS, ITEMS_A_DAY = 7, 6
_ATTEMPTS = 10


@dataclass(frozen=True)
class World:
    """The company's key, the paths of busy weeks, an item to add, and the paths to add it at."""

    key: str
    weeks: list[str]
    item: dict[str, Any]
    item_paths: list[str]


class Api:
    """A client of the service with the company's key."""

    def __init__(self, base_url: str, key: str) -> None:
        self.http = aiohttp.ClientSession(base_url, headers={"X-API-Key": key})

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the JSON of its successful response; again if the service is busy."""
        for attempt in range(_ATTEMPTS):
            async with self.http.request(method, path, json=body) as response:
                if response.status < 300:
                    return await response.json()
                said = f"{method} {path}: {response.status} {await response.text()}"
            if response.status != 503:
                break
            await asyncio.sleep(attempt)
        raise RuntimeError(said)


def lookup_key(settings: Settings) -> str:
    """The key of the hashes by which the service stores API keys, hexadecimal: for servers that have no Vault."""
    return Vault([parse_master_key(settings.secret_keys[0])])._keys[0].hash_key.hex()


async def company(settings: Settings, clients: int, console: Console) -> str:
    """Create the company with its clients, directly in the database; returns its key."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        await shared.publish_shared(services)
        ctx = Context(services)
        owner = await team.create_company(ctx, "Bench", "Olga Owner", "owner@example.com", "correct horse battery")
        ctx = ctx.acting_as(owner)
        with progress_bar(console, clients) as progress:
            await seed_clients(services, ctx, clients, progress)
        return str((await api_keys.create(ctx, "Bench"))["key"])


async def schedule(settings: Settings, base_url: str, key: str) -> World:
    """Fill calendars: a week and an empty block through the service, and copies of them directly in the database."""
    api = Api(base_url, key)
    async with api.http, runtime.open_services(settings) as services:
        listed = await api.call("GET", "/exercises/unified?pageSize=50&pageNum=1")
        exercises = [exercise["_id"] for exercise in listed["docs"]]
        clients = []
        for page in range(1, (BUSY_CLIENTS + CLIENTS_WITH_BLOCKS) // 50 + 1):
            page_of_clients = await api.call("GET", f"/coach/customers?archived=false&pageSize=50&pageNum={page}")
            clients += [client["_id"] for client in page_of_clients["docs"]]
        busy, others = clients[:BUSY_CLIENTS], clients[BUSY_CLIENTS:]
        for day in range(DAYS):
            block = await _block(api, busy[0], MONDAY + timedelta(day))
            for at in range(ITEMS_A_DAY):
                # One item a day is a task, the others are different exercises.
                item = exercise_item(exercises[(day * 3 + at) % len(exercises)]) if at else _TASK
                await api.call("POST", f"/coach/customers/{busy[0]}/wblocks/{block}/witems", item)
        weeks = await _copied_weeks(services, busy, [ObjectId(exercise) for exercise in exercises])
        paths = await _copies(services, await _block(api, others[0], MONDAY), others)
        return World(key, weeks, exercise_item(exercises[0]), paths)


async def _block(api: Api, client: str, day: date) -> str:
    created = await api.call("POST", f"/coach/customers/{client}/wblocks", {"name": "Legs", "date": str(day)})
    return str(created["_id"])


async def _copied_weeks(services: Services, clients: list[str], exercises: list[ObjectId]) -> list[str]:
    """Copy the first client's week to the others, each with other exercises; returns the paths of all weeks."""
    blocks = services.db["workoutBlocks"]
    week = await blocks.find({"customerId": ObjectId(clients[0])}).to_list(None)
    for number, client in enumerate(clients[1:], 1):
        another = dict(zip(exercises, exercises[number:] + exercises[:number], strict=True))
        copies = [block | {"_id": ObjectId(), "customerId": ObjectId(client)} for block in week]
        later = timedelta(hours=number)
        for block in copies:
            block["items"] = [_with_others(item, another, later) for item in block["items"]]
        await blocks.insert_many(copies)
    last = MONDAY + timedelta(DAYS - 1)
    await _set_last_workout_date(services, clients[1:], last)
    return [f"/coach/customers/{client}/wblock?startDate={MONDAY}&endDate={last}" for client in clients]


def _with_others(item: dict[str, Any], another: dict[ObjectId, ObjectId], later: timedelta) -> dict[str, Any]:
    """A copy of a stored item, made later, with another exercise wherever it refers to one."""
    copied = {
        name: [another.get(each, each) for each in value] if name.endswith("xerciseIds") else value
        for name, value in item.items()
    }
    exercise = {"exerciseId": another[item["exerciseId"]]} if "exerciseId" in item else {}
    times = {name: item[name] + later for name in ("createdAt", "updatedAt")}
    return copied | {"_id": ObjectId()} | times | exercise


async def _copies(services: Services, block: str, clients: list[str]) -> list[str]:
    """Copy an empty block for each of `clients`, one a day; returns the paths of their items, the clients in turn."""
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
    await _set_last_workout_date(services, clients, MONDAY + timedelta(BLOCKS_EACH - 1))
    return by_turns(paths)


def by_turns(paths: list[str]) -> list[str]:
    """The paths of one client after another, so that requests at the same time are about different clients."""
    of_client: dict[str, list[str]] = {}
    for path in paths:
        of_client.setdefault(path.split("/")[3], []).append(path)
    return [path for turn in zip_longest(*of_client.values()) for path in turn if path]


async def _set_last_workout_date(services: Services, clients: list[str], last: date) -> None:
    """Set the last scheduled date of clients, as the service does when a schedule changes."""
    where = {"_id": {"$in": [ObjectId(client) for client in clients]}}
    await services.db["customers"].update_many(where, {"$set": {"customerRoleData.lastWorkoutDate": str(last)}})


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


def write_for_wrk(world: World, folder: Path) -> dict[str, list[str]]:
    """Write the files that in_turn.lua reads; returns the file of paths by kind of request, and that of the body if any."""
    files = {name: folder / name for name in ("weeks.txt", "items.txt", "item.json")}
    files["weeks.txt"].write_text("\n".join(world.weeks) + "\n")
    files["items.txt"].write_text("\n".join(world.item_paths) + "\n")
    files["item.json"].write_text(json.dumps(world.item))
    return {"week": [str(files["weeks.txt"])], "item": [str(files["items.txt"]), str(files["item.json"])]}
