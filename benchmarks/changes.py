"""`python -m benchmarks.changes`: the cost of the change log."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import timedelta
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import click
import orjson
import uvloop
from motor.motor_asyncio import AsyncIOMotorClient
from rich.console import Console
from rich.table import Table

from benchmarks import slots, world
from benchmarks.__main__ import Bench, prepared
from benchmarks.servers import Server
from benchmarks.world import MONDAY

TARGET = 0.95
COPY_TARGET = 0.5
LOGGED_ITEMS = 500
_COPIES = 20
_SETS = [{"type": "reps_load", "index": index, "reps": 8, "load": 60} for index in (1, 2, 3, 4)]
LOG: dict[str, Any] = {"isCompleted": True, "customerSets": _SETS}
_EMBEDDED = "change in the document"
# By comparison: two arms, each a server, the prefix of its paths and the kind of request.
COMPARISONS = {
    "add an item": (("service", "/coach", "item"), ("bare", "/logged", "item"), TARGET),
    "log an item": (("service", "/coach", "log"), ("bare", "/logged", "log"), TARGET),
    "copy a week": (("service", "/coach", "copy"), ("bare", "/inserted", "insert"), COPY_TARGET),
    _EMBEDDED: (("bare", "/separate", "item"), ("bare", "/embedded", "item"), None),
}
Arm = tuple[str, str, str]


class Requests:
    """The files of requests, by kind and prefix, and how many requests each has had."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self._bench, self._folder = bench, folder
        self._sent: dict[Arm, int] = {}
        self._number = count()

    def sent(self, *words: str) -> int:
        """How many requests the arm with these words has had."""
        return sum(sent for arm, sent in self._sent.items() if set(words) <= set(arm))

    def run(self, arm: Arm, connections: int, seconds: int = 1) -> slots.Slot:
        """Run one slot of an arm."""
        name, prefix, kind = arm
        server: Server = getattr(self._bench, name)
        paths, body = self._bench.files[kind]
        own = self._folder / f"{prefix.strip('/')}-{kind}.txt"
        if not own.exists():
            lines = Path(paths).read_text().replace("/coach", prefix).splitlines()
            if kind == "log":
                lines = world.by_turns(lines)
            own.write_text("\n".join(lines) + "\n")
        method = "PUT" if kind == "log" else "POST"
        sent = self._sent.get(arm, 0)
        script = str(Path(__file__).with_name("in_turn.lua"))
        arguments = ["-H", f"X-API-Key: {self._bench.company.key}", "-s", script, server.base_url, "--"]
        slot = slots.run(
            [*arguments, method, str(own), str(sent), body], connections, server.pid, self._bench.mongod, seconds
        )
        self._sent[arm] = sent + slot.requests
        return slot


