"""Starting and stopping the service: database, HTTP server, preparation, signals."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import structlog
from aiohttp import web

from coaching_service import __version__, memory, subscriptions
from coaching_service.app import READINGS, create_app
from coaching_service.core.changes.log import StoredChangeLog
from coaching_service.core.database import migrations
from coaching_service.core.database.backup.manifest import BackupError
from coaching_service.core.database.backup.stores import Store, open_store
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
from coaching_service.core.database.documents import declared_collections, now
from coaching_service.core.database.embedded import kill_running, running_mongod
from coaching_service.core.database.indexes import are_current, ensure_indexes, record_current
from coaching_service.core.database.observation import CommandObserver, CommandTracer, ConnectionObserver
from coaching_service.core.database.server_versions import read_version, remark_on
from coaching_service.core.database.shared_mongod import shared_mongod
from coaching_service.core.disk_space import DiskSpace
from coaching_service.core.errors import Unavailable
from coaching_service.core.http.availability import Availability
from coaching_service.core.http.connections import ConnectionLimits, raise_descriptor_limit
from coaching_service.core.http.metrics import metrics_handler
from coaching_service.core.http.server import Runner
from coaching_service.core.media import StorageQuota
from coaching_service.core.metrics import Metrics
from coaching_service.core.outbound.client import OutboundClient
from coaching_service.core.slots import RequestSlots
from coaching_service.core.tracing import NO_TRACER, TracingUnusable, start_tracing
from coaching_service.core.worker_connection import SupervisorConnection, retire_seconds
from coaching_service.library.exercises import use_counts
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.push import keys as push_keys
from coaching_service.settings import Settings, SettingsError
from coaching_service.sockets import Sockets

log = structlog.get_logger("coaching_service")
_LOCAL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - only to print an address that can be opened
_RETRY_SECONDS = 1.0
_MAX_DRAIN_SECONDS = 5.0
_FORCED_EXIT_SECONDS = 2.0  # after SHUTDOWN_SECONDS; 3 are promised
_DATABASE_LOST_SECONDS = 2.5
_IDLE_SECONDS = 5.0  # after which a worker that is replaced closes a connection without a request


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

    `shared`: use the database of a service that is running on the same folder, if there is one. `on_end` is called with
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
        yield OpenedDatabase(settings.on_embedded(uri), is_embedded=True)


def stop_without_database(reason: str) -> None:
    """Stop this process after its embedded database has ended by itself: as on SIGTERM, but at once."""
    log.error("the embedded database has ended by itself", reason=reason)
    _exit_after(_DATABASE_LOST_SECONDS, code=1)
    os.kill(os.getpid(), signal.SIGTERM)


@asynccontextmanager
async def open_services(settings: Settings, *, is_embedded: bool = False) -> AsyncIterator[Services]:
    """The services of this process on the database of the settings, which may be the embedded one.

    Raises SettingsError if its URI cannot be used.
    """
    vault, metrics = settings.vault(), Metrics()
    metrics.watch_disk("data", settings.data_dir)
    metrics.watch_disk("temporary", Path(tempfile.gettempdir()))
    try:
        tracer, close_tracing = start_tracing(os.environ)
    except TracingUnusable as error:
        raise SettingsError(str(error)) from None
    try:
        observers: list[EventListener] = []
        if settings.database_metrics:
            observers += [CommandObserver(metrics), ConnectionObserver(metrics)]
        if tracer is not NO_TRACER:
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
        registration=settings.accepts_registration(),
        disk_space=DiskSpace(settings.data_dir, settings.min_free_bytes if is_embedded else 0),
        invitations_per_day=settings.invitations_per_day,
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
        backup_store=_open_backup_store(settings),
    )
    try:
        yield services
        await use_counts.store_counts(services)
    finally:
        await services.outbound.close()
        services.media_worker.close()
        services.monitor.close()
        client.close()
        await close_tracing()


def _open_backup_store(settings: Settings) -> Store | None:
    try:
        return open_store(settings.backup_store) if settings.backup_store else None
    except BackupError as error:
        raise SettingsError(f"BACKUP_STORE: {error}") from None


def address_of(settings: Settings) -> str:
    """Return the address clients use, without a trailing slash."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return settings.base_url or f"http://{_LOCAL_ADDRESSES.get(settings.host, host)}:{settings.port}"


async def require_collections(services: Services, settings: Settings) -> None:
    """Raise SettingsError if the database of the settings has no collections, so that it was never used."""
    if not await services.db.list_collection_names():
        server = hosts_of(settings.mongodb_uri) if settings.mongodb_uri else settings.data_dir.absolute()
        raise SettingsError(
            f"The database {settings.mongodb_database} at {server} does not exist: check MONGODB_URI, "
            "MONGODB_DATABASE and --data"
        )


async def make_indexes(services: Services, *, compares: bool = False) -> list[str]:
    """Create missing indexes, and return the names of the collections; a new database is recorded as migrated.

    They are compared one by one if others were declared when they were created, or with `compares`. Raises
    SettingsError if the database does not support transactions, NewerDatabase, IndexConflict.
    """
    if not await supports_transactions(services.db):
        raise SettingsError(
            "MONGODB_URI names a MongoDB that is not a replica set and does not support transactions: "
            "start it with --replSet rs0, and run rs.initiate() in it once"
        )
    await migrations.require_known(services.db)
    declared = {name: each.indexes for name, each in declared_collections().items()}
    if not compares and await are_current(services.db, declared):
        return list(declared)
    await migrations.record_new_database(services.db)
    names = await ensure_indexes(services.db, declared)
    await record_current(services.db, declared)
    return names


