"""Calls of tools: their messages, and workouts of which each item is logged once.

`log_workout` asks for a confirmation before it replaces a log, and writes nothing until then. So each measured call is
about another item, and each arm has workouts of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from bson import ObjectId
from motor.motor_asyncio import AsyncIOMotorClient

from benchmarks.__main__ import Bench
from benchmarks.mcp_messages import MODERN, envelope
from benchmarks.peers.requests import ONE_SIDED_OF_WRITES, Arm, Kind, Requests, first_difference, own_bodies, plain
from benchmarks.peers.written import LOG
from benchmarks.world import MONDAY, Api

_SETS = "8, 8, 8, 8 @60kg"
_HEAVIER = 100
_AT_ONCE = 8  # clients whose workout is logged with heavier loads; a busy machine refuses many more
Document = dict[str, Any]


def headers_of(tool: str) -> dict[str, str]:
    """The headers of a call of a tool."""
    return {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }


def call_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """The body of a call of a tool, one line of JSON."""
    params = {"name": tool, "arguments": arguments, "_meta": envelope()}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


# --- logs ------------------------------------------------------------------------------------------------------------


async def write_logs(bench: Bench, uri: str, folder: Path, calls: int, arms: Sequence[Arm]) -> list[str]:
    """Add workouts, and write at least `calls` calls of log_workout for each arm; returns the files.

    The workouts are copies of busy days for the clients to whom items are added, on days before. Calls that follow each
    other are about different clients. One workout of each client is logged with heavier loads first, so that no
    measured log beats a personal record. Raises RuntimeError if that fails.
    """
    blocks = AsyncIOMotorClient(uri)["bench"]["workoutBlocks"]
    clients = list(dict.fromkeys(path.split("/")[3] for path in bench.company.item_paths))
    busy_days = blocks.find({"items.5": {"$exists": True}, "date": str(MONDAY)}, sort=[("_id", 1)])
    patterns = await busy_days.to_list(None)
    exercises = len(_exercises(patterns[0]))
    days_each = -(-calls // (len(clients) * exercises))
    files = [folder / "mcp-log.txt", folder / "mcp-log.jsonl"]
    files[0].write_text("/mcp\n" * (days_each * len(clients) * exercises))
    days = [_day(patterns, clients, number) for number in range(days_each * len(arms) + 1)]
    for day in days:
        await blocks.insert_many(day)
    for number, arm in enumerate(arms):
        own = days[number * days_each : (number + 1) * days_each]
        own_bodies(files[1], arm).write_text("".join(f"{line}\n" for line in calls_of(own)))
    api = Api(bench.service.base_url, bench.company.key)
    async with api.http:
        for at in range(0, len(clients), _AT_ONCE):
            await asyncio.gather(*(_log_heavier(api, block) for block in days[-1][at : at + _AT_ONCE]))
    return [str(file) for file in files]


def _day(patterns: Sequence[Document], clients: Sequence[str], number: int) -> list[Document]:
    """A workout of each client, `number` days and one before the first busy day."""
    day = str(MONDAY - timedelta(days=number + 1))
    return [
        _copied(patterns[at % len(patterns)]) | {"customerId": ObjectId(client), "date": day}
        for at, client in enumerate(clients)
    ]


def _copied(block: Document) -> Document:
    return block | {"_id": ObjectId(), "items": [item | {"_id": ObjectId()} for item in block["items"]]}


def _exercises(block: Document) -> list[Document]:
    return [item for item in block["items"] if item["type"] == "EXERCISE"]


def calls_of(days: Iterable[Sequence[Document]]) -> Iterable[str]:
    """The calls that log each exercise of the workouts, one client after another."""
    for day in days:
        for items in zip(*map(_exercises, day), strict=True):
            for block, item in zip(day, items, strict=True):
                known = {"customerId": str(block["customerId"]), "workoutId": str(block["_id"])}
                yield call_of("log_workout", known | {"text": f"#{item['_id']}: {_SETS}"})


async def _log_heavier(api: Api, block: Document) -> None:
    """Log each exercise of a workout through the service, which creates the personal records."""
    sets = [done | {"load": _HEAVIER} for done in LOG["customerSets"]]
    for item in _exercises(block):
        path = f"/coach/customers/{block['customerId']}/wblocks/{block['_id']}/witems/{item['_id']}/log"
        await api.call("PUT", path, LOG | {"customerSets": sets})


def compare_logs(requests: Requests, kind: str, of_kind: Kind, arms: Sequence[Arm]) -> list[str]:
    """Send the first call of each arm, and return where the logs that the service then reads differ.

    Raises RuntimeError if a call fails.
    """
    logs: dict[str, Any] = {}
    for arm in arms:
        requests.first(kind, of_kind, arm)
        logs[arm.label] = _read_log(requests, kind, arm)
    ours, *theirs = logs
    if len(logs[ours].get("customerSets", ())) != len(LOG["customerSets"]):
        return [f"{kind}: {ours} has not logged the sets"]
    differences = {arm: first_difference(logs[ours], logs[arm]) for arm in theirs}
    return [f"{kind}: {ours} and {arm}: {each}" for arm, each in differences.items() if each is not None]


def _read_log(requests: Requests, kind: str, arm: Arm) -> Any:
    """What the service reads of the item that the first call of an arm logs."""
    file = requests.bodies(kind, arm)
    assert file is not None
    sent = json.loads(Path(file).read_text().split("\n", 1)[0])["params"]["arguments"]
    item_id = re.findall(r"[0-9a-f]{24}", sent["text"])[0]
    block = requests.read(kind, f"/coach/customers/{sent['customerId']}/wblocks/{sent['workoutId']}")
    [item] = [each for each in block["items"] if each["_id"] == item_id]
    return plain({name: item[name] for name in ("isCompleted", "comment", "customerSets")}, ONE_SIDED_OF_WRITES)
