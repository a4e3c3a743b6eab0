"""The numbers of changes: a background task that assigns them, how events are read by them, and their checks.

One process at a time, the holder of a lease, reads the changes without a number by their index. It numbers a batch of
them and renews the lease in one transaction, so that a process that is killed, or that has lost its lease without
noticing, leaves nothing missing and numbers nothing twice. What wakes it, a stream or a timer, has no position.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from collections.abc import Collection as AnyCollection
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypedDict, TypeVar

import structlog

from coaching_service.core.auth import new_token
from coaching_service.core.background import running_in_background
from coaching_service.core.changes.store import BY_PENDING, PENDING, changes
from coaching_service.core.database import across_companies, checks
from coaching_service.core.database.connection import allow_seconds, as_service_error
from coaching_service.core.database.context import Collection, Context, Services, reading_snapshot, transactional
from coaching_service.core.database.declared import Index, NotExported
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import CursorExpired
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import Backlog

LEASE = "changes"
BATCH = 500
_RETENTION = timedelta(days=31)  # a day longer than events are available for
_RENEW_SECONDS = 3.0
_INTERVAL_SECONDS = 0.05
_LONG_INTERVAL_SECONDS = 0.2
_FEW = 4
_WAIT_MS = 1_000
_READ_SECONDS = 5.0  # how long to wait for a server that does not respond
# After a change the stream is not read for a moment, so that the next round trip returns all changes of that time.
_PAUSE_SECONDS = 0.04
_READING_SECONDS = 0.005
_RETRY_SECONDS = 1.0
_RELEASE_SECONDS = 1.0

T = TypeVar("T")
log = structlog.get_logger("coaching_service.changes")


class ChangeCounter(TypedDict):
    """The last number used within a company, whose identifier is `_id`."""

    _id: ObjectId
    companyId: ObjectId
    lastSeq: int


class NumberedId(TypedDict):
    """A change and the number of its last event."""

    _id: ObjectId
    lastSeq: int


class NumberBatch(TypedDict):
    """The changes of a company that were numbered at one time, in order; erased ones stay in it."""

    _id: ObjectId
    companyId: ObjectId
    first: int
    last: int
    changes: list[NumberedId]
    numberedAt: datetime


_counters = Documents[ChangeCounter](
    "changeCounters",
    (Index(()),),
    secret=True,
    cross_company_reason="the sequencer counts the changes of all companies",
    transfer=NotExported("numbers of the change log"),
    incidental=True,
)
# Readers find changes by the batches of their numbers: the numbers in changes have no index.
# Not unique: a counter that is behind after damage must not stop the numbering of all companies.
_batches = Documents[NumberBatch](
    "changeNumbers",
    (Index(("last",)), Index(("numberedAt", "first"))),
    secret=True,
    expire=("numberedAt", int(_RETENTION.total_seconds())),
    cross_company_reason="the sequencer numbers the changes of all companies",
    transfer=NotExported("numbers of the change log"),
    incidental=True,
)


async def find_last_number(ctx: Context) -> int:
    """Return the last number of the company; 0 if nothing is numbered."""
    counter = await _counters.find_one(ctx, {"_id": ctx.company_id})
    return counter["lastSeq"] if counter else 0


async def find_last_numbers(services: Services, company_ids: AnyCollection[ObjectId]) -> dict[ObjectId, int]:
    """Return the last number of each of these companies that has one."""
    found = _counters.across_companies(services).find({"_id": {"$in": list(company_ids)}}, {"lastSeq": 1})
    return {counter["_id"]: counter["lastSeq"] async for counter in found}


async def find_position_at(ctx: Context, time: datetime) -> int:
    """Return the number before the first one that was assigned at `time` or later."""
    last = await find_last_number(ctx)  # read first: a number that is assigned meanwhile is after it
    order = ("numberedAt", "first")
    first = await _batches.find(ctx, {"numberedAt": {"$gte": time}}, sort=order, limit=1, fields=("first",))
    return first[0]["first"] - 1 if first else last


async def require_available(ctx: Context, number: int, since: datetime) -> None:
    """Raise CursorExpired if numbers after `number` were assigned before `since`, or `number` is not assigned yet.

    A cursor ahead of the log is from another database, or from before an older copy of this one was restored.
    """
    last = await find_last_number(ctx)
    if number > last or (number < last and number < await find_position_at(ctx, since)):
        raise CursorExpired


async def find_after(ctx: Context, number: int, limit: int, since: datetime) -> list[NumberedId]:
    """Return at most `limit` changes whose last number is greater than `number`, in order.

    Raises CursorExpired if numbers after `number` were assigned before `since`.
    """
    numbered = await _batches.aggregate(
        ctx,
        {"last": {"$gt": number}},
        {"$sort": {"last": 1}},
        {"$limit": limit},
        {"$unwind": "$changes"},
        {"$match": {"changes.lastSeq": {"$gt": number}}},
        {"$limit": limit},
        {"$project": {"_id": "$changes._id", "lastSeq": "$changes.lastSeq", "first": 1, "numberedAt": 1}},
        hint=_batches.index_name("last"),
    )
    if not (numbered and numbered[0]["first"] <= number + 1 and numbered[0]["numberedAt"] >= since):
        await require_available(ctx, number, since)
    return [{"_id": each["_id"], "lastSeq": each["lastSeq"]} for each in numbered]


# --- Assigning --------------------------------------------------------------------------------------------------------


def sequencing(services: Services, *, start: asyncio.Event | None = None) -> AbstractAsyncContextManager[None]:
    """Number changes in the background while the context is open; with `start`, not before that event."""
    return running_in_background(_Sequencer(services).run, start=start)


async def is_running(services: Services) -> bool:
    """Return whether a process of the service numbers changes, or was killed less than ten seconds ago."""
    return await across_companies.is_held(services, LEASE)


async def count_pending(services: Services, limit: int) -> Backlog:
    """Count the changes that have no number, at most `limit`, and find the age of the oldest."""
    return await across_companies.count_backlog(
        changes.across_companies(services), PENDING, "createdAt", limit, hint=BY_PENDING, order="pending"
    )


async def number(services: Services, holder: str) -> int:
    """Number the next changes that have no number, at most a batch, and renew the lease, in one transaction.

    Returns how many. They are in the order in which the database stored them: what depended on a change was stored
    after it. The transaction reads all that was committed at one moment, so no change is missing before another that
    depended on it. Raises LeaseLost if `holder` no longer has the lease.
    """
    with allow_seconds(across_companies.LEASE.total_seconds()):
        return await _number(Context(services), holder)


@on_worker_thread
@transactional
async def _number(tx: Context, holder: str) -> int:
    await across_companies.renew(tx, LEASE, holder)
    # A damaged change, without a company, must not stop the numbering of all companies.
    pending = tx.collection(changes.name).find(
        {**PENDING, "companyId": {"$type": "objectId"}},
        {"companyId": 1, "eventCount": 1},
        sort=[("pending", 1)],
        limit=BATCH,
        hint=BY_PENDING,
        session=tx.session,
    )
    batch: list[Document] = await pending.to_list(None)
    if not batch:
        return 0
    counts = tx.collection(_counters.name)
    last: defaultdict[ObjectId, int] = defaultdict(int)
    companies = list(dict.fromkeys(change["companyId"] for change in batch))
    async for counter in counts.find({"companyId": {"$in": companies}}, session=tx.session):
        last[counter["_id"]] = counter["lastSeq"]
    numbered: defaultdict[ObjectId, list[Document]] = defaultdict(list)
    writes = []
    for change in batch:
        company = change["companyId"]
        first = last[company] + 1
        last[company] += max(1, change.get("eventCount", 0))  # which is missing only in a damaged one
        numbers = {"seq": first, "lastSeq": last[company]}
        numbered[company].append({"_id": change["_id"], **numbers})
        where = {"companyId": company, "_id": change["_id"]}
        writes.append((where, {"$set": numbers, "$unset": {"pending": ""}}))
    await across_companies.write_each(tx.collection(changes.name), writes, session=tx.session, hint="_id_")
    stored = [_new_batch(company, of_company, now()) for company, of_company in numbered.items()]
    await tx.collection(_batches.name).insert_many(stored, session=tx.session)
    counted = [({"_id": each, "companyId": each}, {"$set": {"lastSeq": last[each]}}) for each in companies]
    await across_companies.write_each(counts, counted, session=tx.session, upsert=True)
    return len(batch)


def _new_batch(company_id: ObjectId, numbered: Sequence[Document], at: datetime) -> Document:
    """Return the batch of changes of a company that have their numbers."""
    return {
        "_id": ObjectId(),
        "companyId": company_id,
        "first": numbered[0]["seq"],
        "last": numbered[-1]["lastSeq"],
        "changes": [{"_id": change["_id"], "lastSeq": change["lastSeq"]} for change in numbered],
        "numberedAt": at,
    }


class _Sequencer:
    """Numbers changes while it holds the lease."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._holder = new_token()
        self._is_failing = False
        self._operation: asyncio.Future[Any] | None = None

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            while True:
                try:
                    if await self._completed(across_companies.acquire(self._services, LEASE, self._holder)):
                        await self._number()
                except across_companies.LeaseLost:
                    log.info("another process numbers the changes")
                except Exception as error:  # noqa: BLE001 - the sequencer has to survive the loss of the database
                    if not self._is_failing:
                        self._is_failing = True
                        _log_failure(error)
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(_RELEASE_SECONDS):
                    if self._operation is not None:  # nothing must take or renew the lease any more
                        await asyncio.wait([self._operation])
                    await across_companies.release(self._services, LEASE, self._holder)

    async def _completed(self, operation: Coroutine[Any, Any, T]) -> T:
        """Return the result of an operation that takes or renews the lease; it continues if its caller is cancelled."""
        self._operation = asyncio.ensure_future(operation)
        return await asyncio.shield(self._operation)

    async def _number(self) -> None:
        """Number what is pending whenever a stream or the timer wakes it, until the lease or the database is lost.

        After a batch the next one waits, longer while changes are frequent: one transaction then serves many of them.
        """
        clock = asyncio.get_running_loop().time
        async with _waking(self._services) as is_woken:
            while True:
                is_woken.clear()
                began = clock()
                count = await self._completed(number(self._services, self._holder))
                if self._is_failing:
                    self._is_failing = False
                    log.info("changes are numbered again")
                if count == BATCH:
                    continue
                if count:
                    interval = _INTERVAL_SECONDS if count <= _FEW else _LONG_INTERVAL_SECONDS
                    await asyncio.sleep(interval - (clock() - began))
                with suppress(TimeoutError):
                    async with asyncio.timeout(_RENEW_SECONDS):
                        await is_woken.wait()


