"""Running a function with several database operations on one worker thread.

Motor gives each operation to a thread and returns to the event loop after it. For a short operation these two switches
cost more than the operation itself. A function that awaits nothing but the database can run on one thread from its
first operation to its last: its operations then use the PyMongo collections that Motor wraps, and block.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from coaching_service.core import budgets
from coaching_service.core.background import retrieve_failure

if TYPE_CHECKING:
    from pymongo.client_session import ClientSession
    from pymongo.collection import Collection as BlockingCollection

    from coaching_service.core.database.context import Collection, Context

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 16
_executor = ThreadPoolExecutor(_THREADS, "database")


class Cancelled(Exception):
    """The caller of the function was cancelled; its transaction is aborted."""


class WorkerThread:
    """The thread that a function runs on, as long as its caller waits for it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_cancelled = False
        self._budget, self._began = budgets.current(), 0.0

    def collection(self, collection: Collection) -> Collection:
        """Return the collection that Motor wraps, with the methods of Motor. Raises Cancelled."""
        return cast("Collection", ThreadCollection(collection.delegate, self))

    def pause(self, seconds: float) -> None:
        """Wait, before another attempt at a transaction or after its commit."""
        time.sleep(seconds)

    def require_active(self) -> None:
        """Raise Cancelled if the caller no longer waits, Unavailable if the budget of the request is spent."""
        if self.is_cancelled:
            raise Cancelled
        if self._budget is not None:
            self._budget.require(time.thread_time() - self._began)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on this thread, and spend its time. Raises what `run_without_event_loop` raises."""
        self._began = time.thread_time()
        try:
            return run_without_event_loop(coroutine)
        finally:
            if self._budget is not None:
                self._budget.spend(time.thread_time() - self._began)


def on_worker_thread(
    function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Context, P], Coroutine[Any, Any, T]]:
    """Run `function` on one worker thread, unless its context already has a transaction or a thread.

    The function awaits nothing but the database, and does not use the event loop: raises RuntimeError if it does. When
    the caller is cancelled, the next database operation fails, so that an open transaction is aborted.
    """

    @wraps(function)
    async def on_thread(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if ctx.session is not None or ctx.thread is not None:
            return await function(ctx, *args, **kwargs)
        thread = WorkerThread()
        coroutine = function(replace(ctx, thread=thread), *args, **kwargs)
        context = contextvars.copy_context()
        running = thread.loop.run_in_executor(_executor, context.run, thread.run, coroutine)
        try:
            return cast("T", await asyncio.shield(running))
        except asyncio.CancelledError:
            thread.is_cancelled = True
            running.add_done_callback(retrieve_failure)
            raise

    return on_thread


def run_without_event_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits for an event loop. Raises RuntimeError if it does."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return cast("T", stop.value)
    coroutine.close()
    raise RuntimeError("a function on a worker thread may only await the database")


async def find_all(collection: Collection, *args: Any, **options: Any) -> list[Any]:
    """Return all documents of a query, with the arguments of Motor's `find`.

    One call on a worker thread reads them; the cursors of Motor cost more than the query of a short list.
    """
    return await _read_all(collection, "find", *args, **options)


async def aggregate_all(collection: Collection, pipeline: Sequence[Any], **options: Any) -> list[Any]:
    """Return all documents of a pipeline, as `find_all` does."""
    return await _read_all(collection, "aggregate", pipeline, **options)


async def _read_all(
    collection: Collection | ThreadCollection, method: str, *args: Any, session: Any = None, **options: Any
) -> list[Any]:
    if isinstance(collection, ThreadCollection):
        collection.thread.require_active()
    open_cursor = getattr(collection.delegate, method)

    def read() -> list[Any]:
        with open_cursor(*args, session=session and session.delegate, **options) as cursor:
            documents: list[Any] = cursor.to_list()
            return documents

    if isinstance(collection, ThreadCollection):
        return read()
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_executor, context.run, read)


class ThreadCollection:
    """The methods of Motor's collection that `Documents` uses, as coroutines that block instead of waiting."""

    __slots__ = ("delegate", "thread")

    def __init__(self, delegate: BlockingCollection[Any], thread: WorkerThread) -> None:
        self.delegate, self.thread = delegate, thread

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return an operation of the collection."""
        operation = getattr(self.delegate, name)

        async def block(*args: Any, session: Any = None, **options: Any) -> Any:
            self.thread.require_active()
            return operation(*args, session=session and session.delegate, **options)

        return block

    def find(self, *args: Any, session: Any = None, **options: Any) -> ThreadCursor:
        """Return the cursor of a query."""
        own = session and session.delegate
        return ThreadCursor(lambda: self.delegate.find(*args, session=own, **options), self.thread)

    def aggregate(self, pipeline: Sequence[Any], *, session: Any = None, **options: Any) -> ThreadCursor:
        """Return the cursor of a pipeline."""
        own = session and session.delegate
        return ThreadCursor(lambda: self.delegate.aggregate(pipeline, session=own, **options), self.thread)


class ThreadSession:
    """The methods of Motor's session that transactions use, as coroutines that block instead of waiting."""

    __slots__ = ("delegate",)

    def __init__(self, delegate: ClientSession) -> None:
        self.delegate = delegate

    def start_transaction(self) -> None:
        """Start a transaction, which is aborted unless it is committed before the session ends."""
        self.delegate.start_transaction()

    async def commit_transaction(self) -> None:
        """Commit the transaction."""
        self.delegate.commit_transaction()


class ThreadCursor:
    """The methods of Motor's cursors that `Documents` uses; the query is sent when the first document is needed."""

    __slots__ = ("_open", "_thread")

    def __init__(self, open_cursor: Callable[[], Any], thread: WorkerThread) -> None:
        self._open, self._thread = open_cursor, thread

    async def to_list(self, length: int | None) -> list[Any]:
        """Return all documents, or the first `length`."""
        self._thread.require_active()
        with self._open() as cursor:
            documents: list[Any] = cursor.to_list(length)
            return documents

    async def __aiter__(self) -> AsyncIterator[Any]:
        """Iterate over the documents."""
        with self._open() as cursor:
            for document in cursor:
                self._thread.require_active()
                yield document
