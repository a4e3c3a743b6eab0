"""Jobs of a company have a unique index on kind and client: clients import their history at the same time."""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database

_COLLECTION, _INDEX = "companyJobs", "companyId_kind"


async def apply(db: Database, vault: Vault) -> None:
    """Drop the index on kind alone."""
    del vault
    if _COLLECTION not in await db.list_collection_names():
        return
    if _INDEX in await db[_COLLECTION].index_information():
        await db[_COLLECTION].drop_index(_INDEX)
