"""Writers that send operations of all kinds in turn, each of which records what must be stored."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import aiohttp
from PIL import Image

from tests.reliability.torture.ledger import (
    AT_MOST_ONCE,
    NEVER,
    ONCE,
    Assignment,
    BulkMessage,
    Import,
    Ledger,
    Log,
    Move,
    Photo,
    Times,
)
from tests.reliability.torture.load import UNAVAILABLE, GaveUp, Sender

Json = dict[str, Any]
Operation = Callable[[aiohttp.ClientSession], Awaitable[None]]
PAUSE_SECONDS = 0.1  # between two operations of a writer: bounded load
FIRST_DAY = date(2026, 3, 2)
IMPORTED_CLIENTS = 60
IMPORT_SECONDS = 20.0  # between two imports
BULK_CLIENTS = 10
CREATED, ACCEPTED, NO_CONTENT, NOT_FOUND = 201, 202, 204, 404
# Requests of other interfaces, which need the database: with these credentials the service refuses all of them.
OTHER_INTERFACES: tuple[tuple[str, str, Json], ...] = (
    ("POST", "/auth/login", {"json": {"email": "olga@torture.test", "password": "a wrong password"}}),
    ("POST", "/auth/refresh", {"json": {"refreshToken": "unknown"}}),
    ("POST", "/oauth/token", {"data": {"grant_type": "refresh_token", "refresh_token": "unknown", "client_id": "no"}}),
    ("GET", "/app/customers", {"headers": {"Cookie": "coach_session=unknown"}}),
    ("GET", "/oauth/authorize?client_id=unknown&response_type=code", {}),
    ("POST", "/mcp", {"json": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}),
)


@dataclass
class World:
    """What exists before the faults begin: clients, of which each writer sends messages to some, a program and an
    exercise."""

    clients: list[str] = field(default_factory=list)
    exercise: str = ""
    program: str = ""


class Writer(Sender):
    """Sends operations of all kinds; each is repeated until it is answered, or sent once."""

    def __init__(self, number: int, urls: list[str], key: str, ledger: Ledger, world: World) -> None:
        super().__init__(number, urls, key, ledger)
        self.world = world
        self.random = random.Random(number)

    @property
    def operations(self) -> list[Operation]:
        """All kinds but imports, of which a company has one at a time."""
        return [
            *(self.add_note, self.add_note_once, self.log_sets, self.move_item, self.add_to_group),
            *(self.send_messages, self.send_messages_once, self.upload_photo, self.upload_photo_once),
            *(self.assign_program, self.assign_program_once, self.delete_client, self.read, self.use_others),
        ]

    async def run(self, is_over: asyncio.Event) -> None:
        """Send operations until the event."""
        async with self.open() as http:
            while not is_over.is_set():
                await self._attempt(self.random.choice(self.operations), http)
                await asyncio.sleep(PAUSE_SECONDS)

    async def run_imports(self, is_over: asyncio.Event) -> None:
        """Import files until the event."""
        async with self.open() as http:
            while not is_over.is_set():
                await self._attempt(self.import_clients, http)
                with suppress(TimeoutError):
                    await asyncio.wait_for(is_over.wait(), IMPORT_SECONDS)

    async def _attempt(self, operation: Operation, http: aiohttp.ClientSession) -> None:
        try:
            await operation(http)
        except GaveUp as error:
            self.ledger.unplanned.append(str(error))

    # --- notes and workouts ------------------------------------------------------------------------------------------

    async def add_note(self, http: aiohttp.ClientSession) -> None:
        """Repeated with its key until it is answered, and once more: stored once, with the same response."""
        path, marker, key = f"/coach/customers/{self._client()}/notes", self._marker(), self.new_key()
        first = await self.send(http, "POST", path, CREATED, key=key, json={"content": marker})
        self.ledger.notes[marker] = ONCE
        again = await self.send(http, "POST", path, CREATED, key=key, json={"content": marker})
        self.ledger.replayed += 1
        if first != again:
            self.ledger.unplanned.append(f"POST {path}: another response to the same Idempotency-Key")

    async def add_note_once(self, http: aiohttp.ClientSession) -> None:
        """Sent once without a key: stored if it was answered, and at most once otherwise."""
        path, marker = f"/coach/customers/{self._client()}/notes", self._marker()
        status, answer = await self.send_once(http, "POST", path, json={"content": marker})
        self.ledger.notes[marker] = _times(status, answer, CREATED)

    async def log_sets(self, http: aiohttp.ClientSession) -> None:
        """Plan a workout and log it."""
        client = self._client()
        block = await self._create_block(http, client, 1)
        item, reps = block["items"][0]["_id"], self.random.randrange(1, 20)
        sets = [{"index": 1, "reps": reps, "load": 60, "isCompleted": True}]
        path = f"/coach/customers/{client}/wblocks/{block['_id']}/witems/{item}/log"
        await self.send(http, "PUT", path, 200, json={"isCompleted": True, "customerSets": sets})
        self.ledger.logs.append(Log(client, item, reps))

    async def move_item(self, http: aiohttp.ClientSession) -> None:
        """Move an item from one workout to another, once: it must be in exactly one of them afterwards."""
        client = self._client()
        source, target = await self._create_block(http, client, 2), await self._create_block(http, client, 1)
        item = source["items"][0]["_id"]
        body = {
            "source": {"wblockId": source["_id"], "witemId": item},
            "target": {"wblockId": target["_id"], "index": 0},
        }
        status, answer = await self.send_once(http, "PUT", f"/coach/customers/{client}/witems/move", json=body)
        self.ledger.moves.append(Move(client, item, (source["_id"], target["_id"]), _times(status, answer, 200)))

    async def read(self, http: aiohttp.ClientSession) -> None:
        """Read the calendar of a client."""
        query = {"startDate": str(FIRST_DAY), "endDate": str(FIRST_DAY + timedelta(days=13))}
        await self.send_once(http, "GET", f"/coach/customers/{self._client()}/wblock", params=query)

    async def use_others(self, http: aiohttp.ClientSession) -> None:
        """Use an interface other than REST."""
        method, path, options = self.random.choice(OTHER_INTERFACES)
        await self.send_once(http, method, path, **options)

    # --- many clients at once ----------------------------------------------------------------------------------------

    async def add_to_group(self, http: aiohttp.ClientSession) -> None:
        """Add several clients to a group at once: all are in it once it is answered."""
        clients, group = self._clients(), f"group {self.random.randrange(20)}"
        await self.send(http, "POST", "/coach/customers/bulk/groups-add", 200, json={"ids": clients, "groups": [group]})
        self.ledger.groups.setdefault(group, set()).update(clients)

    async def send_messages(self, http: aiohttp.ClientSession) -> None:
        """Repeated with its key until it is answered: each client has the message once."""
        clients, marker = self._own_clients(), self._marker()
        await self.send(http, "POST", "/coach/customers/bulk/message", 200, json={"ids": clients, "text": marker})
        self.ledger.messages.append(BulkMessage(marker, clients, ONCE))

    async def send_messages_once(self, http: aiohttp.ClientSession) -> None:
        """Sent once: all of the clients have the message, or none of them."""
        clients, marker = self._own_clients(), self._marker()
        body = {"ids": clients, "text": marker}
        status, answer = await self.send_once(http, "POST", "/coach/customers/bulk/message", json=body)
        self.ledger.messages.append(BulkMessage(marker, clients, _times(status, answer, 200)))

    async def import_clients(self, http: aiohttp.ClientSession) -> None:
        """Import a file of clients, and wait for the end of its job: each of them is there once."""
        marker = self._marker()
        names = [f"{marker}-{number}" for number in range(IMPORTED_CLIENTS)]

        def form() -> aiohttp.FormData:
            data = aiohttp.FormData()
            data.add_field("file", "\n".join(["name", *names]).encode(), filename="clients.csv")
            return data

        job = await self.send(http, "POST", "/coach/import", ACCEPTED, form=form)
        while job["status"] in ("queued", "running"):
            await asyncio.sleep(0.5)
            job = await self.send(http, "GET", f"/coach/jobs/{job['_id']}", 200)
        if job["status"] != "done" or job["errors"]:
            self.ledger.unplanned.append(f"import: {job['status']} {job['errors']}")
        self.ledger.imports.append(Import(names))

    # --- clients of their own ----------------------------------------------------------------------------------------

    async def upload_photo(self, http: aiohttp.ClientSession) -> None:
        """Repeated with its key until it is answered: stored once, with its file."""
        client = await self._create_client(http)
        await self._upload(http, client)
        self.ledger.photos.append(Photo(client, ONCE))

    async def upload_photo_once(self, http: aiohttp.ClientSession) -> None:
        """Sent once: the record has its file, or there is neither."""
        client = await self._create_client(http)
        path = f"/coach/customers/{client}/progress-photos"
        status, answer = await self.send_once(http, "POST", path, data=self._photo_form())
        self.ledger.photos.append(Photo(client, _times(status, answer, CREATED)))

    async def assign_program(self, http: aiohttp.ClientSession) -> None:
        """Repeated with its key until it is answered: all workouts are on the calendar, once."""
        client = await self._create_client(http)
        await self.send(http, "POST", self._assignment_path, CREATED, json=_assignment_of(client))
        self.ledger.assignments.append(Assignment(client, ONCE))

    async def assign_program_once(self, http: aiohttp.ClientSession) -> None:
        """Sent once: all workouts are on the calendar, or none of them."""
        client = await self._create_client(http)
        status, answer = await self.send_once(http, "POST", self._assignment_path, json=_assignment_of(client))
        self.ledger.assignments.append(Assignment(client, _times(status, answer, CREATED)))

    async def delete_client(self, http: aiohttp.ClientSession) -> None:
        """Delete a client with data of several kinds: nothing of it is left."""
        client = await self._create_client(http)
        await self._create_block(http, client, 2)
        await self._upload(http, client)
        await self.send(http, "POST", f"/coach/customers/{client}/notes", CREATED, json={"content": "to be erased"})
        try:
            await self.send(http, "DELETE", f"/coach/customers/{client}", NO_CONTENT)
        except GaveUp as error:
            if error.status != NOT_FOUND:  # an earlier attempt was carried out and its response lost
                raise
        self.ledger.deleted_clients.append(client)

    # --- what they need ----------------------------------------------------------------------------------------------

    def _marker(self) -> str:
        return f"marker-{self.new_key()}"

    def _client(self) -> str:
        return self.random.choice(self.world.clients)

    def _clients(self) -> list[str]:
        return self.random.sample(self.world.clients, BULK_CLIENTS)

    def _own_clients(self) -> list[str]:
        """The same for each call: messages lock conversations, and those of others would wait for each other."""
        return self.world.clients[self.number * BULK_CLIENTS :][:BULK_CLIENTS]

    @property
    def _assignment_path(self) -> str:
        return f"/coach/programs/{self.world.program}/assign"

    async def _create_client(self, http: aiohttp.ClientSession) -> str:
        created = await self.send(http, "POST", "/coach/customers", CREATED, json={"name": self._marker()})
        return str(created["_id"])

    async def _create_block(self, http: aiohttp.ClientSession, client: str, items: int) -> Json:
        planned = [{"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 8, "load": 60}] * 3
        item = {"type": "EXERCISE", "exerciseId": self.world.exercise, "exerciseSets": planned}
        day = FIRST_DAY + timedelta(days=self.random.randrange(300))
        body = {"name": self._marker(), "date": str(day), "items": [item] * items}
        block: Json = await self.send(http, "POST", f"/coach/customers/{client}/wblocks", CREATED, json=body)
        return block

    async def _upload(self, http: aiohttp.ClientSession, client: str) -> None:
        path = f"/coach/customers/{client}/progress-photos"
        await self.send(http, "POST", path, CREATED, form=self._photo_form)

    def _photo_form(self) -> aiohttp.FormData:
        picture = io.BytesIO()
        Image.new("RGB", (60, 80), (self.number * 7 % 256, 90, 90)).save(picture, "PNG")
        data = aiohttp.FormData({"createdAt": "2026-03-02", "imageSideIndex": "1"})
        data.add_field("imageFile", picture.getvalue(), filename="front.png", content_type="image/png")
        return data


def _times(status: int | None, body: Any, expected: int) -> Times:
    """How often a request that was sent once may be stored."""
    if status == expected:
        return ONCE
    return NEVER if status == UNAVAILABLE and body["code"] == "UNAVAILABLE" else AT_MOST_ONCE


def _assignment_of(client: str) -> Json:
    return {"customerId": client, "startDate": str(FIRST_DAY)}
