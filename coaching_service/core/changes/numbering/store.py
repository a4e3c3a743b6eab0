"""The lease of the sequencer, its position in the change stream, and the numbers of changes in the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, cast

import pymongo
from pymongo import UpdateOne
from pymongo.errors import OperationFailure

from coaching_service.core.changes.numbering.batches import batches, counters
from coaching_service.core.changes.numbering.models import NewChange, NumberBatch, Position, SequencerState, Start
from coaching_service.core.database import leases
from coaching_service.core.database.backlogs import count_backlog
from coaching_service.core.database.connection import UNAUTHORIZED, is_unavailable
from coaching_service.core.database.context import Collection, Context, Services
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.database.transactions import transactional
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import Backlog

BATCH = 500
_STATE_ID = "changes"
WAIT_MS = 1_000
_SEARCH_SECONDS = 600.0
READ_SECONDS = 5.0  # how long to wait for a server that does not respond
_CHANGES = "changes"
PENDING: Document = {"pending": True}
BY_TIME = "createdAt"
_MAX_PENDING = 20_000
_COMMIT_DELAY = timedelta(minutes=1)  # a transaction ends a minute after its first operation at the latest
_MAX_CLOCK_DIFFERENCE = timedelta(hours=1)  # between processes

_state = Documents[SequencerState](
    "sequencer",
    secret=True,
    cross_company_reason="one process numbers the changes of all companies",
    placement=Unsharded("one document"),
    transfer=NotExported("state of the service"),
    incidental=True,
    process_state=True,
)


class LeaseLost(Exception):
    """Another process numbers the changes now."""


class StreamEnded(Exception):
    """The collection that a stream follows has been dropped or renamed."""


async def acquire_lease(services: Services, holder: str) -> bool:
    """Take the lease if it is free; returns whether `holder` has it now."""
    return await leases.acquire_in(_state.across_companies(services), _STATE_ID, holder)


async def is_leased(services: Services) -> bool:
    """Return whether a process has the lease: the service runs, or was killed less than ten seconds ago."""
    held = {"_id": _STATE_ID, "$expr": {"$gt": ["$expiresAt", "$$NOW"]}}
    return await _state.across_companies(services).find_one(held, {"_id": 1}) is not None


async def release_lease(services: Services, holder: str) -> None:
    """Release the lease, so that another process can acquire it."""
    await leases.release_in(_state.across_companies(services), _STATE_ID, holder)


async def read_position(services: Services) -> Position | None:
    """Return the position in the stream up to which changes have numbers; None if it is not known."""
    state = await _state.across_companies(services).find_one({"_id": _STATE_ID})
    return cast("SequencerState", state).get("position") if state else None


async def can_resume(services: Services, position: Position) -> bool:
    """Return whether the database accepts a position: the oplog reaches back to it, and it is well-formed."""
    try:
        async with _changes(services).watch([], resume_after=position, max_await_time_ms=1) as stream:
            await stream.try_next()
    except OperationFailure as error:
        if is_unavailable(error) or error.code in UNAUTHORIZED:
            raise
        return False
    return True


async def forget_position(services: Services, holder: str) -> None:
    """Forget the position in a stream that has ended: nothing follows it."""
    where = {"_id": _STATE_ID, "holder": holder}
    change = {"$set": {"position": None}, "$unset": {"createdUntil": ""}}
    await _state.across_companies(services).update_one(where, change)


async def current_time(services: Services) -> Start:
    """Return the start of a stream of the changes that are committed from now on."""
    async with await services.db.client.start_session() as session:
        await services.db.command("ping", session=session)
        return {"start_at_operation_time": session.delegate.operation_time}


async def find_pending(services: Services) -> list[NewChange]:
    """Changes that have no number, some batches at most, in the order in which they were stored.

    This is the order of their record numbers. Of two transactions that write the same document, the later one stores
    its change after the earlier one has been committed, so this is also the order of the commits of one client's
    changes; the order of the identifiers or times is not.
    """
    fields = {"companyId": 1, "eventCount": 1, "createdAt": 1, "record": {"$meta": "recordId"}}
    stages: list[Document] = [
        {"$match": await _pending_since(services, _MAX_CLOCK_DIFFERENCE)},
        {"$project": fields},
        {"$sort": {"record": 1}},
        {"$limit": _MAX_PENDING},
    ]
    with pymongo.timeout(_SEARCH_SECONDS):
        pending: list[Any] = await _changes(services).aggregate(stages, hint=BY_TIME).to_list(None)
    return [change for change in pending if "companyId" in change]


async def finish_search(services: Services, holder: str, began: Start) -> None:
    """Store that all changes before the moment at which a search for those without a number began have one."""
    time = began["start_at_operation_time"].as_datetime().replace(tzinfo=None)
    where = {"_id": _STATE_ID, "holder": holder}
    await _state.across_companies(services).update_one(where, {"$max": {"createdUntil": time}})


async def count_pending(services: Services, limit: int) -> Backlog:
    """Count the changes that have no number, at most `limit`, and find the age of the oldest."""
    where = await _pending_since(services, _COMMIT_DELAY)
    return await count_backlog(_changes(services), where, "createdAt", limit, hint=BY_TIME)


async def _pending_since(services: Services, margin: timedelta) -> Document:
    """Return the filter of changes without a number.

    They were made `margin` before the latest one with a number, or later.
    """
    state = await _state.across_companies(services).find_one({"_id": _STATE_ID}, {"createdUntil": 1})
    until = (state or {}).get("createdUntil")
    return PENDING if until is None else {**PENDING, "createdAt": {"$gte": until - margin}}


def follow(
    services: Services,
    start: Start,
    deliver: Callable[[NewChange | None, Position | None], None],
    is_ended: Callable[[], bool],
) -> None:
    """Call `deliver` with each new change, or None after a second without one, and the position in the stream after it.

    Blocks until `is_ended`, which is called at least once a second. Raises errors of the driver if the server does not
    respond, and StreamEnded.
    """
    fields = [f"fullDocument.{name}" for name in NewChange.__annotations__]
    pipeline = [{"$match": {"operationType": "insert"}}, {"$project": dict.fromkeys(["operationType", *fields], 1)}]
    collection = _changes(services).delegate
    with collection.watch(pipeline, batch_size=BATCH, max_await_time_ms=WAIT_MS, **dict(start)) as stream:
        while not is_ended():
            with pymongo.timeout(READ_SECONDS):
                event = stream.try_next()
            if event is not None:
                change = event["fullDocument"]
                deliver(change if "companyId" in change else None, event["_id"])
            elif stream.alive:
                deliver(None, stream.resume_token)
            else:
                raise StreamEnded


async def number(services: Services, holder: str, batch: Sequence[NewChange], position: Position | None) -> None:
    """Number the changes of a batch that have no number, store the position and renew the lease, in one transaction.

    Raises LeaseLost if `holder` no longer has the lease.
    """
    with pymongo.timeout(leases.LEASE.total_seconds()):
        await _number(Context(services), holder, batch, position)


@on_worker_thread
@transactional
async def _number(tx: Context, holder: str, batch: Sequence[NewChange], position: Position | None) -> None:
    change = leases.held_by(holder) | ({"position": {"$literal": position}} if position is not None else {})
    # A damaged change, without a time, must not stop the numbering of all companies.
    if times := [each["createdAt"] for each in batch if "createdAt" in each]:
        latest = {"$min": ["$$NOW", max(times)]}  # a process whose clock is fast does not hide what others store
        change["createdUntil"] = {"$max": ["$createdUntil", latest]}
    where = {"_id": _STATE_ID, "holder": holder}
    renewed = await tx.collection(_state.name).update_one(where, [{"$set": change}], session=tx.session)
    if not renewed.matched_count:
        raise LeaseLost
    if batch:
        await _assign_numbers(tx, batch)


async def _assign_numbers(tx: Context, batch: Sequence[NewChange]) -> None:
    changes, counts = tx.collection(_CHANGES), tx.collection(counters.name)
    where = {"companyId": {"$in": _companies(batch)}, "_id": {"$in": [change["_id"] for change in batch]}}
    cursor = changes.find(where | PENDING, {"_id": 1}, session=tx.session, hint="_id_")
    pending = {change["_id"] async for change in cursor}
    unnumbered = [change for change in batch if change["_id"] in pending]
    if not unnumbered:
        return
    last: defaultdict[ObjectId, int] = defaultdict(int)
    companies = _companies(unnumbered)
    async for counter in counts.find({"companyId": {"$in": companies}}, session=tx.session):
        last[counter["_id"]] = counter["lastSeq"]
    numbered = {company: new_batch(company, last[company] + 1) for company in companies}
    writes = []
    for change in unnumbered:
        company = change["companyId"]
        first = last[company] + 1
        last[company] += max(1, change.get("eventCount", 0))
        numbers = {"$set": {"seq": first, "lastSeq": last[company]}, "$unset": {"pending": ""}}
        writes.append(UpdateOne({"companyId": company, "_id": change["_id"]}, numbers, hint="_id_"))
        numbered[company]["last"] = last[company]
        numbered[company]["changes"].append({"_id": change["_id"], "lastSeq": last[company]})
    await changes.bulk_write(writes, session=tx.session)
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


def _companies(batch: Sequence[NewChange]) -> list[ObjectId]:
    return list(dict.fromkeys(change["companyId"] for change in batch))


def _changes(services: Services) -> Collection:
    return services.collection(_CHANGES)
