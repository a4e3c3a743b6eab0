"""Collections of coaching data, declared and read: every query made here begins with the company."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar, cast

from pymongo import ASCENDING, DESCENDING

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Collection, Context, Services

Document = dict[str, Any]
Filter = dict[str, Any]
Ownership = Literal["all", "own", "shared"]
# The stored document of a collection: a TypedDict that extends database.models.Stored.
D = TypeVar("D", bound=Mapping[str, Any])


def now() -> datetime:
    """The present moment as it is stored: UTC, milliseconds, no zone attached."""
    moment = datetime.now(UTC).replace(tzinfo=None)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def order_by(fields: Sequence[str]) -> list[tuple[str, int]]:
    """Field names (a leading `-` sorts down) as the driver takes them."""
    return [(f.removeprefix("-"), DESCENDING if f.startswith("-") else ASCENDING) for f in fields]


def within(company: object, where: Filter) -> Filter:
    """`where` within a company, which it must not name: it would read another's."""
    if "companyId" in where:
        raise RuntimeError("a condition is within the company of whoever asks; it must not name one")
    return {"companyId": company, **where}


@dataclass(frozen=True)
class ReadableCollection(Generic[D]):
    """One collection of coaching data, as it is declared and read.

    `indexes` are prefixed with `companyId`. `private` fields never leave by the default projection.
    `client_field` names the field that holds the client a document belongs to: what erasing that client removes.
    `secret` collections (tokens, queues) are not part of a client's export.
    `shared` collections also hold documents of nobody (`companyId: null`) that every company reads.
    `expire` names a date field and the seconds after which MongoDB removes a document by itself.
    `why_global` is the reason of the few collections that are also found without knowing the company.
    """

    name: str
    indexes: tuple[Index, ...] = ()
    private: tuple[str, ...] = ("companyId",)
    client_field: str | None = None
    secret: bool = False
    shared: bool = False
    expire: tuple[str, int] | None = None
    global_indexes: tuple[Index, ...] = ()
    cross_company_reason: str = ""

    def __post_init__(self) -> None:
        prefixed = tuple(replace(index, fields=("companyId", *index.fields)) for index in self.indexes)
        if self.expire:
            prefixed += (Index((self.expire[0],), expire_after=self.expire[1]),)
        object.__setattr__(self, "indexes", prefixed + self.global_indexes)
        registry[self.name] = self

    @property
    def by_company(self) -> str | None:
        """The index by which all of a company's documents are found; None where they belong to no company."""
        return self._index_on("companyId")

    @property
    def by_client(self) -> str | None:
        """The index by which all of a client's documents are found; None where they belong to no client."""
        return self._index_on("companyId", self.client_field) if self.client_field else None

    def _index_on(self, *fields: str) -> str | None:
        whole = (index for index in self.indexes if not index.partial_filter)
        return next((index.name for index in whole if index.fields[: len(fields)] == fields), None)

    # --- reading -----------------------------------------------------------------------------------------------

    def read_filter(self, ctx: Context, where: Filter, ownership: Ownership = "all") -> Filter:
        """`where`, narrowed to what the company reads; of a shared collection only what is `own`, or `shared`."""
        mine = ctx.company_id
        if not self.shared:
            return within(mine, where)
        return within({"all": {"$in": [None, mine]}, "own": mine, "shared": None}[ownership], where)

    def write_filter(self, ctx: Context, where: Filter) -> Filter:
        """`where`, narrowed to what the company may change."""
        return within(ctx.company_id, where)

    def projection(self, fields: Sequence[str] | None) -> dict[str, Any] | None:
        """Only `fields` (and `_id`); without them all but the private ones."""
        if fields is not None:
            return dict.fromkeys(fields, 1)
        return dict.fromkeys(self.private, 0) or None

    def _in(self, ctx: Context) -> Collection:
        return ctx.services.collection(self.name)

    async def find_one(self, ctx: Context, where: Filter, fields: Sequence[str] | None = None) -> D | None:
        """The document that `where` names, or None."""
        document = await self._in(ctx).find_one(
            self.read_filter(ctx, where), self.projection(fields), session=ctx.session
        )
        return cast("D | None", document)

    async def find(
        self,
        ctx: Context,
        where: Filter,
        *,
        sort: Sequence[str] = (),
        skip: int = 0,
        limit: int = 0,
        fields: Sequence[str] | None = None,
        hint: str | None = None,
        ownership: Ownership = "all",
    ) -> list[D]:
        """The documents that match `where`, in the order of `sort`; with `fields`, each has only those and `_id`."""
        cursor = self._in(ctx).find(
            self.read_filter(ctx, where, ownership),
            self.projection(fields),
            skip=skip,
            limit=limit,
            session=ctx.session,
        )
        if sort:
            cursor = cursor.sort(order_by(sort))
        if hint:
            cursor = cursor.hint(hint)
        return cast("list[D]", await cursor.to_list(None))

    async def stream(
        self, ctx: Context, where: Filter, sort: Sequence[str], *, hint: str | None, batch: int = 200
    ) -> AsyncIterator[D]:
        """The same as `find`, a document at a time in bounded memory."""
        cursor = (
            self._in(ctx)
            .find(self.read_filter(ctx, where), self.projection(None), batch_size=batch, session=ctx.session)
            .sort(order_by(sort))
        )
        async for document in cursor.hint(hint) if hint else cursor:
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
        """How many documents `where` names, counting no further than `limit`."""
        options: dict[str, Any] = {key: v for key, v in (("limit", limit), ("hint", hint)) if v is not None}
        return await self._in(ctx).count_documents(
            self.read_filter(ctx, where, ownership), session=ctx.session, **options
        )

    async def aggregate(
        self, ctx: Context, where: Filter, *stages: Document, hint: str | None = None, ownership: Ownership = "all"
    ) -> list[Any]:
        """The documents that a pipeline returns whose first stage is `where` within the company.

        The caller states their type: a pipeline may compute anything.
        """
        options = {"hint": hint} if hint else {}
        pipeline = [{"$match": self.read_filter(ctx, where, ownership)}, *stages]
        return await self._in(ctx).aggregate(pipeline, session=ctx.session, **options).to_list(None)

    def across_companies(self, services: Services) -> Collection:
        """The driver's own collection, not narrowed to a company: only for those with a declared reason."""
        if not self.cross_company_reason:
            raise RuntimeError(f"{self.name} is only read within a company")
        return services.collection(self.name)


registry: dict[str, ReadableCollection[Any]] = {}
