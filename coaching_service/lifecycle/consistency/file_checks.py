"""Checks of the files in GridFS: their bytes, the records that refer to them, and what nothing refers to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from coaching_service.core.database import files
from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Context, Services, in_transaction, reading_snapshot
from coaching_service.core.database.declared import FILE_FIELDS, file_holders
from coaching_service.core.database.documents import Document, now, registry
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.consistency.document_checks import BATCH, iterate_batches, list_wrong

ORPHANED_AFTER = timedelta(days=1)
_IDS_IN_MEMORY = 200_000
_ATTACHED: Document = {"pending": {"$ne": True}}


def holding_collections() -> list[str]:
    """Return the names of the collections whose documents refer to files."""
    return [name for name, each in registry.items() if each.holds_files]


def _file_ids(document: Document) -> set[ObjectId]:
    holders = file_holders(document)
    return {holder[name] for holder in holders for name in FILE_FIELDS if holder.get(name) is not None}


# --- Records whose file is missing -----------------------------------------------------------------------------------


async def find_missing_files(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find records that refer to a file that does not exist, or is not attached."""
    for name in holding_collections():
        occurrences = Occurrences()
        async for batch in iterate_batches(services, name):
            for identifier in await list_wrong(services, name, batch, _without_file):
                occurrences.add(identifier)
            count_read(len(batch))
        advice = "Restore the files from a backup, or delete the records; their files cannot be downloaded"
        yield occurrences.finding(f"Records of {name} whose file is missing", advice)


async def _without_file(services: Services, documents: Sequence[Document], session: Any) -> list[Document]:
    ids = {document["_id"]: _file_ids(document) for document in documents}
    where = {"_id": {"$in": list(set().union(*ids.values()))}, **_ATTACHED}
    cursor = services.collection(files.files.name).find(where, {"_id": 1}, session=session)
    existing = {file["_id"] async for file in cursor}
    return [document for document in documents if not ids[document["_id"]] <= existing]


# --- Files whose bytes are missing -----------------------------------------------------------------------------------


