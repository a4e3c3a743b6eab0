"""The mirror of clients/python/examples is killed again and again while others write, and ends equal to its source.

Collected with `--clients`. All choices come from one seed; the moments at which processes run do not. It
connects through a proxy only so that the test sees when it works.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from coaching_service.core.database.documents import now
from tests.clients.failing_proxy import FailingProxy
from tests.clients.programs import python_environment
from tests.support.client import MONDAY, CoachClient
from tests.support.sampled import MORE
from tests.support.service_process import until
from tests.support.training import client_path, task

KILLS = 6 if MORE == 1 else 20
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:")
Json = dict[str, Any]
# Computed values follow a change later, without an event.
DERIVED = {"complianceRate7d", "complianceRate30d", "complianceRate90d", "complianceDate", "lastActivityDate"} | {
    "lastWorkoutDate",
    "lastTrainedDate",
    "availability",  # of one client only
    "consent",
}


class Writer:
    """Creates, changes and deletes records of one company until it is stopped."""

    def __init__(self, coach: CoachClient, seed: int) -> None:
        self._coach, self._random = coach, random.Random(seed)
        self._customers: list[Json] = []
        self.counts: Counter[str] = Counter()

    async def write(self, is_ended: Callable[[], bool]) -> None:
        """Write one record after another."""
        operations = [self.create_customer, self.change_customer, self.schedule, self.change_block, self.log]
        operations += [self.archive, self.library, self.library]
        while not is_ended():
            operation = self._random.choices([*operations, self.delete_customer, self.delete_block], [3] * 8 + [1, 2])[
                0
            ]
            await operation()
            self.counts[operation.__name__] += 1
            await asyncio.sleep(0)

    async def _customer(self) -> Json:
        return self._random.choice(self._customers) if self._customers else await self.create_customer()

    async def create_customer(self) -> Json:
        """Create a client."""
        name = f"Client {self._random.randrange(1000)}"
        self._customers.append(await self._coach.create_customer(name, sendInvitation=False))
        return self._customers[-1]

    async def change_customer(self) -> None:
        """Rename a client."""
        body = {"surname": f"Surname {self._random.randrange(1000)}"}
        (await self._coach.patch(client_path(await self._customer()), body)).ok()

    async def archive(self) -> None:
        """Archive or unarchive a client."""
        body = {"customerIds": [(await self._customer())["_id"]]}
        await self._coach.put(f"/coach/customers/{self._random.choice(['archive', 'unarchive'])}", body)

    async def delete_customer(self) -> None:
        """Delete a client with the calendar."""
        customer = await self._customer()
        self._customers.remove(customer)
        (await self._coach.delete(client_path(customer))).ok(204)

    async def schedule(self) -> None:
        """Create a block."""
        day = date.fromisoformat(MONDAY) + timedelta(days=self._random.randrange(20))
        body = {"name": "Legs", "date": day.isoformat(), "items": [task("Walk")]}
        (await self._coach.post(client_path(await self._customer(), "wblocks"), body)).ok(201)

    async def _block(self) -> Json | None:
        query = {"startDate": MONDAY, "endDate": "2026-04-30"}
        blocks = (await self._coach.get(client_path(await self._customer(), "wblock"), **query)).ok()
        return self._random.choice(blocks) if blocks else None

    async def change_block(self) -> None:
        """Rename a block."""
        if block := await self._block():
            path = f"/coach/customers/{block['customerId']}/wblocks/{block['_id']}"
            (await self._coach.patch(path, {"name": f"Block {self._random.randrange(1000)}"})).ok()

    async def delete_block(self) -> None:
        """Delete a block."""
        if block := await self._block():
            (await self._coach.delete(f"/coach/customers/{block['customerId']}/wblocks/{block['_id']}")).ok(204)

    async def log(self) -> None:
        """Complete the item of a block."""
        if block := await self._block():
            path = f"/coach/customers/{block['customerId']}/wblocks/{block['_id']}"
            path = f"{path}/witems/{block['items'][0]['_id']}/log"
            (await self._coach.put(path, {"type": "TASK", "isCompleted": True})).ok()

    async def library(self) -> None:
        """Create an exercise or program, rename it, and delete every second one."""
        path = self._random.choice(["/exercises", "/coach/programs"])
        record = (await self._coach.post(path, {"name": f"Name {self._random.randrange(1000)}"})).ok(201)
        (await self._coach.patch(f"{path}/{record['_id']}", {"name": "Renamed"})).ok()
        if self._random.random() < 0.5:
            (await self._coach.delete(f"{path}/{record['_id']}")).ok(204)


async def test_a_mirror_that_is_killed_ends_equal_to_its_source(
    libraries: Path, proxy: FailingProxy, coach: CoachClient, tmp_path: Path
) -> None:
    chance, is_ended = random.Random(19), asyncio.Event()
    file = tmp_path / "mirror.db"
    program, python = libraries / "python" / "examples" / "mirror.py", await python_environment()
    access = {"BASE": f"{proxy.address}/reliable", "KEY": str(coach.key)}
    settings = os.environ | access | {"PYTHONPATH": str(libraries / "python")}

    async def start(*options: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(python, str(program), str(file), *options, env=settings)

    async def kill_while_working(seconds: float, *, with_progress: bool) -> None:
        requests, position = len(proxy.attempts), position_of(file)
        process = await start()
        await until(lambda: len(proxy.attempts) > requests, "the first request")
        if with_progress:
            await until(lambda: position_of(file) != position, "a new position")
        await asyncio.sleep(seconds)
        process.kill()
        assert await process.wait() == -9

    writers = [Writer(coach, seed) for seed in (1, 2)]
    writing = [asyncio.create_task(writer.write(is_ended.is_set)) for writer in writers]
    for number in range(KILLS):
        # Every second time just after it has stored something, else also while it reads everything.
        await kill_while_working(chance.uniform(0, 0.4), with_progress=number % 2 == 1)
        if number == 3:
            await expire_cursor(coach)
    is_ended.set()
    await asyncio.gather(*writing)
    assert all(writer.counts.total() > KILLS for writer in writers)
    await wait_for_the_last_event(coach)
    assert await (await start("--once")).wait() == 0
    assert mirrored(file) == await read_source(coach)


def position_of(file: Path) -> str | None:
    """The cursor that the mirror has stored, if it has."""
    if not file.exists():
        return None
    with sqlite3.connect(file) as database:
        try:
            row = database.execute("SELECT cursor FROM position").fetchone()
        except sqlite3.OperationalError:  # there is no table yet
            return None
    return row[0] if row else None


async def expire_cursor(coach: CoachClient) -> None:
    """Make all events so far older than those that are available."""
    long_ago = now() - timedelta(days=31)
    await coach.ctx.db["changes"].update_many({"companyId": coach.ctx.company_id}, {"$set": {"createdAt": long_ago}})


async def wait_for_the_last_event(coach: CoachClient) -> None:
    """Wait until a change made now is numbered, and with it all changes before it."""
    last = await coach.create_exercise("Last")

    async def is_numbered() -> bool:
        page = (await coach.get("/coach/events", limit=500, types="exercise.created")).ok()
        while page["hasMore"]:
            page = (
                await coach.get("/coach/events", limit=500, types="exercise.created", after=page["nextCursor"])
            ).ok()
        return any(event["data"]["exerciseId"] == last["_id"] for event in page["docs"])

    await until(is_numbered, "the last event", 30)


def mirrored(file: Path) -> dict[str, Json]:
    """The records of the mirror by identifier."""
    with sqlite3.connect(file) as database:
        rows = database.execute("SELECT id, body FROM records").fetchall()
    return {identifier: comparable(json.loads(body)) for identifier, body in rows}


async def read_source(coach: CoachClient) -> dict[str, Json]:
    """The records of the service by identifier."""
    records: list[Json] = []
    for path in ("/coach/customers", "/coach/programs"):
        for archived in ("true", "false"):
            records += await walk(coach, path, archived=archived)
    for customer in [record for record in records if "customerRoleData" in record]:
        query = {"startDate": "2000-01-01", "endDate": "2099-12-31"}
        records += (await coach.get(client_path(customer, "wblock"), **query)).ok()
    records += await walk(coach, "/exercises")
    return {record["_id"]: comparable(record) for record in records}


async def walk(coach: CoachClient, path: str, **filters: str) -> list[Json]:
    """Every record of a list."""
    page = (await coach.get(path, pageSize=50, pageNum=1, **filters)).ok()
    records: list[Json] = page["docs"]
    while page["nextCursor"]:
        page = (await coach.get(path, pageSize=50, pageNum=1, after=page["nextCursor"], **filters)).ok()
        records += page["docs"]
    return records


def comparable(value: Any) -> Any:
    """A record without the values that the service computes, and with times as such: they can be written in two ways."""
    if isinstance(value, list):
        return [comparable(each) for each in value]
    if isinstance(value, dict):
        return {name: comparable(each) for name, each in value.items() if name not in DERIVED}
    return datetime.fromisoformat(value) if isinstance(value, str) and TIME.match(value) else value
