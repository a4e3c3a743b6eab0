"""Clients have `customerRoleData.lastTrainedDate`, null until a session with completed work is logged."""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database

_FIELD = "customerRoleData.lastTrainedDate"


async def apply(db: Database, vault: Vault) -> None:
    """Add the field to the clients that lack it."""
    del vault
    await db["customers"].update_many({_FIELD: {"$exists": False}}, {"$set": {_FIELD: None}})
