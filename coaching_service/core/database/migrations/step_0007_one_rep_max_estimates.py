"""A client's estimated one-repetition maximum for each exercise is stored: the highest of the personal records."""

from __future__ import annotations

import hashlib
from typing import Any

from pymongo.errors import DuplicateKeyError

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.collections import now
from coaching_service.core.database.context import Database
from coaching_service.core.ids import ObjectId

_KEY = ("companyId", "customerId", "exerciseId")
_REPS = {"$ifNull": ["$reps", 1]}
_EPLEY = {"$round": [{"$multiply": ["$value", {"$add": [1, {"$divide": [_REPS, 30]}]}]}, 2]}
_ESTIMATE = {
    "$switch": {
        "branches": [
            {"case": {"$eq": ["$type", "estimated_1rm"]}, "then": "$value"},
            {"case": {"$eq": [_REPS, 1]}, "then": "$value"},
            {"case": {"$and": [{"$gte": [_REPS, 2]}, {"$lte": [_REPS, 12]}]}, "then": _EPLEY},
        ],
        "default": None,
    }
}


async def apply(db: Database, vault: Vault) -> None:
    """Store the estimates that are missing."""
    del vault
    key = {name: f"${name}" for name in _KEY}
    records = db["personalRecords"].aggregate(
        [
            {"$match": {"type": {"$in": ["estimated_1rm", "heaviest_load"]}}},
            {"$group": {"_id": key, "value": {"$max": _ESTIMATE}}},
            {"$match": {"value": {"$gt": 0}}},
        ],
        allowDiskUse=True,
    )
    async for record in records:
        await _store(db, record["_id"], record["value"])


async def _store(db: Database, key: dict[str, Any], value: float) -> None:
    key = {**key, "source": "records"}
    if await db["trainingMaxes"].find_one(key, {"_id": 1}):
        return
    # The same identifier in every process, so that two that migrate at the same time store it once.
    digest = hashlib.sha256(b"".join(key[name].binary for name in _KEY)).digest()
    at = now()
    estimate = {"_id": ObjectId(digest[:12]), **key, "value": value, "createdAt": at, "updatedAt": at, "version": 0}
    try:
        await db["trainingMaxes"].insert_one(estimate)
    except DuplicateKeyError:
        return
