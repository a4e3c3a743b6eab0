"""Writes that the change log does not record: derived fields, counts, and the erasure of what is already deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import OperationFailure
from pymongo.write_concern import WriteConcern

from coaching_service.core.database.collections import (
    D,
    Document,
    Filter,
    PipelineStage,
    ReadableCollection,
    hint_of,
    now,
    within_company,
)
from coaching_service.core.database.conflicts import AlreadyClaimed, is_duplicate
from coaching_service.core.database.connection import is_write_conflict
from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId

_NOT_DURABLE = WriteConcern(w=1, j=False)


@dataclass(frozen=True)
class UnrecordedCollection(ReadableCollection[D]):
    """A collection with data that follows from other data, or that may be lost."""

    def with_metadata(self, ctx: Context, document: Mapping[str, Any]) -> Document:
        """Return `document` with the fields of `Stored`: `_id` (unless it has one), company, times, `version` 0."""
        at = now()
        return {
            "_id": ObjectId(),
            **document,
            "companyId": ctx.company_id,
            "createdAt": at,
            "updatedAt": at,
            "version": 0,
        }

    def without_private(self, document: D) -> D:
        """`document` without its private fields."""
        public = {key: value for key, value in document.items() if key not in self.private}
        return cast("D", public)

    async def claim(self, ctx: Context, *documents: Mapping[str, Any]) -> None:
        """Store documents under an `_id` of the caller's choice.

        Raises AlreadyClaimed if one of them exists, or is being stored by a transaction that is still running.
        """
        stored = [self.with_metadata(ctx, document) for document in documents]
        try:
            await self._in(ctx).insert_many(stored, session=ctx.session)
        except OperationFailure as error:
            if is_write_conflict(error) or is_duplicate(error):
                raise AlreadyClaimed from None
            raise

    async def set_derived(
        self, ctx: Context, where: Filter, change: Document | list[PipelineStage], *, may_be_stale: bool = False
    ) -> int:
        """Change derived fields: neither `version` nor `updatedAt` changes. Returns how many documents matched.

        `may_be_stale`: it does no harm that other processes have cached the previous values.
        """
        condition = self.write_filter(ctx, where)
        collection = self._in(ctx) if may_be_stale else self._in_to_change(ctx)
        result = await collection.update_many(condition, change, session=ctx.session, **hint_of(where))
        return result.matched_count

    async def set_derived_and_read(
        self, ctx: Context, where: Filter, change: Document, fields: Sequence[str]
    ) -> D | None:
        """`set_derived` for one document; returns `fields` of it afterwards, or None if no document matches."""
        stored = await self._in_to_change(ctx).find_one_and_update(
            self.write_filter(ctx, where),
            change,
            projection=self.projection(fields),
            return_document=ReturnDocument.AFTER,
            session=ctx.session,
            **hint_of(where),
        )
        return cast("D | None", stored)

    async def set_derived_each(self, ctx: Context, changes: Sequence[tuple[Filter, Document]]) -> None:
        """`set_derived` for several documents in one round trip: (`where`, change) for each."""
        if changes:
            writes = [UpdateOne(self.write_filter(ctx, where), change, **hint_of(where)) for where, change in changes]
            await self._in_to_change(ctx).bulk_write(writes, ordered=False, session=ctx.session)

    async def increment(self, ctx: Context, where: Filter, counts: Document) -> None:
        """Add `counts` to number fields of one document, which is created if it is missing."""
        await self._in_to_change(ctx).update_one(
            self.write_filter(ctx, where), {"$inc": counts}, upsert=True, session=ctx.session
        )

    async def increment_each(self, ctx: Context, counts: Sequence[tuple[Filter, Document]]) -> None:
        """`increment` for several documents in one round trip: (`where`, counts) for each."""
        if len(counts) == 1:  # costs the driver less than a bulk
            await self.increment(ctx, *counts[0])
        elif counts:
            writes = [UpdateOne(self.write_filter(ctx, where), {"$inc": each}, upsert=True) for where, each in counts]
            await self._in_to_change(ctx).bulk_write(writes, ordered=False, session=ctx.session)

    async def increment_not_durable(self, services: Services, counts: Sequence[tuple[Filter, Document]]) -> None:
        """`increment_each` across companies, which the filters name.

        For statistics that may be lost: it is not part of a transaction, and does not wait for a majority or a disk.
        """
        self._require_uncached()
        if writes := [UpdateOne(where, {"$inc": each}, upsert=True) for where, each in counts]:
            collection = self.across_companies(services).with_options(write_concern=_NOT_DURABLE)
            await collection.bulk_write(writes, ordered=False)

    async def insert_computed(self, ctx: Context, documents: Mapping[ObjectId, Document]) -> None:
        """Store new documents by their identifiers; each field is an aggregation expression, such as `$$NOW`.

        Only for collections that are also read across companies: the documents have the company they name, if any.
        """
        self._require_uncached()
        if writes := [UpdateOne({"_id": key}, [{"$set": fields}], upsert=True) for key, fields in documents.items()]:
            await self.across_companies(ctx.services).bulk_write(writes, session=ctx.session)

    async def insert_missing_computed(self, services: Services, documents: Mapping[ObjectId, Document]) -> bool:
        """Store the new documents, as `insert_computed`, that are not stored yet; returns whether there were any.

        What another process stores at the same moment stays as it is.
        """
        self._require_uncached()
        collection = self.across_companies(services)
        stored = {each["_id"] async for each in collection.find({"_id": {"$in": list(documents)}}, {"_id": 1})}
        writes = [
            UpdateOne({"_id": key}, [{"$replaceWith": {"$mergeObjects": [fields, "$$ROOT"]}}], upsert=True)
            for key, fields in documents.items()
            if key not in stored
        ]
        if writes:
            await collection.bulk_write(writes, ordered=False)
        return bool(writes)

    async def upsert_not_durable(self, services: Services, identifier: ObjectId, stages: list[Document]) -> D:
        """Update one document with a pipeline, create it if it is missing, and return it.

        For counters across companies that may be lost: it does not wait for a majority or a disk.
        """
        self._require_uncached()
        collection = self.across_companies(services).with_options(write_concern=_NOT_DURABLE)
        stored = await collection.find_one_and_update(
            {"_id": identifier}, stages, upsert=True, return_document=ReturnDocument.AFTER
        )
        return cast("D", stored)

    async def erase_batch(
        self, services: Services, company_id: ObjectId, where: Filter, limit: int, *, hint: str
    ) -> int:
        """Delete at most `limit` of a company's documents, for a background job; returns how many.

        `hint` is the name of the index to use: the query planner may otherwise scan all companies.
        """
        collection = services.collection(self.name)
        cursor = collection.find(within_company(company_id, where), {"_id": 1}, limit=limit, hint=hint)
        ids = [document["_id"] async for document in cursor]
        if not ids:
            return 0
        return (await collection.delete_many({"companyId": company_id, "_id": {"$in": ids}})).deleted_count
