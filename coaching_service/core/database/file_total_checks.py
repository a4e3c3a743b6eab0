"""The check of the stored number and size of the files of companies."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database import file_totals
from coaching_service.core.database.checks import check_of
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.transactions import in_transaction, reading_snapshot
from coaching_service.core.ids import ObjectId

_SUMS: dict[str, Any] = {"files": {"$sum": "$files"}, "bytes": {"$sum": "$bytes"}}
# What is stored, less what there is: the totals and, negative, the attached files.
_FILES: list[dict[str, Any]] = [
    {"$match": {"pending": {"$ne": True}, "companyId": {"$type": "objectId"}}},
    {"$group": {"_id": "$companyId", "files": {"$sum": -1}, "bytes": {"$sum": {"$multiply": ["$length", -1]}}}},
]


async def list_wrong(services: Services) -> list[ObjectId]:
    """Return the companies whose stored number or size of files differs from the files that there are."""
    async with reading_snapshot(services) as session:
        return [difference["_id"] for difference in await _find_differences(services, session)]


async def correct_totals(services: Services) -> None:
    """Count the files of these companies again, each in the transaction that corrects its totals."""
    for company_id in await list_wrong(services):

        async def correct(tx: Context, company_id: ObjectId = company_id) -> None:
            files, size = await _find_difference(services, tx.session, company_id)
            await file_totals.subtract(tx, company_id, files, size, create=True)

        await in_transaction(Context(services), correct)


async def _find_difference(services: Services, session: Any, company_id: ObjectId) -> tuple[int, int]:
    """Return how many files and bytes the totals of a company are too high."""
    files = size = 0
    within: dict[str, Any] = {"$match": {"companyId": company_id}}
    for collection, stages in (
        (file_totals.COLLECTION, [within, {"$group": {"_id": None, **_SUMS}}]),
        ("fs.files", [within, *_FILES]),
    ):
        async for sums in services.collection(collection).aggregate(stages, session=session):
            files, size = files + sums["files"], size + sums["bytes"]
    return files, size


async def _find_differences(services: Services, session: Any) -> list[Any]:
    stages: list[Any] = [
        {"$group": {"_id": "$companyId", **_SUMS}},
        {"$unionWith": {"coll": "fs.files", "pipeline": _FILES}},
        {"$group": {"_id": "$_id", **_SUMS}},
        {"$match": {"$or": [{"files": {"$ne": 0}}, {"bytes": {"$ne": 0}}]}},
    ]
    cursor = services.collection(file_totals.COLLECTION).aggregate(stages, session=session, allowDiskUse=True)
    return list(await cursor.to_list(None))


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
