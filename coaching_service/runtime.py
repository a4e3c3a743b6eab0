"""Bringing the service up and down: database, indexes, listening, signals."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import structlog
from aiohttp import web

from coaching_service import subscriptions
from coaching_service.app import HTTP_METRICS, create_app
from coaching_service.core.database.connection import connect, database, ensure_indexes, supports_transactions
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.database.embedded import running_mongod
from coaching_service.core.http.operator_endpoints import metrics_handler
from coaching_service.core.http.server import Runner
from coaching_service.people.api_keys import service as api_keys
from coaching_service.settings import Settings, SettingsError

log = structlog.get_logger("coaching_service")
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - only to name an address one can open


@contextmanager
def database_for(settings: Settings, on_end: Callable[[], None] | None = None) -> Iterator[Settings]:
    """The settings with keys and a database: the one they name, or the embedded one, running while this is open.

    `on_end` is called when the embedded one ends by itself.
    """
    settings = settings.with_secret_keys()
    if settings.mongodb_uri is not None:
        yield settings
        return
    with running_mongod(settings.data_dir, on_end=on_end) as uri:
        yield settings.model_copy(update={"mongodb_uri": uri})


def stop_serving() -> None:
    """Stop as if told to: nothing can be done without the database; whoever started the service starts both anew."""
    os.kill(os.getpid(), signal.SIGTERM)


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """The services of this process on the settings' database."""
    vault = settings.vault()
    try:
        client = connect(settings.mongodb_uri or "")
    except Exception:  # noqa: BLE001 - the driver refuses an address in many ways, some of which quote its password
        raise SettingsError("MONGODB_URI is not an address of MongoDB, such as mongodb://host:27017") from None
    services = Services(
        db=database(client, settings.mongodb_database),
        vault=vault,
        base_url=address_of(settings),
        events=subscriptions.assemble(),
        mail_sender=settings.mail_sender(),
        registration=settings.registration,
    )
    try:
        yield services
    finally:
        services.image_processor.close()
        client.close()


def address_of(settings: Settings) -> str:
    """The address clients know the service by, without a trailing slash."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return settings.base_url or f"http://{_ANYWHERE.get(settings.host, host)}:{settings.port}"


async def make_indexes(services: Services) -> list[str]:
    """Make every declared index that is missing; gives the names of the collections.

    Raises SettingsError when the database takes no transactions.
    """
    if not await supports_transactions(services.db):
        raise SettingsError(
            "MONGODB_URI names a MongoDB that is no replica set and takes no transactions: "
            "start it with --replSet rs0, and run rs.initiate() in it once"
        )
    return await ensure_indexes(services.db, {name: each.indexes for name, each in declared_collections().items()})


def listen_on(settings: Settings) -> tuple[socket.socket, Settings]:
    """A bound socket, and the settings with the port it has (0 becomes a free one).

    Raises SettingsError when the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        bound = socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        raise _cannot_listen(settings.host, settings.port, error, "--host or --port") from None
    return bound, settings.model_copy(update={"port": bound.getsockname()[1]})


def _cannot_listen(host: str, port: int, error: OSError, setting: str) -> SettingsError:
    # The libraries put the address into their text; only a name that does not resolve has no text of the system's.
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return SettingsError(f"Cannot listen on {host}:{port} ({reason}): choose another with {setting}")


async def serve(settings: Settings, bound: socket.socket, started: Callable[[Services], Awaitable[None]]) -> None:
    """Serve on `bound` until SIGINT or SIGTERM. `started` is called once requests are being answered."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(settings))
        await make_indexes(services)
        await _tell_of_unreadable_keys(services)
        app = create_app(settings, services)
        runner = await _running(stack, app, settings)
        await web.SockSite(runner, bound).start()
        if settings.metrics_port is not None:
            beside = web.Application()
            beside.router.add_get("/metrics", metrics_handler(app[HTTP_METRICS]))
            try:
                await web.TCPSite(await _running(stack, beside, settings), settings.host, settings.metrics_port).start()
            except OSError as error:
                raise _cannot_listen(settings.host, settings.metrics_port, error, "METRICS_PORT") from None
        # What start-up made stays: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        await started(services)
        await stop.wait()


async def _tell_of_unreadable_keys(services: Services) -> None:
    if unreadable := await api_keys.count_unreadable(services):
        log.error(
            "API keys are sealed under a master key that is not there: they are refused until it is put back into "
            "SECRET_KEYS, after the newest",
            keys=unreadable,
        )


async def _running(stack: AsyncExitStack, app: web.Application, settings: Settings) -> Runner:
    runner = Runner(app, access_log=None, shutdown_timeout=settings.shutdown_seconds)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    return runner
