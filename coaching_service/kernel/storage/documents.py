"""Collections of coaching data: every query made here begins with the company."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pymongo import ASCENDING, DESCENDING, ReturnDocument, UpdateOne
from pymongo.errors import DuplicateKeyError, OperationFailure

from coaching_service.kernel.errors import Conflict
from coaching_service.kernel.storage.context import Collection, Context, Services
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.storage.mongo import Index, is_write_conflict

Document = dict[str, Any]
Where = dict[str, Any]

_REWRITES = 50


def now() -> datetime:
    """The present moment as it is stored: UTC, milliseconds, no zone attached."""
    moment = datetime.now(UTC).replace(tzinfo=None)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def order_by(fields: Sequence[str]) -> list[tuple[str, int]]:
    """Field names (a leading `-` sorts down) as the driver takes them."""
    return [(f.removeprefix("-"), DESCENDING if f.startswith("-") else ASCENDING) for f in fields]


@dataclass(frozen=True)
class Documents:
    """One collection of coaching data.

    `indexes` are prefixed with `companyId`. `private` fields never leave by the default projection.
    `client_field` names the field that holds the client a document belongs to: what erasing that client removes.
    `shared` collections also hold documents of nobody (`companyId: null`) that every company reads.
    `expire` names a date field and the seconds after which MongoDB removes a document by itself.
    `why_global` is the reason of the few collections that are also found without knowing the company.
    """

    name: str
    indexes: tuple[Index, ...] = ()
    private: tuple[str, ...] = ("companyId",)
    client_field: str | None = None
    shared: bool = False
    expire: tuple[str, int] | None = None
    global_indexes: tuple[Index, ...] = ()
    why_global: str = ""

    def __post_init__(self) -> None:
        prefixed = tuple(replace(index, fields=("companyId", *index.fields)) for index in self.indexes)
        if self.expire:
            prefixed += (Index((self.expire[0],), expire_after=self.expire[1]),)
        object.__setattr__(self, "indexes", prefixed + self.global_indexes)
        _declared[self.name] = self

    # --- reading -----------------------------------------------------------------------------------------------

    def reach(self, ctx: Context, where: Where) -> Where:
        """`where`, narrowed to what the company reads."""
        company = {"$in": [None, ctx.company_id]} if self.shared else ctx.company_id
        return {"companyId": company, **where}

    def own(self, ctx: Context, where: Where) -> Where:
        """`where`, narrowed to what the company may change."""
        return {"companyId": ctx.company_id, **where}

    def projection(self, fields: Sequence[str] | None) -> dict[str, Any] | None:
        """Only `fields` (and `_id`); without them all but the private ones."""
        if fields is not None:
            return dict.fromkeys(fields, 1)
        return dict.fromkeys(self.private, 0) or None

    async def find_one(self, ctx: Context, where: Where, fields: Sequence[str] | None = None) -> Document | None:
        """The document that `where` names, or None."""
        return await ctx.db[self.name].find_one(self.reach(ctx, where), self.projection(fields), session=ctx.session)

    async def find(
        self,
        ctx: Context,
        where: Where,
        *,
        sort: Sequence[str] = (),
        skip: int = 0,
        limit: int = 0,
        fields: Sequence[str] | None = None,
        hint: str | None = None,
    ) -> list[Document]:
        """The documents that `where` names, in the order of `sort`."""
        cursor = ctx.db[self.name].find(
            self.reach(ctx, where), self.projection(fields), skip=skip, limit=limit, session=ctx.session
        )
        if sort:
            cursor = cursor.sort(order_by(sort))
        if hint:
            cursor = cursor.hint(hint)
        return await cursor.to_list(None)

    async def stream(
        self, ctx: Context, where: Where, sort: Sequence[str], fields: Sequence[str] | None = None, batch: int = 200
    ) -> AsyncIterator[Document]:
        """The same as `find`, a document at a time in bounded memory."""
        cursor = ctx.db[self.name].find(
            self.reach(ctx, where), self.projection(fields), batch_size=batch, session=ctx.session
        )
        async for document in cursor.sort(order_by(sort)):
            yield document

    async def count(self, ctx: Context, where: Where, *, limit: int | None = None, hint: str | None = None) -> int:
        """How many documents `where` names, counting no further than `limit`."""
        options: dict[str, Any] = {key: v for key, v in (("limit", limit), ("hint", hint)) if v is not None}
        return await ctx.db[self.name].count_documents(self.reach(ctx, where), session=ctx.session, **options)

    async def aggregate(self, ctx: Context, where: Where, *stages: Document, hint: str | None = None) -> list[Document]:
        """The answer of a pipeline whose first stage is `where` within the company."""
        options = {"hint": hint} if hint else {}
        pipeline = [{"$match": self.reach(ctx, where)}, *stages]
        return await ctx.db[self.name].aggregate(pipeline, session=ctx.session, **options).to_list(None)

    def globally(self, services: Services) -> Collection:
        """The driver's own collection, not narrowed to a company: only for those with a declared reason."""
        if not self.why_global:
            raise RuntimeError(f"{self.name} is only read within a company")
        return services.db[self.name]

    # --- writing -----------------------------------------------------------------------------------------------

    def stamped(self, ctx: Context, document: Document) -> Document:
        """A new document with what every stored document has: `_id`, `companyId`, times, `version` 0."""
        at = now()
        return {
            "_id": ObjectId(),
            "companyId": ctx.company_id,
            **document,
            "createdAt": at,
            "updatedAt": at,
            "version": 0,
        }

    def public(self, document: Document) -> Document:
        """`document` without its private fields."""
        return {key: value for key, value in document.items() if key not in self.private}

    async def insert(self, ctx: Context, document: Document) -> Document:
        """Store a new document; gives it as a reader would see it."""
        stored = self.stamped(ctx, document)
        await ctx.db[self.name].insert_one(stored, session=ctx.session)
        return self.public(stored)

    async def claim(self, ctx: Context, document: Document) -> None:
        """Store a document under an `_id` of the caller's choice. Raises HeldByAnother when somebody has it, or is
        about to have it in a transaction that is still running."""
        try:
            await ctx.db[self.name].insert_one(self.stamped(ctx, document), session=ctx.session)
        except DuplicateKeyError:
            raise HeldByAnother from None
        except OperationFailure as error:
            if is_write_conflict(error):
                raise HeldByAnother from None
            raise

    async def insert_many(self, ctx: Context, documents: Sequence[Document]) -> list[ObjectId]:
        """Store new documents; gives their identifiers in the same order."""
        if not documents:
            return []
        stored = [self.stamped(ctx, document) for document in documents]
        await ctx.db[self.name].insert_many(stored, session=ctx.session)
        return [document["_id"] for document in stored]

    async def update(
        self, ctx: Context, where: Where, change: Document, *, version: int | None = None
    ) -> Document | None:
        """Apply the operators of `change` to one document and count up its version; gives the document changed.

        None when there is no such document. With `version`, Conflict when the document is no longer at it.
        """
        guard = self.own(ctx, where) | ({} if version is None else {"version": version})
        changed: Document | None = await ctx.db[self.name].find_one_and_update(
            guard,
            _touched(change),
            projection=self.projection(None),
            return_document=ReturnDocument.AFTER,
            session=ctx.session,
        )
        if changed is None and version is not None and await self.find_one(ctx, where, ("_id",)):
            raise moved_on()
        return changed

    async def rewrite(
        self, ctx: Context, where: Where, mutate: Callable[[Document], Document], *, version: int | None = None
    ) -> Document | None:
        """Read one document, `mutate` it to the fields to set, and write them only if nobody wrote in between.

        Tried again (a bounded number of times) when somebody did, unless the caller named the `version` it is
        based on: then Conflict. None when there is no such document.
        """
        for _ in range(_REWRITES):
            current = await ctx.db[self.name].find_one(self.own(ctx, where), session=ctx.session)
            if current is None:
                return None
            if version is not None and current["version"] != version:
                raise moved_on()
            seen = current["version"]
            fields = mutate(current)
            if not fields:
                return self.public(current)
            guard = where | {"version": seen}
            if changed := await self.update(ctx, guard, {"$set": fields}):
                return changed
        raise moved_on()

    async def set_derived(self, ctx: Context, where: Where, change: Document) -> int:
        """Change fields the service derives: neither `version` nor `updatedAt` moves. Gives how many were found."""
        result = await ctx.db[self.name].update_many(self.own(ctx, where), change, session=ctx.session)
        return result.matched_count

    async def put(self, ctx: Context, where: Where, fields: Document) -> Document:
        """Set `fields` of the document that `where` (equalities only) names, made if it is missing; gives it."""
        at = now()
        fresh = {"_id": ObjectId(), "createdAt": at}
        stored: Document = await ctx.db[self.name].find_one_and_update(
            self.own(ctx, where),
            {"$set": {**fields, "updatedAt": at}, "$setOnInsert": fresh, "$inc": {"version": 1}},
            upsert=True,
            projection=self.projection(None),
            return_document=ReturnDocument.AFTER,
            session=ctx.session,
        )
        return stored

    async def tally(self, ctx: Context, where: Where, counts: Document) -> None:
        """Add `counts` to the numbers of one document, which is made if it is missing."""
        await ctx.db[self.name].update_one(self.own(ctx, where), {"$inc": counts}, upsert=True, session=ctx.session)

    async def set_derived_each(self, ctx: Context, changes: Sequence[tuple[Where, Document]]) -> None:
        """`set_derived` for several documents in one round trip: (`where`, change) for each."""
        if changes:
            writes = [UpdateOne(self.own(ctx, where), change) for where, change in changes]
            await ctx.db[self.name].bulk_write(writes, ordered=False, session=ctx.session)

    async def update_many(self, ctx: Context, where: Where, change: Document) -> int:
        """Apply `change` to every document that `where` names, counting up each version; gives how many."""
        result = await ctx.db[self.name].update_many(self.own(ctx, where), _touched(change), session=ctx.session)
        return result.modified_count

    async def update_each(self, ctx: Context, where: Where, computed: Document) -> int:
        """Set fields of every document that `where` names to expressions of its own; counts up each version."""
        stages = [{"$set": {**computed, "updatedAt": now(), "version": {"$add": ["$version", 1]}}}]
        return (await ctx.db[self.name].update_many(self.own(ctx, where), stages, session=ctx.session)).modified_count

    async def delete(self, ctx: Context, where: Where) -> Document | None:
        """Remove one document; gives what it was, or None."""
        return await ctx.db[self.name].find_one_and_delete(self.own(ctx, where), session=ctx.session)

    async def delete_many(self, ctx: Context, where: Where) -> int:
        """Remove every document that `where` names; gives how many were removed."""
        return (await ctx.db[self.name].delete_many(self.own(ctx, where), session=ctx.session)).deleted_count

    async def erase_some(self, services: Services, company_id: ObjectId, where: Where, limit: int) -> int:
        """Remove at most `limit` of a company's documents, for a background job; gives how many were removed."""
        collection = services.db[self.name]
        found = collection.find({"companyId": company_id, **where}, {"_id": 1}, limit=limit)
        ids = [document["_id"] async for document in found]
        if not ids:
            return 0
        return (await collection.delete_many({"companyId": company_id, "_id": {"$in": ids}})).deleted_count


_declared: dict[str, Documents] = {}


def declared() -> dict[str, Documents]:
    """Every collection the imported features declare, by name."""
    return dict(_declared)


class HeldByAnother(Exception):
    """The identifier is taken, or being taken by a transaction that has not ended."""


def moved_on() -> Conflict:
    """The error of a change that was based on an older version."""
    return Conflict("The record has been changed since; read it again and retry")


def _touched(change: Document) -> Document:
    return change | {
        "$set": {**change.get("$set", {}), "updatedAt": now()},
        "$inc": {**change.get("$inc", {}), "version": 1},
    }