@asynccontextmanager
async def _waking(services: Services) -> AsyncIterator[asyncio.Event]:
    """Set the event whenever there may be new changes to number, while the context is open.

    They are followed on a thread, a daemon: the process does not wait for the database when it ends.
    """
    is_woken, is_ended, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()
    rested = 0.0

    def wake() -> None:
        """Wake up, and pause if changes have been read for some milliseconds: the next round trip returns many."""
        nonlocal rested
        if not is_woken.is_set():
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(is_woken.set)
        if time.monotonic() - rested > _READING_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            rested = time.monotonic()

    def watch() -> None:
        while not is_ended.is_set():
            with suppress(Exception):  # whatever ends the stream, the changes are found by their index meanwhile
                _watch_new_changes(services, wake, is_ended.is_set)
            is_ended.wait(_RETRY_SECONDS)
            wake()

    threading.Thread(target=watch, name="changes", daemon=True).start()
    try:
        yield is_woken
    finally:
        is_ended.set()


def _watch_new_changes(services: Services, notify: Callable[[], None], is_ended: Callable[[], bool]) -> None:
    """Call `notify` when a stream of new changes has been opened, and for each that it returns.

    It says that there is something to number, not what: nothing is lost with it; it is opened again when it ends.
    Blocks until `is_ended`, which is called at least once a second. Raises errors of the driver.
    """
    pipeline = [{"$match": {"operationType": "insert"}}, {"$project": {"_id": 1}}]
    collection = changes.across_companies(services).delegate
    with collection.watch(pipeline, batch_size=BATCH, max_await_time_ms=_WAIT_MS) as stream:
        notify()
        while stream.alive and not is_ended():
            with allow_seconds(_READ_SECONDS):
                if stream.try_next() is not None:
                    notify()


