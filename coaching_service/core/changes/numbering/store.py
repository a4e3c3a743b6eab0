"""The lease of the sequencer, its position in the change stream, and the numbers of changes in the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, cast

import pymongo
from motor.motor_asyncio import AsyncIOMotorChangeStream
from pymongo import UpdateOne
from pymongo.errors import DuplicateKeyError, OperationFailure

from coaching_service.core.changes.numbering.models import (
    ChangeCounter,
    NewChange,
    NumberedChange,
    Position,
    SequencerState,
    Start,
)
from coaching_service.core.database.connection import UNAUTHORIZED, Index, is_unavailable
from coaching_service.core.database.context import Collection, Context, Services
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.database.snapshots import reading_snapshot
from coaching_service.core.database.transactions import transactional
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.ids import ObjectId

LEASE = timedelta(seconds=10)
BATCH = 500
_STATE_ID = "changes"
_WAIT_MS = 1_000
_READ_SECONDS = 5.0  # how long to wait for a server that does not respond
_CHANGES = "changes"
_NUMBERED: Document = {"lastSeq": {"$gt": 0}}
_PENDING_INDEX = [("pending", pymongo.ASCENDING)]

_state = Documents[SequencerState](
    "sequencer",
    secret=True,
    cross_company_reason="one process numbers the changes of all companies",
    placement=Unsharded("one document"),
    transfer=NotExported("state of the service"),
    process_state=True,
)
_counters = Documents[ChangeCounter](
    "changeCounters",
    (Index(()),),
    secret=True,
    cross_company_reason="the sequencer counts the changes of all companies",
    transfer=NotExported("numbers of the change log"),
)


class LeaseLost(Exception):
    """Another process numbers the changes now."""


class StreamEnded(Exception):
    """The collection that a stream follows has been dropped or renamed."""


async def acquire_lease(services: Services, holder: str) -> bool:
    """Take the lease if it is free; returns whether `holder` has it now."""
    state = _state.across_companies(services)
    free = {"holder": {"$ifNull": ["$holder", ""]}, "expiresAt": {"$ifNull": ["$expiresAt", "$$NOW"]}}
    position = {"position": {"$ifNull": ["$position", None]}}
    with suppress(DuplicateKeyError):  # another process has just stored it
        await state.update_one({"_id": _STATE_ID}, [{"$set": {**free, **position}}], upsert=True)
    is_free = {"$or": [{"$eq": ["$holder", holder]}, {"$lte": ["$expiresAt", "$$NOW"]}]}
    result = await state.update_one({"_id": _STATE_ID, "$expr": is_free}, [{"$set": _lease(holder)}])
    return bool(result.matched_count)


async def is_leased(services: Services) -> bool:
    """Whether a process has the lease: the service runs."""
    held = {"_id": _STATE_ID, "$expr": {"$gt": ["$expiresAt", "$$NOW"]}}
    return await _state.across_companies(services).find_one(held, {"_id": 1}) is not None


async def release_lease(services: Services, holder: str) -> None:
    """Release the lease, so that another process can acquire it."""
    where = {"_id": _STATE_ID, "holder": holder}
    await _state.across_companies(services).update_one(where, [{"$set": {"expiresAt": "$$NOW"}}])


async def read_position(services: Services) -> Position | None:
    """The position in the stream up to which changes have numbers; None if it is not known."""
    state = await _state.across_companies(services).find_one({"_id": _STATE_ID})
    return cast("SequencerState", state)["position"] if state else None


async def can_resume(services: Services, position: Position) -> bool:
    """Whether the database accepts a position: the oplog reaches back to it, and it is well-formed."""
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
    await _state.across_companies(services).update_one(where, {"$set": {"position": None}})


async def current_time(services: Services) -> Start:
    """The start of a stream of the changes that are committed from now on."""
    async with await services.db.client.start_session() as session:
        await services.db.command("ping", session=session)
        return {"start_at_operation_time": session.delegate.operation_time}


async def find_pending(services: Services) -> list[NewChange]:
    """Changes that have no number, at most a batch, in the order in which they were stored.

    The index returns entries of equal keys in the order of their record numbers. Of two transactions that write the
    same document, the later one stores its change after the earlier one has been committed, so this is also the order
    of the commits of one client's changes; the order of the identifiers is not.
    """
    fields = {"companyId": 1, "eventCount": 1}
    cursor = _changes(services).find({"pending": True}, fields, limit=BATCH, hint=_PENDING_INDEX)
    pending: list[Any] = await cursor.to_list(None)
    return pending


async def count_pending(services: Services, limit: int) -> int:
    """How many changes have no number, at most `limit`."""
    count: int = await _changes(services).count_documents({"pending": True}, limit=limit, hint=_PENDING_INDEX)
    return count


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
    fields = {"operationType": 1, "fullDocument._id": 1, "fullDocument.companyId": 1, "fullDocument.eventCount": 1}
    pipeline = [{"$match": {"operationType": "insert"}}, {"$project": fields}]
    collection = _changes(services).delegate
    with collection.watch(pipeline, batch_size=BATCH, max_await_time_ms=_WAIT_MS, **dict(start)) as stream:
        while not is_ended():
            with pymongo.timeout(_READ_SECONDS):
                event = stream.try_next()
            if event is not None:
                deliver(event["fullDocument"], event["_id"])
            elif stream.alive:
                deliver(None, stream.resume_token)
            else:
                raise StreamEnded


async def number(services: Services, holder: str, batch: Sequence[NewChange], position: Position | None) -> None:
    """Number those of a batch that have no number, store the position and renew the lease, in one transaction.

    Raises LeaseLost if `holder` no longer has the lease.
    """
    with pymongo.timeout(LEASE.total_seconds()):
        await _number(Context(services), holder, batch, position)


@on_worker_thread
@transactional
async def _number(tx: Context, holder: str, batch: Sequence[NewChange], position: Position | None) -> None:
    change = _lease(holder) | ({"position": {"$literal": position}} if position is not None else {})
    where = {"_id": _STATE_ID, "holder": holder}
    renewed = await tx.collection(_state.name).update_one(where, [{"$set": change}], session=tx.session)
    if not renewed.matched_count:
        raise LeaseLost
    if batch:
        await _assign_numbers(tx, batch)


async def _assign_numbers(tx: Context, batch: Sequence[NewChange]) -> None:
    changes, counters = tx.collection(_CHANGES), tx.collection(_counters.name)
    where = {"companyId": {"$in": _companies(batch)}, "_id": {"$in": [change["_id"] for change in batch]}}
    pending = {
        change["_id"] async for change in changes.find({**where, "pending": True}, {"_id": 1}, session=tx.session)
    }
    unnumbered = [change for change in batch if change["_id"] in pending]
    if not unnumbered:
        return
    last: defaultdict[ObjectId, int] = defaultdict(int)
    companies = _companies(unnumbered)
    async for counter in counters.find({"companyId": {"$in": companies}}, session=tx.session):
        last[counter["_id"]] = counter["lastSeq"]
    writes = []
    for change in unnumbered:
        company = change["companyId"]
        first = last[company] + 1
        last[company] += max(1, change["eventCount"])
        numbers = {"$set": {"seq": first, "lastSeq": last[company]}, "$unset": {"pending": ""}}
        writes.append(UpdateOne({"companyId": company, "_id": change["_id"]}, numbers, hint="_id_"))
    await changes.bulk_write(writes, session=tx.session)
    counts = [
        UpdateOne({"_id": company, "companyId": company}, {"$set": {"lastSeq": last[company]}}, upsert=True)
        for company in companies
    ]
    await counters.bulk_write(counts, ordered=False, session=tx.session)


# --- checks ----------------------------------------------------------------------------------------------------------


async def iterate_numbered(services: Services) -> AsyncIterator[NumberedChange]:
    """Iterate over the numbered changes by company, in the order of their numbers."""
    order = [("companyId", pymongo.ASCENDING), ("lastSeq", pymongo.ASCENDING)]
    cursor = _changes(services).find(_NUMBERED, {"companyId": 1, "seq": 1, "lastSeq": 1}, hint="companyId_lastSeq")
    async for change in cursor.sort(order):
        yield change


async def iterate_companies(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the companies that have numbered changes."""
    stages: list[Document] = [{"$match": _NUMBERED}, {"$group": {"_id": "$companyId"}}]
    async for company in _changes(services).aggregate(stages, hint="companyId_lastSeq", allowDiskUse=True):
        yield company["_id"]


