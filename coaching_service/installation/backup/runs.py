"""Making a backup of all collections as they were at one moment, while the service runs; restoring and verifying it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pymongo
import structlog
from bson.raw_bson import RawBSONDocument
from motor.motor_asyncio import AsyncIOMotorClientSession
from pymongo.errors import OperationFailure

from coaching_service import __version__
from coaching_service.core.auth import Vault, new_token
from coaching_service.core.background import running_in_background
from coaching_service.core.database import across_companies
from coaching_service.core.database.context import Collection, Services, reading_snapshot
from coaching_service.core.database.documents import registry
from coaching_service.installation import migrations
from coaching_service.installation.backup import contents
from coaching_service.installation.backup.contents import Decryption, Manifest, PartWriter, StoredBackups
from coaching_service.installation.backup.stores import BackupError, Store

_LEASE = "backup"
_RENEWAL_SECONDS = across_companies.LEASE.total_seconds() / 4
RESTORING = "restoring."
_SECONDS = 24 * 3600
_WINDOW = "minSnapshotHistoryWindowInSeconds"
_DEFAULT_WINDOW = 300  # of MongoDB
EXTENDED_WINDOW = _SECONDS + 1  # a value that only backups set
_TOO_OLD = (239, 246)  # SnapshotTooOld, SnapshotUnavailable

log = structlog.get_logger("coaching_service.backup")


async def create_stored_backup(services: Services, writer: PartWriter) -> tuple[str, Manifest]:
    """Store a backup, and return its name and manifest.

    Each new part is read again and compared. The manifest is stored last, when the store has all parts. Raises
    BackupError if the store cannot be used or has lost a part, or the database no longer has the moment.
    """
    backups = StoredBackups(writer.store)
    await asyncio.to_thread(writer.store.clean)
    if (newest := await asyncio.to_thread(backups.read_newest)) is not None:
        writer.digests = {name: part["stored"] for name, part in contents.named_parts(newest) if "stored" in part}
    await asyncio.to_thread(writer.find_stored)
    manifest = await read_moment(services, writer)
    manifest["recipients"] = list(writer.encryption.recipients)
    present = await asyncio.to_thread(writer.find_stored)
    if missing := set(contents.part_names(manifest)) - present:
        raise BackupError(f"{writer.store.location} has lost {len(missing)} parts meanwhile: try again")
    return await asyncio.to_thread(backups.write, manifest, services.vault), manifest


@asynccontextmanager
async def backing_up(services: Services) -> AsyncIterator[None]:
    """Let no other process use the store of backups of this database. Raises BackupError if one does."""
    holder = new_token()
    if not await across_companies.acquire(services, _LEASE, holder):
        raise BackupError("Another backup of this database is being made: wait until it ends")

    async def renew() -> None:
        while True:
            await asyncio.sleep(_RENEWAL_SECONDS)
            await across_companies.acquire(services, _LEASE, holder)

    try:
        async with running_in_background(renew):
            yield
    finally:
        await across_companies.release(services, _LEASE, holder)


# --- Reading --------------------------------------------------------------------------------------------------------


async def read_moment(services: Services, writer: PartWriter) -> Manifest:
    """Store each collection as it is at the moment of the call, and return the manifest.

    Raises BackupError if the database no longer has that moment.
    """
    await services.db.command("ping")  # with the deadlines of requests: those below are long
    try:
        with pymongo.timeout(_SECONDS):
            names = await backed_up_collections(services)
            async with _extending_history(services), reading_snapshot(services) as session:
                steps = services.db[migrations.COLLECTION].find({}, {"_id": 1}, session=session)
                applied = sorted([step["_id"] async for step in steps])
                created_at = datetime.now(UTC)
                collections = [await _back_up(services.db[name], session, writer) for name in names]
    except OperationFailure as error:
        if error.code not in _TOO_OLD:
            raise
        raise BackupError(
            "The database no longer has the moment at which the backup began, or its indexes were changed meanwhile: "
            "try again, or use mongodump --oplog"
        ) from None
    return {
        "format": contents.FORMAT,
        "version": contents.VERSION,
        "serviceVersion": __version__,
        "createdAt": created_at.isoformat(timespec="seconds"),
        "database": services.db.name,
        "migrations": applied,
        "keyFingerprints": services.vault.fingerprints,
        "collections": collections,
    }


async def backed_up_collections(services: Services) -> list[str]:
    """Return the names of the collections that a backup has: without what only running processes need."""
    state = {name for name, collection in registry.items() if collection.process_state}
    names: list[str] = await services.db.list_collection_names(filter={"type": "collection"})
    return sorted(name for name in names if name not in state and not name.startswith(("system.", RESTORING)))


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


async def _back_up(
    collection: Collection, session: AsyncIOMotorClientSession, writer: PartWriter
) -> contents.CollectionEntry:
    indexes = [
        {key: value for key, value in index.items() if key not in ("v", "ns")}
        async for index in collection.list_indexes()
        if index["name"] != "_id_"
    ]
    batches = cast("AsyncIterator[bytes]", collection.find_raw_batches({}, session=session))
    return await writer.write(collection.name, indexes, batches)


# --- Restoring: into an empty database, or in place of what a database has --------------------------------------------


_BATCH = 1_000
_BATCH_BYTES = 8_000_000

# Reads the documents of a collection.
Source = Callable[[contents.CollectionEntry], AsyncIterator[bytes]]


def require_known(manifest: Manifest) -> None:
    """Raise BackupError if the documents of a backup have a shape that this version does not know."""
    if set(manifest["migrations"]) - {step.number for step in migrations.STEPS}:
        raise BackupError(
            f"The backup was made by a newer version of the service, {manifest['serviceVersion']}: use that"
        )


def require_keys(manifest: Manifest, vault: Vault) -> None:
    """Raise BackupError if a master key is missing with which the backed up service could read."""
    if missing := [each for each in manifest["keyFingerprints"] if each not in vault.fingerprints]:
        raise BackupError(
            f"The backup is of a service with other master keys ({', '.join(missing)}; configured are "
            f"{', '.join(vault.fingerprints)}): set these in SECRET_KEYS, or put back its secret.key"
        )


def documents_in(folder: Path) -> Source:
    """Return what reads the files of a backup in a folder of its own, and compares them with its manifest."""

    async def read(entry: contents.CollectionEntry) -> AsyncIterator[bytes]:
        for document in contents.iterate_documents(folder / entry["file"], entry["sha256"]):
            yield document

    return read


async def restore_backup(
    services: Services,
    documents: Source,
    manifest: Manifest,
    report: contents.Report,
    *,
    replacing: bool,
) -> None:
    """Store the `documents` of a backup, with its indexes.

    Each collection is stored under another name first, and all are renamed when they are complete, so that a failure
    before that changes nothing. `replacing`: what the database has is deleted then. Raises BackupError if it has
    documents, unless `replacing`, or if documents were not stored.
    """
    await services.db.command("ping")  # with the deadlines of requests: those below are long
    with pymongo.timeout(_SECONDS):
        existing = await services.db.list_collection_names(filter={"type": "collection"})
        for name in existing:
            if name.startswith(RESTORING):  # of a restore that was interrupted
                await services.db.drop_collection(name)
            elif not replacing and await services.db[name].find_one({}, {"_id": 1}) is not None:
                raise BackupError(
                    f"The database {services.db.name} is not empty: restore into another one, or add --replace"
                )
        names = [entry["name"] for entry in manifest["collections"]]
        for entry in manifest["collections"]:
            await _store(services, documents, entry, report)
        for name in names:
            own = f"{services.db.name}.{name}"
            await services.db.client.admin.command(
                {"renameCollection": f"{services.db.name}.{RESTORING}{name}", "to": own, "dropTarget": True}
            )
        for name in existing:
            if name not in names and not name.startswith(("system.", RESTORING)):
                await services.db.drop_collection(name)


async def _store(
    services: Services, documents: Source, entry: contents.CollectionEntry, report: contents.Report
) -> None:
    name = RESTORING + entry["name"]
    collection = await services.db.create_collection(name)
    size, batch = 0, list[RawBSONDocument]()

    async def store() -> None:
        if batch:
            await collection.insert_many(cast("list[Any]", batch), ordered=False)
            report(len(batch))

    async for document in documents(entry):
        batch.append(RawBSONDocument(document))
        size += len(document)
        if len(batch) == _BATCH or size >= _BATCH_BYTES:
            await store()
            size, batch = 0, []
    await store()
    stored = await services.db[name].estimated_document_count()
    if stored != entry["documents"]:
        raise BackupError(f"Only {stored} of {entry['documents']} documents of {entry['name']} were stored")
    if entry["indexes"]:
        await services.db.command({"createIndexes": name, "indexes": entry["indexes"]})


# --- Verifying what a store has of its backups, with the private key or without it, and without a database -----------


_AT_ONCE = 4


@dataclass
class Verification:
    """What was read: the number of `parts` and their `size`, and what is wrong with backups, each a sentence.

    `decrypted` parts were compared with what was backed up; others with what was stored then, or, where the manifest of
    an earlier version does not say that, `unknown` ones with nothing. `unsigned` backups have a signature of a master
    key that was not given.
    """

    backups: int = 0
    parts: int = 0
    size: int = 0
    decrypted: int = 0
    unknown: int = 0
    unsigned: int = 0
    problems: list[str] = field(default_factory=list)


def verify_backups(
    store: Store, names: Sequence[str], decryption: Decryption, vault: Vault | None, report: contents.Report
) -> Verification:
    """Read the manifests of backups, and each of their parts once.

    Raises BackupError if the store cannot be used, or if a private key is given that decrypts one of the backups not.
    """
    result, manifests = Verification(backups=len(names)), list[Manifest]()
    for name in names:
        try:
            manifest = StoredBackups(store).read(name)
            if vault is None or not set(vault.fingerprints) & set(manifest["keyFingerprints"]):
                result.unsigned += 1
            else:
                contents.require_signature(manifest, vault)
            manifests.append(manifest)
        except BackupError as error:
            result.problems.append(f"{name}: {error}")
    if decryption.has_keys:
        for manifest in manifests:
            decryption.require(manifest.get("recipients", ()))
    parts = {
        name: (part, manifest.get("recipients", []))
        for manifest in manifests
        for name, part in contents.named_parts(manifest)
    }
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for part, size, problem in threads.map(lambda name: _compare(store, name, *parts[name], decryption), parts):
            result.parts, result.size = result.parts + 1, result.size + size
            if problem is not None:
                result.problems.append(problem)
            elif decryption.can_decrypt(parts[part][1]):
                result.decrypted += 1
            elif "stored" not in parts[part][0]:
                result.unknown += 1
            report(parts[part][0]["documents"])
    return result


def _compare(
    store: Store, name: str, part: contents.Part, recipients: Sequence[str], decryption: Decryption
) -> tuple[str, int, str | None]:
    """Read a part; returns its name, how many bytes the store has, and what is wrong with it."""
    reader = contents.PartReader(store, decryption, recipients)
    try:
        data = store.read(name)
        reader.compare(name, data, part)
    except BackupError as error:
        return name, 0, str(error)
    return name, len(data), None
