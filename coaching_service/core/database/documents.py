"""Collections of coaching data: every query begins with the company, every change is one document, or part of the
caller's transaction.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, cast, get_args

from pymongo import ASCENDING, DESCENDING, ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError, OperationFailure

from coaching_service.core.database import declared
from coaching_service.core.database.connection import is_write_conflict
from coaching_service.core.database.context import (
    AlreadyClaimed,
    Collection,
    Context,
    DocumentExists,
    Services,
    external_id_conflict,
    in_transaction,
    is_duplicate,
    version_conflict,
)
from coaching_service.core.database.outcome import incidental_collections
from coaching_service.core.database.recording import ChangeRecorder, touched_paths, without_nested
from coaching_service.core.database.worker_thread import aggregate_all, find_all
from coaching_service.core.ids import ObjectId

Document = dict[str, Any]
Filter = dict[str, Any]
PipelineStage = dict[str, Any]
Ownership = Literal["all", "own", "shared"]
# The stored document of a collection: a TypedDict that extends database.models.Stored.
_EXPORTED_AT_ONCE = 100  # documents, which the driver decodes without a pause

_REWRITES = 50
_IMPORTED = ("createdAt", "updatedAt", "version")  # metadata of a document of an export, where it is data
_UNRECORDED = ChangeRecorder()  # records nothing of collections without a history
D = TypeVar("D", bound=Mapping[str, Any])
P = ParamSpec("P")
T = TypeVar("T")


def now() -> datetime:
    """Return the current time as it is stored: UTC, to the millisecond, without a time zone."""
    time = datetime.now(UTC).replace(tzinfo=None)
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def order_by(fields: Sequence[str]) -> list[tuple[str, int]]:
    """Field names as the driver's sort keys; a leading `-` sorts descending."""
    return [(f.removeprefix("-"), DESCENDING if f.startswith("-") else ASCENDING) for f in fields]


def hint_of(where: Filter) -> dict[str, Any]:
    """Return the option that makes MongoDB look up a document by its identifier, if `where` has one.

    Otherwise it would compare the index of identifiers with all indexes that begin with the company, for each command.
    """
    return {"hint": "_id_"} if isinstance(where.get("_id"), ObjectId) else {}


def within_company(company: object, where: Filter) -> Filter:
    """Restrict `where` to a company. Raises RuntimeError if it names a company itself, which could be another one."""
    if "companyId" in where:
        raise RuntimeError("a filter must not contain companyId: it is added from the caller")
    return {"companyId": company, **where}


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


