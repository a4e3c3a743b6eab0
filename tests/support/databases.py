"""Databases of their own for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from coaching_service import runtime
from coaching_service.core.database.context import Database
from coaching_service.settings import Settings

INDEX_STATE = "indexState"  # says which indexes the database has


async def remove_documents(database: Database, but_of: Collection[str] = ()) -> None:
    """Remove the documents of all collections; to drop a database and create its indexes again takes ten times as long."""
    for name in await database.list_collection_names():
        if not name.startswith("system.") and name not in but_of:
            await database[name].delete_many({})


@asynccontextmanager
async def own_database(settings: Settings, suffix: str) -> AsyncIterator[Settings]:
    """Settings with a database that is dropped before and after."""
    own = settings.model_copy(update={"mongodb_database": f"{settings.mongodb_database}_{suffix}"})
    async with runtime.open_services(own) as services:
        await services.db.client.drop_database(own.mongodb_database)
        yield own
        await services.db.client.drop_database(own.mongodb_database)
