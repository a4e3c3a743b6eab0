"""A background job of each company computes totals, best sets and personal records of logs again.

Loads of assisted machines are no volume, repetitions in reserve count in estimates, times and distances are records.
"""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.collections import now
from coaching_service.core.database.context import Database
from coaching_service.core.ids import stable_id

_KIND = "renew_training_load"


async def apply(db: Database, vault: Vault) -> None:
    """Queue the job of each company; a repetition queues it again only if it is complete."""
    del vault
    async for company in db["companies"].find({}, {"_id": 1}):
        at = now()
        job = {
            "companyId": company["_id"],
            "about": None,
            "kind": _KIND,
            "arguments": {"last": None, "exerciseId": None},
            "runAfter": at,
            "attempts": 0,
            "lease": None,
            "createdAt": at,
        }
        identifier = stable_id(_KIND, str(company["_id"]))
        await db["jobs"].update_one({"_id": identifier}, {"$setOnInsert": job}, upsert=True)
