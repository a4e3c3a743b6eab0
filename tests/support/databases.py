"""Databases of their own for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from pymongo.read_concern import ReadConcern

from coaching_service import runtime
from coaching_service.core.database.context import Database, Services
from coaching_service.settings import Settings

INDEX_STATE = "indexState"  # says which indexes the database has


async def remove_documents(database: Database, but_of: Collection[str] = ()) -> None:
    """Remove the documents of all collections; to drop a database and create its indexes again takes ten times as long."""
    for name in await database.list_collection_names():
        if not name.startswith("system.") and name not in but_of:
            await database[name].delete_many({})


def profile_of(database: Database) -> Any:
    """Return the collection of profiled commands, of which no majority knows: it is not replicated."""
    return database.get_collection("system.profile", read_concern=ReadConcern("local"))


@asynccontextmanager
async def new_database(
    settings: Settings, suffix: str, *, has_indexes: bool = True
) -> AsyncIterator[tuple[Settings, Services]]:
    """Settings and services of a database that is dropped before and after, with all indexes or none."""
    own = settings.model_copy(update={"mongodb_database": f"{settings.mongodb_database}_{suffix}"})
    async with runtime.open_services(own) as services:
        await services.db.client.drop_database(own.mongodb_database)
        if has_indexes:
            await runtime.make_indexes(services)
        yield own, services
        await services.db.client.drop_database(own.mongodb_database)


@asynccontextmanager
async def own_database(settings: Settings, suffix: str) -> AsyncIterator[Settings]:
    """Settings with a database that is dropped before and after, and has no indexes."""
    async with new_database(settings, suffix, has_indexes=False) as (own, _):
        yield own
