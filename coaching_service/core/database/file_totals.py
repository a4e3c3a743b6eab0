"""The number and the size of each company's files, updated in the transaction that attaches or removes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from motor.motor_asyncio import AsyncIOMotorClientSession

from coaching_service.core.database.checks import check_of
from coaching_service.core.database.context import Context, Services, in_transaction, reading_snapshot
from coaching_service.core.database.declared import Index, NotExported
from coaching_service.core.database.documents import Document, Documents, PipelineStage
from coaching_service.core.errors import StorageQuotaExceeded
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import StorageQuota


class FileTotals(TypedDict):
    """How many files there are, and their size in bytes."""

    files: int
    bytes: int


class StorageUsage(FileTotals):
    """The files of a company, and how many files and bytes it may store; 0: no limit."""

    maxFiles: int
    maxBytes: int


def require_within(quota: StorageQuota, totals: FileTotals) -> None:
    """Raise StorageQuotaExceeded if a company with these files has more than it may."""
    if quota.files and totals["files"] > quota.files:
        raise StorageQuotaExceeded(f"The company may store {quota.files} files: delete some to upload others")
    if quota.bytes and totals["bytes"] > quota.bytes:
        raise StorageQuotaExceeded(f"The company may store {quota.bytes} bytes of files: delete some to upload others")


COLLECTION = "fileTotals"
_totals = Documents[Document](
    COLLECTION,
    (Index(()),),
    cross_company_reason="the operator lists the storage of all companies, and erasure counts without a caller",
    transfer=NotExported("counted again as files are imported"),
    incidental=True,
)


async def add(ctx: Context, files: int, size: int) -> None:
    """Count files of the caller's company that are attached, in the caller's transaction.

    Transactions of one company that count at the same time collide, and one of them is repeated. So none exceeds the
    quota together with another. Raises StorageQuotaExceeded.
    """
    await _totals.increment_each(ctx, [({"_id": ctx.company_id}, {"files": files, "bytes": size})])
    if ctx.services.storage_quota != StorageQuota():
        stored = await _totals.find_one(ctx, {"_id": ctx.company_id})
        if stored is not None:
            require_within(ctx.services.storage_quota, {"files": stored["files"], "bytes": stored["bytes"]})


async def subtract(ctx: Context, company_id: ObjectId, files: int, size: int, *, create: bool = False) -> None:
    """Subtract files that are removed, or counted by mistake, in the transaction of `ctx`.

    Totals that are missing, as of a company that has been erased, are only stored with `create`.
    """
    where, change = {"_id": company_id, "companyId": company_id}, {"$inc": {"files": -files, "bytes": -size}}
    await _totals.across_companies(ctx.services).update_one(where, change, upsert=create, session=ctx.session)


async def read(services: Services, company_ids: Sequence[ObjectId]) -> dict[ObjectId, FileTotals]:
    """Return the totals of each of these companies that has had files."""
    cursor = _totals.across_companies(services).find({"companyId": {"$in": list(company_ids)}})
    return {each["_id"]: {"files": each["files"], "bytes": each["bytes"]} async for each in cursor}


async def read_usage(services: Services, company_ids: Sequence[ObjectId]) -> dict[ObjectId, StorageUsage]:
    """Return the files of each of these companies, and how much it may store."""
    quota, totals = services.storage_quota, await read(services, company_ids)
    return {
        company_id: {
            **totals.get(company_id, {"files": 0, "bytes": 0}),
            "maxFiles": quota.files,
            "maxBytes": quota.bytes,
        }
        for company_id in company_ids
    }


# --- The check -------------------------------------------------------------------------------------------------------


_SUMS: PipelineStage = {"files": {"$sum": "$files"}, "bytes": {"$sum": "$bytes"}}
# What is stored, less what there is: the totals and, negative, the attached files.
_FILES: list[PipelineStage] = [
    {"$match": {"pending": {"$ne": True}, "companyId": {"$type": "objectId"}}},
    {"$group": {"_id": "$companyId", "files": {"$sum": -1}, "bytes": {"$sum": {"$multiply": ["$length", -1]}}}},
]


async def list_wrong(services: Services) -> list[ObjectId]:
    """Return the companies whose stored number or size of files differs from the files that there are."""
    stages: list[PipelineStage] = [
        {"$group": {"_id": "$companyId", **_SUMS}},
        {"$unionWith": {"coll": "fs.files", "pipeline": _FILES}},
        {"$group": {"_id": "$_id", **_SUMS}},
        {"$match": {"$or": [{"files": {"$ne": 0}}, {"bytes": {"$ne": 0}}]}},
    ]
    async with reading_snapshot(services) as session:
        cursor = services.collection(COLLECTION).aggregate(stages, session=session, allowDiskUse=True)
        return [difference["_id"] async for difference in cursor]


async def correct_totals(services: Services) -> None:
    """Count the files of these companies again, each in the transaction that corrects its totals."""
    for company_id in await list_wrong(services):

        async def correct(tx: Context, company_id: ObjectId = company_id) -> None:
            files, size = await _find_difference(services, tx.session, company_id)
            await subtract(tx, company_id, files, size, create=True)

        await in_transaction(Context(services), correct)


async def _find_difference(
    services: Services, session: AsyncIOMotorClientSession | None, company_id: ObjectId
) -> tuple[int, int]:
    """Return how many files and bytes the totals of a company are too high."""
    files = size = 0
    within: PipelineStage = {"$match": {"companyId": company_id}}
    for collection, stages in (
        (COLLECTION, [within, {"$group": {"_id": None, **_SUMS}}]),
        ("fs.files", [within, *_FILES]),
    ):
        async for sums in services.collection(collection).aggregate(stages, session=session):
            files, size = files + sums["files"], size + sums["bytes"]
    return files, size


CHECKS = (
    check_of(
        "file-totals",
        "The stored sizes of files are right",
        list_wrong,
        "Companies with a wrong number or size of files",
        "Run doctor --repair",
        correct_totals,
        counts=True,
    ),
)
