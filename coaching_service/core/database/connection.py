"""The connection to MongoDB, the declaration of indexes, and the service errors for failures of the driver."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pymongo
import structlog
from bson import CodecOptions
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)
from pymongo.monitoring import CommandListener, ConnectionPoolListener
from pymongo.read_concern import ReadConcern

from coaching_service.core.database.outcome import WriteObserver
from coaching_service.core.errors import BadRequest, Conflict, ServiceError, Unavailable

if TYPE_CHECKING:
    from coaching_service.core.database.context import Database

EventListener = CommandListener | ConnectionPoolListener
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

    def options(self) -> dict[str, int]:
        """Return the driver's options, in milliseconds."""
        seconds = {
            "timeoutMS": self.operation,
            "serverSelectionTimeoutMS": self.selection,
            "connectTimeoutMS": self.connection,
            "heartbeatFrequencyMS": 1.0,
        }
        return {name: round(value * 1000) for name, value in seconds.items()}


class UnsafeUri(Exception):
    """The URI of the database has an option with which acknowledged writes can be lost; the message names it."""


def connect(uri: str, deadlines: Deadlines | None = None, listeners: Sequence[EventListener] = ()) -> Client:
    """Create a client of the database at `uri`; it connects when it is first used. `listeners` observe it.

    Writes are acknowledged by a majority, reads return what a majority has, and both are retried once. Raises UnsafeUri
    if an option of the URI weakens that, and errors of the driver if the URI is malformed.
    """
    options = dict(parse_qsl(uri.partition("?")[2]))
    _refuse_unsafe({name.lower(): value for name, value in options.items()})
    given = {name.lower() for name in options}
    defaults = (deadlines or Deadlines()).options()
    timeouts: dict[str, Any] = {name: value for name, value in defaults.items() if name.lower() not in given}
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


def _refuse_unsafe(options: dict[str, str]) -> None:
    """Raise UnsafeUri for options with which a failover loses acknowledged writes, or reads return old data."""
    safe = {"w": "majority", "journal": "true", "readpreference": "primary", "readconcernlevel": "majority"}
    for name, value in safe.items():
        if options.get(name, value).lower() != value:
            raise UnsafeUri(
                f"MONGODB_URI sets {name}={options[name]}, with which a failover loses acknowledged writes or reads "
                f"return old data: remove it"
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


async def supports_transactions(db: Database) -> bool:
    """Return whether the database is a replica set or a sharded cluster, which support transactions."""
    response = await db.command("hello")
    return "setName" in response or response.get("msg") == "isdbgrid"


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
    if not isinstance(error, OperationFailure):
        return False
    return error.code == _OUT_OF_DISK_SPACE or os.strerror(errno.ENOSPC) in str(error)


def is_write_conflict(error: BaseException) -> bool:
    """Return whether another transaction has written the same document."""
    return isinstance(error, OperationFailure) and error.code == WRITE_CONFLICT


def as_service_error(error: Exception) -> ServiceError | None:
    """Return the service error for a failure of the driver, `error` if it is one, or None if it is unexpected."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, DocumentTooLarge):
        return BadRequest("The record would grow larger than the service stores; split it")
    if is_unavailable(error):
        return too_slow() if is_late(error) else unreachable()
    if isinstance(error, OperationFailure) and error.code in UNAUTHORIZED:
        log.error("the database refuses the user name and password in MONGODB_URI, or that user lacks permissions")
        return Unavailable("The database rejects the service; contact its operator")
    if is_disk_full(error):
        log.error("the disk of the database is full")
        return Unavailable("The database has no space left; contact its operator")
    if is_write_conflict(error):
        return Conflict("Another request is changing the same record; read it again and retry", code="WRITE_CONFLICT")
    if isinstance(error, PyMongoError) and error.has_error_label("TransientTransactionError"):
        return Unavailable("The database was busy; try again shortly")
    return None


def unreachable() -> Unavailable:
    """Return the error of a request that needs the database while it does not respond."""
    return Unavailable("The database cannot be reached; try again shortly")


def too_slow() -> Unavailable:
    """Return the error of a request that took too long while the service, or the database, was busy."""
    return Unavailable("The service is busy; try again shortly")


def is_late(error: Exception) -> bool:
    """Return whether an operation reached its deadline: the database may respond, and this process was busy."""
    return isinstance(error, PyMongoError) and error.timeout and not isinstance(error, ServerSelectionTimeoutError)


def is_unavailable(error: Exception) -> bool:
    """Return whether the database did not respond, or not as a primary with a majority."""
    if isinstance(error, ConnectionFailure | ExecutionTimeout | WriteConcernError) or is_unsent(error):
        return True
    return isinstance(error, OperationFailure) and (error.code in _UNAVAILABLE or _is_interrupted_bulk(error))


def is_unsent(error: Exception) -> bool:
    """Return whether the driver sent nothing, as the server was starting or becoming a secondary."""
    return type(error) is ConfigurationError


def _is_interrupted_bulk(error: OperationFailure) -> bool:
    """Return whether a bulk write was carried out but not acknowledged by a majority, or ended by such an error."""
    if not isinstance(error, BulkWriteError):
        return False
    details = error.details or {}
    refused = [each["code"] for each in details.get("writeErrors", ())]
    return bool(details.get("writeConcernErrors")) or (bool(refused) and _UNAVAILABLE.issuperset(refused))
