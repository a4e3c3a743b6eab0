"""Files in GridFS, written and read in bounded memory (the driver's own upload stream buffers whole files).

The layout is GridFS's own, so any GridFS reader finds them; `fs.files` documents also carry whose they are. A file is
`pending` from before its first byte until the transaction of the record that names it: that one keeps it, and takes
away what it replaces. So at every moment a record's bytes are there, and what stays pending is an orphan.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import IO

from bson import Binary

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId

CHUNK_BYTES = 255 * 1024
AT_ONCE = 4
ABANDONED_AFTER = timedelta(hours=1)

files = Documents[Document](
    "fs.files",
    (Index(("customerId", "_id")),),
    global_indexes=(Index(("uploadDate",), partial_filter=(("pending", True),)),),
    cross_company_reason="a signed link names a file and no company; the operator looks for orphans everywhere",
)
_BY_CLIENT = files.indexes[0].name
chunks = Documents[Document](
    "fs.chunks",
    global_indexes=(Index(("files_id", "n"), unique=True),),
    cross_company_reason="a chunk belongs to a file, which belongs to a company",
)
_KEPT: Filter = {"pending": {"$ne": True}}
_gate = asyncio.Semaphore(AT_ONCE)


@dataclass(frozen=True)
class StoredFile:
    """Bytes that are stored, and not yet named by any record."""

    id: ObjectId
    name: str
    content_type: str
    size: int
    sha256: str
    thumbnail_id: ObjectId | None = None

    @property
    def ids(self) -> list[ObjectId]:
        """All that is stored of it."""
        return [self.id, *([self.thumbnail_id] if self.thumbnail_id else [])]


# --- writing -------------------------------------------------------------------------------------------------------


async def store(ctx: Context, source: IO[bytes], *, name: str, content_type: str, customer_id: ObjectId) -> StoredFile:
    """Store what `source` holds from where it stands, for a client of the company; if anything fails, nothing stays.

    Nobody finds it until it is kept.
    """
    identifier, digest, size = ObjectId(), hashlib.sha256(), 0
    facts = {"customerId": customer_id, "filename": name, "contentType": content_type, "chunkSize": CHUNK_BYTES}
    begun = {"_id": identifier, "companyId": ctx.company_id, **facts, "length": 0, "uploadDate": now(), "pending": True}
    collection = chunks.across_companies(ctx.services)
    async with _gate:
        try:
            await files.across_companies(ctx.services).insert_one(begun)
            for number, piece in enumerate(_pieces(source)):
                digest.update(piece)
                size += len(piece)
                await collection.insert_one({"files_id": identifier, "n": number, "data": Binary(piece)})
            whole = {"length": size, "sha256": digest.hexdigest()}
            await _settle(ctx, [identifier], {"$set": whole})
        except BaseException:
            await give_up(ctx.services, [identifier])
            raise
    return StoredFile(identifier, name, content_type, size, digest.hexdigest())


def _pieces(source: IO[bytes]) -> Iterable[bytes]:
    while piece := source.read(CHUNK_BYTES):
        yield piece


async def keep(ctx: Context, file: StoredFile) -> None:
    """Keep what was stored, in the transaction of the record that names it.

    Raises Unavailable when it has been given up meanwhile.
    """
    await _settle(ctx, file.ids, {"$unset": {"pending": ""}})


async def _settle(ctx: Context, ids: Sequence[ObjectId], change: Document) -> None:
    where = {"_id": {"$in": list(ids)}, "pending": True, "givenUp": {"$exists": False}}
    if await files.set_derived(ctx, where, change) != len(ids):
        raise Unavailable("The upload took too long and was given up; send it again")


# --- removing ------------------------------------------------------------------------------------------------------


async def discard(ctx: Context, ids: Sequence[ObjectId]) -> None:
    """Remove files, in the transaction of the record that lets go of them: with it, or not at all."""
    if not ids:
        return

    async def discarded(tx: Context) -> None:
        await files.delete_many(tx, {"_id": {"$in": list(ids)}})
        await _remove_chunks(tx, ids)

    await in_transaction(ctx, discarded)


async def give_up(services: Services, ids: Sequence[ObjectId]) -> None:
    """Remove those of `ids` that are still pending: no record names them, and from here on none can.

    Whatever became of the transaction that was to keep them: the database decides, not what was heard of it. The bytes
    go before the file, so that an interruption leaves something to find.
    """
    where, collection = {"_id": {"$in": list(ids)}}, files.across_companies(services)

    async def given_up() -> None:
        await collection.update_many({**where, "pending": True}, {"$set": {"givenUp": True}})
        kept = {file["_id"] async for file in collection.find(where | _KEPT, {"_id": 1})}
        if rest := [each for each in ids if each not in kept]:
            await _remove_chunks(Context(services), rest)
            await collection.delete_many({"_id": {"$in": rest}, "givenUp": True})

    if ids:
        await asyncio.shield(given_up())


async def _remove_chunks(ctx: Context, ids: Sequence[ObjectId]) -> None:
    await chunks.across_companies(ctx.services).delete_many({"files_id": {"$in": list(ids)}}, session=ctx.session)


async def erase_batch(services: Services, where: Filter, limit: int) -> int:
    """Remove at most `limit` files of a client or company, bytes first so that a restart finds the rest."""
    found = files.across_companies(services).find(where, {"_id": 1}, limit=limit)
    ids = [file["_id"] async for file in found]
    if ids:
        await _remove_chunks(Context(services), ids)
        await files.across_companies(services).delete_many({"_id": {"$in": ids}})
    return len(ids)


# --- reading -------------------------------------------------------------------------------------------------------


async def find(services: Services, file_id: ObjectId) -> Document | None:
    """What is known of a file that a record names, in any company, or None."""
    return await files.across_companies(services).find_one({"_id": file_id, **_KEPT})


def of_client(ctx: Context, customer_id: ObjectId) -> AsyncIterator[Document]:
    """What is known of each file of a client."""
    return files.stream(ctx, {"customerId": customer_id, **_KEPT}, ("_id",), hint=_BY_CLIENT)


async def read(services: Services, file: Document, start: int, end: int) -> AsyncIterator[bytes]:
    """The bytes of a file from `start` to `end` (not included), a chunk at a time."""
    size = file["chunkSize"]
    for number in range(start // size, -(-end // size)):
        chunk = await chunks.across_companies(services).find_one({"files_id": file["_id"], "n": number}, {"data": 1})
        if chunk is None:
            raise ConnectionResetError("the file was removed while it was being read")
        first = number * size
        yield bytes(chunk["data"])[max(0, start - first) : end - first]


# --- orphans -------------------------------------------------------------------------------------------------------


async def count(services: Services) -> int:
    """How many files there are, about."""
    return await files.across_companies(services).estimated_document_count()


async def abandoned(services: Services, batch: int = 500) -> AsyncIterator[list[ObjectId]]:
    """Files that were begun over an hour ago and that no record has come to name, in batches of identifiers."""
    where = {"pending": True, "uploadDate": {"$lt": now() - ABANDONED_AFTER}}
    async for ids in _batches(files.across_companies(services).find(where, {"_id": 1}, batch_size=batch), batch):
        yield ids


async def ownerless(services: Services, batch: int = 500) -> AsyncIterator[list[ObjectId]]:
    """Identifiers over an hour old for which there are bytes and no file, in batches."""
    cursor = chunks.across_companies(services).aggregate(
        [
            {"$match": {"files_id": {"$lt": ObjectId.from_datetime(now() - ABANDONED_AFTER)}}},
            {"$sort": {"files_id": 1}},
            {"$group": {"_id": "$files_id"}},
            {"$lookup": {"from": files.name, "localField": "_id", "foreignField": "_id", "as": "file"}},
            {"$match": {"file": []}},
            {"$project": {"_id": 1}},
        ],
        hint="files_id_n",
        allowDiskUse=True,
    )
    async for ids in _batches(cursor, batch):
        yield ids


async def bytes_of(services: Services, ids: Sequence[ObjectId]) -> int:
    """How many bytes are there of these, whole or not."""
    total = {"$group": {"_id": None, "bytes": {"$sum": {"$binarySize": "$data"}}}}
    cursor = chunks.across_companies(services).aggregate([{"$match": {"files_id": {"$in": list(ids)}}}, total])
    return sum([int(each["bytes"]) async for each in cursor])


async def _batches(documents: AsyncIterator[Document], size: int) -> AsyncIterator[list[ObjectId]]:
    found: list[ObjectId] = []
    async for each in documents:
        found.append(each["_id"])
        if len(found) == size:
            yield found
            found = []
    if found:
        yield found
