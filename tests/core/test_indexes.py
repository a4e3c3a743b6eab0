"""Indexes whose declaration has changed since they were created."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from motor.motor_asyncio import AsyncIOMotorDatabase
from pymongo.errors import OperationFailure

from coaching_service.core.database.context import Collection, Database, Services
from coaching_service.core.database.declared import Index
from coaching_service.core.ids import ObjectId
from coaching_service.installation.indexes import IndexConflict, ensure_indexes, missing_indexes
from coaching_service.settings import Settings
from tests.support.fail_points import fail_point, wait_for_fail_point

Blocked = Callable[[str, tuple[Index, ...], Callable[[], Awaitable[Any]]], Awaitable[None]]


@pytest.fixture
async def collection(services: Services) -> AsyncIterator[Collection]:
    """An empty collection."""
    new = services.db[f"test{ObjectId()}"]
    yield new
    await new.drop()


def database_of(collection: Collection) -> Database:
    """The database of a collection, which the driver declares as a collection."""
    database: object = collection.database
    assert isinstance(database, AsyncIOMotorDatabase)
    return database


async def ensure(collection: Collection, *indexes: Index) -> dict[str, Any]:
    """Ensure these indexes, and return what is stored."""
    declared = {collection.name: indexes}
    await ensure_indexes(database_of(collection), declared)
    assert await missing_indexes(database_of(collection), declared) == []
    return dict(await collection.index_information())


async def test_equal_index_under_another_name_is_replaced(collection: Collection) -> None:
    await collection.create_index([("companyId", 1), ("date", -1)], name="created_by_hand")
    stored = await ensure(collection, Index(("companyId", "-date")))
    assert set(stored) == {"_id_", "companyId_-date"}


async def test_index_with_other_fields_under_the_same_name_is_replaced(collection: Collection) -> None:
    await collection.create_index([("other", 1)], name="companyId")
    stored = await ensure(collection, Index(("companyId",)))
    assert stored["companyId"]["key"] == [("companyId", 1)]


@pytest.mark.parametrize(("before", "after"), [(60, 120), (None, 120), (60, None)])
async def test_changed_expiry_is_applied(collection: Collection, before: int | None, after: int | None) -> None:
    await ensure(collection, Index(("createdAt",), expire_after=before))
    stored = await ensure(collection, Index(("createdAt",), expire_after=after))
    assert stored["createdAt"].get("expireAfterSeconds") == after


async def test_changed_partial_filter_is_applied(collection: Collection) -> None:
    await ensure(collection, Index(("email",), partial_filter=(("email", {"$type": "string"}),)))
    stored = await ensure(collection, Index(("email",), partial_filter=(("email", {"$exists": True}),)))
    assert stored["email"]["partialFilterExpression"] == {"email": {"$exists": True}}


@pytest.mark.parametrize(("stored", "declared"), [(True, False), (False, True)])
async def test_changed_uniqueness_is_reported_and_nothing_is_dropped(
    collection: Collection, stored: bool, declared: bool
) -> None:
    await ensure(collection, Index(("email",), unique=stored))
    with pytest.raises(IndexConflict, match=r"differs from the .*index email that the service needs: stop the service"):
        await ensure(collection, Index(("email",), unique=declared))
    assert "email" in await collection.index_information()


async def test_unchanged_indexes_are_left_alone(collection: Collection) -> None:
    indexes = (Index(("companyId",)), Index(("email",), unique=True), Index(("createdAt",), expire_after=60))
    assert await ensure(collection, *indexes) == await ensure(collection, *indexes)


@pytest.fixture
async def blocked(collection: Collection, settings: Settings) -> AsyncIterator[Blocked]:
    """A function that ensures indexes, and does something else at a fail point, before the first such command."""
    client = database_of(collection).client

    async def ensure_blocked(command: str, indexes: tuple[Index, ...], meanwhile: Callable[[], Awaitable[Any]]) -> None:
        async with fail_point(
            client, settings.mongodb_uri, failCommands=[command], namespace=collection.full_name
        ) as block:
            met = await block({"times": 1}, blockConnection=True, blockTimeMS=1_000)
            ensuring = asyncio.create_task(ensure_indexes(database_of(collection), {collection.name: indexes}))
            await wait_for_fail_point(client, met + 1)
            await meanwhile()
            await ensuring

    yield ensure_blocked


async def test_collection_that_another_process_creates_meanwhile_is_left_as_it_is(
    collection: Collection, blocked: Blocked
) -> None:
    await blocked("create", (), lambda: collection.insert_one({"by": "another process"}))
    assert await collection.count_documents({}) == 1


async def test_index_that_another_process_drops_meanwhile_is_replaced(collection: Collection, blocked: Blocked) -> None:
    await collection.create_index([("other", 1)], name="companyId")
    await blocked("dropIndexes", (Index(("companyId",)),), lambda: collection.drop_index("companyId"))
    assert (await collection.index_information())["companyId"]["key"] == [("companyId", 1)]


async def test_other_failures_are_raised(collection: Collection, settings: Settings) -> None:
    await collection.create_index([("other", 1)], name="companyId")
    client = database_of(collection).client
    for command, indexes in (("dropIndexes", (Index(("companyId",)),)), ("create", ())):
        namespace = f"{collection.full_name}{'' if indexes else 'other'}"
        async with fail_point(client, settings.mongodb_uri, failCommands=[command], namespace=namespace) as fail:
            await fail({"times": 1}, errorCode=20)
            with pytest.raises(OperationFailure) as raised:
                await ensure_indexes(database_of(collection), {namespace.partition(".")[2]: indexes})
        assert raised.value.code == 20, "an illegal operation"
