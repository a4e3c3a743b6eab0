"""The connection to MongoDB, whether it responds, and the service errors for failures of the driver.

That is checked while requests wait for the database, so that none of them waits for long.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl

import pymongo
import structlog
from bson import CodecOptions
from motor.motor_asyncio import AsyncIOMotorClient
from opentelemetry.trace import Span, SpanKind, Tracer, get_current_span
from pymongo import errors, monitoring
from pymongo.read_concern import ReadConcern

from coaching_service.core.background import retrieve_failure
from coaching_service.core.database.outcome import WriteObserver
from coaching_service.core.errors import BadRequest, Conflict, ServiceError, Unavailable
from coaching_service.core.metrics import DATABASE_COMMANDS, Metrics
from coaching_service.core.tracing import fail

if TYPE_CHECKING:
    from types import TracebackType

    from coaching_service.core.database.context import Database

EventListener = monitoring.CommandListener | monitoring.ConnectionPoolListener
Client = AsyncIOMotorClient[dict[str, Any]]
WRITE_CONFLICT = 112
_OUT_OF_DISK_SPACE = 14031
APP_NAME = "coaching-service"  # how the database names our connections
UNAUTHORIZED = (13, 18)  # Unauthorized, AuthenticationFailed
# The server is not, or no longer, a primary with a majority: among them InterruptedDueToReplStateChange (11602),
# NotWritablePrimary (10107), PrimarySteppedDown (189), WriteConcernFailed (64) and MaxTimeMSExpired (50).
_NO_PRIMARY = (50, 64, 91, 100, 133, 189, 262, 10058, 10107, 11600, 11602, 13435, 13436)
# The server has just started: it has no keys for the times of others (KeyNotFound, 211), does not know the cursor of
# another primary (CursorNotFound, 43), is NotYetInitialized (94), or has no result of a findAndModify that the driver
# repeats (IncompleteTransactionHistory, 217).
_STARTING = (43, 94, 211, 217)
# The server has ended the operation: LockTimeout (24), QueryPlanKilled (175), CursorKilled (237), SnapshotTooOld (239),
# SnapshotUnavailable (246), TransactionExceededLifetimeLimitSeconds (290), TemporarilyUnavailable (365) and
# Interrupted (11601).
_ENDED = (24, 175, 237, 239, 246, 290, 365, 11601)
_UNCONNECTED = (6, 7, 89, 134, 202, 9001)  # failures of a connection, also for the driver
_UNAVAILABLE = frozenset((*_NO_PRIMARY, *_STARTING, *_ENDED, *_UNCONNECTED))
# After other failures a write may have been executed; a server that is no primary executes nothing.
UNCERTAIN = _UNAVAILABLE - {10058, 10107, 13435, 13436}
# With others a failover loses acknowledged writes, or reads return old data.
_SAFE_OPTIONS = {"w": "majority", "journal": "true", "readpreference": "primary", "readconcernlevel": "majority"}
log = structlog.get_logger("coaching_service.database")


@dataclass(frozen=True)
class Deadlines:
    """How long the driver waits, in seconds; options of the URI take precedence.

    `operation`: one operation, retries included. `selection`: until a server accepts writes, such as during an
    election. `connection`: until a connection is established; a server that does not respond for this long and one
    second more counts as unreachable.
    """

    operation: float = 10.0
    selection: float = 3.0
    connection: float = 3.0


class UnsafeUri(Exception):
    """The URI of the database has an option with which acknowledged writes can be lost; the message names it."""


def connect(uri: str, deadlines: Deadlines | None = None, listeners: Sequence[EventListener] = ()) -> Client:
    """Create a client of the database at `uri`; it connects when it is first used. `listeners` observe it.

    Writes are acknowledged by a majority, reads return what a majority has, and both are retried once. Raises UnsafeUri
    if an option of the URI weakens that, and errors of the driver if the URI is malformed.
    """
    given = {name.lower(): value for name, value in parse_qsl(uri.partition("?")[2])}
    for name, value in _SAFE_OPTIONS.items():
        if given.get(name, value).lower() != value:
            raise UnsafeUri(
                f"MONGODB_URI sets {name}={given[name]}, with which a failover loses acknowledged writes or reads "
                f"return old data: remove it"
            )
    deadlines = deadlines or Deadlines()
    seconds = {
        "timeoutMS": deadlines.operation,
        "serverSelectionTimeoutMS": deadlines.selection,
        "connectTimeoutMS": deadlines.connection,
        "heartbeatFrequencyMS": 1.0,
    }
    timeouts: dict[str, Any] = {
        name: round(value * 1000) for name, value in seconds.items() if name.lower() not in given
    }
    return AsyncIOMotorClient(
        uri,
        **timeouts,
        w="majority",
        journal=True,
        retryWrites=True,
        retryReads=True,
        readPreference="primary",
        readConcernLevel="majority",
        tz_aware=False,
        appname=APP_NAME,
        event_listeners=[WriteObserver(UNCERTAIN), *listeners],
    )


def hosts_of(uri: str) -> str:
    """Return the hosts that a URI names, without credentials and options."""
    return uri.partition("://")[2].partition("/")[0].rpartition("@")[2]


def database(client: Client, name: str) -> Database:
    """Return the database of that name."""
    return client.get_database(name, codec_options=CodecOptions(document_class=dict))


def server_state(client: Client) -> Database:
    """Return the database in which aggregations about the server itself run: they have no read concern."""
    return client.get_database("admin", read_concern=ReadConcern("local"))


async def read_clock_difference(db: Database) -> float:
    """Return how many seconds the clock of this process is ahead of the database's."""
    began = datetime.now(UTC).replace(tzinfo=None)
    response = await db.command("hello")
    ended = datetime.now(UTC).replace(tzinfo=None)
    theirs: datetime = response["localTime"]
    return max((began - theirs).total_seconds(), 0.0) + min((ended - theirs).total_seconds(), 0.0)


