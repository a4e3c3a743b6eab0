"""Numbering the changes that have no number, and what is new to number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pymongo
from pymongo import UpdateOne

from coaching_service.core.changes.numbering.batches import NewChange, NumberBatch, batches, counters
from coaching_service.core.changes.store import BY_PENDING, PENDING, changes
from coaching_service.core.database import across_companies
from coaching_service.core.database.across_companies import count_backlog
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.documents import Document, now
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import Backlog

LEASE = "changes"
BATCH = 500
WAIT_MS = 1_000
READ_SECONDS = 5.0  # how long to wait for a server that does not respond
_FIELDS: Document = dict.fromkeys(NewChange.__annotations__, 1)
# A damaged change, without a company, must not stop the numbering of all companies.
_NEXT: Document = {**PENDING, "companyId": {"$type": "objectId"}}


class StreamEnded(Exception):
    """The collection that a stream follows has been dropped or renamed."""


async def count_pending(services: Services, limit: int) -> Backlog:
    """Count the changes that have no number, at most `limit`, and find the age of the oldest."""
    return await count_backlog(
        changes.across_companies(services), PENDING, "createdAt", limit, hint=BY_PENDING, order="pending"
    )


def watch_new_changes(services: Services, notify: Callable[[], None], is_ended: Callable[[], bool]) -> None:
    """Call `notify` when a stream of new changes has been opened, and for each that it returns.

    It says that there is something to number, not what: nothing is lost with it; it is opened again after any error.
    Blocks until `is_ended`, which is called at least once a second. Raises errors of the driver, and StreamEnded.
    """
    pipeline = [{"$match": {"operationType": "insert"}}, {"$project": {"_id": 1}}]
    collection = changes.across_companies(services).delegate
    with collection.watch(pipeline, batch_size=BATCH, max_await_time_ms=WAIT_MS) as stream:
        notify()
        while not is_ended():
            with pymongo.timeout(READ_SECONDS):
                event = stream.try_next()
            if event is not None:
                notify()
            elif not stream.alive:
                raise StreamEnded


async def number(services: Services, holder: str) -> int:
    """Number the next changes that have no number, at most a batch, and renew the lease, in one transaction.

    Returns how many. They are in the order in which the database stored them: what depended on a change was stored
    after it. The transaction reads all that was committed at one moment, so no change is missing before another that
    depended on it. Raises LeaseLost if `holder` no longer has the lease.
    """
    with pymongo.timeout(across_companies.LEASE.total_seconds()):
        return await _number(Context(services), holder)


@on_worker_thread
@transactional
async def _number(tx: Context, holder: str) -> int:
    await across_companies.renew(tx, LEASE, holder)
    cursor = tx.collection(changes.name).find(
        _NEXT, _FIELDS, sort=[("pending", 1)], limit=BATCH, hint=BY_PENDING, session=tx.session
    )
    pending: list[Any] = await cursor.to_list(None)  # NewChange
    if pending:
        await _assign_numbers(tx, pending)
    return len(pending)


async def _assign_numbers(tx: Context, batch: Sequence[NewChange]) -> None:
    counts = tx.collection(counters.name)
    last: defaultdict[ObjectId, int] = defaultdict(int)
    companies = list(dict.fromkeys(change["companyId"] for change in batch))
    async for counter in counts.find({"companyId": {"$in": companies}}, session=tx.session):
        last[counter["_id"]] = counter["lastSeq"]
    numbered = {company: new_batch(company, last[company] + 1) for company in companies}
    writes = []
    for change in batch:
        company = change["companyId"]
        first = last[company] + 1
        last[company] += max(1, change.get("eventCount", 0))
        numbers = {"$set": {"seq": first, "lastSeq": last[company]}, "$unset": {"pending": ""}}
        writes.append(UpdateOne({"companyId": company, "_id": change["_id"]}, numbers, hint="_id_"))
        numbered[company]["last"] = last[company]
        numbered[company]["changes"].append({"_id": change["_id"], "lastSeq": last[company]})
    await tx.collection(changes.name).bulk_write(writes, session=tx.session)
    await tx.collection(batches.name).insert_many([{**each} for each in numbered.values()], session=tx.session)
    counted = [
        UpdateOne({"_id": company, "companyId": company}, {"$set": {"lastSeq": last[company]}}, upsert=True)
        for company in companies
    ]
    await counts.bulk_write(counted, ordered=False, session=tx.session)


def new_batch(company_id: ObjectId, first: int) -> NumberBatch:
    """Return a batch of numbers from `first` on, which has no changes yet."""
    return {
        "_id": ObjectId(),
        "companyId": company_id,
        "first": first,
        "last": first,
        "changes": [],
        "numberedAt": now(),
    }
