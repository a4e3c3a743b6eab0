"""What a response has acknowledged is on a majority of the members, and the next request reads it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

from aiohttp.test_utils import TestServer

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.settings import Settings
from tests.reliability.replica_set import ReplicaSet
from tests.reliability.test_database_faults import recovers
from tests.support.client import CoachClient
from tests.support.service_process import until


async def test_acknowledged_writes_are_read_by_any_process_and_survive_the_primary(
    replica_set_coach: CoachClient, replica_set: ReplicaSet, settings: Settings
) -> None:
    coach = replica_set_coach
    await recovers(coach)
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
            client = (await coach.post("/coach/customers", {"name": "Ana", "sendInvitation": False})).ok(201)
            path = f"/coach/customers/{client['_id']}"
            for number in range(20):
                (await (coach, other)[number % 2].patch(path, {"phone": str(number)})).ok()
                read = (await (other, coach)[number % 2].get(path)).ok()
                assert read["phone"] == str(number), "a write that was acknowledged is read by another process"

        replica_set.thaw()
        await recovers(coach)
        (await coach.patch(path, {"phone": "last"})).ok()
        replica_set.freeze(replica_set.primary())

        async def has_last() -> bool:
            read = await coach.get(path)
            assert read.status in (200, 503)
            return read.status == 200 and bool(read.ok()["phone"] == "last")

        await until(has_last, "the new primary has what the old one acknowledged")
    finally:
        replica_set.thaw()
    await recovers(coach)
