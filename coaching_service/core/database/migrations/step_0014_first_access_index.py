"""The hash of a first-access token is not in a unique index, which could not be enforced on a sharded cluster."""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database

_COLLECTION, _INDEX = "customers", "firstAccessHash"


async def apply(db: Database, vault: Vault) -> None:
    """Drop the index that the one on hash and company has replaced."""
    del vault
    if _COLLECTION not in await db.list_collection_names():
        return
    if _INDEX in await db[_COLLECTION].index_information():
        await db[_COLLECTION].drop_index(_INDEX)
