"""Motor and PyMongo's own asynchronous API, which differ in how transactions and aggregations begin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

# As the service: a write is acknowledged by a majority, on disk.
_OPTIONS: dict[str, Any] = {"w": "majority", "journal": True, "tz_aware": False}


class Driver(Protocol):
    """A database, and what differs between the drivers. Their collections and cursors have the same other methods."""

    db: Any

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """A session with a transaction that is committed at the end, or aborted by an exception."""

    async def aggregate(self, collection: str, stages: list[dict[str, Any]]) -> list[Any]:
        """The documents that a pipeline returns."""


class MotorDriver:
    """Motor: an event loop and threads."""

    def __init__(self, uri: str, database: str) -> None:
        from motor.motor_asyncio import AsyncIOMotorClient

        self.client = AsyncIOMotorClient(uri, **_OPTIONS)
        self.db = self.client[database]

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """See Driver."""
        async with await self.client.start_session() as session, session.start_transaction():
            yield session

    async def aggregate(self, collection: str, stages: list[dict[str, Any]]) -> list[Any]:
        """See Driver."""
        documents: list[Any] = await self.db[collection].aggregate(stages).to_list(None)
        return documents


class PymongoDriver:
    """PyMongo's asynchronous API: an event loop only."""

    def __init__(self, uri: str, database: str) -> None:
        from pymongo import AsyncMongoClient

        self.client: Any = AsyncMongoClient(uri, **_OPTIONS)
        self.db = self.client[database]

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """See Driver."""
        async with self.client.start_session() as session, await session.start_transaction():
            yield session

    async def aggregate(self, collection: str, stages: list[dict[str, Any]]) -> list[Any]:
        """See Driver."""
        cursor = await self.db[collection].aggregate(stages)
        documents: list[Any] = await cursor.to_list(None)
        return documents


DRIVERS: dict[str, type[MotorDriver | PymongoDriver]] = {"motor": MotorDriver, "pymongo": PymongoDriver}
