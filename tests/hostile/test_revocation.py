"""Credentials that were good until a moment ago: refused by every operation on the next request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from coaching_service.core.auth import ALL_PERMISSIONS, new_token
from coaching_service.core.database.context import Services
from coaching_service.core.http.routes import Route
from coaching_service.people import api_keys, team
from coaching_service.people.sessions import service as sessions
from tests.contract.test_declared import fill_path, request_options
from tests.hostile.cases import OF_CLIENTS, OF_COACHES, WITH_PERMISSION
from tests.hostile.conftest import Caller
from tests.support.client import CoachClient, Reply
from tests.support.sampled import MORE
from tests.support.service_process import until

UNAUTHORIZED = {"statusCode": 401, "message": "Unauthorized"}
INVALID_KEY = {"message": "Invalid API key"}


async def replies(client: CoachClient, caller: Caller, routes: list[Route]) -> list[tuple[Route, Reply]]:
    """Call these operations with identifiers that exist; signing out is last, because it ends the session."""
    received = []
    for route in sorted(routes, key=lambda route: route.path == "/auth/logout"):
        options = request_options(route, caller.own)
        received.append((route, await client.send(route.method, fill_path(route, caller.own), **options)))
    return received


def in_turn(routes: list[Route], number: int) -> list[Route]:
    """The operations for one of two credentials: every second one, and in the proofs all."""
    return routes if MORE > 1 else routes[number::2]


async def employee_of(caller: Caller) -> tuple[str, CoachClient, CoachClient]:
    """A new employee with all permissions: the identifier, a key and a session that were used."""
    ctx = caller.key.ctx
    email = f"eli-{new_token()[:12].lower()}@example.com"
    employee = await team.create(ctx, "Eli", email, sorted(ALL_PERMISSIONS), "all", "no hash")
    principal = await team.get_principal(ctx.services, employee["_id"])
    assert principal is not None
    key = caller.key.with_key((await api_keys.create(ctx.acting_as(principal), "Test"))["key"])
    tokens = await sessions.create_session(ctx, employee["_id"], "coach")
    session = caller.key.with_bearer(tokens["accessToken"])
    for client in (key, session):
        (await client.get("/me")).ok()
    return str(employee["_id"]), key, session


async def test_a_deleted_key_is_refused_by_every_operation(stranger: Caller) -> None:
    created = (await stranger.session.post("/coach/api-keys", {"name": "Lost"})).ok(201)
    key = stranger.key.with_key(created["key"])
    (await key.get("/coach/customers", archived="false", pageSize=1, pageNum=1)).ok()
    (await stranger.session.delete(f"/coach/api-keys/{created['_id']}")).ok(204)
    for route, reply in await replies(key, stranger, OF_COACHES):
        assert (reply.status, reply.json) == (401, INVALID_KEY), route.path


async def test_a_removed_employee_is_refused_by_every_operation(stranger: Caller) -> None:
    employee_id, key, session = await employee_of(stranger)
    (await stranger.session.delete(f"/coach/employees/{employee_id}")).ok(204)
    for number, (client, body) in enumerate(((key, INVALID_KEY), (session, UNAUTHORIZED))):
        for route, reply in await replies(client, stranger, in_turn(OF_COACHES, number)):
            assert (reply.status, reply.json) == (401, body), route.path


async def test_an_employee_without_permissions_is_refused_by_every_operation_that_needs_one(stranger: Caller) -> None:
    employee_id, key, session = await employee_of(stranger)
    changed = {"permissions": [], "customersScope": "all"}
    (await stranger.session.put(f"/coach/employees/{employee_id}/permissions", changed)).ok()
    for number, client in enumerate((key, session)):
        for route, reply in await replies(client, stranger, in_turn(WITH_PERMISSION, number)):
            assert (reply.status, reply.json["error"]) == (403, "Forbidden"), route.path


async def test_an_archived_client_is_refused_by_every_operation(stranger: Caller) -> None:
    customer = await stranger.key.create_customer("Bea")
    client = await stranger.key.as_client(customer)
    (await client.get("/customer/me")).ok()
    (await stranger.key.put("/coach/customers/archive", {"id": customer["_id"]})).ok()
    for route, reply in await replies(client, stranger, OF_CLIENTS):
        assert (reply.status, reply.json) == (401, UNAUTHORIZED), route.path


async def test_an_ended_session_is_refused_by_every_operation(stranger: Caller) -> None:
    coach, client = await stranger.key.interactive(), await stranger.key.as_client(stranger.customer)
    for session, routes in ((coach, OF_COACHES), (client, OF_CLIENTS)):
        (await session.post("/auth/logout")).ok()
        for route, reply in await replies(session, stranger, routes):
            assert (reply.status, reply.json) == (401, UNAUTHORIZED), route.path


async def waiting_replies(
    stranger: Caller, services: Services, clients: list[CoachClient], revoke: Callable[[], Awaitable[object]]
) -> list[Reply]:
    """The answers to requests for events that wait while `revoke` is called, and then a client is created."""
    company = stranger.key.ctx.company_id
    held = []
    for client in clients:
        start = (await client.get("/coach/events", limit=500)).ok()
        while start["hasMore"]:
            start = (await client.get("/coach/events", limit=500, after=start["nextCursor"])).ok()
        held.append(
            asyncio.create_task(
                client.get("/coach/events", after=start["nextCursor"], types="customer.created", wait=25)
            )
        )
    await until(lambda: services.number_signals.count(company) > 0, "the requests wait")
    await revoke()
    await stranger.key.create_customer("Secret")
    return list(await asyncio.wait_for(asyncio.gather(*held), 20))


async def test_a_waiting_request_is_refused_when_its_credential_ends(stranger: Caller, services: Services) -> None:
    created = (await stranger.session.post("/coach/api-keys", {"name": "Lost"})).ok(201)
    lost = stranger.key.with_key(created["key"])
    employee_id, key, session = await employee_of(stranger)
    ended = await stranger.key.interactive()

    async def revoke() -> None:
        (await stranger.session.delete(f"/coach/api-keys/{created['_id']}")).ok(204)
        (await stranger.session.delete(f"/coach/employees/{employee_id}")).ok(204)
        (await ended.post("/auth/logout")).ok()

    for reply in await waiting_replies(stranger, services, [lost, key, session, ended], revoke):
        assert reply.status == 401, reply.raw


async def test_a_waiting_request_is_refused_when_its_permissions_are_taken(
    stranger: Caller, services: Services
) -> None:
    employee_id, key, session = await employee_of(stranger)

    async def take() -> None:
        path, nothing = f"/coach/employees/{employee_id}/permissions", {"permissions": [], "customersScope": "all"}
        (await stranger.session.put(path, nothing)).ok()

    for reply in await waiting_replies(stranger, services, [key, session], take):
        assert reply.status == 403, reply.raw
