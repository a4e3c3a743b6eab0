"""Collections of coaching data, written: every change is one document or one transaction of the caller's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import DuplicateKeyError, OperationFailure

from coaching_service.core.database.collections import (
    D,
    Document,
    Filter,
    Ownership,
    ReadableCollection,
    now,
    registry,
    within,
)
from coaching_service.core.database.connection import is_write_conflict
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId

__all__ = [
    "AlreadyClaimed",
    "Document",
    "Documents",
    "Filter",
    "Ownership",
    "declared_collections",
    "now",
    "version_conflict",
]

_REWRITES = 50


@dataclass(frozen=True)
class Documents(ReadableCollection[D]):
    """One collection of coaching data: declared, read (see Readable) and written."""

    def with_metadata(self, ctx: Context, document: Mapping[str, Any]) -> Document:
        """A new document with what every stored document has: `_id`, `companyId`, times, `version` 0."""
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

    async def insert(self, ctx: Context, document: Mapping[str, Any]) -> D:
        """Store a new document; gives it as a reader would see it."""
        stored = self.with_metadata(ctx, document)
        await self._in(ctx).insert_one(stored, session=ctx.session)
        return self.without_private(cast("D", stored))

    async def claim(self, ctx: Context, document: Mapping[str, Any]) -> None:
        """Store a document under an `_id` of the caller's choice. Raises HeldByAnother when somebody has it, or is
        about to have it in a transaction that is still running."""
        try:
            await self._in(ctx).insert_one(self.with_metadata(ctx, document), session=ctx.session)
        except DuplicateKeyError:
            raise AlreadyClaimed from None
        except OperationFailure as error:
            if is_write_conflict(error):
                raise AlreadyClaimed from None
            raise

    async def insert_many(self, ctx: Context, documents: Sequence[Mapping[str, Any]]) -> list[ObjectId]:
        """Store new documents; gives their identifiers in the same order."""
        if not documents:
            return []
        stored = [self.with_metadata(ctx, document) for document in documents]
        await self._in(ctx).insert_many(stored, session=ctx.session)
        return [document["_id"] for document in stored]

    async def update(
        self,
        ctx: Context,
        where: Filter,
        change: Document,
        *,
        version: int | None = None,
        fields: Sequence[str] | None = None,
    ) -> D | None:
        """Apply the operators of `change` to one document and count up its version; gives (`fields` of) what it is now.

        None when there is no such document. With `version`, Conflict when the document is no longer at it.
        """
        guard = self.write_filter(ctx, where) | ({} if version is None else {"version": version})
        changed: Document | None = await self._in(ctx).find_one_and_update(
            guard,
            _touched(change),
            projection=self.projection(fields),
            return_document=ReturnDocument.AFTER,
            session=ctx.session,
        )
        if changed is None and version is not None and await self.find_one(ctx, where, ("_id",)):
            raise version_conflict()
        return cast("D | None", changed)

    async def rewrite(
        self, ctx: Context, where: Filter, mutate: Callable[[D], Mapping[str, Any]], *, version: int | None = None
    ) -> D | None:
        """Read one document, `mutate` it to the fields to set, and write them only if nobody wrote in between.

        Tried again (a bounded number of times) when somebody did, unless the caller named the `version` it is
        based on: then Conflict. None when there is no such document.
        """
        for _ in range(_REWRITES):
            current = await self._in(ctx).find_one(self.write_filter(ctx, where), session=ctx.session)
            if current is None:
                return None
            if version is not None and current["version"] != version:
                raise version_conflict()
            seen = current["version"]
            fields = mutate(cast("D", current))
            if not fields:
                return self.without_private(cast("D", current))
            guard = where | {"version": seen}
            if changed := await self.update(ctx, guard, {"$set": fields}):
                return changed
        raise version_conflict()

    async def set_derived(self, ctx: Context, where: Filter, change: Document) -> int:
        """Change fields the service derives: neither `version` nor `updatedAt` moves. Gives how many were found."""
        result = await self._in(ctx).update_many(self.write_filter(ctx, where), change, session=ctx.session)
        return result.matched_count

    async def upsert(self, ctx: Context, where: Filter, fields: Mapping[str, Any]) -> D:
        """Set `fields` of the document that `where` (equalities only) names, made if it is missing; gives it."""
        stored = await self._in(ctx).find_one_and_update(
            self.write_filter(ctx, where),
            _made_or_set(fields),
            upsert=True,
            projection=self.projection(None),
            return_document=ReturnDocument.AFTER,
            session=ctx.session,
        )
        return cast("D", stored)

    async def upsert_each(self, ctx: Context, wheres: Sequence[Filter], fields: Mapping[str, Any]) -> None:
        """`put` the same fields for several documents in one round trip."""
        if writes := [UpdateOne(self.write_filter(ctx, where), _made_or_set(fields), upsert=True) for where in wheres]:
            await self._in(ctx).bulk_write(writes, ordered=False, session=ctx.session)

    async def increment(self, ctx: Context, where: Filter, counts: Document) -> None:
        """Add `counts` to the numbers of one document, which is made if it is missing."""
        await self._in(ctx).update_one(
            self.write_filter(ctx, where), {"$inc": counts}, upsert=True, session=ctx.session
        )

    async def set_derived_each(self, ctx: Context, changes: Sequence[tuple[Filter, Document]]) -> None:
        """`set_derived` for several documents in one round trip: (`where`, change) for each."""
        if changes:
            writes = [UpdateOne(self.write_filter(ctx, where), change) for where, change in changes]
            await self._in(ctx).bulk_write(writes, ordered=False, session=ctx.session)

    async def update_many(self, ctx: Context, where: Filter, change: Document) -> int:
        """Apply `change` to every document that `where` names, counting up each version; gives how many."""
        result = await self._in(ctx).update_many(self.write_filter(ctx, where), _touched(change), session=ctx.session)
        return result.modified_count

    async def update_each(self, ctx: Context, where: Filter, computed: Document) -> int:
        """Set fields of every document that `where` names to expressions of its own; counts up each version."""
        stages = [{"$set": {**computed, "updatedAt": now(), "version": {"$add": ["$version", 1]}}}]
        return (
            await self._in(ctx).update_many(self.write_filter(ctx, where), stages, session=ctx.session)
        ).modified_count

    async def delete(self, ctx: Context, where: Filter) -> D | None:
        """Remove one document; gives what it was, or None."""
        removed = await self._in(ctx).find_one_and_delete(self.write_filter(ctx, where), session=ctx.session)
        return cast("D | None", removed)

    async def delete_many(self, ctx: Context, where: Filter) -> int:
        """Remove every document that `where` names; gives how many were removed."""
        return (await self._in(ctx).delete_many(self.write_filter(ctx, where), session=ctx.session)).deleted_count

    async def erase_batch(
        self, services: Services, company_id: ObjectId, where: Filter, limit: int, *, hint: str
    ) -> int:
        """Remove at most `limit` of a company's documents, for a background job; gives how many were removed.

        `hint` names the index to find them by: left to itself, the database may walk through everybody's.
        """
        collection = services.collection(self.name)
        found = collection.find(within(company_id, where), {"_id": 1}, limit=limit, hint=hint)
        ids = [document["_id"] async for document in found]
        if not ids:
            return 0
        return (await collection.delete_many({"companyId": company_id, "_id": {"$in": ids}})).deleted_count


def declared_collections() -> dict[str, Documents[Any]]:
    """Every collection the imported features declare, by name."""
    return {name: each for name, each in registry.items() if isinstance(each, Documents)}


class AlreadyClaimed(Exception):
    """The identifier is taken, or being taken by a transaction that has not ended."""


def version_conflict() -> Conflict:
    """The error of a change that was based on an older version."""
    return Conflict("The record has been changed since; read it again and retry", code="VERSION_CONFLICT")


def _touched(change: Document) -> Document:
    return change | {
        "$set": {**change.get("$set", {}), "updatedAt": now()},
        "$inc": {**change.get("$inc", {}), "version": 1},
    }


def _made_or_set(fields: Mapping[str, Any]) -> list[Document]:
    """The stage of an upsert: a new document is of version 0, a changed one of the next."""
    at = now()
    stamps = {
        "createdAt": {"$ifNull": ["$createdAt", at]},
        "updatedAt": at,
        "version": {"$ifNull": [{"$add": ["$version", 1]}, 0]},
    }
    return [{"$set": {name: {"$literal": value} for name, value in fields.items()} | stamps}]