async def has_deleted_clients(services: Services, company_id: ObjectId) -> bool:
    """Whether a client of the company was deleted: their changes were erased then."""
    deleted = {"documents": {"$elemMatch": {"collection": "customers", "action": "deleted"}}}
    return await _changes(services).find_one({"companyId": company_id, **deleted}, {"_id": 1}) is not None


async def read_head(services: Services, company_id: ObjectId) -> tuple[int, int]:
    """Return the last number of a company by its counter, and by its changes, at one moment; 0 if there is none."""
    async with reading_snapshot(services) as session:
        counter = await _counters.across_companies(services).find_one({"companyId": company_id}, session=session)
        last = await _changes(services).find_one(
            {"companyId": company_id, **_NUMBERED}, {"lastSeq": 1}, sort=[("lastSeq", -1)], session=session
        )
    return counter["lastSeq"] if counter else 0, last["lastSeq"] if last else 0


async def raise_counter(services: Services, company_id: ObjectId, last_number: int) -> None:
    """Let the next numbers of a company follow `last_number`."""
    where, change = {"_id": company_id, "companyId": company_id}, {"$max": {"lastSeq": last_number}}
    await _counters.across_companies(services).update_one(where, change, upsert=True)


async def find_long_pending(services: Services, seconds: float, limit: int) -> list[ObjectId]:
    """Return changes that have had no number for longer than `seconds`, by the clock of the database."""
    age = {"$subtract": ["$$NOW", "$createdAt"]}
    where = {"pending": True, "$expr": {"$gt": [age, round(seconds * 1000)]}}
    cursor = _changes(services).find(where, {"_id": 1}, limit=limit, hint=_PENDING_INDEX)
    return [change["_id"] async for change in cursor]


