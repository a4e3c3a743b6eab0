"""The sequencer numbers every change once, whatever happens to its stream, its lease and its collections."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pymongo.errors import AutoReconnect

from coaching_service import runtime
from coaching_service.core.changes import history as change_history
from coaching_service.core.changes import numbering, undo
from coaching_service.core.changes.numbering import sequencing
from coaching_service.core.changes.store import NEW_PENDING, changes
from coaching_service.core.database import across_companies
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import RunAgain
from coaching_service.people import team
from coaching_service.people.changes import service as history
from coaching_service.people.customers import batch as creation
from coaching_service.people.customers import service as customers
from coaching_service.settings import Settings
from tests.support.databases import INDEX_STATE, new_database, remove_documents
from tests.support.fail_points import fail_point, wait_for_fail_point
from tests.support.sampled import some
from tests.support.service_process import until


@pytest.fixture(scope="module")
async def own_services(settings: Settings) -> AsyncIterator[Services]:
    """Services with a database of their own, where nothing numbers changes."""
    async with new_database(settings, "numbering") as (_, services):
        yield services


@pytest.fixture
async def ctx(own_services: Services) -> AsyncIterator[Context]:
    """A coach on that database, which has nothing else."""
    owner = await team.create_company(Context(own_services), "One", "Olga", "olga@numbering.test", "no hash")
    yield Context(own_services).acting_as(owner)
    await remove_documents(own_services.db, but_of=[INDEX_STATE])


async def create_clients(ctx: Context, count: int) -> list[ObjectId]:
    """Create clients; returns their changes in the order of the commits."""
    ids = []
    for number in range(count):
        client = await creation.create_customer(ctx, {"name": f"Client {number}"})
        change: Any = await ctx.db["changes"].find_one({"customerId": client["_id"]})
        ids.append(change["_id"])
    return ids


async def numbers(ctx: Context) -> list[tuple[ObjectId, int]]:
    """The numbered changes in the order of their numbers."""
    numbered = await ctx.db["changes"].find({"lastSeq": {"$gt": 0}}).sort("lastSeq").to_list(None)
    return [(change["_id"], change["seq"]) for change in numbered]


async def all_numbered(ctx: Context, ids: list[ObjectId]) -> None:
    """Wait until these changes, and no others, are numbered from 1 on in this order."""
    await until(lambda: _none_pending(ctx, len(ids)), "all changes are numbered", 30)
    assert await numbers(ctx) == [(change_id, number) for number, change_id in enumerate(ids, 1)]


async def _none_pending(ctx: Context, count: int) -> bool:
    numbered = await ctx.db["changes"].count_documents({"lastSeq": {"$gt": 0}})
    return numbered >= count and (await numbering.count_pending(ctx.services, 10))["count"] == 0


async def test_lease_is_free_when_the_sequencer_stops_while_it_takes_it(ctx: Context, settings: Settings) -> None:
    """The driver's thread finishes the second update, the one that takes the lease."""
    client, namespace = ctx.db.client, f"{ctx.db.name}.leases"
    async with fail_point(client, settings.mongodb_uri, failCommands=["update"], namespace=namespace) as block:
        met = await block({"times": 2}, blockConnection=True, blockTimeMS=400)
        async with sequencing(ctx.services):
            await wait_for_fail_point(client, met + 2)
    assert not await numbering.is_running(ctx.services)


# Invalid or lost positions, a cursor that is killed or not found, a primary that steps down, and a missing privilege.
STREAM_ERRORS = (260, 280, 286, 237, 43, 189, 13)


