"""Checks of the numbers of the change log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from functools import partial

from coaching_service.core.changes.numbering import batches as numbering_batches
from coaching_service.core.changes.numbering import store
from coaching_service.core.changes.store import BY_PENDING, PENDING
from coaching_service.core.database import checks
from coaching_service.core.database.context import Collection, Context, Services, reading_snapshot, transactional
from coaching_service.core.database.documents import Document, now
from coaching_service.core.ids import ObjectId

_PENDING_SECONDS = 60.0
_MAX_PENDING = 10_000
_COUNT = 500
_FIRST = ObjectId(bytes(12))
_NAMED_FOR = timedelta(days=30)
_NUMBERED: Document = {"lastSeq": {"$gt": 0}}
_BY_COMPANY_TIME = "companyId_createdAt__id"


async def find_wrong_numbers(services: Services, count_read: checks.CountRead) -> AsyncIterator[checks.Finding]:
    """Find numbers that no change or several changes of a company have."""
    gaps, repeated, erased = checks.Occurrences(), checks.Occurrences(), checks.Occurrences()
    previous_company: ObjectId | None = None
    last = read = 0
    async for change in _iterate_numbered(services):
        company_id = change["companyId"]
        if company_id != previous_company:
            previous_company, last = company_id, 0
        if change["seq"] <= last:
            repeated.add(change["_id"])
        elif change["seq"] > last + 1:
            has_deleted = await _has_deleted_clients(services, company_id)
            (erased if has_deleted else gaps).add(change["_id"], change["seq"] - last - 1)
        last, read = change["lastSeq"], read + 1
        if read % _COUNT == 0:
            count_read(_COUNT)
    count_read(read % _COUNT)
    lost = "Changes are missing before the example: restore the collection changes from a backup. Report it"
    yield gaps.finding("Numbers that no change has", lost)
    yield repeated.finding("Numbers that several changes have", "Report it: integrations miss events")
    nothing = "Nothing to do: clients of these companies were deleted, and their changes erased"
    yield erased.finding("Numbers of erased changes", nothing, is_notice=True)


async def rebuild_batches(services: Services) -> None:
    """Store the batches of companies again if some of them leave out changes."""
    for company_id in {change["companyId"] async for change in _iterate_unnamed(services)}:
        await _rebuild_batches_of(Context(services), company_id)


async def _iterate_unnamed(services: Services) -> AsyncIterator[numbering_batches.NumberedChange]:
    """Iterate over changes of the last 30 days that events leave out: no batch of numbers names them in their place.

    Changes and batches are read side by side: both are sorted by company and number.
    """
    since = now() - _NAMED_FOR
    async with (
        aclosing(_iterate_numbered(services)) as changes,
        aclosing(_iterate_batches(services)) as names,
    ):
        named: tuple[ObjectId, int, ObjectId] | None = (_FIRST, 0, _FIRST)
        async for change in changes:
            key = change["companyId"], change["lastSeq"], change["_id"]
            while named is not None and named[:2] < key[:2]:
                named = await anext(names, None)
            if named != key and change["createdAt"] >= since:
                yield change


async def find_wrong_counters(services: Services, count_read: checks.CountRead) -> AsyncIterator[checks.Finding]:
    """Find companies whose counter is behind the last number, which would be used again, or ahead of it."""
    behind, ahead = checks.Occurrences(), checks.Occurrences()
    async for company_id in _iterate_companies(services):
        counted, last = await _read_head(services, company_id)
        count_read(1)
        if counted < last:
            behind.add(company_id)
        elif counted > last and not await _has_deleted_clients(services, company_id):
            ahead.add(company_id)
    yield behind.finding("Counters behind the last number", "Run doctor --repair")
    lost = "The latest changes of these companies are missing: restore the collection changes from a backup. Report it"
    yield ahead.finding("Counters ahead of the last number", lost)


async def raise_counters(services: Services) -> None:
    """Raise the counters that are behind."""
    async for company_id in _iterate_companies(services):
        counted, last = await _read_head(services, company_id)
        if counted < last:
            where, change = {"_id": company_id, "companyId": company_id}, {"$max": {"lastSeq": last}}
            await numbering_batches.counters.across_companies(services).update_one(where, change, upsert=True)


# --- Reading and repairing --------------------------------------------------------------------------------------------


async def _iterate_numbered(services: Services) -> AsyncGenerator[numbering_batches.NumberedChange]:
    """Iterate over the numbered changes by company, in the order of their numbers."""
    stages: list[Document] = [
        {"$match": _NUMBERED},
        {"$project": dict.fromkeys(("companyId", "seq", "lastSeq", "createdAt"), 1)},
        {"$sort": {"companyId": 1, "lastSeq": 1}},
    ]
    async for change in _changes(services).aggregate(stages, allowDiskUse=True):
        yield change


async def _iterate_batches(services: Services) -> AsyncGenerator[tuple[ObjectId, int, ObjectId]]:
    """Iterate over what batches name, in the order of `_iterate_numbered`: company, last number and change.

    What is not between the first and the last number of its batch is left out: readers may miss it.
    """
    number = "$changes.lastSeq"
    stages: list[Document] = [
        {"$sort": {"companyId": 1, "last": 1}},
        {"$unwind": "$changes"},
        {"$match": {"$expr": {"$and": [{"$gte": [number, "$first"]}, {"$lte": [number, "$last"]}]}}},
        {"$project": {"companyId": 1, "changes": 1}},
    ]
    cursor = numbering_batches.batches.across_companies(services).aggregate(
        stages, hint="companyId_last", allowDiskUse=True
    )
    async for batch in cursor:
        yield batch["companyId"], batch["changes"]["lastSeq"], batch["changes"]["_id"]


@transactional
async def _rebuild_batches_of(tx: Context, company_id: ObjectId) -> None:
    """Replace the batches of a company by new ones that name its changes of the last 31 days.

    Later batches, numbered meanwhile, stay as they are.
    """
    stored = tx.collection(numbering_batches.batches.name)
    counter = await tx.collection(numbering_batches.counters.name).find_one(
        {"companyId": company_id}, session=tx.session
    )
    last = counter["lastSeq"] if counter else 0
    stages: list[Document] = [
        {
            "$match": {
                "companyId": company_id,
                "createdAt": {"$gte": now() - numbering_batches.RETENTION},
                "lastSeq": {"$gt": 0, "$lte": last},
            }
        },
        {"$project": {"seq": 1, "lastSeq": 1, "createdAt": 1}},
        {"$sort": {"lastSeq": 1}},
    ]
    numbered: list[numbering_batches.NumberBatch] = []
    async for change in tx.collection("changes").aggregate(stages, session=tx.session, hint=_BY_COMPANY_TIME):
        if not numbered or len(numbered[-1]["changes"]) == store.BATCH:
            numbered.append(store.new_batch(company_id, change["seq"]))
        each: numbering_batches.NumberedId = {"_id": change["_id"], "lastSeq": change["lastSeq"]}
        numbered[-1]["changes"].append(each)
        numbered[-1] |= {"last": change["lastSeq"], "numberedAt": change["createdAt"]}
    await stored.delete_many({"companyId": company_id, "first": {"$lte": last}}, session=tx.session)
    if numbered:
        await stored.insert_many([{**each} for each in numbered], session=tx.session)


async def _iterate_companies(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the companies that have changes."""
    stages: list[Document] = [{"$group": {"_id": "$companyId"}}]
    async for company in _changes(services).aggregate(stages, hint=_BY_COMPANY_TIME, allowDiskUse=True):
        yield company["_id"]


