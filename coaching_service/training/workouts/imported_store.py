"""Imported sessions in the database: workout blocks that an import reports together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.models import BlockContent, ImportedSession, KnownSession, StoredBlock

_BY_IMPORT = store.blocks.index_name("source.importId", "_id")


async def create_imported(ctx: Context, new_blocks: Sequence[BlockContent]) -> list[StoredBlock]:
    """Store new blocks that an import reports together: without a record in the change log of each."""
    return await store.blocks.insert_many(ctx, store.with_positions(new_blocks, 0), recorded=False)


async def find_logged_on(ctx: Context, customer_id: ObjectId, dates: Sequence[str]) -> list[KnownSession]:
    """Return the blocks with logged sets of a client on some dates."""
    where: Filter = {"customerId": customer_id, "date": {"$in": list(dates)}, "items.customerSets.0": {"$exists": True}}
    fields = ("date", "name", "startTime", "fingerprint", "items.exerciseId", "items.type", "items.customerSets")
    return cast("list[KnownSession]", await store.blocks.find(ctx, where, fields=fields, hint=store.BY_DATE))


async def find_imported(ctx: Context, import_id: ObjectId, after: ObjectId | None, limit: int) -> list[ImportedSession]:
    """Return at most `limit` blocks of an import after an identifier, in order."""
    where: Filter = {"source.importId": import_id} | ({} if after is None else {"_id": {"$gt": after}})
    fields = ("customerId", "date", "version", "items.type", "items.customerSets.index")
    listed = await store.blocks.find(ctx, where, sort=("_id",), limit=limit, fields=fields, hint=_BY_IMPORT)
    return cast("list[ImportedSession]", listed)


async def find_imported_whole(ctx: Context, import_id: ObjectId) -> list[StoredBlock]:
    """Return the blocks of an import with all fields, in order."""
    return await store.blocks.find(ctx, {"source.importId": import_id}, sort=("_id",), hint=_BY_IMPORT)


async def delete_imported(ctx: Context, import_id: ObjectId, ids: Sequence[ObjectId]) -> int:
    """Delete blocks of an import that have not changed since, without a record of each; returns how many."""
    where: Filter = {"source.importId": import_id, "_id": {"$in": list(ids)}, "version": 0}
    return await store.blocks.delete_many(ctx, where, recorded=False)
