"""What is done for all companies: writes, neither recorded nor in a transaction, of what no process caches; how much
waits; leases; storing what a process has collected in memory; and encrypted fields under a new master key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict

import structlog
from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError
from pymongo.write_concern import WriteConcern

from coaching_service.core.auth import SecretUnreadable, Vault
from coaching_service.core.background import running_in_background
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Collection, Context, Services
from coaching_service.core.database.declared import NotExported, Unsharded
from coaching_service.core.database.documents import D, Document, Documents, Filter, within_company
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import NO_BACKLOG, Backlog

_NOT_DURABLE = WriteConcern(w=1, j=False)
_DUPLICATE_KEY = 11_000
_COUNTED = ("count", "updatedAt")


async def write_each(
    stored: Collection,
    writes: Sequence[tuple[Filter, Document | list[Document]]],
    *,
    upsert: bool = False,
    hint: str | None = None,
    session: Any = None,
) -> None:
    """Change documents in one round trip, each (filter, update operators or pipeline) by itself."""
    if writes:
        changes = [UpdateOne(where, change, upsert=upsert, hint=hint) for where, change in writes]
        await stored.bulk_write(changes, ordered=False, session=session)


async def increment(collection: Documents[Any], services: Services, counts: Sequence[tuple[Filter, Document]]) -> None:
    """Add counts to number fields of documents: (filter, which names the company, counts); created if missing."""
    writes = [(where, {"$inc": each}) for where, each in counts]
    await write_each(_uncached(collection, services), writes, upsert=True)


async def insert_or_count(
    collection: Documents[Any], services: Services, documents: Iterable[Mapping[str, Any]]
) -> None:
    """Store new documents with their identifiers; to the `count` of those that are stored already, add theirs."""
    stored, writes = _uncached(collection, services), []
    for document in documents:
        first = {name: value for name, value in document.items() if name not in ("_id", "companyId", *_COUNTED)}
        counted = {"$inc": {"count": document["count"]}, "$max": {"updatedAt": document["updatedAt"]}}
        where = {"_id": document["_id"], "companyId": document["companyId"]}
        writes.append((where, {"$setOnInsert": first, **counted}))
    try:
        await write_each(stored, writes, upsert=True)
    except BulkWriteError as error:
        failed = error.details["writeErrors"]
        if {each["code"] for each in failed} != {_DUPLICATE_KEY}:
            raise
        # Another process has stored them at this moment.
        await write_each(stored, [writes[each["index"]] for each in failed], upsert=True)


async def insert_computed(
    collection: Documents[Any], ctx: Context, documents: Mapping[ObjectId, Document], *, keeps_stored: bool = False
) -> int:
    """Store documents by their identifiers, in the caller's transaction if there is one; returns how many are new.

    Each field is an aggregation expression, such as `$$NOW`. The documents have the company they name, if any. A stored
    one gets these fields, or with `keeps_stored` stays as it is.
    """
    stored = _uncached(collection, ctx.services)
    stored = stored if ctx.thread is None else ctx.thread.collection(stored)
    stage = "$replaceWith" if keeps_stored else "$set"
    writes = [
        UpdateOne(
            {"_id": key}, [{stage: {"$mergeObjects": [fields, "$$ROOT"]} if keeps_stored else fields}], upsert=True
        )
        for key, fields in documents.items()
    ]
    if not writes:
        return 0
    return (await stored.bulk_write(writes, ordered=False, session=ctx.session)).upserted_count


async def upsert_not_durable(
    collection: Documents[D], services: Services, identifier: ObjectId, stages: list[Document]
) -> Document:
    """Update one document with a pipeline, create it if it is missing, and return it.

    For counters that may be lost: it does not wait for a majority or a disk.
    """
    stored = _uncached(collection, services).with_options(write_concern=_NOT_DURABLE)
    return await stored.find_one_and_update(
        {"_id": identifier}, stages, upsert=True, return_document=ReturnDocument.AFTER
    )


async def erase_batch(
    collection: Documents[Any],
    services: Services,
    company_id: ObjectId,
    where: Filter,
    limit: int,
    *,
    hint: str,
) -> int:
    """Delete at most `limit` of a company's documents, for a background job; returns how many.

    `hint` is the name of the index to use: the query planner may otherwise scan all companies.
    """
    stored = services.collection(collection.name)
    cursor = stored.find(within_company(company_id, where), {"_id": 1}, limit=limit, hint=hint)
    ids = [document["_id"] async for document in cursor]
    if not ids:
        return 0
    return (await stored.delete_many({"companyId": company_id, "_id": {"$in": ids}})).deleted_count


def _uncached(collection: Documents[Any], services: Services) -> Collection:
    """Return the driver's collection.

    Raises RuntimeError if processes cache the documents: the caller would not wait.
    """
    if collection.is_cached:
        raise RuntimeError(f"{collection.name} is cached: change it in a transaction of Documents, which waits")
    return collection.across_companies(services)


async def count_backlog(
    collection: Collection, where: Document, since: str, limit: int, *, hint: str, order: str | None = None
) -> Backlog:
    """Count the documents that satisfy `where`, at most `limit`, in `order` [by the time `since`] from the first on.

    `hint` is an index by which they are found; it should have the field `since`, so that no document is read.
    """
    waited: Document = {"$divide": [{"$subtract": ["$$NOW", "$since"]}, 1000]}
    stages: list[Document] = [
        {"$match": where},
        {"$sort": {order or since: 1}},
        {"$limit": limit},
        {"$group": {"_id": None, "count": {"$sum": 1}, "since": {"$min": f"${since}"}}},
        {"$project": {"_id": 0, "count": 1, "oldestSeconds": {"$max": [0, waited]}}},
    ]
    cursor: Any = collection.aggregate(stages, hint=hint)
    counted: list[Backlog] = await cursor.to_list(1)
    return counted[0] if counted else NO_BACKLOG


# --- Leases: work that only one process at a time does, by the clock of the database ----------------------------------


LEASE = timedelta(seconds=10)
_EXPIRY: Document = {"expiresAt": {"$add": ["$$NOW", round(LEASE.total_seconds() * 1000)]}}


class LeaseLost(Exception):
    """Another process does the work now."""


class Lease(TypedDict):
    """Which process does the work `_id`, and until when."""

    _id: str
    holder: str
    expiresAt: datetime


_leases = Documents[Lease](
    "leases",
    secret=True,
    cross_company_reason="one process does the work of all companies",
    placement=Unsharded("a few documents"),
    transfer=NotExported("state of the service"),
    incidental=True,
    process_state=True,
)


async def acquire(services: Services, name: str, holder: str) -> bool:
    """Take or renew the lease for a work, for 10 seconds; returns whether `holder` has it now."""
    is_free = {"$or": [{"$eq": ["$holder", holder]}, {"$lte": ["$expiresAt", "$$NOW"]}]}  # or it is not stored
    fields = _EXPIRY | {"holder": {"$literal": holder}}
    taken = {name: {"$cond": [is_free, value, f"${name}"]} for name, value in fields.items()}
    with suppress(DuplicateKeyError):  # another process is storing it
        lease = await _leases.across_companies(services).find_one_and_update(
            {"_id": name}, [{"$set": taken}], upsert=True, return_document=ReturnDocument.AFTER
        )
        return bool(lease["holder"] == holder)
    return False


async def renew(tx: Context, name: str, holder: str) -> None:
    """Renew a lease in the caller's transaction. Raises LeaseLost if `holder` does not have it."""
    where, change = {"_id": name, "holder": holder}, [{"$set": _EXPIRY}]
    if not (await tx.collection(_leases.name).update_one(where, change, session=tx.session)).matched_count:
        raise LeaseLost


