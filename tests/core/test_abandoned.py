"""A transaction that is not continued is aborted, so that its documents can be written again."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from coaching_service.core.database.connection import APP_NAME, server_state
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.installation.abandoned import DISCONNECTED_SECONDS, IDLE_SECONDS, AbandonedTransactions
from coaching_service.settings import Settings
from tests.support.service_process import until


async def is_empty(listing: Awaitable[list[Mapping[str, Any]]]) -> bool:
    return not await listing


async def test_idle_transactions_are_aborted_and_those_in_use_are_not(services: Services) -> None:
    documents, client = services.db["abandoned"], services.db.client
    ids = [ObjectId(), ObjectId()]
    await documents.insert_many([{"_id": each, "count": 0} for each in ids])
    watch = AbandonedTransactions(services)
    async with await client.start_session() as idle, await client.start_session() as used:
        for session, each in zip((idle, used), ids, strict=True):
            session.start_transaction()
            await documents.update_one({"_id": each}, {"$inc": {"count": 1}}, session=session)
        assert await watch.abort(0) == 0
        assert await watch.abort(IDLE_SECONDS - 0.1) == 0
        await documents.update_one({"_id": ids[1]}, {"$inc": {"count": 1}}, session=used)
        assert await watch.abort(IDLE_SECONDS) >= 1
        await used.commit_transaction()
        await documents.update_one({"_id": ids[0]}, {"$inc": {"count": 10}})
        with pytest.raises(OperationFailure) as failure:
            await idle.commit_transaction()
        assert failure.value.has_error_label("TransientTransactionError")
    assert [document["count"] async for document in documents.find().sort("_id")] == [10, 2]
    await documents.drop()


async def test_transactions_of_a_process_that_has_ended_are_aborted_sooner(
    services: Services, settings: Settings
) -> None:
    """Other applications of the tests may abort the transaction too, so it is not counted."""
    documents, client = services.db["abandoned"], services.db.client
    ids = [ObjectId(), ObjectId()]
    await documents.insert_many([{"_id": each, "count": 0} for each in ids])
    ended: MongoClient[dict[str, int]] = MongoClient(settings.mongodb_uri, appname=APP_NAME)
    watch, count = AbandonedTransactions(services), {"$inc": {"count": 1}}

    async def connections_with(address: str) -> list[Mapping[str, Any]]:
        listed: list[Mapping[str, Any]] = [
            {"$currentOp": {"idleConnections": True}},
            {"$match": {"type": "op", "client": address}},
        ]
        return [each async for each in server_state(client).aggregate(listed)]

    async with await client.start_session() as connected, await client.start_session() as later:
        disconnected = ended.start_session()
        disconnected.start_transaction()
        ended[services.db.name]["abandoned"].update_one({"_id": ids[0]}, count, session=disconnected)
        connected.start_transaction()
        await documents.update_one({"_id": ids[1]}, count, session=connected)
        assert await watch.abort(0) == 0
        address = ended["admin"].command("whatsmyuri")["you"]  # of the only connection of its pool
        assert len(await connections_with(address)) == 1
        ended.close()
        await until(lambda: is_empty(connections_with(address)), "the database has closed the connection")
        assert await watch.abort(0) == 0
        await watch.abort(DISCONNECTED_SECONDS)
        async with later.start_transaction():
            await documents.update_one({"_id": ids[0]}, {"$inc": {"count": 10}}, session=later)
        await connected.commit_transaction()
    assert [document["count"] async for document in documents.find().sort("_id")] == [10, 1]
    await documents.drop()
