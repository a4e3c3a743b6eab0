"""What the checks of the numbers read, and their repairs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from coaching_service.core.changes.numbering import store
from coaching_service.core.changes.numbering.batches import RETENTION, batches, counters
from coaching_service.core.changes.numbering.models import NumberBatch, NumberedChange, NumberedId
from coaching_service.core.database.context import Collection, Context, Services
from coaching_service.core.database.documents import Document, now
from coaching_service.core.database.transactions import reading_snapshot, transactional
from coaching_service.core.ids import ObjectId

_NUMBERED: Document = {"lastSeq": {"$gt": 0}}
_BY_COMPANY_TIME = "companyId_createdAt__id"


async def iterate_numbered(services: Services) -> AsyncGenerator[NumberedChange]:
    """Iterate over the numbered changes by company, in the order of their numbers."""
    stages: list[Document] = [
        {"$match": _NUMBERED},
        {"$project": dict.fromkeys(("companyId", "seq", "lastSeq", "createdAt"), 1)},
        {"$sort": {"companyId": 1, "lastSeq": 1}},
    ]
    async for change in _changes(services).aggregate(stages, allowDiskUse=True):
        yield change


async def iterate_batches(services: Services) -> AsyncGenerator[tuple[ObjectId, int, ObjectId]]:
    """Iterate over what batches name, in the order of `iterate_numbered`: company, last number and change.

    What is not between the first and the last number of its batch is left out: readers may miss it.
    """
    number = "$changes.lastSeq"
    stages: list[Document] = [
        {"$sort": {"companyId": 1, "last": 1}},
        {"$unwind": "$changes"},
        {"$match": {"$expr": {"$and": [{"$gte": [number, "$first"]}, {"$lte": [number, "$last"]}]}}},
        {"$project": {"companyId": 1, "changes": 1}},
    ]
    cursor = batches.across_companies(services).aggregate(stages, hint="companyId_last", allowDiskUse=True)
    async for batch in cursor:
        yield batch["companyId"], batch["changes"]["lastSeq"], batch["changes"]["_id"]


@transactional
async def rebuild_batches(tx: Context, company_id: ObjectId) -> None:
    """Replace the batches of a company by new ones that name its changes of the last 31 days.

    Later batches, numbered meanwhile, stay as they are.
    """
    stored = tx.collection(batches.name)
    counter = await tx.collection(counters.name).find_one({"companyId": company_id}, session=tx.session)
    last = counter["lastSeq"] if counter else 0
    stages: list[Document] = [
        {
            "$match": {
                "companyId": company_id,
                "createdAt": {"$gte": now() - RETENTION},
                "lastSeq": {"$gt": 0, "$lte": last},
            }
        },
        {"$project": {"seq": 1, "lastSeq": 1, "createdAt": 1}},
        {"$sort": {"lastSeq": 1}},
    ]
    numbered: list[NumberBatch] = []
    async for change in tx.collection("changes").aggregate(stages, session=tx.session, hint=_BY_COMPANY_TIME):
        if not numbered or len(numbered[-1]["changes"]) == store.BATCH:
            numbered.append(store.new_batch(company_id, change["seq"]))
        each: NumberedId = {"_id": change["_id"], "lastSeq": change["lastSeq"]}
        numbered[-1]["changes"].append(each)
        numbered[-1] |= {"last": change["lastSeq"], "numberedAt": change["createdAt"]}
    await stored.delete_many({"companyId": company_id, "first": {"$lte": last}}, session=tx.session)
    if numbered:
        await stored.insert_many([{**each} for each in numbered], session=tx.session)


async def iterate_companies(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the companies that have changes."""
    stages: list[Document] = [{"$group": {"_id": "$companyId"}}]
    async for company in _changes(services).aggregate(stages, hint=_BY_COMPANY_TIME, allowDiskUse=True):
        yield company["_id"]


async def has_deleted_clients(services: Services, company_id: ObjectId) -> bool:
    """Return whether a client of the company was deleted: their changes were erased then."""
    deleted = {"documents": {"$elemMatch": {"collection": "customers", "action": "deleted"}}}
    return await _changes(services).find_one({"companyId": company_id, **deleted}, {"_id": 1}) is not None


async def read_head(services: Services, company_id: ObjectId) -> tuple[int, int]:
    """Return the last number of a company by its counter, and by its changes, at one moment; 0 if there is none."""
    async with reading_snapshot(services) as session:
        counter = await counters.across_companies(services).find_one({"companyId": company_id}, session=session)
        last = await _changes(services).find_one(
            {"companyId": company_id, **_NUMBERED},
            {"lastSeq": 1},
            sort=[("lastSeq", -1)],
            hint=_BY_COMPANY_TIME,
            session=session,
        )
    return counter["lastSeq"] if counter else 0, last["lastSeq"] if last else 0


async def raise_counter(services: Services, company_id: ObjectId, last_number: int) -> None:
    """Let the next numbers of a company follow `last_number`."""
    where, change = {"_id": company_id, "companyId": company_id}, {"$max": {"lastSeq": last_number}}
    await counters.across_companies(services).update_one(where, change, upsert=True)


async def find_long_pending(services: Services, seconds: float, limit: int) -> list[ObjectId]:
    """Return changes that have had no number for longer than `seconds`, by the clock of the database."""
    age = {"$subtract": ["$$NOW", "$createdAt"]}
    where = {**store.PENDING, "$expr": {"$gt": [age, round(seconds * 1000)]}}
    cursor = _changes(services).find(where, {"_id": 1}, limit=limit, hint=store.BY_TIME)
    return [change["_id"] async for change in cursor]


def _changes(services: Services) -> Collection:
    return services.collection("changes")
