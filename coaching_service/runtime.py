"""Starting and stopping the service: database, HTTP server, preparation, signals."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
from aiohttp import web

from coaching_service import __version__, subscriptions
from coaching_service.app import READINGS, SERVICES, create_app
from coaching_service.core.changes.log import StoredChangeLog
from coaching_service.core.database import migrations
from coaching_service.core.database.connection import (
    UNAUTHORIZED,
    EventListener,
    UnsafeUri,
    as_service_error,
    connect,
    database,
    hosts_of,
    is_disk_full,
    supports_transactions,
)
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.database.embedded import kill_running, running_mongod
from coaching_service.core.database.indexes import ensure_indexes
from coaching_service.core.database.observation import CommandObserver, CommandTracer, ConnectionObserver
from coaching_service.core.database.shared_mongod import shared_mongod
from coaching_service.core.errors import Unavailable
from coaching_service.core.http.availability import Availability
from coaching_service.core.http.connections import ConnectionLimits, raise_descriptor_limit
from coaching_service.core.http.metrics import metrics_handler
from coaching_service.core.http.server import Runner
from coaching_service.core.media import StorageQuota
from coaching_service.core.metrics import Metrics
from coaching_service.core.outbound.client import OutboundClient
from coaching_service.core.slots import RequestSlots
from coaching_service.core.tracing import TracingUnusable, make_tracer
from coaching_service.people.api_keys import service as api_keys
from coaching_service.settings import Settings, SettingsError

log = structlog.get_logger("coaching_service")
_LOCAL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - only to print an address that can be opened
_RETRY_SECONDS = 1.0
_MAX_DRAIN_SECONDS = 5.0
_FORCED_EXIT_SECONDS = 2.0  # after SHUTDOWN_SECONDS; 3 are promised
_DATABASE_LOST_SECONDS = 2.5


@dataclass(frozen=True)
class OpenedDatabase:
    """Settings with a database and master keys, and whether the database is the embedded one."""

    settings: Settings
    is_embedded: bool


@contextmanager
def open_database(
    settings: Settings, on_end: Callable[[str], None] | None = None, *, shared: bool = False
) -> Iterator[OpenedDatabase]:
    """Start the embedded database while the context is open, unless the settings name another one.

    `shared`: the one of a service that is running on the same folder is used, if there is one. `on_end` is called with
    the reason when the embedded database ends by itself. Raises SettingsError if the secret keys are missing or
    malformed, before a database is created.
    """
    settings = settings.with_secret_keys()
    settings.vault()
    if settings.mongodb_uri is not None:
        yield OpenedDatabase(settings, is_embedded=False)
        return
    mongod = shared_mongod(settings.data_dir) if shared else running_mongod(settings.data_dir, on_end=on_end)
    with mongod as uri:
        yield OpenedDatabase(settings.model_copy(update={"mongodb_uri": uri}), is_embedded=True)


def stop_without_database(reason: str) -> None:
    """Stop this process after its embedded database has ended by itself: as on SIGTERM, but at once."""
    log.error("the embedded database has ended by itself", reason=reason)
    _exit_after(_DATABASE_LOST_SECONDS, code=1)
    os.kill(os.getpid(), signal.SIGTERM)


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """The services of this process on the database of the settings. Raises SettingsError if its URI cannot be used."""
    vault, metrics = settings.vault(), Metrics()
    metrics.watch_disk("data", settings.data_dir)
    metrics.watch_disk("temporary", Path(tempfile.gettempdir()))
    try:
        tracer = make_tracer(os.environ)
    except TracingUnusable as error:
        raise SettingsError(str(error)) from None
    try:
        observers: list[EventListener] = []
        if settings.database_metrics:
            observers += [CommandObserver(metrics), ConnectionObserver(metrics)]
        if tracer.is_on:
            observers.append(CommandTracer(tracer))
        client = connect(settings.mongodb_uri or "", settings.deadlines(), observers)
    except UnsafeUri as error:
        raise SettingsError(str(error)) from None
    except Exception:  # noqa: BLE001 - the driver has many errors for malformed URIs, and some quote the password
        raise SettingsError("MONGODB_URI is not an address of MongoDB, such as mongodb://host:27017") from None
    services = Services(
        db=database(client, settings.mongodb_database),
        vault=vault,
        base_url=address_of(settings),
        events=subscriptions.assemble(),
        mail_sender=settings.mail_sender(),
        change_log=StoredChangeLog(),
        registration=settings.registration,
        client_documents=settings.mcp_client_documents,
        upload_limits=settings.upload_limits(),
        storage_quota=StorageQuota(settings.max_files_per_company, settings.max_storage_bytes_per_company),
        sign_in_slot=RequestSlots(
            1, settings.request_queue_length, settings.request_queue_seconds, metrics.queue("sign_in")
        ),
        database_response_seconds=settings.database_response_seconds,
        outbound=OutboundClient(settings.outbound_relaxations(), tracer=tracer),
        webhook_retry_seconds=settings.webhook_retry_seconds,
        metrics=metrics,
        tracer=tracer,
    )
    try:
        yield services
    finally:
        await services.outbound.close()
        services.image_processor.close()
        services.monitor.close()
        client.close()
        await tracer.close()


def address_of(settings: Settings) -> str:
    """The address clients use, without a trailing slash."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return settings.base_url or f"http://{_LOCAL_ADDRESSES.get(settings.host, host)}:{settings.port}"


