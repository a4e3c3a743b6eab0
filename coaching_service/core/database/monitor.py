"""Whether the database responds. It is checked while requests wait for it, so that none of them waits for long."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import pymongo
import structlog
from opentelemetry.trace import Span, SpanKind, Tracer, get_current_span
from pymongo.errors import PyMongoError
from pymongo.monitoring import (
    CommandFailedEvent,
    CommandListener,
    CommandStartedEvent,
    CommandSucceededEvent,
    ConnectionCheckedInEvent,
    ConnectionCheckedOutEvent,
    ConnectionCheckOutFailedEvent,
    ConnectionCheckOutStartedEvent,
    ConnectionClosedEvent,
    ConnectionCreatedEvent,
    ConnectionPoolListener,
)
from pymongo.read_concern import ReadConcern

from coaching_service.core.background import retrieve_failure
from coaching_service.core.database.connection import is_unavailable, unreachable
from coaching_service.core.metrics import DATABASE_COMMANDS, Metrics
from coaching_service.core.tracing import fail

if TYPE_CHECKING:
    from types import TracebackType

    from coaching_service.core.database.context import Database

log = structlog.get_logger("coaching_service.database")

_INTERVAL_SHARE = 0.2
_TICKS = 20
_MAX_READS = 5


class Interruption:
    """The context of one waiting request, which raises Unavailable if it is interrupted, unless it is ended before.

    `waiting` has the time when each began. This is a class because a generator would cost each request more time.
    """

    __slots__ = ("_timeout", "_waiting")

    def __init__(self, waiting: dict[Interruption, float]) -> None:
        self._timeout, self._waiting = asyncio.timeout(None), waiting

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._waiting[self] = asyncio.get_running_loop().time()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._waiting.pop(self, None)
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            raise unreachable() from None
        if isinstance(error, TimeoutError) and self._timeout.expired():
            raise unreachable() from None

    def interrupt(self) -> None:
        """Interrupt the request at once."""
        self._timeout.reschedule(asyncio.get_running_loop().time())

    def end(self) -> None:
        """Do not interrupt the request any more."""
        if self._waiting.pop(self, None) is not None:
            self._timeout.reschedule(None)


class DatabaseMonitor:
    """Interrupts waiting requests when the database does not respond, and rejects its use until it responds again.

    While every request ends quickly, nothing is sent. When one takes longer than a fifth of `seconds`, and again after
    each further fifth until it ends, the database is sent a read that a majority has to confirm. When that fails, or
    takes longer than the other four fifths, the database is lost (`is_lost`): all waiting requests are interrupted,
    `require` raises, and the read is repeated until it succeeds. So a request waits for a lost database for `seconds`
    at most, and one that takes long while the database responds is not interrupted.

    When this process itself was too busy for a fifth of the time, a late read says nothing about the database: it is
    repeated, up to four times.
    """

    def __init__(self, db: Database, seconds: float) -> None:
        self.is_lost = False
        self.seconds = seconds
        self._db = db.delegate  # the driver itself: Motor's threads may all wait for the database
        self._interval = seconds * _INTERVAL_SHARE
        self._read_seconds = seconds - self._interval
        self._thread = ThreadPoolExecutor(1, "database-monitor")
        self._waiting: dict[Interruption, float] = {}  # the first began first
        self._watching: asyncio.Task[None] | None = None
        self._running_check: asyncio.Task[None] | None = None

    def require(self) -> None:
        """Raise Unavailable while the database is lost."""
        if self.is_lost:
            raise unreachable()

    def interrupting(self) -> Interruption:
        """Return a context that raises Unavailable from its block, which is interrupted, when the database is lost."""
        self._start_watching()
        return Interruption(self._waiting)

    async def check(self) -> None:
        """Read with the confirmation of a majority: a primary that has lost it still responds to other commands.

        Concurrent calls share one read. Raises TimeoutError and the errors of the driver.
        """
        if self._running_check is None or self._running_check.done():
            self._running_check = asyncio.create_task(self._check())
            self._running_check.add_done_callback(retrieve_failure)  # all callers may have gone away
        await asyncio.shield(self._running_check)  # a caller that goes away must not cancel the shared check

    def close(self) -> None:
        """Stop watching."""
        for task in (self._watching, self._running_check):
            if task is not None:
                task.cancel()
        self._thread.shutdown(wait=False)

    def _start_watching(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting or self.is_lost:
            next_check = next(iter(self._waiting.values()), 0.0) + self._interval
            began = loop.time()
            if self.is_lost or next_check <= began:
                with suppress(Exception):  # the outcome is in `is_lost`
                    await self.check()
                # No pause after a long check: a majority may confirm writes at intervals as long as both together.
                await asyncio.sleep(began + self._interval - loop.time())
            else:
                await asyncio.sleep(next_check - loop.time())

    async def _check(self) -> None:
        for _ in range(_MAX_READS):
            error, busy = await self._try_to_read()
            is_late = isinstance(error, TimeoutError) or (isinstance(error, PyMongoError) and error.timeout)
            if not is_late or busy < self._interval:
                break
        if isinstance(error, TimeoutError) or (isinstance(error, Exception) and is_unavailable(error)):
            self._lose(type(error).__name__)
        if error is not None:
            raise error
        if self.is_lost:
            self.is_lost = False
            log.info("the database responds again")

    async def _try_to_read(self) -> tuple[BaseException | None, float]:
        """Return the error of a read, TimeoutError if it takes too long, and the seconds this process was too busy."""
        loop = asyncio.get_running_loop()
        reading = loop.run_in_executor(self._thread, self._read)
        reading.add_done_callback(retrieve_failure)  # its outcome may come too late
        busy, tick = 0.0, self._read_seconds / _TICKS
        # The driver's own limit is not exact: it waits for a server for half a second more.
        end = loop.time() + self._read_seconds
        while not reading.done() and (began := loop.time()) < end:
            await asyncio.wait({reading}, timeout=tick)
            busy += max(0.0, loop.time() - began - tick)
        return reading.exception() if reading.done() else TimeoutError(), busy

    def _read(self) -> None:
        collection = self._db.get_collection("migrations", read_concern=ReadConcern("linearizable"))
        with pymongo.timeout(self._read_seconds):
            collection.find_one({"_id": 0})

    def _lose(self, reason: str) -> None:
        if not self.is_lost:
            log.warning("the database does not respond", reason=reason, interrupted=len(self._waiting))
        self.is_lost = True
        self._start_watching()  # it repeats the read, also if the check was of /readyz and no request is waiting
        for interruption in self._waiting:
            interruption.interrupt()
        self._waiting.clear()


# --- What the driver reports of its connections and commands, as metrics and as spans ---------------------------------


class CommandObserver(CommandListener):
    """Measures the commands of a client, those excepted that wait for new documents on purpose."""

    def __init__(self, metrics: Metrics) -> None:
        self._seconds = {name: metrics.command_seconds.labels(name) for name in DATABASE_COMMANDS}
        self._other = self._seconds["other"]
        self._waiting: set[int] = set()

    def started(self, event: CommandStartedEvent) -> None:
        """Remember the reads of change streams: only they limit the time of a getMore."""
        if event.command_name == "getMore" and "maxTimeMS" in event.command:
            self._waiting.add(event.request_id)

    def succeeded(self, event: CommandSucceededEvent | CommandFailedEvent) -> None:
        """Measure a command, also one that failed."""
        if event.request_id in self._waiting:
            self._waiting.discard(event.request_id)
            return
        self._seconds.get(event.command_name, self._other).observe(event.duration_micros / 1_000_000)

    failed = succeeded


class CommandTracer(CommandListener):
    """Traces the commands of a client inside of other spans: their names and collections, not what they contain."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._running: dict[int, Span] = {}

    def started(self, event: CommandStartedEvent) -> None:
        """Begin a span with the name of the command and its collection."""
        if not get_current_span().get_span_context().is_valid:
            return
        title = name = event.command_name
        attributes = {"db.system.name": "mongodb", "db.operation.name": name}
        if isinstance(collection := event.command.get("collection" if name == "getMore" else name), str):
            title, attributes["db.collection.name"] = f"{name} {collection}", collection
        self._running[event.request_id] = self._tracer.start_span(title, kind=SpanKind.CLIENT, attributes=attributes)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """End the span."""
        if (span := self._running.pop(event.request_id, None)) is not None:
            span.end()

    def failed(self, event: CommandFailedEvent) -> None:
        """End the span with the code of the error: its message may quote values."""
        if (span := self._running.pop(event.request_id, None)) is not None:
            failure = event.failure
            fail(span, str(failure.get("codeName") or failure.get("code") or failure.get("errtype") or "unknown"))
            span.end()


