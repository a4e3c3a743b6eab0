"""Companies have `clientsMayMove` and `clientsMayAdd`: whether clients may move workouts, and add workouts."""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database


async def apply(db: Database, vault: Vault) -> None:
    """Set them in companies that lack them."""
    del vault
    for name in ("clientsMayMove", "clientsMayAdd"):
        await db["companies"].update_many({name: {"$exists": False}}, {"$set": {name: True}})
