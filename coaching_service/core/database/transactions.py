"""Transactions: a function that runs in one, independent reads inside or outside of one, and reads at one moment."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from motor.motor_asyncio import AsyncIOMotorClientSession
from opentelemetry.trace import Span
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, PyMongoError

from coaching_service.core.budgets import metered
from coaching_service.core.cached_reads import CacheWait
from coaching_service.core.database.collections import ReadableCollection
from coaching_service.core.database.connection import is_late, is_unavailable, is_unsent, unreachable
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.recording import ChangeRecorder, interface_of
from coaching_service.core.database.worker_thread import ThreadSession
from coaching_service.core.errors import Conflict, ExternalIdTaken, Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.slots import within_transaction
from coaching_service.core.tracing import measure

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_SECONDS = 20.0
_BACKOFF_SECONDS = 0.005
_MAX_BACKOFF_SECONDS = 0.1
_ABORT_SECONDS = 0.5
_TRANSIENT = "TransientTransactionError"
_COMMIT_UNKNOWN = "UnknownTransactionCommitResult"
_random = random.SystemRandom()  # apart from the generator that tests seed
_endings: set[asyncio.Task[None]] = set()  # the event loop has only weak references to its tasks


class Unprepared(Exception):
    """Ends a transaction that needs what `prepare` computes: it is called outside of it, then the transaction repeated.

    It is for what takes long and depends on no write of the transaction. `prepare` stores its result in the context.
    """

    def __init__(self, prepare: Callable[[Context], Awaitable[None]]) -> None:
        super().__init__("computed before the transaction")
        self.prepare = prepare


def transactional(
    function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Context, P], Coroutine[Any, Any, T]]:
    """Run `function` in one transaction, or inside the transaction its context is already in.

    The function is called again when the transaction collides with another one: it must have no effect outside the
    database. Raises Unavailable when it still collides after 20 seconds, or the database does not respond.
    """

    @wraps(function)
    async def in_its_transaction(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_transaction(ctx, lambda tx: function(tx, *args, **kwargs))

    return in_its_transaction


class _Collection(Protocol):
    def needs_transaction(self, ctx: Context) -> bool: ...


C = TypeVar("C", bound=_Collection)


def recorded(
    write: Callable[Concatenate[C, Context, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[C, Context, P], Coroutine[Any, Any, T]]:
    """Run a write in a transaction, its own or the caller's, if it is recorded or changes what processes cache."""

    @wraps(write)
    async def in_its_transaction(collection: C, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if collection.needs_transaction(ctx):
            return await in_transaction(ctx, lambda tx: write(collection, tx, *args, **kwargs))
        return await write(collection, ctx, *args, **kwargs)

    return in_its_transaction


async def in_transaction(
    ctx: Context, work: Callable[[Context], Awaitable[T]], *, patience: float = PATIENCE_SECONDS
) -> T:
    """Call `work` in one transaction, or inside the one `ctx` is already in, and return its result.

    `work` is called again when the transaction fails for a transient reason, such as a write conflict, and the commit
    is repeated when its outcome is unknown: Motor's own `with_transaction` commits outside its retry loop, so it does
    neither for a commit. What `work` has changed is checked (see History) and stored in the change log before the
    commit. If it has changed documents that processes cache, it returns or raises when none of them uses what it read
    before (see CacheWait). It is also called again after what it was missing is prepared (see Unprepared).
    Nothing is repeated after `patience` seconds, or once the database is lost (see DatabaseMonitor): then raises
    Unavailable, or the driver's error when the outcome of the commit is still unknown.
    """
    if ctx.session is not None:
        return await work(ctx)
    deadline = time.monotonic() + patience
    attempts: list[ChangeRecorder] = []
    try:
        measuring = measure(ctx.services.tracer, "transaction", attributes={"coaching.operation": ctx.operation})
        with within_transaction(), measuring as span:
            return await _repeat(ctx, work, deadline, span, attempts)
    except asyncio.CancelledError:
        attempts.clear()  # there is no response that would have to wait
        raise
    finally:
        ctx.resolved.clear()
        # Also after an error, such as NotFound: a transaction that has deleted the document may still be waiting
        if any(each.changes_cached for each in attempts):
            await wait_for_caches(ctx)


async def rehearse(ctx: Context, work: Callable[[Context], Awaitable[T]]) -> T:
    """Call `work` in a transaction that is rolled back, and return its result."""

    async def work_and_end(tx: Context) -> T:
        result = await work(tx)
        await tx.changes.check(tx)
        raise _Rehearsed(result)

    try:
        return await in_transaction(ctx, work_and_end)
    except _Rehearsed as end:
        return cast("T", end.result)


class _Rehearsed(Exception):
    """Ends the transaction of a rehearsal."""

    def __init__(self, result: object) -> None:
        super().__init__()
        self.result = result


async def _repeat(
    ctx: Context,
    work: Callable[[Context], Awaitable[T]],
    deadline: float,
    span: Span,
    attempts: list[ChangeRecorder],
) -> T:
    """Call `work` in a transaction until it commits, or may not be repeated; `attempts` receives what each changed."""
    monitor = ctx.services.monitor
    attempt = 0

    def may_continue() -> bool:
        return time.monotonic() <= deadline and not monitor.is_lost

    monitor.require()
    while True:
        try:
            async with _session(ctx) as session:
                session.start_transaction()
                attempts.append(ChangeRecorder())
                tx = replace(ctx, session=session, recorder=attempts[-1])
                result = await work(tx)
                await tx.changes.check(tx)
                change_ids = [] if tx.changes.is_empty else await ctx.services.change_log.write(tx)
                await _commit(ctx, session, may_continue)
                ctx.change_ids.extend(change_ids)
                for follow in tx.changes.after_commit:
                    follow()
                return result
        except Unprepared as unprepared:
            await unprepared.prepare(ctx)
            continue
        except PyMongoError as error:
            if not (error.has_error_label(_TRANSIENT) or is_unsent(error)):
                raise
            if not may_continue():
                monitor.require()
                if is_unavailable(error) and not is_late(error):
                    raise unreachable() from error
                raise Unavailable("The service is busy; nothing was changed, try again") from error
        attempt += 1
        span.set_attribute("coaching.retries", attempt)
        await _pause(ctx, _random.random() * min(attempt * _BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS))


@asynccontextmanager
async def _session(ctx: Context) -> AsyncIterator[AsyncIOMotorClientSession]:
    """A session whose transaction is aborted unless it is committed.

    A caller that is cancelled, as by DatabaseMonitor, does not wait for the abort.
    """
    if ctx.thread is not None:
        with ctx.db.client.delegate.start_session() as own:
            yield cast("AsyncIOMotorClientSession", ThreadSession(own))
        return
    session = await ctx.db.client.start_session()
    try:
        yield session
    except asyncio.CancelledError:
        ending = asyncio.create_task(_end(session, None))
        _endings.add(ending)
        ending.add_done_callback(_endings.discard)
        raise
    except BaseException:
        await _end(session, _ABORT_SECONDS)
        raise
    else:
        await _end(session, _ABORT_SECONDS)


async def wait_for_caches(ctx: Context) -> None:
    """Wait until no process uses what it has cached before, or let the request wait at its end (see CacheWait)."""
    seconds = CacheWait.seconds(ctx.services.cache_seconds)
    if ctx.cache_wait.is_deferred:
        ctx.cache_wait.defer(seconds)
    else:
        await _pause(ctx, seconds)


async def _pause(ctx: Context, seconds: float) -> None:
    if ctx.thread is None:
        await asyncio.sleep(seconds)
    else:
        ctx.thread.pause(seconds)


async def _commit(ctx: Context, session: AsyncIOMotorClientSession, may_continue: Callable[[], bool]) -> None:
    """Commit, again while the outcome is unknown: a commit that is repeated takes effect once."""
    unknown: PyMongoError | None = None
    while True:
        try:
            await session.commit_transaction()
        except PyMongoError as error:
            if is_unsent(error):
                if not may_continue():
                    raise unknown or error from None
                await _pause(ctx, _BACKOFF_SECONDS)
                continue
            if not error.has_error_label(_COMMIT_UNKNOWN) or not may_continue():
                raise
            unknown = error
        else:
            return


async def _end(session: AsyncIOMotorClientSession, seconds: float | None) -> None:
    """Abort an open transaction and end the session. Waits at most `seconds`; None: as long as the driver tries.

    It runs in a thread, and continues there when the wait is over: used as a context manager, the session would abort
    the transaction on the event loop.
    The server aborts an abandoned transaction by itself after a minute.
    """
    with suppress(PyMongoError, TimeoutError):
        async with asyncio.timeout(seconds):
            await session.end_session()


async def gather_reads(ctx: Context, *reads: Awaitable[Any]) -> list[Any]:
    """Return the results of independent `reads`, in their order.

    They run at the same time, or one after another on a worker thread and inside a transaction, which take one
    operation at a time. Of several failures the first in order is raised.
    """
    if ctx.session is None and ctx.thread is None:
        results = await asyncio.gather(*map(metered, reads), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results
    results = []
    pending = list(reads)
    try:
        while pending:
            results.append(await pending.pop(0))
    finally:
        for unread in pending:
            if asyncio.iscoroutine(unread):
                unread.close()
    return results


@asynccontextmanager
async def reading_snapshot(services: Services) -> AsyncIterator[AsyncIOMotorClientSession]:
    """A session whose finds and aggregations all read the state at the moment of the first one, of any collection.

    MongoDB stores what such reads need for five minutes (`minSnapshotHistoryWindowInSeconds`); later ones fail.
    """
    session = await services.db.client.start_session(snapshot=True)
    try:
        yield session
    finally:
        await session.end_session()


# --- Errors of writes that other documents, or other writes, prevent --------------------------------------------------


_DUPLICATE_KEY = 11000


class DocumentExists(Conflict):
    """A document with the same identifier, or the same unique fields, exists."""

    default_code = "ALREADY_EXISTS"

    def __init__(self, field: str | None = None) -> None:
        """Create the error; `field` is `_id` or `externalId` if that is what they have in common."""
        super().__init__("Such a record exists already")
        self.field = field

    @classmethod
    def of_fields(cls, fields: Collection[str]) -> DocumentExists:
        """Return the error for the fields of the unique index that prevents a write."""
        return cls(next((name for name in ("_id", "externalId") if name in fields), None))


class AlreadyClaimed(Exception):
    """The identifier exists, or is being stored by a transaction that is still running."""


def is_duplicate(error: OperationFailure) -> bool:
    """Return whether a write failed because a document with the same unique fields exists."""
    failed = (error.details or {}).get("writeErrors") or [{"code": error.code}]
    return any(each["code"] == _DUPLICATE_KEY for each in failed)


def version_conflict() -> Conflict:
    """Return the error for a change that is based on an older version."""
    message = "The record has been changed since; read it again and retry"
    return Conflict(message, code="VERSION_CONFLICT")


@asynccontextmanager
async def external_id_conflict(ctx: Context, collection: ReadableCollection[Any]) -> AsyncIterator[None]:
    """Raise ExternalIdTaken for a write that another document with the same external identifier prevents."""
    try:
        yield
    except (DuplicateKeyError, BulkWriteError) as error:
        details = error.details or {}
        keys = [each.get("keyValue", {}) for each in (details, *details.get("writeErrors", ()))]
        if (external_id := next((str(key["externalId"]) for key in keys if "externalId" in key), None)) is None:
            raise
        where = collection.read_filter(ctx, {"externalId": external_id})
        holder = await ctx.collection(collection.name).find_one(where, {"_id": 1})  # the transaction is over
        raise external_id_taken(ctx, None if holder is None else holder["_id"]) from None


def external_id_taken(ctx: Context, holder: ObjectId | None) -> ExternalIdTaken:
    """Return the error for an external identifier that another record has.

    It does not name that record to assistants and applications where any client has turned them off: the record may
    be that client's.
    """
    is_named = interface_of(ctx) not in ("assistant", "application") or not ctx.caller.company.has_declined
    return ExternalIdTaken(holder if is_named else None)


@contextmanager
def taken_place(kind: str) -> Iterator[None]:
    """Raise Conflict for a write that restores a document of a kind, if another has the same unique fields by now."""
    try:
        yield
    except BulkWriteError as error:
        if not is_duplicate(error):
            raise
        message = f"Another {kind} has taken the place of the one to restore, so that this cannot be undone"
        raise Conflict(message, code="VERSION_CONFLICT") from None
