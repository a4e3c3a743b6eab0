"""Restoring a backup into an empty database, or in place of what a database has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pymongo
from bson.raw_bson import RawBSONDocument

from coaching_service.core.auth import Vault
from coaching_service.core.database import migrations
from coaching_service.core.database.backup import manifest as backup_manifest
from coaching_service.core.database.backup.creation import RESTORING
from coaching_service.core.database.backup.encryption import Decryption
from coaching_service.core.database.backup.parts import PartReader, named_parts
from coaching_service.core.database.backup.stored import StoredBackups, require_signature
from coaching_service.core.database.backup.stores import Store
from coaching_service.core.database.context import Services

_SECONDS = 24 * 3600.0
_BATCH = 1_000
_BATCH_BYTES = 8_000_000

# Reads the documents of a collection.
Source = Callable[[backup_manifest.CollectionEntry], AsyncIterator[bytes]]


def require_known(manifest: backup_manifest.Manifest) -> None:
    """Raise BackupError if the documents of a backup have a shape that this version does not know."""
    if set(manifest["migrations"]) - {step.number for step in migrations.STEPS}:
        raise backup_manifest.BackupError(
            f"The backup was made by a newer version of the service, {manifest['serviceVersion']}: use that"
        )


def require_keys(manifest: backup_manifest.Manifest, vault: Vault) -> None:
    """Raise BackupError if a master key is missing with which the backed up service could read."""
    if missing := [each for each in manifest["keyFingerprints"] if each not in vault.fingerprints]:
        raise backup_manifest.BackupError(
            f"The backup is of a service with other master keys ({', '.join(missing)}; configured are "
            f"{', '.join(vault.fingerprints)}): set these in SECRET_KEYS, or put back its secret.key"
        )


def documents_in(folder: Path) -> Source:
    """Return what reads the files of a backup in a folder of its own, and compares them with its manifest."""

    async def read(entry: backup_manifest.CollectionEntry) -> AsyncIterator[bytes]:
        for document in backup_manifest.iterate_documents(folder / entry["file"], entry["sha256"]):
            yield document

    return read


async def restore_backup(
    services: Services,
    documents: Source,
    manifest: backup_manifest.Manifest,
    report: backup_manifest.Report,
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
                raise backup_manifest.BackupError(
                    f"The database {services.db.name} is not empty: restore into another one, or add --replace"
                )
        for entry in manifest["collections"]:
            await _store(services, documents, entry, report)
        await _rename(services, manifest, existing)


async def _store(
    services: Services, documents: Source, entry: backup_manifest.CollectionEntry, report: backup_manifest.Report
) -> None:
    name = RESTORING + entry["name"]
    await services.db.create_collection(name)
    size, batch = 0, list[RawBSONDocument]()
    async for document in documents(entry):
        batch.append(RawBSONDocument(document))
        size += len(document)
        if len(batch) == _BATCH or size >= _BATCH_BYTES:
            await services.db[name].insert_many(cast("list[Any]", batch), ordered=False)
            report(len(batch))
            size, batch = 0, []
    if batch:
        await services.db[name].insert_many(cast("list[Any]", batch), ordered=False)
        report(len(batch))
    stored = await services.db[name].estimated_document_count()
    if stored != entry["documents"]:
        raise backup_manifest.BackupError(
            f"Only {stored} of {entry['documents']} documents of {entry['name']} were stored"
        )
    if entry["indexes"]:
        await services.db.command({"createIndexes": name, "indexes": entry["indexes"]})


async def _rename(services: Services, manifest: backup_manifest.Manifest, existing: list[str]) -> None:
    """Put the stored collections in place of the collections of the database; the others are deleted."""
    prefix = services.db.name
    names = [entry["name"] for entry in manifest["collections"]]
    for name in names:
        await services.db.client.admin.command(
            {"renameCollection": f"{prefix}.{RESTORING}{name}", "to": f"{prefix}.{name}", "dropTarget": True}
        )
    for name in existing:
        if name not in names and not name.startswith(("system.", RESTORING)):
            await services.db.drop_collection(name)


# --- Verifying what a store has of its backups, with the private key or without it, and without a database ------------


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
    store: Store, names: Sequence[str], decryption: Decryption, vault: Vault | None, report: backup_manifest.Report
) -> Verification:
    """Read the manifests of backups, and each of their parts once.

    Raises BackupError if the store cannot be used, or if a private key is given that decrypts one of the backups not.
    """
    result = Verification(backups=len(names))
    manifests = _read_manifests(store, names, vault, result)
    if decryption.has_keys:
        for manifest in manifests:
            decryption.require(manifest.get("recipients", ()))
    parts = {
        name: (part, manifest.get("recipients", [])) for manifest in manifests for name, part in named_parts(manifest)
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


def _read_manifests(
    store: Store, names: Sequence[str], vault: Vault | None, result: Verification
) -> list[backup_manifest.Manifest]:
    manifests: list[backup_manifest.Manifest] = []
    for name in names:
        try:
            manifest = StoredBackups(store).read(name)
            if vault is None or not set(vault.fingerprints) & set(manifest["keyFingerprints"]):
                result.unsigned += 1
            else:
                require_signature(manifest, vault)
        except backup_manifest.BackupError as error:
            result.problems.append(f"{name}: {error}")
        else:
            manifests.append(manifest)
    return manifests


def _compare(
    store: Store, name: str, part: backup_manifest.Part, recipients: Sequence[str], decryption: Decryption
) -> tuple[str, int, str | None]:
    """Read a part; returns its name, how many bytes the store has, and what is wrong with it."""
    reader = PartReader(store, decryption, recipients)
    try:
        data = store.read(name)
        reader.compare(name, data, part)
    except backup_manifest.BackupError as error:
        return name, 0, str(error)
    return name, len(data), None