async def test_no_error_of_the_stream_stops_the_numbering(
    ctx: Context, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither once, while changes are followed, nor whenever they are."""
    monkeypatch.setattr(numbering, "_RETRY_SECONDS", 0.1)
    client, failing = ctx.db.client, {"failCommands": ["aggregate", "getMore"], "namespace": f"{ctx.db.name}.changes"}
    async with fail_point(client, settings.mongodb_uri, **failing) as fail, sequencing(ctx.services):
        ids = await create_clients(ctx, 1)
        for mode, code in [*(({"times": 1}, code) for code in some(STREAM_ERRORS, 4)), ("alwaysOn", 280)]:
            met = await fail(mode, errorCode=code)
            await wait_for_fail_point(client, met + 1)
            ids += await create_clients(ctx, 1)
            await until(partial(_has_numbered, ctx, len(ids)), f"all changes are numbered after {code}", 30)
    assert [change_id for change_id, _ in await numbers(ctx)] == ids


async def _has_numbered(ctx: Context, count: int) -> bool:
    return len(await numbers(ctx)) == count


async def test_changes_are_numbered_in_the_order_the_database_stored_them(ctx: Context) -> None:
    """Whatever their identifiers and times say; those that an earlier version stored come first."""
    ids = [ObjectId() for _ in range(4)]
    stored = [ids[3], ids[0], ids[2], ids[1]]
    for number, change_id in enumerate(stored):
        change = {"_id": change_id, "companyId": ctx.company_id, "createdAt": now() - timedelta(days=number)}
        await ctx.db["changes"].insert_one({**change, "eventCount": 1, "pending": NEW_PENDING})
    await ctx.db["changes"].update_many({"_id": {"$in": stored[2:]}}, {"$set": {"pending": True}})
    async with sequencing(ctx.services):
        await all_numbered(ctx, [*stored[2:], *stored[:2]])


async def test_change_that_depended_on_another_has_the_later_number(ctx: Context) -> None:
    """The first one is stored last: it was begun before the others, and waited to be committed."""
    client = await creation.create_customer(ctx, {"name": "Ana"})
    begun, may_commit = asyncio.Event(), asyncio.Event()

    async def work(tx: Context) -> None:
        await customers.update(tx, client["_id"], {"name": "Bo"})
        begun.set()
        await may_commit.wait()

    async with sequencing(ctx.services):
        slow = asyncio.create_task(in_transaction(ctx, work))
        await begun.wait()
        others = await create_clients(ctx, 2)
        may_commit.set()
        await slow
        await customers.update(ctx, client["_id"], {"name": "Cy"})
        await until(lambda: _none_pending(ctx, 5), "all changes are numbered", 30)
    named = await ctx.db["changes"].find({"customerId": client["_id"]}).sort("lastSeq").to_list(None)
    assert [change["patch"][0]["fields"][0]["after"] for change in named[1:]] == ["Bo", "Cy"]
    assert {change_id for change_id, _ in await numbers(ctx)} >= set(others)


async def test_damaged_changes_do_not_stop_the_numbering(ctx: Context) -> None:
    """One without a time or a company, which no version has written, before the start and while changes are numbered."""
    damaged: list[dict[str, Any]] = [
        {"companyId": ctx.company_id, "pending": NEW_PENDING},
        {"companyId": ctx.company_id, "pending": NEW_PENDING, "createdAt": now()},
        {"companyId": ctx.company_id},
        {"pending": NEW_PENDING, "createdAt": now()},
    ]
    await ctx.db["changes"].insert_many([{"_id": ObjectId(), **each} for each in damaged])
    async with sequencing(ctx.services):
        await _until_numbered(ctx, await create_clients(ctx, 2))
        await ctx.db["changes"].insert_many([{"_id": ObjectId(), **each} for each in damaged])
        await _until_numbered(ctx, await create_clients(ctx, 2))


async def _until_numbered(ctx: Context, ids: list[ObjectId]) -> None:
    async def are_numbered() -> bool:
        return await ctx.db["changes"].count_documents({"_id": {"$in": ids}, "lastSeq": {"$gt": 0}}) == len(ids)

    await until(are_numbered, "the changes are numbered", 30)


async def test_batches_name_changes_in_order_and_readers_skip_erased_ones(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of any size have the changes that exist, each once, and continue behind those that do not."""
    chance = random.Random(16)
    clients = [ObjectId(), ObjectId()]
    stored = [
        {
            "_id": ObjectId(),
            "companyId": ctx.company_id,
            "customerId": chance.choice(clients),
            "createdAt": now(),
            "eventCount": chance.randint(0, 3),
            "pending": NEW_PENDING,
        }
        for _ in range(60)
    ]
    await ctx.db["changes"].insert_many(stored)
    assert await across_companies.acquire(ctx.services, numbering.LEASE, "first")
    for size in (40, 1, numbering.BATCH):
        monkeypatch.setattr(numbering, "BATCH", size)
        await numbering.number(ctx.services, "first")
    batches = await ctx.db["changeNumbers"].find({}).sort("last").to_list(None)
    named = [change["_id"] for batch in batches for change in batch["changes"]]
    assert named == [change["_id"] for change in stored] == [change_id for change_id, _ in await numbers(ctx)]
    assert [batch["first"] for batch in batches] == [1, *(batch["last"] + 1 for batch in batches[:-1])]

    erased = {change["_id"] for change in stored[10:25] if change["_id"] != stored[20]["_id"]}
    await ctx.db["changes"].delete_many({"_id": {"$in": list(erased)}})
    for client in (None, *clients):
        expected = [
            change["_id"] for change in stored if change["_id"] not in erased and client in (None, change["customerId"])
        ]
        for limit in (1, 4, len(stored)):
            seen, position, has_more = list[ObjectId](), 0, True
            while has_more:
                since = now() - timedelta(days=1)
                page = await change_history.list_numbered(ctx, position, limit, since=since, customer_id=client)
                seen += [change["_id"] for change in page.changes]
                assert page.until > position or not page.has_more
                position, has_more = page.until, page.has_more
            assert seen == expected
            assert position == batches[-1]["last"]


@pytest.mark.parametrize("names", some([("changes", "changeCounters", "leases"), ("changes",), ("leases",)], 1))
async def test_numbering_survives_dropped_collections(ctx: Context, names: tuple[str, ...]) -> None:
    async with sequencing(ctx.services):
        ids = await create_clients(ctx, 2)
        await all_numbered(ctx, ids)
        for name in (*names, INDEX_STATE):  # without it, all indexes are created again
            await ctx.db.drop_collection(name)
        await runtime.make_indexes(ctx.services)
        later = await create_clients(ctx, 2)
        await until(lambda: _none_pending(ctx, 2), "all changes are numbered", 30)
    assert [change_id for change_id, _ in await numbers(ctx)][-2:] == later


async def test_two_sequencers_number_each_change_once_when_the_lease_is_taken(ctx: Context) -> None:
    """The one that has lost the lease stores nothing any more, also in the middle of its work."""
    async with sequencing(ctx.services), sequencing(ctx.services):
        ids = await create_clients(ctx, 3)
        for _ in range(3):
            await ctx.db["leases"].update_one(
                {"_id": numbering.LEASE}, {"$set": {"holder": "another", "expiresAt": now()}}
            )
            ids += await create_clients(ctx, 3)
        await all_numbered(ctx, ids)


async def test_holder_without_the_lease_stores_nothing(ctx: Context) -> None:
    ids = await create_clients(ctx, 1)
    assert await across_companies.acquire(ctx.services, numbering.LEASE, "first")
    assert not await across_companies.acquire(ctx.services, numbering.LEASE, "second")
    await across_companies.release(ctx.services, numbering.LEASE, "first")
    assert await across_companies.acquire(ctx.services, numbering.LEASE, "second")
    with pytest.raises(across_companies.LeaseLost):
        await numbering.number(ctx.services, "first")
    assert await numbers(ctx) == []
    assert [await numbering.number(ctx.services, "second") for _ in range(2)] == [len(ids), 0]
    await all_numbered(ctx, ids)


async def test_numbering_works_while_others_write_the_same_changes(ctx: Context) -> None:
    """Feed entries are hidden in changes that have no number yet; both sides repeat their transactions."""
    touched = 0

    async def touch(change_id: ObjectId) -> None:
        nonlocal touched

        async def work(tx: Context) -> None:
            for _ in range(3):
                await changes.set_derived(tx, {"_id": change_id}, {"$set": {"feedCount": 0}})

        for _ in range(5):
            await in_transaction(ctx, work)
            touched += 1

    async with sequencing(ctx.services), asyncio.TaskGroup() as tasks:
        ids = []
        for _ in range(10):
            [change_id] = await create_clients(ctx, 1)
            ids.append(change_id)
            tasks.create_task(touch(change_id))
        await all_numbered(ctx, ids)
    assert touched == 50


async def test_failures_are_survived(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of the database and of the program, in the stream and while numbering."""
    monkeypatch.setattr(numbering, "_RETRY_SECONDS", 0.01)
    failures = [AutoReconnect("lost"), RuntimeError("unknown"), TimeoutError()]
    number, follow = numbering.number, numbering._watch_new_changes

    async def number_or_fail(*arguments: Any) -> int:
        if failures:
            raise failures.pop()
        return await number(*arguments)

    def follow_or_fail(*arguments: Any) -> None:
        if len(failures) == 1:
            raise failures.pop()
        follow(*arguments)

    monkeypatch.setattr(numbering, "number", number_or_fail)
    monkeypatch.setattr(numbering, "_watch_new_changes", follow_or_fail)
    async with sequencing(ctx.services):
        ids = await create_clients(ctx, 3)
        await all_numbered(ctx, ids)
    assert failures == []


async def test_values_are_removed_after_30_days_and_the_history_stays(ctx: Context) -> None:
    async with sequencing(ctx.services):
        client = await creation.create_customer(ctx, {"name": "Ana"})
        for name in ("Bo", "Cy"):
            await customers.update(ctx, client["_id"], {"name": name})
        await until(lambda: _none_pending(ctx, 3), "all changes are numbered", 30)
    created, old, recent = [change_id for change_id, _ in await numbers(ctx)]
    await ctx.db["changes"].update_one({"_id": old}, {"$set": {"patchUntil": now() - timedelta(seconds=1)}})
    job: Any = None
    assert await undo.remove_old_patches(ctx.services, job) == RunAgain()
    assert await undo.remove_old_patches(ctx.services, job) == RunAgain(timedelta(hours=1))
    stored = {change["_id"]: change async for change in ctx.db["changes"].find()}
    assert "patch" not in stored[old]
    assert "patch" in stored[recent]
    listed = (await history.list_changes(ctx, limit=10))["docs"]
    assert [(change["_id"], change["undoableUntil"] is None) for change in listed] == [
        (recent, False),
        (old, True),
        (created, True),
    ]
    [document] = (await history.get_change(ctx, old))["documents"]
    assert (document["before"], document["after"]) == (None, None)


async def test_large_patches_are_removed_with_their_parts(services: Services) -> None:
    """The database removes the parts by itself: their index expires when they are no longer needed."""
    [index] = [
        index
        for index in (await services.db["changeParts"].index_information()).values()
        if "expireAfterSeconds" in index
    ]
    assert (index["key"], index["expireAfterSeconds"]) == ([("patchUntil", 1)], 0)
