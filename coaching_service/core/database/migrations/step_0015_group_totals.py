"""The clients in each group are counted, a day later: until then, processes of an earlier version may still serve.

These do not maintain the numbers, which are not used before the job has counted all clients.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pymongo.errors import DuplicateKeyError

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database
from coaching_service.core.ids import stable_id

_KIND = "count_groups"
_DAY_MILLISECONDS = 24 * 3600 * 1000


async def apply(db: Database, vault: Vault) -> None:
    """Store the job, due in a day by the clock of the database."""
    del vault
    job: dict[str, Any] = {
        "companyId": None,
        "about": None,
        "kind": _KIND,
        "arguments": {"$literal": {}},
        "runAfter": {"$add": ["$$NOW", _DAY_MILLISECONDS]},
        "attempts": 0,
        "lease": None,
        "createdAt": "$$NOW",
    }
    stages = [{"$replaceWith": {"$mergeObjects": [job, "$$ROOT"]}}]
    with suppress(DuplicateKeyError):  # another process is storing it
        await db["jobs"].update_one({"_id": stable_id("job", _KIND)}, stages, upsert=True)
