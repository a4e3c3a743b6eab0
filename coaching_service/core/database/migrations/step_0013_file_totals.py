"""The number and the size of the files of each company are stored."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database


async def apply(db: Database, vault: Vault) -> None:
    """Count the files that records refer to."""
    del vault
    stages: list[dict[str, Any]] = [
        {"$match": {"pending": {"$ne": True}, "companyId": {"$type": "objectId"}}},
        {"$group": {"_id": "$companyId", "files": {"$sum": 1}, "bytes": {"$sum": "$length"}}},
        {"$set": {"companyId": "$_id"}},
        {"$merge": {"into": "fileTotals", "on": "_id", "whenMatched": "replace"}},
    ]
    await db["fs.files"].aggregate(stages).to_list(None)