def recorded(
    write: Callable[Concatenate[Documents[D], Context, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Documents[D], Context, P], Coroutine[Any, Any, T]]:
    """Run a write in a transaction, its own or the caller's, if it is recorded or changes what processes cache."""

    @wraps(write)
    async def in_its_transaction(collection: Documents[D], ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if collection.needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: write(collection, tx, *args, **kwargs))
        return await write(collection, ctx, *args, **kwargs)

    return in_its_transaction


@dataclass(eq=False)
class Documents(Generic[D]):
    """One collection of coaching data, as it is declared and read.

    `indexes` are prefixed with `companyId`. `private` fields are left out by the default projection.
    `client_field` is the field with the client a document belongs to: erasing that client deletes the document.
    `secret` collections (tokens, queues) are not part of a client's export.
    `shared` collections also have documents without a company (`companyId: null`) that every company reads.
    `history` says how the change log records the collection. What is exported has one, or a `no_history_reason`.
    `expire` is a date field and the seconds after which MongoDB deletes a document by itself.
    `cross_company_reason` says why the few collections that have one are also read across companies.
    `transfer` says how the collection is exported with its company, or why not.
    `searched` says which texts of its documents are found by their words.
    `has_files`: documents that are not exported refer to files.
    `placement`: the shard key, by default the company, or why the collection is not sharded.
    `is_cached`: processes cache documents for a moment, so a transaction that changes or deletes one waits (see
    `core/cached_reads.py`).
    `incidental`: a write of it alone changes nothing that a caller asked for, such as counters and unused files.
    `process_state`: only running processes need the documents, so they are not part of a backup.
    """

    name: str
    indexes: tuple[declared.Index, ...] = ()
    private: tuple[str, ...] = ("companyId",)
    client_field: str | None = None
    secret: bool = False
    shared: bool = False
    history: declared.History | None = None
    no_history_reason: str = ""
    expire: tuple[str, int] | None = None
    global_indexes: tuple[declared.Index, ...] = ()
    cross_company_reason: str = ""
    transfer: declared.Portable | declared.NotExported | None = None
    searched: declared.Searched | None = None
    has_files: bool = False
    incidental: bool = False
    process_state: bool = False
    is_cached: bool = False
    placement: declared.Placement = declared.BY_COMPANY

    def __post_init__(self) -> None:
        prefixed = tuple(replace(index, fields=("companyId", *index.fields)) for index in self.indexes)
        if self.expire:
            prefixed += (declared.Index((self.expire[0],), expire_after=self.expire[1]),)
        self.indexes = prefixed + self.global_indexes
        if isinstance(self.placement, declared.ShardKey) and not all(map(self.placement.allows, self.indexes)):
            raise RuntimeError(f"{self.name} has a unique index that does not begin with its shard key")
        if isinstance(self.transfer, declared.Portable) and (self.history is None) is not bool(self.no_history_reason):
            raise RuntimeError(f"{self.name} is exported: it needs a history, or no_history_reason")
        if self.incidental:
            incidental_collections.add(self.name)
        registry[self.name] = self

    @property
    def by_company(self) -> str | None:
        """The name of the index of a company's documents; None if they have no company."""
        return self._index_on("companyId")

    @property
    def by_client(self) -> str | None:
        """The name of the index of a client's documents; None if they have no client."""
        return self._index_on("companyId", self.client_field) if self.client_field else None

    def index_name(self, *fields: str) -> str:
        """Return the name of the index that is declared with these fields, for hints.

        Raises LookupError if there is none.
        """
        names = {index.fields: index.name for index in self.indexes}
        if (name := names.get(("companyId", *fields))) is None:
            raise LookupError(f"{self.name} has no index on {', '.join(fields)}")
        return name

    def _index_on(self, *fields: str) -> str | None:
        full = (index for index in self.indexes if not index.partial_filter)
        return next((index.name for index in full if index.fields[: len(fields)] == fields), None)

    # --- reading -----------------------------------------------------------------------------------------------

    def read_filter(self, ctx: Context, where: Filter, ownership: Ownership = "all") -> Filter:
        """Restrict `where` to what the company may read; in a shared collection by `ownership`."""
        company = ctx.company_id
        if not self.shared:
            return within_company(company, where)
        return within_company({"all": {"$in": [None, company]}, "own": company, "shared": None}[ownership], where)

    def write_filter(self, ctx: Context, where: Filter) -> Filter:
        """Restrict `where` to what the company may change."""
        return within_company(ctx.company_id, where)

    def projection(self, fields: Sequence[str] | None, including: Sequence[str] = ()) -> dict[str, Any] | None:
        """Return the projection to `fields` and `_id`; without `fields`, to the public ones and `including`."""
        if fields is not None:
            return dict.fromkeys(fields, 1)
        return dict.fromkeys((name for name in self.private if name not in including), 0) or None

    def recorded_projection(self, paths: Sequence[str]) -> dict[str, int]:
        """Return the projection to what the change log needs of a document before or after a change of `paths`."""
        names = [*paths, "version", *(self.history.event_fields if self.history else ())]
        if self.client_field:
            names.append(self.client_field)
        return dict.fromkeys(without_nested(names), 1)

    def needs_transaction(self, ctx: Context) -> bool:
        """Return whether a write has to be put into a transaction: it has an entry in the change log, or is cached."""
        return (self.history is not None or self.is_cached) and ctx.session is None

    def with_metadata(self, ctx: Context, document: Mapping[str, Any]) -> Document:
        """Return `document` with the fields of `Stored`: `_id` (unless it has one), company, times, `version` 0."""
        at = now()
        metadata = {"companyId": ctx.company_id, "createdAt": at, "updatedAt": at, "version": 0}
        return {"_id": ObjectId(), **document, **metadata}

    def without_private(self, document: Mapping[str, Any]) -> D:
        """`document` without its private fields."""
        return cast("D", {key: value for key, value in document.items() if key not in self.private})

    def _in(self, ctx: Context) -> Collection:
        return ctx.collection(self.name)

    def _in_to_change(self, ctx: Context) -> Collection:
        """Return the driver's collection, to change or delete stored documents.

        Raises RuntimeError outside of a transaction if processes cache the documents.
        """
        if self.is_cached:
            ctx.changes.changes_cached = True
        return self._in(ctx)

    async def find_one(self, ctx: Context, where: Filter, fields: Sequence[str] | None = None) -> D | None:
        """Return the document that matches `where`, or None."""
        document = await self._in(ctx).find_one(
            self.read_filter(ctx, where), self.projection(fields), session=ctx.session, **hint_of(where)
        )
        return cast("D | None", document)

    async def find_whole(self, ctx: Context, ids: Sequence[ObjectId]) -> list[Document]:
        """Return the existing documents of the company with all fields, private ones included."""
        where = self.write_filter(ctx, {"_id": {"$in": list(ids)}})
        return await self._in(ctx).find(where, session=ctx.session, hint="_id_").to_list(None)

    async def find(
        self,
        ctx: Context,
        where: Filter,
        *,
        sort: Sequence[str] = (),
        skip: int = 0,
        limit: int = 0,
        fields: Sequence[str] | None = None,
        including: Sequence[str] = (),
        hint: str | None = None,
        ownership: Ownership = "all",
        ignore_case: bool = False,
    ) -> list[D]:
        """Return the documents that match `where`, in the order of `sort`; with `fields`, only those and `_id`.

        `ignore_case`: texts are compared without regard to case.
        `including` are private fields to return without `fields`.
        """
        documents = await find_all(
            self._in(ctx),
            self.read_filter(ctx, where, ownership),
            self.projection(fields, including),
            sort=order_by(sort) or None,
            skip=skip,
            limit=limit,
            hint=hint,
            collation=declared.IGNORE_CASE if ignore_case else None,
            session=ctx.session,
        )
        return cast("list[D]", documents)

    async def list_ids_after(
        self, ctx: Context, last: ObjectId | None, limit: int, where: Filter | None = None
    ) -> list[ObjectId]:
        """Return the next identifiers of `where` after `last`, ascending, by an index of identifiers."""
        remaining = (where or {}) | ({} if last is None else {"_id": {"$gt": last}})
        hint = self.index_name("_id")
        documents: list[Any] = await self.find(ctx, remaining, sort=("_id",), limit=limit, fields=("_id",), hint=hint)
        return [document["_id"] for document in documents]

    async def stream(self, ctx: Context, where: Filter, sort: Sequence[str], *, hint: str | None) -> AsyncIterator[D]:
        """Iterate over the documents that match `where`, in bounded memory."""
        cursor = self._in(ctx).find(
            self.read_filter(ctx, where),
            self.projection(None),
            sort=order_by(sort) or None,
            hint=hint,
            batch_size=200,
            session=ctx.session,
        )
        async for document in cursor:
            yield cast("D", document)

    async def stream_own(
        self, ctx: Context, fields: Sequence[str] | None = None, where: Filter | None = None
    ) -> AsyncIterator[D]:
        """Iterate over the company's own documents, private fields included, in bounded memory.

        With `fields`, only those and `_id`. Documents of one client follow each other.
        """
        cursor = self._in(ctx).find(
            within_company(ctx.company_id, where or {}),
            None if fields is None else dict.fromkeys(fields, 1),
            batch_size=_EXPORTED_AT_ONCE,
            session=ctx.session,
            hint=self.by_client or self.by_company,
        )
        async for document in cursor:
            yield cast("D", document)

    async def count(
        self,
        ctx: Context,
        where: Filter,
        *,
        limit: int | None = None,
        hint: str | None = None,
        ownership: Ownership = "all",
    ) -> int:
        """Return how many documents match `where`, counting no further than `limit`."""
        options: dict[str, Any] = {key: v for key, v in (("limit", limit), ("hint", hint)) if v is not None}
        return await self._in(ctx).count_documents(
            self.read_filter(ctx, where, ownership), session=ctx.session, **options
        )

    async def aggregate(
        self, ctx: Context, where: Filter, *stages: Document, hint: str | None = None, ownership: Ownership = "all"
    ) -> list[Any]:
        """Return the result of a pipeline whose first stage is `where` within the company.

        The caller states their type: a pipeline may compute anything.
        """
        options = {"hint": hint} if hint else {}
        pipeline = [{"$match": self.read_filter(ctx, where, ownership)}, *stages]
        return await aggregate_all(self._in(ctx), pipeline, session=ctx.session, **options)

    def across_companies(self, services: Services) -> Collection:
        """Return the driver's collection, not restricted to a company: only for collections with a declared reason."""
        if not self.cross_company_reason:
            raise RuntimeError(f"{self.name} is only read within a company")
        return services.collection(self.name)

    # --- writing -----------------------------------------------------------------------------------------------

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
        paths = touched_paths(change)
        projection = self.projection(fields)
        # What only appends elements is not read before: the lists were as they are afterwards, without the last.
        is_appending = (
            previous is None
            and set(change) == {"$push"}
            and all("." not in path and "_id" in each for path, each in change["$push"].items())
        )
        if self.history is not None:
            projection = None if fields is None else self.recorded_projection([*fields, *paths])
            if previous is None and not is_appending:
                previous = await self._in(ctx).find_one(
                    condition, self.recorded_projection(paths), session=ctx.session, **hint_of(where)
                )
        updated: Document | None = None
        if self.history is None or is_appending or previous is not None:
            async with external_id_conflict(ctx, self):
                updated = await self._in_to_change(ctx).find_one_and_update(
                    condition,
                    with_version(change),
                    projection=projection,
                    return_document=ReturnDocument.AFTER,
                    session=ctx.session,
                    **hint_of(where),
                )
        if updated is None:
            if version is not None and await self.find_one(ctx, where, ("_id",)):
                raise version_conflict()
            return None
        if self.history is not None:
            if is_appending:
                lists = {path: updated[path][:-1] for path in paths}
                previous = {**updated, **lists, "version": updated["version"] - 1}
            ctx.changes.add_changed(self, previous or {}, updated, paths)
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


# The collections that the imported features declare, by name.
registry: dict[str, Documents[Any]] = {}


def references_to(target: str) -> Iterator[tuple[Documents[Any], str]]:
    """Yield the collections whose documents refer to those of another, each with the path of the identifier."""
    for collection in registry.values():
        if isinstance(transfer := collection.transfer, declared.Portable):
            for path, of in {**transfer.references, **transfer.optional_references}.items():
                if of == target:
                    yield collection, path
