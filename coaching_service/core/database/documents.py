"""Writing collections of coaching data: every change is one document, or part of the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError, OperationFailure

from coaching_service.core.database.collections import (
    D,
    Document,
    Filter,
    Ownership,
    PipelineStage,
    ReadableCollection,
    hint_of,
    now,
    registry,
)
from coaching_service.core.database.connection import is_write_conflict
from coaching_service.core.database.context import Context
from coaching_service.core.database.field_changes import touched_paths
from coaching_service.core.database.portable import Portable
from coaching_service.core.database.recording import ChangeRecorder
from coaching_service.core.database.transactions import (
    AlreadyClaimed,
    DocumentExists,
    external_id_conflict,
    in_transaction,
    is_duplicate,
    recorded,
    version_conflict,
)
from coaching_service.core.ids import ObjectId


def appended_element(change: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the path and the new element of a change that only appends a document with an `_id` to a list."""
    if set(change) != {"$push"} or len(change["$push"]) != 1:
        return None
    ((path, element),) = change["$push"].items()
    return (path, element) if isinstance(element, dict) and "_id" in element else None


def with_version(change: Document) -> Document:
    """`change`, which also raises the version."""
    return change | {
        "$set": {**change.get("$set", {}), "updatedAt": now()},
        "$inc": {**change.get("$inc", {}), "version": 1},
    }


def upsert_stage(fields: Mapping[str, Any]) -> list[Document]:
    """Return the update stage of an upsert: a new document gets version 0, an existing one the next version."""
    at = now()
    stamps = {
        "createdAt": {"$ifNull": ["$createdAt", at]},
        "updatedAt": at,
        "version": {"$ifNull": [{"$add": ["$version", 1]}, 0]},
    }
    return [{"$set": {name: {"$literal": value} for name, value in fields.items()} | stamps}]


def changed_parts(before: Mapping[str, Any], fields: Mapping[str, Any]) -> Document:
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


__all__ = ["Document", "Documents", "Filter", "Ownership", "PipelineStage", "declared_collections", "now"]

_REWRITES = 50
_IMPORTED = ("createdAt", "updatedAt", "version")  # metadata of a document of an export, where it is data
_UNRECORDED = ChangeRecorder()  # records nothing of collections without a history


