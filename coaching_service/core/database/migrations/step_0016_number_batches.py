"""The numbers of the last 31 days are stored apart from the changes, in whose indexes they no longer are.

A process of a minor version before does not store them, and needs the indexes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pymongo import UpdateOne

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.collections import now
from coaching_service.core.database.context import Database
from coaching_service.core.ids import stable_id

_CHANGES, _NUMBERS = "changes", "changeNumbers"
_STORED_FOR = timedelta(days=31)
_NUMBERS_OF_BATCH = 500
_WRITES = 100
_REPLACED_INDEXES = (
    "companyId_lastSeq",
    "companyId_customerId_lastSeq",
    "companyId_customerId",
    "companyId_credentialId_lastSeq",
    "companyId_createdAt",
    "pending",
)


async def apply(db: Database, vault: Vault) -> None:
    """Store the batches that are not there, whose identifiers follow from their numbers; then drop the indexes."""
    del vault
    if _CHANGES not in await db.list_collection_names():
        return
    batch = {"companyId": "$companyId", "number": {"$floor": {"$divide": ["$lastSeq", _NUMBERS_OF_BATCH]}}}
    stages: list[dict[str, Any]] = [
        {"$match": {"lastSeq": {"$gt": 0}, "createdAt": {"$gte": now() - _STORED_FOR}}},
        {"$project": {"companyId": 1, "seq": 1, "lastSeq": 1, "createdAt": 1}},
        {"$sort": {"companyId": 1, "lastSeq": 1}},
        {
            "$group": {
                "_id": batch,
                "first": {"$min": "$seq"},
                "last": {"$max": "$lastSeq"},
                "changes": {"$push": {"_id": "$_id", "lastSeq": "$lastSeq"}},
                "numberedAt": {"$max": "$createdAt"},
            }
        },
    ]
    cursor = db[_CHANGES].aggregate(stages, allowDiskUse=True)
    while grouped := await cursor.to_list(_WRITES):
        await db[_NUMBERS].bulk_write([_insertion(**each) for each in grouped], ordered=False)
    for name in await db[_CHANGES].index_information():
        if name in _REPLACED_INDEXES:
            await db[_CHANGES].drop_index(name)


def _insertion(_id: dict[str, Any], **numbers: Any) -> UpdateOne:
    company = _id["companyId"]
    identifier = stable_id(_NUMBERS, str(company), str(int(_id["number"])))
    return UpdateOne({"_id": identifier}, {"$setOnInsert": {"companyId": company, **numbers}}, upsert=True)
