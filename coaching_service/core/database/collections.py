"""Declaring and reading collections of coaching data: every query begins with the company."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

from pymongo import ASCENDING, DESCENDING

from coaching_service.core.database.connection import IGNORE_CASE, Index
from coaching_service.core.database.context import Collection, Context, Services
from coaching_service.core.database.field_changes import touched_paths, without_nested
from coaching_service.core.database.outcome import incidental_collections
from coaching_service.core.database.portable import NotExported, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.database.worker_thread import aggregate_all, find_all
from coaching_service.core.ids import ObjectId

# --- Where the documents of a collection are on a sharded cluster, as each collection declares it ---------------------


@dataclass(frozen=True)
class ShardKey:
    """The fields by whose values documents are divided among the shards; `is_hashed`: by the hash of the only one.

    MongoDB enforces a unique index on each shard by itself, so it accepts only those that begin with the shard key;
    the index of `_id` is the exception, and is unique on each shard only.
    """

    fields: tuple[str, ...]
    is_hashed: bool = False

    @property
    def pattern(self) -> dict[str, int | str]:
        """The key as MongoDB takes it."""
        return dict.fromkeys(self.fields, "hashed" if self.is_hashed else 1)

    def allows(self, index: Index) -> bool:
        """Return whether a sharded collection may have this index: it is not unique, or begins with the shard key."""
        return not index.unique or index.fields[: len(self.fields)] == self.fields

    def is_served_by(self, index: Index) -> bool:
        """Return whether the index is fit for sharding: complete, comparing bytes, and beginning with the key.

        It must not have several entries for a document either, which a declaration does not show.
        """
        begins = index.fields[: len(self.fields)] == self.fields
        return begins and not self.is_hashed and not index.partial_filter and not index.ignore_case


@dataclass(frozen=True)
class Unsharded:
    """All documents are on one shard, the primary one of the database, for this reason."""

    reason: str


Placement = ShardKey | Unsharded
BY_COMPANY = ShardKey(("companyId",))


def find_index(key: ShardKey, indexes: Iterable[Index]) -> Index | None:
    """Return the first index that sharding by `key` can use, or None."""
    return next((index for index in indexes if key.is_served_by(index)), None)


# --- Which texts of a collection are found by their words, as each collection declares it -----------------------------


SearchedType = Literal["customers", "workouts", "notes", "messages", "answers", "comments", "exercises", "programs"]


class SearchedText(NamedTuple):
    """A text of a document: its type, its title, and the day (`YYYY-MM-DD`) or time (UTC) that it is from.

    `is_named`: the words of the title are found too.
    """

    type: SearchedType
    title: str
    text: str
    at: str | datetime | None
    is_named: bool = True


@dataclass(frozen=True)
class Searched:
    """What is found of the documents of a collection: at most one text of each of `types`.

    `texts` returns them, from `fields` alone; it is also called with a part of them, before and after a change.
    """

    types: tuple[SearchedType, ...]
    fields: tuple[str, ...]
    texts: Callable[[Mapping[str, Any]], Iterable[SearchedText]]


Document = dict[str, Any]
Filter = dict[str, Any]
PipelineStage = dict[str, Any]
Ownership = Literal["all", "own", "shared"]
# The stored document of a collection: a TypedDict that extends database.models.Stored.
_EXPORTED_AT_ONCE = 100  # documents, which the driver decodes without a pause

D = TypeVar("D", bound=Mapping[str, Any])


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


@dataclass(frozen=True)
class ReadableCollection(Generic[D]):
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
    indexes: tuple[Index, ...] = ()
    private: tuple[str, ...] = ("companyId",)
    client_field: str | None = None
    secret: bool = False
    shared: bool = False
    history: History | None = None
    no_history_reason: str = ""
    expire: tuple[str, int] | None = None
    global_indexes: tuple[Index, ...] = ()
    cross_company_reason: str = ""
    transfer: Portable | NotExported | None = None
    searched: Searched | None = None
    has_files: bool = False
    incidental: bool = False
    process_state: bool = False
    is_cached: bool = False
    placement: Placement = BY_COMPANY

    def __post_init__(self) -> None:
        prefixed = tuple(replace(index, fields=("companyId", *index.fields)) for index in self.indexes)
        if self.expire:
            prefixed += (Index((self.expire[0],), expire_after=self.expire[1]),)
        object.__setattr__(self, "indexes", prefixed + self.global_indexes)
        if isinstance(self.placement, ShardKey) and not all(map(self.placement.allows, self.indexes)):
            raise RuntimeError(f"{self.name} has a unique index that does not begin with its shard key")
        if isinstance(self.transfer, Portable) and (self.history is None) is not bool(self.no_history_reason):
            raise RuntimeError(f"{self.name} is exported: it needs a history, or no_history_reason")
        if self.incidental:
            incidental_collections.add(self.name)
        registry[self.name] = self

    @property
    def holds_files(self) -> bool:
        """Whether documents refer to files."""
        return self.has_files or (isinstance(self.transfer, Portable) and self.transfer.files is not None)

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

    def result_projection(
        self, fields: Sequence[str] | None, change: Document, appended: tuple[str, Document] | None
    ) -> dict[str, int] | None:
        """Return the projection of an updated document: to `fields`, and what the change log needs."""
        if self.history is None:
            return self.projection(fields)
        if fields is None:
            return None
        return self.recorded_projection([*fields, *([f"{appended[0]}._id"] if appended else touched_paths(change))])

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

    def preview_many(self, ctx: Context, documents: Sequence[Mapping[str, Any]]) -> list[D]:
        """Return what `insert_many` would return, and store nothing."""
        return [self.without_private(self.with_metadata(ctx, document)) for document in documents]

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
            collation=IGNORE_CASE if ignore_case else None,
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

    async def find_and_add(
        self, ctx: Context, where: Filter, added: Document, *, sort: Sequence[str], hint: str | None = None
    ) -> list[Any]:
        """Return what `find` returns, and the documents of the `$unionWith` stage `added`, in one command.

        Documents without the fields of `sort` come first. Not in a transaction, where MongoDB refuses the stage.
        """
        in_order = {"$sort": dict(order_by(sort))}  # the first uses the index; `$unionWith` promises no order
        shown = self.projection(None)
        stages = [in_order, added, in_order, *([{"$project": shown}] if shown else [])]
        return await self.aggregate(ctx, where, *stages, hint=hint)

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


registry: dict[str, ReadableCollection[Any]] = {}