def _log_failure(error: Exception) -> None:
    if (known := as_service_error(error)) is None:
        log.error("changes are not numbered", exc_info=error)
    else:
        log.warning("changes are not numbered at the moment", reason=known.message)


# --- Notifying the requests that wait for the next numbers, in every process ------------------------------------------


def signalling(services: Services) -> AbstractAsyncContextManager[None]:
    """Notify waiting requests while the context is open; the database is watched only while a request waits."""
    return running_in_background(partial(_signal, services))


async def _signal(services: Services) -> None:
    signals, counters = services.number_signals, _counters.across_companies(services)
    while True:
        await signals.is_needed.wait()
        try:
            async with counters.watch([{"$project": {"documentKey": 1}}], max_await_time_ms=_WAIT_MS) as stream:
                signals.notify_all()  # changes may have been numbered before the stream was opened
                while signals.is_needed.is_set():
                    with allow_seconds(_READ_SECONDS):
                        event = await stream.try_next()
                    if event is not None:
                        signals.notify(event["documentKey"]["_id"])
                    elif not stream.alive:  # the collection has been dropped or renamed
                        break
                else:
                    continue
            reason = "the stream has ended"
        except Exception as error:  # noqa: BLE001 - waiting has to survive the loss of the database
            known = as_service_error(error)
            reason = str(known or repr(error))
        log.warning("waiting for changes is interrupted", reason=reason)
        signals.notify_all()
        await asyncio.sleep(_RETRY_SECONDS)


