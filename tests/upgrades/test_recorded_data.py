"""This code serves the databases that releases have written, and documents with fields of a later version."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pymongo import MongoClient
from pymongo.database import Database

from coaching_service.core.database import migrations
from coaching_service.core.ids import ObjectId
from coaching_service.settings import Settings
from tests.application.test_command_line import CommandResult, type_in
from tests.reliability.deployment import Node
from tests.support.service_process import until
from tests.upgrades.reading import links_in, read_clients, read_ids
from tests.upgrades.release import Document, Release, releases

LATER: Document = {"fieldOfLaterVersion": {"list": [1, {"deep": True}], "text": "x"}}
Serve = Callable[[Release], Node]


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database[Document]]:
    """A database of its own."""
    with MongoClient[Document](str(settings.mongodb_uri)) as client:
        name = f"{settings.mongodb_database}_upgrades"
        yield client[name]
        client.drop_database(name)


@pytest.fixture
async def serve(db: Database[Document], settings: Settings, tmp_path: Path) -> AsyncIterator[Serve]:
    """Makes a process of this code, not yet started, on the data of a release."""
    nodes: list[Node] = []

    def load(release: Release) -> Node:
        release.load(db)
        keys = (release.facts["secretKey"],)
        own = settings.model_copy(update={"mongodb_database": db.name, "secret_keys": keys})
        nodes.append(Node(tmp_path / "data", own, release.facts["apiKey"]))
        return nodes[-1]

    yield load
    for node in nodes:
        if node.process is not None:
            await node.end()


async def run(node: Node, *words: str) -> CommandResult:
    """Run a command on the database of a process."""
    variables = {
        "MONGODB_URI": str(node.settings.mongodb_uri),
        "MONGODB_DATABASE": node.settings.mongodb_database,
        "SECRET_KEYS": ",".join(node.settings.secret_keys),
    }
    return await asyncio.to_thread(type_in, *words, **variables)


async def send(http: aiohttp.ClientSession, method: str, path: str, status: int = 200, **options: Any) -> Any:
    """Send a request, assert its status and return the JSON of the response."""
    async with http.request(method, path, **options) as response:
        text = await response.text()
        assert response.status == status, f"{method} {path}: {response.status} {text}"
        return json.loads(text) if text else None


async def problems_of(node: Node) -> set[str]:
    """The checks of doctor that report problems."""
    results: list[Any] = json.loads((await run(node, "doctor", "--json")).out)
    return {each["check"] for each in results if each["status"] in ("problem", "error")}


async def use(http: aiohttp.ClientSession, release: Release) -> str:
    """Read what the release returned, and write; returns the client that was changed."""
    for path, identifiers in release.facts["identifiers"].items():
        assert set(identifiers) <= set(await read_ids(http, path) or []), path
    clients = await read_clients(http)
    photos = [path for path in release.facts["identifiers"] if "/progress-photos" in path]
    links = {link for path in photos for link in links_in(await send(http, "GET", path + "1"))}
    assert links or not any(release.facts["identifiers"][path] for path in photos)
    for link in links:
        async with http.get(link) as response:
            assert (response.status, len(await response.read()) > 0) == (200, True)
    await send(
        http, "POST", "/auth/login", json={"email": release.facts["email"], "password": release.facts["password"]}
    )

    note = await send(http, "POST", f"/coach/customers/{clients[0]}/notes", 201, json={"content": "After the upgrade"})
    await send(http, "PATCH", f"/coach/customers/{clients[0]}", json={"name": "Renamed"})
    program = (await send(http, "GET", "/coach/programs?archived=false&pageSize=50&pageNum=1"))["docs"][0]["_id"]
    assignment = {"customerId": clients[0], "startDate": "2027-02-01"}
    await send(http, "POST", f"/coach/programs/{program}/assign", 201, json=assignment)
    created = await send(http, "POST", "/coach/customers", 201, json={"name": "New after the upgrade"})

    async def is_logged() -> bool:
        path = f"/coach/events?limit=500&types=note.created&customerId={clients[0]}&after="
        page = await send(http, "GET", path + "0")
        while page["hasMore"]:
            page = await send(http, "GET", path + page["nextCursor"])
        return note["_id"] in [event["data"]["noteId"] for event in page["docs"]]

    await until(is_logged, "the change is in the log")
    await send(http, "DELETE", f"/coach/customers/{created['_id']}", 204)
    return clients[0]


@pytest.mark.parametrize("release", releases(), ids=lambda release: release.version)
async def test_data_of_a_release_is_migrated_and_served(release: Release, serve: Serve, db: Database[Document]) -> None:
    """As docs/upgrading.md says: plan, migrate, start; then all is there and sound.

    All documents have a field that this code does not know, as a later patch version may add: they are served, and
    writes preserve it.
    """
    node = serve(release)
    for name in db.list_collection_names(filter={"type": "collection"}):
        if name not in ("fs.chunks", migrations.COLLECTION):
            db[name].update_many({}, {"$set": LATER})
    applied = {record["_id"] for record in db[migrations.COLLECTION].find()}
    pending = [step for step in migrations.STEPS if step.number not in applied]
    plan = (await run(node, "migrate", "--plan")).ok()
    assert plan.count("\n") == max(len(pending), 1)
    assert all(f"{step.number}  {step.name}: " in plan for step in pending)
    node.begin()
    if pending:
        await until(lambda: "waiting for migrations" in node.logged, "the service waits for migrations")
        assert not await node.is_ready()
    (await run(node, "migrate")).ok()
    await until(node.is_ready, "the service is ready")
    async with node.session(2) as http:
        changed = await use(http, release)
    stored = db["customers"].find_one({"_id": ObjectId(changed)})
    assert stored is not None
    assert (stored["name"], stored["fieldOfLaterVersion"]) == ("Renamed", LATER["fieldOfLaterVersion"])
    await until(lambda: not db["changes"].count_documents({"pending": True}), "all changes have numbers")
    assert await problems_of(node) <= {"indexes-undeclared"}, "indexes that only the release had may be left"
