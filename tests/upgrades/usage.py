"""How the tests of upgrades use a service: its commands, its reads and its writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from pymongo import MongoClient
from pymongo.database import Database

from coaching_service.settings import Settings
from tests.reliability.deployment import Node
from tests.support.commands import CommandResult, type_in
from tests.support.service_process import until
from tests.upgrades.reading import links_in, read_clients, read_ids
from tests.upgrades.release import Document, Release


@asynccontextmanager
async def database_of(release: Release, settings: Settings) -> AsyncIterator[tuple[Settings, Database[Document]]]:
    """A database with the data of a release, and settings with its master key."""
    name = f"{settings.mongodb_database}_upgrades"
    with MongoClient[Document](str(settings.mongodb_uri)) as client:
        release.load(client[name])
        yield (
            settings.model_copy(update={"mongodb_database": name, "secret_keys": (release.facts["secretKey"],)}),
            client[name],
        )
        client.drop_database(name)


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


async def use(http: aiohttp.ClientSession, release: Release, gone: Collection[str] = ()) -> str:
    """Read what the release returned, but for what is `gone`, and write; returns the client that was changed."""
    for path, identifiers in release.facts["identifiers"].items():
        assert set(identifiers).difference(gone) <= set(await read_ids(http, path) or []), path
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