async def release(services: Services, name: str, holder: str) -> None:
    """Let another process take the lease."""
    where = {"_id": name, "holder": holder}
    await _leases.across_companies(services).update_one(where, [{"$set": {"expiresAt": "$$NOW"}}])


async def is_held(services: Services, name: str) -> bool:
    """Return whether a process has the lease: it works, or was killed less than ten seconds ago."""
    held = {"_id": name, "$expr": {"$gt": ["$expiresAt", "$$NOW"]}}
    return await _leases.across_companies(services).find_one(held, {"_id": 1}) is not None


# --- Storing what a process has collected in memory: again and again, and once more before it ends --------------------


_DEADLINE_SECONDS = 1.0
log = structlog.get_logger("coaching_service")
Store = Callable[[Services], Awaitable[None]]


@asynccontextmanager
async def storing(services: Services, store: Store, seconds: float, *, start: asyncio.Event) -> AsyncIterator[None]:
    """Call `store` every so many seconds while the context is open, not before `start`, and once more at its end."""

    async def store_repeatedly() -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await store_now(services, store)
            except Exception:
                log.exception("what was collected is not stored", what=store.__name__)

    async with running_in_background(store_repeatedly, start=start):
        yield
    await store_now(services, store)


async def store_now(services: Services, store: Store) -> None:
    """Call `store`, and log it if the database does not respond: a process that ends must not wait for it."""
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            await store(services)
    except TimeoutError:
        log.warning("what was collected is not stored", what=store.__name__, reason="The database does not respond")
    except Exception as error:
        if (known := as_service_error(error)) is None:
            raise
        log.warning("what was collected is not stored", what=store.__name__, reason=known.message)


# --- Encrypted fields of documents ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sealed:
    """The encrypted field `sealed` of documents of all companies, bound to its document by the word `kind`."""

    documents: Documents[Any]
    kind: str

    def seal(self, vault: Vault, identifier: ObjectId, plain: bytes) -> bytes:
        """Return the encrypted value for a document."""
        return vault.seal(plain, f"{self.kind}:{identifier}")

    def open(self, vault: Vault, document: Any) -> bytes:
        """Return the value of a document that has `_id` and `sealed`. Raises SecretUnreadable."""
        return vault.open(document["sealed"], f"{self.kind}:{document['_id']}")

    async def iterate(self, services: Services) -> AsyncIterator[Document]:
        """Iterate over the documents of all companies, each with `_id` and `sealed`."""
        async for document in self.documents.across_companies(services).find({}, {"sealed": 1}, batch_size=200):
            yield document

    async def iterate_unreadable(self, services: Services) -> AsyncIterator[ObjectId]:
        """Iterate over the documents that no master key opens."""
        async for document in self.iterate(services):
            try:
                self.open(services.vault, document)
            except SecretUnreadable:
                yield document["_id"]

    async def rotate_master_key(
        self, services: Services, derive: Callable[[bytes], Document] = lambda _: {}
    ) -> AsyncIterator[bool]:
        """Encrypt every value with the newest master key; yields for each whether it changed.

        `derive` returns other fields to set. It can be interrupted and run again: values are read with every master key
        meanwhile.
        """
        async for document in self.iterate(services):
            is_outdated = not services.vault.is_current(document["sealed"])
            if is_outdated:
                plain = self.open(services.vault, document)
                sealed = self.seal(services.vault, document["_id"], plain)
                change = {"$set": {"sealed": sealed, **derive(plain)}}
                await self.documents.across_companies(services).update_one(document, change)
            yield is_outdated