# --- following -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def open_counter_stream(services: Services) -> AsyncIterator[AsyncIOMotorChangeStream[Any]]:
    """The stream of the companies whose changes have been numbered."""
    pipeline = [{"$project": {"documentKey": 1}}]
    async with _counters.across_companies(services).watch(pipeline, max_await_time_ms=_WAIT_MS) as stream:
        yield stream


async def read_next_company(stream: AsyncIOMotorChangeStream[Any]) -> ObjectId | None:
    """The next company whose changes have been numbered, or None after waiting for a second. Raises StreamEnded."""
    event = await _read(stream)
    company: ObjectId | None = event["documentKey"]["_id"] if event is not None else None
    return company


async def _read(stream: AsyncIOMotorChangeStream[Any]) -> Any:
    with pymongo.timeout(_READ_SECONDS):
        event = await stream.try_next()
    if event is None and not stream.alive:  # type: ignore[truthy-function]  # a property that Motor declares as a method
        raise StreamEnded
    return event


def _lease(holder: str) -> Document:
    expiry = {"$add": ["$$NOW", round(LEASE.total_seconds() * 1000)]}
    return {"holder": {"$literal": holder}, "expiresAt": expiry}


def _companies(batch: Sequence[NewChange]) -> list[ObjectId]:
    return list(dict.fromkeys(change["companyId"] for change in batch))


def _changes(services: Services) -> Collection:
    return services.collection(_CHANGES)