async def _has_deleted_clients(services: Services, company_id: ObjectId) -> bool:
    """Return whether a client of the company was deleted: their changes were erased then."""
    deleted = {"documents": {"$elemMatch": {"collection": "customers", "action": "deleted"}}}
    return await _changes(services).find_one({"companyId": company_id, **deleted}, {"_id": 1}) is not None


async def _read_head(services: Services, company_id: ObjectId) -> tuple[int, int]:
    """Return the last number of a company by its counter, and by its changes, at one moment; 0 if there is none."""
    async with reading_snapshot(services) as session:
        counter = await numbering_batches.counters.across_companies(services).find_one(
            {"companyId": company_id}, session=session
        )
        last = await _changes(services).find_one(
            {"companyId": company_id, **_NUMBERED},
            {"lastSeq": 1},
            sort=[("lastSeq", -1)],
            hint=_BY_COMPANY_TIME,
            session=session,
        )
    return counter["lastSeq"] if counter else 0, last["lastSeq"] if last else 0


async def find_long_pending(services: Services, seconds: float, limit: int) -> list[ObjectId]:
    """Return changes that have had no number for longer than `seconds`, by the clock of the database."""
    age = {"$subtract": ["$$NOW", "$createdAt"]}
    where = {**PENDING, "$expr": {"$gt": [age, round(seconds * 1000)]}}
    cursor = _changes(services).find(where, {"_id": 1}, limit=limit, hint=BY_PENDING)
    return [change["_id"] async for change in cursor]


def _changes(services: Services) -> Collection:
    return services.collection("changes")


CHECKS = (
    checks.Check("change-numbers", "The numbers of changes have no gaps", find_wrong_numbers),
    checks.Check("change-counters", "The counters of changes are right", find_wrong_counters, raise_counters),
    checks.check_of(
        "change-order",
        "Events have all numbered changes",
        lambda services: (change["_id"] async for change in _iterate_unnamed(services)),
        "Changes that events leave out",
        "Run doctor --repair",
        rebuild_batches,
        counts=True,
    ),
    checks.check_of(
        "change-log",
        "Changes are numbered",
        partial(find_long_pending, seconds=_PENDING_SECONDS, limit=_MAX_PENDING),
        "Changes without a number for over a minute",
        "Start the service, which numbers them. If it runs, its log says why not (docs/operations.md, The change log)",
    ),
)
