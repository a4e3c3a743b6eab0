"""The application that a sign-in session belongs to is stored as `application`; its name was `door`."""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database


async def apply(db: Database, vault: Vault) -> None:
    """Rename the field."""
    del vault
    await db["sessions"].update_many({"door": {"$exists": True}}, {"$rename": {"door": "application"}})
