"""Writers of many kinds, each of which records what must be stored."""

from __future__ import annotations

import asyncio
import io
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import aiohttp
from PIL import Image

from tests.reliability.deployment import Node
from tests.reliability.torture.ledger import Exchange, Ledger

Json = dict[str, Any]
PAUSE_SECONDS = 0.1  # between two operations of a writer: bounded load
PATIENCE_SECONDS = 300.0
FIRST_DAY = date(2026, 3, 2)
ACCEPTED = (409, 503)  # still in progress, or not available: sent again


class GaveUp(Exception):
    """A request was not answered as expected for too long."""


@dataclass
class World:
    """What the writers share: clients, exercises and a program that exist before the faults begin."""

    clients: list[str] = field(default_factory=list)
    exercise: str = ""
    program: str = ""


class Writer:
    """Sends operations of all kinds in turn to one process of the service, or to the other while that is away."""

    def __init__(self, number: int, nodes: list[Node], world: World, ledger: Ledger, key: str) -> None:
        self.number, self.world, self.ledger = number, world, ledger
        self._nodes, self._headers = nodes, {"X-API-Key": key}
        self._random = random.Random(number)
        self._sent = 0

    async def run(self, until: float) -> None:
        """Send operations until that moment of the monotonic clock."""
        kinds: list[Callable[[aiohttp.ClientSession], Awaitable[None]]] = [
            *(self._add_note, self._add_note_once, self._train, self._move_item),
            *(self._change_groups, self._upload_photo, self._assign_program, self._delete_client),
        ]
        timeout = aiohttp.ClientTimeout(total=30)
        async with aiohttp.ClientSession(headers=self._headers, timeout=timeout) as http:
            while time.monotonic() < until:
                operation = self._random.choice(kinds)
                try:
                    await operation(http)
                except GaveUp as error:
                    self.ledger.unplanned.append(str(error))
                await asyncio.sleep(PAUSE_SECONDS)

    # --- one request -------------------------------------------------------------------------------------------------

    async def _send(self, http: aiohttp.ClientSession, method: str, path: str, attempt: int, **options: Any) -> Any:
        """Send once; return status and body, with None for a status if there was no response."""
        node, began = self._nodes[(self.number + attempt) % len(self._nodes)], time.monotonic()
        status: int | None = None
        body: Any = None
        try:
            async with http.request(method, node.url + path, **options) as response:
                raw = await response.read()
                status = response.status
                body = await response.json() if raw and response.content_type == "application/json" else raw
        except (aiohttp.ClientError, TimeoutError) as error:
            if isinstance(error, TimeoutError):
                self.ledger.unplanned.append(f"{method} {path}: no response within 30 s")
        exchange = Exchange(f"{method} {path}", method != "GET", began, time.monotonic(), status)
        self.ledger.exchanges.append(exchange)
        if status is not None and status >= 500 and status != 503:
            self.ledger.unplanned.append(f"{method} {path}: {status} {body}")
        return status, body

    async def send(self, http: aiohttp.ClientSession, method: str, path: str, expected: int, **options: Any) -> Any:
        """Send again, with the same key, until it is answered as expected; return the body."""
        self._sent += 1
        if method == "POST":
            options["headers"] = {"Idempotency-Key": f"{self.number}-{self._sent}"}
        form: Callable[[], aiohttp.FormData] | None = options.pop("form", None)
        deadline, attempt = time.monotonic() + PATIENCE_SECONDS, 0
        while time.monotonic() < deadline:
            body = {"data": form()} if form else {}
            status, answer = await self._send(http, method, path, attempt, **options, **body)
            if status == expected:
                return answer
            if status is not None and status not in ACCEPTED:
                raise GaveUp(f"{method} {path}: {status} {answer}")
            attempt += 1
            await asyncio.sleep(0.1)
        raise GaveUp(f"{method} {path}: not answered for {PATIENCE_SECONDS} s")

    # --- operations --------------------------------------------------------------------------------------------------

    def _marker(self) -> str:
        self._sent += 1
        return f"marker-{self.number}-{self._sent}"

    def _client(self) -> str:
        return self._random.choice(self.world.clients)

    async def _add_note(self, http: aiohttp.ClientSession) -> None:
        """Repeated with its key until it is answered: stored exactly once."""
        client, marker = self._client(), self._marker()
        await self.send(http, "POST", f"/coach/customers/{client}/notes", 201, json={"content": marker})
        self.ledger.once[marker] = client

    async def _add_note_once(self, http: aiohttp.ClientSession) -> None:
        """Sent once without a key: stored if it was answered, and at most once otherwise."""
        client, marker = self._client(), self._marker()
        status, _ = await self._send(http, "POST", f"/coach/customers/{client}/notes", 0, json={"content": marker})
        (self.ledger.once if status == 201 else self.ledger.at_most_once)[marker] = client

    async def _create_client(self, http: aiohttp.ClientSession, name: str) -> str:
        created = await self.send(http, "POST", "/coach/customers", 201, json={"name": name})
        return str(created["_id"])

    async def _create_block(self, http: aiohttp.ClientSession, client: str, items: int) -> Json:
        planned = [{"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 8, "load": 60}] * 3
        item = {"type": "EXERCISE", "exerciseId": self.world.exercise, "exerciseSets": planned}
        day = FIRST_DAY + timedelta(days=self._random.randrange(300))
        body = {"name": self._marker(), "date": str(day), "items": [item] * items}
        block: Json = await self.send(http, "POST", f"/coach/customers/{client}/wblocks", 201, json=body)
        return block

    async def _train(self, http: aiohttp.ClientSession) -> None:
        """Plan a workout and log it."""
        client = self._client()
        block = await self._create_block(http, client, 1)
        (item,) = block["items"]
        reps = self._random.randrange(1, 20)
        sets = [{"index": 1, "reps": reps, "load": 60, "isCompleted": True}]
        path = f"/coach/customers/{client}/wblocks/{block['_id']}/witems/{item['_id']}/log"
        await self.send(http, "PUT", path, 200, json={"isCompleted": True, "customerSets": sets})
        self.ledger.logged_items[f"{client} {block['date']} {item['_id']}"] = reps

    async def _move_item(self, http: aiohttp.ClientSession) -> None:
        """Move an item from one workout to another: it must be in exactly one of them afterwards."""
        client = self._client()
        source, target = await self._create_block(http, client, 2), await self._create_block(http, client, 1)
        item = source["items"][0]["_id"]
        self.ledger.moved_items[item] = [
            *(f"{client} {source['date']} {source['_id']}", f"{client} {target['date']} {target['_id']}")
        ]
        body = {
            "source": {"wblockId": source["_id"], "witemId": item},
            "target": {"wblockId": target["_id"], "index": 0},
        }
        await self._send(http, "PUT", f"/coach/customers/{client}/witems/move", 0, json=body)

    async def _change_groups(self, http: aiohttp.ClientSession) -> None:
        """Add several clients to a group at once: all are in it once it is answered."""
        clients, group = self._random.sample(self.world.clients, 10), f"group {self._random.randrange(20)}"
        body = {"ids": clients, "groups": [group]}
        await self.send(http, "POST", "/coach/customers/bulk/groups-add", 200, json=body)
        self.ledger.bulk_groups.setdefault(group, []).extend(clients)

    async def _upload_photo(self, http: aiohttp.ClientSession) -> None:
        """Upload a photo: its record has a file."""
        client = await self._create_client(http, self._marker())
        picture = io.BytesIO()
        Image.new("RGB", (60, 80), (self._random.randrange(256), 90, 90)).save(picture, "PNG")

        def form() -> aiohttp.FormData:
            data = aiohttp.FormData({"createdAt": "2026-03-02", "imageSideIndex": "1"})
            data.add_field("imageFile", picture.getvalue(), filename="front.png", content_type="image/png")
            return data

        record = await self.send(http, "POST", f"/coach/customers/{client}/progress-photos", 201, form=form)
        self.ledger.photos[client] = record["_id"]

    async def _assign_program(self, http: aiohttp.ClientSession) -> None:
        """Assign a program: all its workouts are on the calendar, once."""
        client = await self._create_client(http, self._marker())
        body = {"customerId": client, "startDate": str(FIRST_DAY)}
        path = f"/coach/programs/{self.world.program}/assign"
        self.ledger.assignments[client] = await self.send(http, "POST", path, 201, json=body)

    async def _delete_client(self, http: aiohttp.ClientSession) -> None:
        """Delete a client with data: nothing of it is left."""
        client = await self._create_client(http, self._marker())
        await self._create_block(http, client, 2)
        await self.send(http, "POST", f"/coach/customers/{client}/notes", 201, json={"content": "to be erased"})
        try:
            await self.send(http, "DELETE", f"/coach/customers/{client}", 204)
        except GaveUp as error:
            if ": 404" not in str(error):  # an earlier attempt was carried out and its response lost
                raise
        self.ledger.deleted_clients.append(client)