async def write_copies(bench: Bench, uri: str, folder: Path) -> None:
    """The requests that copy five days of busy clients to other weeks, and those that insert the same blocks."""
    blocks = AsyncIOMotorClient(uri)["bench"]["workoutBlocks"]
    where = {"items.5": {"$exists": True}, "date": {"$gte": str(MONDAY), "$lte": str(MONDAY + timedelta(4))}}
    weeks: dict[str, list[Any]] = {}
    async for block in blocks.find(where, {"_id": 0, "companyId": 0, "createdAt": 0, "updatedAt": 0}):
        block["items"] = [_as_sent(item) for item in block["items"]]
        block["date"] = f"2030{block['date'][4:]}"  # not among the blocks that are copied
        weeks.setdefault(str(block.pop("customerId")), []).append(block)
    copies = [
        {
            "startDate": str(MONDAY),
            "endDate": str(MONDAY + timedelta(4)),
            "targetDate": str(MONDAY + timedelta(7 * number)),
            "progression": {"load": {"add": 2.5}},
        }
        for number in range(1, _COPIES + 1)
    ]
    paths = [f"/coach/customers/{client}/schedule/copy" for client in weeks]
    bodies = {
        "copy": [json.dumps(copy) for copy in copies for _ in weeks],
        "insert": [orjson.dumps(week, default=str).decode() for week in weeks.values()],
    }
    for kind, of_kind in bodies.items():
        files = [folder / f"{kind}.txt", folder / f"{kind}.jsonl"]
        files[0].write_text("\n".join(paths * (len(of_kind) // len(paths))) + "\n")
        files[1].write_text("\n".join(of_kind) + "\n")
        bench.files[kind] = [str(each) for each in files]


def _as_sent(item: dict[str, Any]) -> dict[str, Any]:
    """A stored item without what the server adds."""
    added = ("_id", "createdAt", "updatedAt", "exerciseIds", "doneExerciseIds", "tally", "customerSets")
    return {name: value for name, value in item.items() if name not in added}


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


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=8, show_default=True)
@click.option("--clients", type=click.IntRange(200), default=1_000, show_default=True)
@click.option("--connections", type=click.IntRange(1), multiple=True, default=(16, 64), show_default=True)
@click.option("--seconds", type=click.IntRange(1), default=1, show_default=True, help="Of each slot.")
@click.option("--only", type=click.Choice(list(COMPARISONS)), multiple=True, help="Only these; repeatable.")
def main(rounds: int, clients: int, connections: tuple[int, ...], seconds: int, only: tuple[str, ...]) -> None:
    """Compare adding and logging an item, and copying a week, with bare handlers that do the same writes.

    Each is one transaction that ends with the insert of the change. The bare handler for a week gets the blocks that
    the service copies, 5 with 30 items, and inserts them. The last comparison is between bare handlers: the
    change inserted in a transaction, divided by the change stored inside the document, without a transaction, and
    moved to a collection of its own afterwards; it runs only if it is named, as moving takes part of the processor. The order of the arms is reversed every other round.
    """
    console = Console()
    allowed = sorted(os.sched_getaffinity(0))
    cores = allowed[0], allowed[min(1, len(allowed) - 1)]
    chosen_names = only or tuple(name for name in COMPARISONS if name != _EMBEDDED)
    chosen = [(name, number) for name in chosen_names for number in connections]
    table = Table(title=f"{rounds} rounds of {seconds} s slots; medians, the ratio as minimum / median / maximum")
    for heading in ("Operation", "Conn.", "First req/s", "Second req/s", "CPU us", "mongod us", "Ratio", "Target"):
        table.add_column(heading)
    with (
        tempfile.TemporaryDirectory(prefix="coaching-bench-") as name,
        prepared(clients, cores, console, moves_changes=_EMBEDDED in chosen_names) as bench,
    ):
        folder = Path(name)
        uri = Path(f"/proc/{bench.bare.pid}/environ").read_bytes().split(b"MONGODB_URI=")[1].split(b"\0")[0].decode()
        uvloop.run(write_logs(bench, uri, folder))
        uvloop.run(write_copies(bench, uri, folder))
        uvloop.run(create_indexes(uri))
        requests = Requests(bench, folder)
        if "log an item" in chosen_names:  # the first log of each exercise also creates records
            while requests.sent("service", "log") < LOGGED_ITEMS:
                requests.run(COMPARISONS["log an item"][0], 16, seconds)
        for operation, number in chosen:
            *arms, target = COMPARISONS[operation]
            measured: tuple[list[slots.Slot], list[slots.Slot]] = ([], [])
            for each in range(rounds + 1):
                order = [0, 1] if each % 2 else [1, 0]
                for arm in order:
                    slot = requests.run(arms[arm], number, seconds)
                    if each:
                        measured[arm].append(slot)
            ratios = [ours.rate / theirs.rate for ours, theirs in zip(*measured, strict=True)]
            figures = [f"{median(slot.rate for slot in slots_of):.0f}" for slots_of in measured]
            cpu = " / ".join(f"{median(slot.cpu for slot in slots_of):.0f}" for slots_of in measured)
            database = " / ".join(f"{median(slot.database_cpu for slot in slots_of):.0f}" for slots_of in measured)
            spread = f"{min(ratios):.2f} / {median(ratios):.2f} / {max(ratios):.2f}"
            table.add_row(operation, str(number), *figures, cpu, database, spread, str(target or ""))
            console.print(operation, number, *figures, spread)
    console.print(table)
    console.print(f"Load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
