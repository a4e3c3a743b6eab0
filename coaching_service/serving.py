"""Serving requests until the process is stopped: HTTP server, signals, and the time to stop."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Literal

import structlog
from aiohttp import web

from coaching_service import __version__, memory, runtime
from coaching_service.app import READINGS, create_app
from coaching_service.core.database.connection import UNAUTHORIZED, as_service_error, hosts_of, is_disk_full
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.errors import Unavailable
from coaching_service.documentation.operator_endpoints import metrics_handler
from coaching_service.http_server import Availability, ConnectionLimits, Runner, raise_descriptor_limit
from coaching_service.installation import migrations
from coaching_service.installation.embedded import kill_running
from coaching_service.installation.server_versions import read_version, remark_on
from coaching_service.people import api_keys, push
from coaching_service.settings import Settings, SettingsError, Sockets
from coaching_service.supervisor import SupervisorConnection, retire_seconds

log = structlog.get_logger("coaching_service")
_MAX_DRAIN_SECONDS = 5.0
_FORCED_EXIT_SECONDS = 2.0  # after SHUTDOWN_SECONDS; 3 are promised
_DATABASE_LOST_SECONDS = 2.5
_IDLE_SECONDS = 5.0  # after which a worker that is replaced closes a connection without a request


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
    opened: runtime.OpenedDatabase,
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
        services = await stack.enter_async_context(runtime.open_services(settings, is_embedded=opened.is_embedded))
        if supervisor is not None:
            services.metrics.add_others = supervisor.add_others
            following = supervisor.following(
                services.metrics.report, partial(stop.because, "retired"), partial(stop.because, "abandoned")
            )
            await stack.enter_async_context(following)
        prepares = supervisor is None or supervisor.instructions.prepares
        if prepares:
            log.info(
                "the service starts",
                version=__version__,
                python=platform.python_version(),
                database="embedded" if opened.is_embedded else "external",
                settings=settings.changed(),
            )
            if settings.smtp_host is None and not opened.is_embedded:
                folder = str(settings.data_dir / "mail")
                log.warning("mail is written to files and not sent: set SMTP_HOST", folder=folder)
        availability = Availability("starting")
        runner = await _start_runner(stack, create_app(settings, services, availability), settings)

        listen = partial(_listen, stack, runner, services, settings, sockets)
        prepare = partial(prepare_database, opened, services, availability, on_ready, prepares=prepares)
        if supervisor is None or supervisor.instructions.listens_at_once:
            await listen()

        async def join() -> None:
            await prepare()
            if supervisor is not None and not supervisor.instructions.listens_at_once:
                await listen()
            if supervisor is not None:
                supervisor.report_ready()

        preparation = asyncio.create_task(join())
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
    limits = ConnectionLimits(
        maximum=raise_descriptor_limit(settings.max_connections),
        per_address=None if settings.trusted_proxies else settings.max_connections_per_address,
        header_seconds=settings.header_timeout_seconds,
        keepalive_seconds=settings.keepalive_timeout_seconds,
    )
    runner = Runner(app, limits=limits, access_log=None, shutdown_timeout=timeout)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    return runner


def stop_without_database(reason: str) -> None:
    """Stop this process after its embedded database has ended by itself: as on SIGTERM, but at once."""
    log.error("the embedded database has ended by itself", reason=reason)
    _exit_after(_DATABASE_LOST_SECONDS, code=1)
    os.kill(os.getpid(), signal.SIGTERM)


# --- Preparing the database, and waiting for it and its migrations ----------------------------------------------------


_RETRY_SECONDS = 1.0


async def prepare_database(
    opened: runtime.OpenedDatabase,
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
                await runtime.make_indexes(services)
            await _wait_for_migrations(opened, services, availability)
            if prepares:
                version = await read_version(services)
                if (remark := remark_on(version, now().date())) is not None:
                    log.warning(remark.problem, version=version, advice=remark.advice)
                await _report_unreadable_keys(services)
                await push.ensure_key(services)
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


async def _wait_for_migrations(opened: runtime.OpenedDatabase, services: Services, availability: Availability) -> None:
    if opened.is_embedded:
        await migrations.migrate(services.db, services.vault)
    while pending := await migrations.find_pending(services.db):
        names = ", ".join(f"{step.number} {step.name}" for step in pending)
        availability.message = f"Migrations are pending: {names}; run: coaching-service migrate"
        log.warning("waiting for migrations", pending=names)
        await asyncio.sleep(_RETRY_SECONDS)


async def _report_unreadable_keys(services: Services) -> None:
    if unreadable := await api_keys.count_unreadable(services):
        log.error(
            "API keys are encrypted with master keys that are missing: they are refused until those are added to "
            "SECRET_KEYS, after the newest",
            keys_by_missing_fingerprint=dict(unreadable),
            configured_fingerprints=services.vault.fingerprints,
        )
