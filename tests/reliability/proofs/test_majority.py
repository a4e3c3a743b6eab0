"""What a response has acknowledged is on a majority of the members, and the next request reads it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from aiohttp.test_utils import TestServer
from pymongo import MongoClient

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.settings import Settings
from tests.reliability.proofs.test_lost_members import recovers
from tests.reliability.replica_set import ReplicaSet
from tests.support.client import CoachClient, Reply
from tests.support.drill import database_of, require_whole
from tests.support.service_process import until


async def test_acknowledged_writes_are_read_by_any_process_and_survive_the_primary(
    replica_set_coach: CoachClient, replica_set: ReplicaSet, settings: Settings
) -> None:
    coach = replica_set_coach
    await recovers(coach)
    client = await coach.create_customer()
    path = f"/coach/customers/{client['_id']}"
    primary = replica_set.primary()
    [behind, _] = [port for port in replica_set.members if port != primary]
    replica_set.freeze(behind)  # its data is old from now on: who read from it would miss what follows
    try:
        async with _another_process(coach, replica_set, settings) as other:
            for number in range(20):
                writer, reader = (coach, other) if number % 2 else (other, coach)
                await _served(partial(writer.patch, path, {"phone": str(number)}))
                read = await _served(partial(reader.get, path))
                assert read["phone"] == str(number), "a write that was acknowledged is read by another process"

        replica_set.thaw()
        await recovers(coach)
        await _served(partial(coach.patch, path, {"phone": "last"}))
        replica_set.freeze(replica_set.primary())

        read = await _served(partial(coach.get, path))
        assert read["phone"] == "last", "the new primary has what the old one acknowledged"
    finally:
        replica_set.thaw()
    await recovers(coach)
    database = database_of(settings) | {"MONGODB_URI": replica_set.uri}
    await require_whole(coach.address("/").rstrip("/"), str(coach.key), **database)


async def test_what_may_still_be_lost_is_neither_reported_as_done_nor_read(
    replica_set_coach: CoachClient, replica_set: ReplicaSet, settings: Settings
) -> None:
    coach = replica_set_coach
    await recovers(coach)
    client = await coach.create_customer()
    path = f"/coach/customers/{client['_id']}"
    note = partial(_note, path)
    primary = replica_set.primary()
    address: dict[str, Any] = {"host": "127.0.0.1", "port": primary, "directConnection": True}
    async with _another_process(coach, replica_set, settings) as other:
        with MongoClient[dict[str, Any]](**address) as alone:
            notes = alone[coach.ctx.db.name]["notes"]
            assert notes.find_one({"content": "Once"}) is None
            replica_set.freeze(*(port for port in replica_set.members if port != primary))
            try:
                first = asyncio.create_task(note(coach))
                await until(lambda: notes.find_one({"content": "Once"}), "the primary alone has the note")

                seen, again = await other.get(f"{path}/notes"), await note(other)
                assert again.status in (409, 503), again
                assert seen.status == 503 or seen.json == [], seen
                assert (await first).status == 503
            finally:
                replica_set.thaw()

    await until(lambda: _is_created(note(coach)), "the note is created")
    assert [each["content"] for each in (await coach.get(f"{path}/notes")).ok()] == ["Once"]


async def _note(path: str, coach: CoachClient) -> Reply:
    return await coach.post(f"{path}/notes", {"content": "Once"}, headers={"Idempotency-Key": "once"})


async def _is_created(reply: Awaitable[Reply]) -> bool:
    return (await reply).status == 201


@asynccontextmanager
async def _another_process(
    coach: CoachClient, replica_set: ReplicaSet, settings: Settings
) -> AsyncIterator[CoachClient]:
    """The same coach, with an application that shares nothing but the database."""
    own = settings.model_copy(update={"mongodb_uri": replica_set.uri})
    async with runtime.open_services(own) as services, TestServer(create_app(own, services)) as server:
        other = CoachClient(server, coach.key, replace(coach.ctx, services=services))
        yield other
        await other.close()


async def _served(send: Callable[[], Awaitable[Reply]]) -> Any:
    """Send a request again while there is no primary, as clients do, and return the JSON of its response."""

    async def reply() -> Reply | None:
        received = await send()
        return None if received.status == 503 else received

    return (await until(reply, "the replica set has a primary")).ok()
