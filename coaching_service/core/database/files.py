"""Files in GridFS, written and read in bounded memory (the driver's own upload stream buffers whole files).

The layout is GridFS's own, so any GridFS client can read them; `fs.files` documents also have the company and the
client. A file is `pending` from before its first byte until the transaction of the record that refers to it, which
attaches it and discards what it replaces. So a record's file always exists, and what stays pending is an orphan.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import IO, TypedDict

from bson import Binary

from coaching_service.core.background import retrieve_failure
from coaching_service.core.database.checks import check_of
from coaching_service.core.database.context import Context, Services, in_transaction, reading_snapshot, transactional
from coaching_service.core.database.declared import Index, NotExported, ShardKey
from coaching_service.core.database.documents import Document, Documents, Filter, PipelineStage, now
from coaching_service.core.errors import StorageQuotaExceeded, Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import JPEG, InvalidFile, StorageQuota, validate_file

CHUNK_BYTES = 255 * 1024
ABANDONED_AFTER = timedelta(hours=1)
_BATCH = 500

files = Documents[Document](
    "fs.files",
    (Index(("customerId", "_id")),),
    global_indexes=(Index(("uploadDate",), partial_filter=(("pending", True),)),),
    cross_company_reason="a signed link has a file and no company; orphans are collected for all companies",
    transfer=NotExported("the files that records refer to are exported under files/"),
    incidental=True,
)
_BY_CLIENT = files.index_name("customerId", "_id")
chunks = Documents[Document](
    "fs.chunks",
    global_indexes=(Index(("files_id", "n"), unique=True),),
    cross_company_reason="a chunk belongs to a file, which belongs to a company",
    placement=ShardKey(("files_id",)),
    transfer=NotExported("the bytes of files are exported under files/"),
    incidental=True,
)
_ATTACHED: Filter = {"pending": {"$ne": True}}


@dataclass(frozen=True)
class StoredFile:
    """A file that is stored and that no record refers to yet; `size` is in bytes."""

    id: ObjectId
    name: str
    content_type: str
    size: int
    sha256: str
    thumbnail_id: ObjectId | None = None

    @property
    def ids(self) -> list[ObjectId]:
        """The identifiers of the file and its thumbnail."""
        return [self.id, *([self.thumbnail_id] if self.thumbnail_id else [])]


# --- Writing -------------------------------------------------------------------------------------------------------


async def store(
    ctx: Context, source: IO[bytes], *, name: str, content_type: str, customer_id: ObjectId | None
) -> StoredFile:
    """Store the rest of `source` as a file of a client, or of the company (None); if it fails, nothing is left behind.

    The file cannot be read until it is attached. Raises StorageQuotaExceeded if the company already has as much as it
    may store; whether there is room for this file is decided when it is attached.
    """
    identifier, digest, size, quota = ObjectId(), hashlib.sha256(), 0, ctx.services.storage_quota
    if quota != StorageQuota():
        totals = (await read_totals(ctx.services, [ctx.company_id])).get(ctx.company_id, {"files": 0, "bytes": 0})
        _require_within(quota, {"files": totals["files"] + 1, "bytes": totals["bytes"] + 1})
    new_file = {
        "_id": identifier,
        "companyId": ctx.company_id,
        "customerId": customer_id,
        "filename": name,
        "contentType": content_type,
        "chunkSize": CHUNK_BYTES,
        "length": 0,
        "uploadDate": now(),
        "pending": True,
    }
    collection = chunks.across_companies(ctx.services)
    async with ctx.services.file_write_slots.holding(ctx.company_id):
        try:
            await files.across_companies(ctx.services).insert_one(new_file)
            for number in itertools.count():
                async with ctx.services.work_slots.pieces.paced(ctx.company_id):
                    if not (chunk := source.read(CHUNK_BYTES)):
                        break
                    digest.update(chunk)
                    size += len(chunk)
                    await collection.insert_one({"files_id": identifier, "n": number, "data": Binary(chunk)})
            await _update_pending(ctx, [identifier], {"$set": {"length": size, "sha256": digest.hexdigest()}})
        except BaseException:
            await release(ctx.services, [identifier])
            raise
    return StoredFile(identifier, name, content_type, size, digest.hexdigest())


@asynccontextmanager
async def storing(
    ctx: Context,
    source: IO[bytes],
    *,
    name: str,
    content_types: Sequence[str],
    customer_id: ObjectId | None,
    max_pixels: int,
) -> AsyncIterator[StoredFile]:
    """Validate and store a file of one of the `content_types`, of a client or of the company (None).

    Unless a record has attached the file by the end of the block, it is deleted. Raises InvalidFile if the file is
    broken, not of an accepted content type, or an image with too many pixels.
    """
    ids: list[ObjectId] = []
    metrics = ctx.services.metrics
    try:
        validated = await validate_file(ctx.services.media_worker, source, content_types, max_pixels, ctx.company_id)
        with closing(validated) as valid:
            content_type = valid.content_type
            file = await store(ctx, valid.file, name=name, content_type=content_type, customer_id=customer_id)
            ids += file.ids
            if valid.thumbnail is not None:
                thumbnail = await store(
                    ctx, valid.thumbnail, name=f"thumbnail of {name}", content_type=JPEG, customer_id=customer_id
                )
                ids += thumbnail.ids
                file = replace(file, thumbnail_id=thumbnail.id)
        metrics.uploads.labels("stored").inc()
        metrics.upload_bytes.inc(file.size)
        yield file
    except InvalidFile:
        metrics.uploads.labels("rejected").inc()
        raise
    finally:
        await release(ctx.services, ids)


async def attach(ctx: Context, file: StoredFile) -> None:
    """Mark a file as referred to, in the transaction of the record that refers to it, which cannot be undone.

    Raises Unavailable if the file has been released in the meantime, StorageQuotaExceeded if the company has more files
    with it than it may.
    """
    ctx.changes.prevent_undo()
    await _update_pending(ctx, file.ids, {"$unset": {"pending": ""}})
    attached = await files.find(ctx, {"_id": {"$in": file.ids}}, fields=("length",))
    counts = {"files": len(attached), "bytes": sum(each["length"] for each in attached)}
    # Transactions of one company that count at the same time collide, and one of them is repeated. So none exceeds the
    # quota together with another.
    await _totals.increment_each(ctx, [({"_id": ctx.company_id}, counts)])
    if (quota := ctx.services.storage_quota) != StorageQuota():
        stored = await _totals.find_one(ctx, {"_id": ctx.company_id})
        if stored is not None:
            _require_within(quota, {"files": stored["files"], "bytes": stored["bytes"]})


async def _update_pending(ctx: Context, ids: Sequence[ObjectId], change: Document) -> None:
    where = {"_id": {"$in": list(ids)}, "pending": True, "givenUp": {"$exists": False}}
    if await files.set_derived(ctx, where, change) != len(ids):
        raise Unavailable("The upload took too long and was cancelled; send it again")


# --- Removing ------------------------------------------------------------------------------------------------------


@transactional
async def discard(ctx: Context, stored: Iterable[ObjectId | None]) -> None:
    """Delete files, in the transaction of the change that no longer refers to them, which cannot be undone."""
    if ids := [each for each in stored if each is not None]:
        ctx.changes.prevent_undo()
        removed = await files.find(ctx, {"_id": {"$in": list(ids)}, **_ATTACHED}, fields=("length",))
        await _subtract(ctx, ctx.company_id, len(removed), sum(each["length"] for each in removed))
        await files.delete_many(ctx, {"_id": {"$in": list(ids)}})
        await _delete_chunks(ctx, ids)


async def release(services: Services, ids: Sequence[ObjectId]) -> None:
    """Delete the files in `ids` that are still pending; from now on no record can refer to them.

    It does not matter what is known about the transaction that was to attach them: the stored state decides. Chunks are
    deleted before their file, so that the file is still found after an interruption.
    """
    where, collection = {"_id": {"$in": list(ids)}}, files.across_companies(services)

    async def delete_pending() -> None:
        await collection.update_many({**where, "pending": True}, {"$set": {"givenUp": True}})
        attached = {file["_id"] async for file in collection.find(where | _ATTACHED, {"_id": 1})}
        if released := [file_id for file_id in ids if file_id not in attached]:
            await _delete_chunks(Context(services), released)
            await collection.delete_many({"_id": {"$in": released}, "givenUp": True})

    if ids:
        deleting = asyncio.create_task(delete_pending())
        deleting.add_done_callback(retrieve_failure)  # the caller may be cancelled before it fails
        await asyncio.shield(deleting)


async def _delete_chunks(ctx: Context, ids: Sequence[ObjectId]) -> None:
    await chunks.across_companies(ctx.services).delete_many({"files_id": {"$in": list(ids)}}, session=ctx.session)


async def erase_batch(services: Services, where: Filter, limit: int) -> int:
    """Delete at most `limit` files of a client or company and return how many: chunks first, then the files.

    `where` names the company.
    """
    ctx, collection = Context(services), files.across_companies(services)
    ids = [file["_id"] async for file in collection.find(where, {"_id": 1}, limit=limit)]

    async def delete_files(tx: Context) -> None:
        condition = {"_id": {"$in": ids}}
        attached = await collection.find(condition | _ATTACHED, {"length": 1}, session=tx.session).to_list(None)
        await _subtract(tx, where["companyId"], len(attached), sum(each["length"] for each in attached))
        await collection.delete_many(condition, session=tx.session)

    if ids:
        await _delete_chunks(ctx, ids)
        await in_transaction(ctx, delete_files)
    return len(ids)


# --- Reading -------------------------------------------------------------------------------------------------------


async def find(services: Services, file_id: ObjectId) -> Document | None:
    """Return the metadata of an attached file of any company, or None."""
    return await files.across_companies(services).find_one({"_id": file_id, **_ATTACHED})


def iterate_files_of_client(ctx: Context, customer_id: ObjectId) -> AsyncIterator[Document]:
    """Iterate over the metadata of a client's attached files."""
    return files.stream(ctx, {"customerId": customer_id, **_ATTACHED}, ("_id",), hint=_BY_CLIENT)