class _Stop:
    """When and how this process ends: on a signal, for a successor, or because its supervisor has ended."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.reason: Literal["signal", "retired", "abandoned"] = "signal"

    def because(self, reason: Literal["signal", "retired", "abandoned"]) -> None:
        """End for this reason, unless it has another one already."""
        if not self.event.is_set():
            self.reason = reason
            self.event.set()


async def serve(
    opened: OpenedDatabase,
    sockets: Sockets,
    on_ready: Callable[[Services], Awaitable[object]],
    supervisor: SupervisorConnection | None = None,
) -> None:
    """Serve on `sockets` until SIGINT or SIGTERM; a worker until its `supervisor` lets it end.

    Requests are answered from the start, with 503 until the database is prepared and `on_ready` has returned. A worker
    that replaces another, or joins others, accepts connections only then.
    """
    settings, stop = opened.settings, _Stop()
    _handle_signals(stop, is_worker=supervisor is not None)
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(settings, is_embedded=opened.is_embedded))
        if supervisor is not None:
            services.metrics.add_others = supervisor.add_others
            following = supervisor.following(
                services.metrics.report, partial(stop.because, "retired"), partial(stop.because, "abandoned")
            )
            await stack.enter_async_context(following)
        prepares = supervisor is None or supervisor.instructions.prepares
        if prepares:
            _log_start(opened)
        availability = Availability("starting")
        runner = await _start_runner(stack, create_app(settings, services, availability), settings)

        listen = partial(_listen, stack, runner, services, settings, sockets)
        prepare = partial(_prepare, opened, services, availability, on_ready, prepares=prepares)
        if supervisor is None or supervisor.instructions.listens_at_once:
            await listen()
        preparation = asyncio.create_task(prepare() if supervisor is None else _join(supervisor, prepare, listen))
        stopping = asyncio.create_task(stop.event.wait())
        await asyncio.wait((preparation, stopping), return_when=asyncio.FIRST_COMPLETED)
        if preparation.done():
            if preparation.exception() is not None:
                _exit_after(settings.shutdown_seconds + _FORCED_EXIT_SECONDS, 1)
            preparation.result()
            await stopping
        patience = retire_seconds(settings.shutdown_seconds) if stop.reason == "retired" else 0.0
        _exit_after(patience + settings.shutdown_seconds + _FORCED_EXIT_SECONDS)
        preparation.cancel()
        await asyncio.gather(preparation, return_exceptions=True)
        if stop.reason == "retired":  # others serve: this one is still ready
            await runner.answer_until_closed(_IDLE_SECONDS, patience, services.number_signals.end_waiting)
        else:
            availability.stop()
            runner.leave()
            await asyncio.sleep(_drain_seconds(settings) if stop.reason == "signal" else 0)


async def _join(
    supervisor: SupervisorConnection, prepare: Callable[[], Awaitable[None]], listen: Callable[[], Awaitable[None]]
) -> None:
    """Prepare, and accept connections as a worker among others."""
    await prepare()
    if not supervisor.instructions.listens_at_once:
        await listen()
    supervisor.report_ready()


def _handle_signals(stop: _Stop, *, is_worker: bool) -> None:
    """Stop on SIGTERM, and on SIGINT unless a supervisor gets it too; SIGHUP must not end the process."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.because, "signal")
    if is_worker:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return
    loop.add_signal_handler(signal.SIGINT, stop.because, "signal")
    if sys.stdin is None or not sys.stdin.isatty():  # closing a terminal sends it too, and ends the service
        message = "SIGHUP is ignored: one process cannot replace itself; restart the service, or use --workers 2"
        loop.add_signal_handler(signal.SIGHUP, log.warning, message)


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
    """Return how long /readyz reports the stop before the port closes: a quarter of the time to stop."""
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


async def _listen(
    stack: AsyncExitStack, runner: Runner, services: Services, settings: Settings, sockets: Sockets
) -> None:
    """Accept connections, also for the metrics if they have a port of their own."""
    await web.SockSite(runner, sockets.api, backlog=1024).start()
    if sockets.metrics is None:
        return
    metrics_app = web.Application()
    metrics_app.router.add_get("/metrics", metrics_handler(services, READINGS))
    await web.SockSite(await _start_runner(stack, metrics_app, settings), sockets.metrics).start()


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
    on_ready: Callable[[Services], Awaitable[object]],
    *,
    prepares: bool,
) -> None:
    """Prepare the database, waiting for it as long as it takes, then accept requests.

    Without `prepares` another worker has done so, and only migrations are waited for.
    """
    while True:
        try:
            if prepares:
                await make_indexes(services)
            await _wait_for_migrations(opened, services, availability)
            if prepares:
                await _report_server_version(services)
                await _report_unreadable_keys(services)
                await push_keys.ensure(services)
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
    memory.settle()
    availability.ready.set()


async def _wait_for_migrations(opened: OpenedDatabase, services: Services, availability: Availability) -> None:
    if opened.is_embedded:
        await migrations.migrate(services.db, services.vault)
    while pending := await migrations.find_pending(services.db):
        names = ", ".join(f"{step.number} {step.name}" for step in pending)
        availability.message = f"Migrations are pending: {names}; run: coaching-service migrate"
        log.warning("waiting for migrations", pending=names)
        await asyncio.sleep(_RETRY_SECONDS)


async def _report_server_version(services: Services) -> None:
    version = await read_version(services)
    if (remark := remark_on(version, now().date())) is not None:
        log.warning(remark.problem, version=version, advice=remark.advice)


async def _report_unreadable_keys(services: Services) -> None:
    if unreadable := await api_keys.count_unreadable(services):
        log.error(
            "API keys are encrypted with master keys that are missing: they are refused until those are added to "
            "SECRET_KEYS, after the newest",
            keys_by_missing_fingerprint=dict(unreadable),
            configured_fingerprints=services.vault.fingerprints,
        )
