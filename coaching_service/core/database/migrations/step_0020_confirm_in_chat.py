"""API keys and connected assistants have `confirmInChat`: whether an assistant may confirm calls itself, within limits.

Those made before may not: their calls wait for the coach's approval.
"""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database


async def apply(db: Database, vault: Vault) -> None:
    """Set it where it is missing."""
    del vault
    for collection, field in (("apiKeys", "restrictions.confirmInChat"), ("assistantGrants", "confirmInChat")):
        await db[collection].update_many({field: {"$exists": False}}, {"$set": {field: False}})
