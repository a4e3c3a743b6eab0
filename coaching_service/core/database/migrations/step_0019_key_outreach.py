"""API keys have `restrictions.outreach`: whether an assistant with the key may contact people and change many clients.

Keys made before may, as they could.
"""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database


async def apply(db: Database, vault: Vault) -> None:
    """Set it in keys that lack it."""
    del vault
    await db["apiKeys"].update_many(
        {"restrictions.outreach": {"$exists": False}}, {"$set": {"restrictions.outreach": True}}
    )
