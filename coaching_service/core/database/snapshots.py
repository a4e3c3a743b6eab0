"""Reading several collections as they were at one moment, while others write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from motor.motor_asyncio import AsyncIOMotorClientSession

from coaching_service.core.database.context import Services


@asynccontextmanager
async def reading_snapshot(services: Services) -> AsyncIterator[AsyncIOMotorClientSession]:
    """A session whose finds and aggregations all read the state at the moment of the first one.

    MongoDB stores what such reads need for five minutes (`minSnapshotHistoryWindowInSeconds`); later ones fail.
    """
    session = await services.db.client.start_session(snapshot=True)
    try:
        yield session
    finally:
        await session.end_session()