class Documents(ReadableCollection[D]):
    """One collection of coaching data: declared and read (see ReadableCollection), and written.

    Changes are recorded if it declares its `history`, but those of derived fields, which raise no `version`.
    """

    # Not a frozen dataclass itself, whose instances do not remember the type in `Documents[Note](...)`.

    @property
    def model(self) -> Any:
        """The type of the stored documents: the TypedDict with which the collection is declared."""
        return get_args(self.__orig_class__)[0]  # type: ignore[attr-defined]  # set by typing

    def _changes(self, ctx: Context) -> ChangeRecorder:
        return _UNRECORDED if self.history is None else ctx.changes

    async def insert(self, ctx: Context, document: Mapping[str, Any]) -> D:
        """Store a new document; returns it without its private fields. Raises ExternalIdTaken."""
        return (await self.insert_many(ctx, [document]))[0]

    async def insert_many(
        self, ctx: Context, documents: Sequence[Mapping[str, Any]], *, recorded: bool = True
    ) -> list[D]:
        """Store new documents; returns them without their private fields, in the same order.

        `recorded`: in the change log. Raises ExternalIdTaken.
        """
        if not documents:
            return []
        if recorded and self.needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: self.insert_many(tx, documents))
        stored = [self.with_metadata(ctx, document) for document in documents]
        async with external_id_conflict(ctx, self):
            if len(stored) == 1:  # costs the driver less than a bulk
                await self._in(ctx).insert_one(stored[0], session=ctx.session)
            else:
                await self._in(ctx).insert_many(stored, session=ctx.session)
        if recorded:
            self._changes(ctx).add_created(self, stored)
        return [self.without_private(document) for document in stored]

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
        ctx.changes.restores = True
        self._changes(ctx).add_created(self, stored)

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

    async def reinsert(self, ctx: Context, documents: Sequence[Mapping[str, Any]]) -> None:
        """Store deleted documents again, each with its next version, in the caller's transaction.

        Raises BulkWriteError if one is there, ExternalIdTaken if an external identifier is in use.
        """
        again = {"companyId": ctx.company_id, "updatedAt": now()}
        stored = [{**each, **again, "version": each["version"] + 1} for each in documents]
        async with external_id_conflict(ctx, self):
            await self._in(ctx).insert_many(stored, session=ctx.session)
        self._changes(ctx).add_created(self, stored)

    @recorded
    async def restore_each(self, ctx: Context, updates: Sequence[tuple[Document, Document, Document]]) -> None:
        """Apply update operators to several documents in one round trip.

        (The complete document as it was read in this transaction, operators, the document afterwards) for each. Raises
        ExternalIdTaken.
        """
        async with external_id_conflict(ctx, self):
            await self.set_derived_each(
                ctx, [({"_id": before["_id"]}, with_version(change)) for before, change, _ in updates]
            )
        for before, change, after in updates:
            restored = {**after, "version": before["version"] + 1}
            self._changes(ctx).add_changed(self, before, restored, touched_paths(change))

    @recorded
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
        condition = self.write_filter(ctx, where) | ({} if version is None else {"version": version})
        appended = appended_element(change) if previous is None else None
        if self.history is not None and previous is None and appended is None:
            previous = await self._in(ctx).find_one(
                condition, self.recorded_projection(touched_paths(change)), session=ctx.session, **hint_of(where)
            )
        updated: Document | None = None
        if self.history is None or appended is not None or previous is not None:
            async with external_id_conflict(ctx, self):
                updated = await self._in_to_change(ctx).find_one_and_update(
                    condition,
                    with_version(change),
                    projection=self.result_projection(fields, change, appended),
                    return_document=ReturnDocument.AFTER,
                    session=ctx.session,
                    **hint_of(where),
                )
        if updated is None:
            if version is not None and await self.find_one(ctx, where, ("_id",)):
                raise version_conflict()
            return None
        if appended is not None:
            self._changes(ctx).add_element(self, {**where, **updated}, *appended)
        else:
            self._changes(ctx).add_changed(self, previous or {}, updated, touched_paths(change))
        if fields is None:
            return self.without_private(updated)
        names = {"_id", *(name.partition(".")[0] for name in fields)}
        return cast("D", {name: value for name, value in updated.items() if name in names})

    @recorded
    async def rewrite(
        self, ctx: Context, where: Filter, mutate: Callable[[D], Mapping[str, Any]], *, version: int | None = None
    ) -> D | None:
        """Set the fields that `mutate` returns for one document, only if it has not changed since it was read.

        If it has, it is read again, a bounded number of times; with `version`, Conflict is raised instead. Returns the
        document afterwards, or None if no document matches.
        """
        for _ in range(_REWRITES):
            current = await self._in(ctx).find_one(self.write_filter(ctx, where), session=ctx.session, **hint_of(where))
            if current is None:
                return None
            read_version = current["version"]
            if version is not None and read_version != version:
                raise version_conflict()
            fields = mutate(cast("D", current))
            if not fields:
                return self.without_private(current)
            at_version = where | {"version": read_version}
            if updated := await self.update(ctx, at_version, {"$set": fields}, previous=current):
                return updated
        raise version_conflict()

    @recorded
    async def rewrite_each(self, ctx: Context, changes: Sequence[tuple[D, Mapping[str, Any]]]) -> list[D]:
        """Set fields of several documents in one round trip: (the document as it was read, its new fields) for each.

        Elements of lists are replaced, never changed in place: what is still the same object is not written.
        Returns the documents afterwards, with the new fields. Raises Conflict if one has changed since it was read.
        """
        at = now()
        writes = [
            (
                {"_id": document["_id"], "version": document["version"]},
                {"$set": {**changed_parts(document, fields), "updatedAt": at}, "$inc": {"version": 1}},
            )
            for document, fields in changes
        ]
        if await self.set_derived_each(ctx, writes) < len(writes):
            raise version_conflict()
        rewritten: list[D] = []
        for document, fields in changes:
            after = {**document, **fields, "updatedAt": at, "version": document["version"] + 1}
            self._changes(ctx).add_changed(self, document, after, list(fields))
            rewritten.append(cast("D", after))
        return rewritten

    @recorded
    async def upsert(self, ctx: Context, where: Filter, fields: Mapping[str, Any]) -> D:
        """Set `fields` of the document that matches `where` (equalities only) and return it; created if missing."""
        condition, previous = self.write_filter(ctx, where), None
        if self.history is not None:
            previous = await self._in(ctx).find_one(condition, session=ctx.session)
        stored: Document = await self._in_to_change(ctx).find_one_and_update(
            condition,
            upsert_stage(fields),
            upsert=True,
            return_document=ReturnDocument.AFTER,
            session=ctx.session,
        )
        self._changes(ctx).add_upserted(self, previous, stored, list(fields))
        return self.without_private(stored)

    @recorded
    async def upsert_many(self, ctx: Context, key: Sequence[str], documents: Sequence[Mapping[str, Any]]) -> list[D]:
        """Set the fields of several documents, each that with the same values of the fields `key`; created if missing.

        No two of `documents` have the same key. Takes a few round trips; returns the stored documents in their order.
        """
        parts = [
            ({name: each[name] for name in key}, {name: each[name] for name in each if name not in key})
            for each in documents
        ]
        if len(parts) == 1:  # takes a round trip less
            return [await self.upsert(ctx, *parts[0])]
        previous = await self._find_by_key(ctx, key, documents) if self.history is not None else {}
        await self.set_derived_each(ctx, [(where, upsert_stage(fields)) for where, fields in parts], upsert=True)
        stored = await self._find_by_key(ctx, key, documents)
        for where, fields in parts:
            values = tuple(where.values())
            self._changes(ctx).add_upserted(self, previous.get(values), stored[values], list(fields))
        return [self.without_private(stored[tuple(where.values())]) for where, _ in parts]

    async def _find_by_key(
        self, ctx: Context, key: Sequence[str], documents: Sequence[Mapping[str, Any]]
    ) -> dict[tuple[Any, ...], Document]:
        """Return the stored documents that have the values of `documents` in the fields `key`, by these values."""
        where = {name: {"$in": list({each[name] for each in documents})} for name in key}
        found = self._in(ctx).find(self.write_filter(ctx, where), session=ctx.session)
        return {tuple(document[name] for name in key): document async for document in found}

    async def update_many(self, ctx: Context, where: Filter, change: Document) -> int:
        """Apply update operators to every document that matches `where`; returns how many changed."""
        return await self._update_matching(ctx, where, touched_paths(change), with_version(change))

    async def update_each(self, ctx: Context, where: Filter, computed: Document) -> int:
        """Set fields of every matching document to aggregation expressions; returns how many changed."""
        stages = [{"$set": {**computed, "updatedAt": now(), "version": {"$add": ["$version", 1]}}}]
        return await self._update_matching(ctx, where, list(computed), stages)

    @recorded
    async def _update_matching(
        self, ctx: Context, where: Filter, paths: list[str], change: Document | list[Document]
    ) -> int:
        condition = self.write_filter(ctx, where)
        previous: dict[ObjectId, Document] = {}
        if self.history is not None:
            fields = self.recorded_projection(paths)
            async for document in self._in(ctx).find(condition, fields, session=ctx.session):
                previous[document["_id"]] = document
            if not previous:
                return 0
        result = await self._in_to_change(ctx).update_many(condition, change, session=ctx.session)
        if self.history is not None:
            changed = self.write_filter(ctx, {"_id": {"$in": list(previous)}})
            async for document in self._in(ctx).find(changed, fields, session=ctx.session):
                ctx.changes.add_changed(self, previous[document["_id"]], document, paths)
        return result.modified_count

    @recorded
    async def delete(self, ctx: Context, where: Filter) -> D | None:
        """Delete one document; returns what was deleted, or None."""
        removed: Document | None = await self._in_to_change(ctx).find_one_and_delete(
            self.write_filter(ctx, where), session=ctx.session, **hint_of(where)
        )
        if removed is not None:
            self._changes(ctx).add_deleted(self, [removed])
        return cast("D | None", removed)

    @recorded
    async def delete_many(self, ctx: Context, where: Filter, *, recorded: bool = True) -> int:
        """Delete every document that matches `where`; returns how many. `recorded`: in the change log."""
        condition = self.write_filter(ctx, where)
        if self.history is not None and recorded:
            removed = await self._in(ctx).find(condition, session=ctx.session).to_list(None)
            if not removed:
                return 0
            ctx.changes.add_deleted(self, removed)
        result = await self._in_to_change(ctx).delete_many(condition, session=ctx.session, **hint_of(where))
        return result.deleted_count

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

    async def increment_each(self, ctx: Context, counts: Sequence[tuple[Filter, Document]]) -> None:
        """Add counts to number fields of documents, in one round trip: (`where`, counts); created if missing."""
        await self.set_derived_each(ctx, [(where, {"$inc": each}) for where, each in counts], upsert=True)

    async def set_derived_each(
        self, ctx: Context, writes: Sequence[tuple[Filter, Document | list[Document]]], *, upsert: bool = False
    ) -> int:
        """`set_derived` for several documents in one round trip: (`where`, change) for each; returns how many matched.

        `upsert`: missing documents are created.
        """
        if not writes:
            return 0
        collection = self._in_to_change(ctx)
        if len(writes) == 1:  # costs the driver less than a bulk
            [(where, change)] = writes
            condition = self.write_filter(ctx, where)
            result = await collection.update_one(
                condition, change, upsert=upsert, session=ctx.session, **hint_of(where)
            )
            return result.matched_count
        bulk = [
            UpdateOne(self.write_filter(ctx, where), change, upsert=upsert, **hint_of(where))
            for where, change in writes
        ]
        return (await collection.bulk_write(bulk, ordered=False, session=ctx.session)).matched_count


def declared_collections() -> dict[str, Documents[Any]]:
    """Return the collections that the imported features declare, by name."""
    return {name: collection for name, collection in registry.items() if isinstance(collection, Documents)}


def references_to(target: str) -> Iterator[tuple[Documents[Any], str]]:
    """Yield the collections whose documents refer to those of another, each with the path of the identifier."""
    for collection in declared_collections().values():
        if isinstance(transfer := collection.transfer, Portable):
            for path, of in {**transfer.references, **transfer.optional_references}.items():
                if of == target:
                    yield collection, path