async def make_indexes(services: Services) -> list[str]:
    """Create missing indexes, and return the names of the collections; a new database is recorded as migrated.

    Raises SettingsError if the database does not support transactions, NewerDatabase, IndexConflict.
    """
    if not await supports_transactions(services.db):
        raise SettingsError(
            "MONGODB_URI names a MongoDB that is not a replica set and does not support transactions: "
            "start it with --replSet rs0, and run rs.initiate() in it once"
        )
    await migrations.require_known(services.db)
    await migrations.record_new_database(services.db)
    return await ensure_indexes(services.db, {name: each.indexes for name, each in declared_collections().items()})


def bind(settings: Settings) -> tuple[socket.socket, Settings]:
    """Reserve the port, and return the socket with the settings that have the port (0 becomes a free one).

    The socket does not accept connections yet. Raises SettingsError if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((settings.host, settings.port))
    except OSError as error:
        bound.close()
        raise _cannot_listen(settings.host, settings.port, error, "--host or --port") from None
    return bound, settings.model_copy(update={"port": bound.getsockname()[1]})


def _cannot_listen(host: str, port: int, error: OSError, setting: str) -> SettingsError:
    # asyncio puts the address into its message, and only a name that does not resolve has no error number.
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return SettingsError(f"Cannot listen on {host}:{port} ({reason}): choose another with {setting}")


async def serve(opened: OpenedDatabase, bound: socket.socket, on_ready: Callable[[Services], Awaitable[None]]) -> None:
    """Serve on `bound` until SIGINT or SIGTERM.

    Requests are answered from the start, with 503 until the database is prepared and `on_ready` has returned.
    """
    settings = opened.settings
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(settings))
        _log_start(opened)
        availability = Availability("starting")
        app = create_app(settings, services, availability)
        await _listen(stack, app, settings, bound)
        preparation = asyncio.create_task(_prepare(opened, services, availability, on_ready))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((preparation, stopping), return_when=asyncio.FIRST_COMPLETED)
        if preparation.done():
            preparation.result()
            await stopping
        _exit_after(settings.shutdown_seconds + _FORCED_EXIT_SECONDS)
        availability.stop()
        preparation.cancel()
        await asyncio.gather(preparation, return_exceptions=True)
        await asyncio.sleep(_drain_seconds(settings))


def _log_start(opened: OpenedDatabase) -> None:
    settings = opened.settings
    log.info(
        "the service starts",
        version=__version__,
        python=platform.python_version(),
        database="embedded" if opened.is_embedded else "external",
        settings=settings.changed(),
    )
    if settings.smtp_host is None and not opened.is_embedded:
        log.warning("mail is written to files and not sent: set SMTP_HOST", folder=str(settings.data_dir / "mail"))


def _drain_seconds(settings: Settings) -> float:
    """How long /readyz reports the stop before the port closes: a quarter of the time to stop."""
    return min(settings.shutdown_seconds / 4, _MAX_DRAIN_SECONDS)


def _exit_after(seconds: float, code: int = 0) -> None:
    """End the process if stopping takes longer: threads that wait for a frozen database cannot be interrupted."""

    def force_exit() -> None:
        log.error("stopping took too long; exiting")
        kill_running()
        os._exit(code)

    timer = threading.Timer(seconds, force_exit)
    timer.daemon = True
    timer.start()


async def _listen(stack: AsyncExitStack, app: web.Application, settings: Settings, bound: socket.socket) -> None:
    """Start the HTTP server, and that of the metrics if it has a port of its own."""
    await web.SockSite(await _start_runner(stack, app, settings), bound, backlog=1024).start()
    if settings.metrics_port is None:
        return
    metrics_app = web.Application()
    metrics_app.router.add_get("/metrics", metrics_handler(app[SERVICES], READINGS))
    runner = await _start_runner(stack, metrics_app, settings)
    try:
        await web.TCPSite(runner, settings.host, settings.metrics_port).start()
    except OSError as error:
        raise _cannot_listen(settings.host, settings.metrics_port, error, "METRICS_PORT") from None


async def _start_runner(stack: AsyncExitStack, app: web.Application, settings: Settings) -> Runner:
    timeout = settings.shutdown_seconds - _drain_seconds(settings)
    runner = Runner(app, limits=_connection_limits(settings), access_log=None, shutdown_timeout=timeout)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    return runner


def _connection_limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        maximum=raise_descriptor_limit(settings.max_connections),
        per_address=None if settings.trusted_proxies else settings.max_connections_per_address,
        header_seconds=settings.header_timeout_seconds,
        keepalive_seconds=settings.keepalive_timeout_seconds,
    )


async def _prepare(
    opened: OpenedDatabase,
    services: Services,
    availability: Availability,
    on_ready: Callable[[Services], Awaitable[None]],
) -> None:
    """Prepare the database, waiting for it as long as it takes, then accept requests."""
    while True:
        try:
            await _prepare_once(opened, services, availability)
            await on_ready(services)
        except Exception as error:  # only the loss of the database is not raised
            if opened.is_embedded and is_disk_full(error):
                folder = opened.settings.data_dir
                message = f"The disk of {folder} is full: free space on it, or choose another folder with --data."
                raise SettingsError(message) from None
            if getattr(error, "code", None) in UNAUTHORIZED or not isinstance(as_service_error(error), Unavailable):
                raise
            host = hosts_of(opened.settings.mongodb_uri or "")
            log.warning("waiting for the database", host=host, reason=type(error).__name__)
            availability.message = "The database cannot be reached; the service waits for it"
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            break
    # Objects created at start live as long as the process: the garbage collector need not examine them again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    availability.ready.set()


async def _prepare_once(opened: OpenedDatabase, services: Services, availability: Availability) -> None:
    await make_indexes(services)
    if opened.is_embedded:
        await migrations.migrate(services.db, services.vault)
    while pending := await migrations.find_pending(services.db):
        names = ", ".join(f"{step.number} {step.name}" for step in pending)
        availability.message = f"Migrations are pending: {names}; run: coaching-service migrate"
        log.warning("waiting for migrations", pending=names)
        await asyncio.sleep(_RETRY_SECONDS)
    await _report_unreadable_keys(services)


async def _report_unreadable_keys(services: Services) -> None:
    if unreadable := await api_keys.count_unreadable(services):
        log.error(
            "API keys are encrypted with master keys that are missing: they are refused until those are added to "
            "SECRET_KEYS, after the newest",
            keys_by_missing_fingerprint=dict(unreadable),
            configured_fingerprints=services.vault.fingerprints,
        )
