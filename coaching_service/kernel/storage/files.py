"""Files in GridFS, written and read in bounded memory (the driver's own upload stream buffers whole files).

The layout is GridFS's own, so any GridFS reader finds them; `fs.files` documents also carry whose they are.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import IO

from bson import Binary

from coaching_service.kernel.storage.context import Context, Services
from coaching_service.kernel.storage.documents import Document, Documents, Where, now
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.storage.mongo import Index

CHUNK_BYTES = 255 * 1024
AT_ONCE = 4
ABANDONED_AFTER = timedelta(hours=1)

files = Documents(
    "fs.files",
    (Index(("customerId", "_id")), Index(("uploadDate", "_id"))),
    why_global="a signed link names a file and no company; the operator looks for orphans everywhere",
)
chunks = Documents(
    "fs.chunks",
    global_indexes=(Index(("files_id", "n"), unique=True),),
    why_global="a chunk belongs to a file, which belongs to a company",
)
_gate = asyncio.Semaphore(AT_ONCE)


@dataclass(frozen=True)
class StoredFile:
    """Bytes that are stored, and not yet named by any document."""

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


async def store(ctx: Context, source: IO[bytes], *, name: str, content_type: str, customer_id: ObjectId) -> StoredFile:
    """Store what `source` holds from where it stands, for a client of the company.

    The `fs.files` document comes last: until then nobody finds the bytes, and if anything fails they are removed.
    """
    identifier, digest, size = ObjectId(), hashlib.sha256(), 0
    collection = chunks.globally(ctx.services)
    async with _gate:
        try:
            for number, piece in enumerate(_pieces(source)):
                digest.update(piece)
                size += len(piece)
                await collection.insert_one({"files_id": identifier, "n": number, "data": Binary(piece)})
            document = {
                "_id": identifier,
                "companyId": ctx.company_id,
                "customerId": customer_id,
                "filename": name,
                "contentType": content_type,
                "length": size,
                "chunkSize": CHUNK_BYTES,
                "sha256": digest.hexdigest(),
                "uploadDate": now(),
            }
            await files.globally(ctx.services).insert_one(document)
        except BaseException:
            await asyncio.shield(collection.delete_many({"files_id": identifier}))
            raise
    return StoredFile(identifier, name, content_type, size, digest.hexdigest())


def _pieces(source: IO[bytes]) -> Iterable[bytes]:
    while piece := source.read(CHUNK_BYTES):
        yield piece


async def find(services: Services, file_id: ObjectId) -> Document | None:
    """What is known of a file, in any company, or None."""
    return await files.globally(services).find_one({"_id": file_id})


async def read(services: Services, file: Document, start: int, end: int) -> AsyncIterator[bytes]:
    """The bytes of a file from `start` to `end` (not included), a chunk at a time."""
    size = file["chunkSize"]
    for number in range(start // size, -(-end // size)):
        chunk = await chunks.globally(services).find_one({"files_id": file["_id"], "n": number}, {"data": 1})
        if chunk is None:
            raise ConnectionResetError("the file was removed while it was being read")
        first = number * size
        yield bytes(chunk["data"])[max(0, start - first) : end - first]


async def discard(services: Services, ids: Sequence[ObjectId]) -> None:
    """Remove files: nobody finds them from the first moment on, then their bytes go."""
    if ids:
        await files.globally(services).delete_many({"_id": {"$in": list(ids)}})
        await chunks.globally(services).delete_many({"files_id": {"$in": list(ids)}})


async def erase_some(services: Services, where: Where, limit: int) -> int:
    """Remove at most `limit` files of a client or company, bytes first so that a restart finds the rest."""
    found = files.globally(services).find(where, {"_id": 1}, limit=limit)
    ids = [file["_id"] async for file in found]
    if ids:
        await chunks.globally(services).delete_many({"files_id": {"$in": ids}})
        await files.globally(services).delete_many({"_id": {"$in": ids}})
    return len(ids)


async def abandoned_chunks(services: Services, batch: int = 500) -> AsyncIterator[list[ObjectId]]:
    """The identifiers of files whose bytes were begun over an hour ago and that never came to be, in batches."""
    before = ObjectId.from_datetime(now() - ABANDONED_AFTER)
    cursor = chunks.globally(services).aggregate(
        [
            {"$match": {"files_id": {"$lt": before}}},
            {"$sort": {"files_id": 1}},
            {"$group": {"_id": "$files_id"}},
            {"$lookup": {"from": files.name, "localField": "_id", "foreignField": "_id", "as": "file"}},
            {"$match": {"file": []}},
            {"$project": {"_id": 1}},
        ],
        hint="files_id_n",
        allowDiskUse=True,
    )
    found: list[ObjectId] = []
    async for each in cursor:
        found.append(each["_id"])
        if len(found) == batch:
            yield found
            found = []
    if found:
        yield found


async def old_files(services: Services, batch: int = 500) -> AsyncIterator[list[Document]]:
    """`_id`, `companyId` and `length` of every file stored over an hour ago, in batches."""
    cursor = files.globally(services).find(
        {"uploadDate": {"$lt": now() - ABANDONED_AFTER}}, {"companyId": 1, "length": 1}, batch_size=batch
    )
    found: list[Document] = []
    async for each in cursor:
        found.append(each)
        if len(found) == batch:
            yield found
            found = []
    if found:
        yield found
