"""Making a backup: all collections as they were at one moment, while the service runs."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import cast

import pymongo
import structlog
from motor.motor_asyncio import AsyncIOMotorClientSession
from pymongo.errors import OperationFailure

from coaching_service import __version__
from coaching_service.core.auth import new_token
from coaching_service.core.background import running_in_background
from coaching_service.core.database import across_companies, migrations
from coaching_service.core.database.backup import manifest as backup_manifest
from coaching_service.core.database.backup.parts import PartWriter, named_parts, part_names
from coaching_service.core.database.backup.stored import StoredBackups
from coaching_service.core.database.context import Services, reading_snapshot
from coaching_service.core.database.documents import registry

_COMPRESSION = 3
_LEASE = "backup"
_RENEWAL_SECONDS = across_companies.LEASE.total_seconds() / 4
RESTORING = "restoring."
_SECONDS = 24 * 3600
_WINDOW = "minSnapshotHistoryWindowInSeconds"
_DEFAULT_WINDOW = 300  # of MongoDB
EXTENDED_WINDOW = _SECONDS + 1  # a value that only backups set
_NO_UNNAMED_FILES = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
_TOO_OLD = (239, 246)  # SnapshotTooOld, SnapshotUnavailable
_PRIMARY = "_id_"

# Stores the documents of a collection, which come in batches of complete BSON documents.
CollectionWriter = Callable[[str, AsyncIterator[bytes]], Awaitable[backup_manifest.CollectionContent]]

log = structlog.get_logger("coaching_service.backup")


async def create_stored_backup(services: Services, writer: PartWriter) -> tuple[str, backup_manifest.Manifest]:
    """Store a backup, and return its name and manifest.

    Each new part is read again and compared. The manifest is stored last, when the store has all parts. Raises
    BackupError if the store cannot be used or has lost a part, or the database no longer has the moment.
    """
    await asyncio.to_thread(writer.store.clean)
    writer.digests = await asyncio.to_thread(_read_digests, writer)
    await asyncio.to_thread(writer.find_stored)
    manifest = await read_moment(services, writer.write)
    manifest["recipients"] = list(writer.encryption.recipients)
    await asyncio.to_thread(_require_parts, writer, manifest)
    return await asyncio.to_thread(StoredBackups(writer.store).write, manifest, services.vault), manifest


def _read_digests(writer: PartWriter) -> dict[str, str]:
    """Return what the newest backup says that the store has."""
    newest = StoredBackups(writer.store).read_newest()
    return {name: part["stored"] for name, part in named_parts(newest) if "stored" in part} if newest else {}


def _require_parts(writer: PartWriter, manifest: backup_manifest.Manifest) -> None:
    present = writer.find_stored()
    if missing := set(part_names(manifest)) - present:
        raise backup_manifest.BackupError(f"{writer.store.location} has lost {len(missing)} parts meanwhile: try again")


@asynccontextmanager
async def backing_up(services: Services) -> AsyncIterator[None]:
    """Let no other process use the store of backups of this database. Raises BackupError if one does."""
    holder = new_token()
    if not await across_companies.acquire(services, _LEASE, holder):
        raise backup_manifest.BackupError("Another backup of this database is being made: wait until it ends")

    async def renew() -> None:
        while True:
            await asyncio.sleep(_RENEWAL_SECONDS)
            await across_companies.acquire(services, _LEASE, holder)

    try:
        async with running_in_background(renew):
            yield
    finally:
        await across_companies.release(services, _LEASE, holder)


# --- Reading ---------------------------------------------------------------------------------------------------------


async def read_moment(services: Services, write: CollectionWriter) -> backup_manifest.Manifest:
    """Let `write` store each collection as it is at the moment of the call, and return the manifest.

    Raises BackupError if the database no longer has that moment.
    """
    await services.db.command("ping")  # with the deadlines of requests: those below are long
    try:
        with pymongo.timeout(_SECONDS):
            return await _read(services, write)
    except OperationFailure as error:
        if error.code not in _TOO_OLD:
            raise
        raise backup_manifest.BackupError(
            "The database no longer has the moment at which the backup began, or its indexes were changed meanwhile: "
            "try again, or use mongodump --oplog"
        ) from None


async def backed_up_collections(services: Services) -> list[str]:
    """Return the names of the collections that a backup has: without what only running processes need."""
    state = {name for name, collection in registry.items() if collection.process_state}
    names: list[str] = await services.db.list_collection_names(filter={"type": "collection"})
    return sorted(name for name in names if name not in state and not name.startswith(("system.", RESTORING)))


async def _read(services: Services, write: CollectionWriter) -> backup_manifest.Manifest:
    names = await backed_up_collections(services)
    async with _extending_history(services), reading_snapshot(services) as session:
        steps = services.db[migrations.COLLECTION].find({}, {"_id": 1}, session=session)
        applied = sorted([step["_id"] async for step in steps])
        created_at = datetime.now(UTC)
        collections = [await _read_collection(services, name, session, write) for name in names]
    return {
        "format": backup_manifest.FORMAT,
        "version": backup_manifest.VERSION,
        "serviceVersion": __version__,
        "createdAt": created_at.isoformat(timespec="seconds"),
        "database": services.db.name,
        "migrations": applied,
        "keyFingerprints": services.vault.fingerprints,
        "collections": collections,
    }


@asynccontextmanager
async def _extending_history(services: Services) -> AsyncIterator[None]:
    """Let the database retain for a day what reading the state of one moment needs, instead of for five minutes.

    The setting of a backup that was killed is reset; of two at the same time, the first that ends resets it.
    A user who must not change that can make a backup that takes less time.
    """
    admin = services.db.client.admin
    try:
        current = (await admin.command({"getParameter": 1, _WINDOW: 1}))[_WINDOW]
        before = _DEFAULT_WINDOW if current == EXTENDED_WINDOW else current
        await admin.command({"setParameter": 1, _WINDOW: max(before, EXTENDED_WINDOW)})
    except OperationFailure as error:
        log.warning("the backup has to end within five minutes", reason=error.details)
        yield
        return
    try:
        yield
    finally:
        with suppress(OperationFailure):
            await admin.command({"setParameter": 1, _WINDOW: before})


async def _read_collection(
    services: Services, name: str, session: AsyncIOMotorClientSession, write: CollectionWriter
) -> backup_manifest.CollectionEntry:
    collection = services.db[name]
    stored = [dict(index) async for index in collection.list_indexes()]
    indexes = [{key: value for key, value in each.items() if key not in ("v", "ns")} for each in stored]
    batches = cast("AsyncIterator[bytes]", collection.find_raw_batches({}, session=session))
    content = await write(name, batches)
    return {"name": name, **content, "indexes": [index for index in indexes if index["name"] != _PRIMARY]}
