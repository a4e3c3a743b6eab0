"""Writing collections of coaching data: every change is one document, or part of the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args

from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError

from coaching_service.core.database.collections import (
    D,
    Document,
    Filter,
    Ownership,
    PipelineStage,
    hint_of,
    now,
    registry,
)
from coaching_service.core.database.conflicts import (
    AlreadyClaimed,
    DocumentExists,
    is_duplicate,
    version_conflict,
)
from coaching_service.core.database.context import Context
from coaching_service.core.database.field_changes import appended_element, touched_paths
from coaching_service.core.database.recorded_collection import RecordedCollection
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.database.unrecorded_collection import UnrecordedCollection
from coaching_service.core.ids import ObjectId

__all__ = [
    "AlreadyClaimed",
    "Document",
    "DocumentExists",
    "Documents",
    "Filter",
    "Ownership",
    "PipelineStage",
    "declared_collections",
    "now",
    "version_conflict",
]

_REWRITES = 50
_IMPORTED = ("createdAt", "updatedAt", "version")  # metadata of a document of an export, where it is data


class Documents(RecordedCollection[D], UnrecordedCollection[D]):
    """One collection of coaching data: declared and read (see ReadableCollection), recorded, and written.

    What changes only derived data is written by UnrecordedCollection.
    """

    # Not a frozen dataclass itself, whose instances do not remember the type in `Documents[Note](...)`.

    @property
    def model(self) -> Any:
        """The type of the stored documents: the TypedDict with which the collection is declared."""
        return get_args(self.__orig_class__)[0]  # type: ignore[attr-defined]  # set by typing

    async def insert(self, ctx: Context, document: Mapping[str, Any]) -> D:
        """Store a new document; returns it without its private fields. Raises ExternalIdTaken."""
        if self._needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: self.insert(tx, document))
        stored = self.with_metadata(ctx, document)
        async with self._external_id_conflict(ctx):
            await self._in(ctx).insert_one(stored, session=ctx.session)
        self._record_created(ctx, [stored])
        return self.without_private(cast("D", stored))

    async def insert_many(
        self, ctx: Context, documents: Sequence[Mapping[str, Any]], *, recorded: bool = True
    ) -> list[D]:
        """Store new documents; returns them without their private fields, in the same order.

        `recorded`: in the change log. Raises ExternalIdTaken.
        """
        if not documents:
            return []
        if recorded and self._needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: self.insert_many(tx, documents))
        stored = [self.with_metadata(ctx, document) for document in documents]
        async with self._external_id_conflict(ctx):
            if len(stored) == 1:  # costs the driver less than a bulk
                await self._in(ctx).insert_one(stored[0], session=ctx.session)
            else:
                await self._in(ctx).insert_many(stored, session=ctx.session)
        if recorded:
            self._record_created(ctx, stored)
        return [self.without_private(cast("D", document)) for document in stored]

    async def import_many(self, ctx: Context, documents: Sequence[Mapping[str, Any]]) -> None:
        """Store new documents in the caller's transaction that have been exported, with the metadata that they have.

        Raises DocumentExists if one of them is there, or another with the same unique fields; the transaction is over.
        """
        stored = [
            {**self.with_metadata(ctx, document), **{name: document[name] for name in _IMPORTED if name in document}}
            for document in documents
        ]
        try:
            await self._in(ctx).insert_many(stored, session=ctx.session)
        except BulkWriteError as error:
            if is_duplicate(error):
                raise DocumentExists.of_fields(error.details["writeErrors"][0].get("keyPattern", {})) from None
            raise
        self._record_created(ctx, stored)

    def preview_many(self, ctx: Context, documents: Sequence[Mapping[str, Any]]) -> list[D]:
        """Return what `insert_many` would return, and store nothing."""
        return [self.without_private(cast("D", self.with_metadata(ctx, document))) for document in documents]

    async def find_whole(self, ctx: Context, identifier: ObjectId) -> Document | None:
        """Return all fields of a document of the company, private ones included; None if there is none."""
        stored: Document | None = await self._in(ctx).find_one(
            self.write_filter(ctx, {"_id": identifier}), session=ctx.session, hint="_id_"
        )
        return stored

    async def reinsert(self, ctx: Context, document: Mapping[str, Any]) -> None:
        """Store a deleted document again, with the next version.

        Raises DuplicateKeyError if it is there, ExternalIdTaken if its external identifier is in use.
        """
        stored = {**document, "companyId": ctx.company_id, "updatedAt": now(), "version": document["version"] + 1}
        async with self._external_id_conflict(ctx):
            await self._in(ctx).insert_one(stored, session=ctx.session)
        self._record_created(ctx, [stored])

    async def update(
        self,
        ctx: Context,
        where: Filter,
        change: Document,
        *,
        version: int | None = None,
        fields: Sequence[str] | None = None,
        previous: Mapping[str, Any] | None = None,
    ) -> D | None:
        """Apply update operators to one document, raise its version, and return it (only `fields` of it) afterwards.

        `previous` is the complete document, if it has been read in this transaction: the change log needs it. Returns
        None if no document matches. Raises Conflict if `version` is given and the document is no longer at it;
        ExternalIdTaken.
        """
        if self._needs_transaction(ctx):
            return await in_transaction(
                ctx, lambda tx: self.update(tx, where, change, version=version, fields=fields, previous=previous)
            )
        condition = self.write_filter(ctx, where) | ({} if version is None else {"version": version})
        appended = appended_element(change)
        if self.history is not None and previous is None and appended is None:
            previous = await self._in(ctx).find_one(
                condition, self._recorded_projection(touched_paths(change)), session=ctx.session, **hint_of(where)
            )
        updated: Document | None = None
        if self.history is None or appended is not None or previous is not None:
            async with self._external_id_conflict(ctx):
                updated = await self._in_to_change(ctx).find_one_and_update(
                    condition,
                    _with_version(change),
                    projection=self._result_projection(fields, change, appended),
                    return_document=ReturnDocument.AFTER,
                    session=ctx.session,
                    **hint_of(where),
                )
        if updated is None:
            if version is not None and await self.find_one(ctx, where, ("_id",)):
                raise version_conflict()
            return None
        if self.history is not None:
            self._record_update(ctx, where, change, previous, updated, appended)
        return cast("D", self._requested(updated, fields))

    async def rewrite(
        self, ctx: Context, where: Filter, mutate: Callable[[D], Mapping[str, Any]], *, version: int | None = None
    ) -> D | None:
        """Set the fields that `mutate` returns for one document, only if it has not changed since it was read.

        If it has, it is read again, a bounded number of times; with `version`, Conflict is raised instead. Returns the
        document afterwards, or None if no document matches.
        """
        if self._needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: self.rewrite(tx, where, mutate, version=version))
        for _ in range(_REWRITES):
            current = await self._in(ctx).find_one(self.write_filter(ctx, where), session=ctx.session, **hint_of(where))
            if current is None:
                return None
            read_version = current["version"]
            if version is not None and read_version != version:
                raise version_conflict()
            fields = mutate(cast("D", current))
            if not fields:
                return self.without_private(cast("D", current))
            at_version = where | {"version": read_version}
            if updated := await self.update(ctx, at_version, {"$set": fields}, previous=current):
                return updated
        raise version_conflict()

    async def rewrite_each(self, ctx: Context, changes: Sequence[tuple[D, Mapping[str, Any]]]) -> list[D]:
        """Set fields of several documents in one round trip: (the document as it was read, its new fields) for each.

        Elements of lists are replaced, never changed in place: those that are still the same objects are not written.
        Returns the documents afterwards, with the new fields. Raises Conflict if one has changed since it was read.
        """
        if self._needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: self.rewrite_each(tx, changes))
        at = now()
        writes = [
            (
                self.write_filter(ctx, {"_id": document["_id"], "version": document["version"]}),
                {"$set": {**_changed_parts(document, fields), "updatedAt": at}, "$inc": {"version": 1}},
            )
            for document, fields in changes
        ]
        if await self._write_each(ctx, writes) < len(writes):
            raise version_conflict()
        rewritten: list[D] = []
        for document, fields in changes:
            after = {**document, **fields, "updatedAt": at, "version": document["version"] + 1}
            self._record_changed(ctx, dict(document), after, list(fields))
            rewritten.append(cast("D", after))
        return rewritten

    async def _write_each(self, ctx: Context, writes: Sequence[tuple[Filter, Document]]) -> int:
        """Apply each change to the document of its filter in one round trip; returns how many matched."""
        if len(writes) == 1:  # costs the driver less than a bulk
            [(where, change)] = writes
            result = await self._in_to_change(ctx).update_one(where, change, session=ctx.session, **hint_of(where))
            return result.matched_count
        if not writes:
            return 0
        bulk = [UpdateOne(where, change, **hint_of(where)) for where, change in writes]
        return (await self._in_to_change(ctx).bulk_write(bulk, ordered=False, session=ctx.session)).matched_count

    async def upsert(self, ctx: Context, where: Filter, fields: Mapping[str, Any]) -> D:
        """Set `fields` of the document that matches `where` (equalities only) and return it; created if missing."""
        if self._needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: self.upsert(tx, where, fields))
        previous = None
        if self.history is not None:
            previous = await self._in(ctx).find_one(self.write_filter(ctx, where), session=ctx.session)
        stored: Document = await self._in_to_change(ctx).find_one_and_update(
            self.write_filter(ctx, where),
            _upsert_stage(fields),
            upsert=True,
            return_document=ReturnDocument.AFTER,
            session=ctx.session,
        )
        self._record_upsert(ctx, fields, previous, stored)
        return self.without_private(cast("D", stored))

    async def upsert_many(self, ctx: Context, key: Sequence[str], documents: Sequence[Mapping[str, Any]]) -> list[D]:
        """Set the fields of several documents, each that with the same values of the fields `key`; created if missing.

        No two of `documents` have the same key. Takes a few round trips; returns the stored documents in their order.
        """
        if not documents:
            return []
        if self._needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: self.upsert_many(tx, key, documents))
        if len(documents) == 1:  # takes a round trip less
            [only] = documents
            where = {name: only[name] for name in key}
            return [await self.upsert(ctx, where, {name: only[name] for name in only if name not in key})]
        previous = await self._find_by_key(ctx, key, documents) if self.history is not None else {}
        fields_of = [{name: each[name] for name in each if name not in key} for each in documents]
        writes = [
            UpdateOne(self.write_filter(ctx, {name: each[name] for name in key}), _upsert_stage(fields), upsert=True)
            for each, fields in zip(documents, fields_of, strict=True)
        ]
        await self._in_to_change(ctx).bulk_write(writes, ordered=False, session=ctx.session)
        stored = await self._find_by_key(ctx, key, documents)
        upserted: list[D] = []
        for each, fields in zip(documents, fields_of, strict=True):
            values = tuple(each[name] for name in key)
            self._record_upsert(ctx, fields, previous.get(values), stored[values])
            upserted.append(self.without_private(cast("D", stored[values])))
        return upserted

    async def _find_by_key(
        self, ctx: Context, key: Sequence[str], documents: Sequence[Mapping[str, Any]]
    ) -> dict[tuple[Any, ...], Document]:
        """The stored documents that have the values of `documents` in the fields `key`, by these values."""
        where = {name: {"$in": list({each[name] for each in documents})} for name in key}
        matching: dict[tuple[Any, ...], Document] = {}
        async for document in self._in(ctx).find(self.write_filter(ctx, where), session=ctx.session):
            matching[tuple(document[name] for name in key)] = document
        return matching

    async def update_many(self, ctx: Context, where: Filter, change: Document) -> int:
        """Apply update operators to every document that matches `where`; returns how many changed."""
        return await self._update_matching(ctx, where, touched_paths(change), _with_version(change))

    async def update_each(self, ctx: Context, where: Filter, computed: Document) -> int:
        """Set fields of every matching document to aggregation expressions; returns how many changed."""
        stages = [{"$set": {**computed, "updatedAt": now(), "version": {"$add": ["$version", 1]}}}]
        return await self._update_matching(ctx, where, list(computed), stages)

    async def _update_matching(
        self, ctx: Context, where: Filter, paths: list[str], change: Document | list[Document]
    ) -> int:
        if self._needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: self._update_matching(tx, where, paths, change))
        condition = self.write_filter(ctx, where)
        previous: dict[ObjectId, Document] = {}
        if self.history is not None:
            fields = self._recorded_projection(paths)
            async for document in self._in(ctx).find(condition, fields, session=ctx.session):
                previous[document["_id"]] = document
            if not previous:
                return 0
        result = await self._in_to_change(ctx).update_many(condition, change, session=ctx.session)
        if self.history is not None:
            changed = self.write_filter(ctx, {"_id": {"$in": list(previous)}})
            async for document in self._in(ctx).find(changed, fields, session=ctx.session):
                self._record_changed(ctx, previous[document["_id"]], document, paths)
        return result.modified_count

    async def delete(self, ctx: Context, where: Filter) -> D | None:
        """Delete one document; returns what was deleted, or None."""
        if self._needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: self.delete(tx, where))
        removed: Document | None = await self._in_to_change(ctx).find_one_and_delete(
            self.write_filter(ctx, where), session=ctx.session, **hint_of(where)
        )
        if removed is not None:
            self._record_deleted(ctx, [removed])
        return cast("D | None", removed)

    async def delete_many(self, ctx: Context, where: Filter) -> int:
        """Delete every document that matches `where`; returns how many."""
        if self._needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: self.delete_many(tx, where))
        condition = self.write_filter(ctx, where)
        if self.history is not None:
            removed = await self._in(ctx).find(condition, session=ctx.session).to_list(None)
            if not removed:
                return 0
            self._record_deleted(ctx, removed)
        return (await self._in_to_change(ctx).delete_many(condition, session=ctx.session)).deleted_count


def declared_collections() -> dict[str, Documents[Any]]:
    """The collections that the imported features declare, by name."""
    return {name: collection for name, collection in registry.items() if isinstance(collection, Documents)}


def _with_version(change: Document) -> Document:
    return change | {
        "$set": {**change.get("$set", {}), "updatedAt": now()},
        "$inc": {**change.get("$inc", {}), "version": 1},
    }


def _upsert_stage(fields: Mapping[str, Any]) -> list[Document]:
    """The update stage of an upsert: a new document gets version 0, an existing one the next version."""
    at = now()
    stamps = {
        "createdAt": {"$ifNull": ["$createdAt", at]},
        "updatedAt": at,
        "version": {"$ifNull": [{"$add": ["$version", 1]}, 0]},
    }
    return [{"$set": {name: {"$literal": value} for name, value in fields.items()} | stamps}]


def _changed_parts(before: Mapping[str, Any], fields: Mapping[str, Any]) -> Document:
    """Return what to set for `fields` to have these values in a document at the version of `before`.

    Of a list that keeps its length, only the elements that are not the same objects as before: a log of one of several
    items is a smaller write.
    """
    changed: Document = {}
    for name, value in fields.items():
        previous = before.get(name)
        if not isinstance(value, list) or not isinstance(previous, list) or len(value) != len(previous):
            changed[name] = value
            continue
        for position, (old, new) in enumerate(zip(previous, value, strict=True)):
            if new is not old:
                changed[f"{name}.{position}"] = new
    return changed
