"""Companies have `clientsMayImport`: whether clients may import their own training history."""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database


async def apply(db: Database, vault: Vault) -> None:
    """Set it in companies that lack it."""
    del vault
    await db["companies"].update_many({"clientsMayImport": {"$exists": False}}, {"$set": {"clientsMayImport": True}})