def allow_seconds(seconds: float) -> AbstractContextManager[Any]:
    """Let the operations in the block take so long together, instead of the deadline that each has in requests."""
    return pymongo.timeout(seconds)


def is_disk_full(error: BaseException) -> bool:
    """Return whether the database has no space left: some commands report only the text of the operating system."""
    if not isinstance(error, errors.OperationFailure):
        return False
    return error.code == _OUT_OF_DISK_SPACE or os.strerror(errno.ENOSPC) in str(error)


def is_write_conflict(error: BaseException) -> bool:
    """Return whether another transaction has written the same document."""
    return isinstance(error, errors.OperationFailure) and error.code == WRITE_CONFLICT


def as_service_error(error: Exception) -> ServiceError | None:
    """Return the service error for a failure of the driver, `error` if it is one, or None if it is unexpected."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, errors.DocumentTooLarge):
        return BadRequest("The record would grow larger than the service stores; split it")
    if is_unavailable(error):
        # It took too long while the service, or the database, was busy.
        return Unavailable("The service is busy; try again shortly") if is_late(error) else unreachable()
    if isinstance(error, errors.OperationFailure) and error.code in UNAUTHORIZED:
        log.error("the database refuses the user name and password in MONGODB_URI, or that user lacks permissions")
        return Unavailable("The database rejects the service; contact its operator")
    if is_disk_full(error):
        log.error("the disk of the database is full")
        return Unavailable("The database has no space left; contact its operator")
    if is_write_conflict(error):
        return Conflict("Another request is changing the same record; read it again and retry", code="WRITE_CONFLICT")
    if isinstance(error, errors.PyMongoError) and error.has_error_label("TransientTransactionError"):
        return Unavailable("The database was busy; try again shortly")
    return None


def unreachable() -> Unavailable:
    """Return the error of a request that needs the database while it does not respond."""
    return Unavailable("The database cannot be reached; try again shortly")


def is_late(error: Exception) -> bool:
    """Return whether an operation reached its deadline: the database may respond, and this process was busy."""
    is_timeout = isinstance(error, errors.PyMongoError) and error.timeout
    return is_timeout and not isinstance(error, errors.ServerSelectionTimeoutError)


def is_unavailable(error: Exception) -> bool:
    """Return whether the database did not respond, or not as a primary with a majority."""
    lost = errors.ConnectionFailure | errors.ExecutionTimeout | errors.WriteConcernError
    if isinstance(error, lost) or is_unsent(error):
        return True
    if isinstance(error, errors.BulkWriteError):
        # It was carried out but not acknowledged by a majority, or ended by such an error.
        details = error.details or {}
        refused = [each["code"] for each in details.get("writeErrors", ())]
        return bool(details.get("writeConcernErrors")) or (bool(refused) and _UNAVAILABLE.issuperset(refused))
    return isinstance(error, errors.OperationFailure) and error.code in _UNAVAILABLE


def is_unsent(error: Exception) -> bool:
    """Return whether the driver sent nothing, as the server was starting or becoming a secondary."""
    return type(error) is errors.ConfigurationError


# --- Whether the database responds ------------------------------------------------------------------------------------


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
            is_late = isinstance(error, TimeoutError) or (isinstance(error, errors.PyMongoError) and error.timeout)
            if not is_late or busy < self._interval:
                break
        if isinstance(error, TimeoutError) or (isinstance(error, Exception) and is_unavailable(error)):
            if not self.is_lost:
                reason = type(error).__name__
                log.warning("the database does not respond", reason=reason, interrupted=len(self._waiting))
            self.is_lost = True
            self._start_watching()  # it repeats the read, also if the check was of /readyz and no request is waiting
            for interruption in self._waiting:
                interruption.interrupt()
            self._waiting.clear()
        if error is not None:
            raise error
        if self.is_lost:
            self.is_lost = False
            log.info("the database responds again")

    async def _try_to_read(self) -> tuple[BaseException | None, float]:
        """Return the error of a read, TimeoutError if it takes too long, and the seconds this process was too busy."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            collection = self._db.get_collection("migrations", read_concern=ReadConcern("linearizable"))
            with pymongo.timeout(self._read_seconds):
                collection.find_one({"_id": 0})

        reading = loop.run_in_executor(self._thread, read)
        reading.add_done_callback(retrieve_failure)  # its outcome may come too late
        busy, tick = 0.0, self._read_seconds / _TICKS
        # The driver's own limit is not exact: it waits for a server for half a second more.
        end = loop.time() + self._read_seconds
        while not reading.done() and (began := loop.time()) < end:
            await asyncio.wait({reading}, timeout=tick)
            busy += max(0.0, loop.time() - began - tick)
        return reading.exception() if reading.done() else TimeoutError(), busy