async def read(services: Services, file: Document, start: int, end: int) -> AsyncGenerator[bytes, None]:
    """Iterate over the bytes of a file from `start` to `end` (exclusive), a chunk at a time."""
    size = file["chunkSize"]
    for number in range(start // size, -(-end // size)):
        chunk = await chunks.across_companies(services).find_one({"files_id": file["_id"], "n": number}, {"data": 1})
        if chunk is None:
            raise ConnectionResetError("the file was removed while it was being read")
        first = number * size
        yield bytes(chunk["data"])[max(0, start - first) : end - first]


# --- Orphans -------------------------------------------------------------------------------------------------------


async def count_stored_bytes(services: Services) -> int:
    """Return how many bytes the chunks of all files have, as the database counts them."""
    cursor = chunks.across_companies(services).aggregate([{"$collStats": {"storageStats": {}}}])
    return sum([int(each["storageStats"]["size"]) async for each in cursor])


async def iterate_abandoned(
    services: Services, older_than: timedelta = ABANDONED_AFTER
) -> AsyncIterator[list[ObjectId]]:
    """Iterate over the identifiers of files that have been pending for over an hour, in batches."""
    where = {"pending": True, "uploadDate": {"$lt": now() - older_than}}
    cursor = files.across_companies(services).find(where, {"_id": 1}, batch_size=_BATCH)
    while batch := await cursor.to_list(_BATCH):
        yield [file["_id"] for file in batch]


async def iterate_chunks_without_file(
    services: Services, older_than: timedelta = ABANDONED_AFTER
) -> AsyncIterator[list[ObjectId]]:
    """Iterate over identifiers older than an hour that have chunks and no file, in batches."""
    cursor = chunks.across_companies(services).aggregate(
        [
            {"$match": {"files_id": {"$lt": ObjectId.from_datetime(now() - older_than)}}},
            {"$sort": {"files_id": 1}},
            {"$group": {"_id": "$files_id"}},
            {"$lookup": {"from": files.name, "localField": "_id", "foreignField": "_id", "as": "file"}},
            {"$match": {"file": []}},
            {"$project": {"_id": 1}},
        ],
        hint="files_id_n",
        allowDiskUse=True,
    )
    while batch := await cursor.to_list(_BATCH):
        yield [chunk["_id"] for chunk in batch]


async def count_bytes(services: Services, ids: Sequence[ObjectId]) -> int:
    """Return how many bytes of these files are stored."""
    total = {"$group": {"_id": None, "bytes": {"$sum": {"$binarySize": "$data"}}}}
    cursor = chunks.across_companies(services).aggregate([{"$match": {"files_id": {"$in": list(ids)}}}, total])
    return sum([int(each["bytes"]) async for each in cursor])


# --- The number and the size of each company's files, updated in the transaction that attaches or removes them --------


class FileTotals(TypedDict):
    """How many files there are, and their size in bytes."""

    files: int
    bytes: int


class StorageUsage(FileTotals):
    """The files of a company, and how many files and bytes it may store; 0: no limit."""

    maxFiles: int
    maxBytes: int


def _require_within(quota: StorageQuota, totals: FileTotals) -> None:
    """Raise StorageQuotaExceeded if a company with these files has more than it may."""
    if quota.files and totals["files"] > quota.files:
        raise StorageQuotaExceeded(f"The company may store {quota.files} files: delete some to upload others")
    if quota.bytes and totals["bytes"] > quota.bytes:
        raise StorageQuotaExceeded(f"The company may store {quota.bytes} bytes of files: delete some to upload others")


_totals = Documents[Document](
    "fileTotals",
    (Index(()),),
    cross_company_reason="the operator lists the storage of all companies, and erasure counts without a caller",
    transfer=NotExported("counted again as files are imported"),
    incidental=True,
)


async def _subtract(ctx: Context, company_id: ObjectId, number: int, size: int, *, create: bool = False) -> None:
    """Subtract files that are removed, or counted by mistake, in the transaction of `ctx`.

    Totals that are missing, as of a company that has been erased, are only stored with `create`.
    """
    where, change = {"_id": company_id, "companyId": company_id}, {"$inc": {"files": -number, "bytes": -size}}
    await _totals.across_companies(ctx.services).update_one(where, change, upsert=create, session=ctx.session)


async def read_totals(services: Services, company_ids: Sequence[ObjectId]) -> dict[ObjectId, FileTotals]:
    """Return the totals of each of these companies that has had files."""
    cursor = _totals.across_companies(services).find({"companyId": {"$in": list(company_ids)}})
    return {each["_id"]: {"files": each["files"], "bytes": each["bytes"]} async for each in cursor}


async def read_usage(services: Services, company_ids: Sequence[ObjectId]) -> dict[ObjectId, StorageUsage]:
    """Return the files of each of these companies, and how much it may store."""
    quota, totals = services.storage_quota, await read_totals(services, company_ids)
    return {
        company_id: {
            **totals.get(company_id, {"files": 0, "bytes": 0}),
            "maxFiles": quota.files,
            "maxBytes": quota.bytes,
        }
        for company_id in company_ids
    }


# --- The check of the totals ------------------------------------------------------------------------------------------


_SUMS: PipelineStage = {"files": {"$sum": "$files"}, "bytes": {"$sum": "$bytes"}}
# What is stored, less what there is: the totals and, negative, the attached files.
_FILES: list[PipelineStage] = [
    {"$match": {"pending": {"$ne": True}, "companyId": {"$type": "objectId"}}},
    {"$group": {"_id": "$companyId", "files": {"$sum": -1}, "bytes": {"$sum": {"$multiply": ["$length", -1]}}}},
]


async def _list_wrong(services: Services) -> list[ObjectId]:
    """Return the companies whose stored number or size of files differs from the files that there are."""
    stages: list[PipelineStage] = [
        {"$group": {"_id": "$companyId", **_SUMS}},
        {"$unionWith": {"coll": files.name, "pipeline": _FILES}},
        {"$group": {"_id": "$_id", **_SUMS}},
        {"$match": {"$or": [{"files": {"$ne": 0}}, {"bytes": {"$ne": 0}}]}},
    ]
    async with reading_snapshot(services) as session:
        cursor = services.collection(_totals.name).aggregate(stages, session=session, allowDiskUse=True)
        return [difference["_id"] async for difference in cursor]


async def _correct_totals(services: Services) -> None:
    """Count the files of these companies again, each in the transaction that corrects its totals."""
    for company_id in await _list_wrong(services):

        async def correct(tx: Context, company_id: ObjectId = company_id) -> None:
            number = size = 0
            within: PipelineStage = {"$match": {"companyId": company_id}}
            group: PipelineStage = {"$group": {"_id": None, **_SUMS}}
            for collection, stages in ((_totals.name, [within, group]), (files.name, [within, *_FILES])):
                async for sums in services.collection(collection).aggregate(stages, session=tx.session):
                    number, size = number + sums["files"], size + sums["bytes"]
            await _subtract(tx, company_id, number, size, create=True)

        await in_transaction(Context(services), correct)


CHECKS = (
    check_of(
        "file-totals",
        "The stored sizes of files are right",
        _list_wrong,
        "Companies with a wrong number or size of files",
        "Run doctor --repair",
        _correct_totals,
        counts=True,
    ),
)
