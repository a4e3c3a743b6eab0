"""What a response has acknowledged is on a majority of the members, and the next request reads it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from aiohttp.test_utils import TestServer

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.settings import Settings
from tests.reliability.replica_set import ReplicaSet
from tests.reliability.test_database_faults import recovers
from tests.support.client import CoachClient, Reply
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
    own = settings.model_copy(update={"mongodb_uri": replica_set.uri})
    try:
        async with AsyncExitStack() as stack:
            services = await stack.enter_async_context(runtime.open_services(own))
            server = await stack.enter_async_context(TestServer(create_app(own, services)))
            other = CoachClient(server, coach.key, replace(coach.ctx, services=services))
            stack.push_async_callback(other.close)
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


async def _served(send: Callable[[], Awaitable[Reply]]) -> Any:
    """Send a request again while there is no primary, as clients do, and return the JSON of its response."""

    async def reply() -> Reply | None:
        received = await send()
        return None if received.status == 503 else received

    return (await until(reply, "the replica set has a primary")).ok()
