"""The files of the requests that write: logs, and copies of a week, with the indexes of what bare handlers write."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClient

from benchmarks.__main__ import Bench
from benchmarks.world import MONDAY

LOGGED_ITEMS = 500
_COPIES = 20
_SETS = [{"type": "reps_load", "index": index, "reps": 8, "load": 60} for index in (1, 2, 3, 4)]
LOG: dict[str, Any] = {"isCompleted": True, "customerSets": _SETS}


async def write_copies(bench: Bench, uri: str, folder: Path) -> None:
    """The requests that copy five days of busy clients to other weeks."""
    blocks = AsyncIOMotorClient(uri)["bench"]["workoutBlocks"]
    where = {"items.5": {"$exists": True}, "date": {"$gte": str(MONDAY), "$lte": str(MONDAY + timedelta(4))}}
    clients = [str(client) for client in await blocks.distinct("customerId", where)]
    copies = [
        {
            "startDate": str(MONDAY),
            "endDate": str(MONDAY + timedelta(4)),
            "targetDate": str(MONDAY + timedelta(7 * number)),
            "progression": {"load": {"add": 2.5}},
        }
        for number in range(1, _COPIES + 1)
    ]
    paths = [f"/coach/customers/{client}/schedule/copy" for client in clients]
    files = [folder / "copy.txt", folder / "copy.jsonl"]
    files[0].write_text("\n".join(paths * len(copies)) + "\n")
    files[1].write_text("\n".join(json.dumps(copy) for copy in copies for _ in clients) + "\n")
    bench.files["copy"] = [str(each) for each in files]


async def create_indexes(uri: str) -> None:
    """The bare handlers' changes have the indexes of the service's."""
    database = AsyncIOMotorClient(uri)["bench"]
    for name, index in (await database["changes"].index_information()).items():
        if name != "_id_":
            options = {key: value for key, value in index.items() if key == "partialFilterExpression"}
            await database["bareChanges"].create_index(index["key"], name=name, **options)
    await database["bareUses"].create_index({"companyId": 1, "exerciseId": 1}, unique=True)


async def write_logs(bench: Bench, uri: str, folder: Path) -> None:
    """The paths of the items of the busy weeks, and the body of a log."""
    blocks = AsyncIOMotorClient(uri)["bench"]["workoutBlocks"]
    paths = [
        f"/coach/customers/{block['customerId']}/wblocks/{block['_id']}/witems/{item['_id']}/log"
        async for block in blocks.find({"items.5": {"$exists": True}, "date": {"$gte": str(MONDAY)}})
        for item in block["items"]
        if item["type"] == "EXERCISE"
    ]
    (folder / "logs.txt").write_text("\n".join((paths[::7] + paths[1::7])[:LOGGED_ITEMS]) + "\n")
    (folder / "log.json").write_text(json.dumps(LOG))
    bench.files["log"] = [str(folder / "logs.txt"), str(folder / "log.json")]
