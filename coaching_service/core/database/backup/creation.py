"""Making a backup while the service runs: all collections as they were at one moment."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pymongo
import structlog
from motor.motor_asyncio import AsyncIOMotorClientSession
from pymongo.errors import OperationFailure

from coaching_service import __version__
from coaching_service.core.database import migrations
from coaching_service.core.database.backup.manifest import (
    FORMAT,
    VERSION,
    BackupError,
    CollectionEntry,
    Manifest,
    Report,
    verify,
    write_manifest,
)
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.database.snapshots import reading_snapshot
from coaching_service.core.temporary_files import NO_SPACE

RESTORING = "restoring."
_SECONDS = 24 * 3600
_WINDOW = "minSnapshotHistoryWindowInSeconds"
_TOO_OLD = (239, 246)  # SnapshotTooOld, SnapshotUnavailable
_COMPRESSION = 3
_PRIMARY = "_id_"

log = structlog.get_logger("coaching_service.backup")


async def create_backup(services: Services, folder: Path, report: Report) -> Manifest:
    """Write a backup to the new folder `folder`, and return its manifest.

    It is written under a temporary name, read again and compared, and renamed when it is complete. `report` is called
    for each document that was written and that was read again. Raises BackupError if the folder exists, there is no
    space for it, or the database no longer has the moment that the backup shows.
    """
    await services.db.command("ping")  # with the deadlines of requests: those below are long
    draft = _create_draft(folder)
    try:
        with pymongo.timeout(_SECONDS):
            manifest = await _write(services, draft, report)
        _synchronize(write_manifest(draft, manifest))
        verify(draft, manifest, report)
        _synchronize(draft)
        draft.rename(folder)
        _synchronize(folder.parent)
    except OperationFailure as error:
        if error.code not in _TOO_OLD:
            raise
        raise BackupError(
            "The database no longer has the moment at which the backup began, or its indexes were changed meanwhile: "
            "try again, or use mongodump --oplog"
        ) from None
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise BackupError(
            f"There is no space for the backup in {folder.parent}: free some, or choose another disk"
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _create_draft(folder: Path) -> Path:
    """Create the folder in which a backup is written until it is complete, readable by its owner alone."""
    if folder.exists():
        raise BackupError(f"{folder} exists: choose a new folder for each backup")
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft.mkdir(mode=0o700)
    return draft


async def backed_up_collections(services: Services) -> list[str]:
    """Return the names of the collections that a backup has: without what only running processes need."""
    state = {name for name, collection in declared_collections().items() if collection.process_state}
    names: list[str] = await services.db.list_collection_names(filter={"type": "collection"})
    return sorted(name for name in names if name not in state and not name.startswith(("system.", RESTORING)))


async def _write(services: Services, folder: Path, report: Report) -> Manifest:
    names = await backed_up_collections(services)
    async with _extending_history(services), reading_snapshot(services) as session:
        steps = services.db[migrations.COLLECTION].find({}, {"_id": 1}, session=session)
        applied = sorted([step["_id"] async for step in steps])
        created_at = datetime.now(UTC)
        collections = [await _write_collection(services, name, folder, session, report) for name in names]
    return {
        "format": FORMAT,
        "version": VERSION,
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

    A user who must not change that can make a backup that takes less time.
    """
    admin = services.db.client.admin
    try:
        before = (await admin.command({"getParameter": 1, _WINDOW: 1}))[_WINDOW]
        await admin.command({"setParameter": 1, _WINDOW: max(before, _SECONDS)})
    except OperationFailure as error:
        log.warning("the backup has to end within five minutes", reason=error.details)
        yield
        return
    try:
        yield
    finally:
        with suppress(OperationFailure):
            await admin.command({"setParameter": 1, _WINDOW: before})


class _HashingFile:
    """A file that is hashed as it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.digest = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


async def _write_collection(
    services: Services, name: str, folder: Path, session: AsyncIOMotorClientSession, report: Report
) -> CollectionEntry:
    collection = services.db[name]
    stored = [dict(index) async for index in collection.list_indexes()]
    indexes = [{key: value for key, value in each.items() if key not in ("v", "ns")} for each in stored]
    file, documents, size = folder / f"{name}.bson.gz", 0, 0
    with file.open("xb") as raw:
        hashing: Any = _HashingFile(raw)
        with gzip.GzipFile("", "wb", _COMPRESSION, hashing, mtime=0) as compressed:
            async for batch in collection.find_raw_batches({}, session=session):
                compressed.write(batch)
                count = _count(batch)
                documents, size = documents + count, size + len(batch)
                report(count)
    _synchronize(file)
    return {
        "name": name,
        "file": file.name,
        "sha256": hashing.digest.hexdigest(),
        "documents": documents,
        "bytes": size,
        "indexes": [index for index in indexes if index["name"] != _PRIMARY],
    }


def _count(batch: bytes) -> int:
    count = start = 0
    while start < len(batch):
        start += int.from_bytes(batch[start : start + 4], "little")
        count += 1
    return count


def _synchronize(path: Path) -> None:
    """Write a file, or the entries of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