class ConnectionObserver(ConnectionPoolListener):
    """Counts the connections of a client.

    The driver calls it on many threads, for each command: adding to these collections takes no lock.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._open: set[tuple[object, int]] = set()
        self._in_use: set[tuple[object, int]] = set()
        self._waiting: list[None] = []
        metrics.connections_open.set_function(lambda: len(self._open))
        metrics.connections_in_use.set_function(lambda: len(self._in_use))
        metrics.connections_waiting.set_function(lambda: len(self._waiting))

    def connection_created(self, event: ConnectionCreatedEvent) -> None:
        """Count a connection that is being established."""
        self._open.add((event.address, event.connection_id))

    def connection_closed(self, event: ConnectionClosedEvent) -> None:
        """Count a connection that was closed."""
        self._open.discard((event.address, event.connection_id))
        self._in_use.discard((event.address, event.connection_id))

    def connection_check_out_started(self, event: ConnectionCheckOutStartedEvent) -> None:
        """Count an operation that needs a connection."""
        self._waiting.append(None)

    def connection_check_out_failed(self, event: ConnectionCheckOutFailedEvent) -> None:
        """Count a command that failed without a reply."""
        self._waiting.pop()

    def connection_checked_out(self, event: ConnectionCheckedOutEvent) -> None:
        """It got one."""
        self._waiting.pop()
        self._in_use.add((event.address, event.connection_id))

    def connection_checked_in(self, event: ConnectionCheckedInEvent) -> None:
        """Count an operation that is over."""
        self._in_use.discard((event.address, event.connection_id))

    def pool_created(self, event: object) -> None:
        """Ignore what happens to the pool: the connections are reported as well."""

    pool_ready = pool_cleared = pool_closed = connection_ready = pool_created