# --- What the driver reports of its connections and commands, as metrics and as spans ---------------------------------


class CommandObserver(monitoring.CommandListener):
    """Measures the commands of a client, those excepted that wait for new documents on purpose."""

    def __init__(self, metrics: Metrics) -> None:
        self._seconds = {name: metrics.command_seconds.labels(name) for name in DATABASE_COMMANDS}
        self._other = self._seconds["other"]
        self._waiting: set[int] = set()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Remember the reads of change streams: only they limit the time of a getMore."""
        if event.command_name == "getMore" and "maxTimeMS" in event.command:
            self._waiting.add(event.request_id)

    def succeeded(self, event: monitoring.CommandSucceededEvent | monitoring.CommandFailedEvent) -> None:
        """Measure a command, also one that failed."""
        if event.request_id in self._waiting:
            self._waiting.discard(event.request_id)
            return
        self._seconds.get(event.command_name, self._other).observe(event.duration_micros / 1_000_000)

    failed = succeeded


class CommandTracer(monitoring.CommandListener):
    """Traces the commands of a client inside of other spans: their names and collections, not what they contain."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._running: dict[int, Span] = {}

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Begin a span with the name of the command and its collection."""
        if not get_current_span().get_span_context().is_valid:
            return
        title = name = event.command_name
        attributes = {"db.system.name": "mongodb", "db.operation.name": name}
        if isinstance(collection := event.command.get("collection" if name == "getMore" else name), str):
            title, attributes["db.collection.name"] = f"{name} {collection}", collection
        self._running[event.request_id] = self._tracer.start_span(title, kind=SpanKind.CLIENT, attributes=attributes)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """End the span."""
        if (span := self._running.pop(event.request_id, None)) is not None:
            span.end()

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """End the span with the code of the error: its message may quote values."""
        if (span := self._running.pop(event.request_id, None)) is not None:
            failure = event.failure
            fail(span, str(failure.get("codeName") or failure.get("code") or failure.get("errtype") or "unknown"))
            span.end()


class ConnectionObserver(monitoring.ConnectionPoolListener):
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

    def connection_created(self, event: monitoring.ConnectionCreatedEvent) -> None:
        """Count a connection that is being established."""
        self._open.add((event.address, event.connection_id))

    def connection_closed(self, event: monitoring.ConnectionClosedEvent) -> None:
        """Count a connection that was closed."""
        self._open.discard((event.address, event.connection_id))
        self._in_use.discard((event.address, event.connection_id))

    def connection_check_out_started(self, event: monitoring.ConnectionCheckOutStartedEvent) -> None:
        """Count an operation that needs a connection."""
        self._waiting.append(None)

    def connection_check_out_failed(self, event: monitoring.ConnectionCheckOutFailedEvent) -> None:
        """Count a command that failed without a reply."""
        self._waiting.pop()

    def connection_checked_out(self, event: monitoring.ConnectionCheckedOutEvent) -> None:
        """It got one."""
        self._waiting.pop()
        self._in_use.add((event.address, event.connection_id))

    def connection_checked_in(self, event: monitoring.ConnectionCheckedInEvent) -> None:
        """Count an operation that is over."""
        self._in_use.discard((event.address, event.connection_id))

    def pool_created(self, event: object) -> None:
        """Ignore what happens to the pool: the connections are reported as well."""

    pool_ready = pool_cleared = pool_closed = connection_ready = pool_created
