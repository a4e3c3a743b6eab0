"""The service with a replica set that has lost members."""

from __future__ import annotations

import asyncio

from tests.reliability.replica_set import ReplicaSet
from tests.support.client import CoachClient
from tests.support.service_process import until


async def is_ready(coach: CoachClient, status: int = 200) -> bool:
    """Whether /readyz responds with `status`."""
    return (await coach.get("/readyz")).status == status


async def recovers(coach: CoachClient) -> None:
    """Wait until the service is ready and writes again."""

    await until(lambda: is_ready(coach), "the service is ready again")
    await coach.create_customer()


async def test_without_a_majority_writes_are_503_and_the_service_is_not_ready(
    replica_set_coach: CoachClient, replica_set: ReplicaSet
) -> None:
    primary = replica_set.primary()
    replica_set.freeze(*(port for port in replica_set.members if port != primary))
    try:
        ready = await replica_set_coach.get("/readyz")
        assert (ready.status, ready.headers["Retry-After"]) == (503, "1")
        created = await replica_set_coach.post("/coach/customers", {"name": "Zebulon", "sendInvitation": False})
        assert created.status == 503
    finally:
        replica_set.thaw()
    await recovers(replica_set_coach)


async def test_frozen_primary_is_replaced_and_delays_no_request_for_long(
    replica_set_coach: CoachClient, replica_set: ReplicaSet
) -> None:
    await recovers(replica_set_coach)
    replica_set.freeze(replica_set.primary())
    try:
        replies = await asyncio.gather(*(replica_set_coach.get("/me") for _ in range(50)))
        assert {reply.status for reply in replies} <= {200, 503}
        assert all("Retry-After" in reply.headers for reply in replies if reply.status == 503)
        await recovers(replica_set_coach)
    finally:
        replica_set.thaw()


async def test_idle_service_is_ready_again_when_only_its_readiness_is_read(
    replica_set_coach: CoachClient, replica_set: ReplicaSet
) -> None:
    """A load balancer sends no other request to a process that is not ready."""
    await recovers(replica_set_coach)
    replica_set.freeze(replica_set.primary())
    try:
        await until(lambda: is_ready(replica_set_coach, 503), "the loss is noticed")
        await until(lambda: is_ready(replica_set_coach), "the service is ready again")
    finally:
        replica_set.thaw()