# --- Checks -----------------------------------------------------------------------------------------------------------


_PENDING_SECONDS = 60.0
_MAX_PENDING = 10_000
_NAMED_FOR = timedelta(days=30)
_NUMBERED: Document = {"lastSeq": {"$gt": 0}}
_BY_COMPANY_TIME = changes.index_name("createdAt", "_id")


async def _find_wrong_numbers(services: Services, count_read: checks.CountRead) -> AsyncIterator[checks.Finding]:
    """Find numbers that no change or several changes of a company have."""
    gaps, repeated, erased = checks.Occurrences(), checks.Occurrences(), checks.Occurrences()
    last, company_id = 0, ObjectId(bytes(12))
    async for change in _iterate_numbered(services):
        if change["companyId"] != company_id:
            company_id, last = change["companyId"], 0
        if change["seq"] <= last:
            repeated.add(change["_id"])
        elif change["seq"] > last + 1:
            has_deleted = await _has_deleted_clients(services, company_id)
            (erased if has_deleted else gaps).add(change["_id"], change["seq"] - last - 1)
        last = change["lastSeq"]
        count_read(1)
    lost = "Changes are missing before the example: restore the collection changes from a backup. Report it"
    yield gaps.finding("Numbers that no change has", lost)
    yield repeated.finding("Numbers that several changes have", "Report it: integrations miss events")
    nothing = "Nothing to do: clients of these companies were deleted, and their changes erased"
    yield erased.finding("Numbers of erased changes", nothing, is_notice=True)


async def _find_wrong_counters(services: Services, count_read: checks.CountRead) -> AsyncIterator[checks.Finding]:
    """Find companies whose counter is behind the last number, which would be used again, or ahead of it."""
    behind, ahead = checks.Occurrences(), checks.Occurrences()
    async for company_id, counted, last in _iterate_heads(services):
        count_read(1)
        if counted < last:
            behind.add(company_id)
        elif counted > last and not await _has_deleted_clients(services, company_id):
            ahead.add(company_id)
    yield behind.finding("Counters behind the last number", "Run doctor --repair")
    lost = "The latest changes of these companies are missing: restore the collection changes from a backup. Report it"
    yield ahead.finding("Counters ahead of the last number", lost)


async def _raise_counters(services: Services) -> None:
    async for company_id, counted, last in _iterate_heads(services):
        if counted < last:
            where, change = {"_id": company_id, "companyId": company_id}, {"$max": {"lastSeq": last}}
            await _counters.across_companies(services).update_one(where, change, upsert=True)


async def _iterate_heads(services: Services) -> AsyncIterator[tuple[ObjectId, int, int]]:
    """Iterate over the companies that have changes, with their last numbers by the counter and by the changes.

    Both are of one moment; 0 if there is none.
    """
    stages: list[Document] = [{"$group": {"_id": "$companyId"}}]
    async for company in _stored(services).aggregate(stages, hint=_BY_COMPANY_TIME, allowDiskUse=True):
        where, order = {"companyId": company["_id"]}, [("lastSeq", -1)]
        async with reading_snapshot(services) as session:
            counter = await _counters.across_companies(services).find_one(where, session=session)
            last = await _stored(services).find_one(
                {**where, **_NUMBERED}, {"lastSeq": 1}, sort=order, hint=_BY_COMPANY_TIME, session=session
            )
        yield company["_id"], counter["lastSeq"] if counter else 0, last["lastSeq"] if last else 0


async def _has_deleted_clients(services: Services, company_id: ObjectId) -> bool:
    """Return whether a client of the company was deleted: their changes were erased then."""
    deleted = {"documents": {"$elemMatch": {"collection": "customers", "action": "deleted"}}}
    return await _stored(services).find_one({"companyId": company_id, **deleted}, {"_id": 1}) is not None