async def find_missing_bytes(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find attached files that do not have all their bytes."""
    occurrences = Occurrences()
    async for batch in _attached_files(services, {}):
        count_read(len(batch))
        if suspects := await _incomplete(services, batch, session=None):
            async with reading_snapshot(services) as session:
                for identifier in await _incomplete(services, suspects, session):
                    occurrences.add(identifier)
    advice = "Restore the chunks from a backup: fs.chunks with this files_id"
    yield occurrences.finding("Files without all their bytes", advice)


async def _incomplete(services: Services, ids: Sequence[ObjectId], session: Any) -> list[ObjectId]:
    """Return which of the files exist and do not have as many chunks, numbered from 0, and bytes as their length needs.

    MongoDB counts the bytes: they do not leave it.
    """
    attached = services.collection(files.files.name).find(
        {"_id": {"$in": list(ids)}, **_ATTACHED}, {"length": 1, "chunkSize": 1}, session=session
    )
    expected: dict[ObjectId, tuple[int, int, int]] = {}
    async for file in attached:
        number = -(-file["length"] // file["chunkSize"])
        expected[file["_id"]] = (number, number - 1, file["length"])
    sums: Document = {"count": {"$sum": 1}, "last": {"$max": "$n"}, "bytes": {"$sum": {"$binarySize": "$data"}}}
    stages: list[Document] = [
        {"$match": {"files_id": {"$in": list(expected)}}},
        {"$group": {"_id": "$files_id", **sums}},
    ]
    cursor = services.collection(files.chunks.name).aggregate(stages, hint="files_id_n", session=session)
    stored = {each["_id"]: (each["count"], each["last"], each["bytes"]) async for each in cursor}
    return [key for key, wanted in expected.items() if stored.get(key, (0, -1, 0)) != wanted]


async def _attached_files(services: Services, where: Document, size: int = BATCH) -> AsyncIterator[list[ObjectId]]:
    """Iterate over the identifiers of attached files, in batches."""
    batch: list[ObjectId] = []
    cursor = services.collection(files.files.name).find({**where, **_ATTACHED}, {"_id": 1}, batch_size=BATCH)
    async for file in cursor:
        batch.append(file["_id"])
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


# --- Files that no record refers to ----------------------------------------------------------------------------------


async def find_unreferenced(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find attached files that no record refers to, a day after they were stored."""
    occurrences = Occurrences()
    async for ids in _unreferenced(services, count_read):
        for identifier in ids:
            occurrences.add(identifier)
    advice = "If no records are missing, run doctor --repair --delete-unreferenced-files; else restore the records"
    yield occurrences.finding("Files that no record refers to", advice)


async def delete_unreferenced(services: Services) -> None:
    """Delete attached files that no record refers to, a day after they were stored."""

    async def delete(tx: Context, ids: Sequence[ObjectId]) -> None:
        await services.collection(files.files.name).delete_many({"_id": {"$in": list(ids)}}, session=tx.session)
        await services.collection(files.chunks.name).delete_many({"files_id": {"$in": list(ids)}}, session=tx.session)

    async for unreferenced in _unreferenced(services, lambda _: None):
        ids = sorted(unreferenced)
        for start in range(0, len(ids), BATCH):
            await in_transaction(Context(services), partial(delete, ids=ids[start : start + BATCH]))


async def _unreferenced(services: Services, count_read: CountRead) -> AsyncIterator[set[ObjectId]]:
    """Iterate over the files without a record, in parts: each part reads all records, twice if it has such files.

    The files are read before the records, and a file is stored before its record. The second time the collections are
    read in reverse order, so that a file is not missed that was moved from one collection to another meanwhile.
    """
    is_old = {"uploadDate": {"$lt": now() - ORPHANED_AFTER}}
    names = holding_collections()
    async for batch in _attached_files(services, is_old, _IDS_IN_MEMORY):
        left = set(batch)
        for name in (*names, *reversed(names)):
            if not left:
                break
            async for document in services.collection(name).find({}, batch_size=BATCH):
                left -= _file_ids(document)
                count_read(1)
        ids = sorted(left)
        for start in range(0, len(ids), BATCH):
            where = {"_id": {"$in": ids[start : start + BATCH]}, **_ATTACHED}
            existing = services.collection(files.files.name).find(where, {"_id": 1})
            if confirmed := {file["_id"] async for file in existing}:
                yield confirmed


# --- Interrupted uploads ---------------------------------------------------------------------------------------------


async def find_orphaned_bytes(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find uploads that were interrupted over a day ago, and chunks without a file."""
    uploads, chunks = Occurrences(), Occurrences()
    async for ids in files.iterate_abandoned(services, older_than=ORPHANED_AFTER):
        count_read(len(ids))
        uploads.add(ids[0], len(ids))
    async for ids in files.iterate_chunks_without_file(services, older_than=ORPHANED_AFTER):
        count_read(len(ids))
        chunks.add(ids[0], len(ids))
    advice = "Run doctor --repair, or gc-files. The running service removes them every hour: see whether it runs jobs"
    yield uploads.finding("Interrupted uploads of over a day ago", advice)
    yield chunks.finding("Bytes without a file", "Run doctor --repair, or gc-files")


async def delete_orphaned_bytes(services: Services) -> None:
    """Delete interrupted uploads of over a day ago, and chunks without a file."""
    async for ids in files.iterate_abandoned(services, older_than=ORPHANED_AFTER):
        await files.release(services, ids)
    async for ids in files.iterate_chunks_without_file(services, older_than=ORPHANED_AFTER):
        await files.release(services, ids)


CHECKS = (
    Check("files-missing", "The files of records exist", find_missing_files),
    Check("files-bytes", "Files have all their bytes", find_missing_bytes),
    Check("files-unreferenced", "Files have a record", find_unreferenced, delete_unreferenced, deletes_files=True),
    Check("files-orphaned", "No bytes are left of uploads", find_orphaned_bytes, delete_orphaned_bytes),
)
