"""`scripts/torture` names what was lost, doubled or half done: the damage is planted here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database.context import Database, Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.erasure import ERASE_CUSTOMER
from coaching_service.people.customers.store import GROUPS
from coaching_service.settings import Settings
from tests.reliability.torture.__main__ import PROGRAM_DAYS, create_company, create_world
from tests.reliability.torture.ledger import AT_MOST_ONCE, NEVER, ONCE, Assignment, Ledger, Photo
from tests.reliability.torture.operations import BULK_CLIENTS, World, Writer
from tests.reliability.torture.verification import Verification
from tests.support.databases import new_database
from tests.support.sampled import proof
from tests.support.service_process import until


@dataclass
class Run:
    """A load without faults: what was answered, and where it is stored."""

    services: Services
    http: aiohttp.ClientSession
    ledger: Ledger = field(default_factory=Ledger)
    world: World = field(default_factory=World)

    @property
    def db(self) -> Database:
        return self.services.db

    async def verify(self) -> list[str]:
        """The problems that the verification names."""
        verification = Verification(self.http, self.services, self.ledger, len(PROGRAM_DAYS))
        await verification.run()
        assert min(verification.checked.values()) > 0
        return verification.problems


@pytest.fixture
async def run(settings: Settings) -> AsyncIterator[Run]:
    """Each operation once, on a database of its own."""
    async with new_database(settings, "torture", has_indexes=False) as (own, services):
        key = await create_company(services)
        async with TestServer(create_app(own, services)) as server:
            url = str(server.make_url("")).rstrip("/")
            async with aiohttp.ClientSession(url, headers={"X-API-Key": key}) as http:
                started = Run(services, http)
                await create_world(http, started.world, BULK_CLIENTS)
                writer = Writer(0, [url], key, started.ledger, started.world)
                async with writer.open() as connections:
                    for operation in (*writer.operations, writer.import_clients):
                        await operation(connections)
                await until(lambda: erase_now(started), "the deleted client is erased")
                yield started


async def erase_now(run: Run) -> bool:
    """Whether erasures have ended, the second pass of which would begin after a minute."""
    erasures = {"kind": ERASE_CUSTOMER}
    await run.db["jobs"].update_many({**erasures, "arguments.isSecondPass": True}, {"$set": {"runAfter": now()}})
    return await run.db["jobs"].count_documents(erasures) == 0


async def lose_a_note(run: Run) -> str:
    marker = next(iter(run.ledger.notes))
    assert (await run.db["notes"].delete_one({"content": marker})).deleted_count == 1
    return f"Notes, answered, stored once: {marker}: stored 0 times"


async def double_a_note(run: Run) -> str:
    marker = list(run.ledger.notes)[1]
    run.ledger.notes[marker] = AT_MOST_ONCE
    note = await run.db["notes"].find_one({"content": marker})
    await run.db["notes"].insert_one({**note, "_id": ObjectId()})  # type: ignore[dict-item]
    return f"Notes, not answered, stored at most once: {marker}: stored 2 times"


async def store_what_was_said_to_be_unchanged(run: Run) -> str:
    marker = "marker-refused"
    run.ledger.notes[marker] = NEVER
    note = await run.db["notes"].find_one({"content": next(iter(run.ledger.notes))})
    await run.db["notes"].insert_one({**note, "_id": ObjectId(), "content": marker})  # type: ignore[dict-item]
    return f"Notes, answered that nothing was changed, not stored: {marker}: stored 1 times"


async def move_an_item_by_half(run: Run) -> str:
    (move,) = run.ledger.moves
    await run.db["workoutBlocks"].update_one(
        {"_id": ObjectId(move.blocks[1])}, {"$pull": {"items": {"_id": ObjectId(move.item)}}}
    )
    return f"Items moved from one workout to another: {move.item} is [0, 0] times in them"


async def lose_the_sets(run: Run) -> str:
    (log,) = run.ledger.logs
    result = await run.db["workoutBlocks"].update_one(
        {"items._id": ObjectId(log.item)}, {"$set": {"items.$.customerSets.0.reps": 99}}
    )
    assert result.modified_count == 1
    return f"Sets logged: {log.item} has [99], not [{log.reps}]"


async def leave_a_group(run: Run) -> str:
    ((group, clients),) = run.ledger.groups.items()
    client = min(clients)
    await run.db["customers"].update_one({"_id": ObjectId(client)}, {"$pull": {GROUPS: group}})
    return f"Clients added to groups: {client} is not in {group}"


async def send_a_message_to_some(run: Run) -> str:
    message = run.ledger.messages[1]
    assert (await run.db["messages"].delete_one({"text": message.marker})).deleted_count == 1
    return f"Messages to several clients, complete: only some have {message.marker}"


async def assign_half_a_program(run: Run) -> str:
    assignment = run.ledger.assignments[0]
    await run.db["workoutBlocks"].delete_one({"customerId": ObjectId(assignment.client)})
    return f"Programs assigned, complete: {assignment.client} has a part of it"


async def forget_an_assignment(run: Run) -> str:
    assignment = run.ledger.assignments[1]
    run.ledger.assignments[1] = Assignment(assignment.client, ONCE)
    await run.db["workoutBlocks"].delete_many({"customerId": ObjectId(assignment.client)})
    return f"Programs assigned, answered, stored once: {assignment.client}: stored 0 times"


async def lose_the_bytes_of_a_photo(run: Run) -> str:
    client = run.ledger.photos[0].client
    async for file in run.db["fs.files"].find({"customerId": ObjectId(client)}):
        await run.db["fs.chunks"].delete_many({"files_id": file["_id"]})
    return f"Files of photos readable: {client}"


async def lose_a_photo(run: Run) -> str:
    client = run.ledger.photos[1].client
    run.ledger.photos[1] = Photo(client, ONCE)
    await run.db["progressPhotos"].delete_many({"customerId": ObjectId(client)})
    return f"Photos uploaded, answered, stored once: {client}: stored 0 times"


async def import_a_client_twice(run: Run) -> str:
    name = run.ledger.imports[0].names[7]
    client = await run.db["customers"].find_one({"name": name})
    assert client is not None
    await run.db["customers"].insert_one({**client, "_id": ObjectId(), "firstAccessHash": "another"})
    return f"Clients imported, answered, stored once: {name}: stored 2 times"


async def leave_data_of_a_deleted_client(run: Run) -> str:
    (client,) = run.ledger.deleted_clients
    await run.db["notes"].insert_one({"customerId": ObjectId(client), "content": "left"})
    return "Collections without data of deleted clients: notes has 1 documents"


async def keep_a_deleted_client(run: Run) -> str:
    run.ledger.deleted_clients.append(run.world.clients[0])
    return f"Clients deleted: {run.world.clients[0]}: 200"


async def miscount_clients(run: Run) -> str:
    await run.db["customerTotals"].update_one({}, {"$inc": {"active": 5}})
    return "doctor: "


DAMAGES: tuple[Callable[[Run], Awaitable[str]], ...] = (
    store_what_was_said_to_be_unchanged,
    *(lose_a_note, double_a_note, move_an_item_by_half, lose_the_sets, leave_a_group, send_a_message_to_some),
    *(assign_half_a_program, forget_an_assignment, lose_the_bytes_of_a_photo, lose_a_photo, import_a_client_twice),
    *(leave_data_of_a_deleted_client, keep_a_deleted_client, miscount_clients),
)


@proof
async def test_each_damage_is_named_and_a_run_without_damage_passes(run: Run) -> None:
    assert run.ledger.unplanned == []
    assert await run.verify() == []
    expected = [await damage(run) for damage in DAMAGES]
    problems = await run.verify()
    for each in expected:
        assert any(problem.startswith(each) for problem in problems), each


async def test_responses_that_no_fault_explains_are_recorded() -> None:
    """Another status than 503 where the service fails, and 503 that does not say when to try again."""

    async def respond(request: web.Request) -> web.Response:
        status, _, code = request.match_info["status"].partition("-")
        return web.json_response({"code": code}, status=int(status), headers={"Retry-After": "1"} if code else {})

    app = web.Application()
    app.router.add_get("/{status}", respond)
    ledger = Ledger()
    async with TestServer(app) as server:
        writer = Writer(0, [str(server.make_url("")).rstrip("/")], "key", ledger, World())
        async with writer.open() as http:
            for path in ("/500", "/503", "/404", "/503-UNAVAILABLE", "/503-OUTCOME_UNKNOWN"):
                await writer.send_once(http, "GET", path)
            key = {"Idempotency-Key": "a key"}
            await writer.send_once(http, "GET", "/503-OUTCOME_UNKNOWN", headers=key)
    assert ledger.unplanned == [
        "GET /500: 500 {'code': ''}",
        "GET /503: 503 with Retry-After False {'code': ''}",
        "GET /503-OUTCOME_UNKNOWN: 503 with Retry-After True {'code': 'OUTCOME_UNKNOWN'}",
    ]
    assert ledger.statuses() == {"500": 1, "503": 4, "404": 1}