async def _iterate_numbered(services: Services) -> AsyncGenerator[Document]:
    """Iterate over the numbered changes by company, in the order of their numbers."""
    stages: list[Document] = [
        {"$match": _NUMBERED},
        {"$project": dict.fromkeys(("companyId", "seq", "lastSeq", "createdAt"), 1)},
        {"$sort": {"companyId": 1, "lastSeq": 1}},
    ]
    async for change in _stored(services).aggregate(stages, allowDiskUse=True):
        yield change


async def _iterate_unnamed(services: Services) -> AsyncIterator[Document]:
    """Iterate over changes of the last 30 days that events leave out: no batch of numbers names them in their place.

    Changes and batches are read side by side: both are sorted by company and number. What is not between the first and
    the last number of its batch counts as not named: readers may miss it.
    """
    last_number, since = "$changes.lastSeq", now() - _NAMED_FOR
    stages: list[Document] = [
        {"$sort": {"companyId": 1, "last": 1}},
        {"$unwind": "$changes"},
        {"$match": {"$expr": {"$and": [{"$gte": [last_number, "$first"]}, {"$lte": [last_number, "$last"]}]}}},
        {"$project": {"companyId": 1, "changes": 1}},
    ]
    stored, by_last = _batches.across_companies(services), _batches.index_name("last")
    names = stored.aggregate(stages, hint=by_last, allowDiskUse=True)
    named: tuple[ObjectId, int, ObjectId] | None = (ObjectId(bytes(12)), 0, ObjectId(bytes(12)))
    async with aclosing(_iterate_numbered(services)) as numbered:
        async for change in numbered:
            key = change["companyId"], change["lastSeq"], change["_id"]
            while named is not None and named[:2] < key[:2]:
                each = await anext(names, None)
                named = (each["companyId"], each["changes"]["lastSeq"], each["changes"]["_id"]) if each else None
            if named != key and change["createdAt"] >= since:
                yield change


async def _rebuild_batches(services: Services) -> None:
    """Store the batches of companies again if some of them leave out changes."""
    for company_id in {change["companyId"] async for change in _iterate_unnamed(services)}:
        await _rebuild_batches_of(Context(services), company_id)


@transactional
async def _rebuild_batches_of(tx: Context, company_id: ObjectId) -> None:
    """Replace the batches of a company by new ones that name its changes of the last 31 days.

    Later batches, numbered meanwhile, stay as they are.
    """
    stored, counters = tx.collection(_batches.name), tx.collection(_counters.name)
    counter = await counters.find_one({"companyId": company_id}, session=tx.session)
    last = counter["lastSeq"] if counter else 0
    recent = {"createdAt": {"$gte": now() - _RETENTION}, "lastSeq": {"$gt": 0, "$lte": last}}
    stages: list[Document] = [
        {"$match": {"companyId": company_id, **recent}},
        {"$project": {"seq": 1, "lastSeq": 1, "createdAt": 1}},
        {"$sort": {"lastSeq": 1}},
    ]
    cursor = tx.collection(changes.name).aggregate(stages, session=tx.session, hint=_BY_COMPANY_TIME)
    numbered = await cursor.to_list(None)
    await stored.delete_many({"companyId": company_id, "first": {"$lte": last}}, session=tx.session)
    parts = [numbered[start : start + BATCH] for start in range(0, len(numbered), BATCH)]
    if parts:
        new = [_new_batch(company_id, part, part[-1]["createdAt"]) for part in parts]
        await stored.insert_many(new, session=tx.session)


async def find_long_pending(services: Services, seconds: float, limit: int) -> list[ObjectId]:
    """Return changes that have had no number for longer than `seconds`, by the clock of the database."""
    age = {"$subtract": ["$$NOW", "$createdAt"]}
    where = {**PENDING, "$expr": {"$gt": [age, round(seconds * 1000)]}}
    cursor = _stored(services).find(where, {"_id": 1}, limit=limit, hint=BY_PENDING)
    return [change["_id"] async for change in cursor]


def _stored(services: Services) -> Collection:
    return changes.across_companies(services)


CHECKS = (
    checks.Check("change-numbers", "The numbers of changes have no gaps", _find_wrong_numbers),
    checks.Check("change-counters", "The counters of changes are right", _find_wrong_counters, _raise_counters),
    checks.check_of(
        "change-order",
        "Events have all numbered changes",
        lambda services: (change["_id"] async for change in _iterate_unnamed(services)),
        "Changes that events leave out",
        "Run doctor --repair",
        _rebuild_batches,
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
