"""Opening what the service needs: the database, its collections and indexes, and the services of the process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.trace import Tracer

from coaching_service import subscriptions
from coaching_service.core.changes import log as change_log
from coaching_service.core.database import connection
from coaching_service.core.database.across_companies import store_now
from coaching_service.core.database.connection import CommandObserver, CommandTracer, ConnectionObserver
from coaching_service.core.database.context import Services
from coaching_service.core.media import StorageQuota
from coaching_service.core.metrics import Metrics
from coaching_service.core.open_id import ClientRegistration, OpenIdProvider
from coaching_service.core.outbound import OutboundClient, Relaxations
from coaching_service.core.slots import RequestSlots
from coaching_service.core.temporary_files import DiskSpace
from coaching_service.core.tracing import NO_TRACER, TracingUnusable, start_tracing
from coaching_service.installation import migrations
from coaching_service.installation.backup.stores import BackupError, open_store
from coaching_service.installation.embedded import running_mongod, shared_mongod
from coaching_service.installation.indexes import are_current, declared_indexes, ensure_indexes, record_current
from coaching_service.library.exercises import service as exercises
from coaching_service.people import audit_log
from coaching_service.settings import Settings, SettingsError

_LOCAL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - only to print an address that can be opened


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
    deadlines = connection.Deadlines(
        settings.database_timeout_seconds, settings.database_selection_seconds, settings.database_connect_seconds
    )
    try:
        observers: list[connection.EventListener] = []
        if settings.database_metrics:
            observers += [CommandObserver(metrics), ConnectionObserver(metrics)]
        if tracer is not NO_TRACER:
            observers.append(CommandTracer(tracer))
        client = connection.connect(settings.mongodb_uri or "", deadlines, observers)
    except connection.UnsafeUri as error:
        raise SettingsError(str(error)) from None
    except Exception:  # noqa: BLE001 - the driver has many errors for malformed URIs, and some quote the password
        raise SettingsError("MONGODB_URI is not an address of MongoDB, such as mongodb://host:27017") from None
    try:
        backup_store = open_store(settings.backup_store) if settings.backup_store else None
    except BackupError as error:
        raise SettingsError(f"BACKUP_STORE: {error}") from None
    services = Services(
        db=connection.database(client, settings.mongodb_database),
        vault=vault,
        base_url=address_of(settings),
        events=subscriptions.assemble(),
        mail_sender=settings.mail_sender(),
        change_log=change_log.write,
        registration=settings.accepts_registration(),
        disk_space=DiskSpace(settings.data_dir, settings.min_free_bytes if is_embedded else 0),
        invitations_per_day=settings.invitations_per_day,
        audit_days=settings.audit_days,
        archived_retention_months=settings.archived_retention_months,
        client_documents=settings.mcp_client_documents,
        upload_limits=settings.upload_limits(),
        storage_quota=StorageQuota(settings.max_files_per_company, settings.max_storage_bytes_per_company),
        sign_in_slot=RequestSlots(
            1, settings.request_queue_length, settings.request_queue_seconds, metrics.queue("sign_in")
        ),
        database_response_seconds=settings.database_response_seconds,
        outbound=OutboundClient(
            Relaxations(
                settings.webhooks_allow_http, settings.webhooks_allow_private, settings.webhooks_allow_loopback
            ),
            tracer=tracer,
        ),
        open_id=open_provider(settings, tracer),
        webhook_retry_seconds=settings.webhook_retry_seconds,
        metrics=metrics,
        tracer=tracer,
        backup_store=backup_store,
    )
    try:
        yield services
        for store in (exercises.store_counts, audit_log.store_pending):
            await store_now(services, store)
    finally:
        await services.outbound.close()
        if services.open_id is not None:
            await services.open_id.outbound.close()
        services.media_worker.close()
        services.monitor.close()
        client.close()
        await close_tracing()


def open_provider(settings: Settings, tracer: Tracer) -> OpenIdProvider | None:
    """Return the OpenID provider, which the operator has chosen: it may be in a private network."""
    if settings.oidc_issuer is None:
        return None
    registration = ClientRegistration(
        settings.oidc_issuer,
        settings.oidc_client_id or "",
        settings.oidc_client_secret or "",
        settings.oidc_name,
        f"{address_of(settings)}/auth/oidc/callback",
        settings.oidc_create,
    )
    return OpenIdProvider(registration, OutboundClient(Relaxations(private=True, loopback=True), tracer=tracer))


def address_of(settings: Settings) -> str:
    """Return the address clients use, without a trailing slash."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return settings.base_url or f"http://{_LOCAL_ADDRESSES.get(settings.host, host)}:{settings.port}"


async def require_collections(services: Services, settings: Settings) -> None:
    """Raise SettingsError if the database of the settings has no collections, so that it was never used."""
    if not await services.db.list_collection_names():
        server = connection.hosts_of(settings.mongodb_uri) if settings.mongodb_uri else settings.data_dir.absolute()
        raise SettingsError(
            f"The database {settings.mongodb_database} at {server} does not exist: check MONGODB_URI, "
            "MONGODB_DATABASE and --data"
        )


async def make_indexes(services: Services, *, compares: bool = False) -> list[str]:
    """Create missing indexes, and return the names of the collections; a new database is recorded as migrated.

    They are compared one by one if others were declared when they were created, or with `compares`. Raises
    SettingsError if the database does not support transactions, NewerDatabase, IndexConflict.
    """
    response = await services.db.command("hello")
    if "setName" not in response and response.get("msg") != "isdbgrid":  # a sharded cluster
        raise SettingsError(
            "MONGODB_URI names a MongoDB that is not a replica set and does not support transactions: "
            "start it with --replSet rs0, and run rs.initiate() in it once"
        )
    await migrations.require_known(services.db)
    declared = declared_indexes()
    if not compares and await are_current(services.db, declared):
        return list(declared)
    await migrations.record_new_database(services.db)
    names = await ensure_indexes(services.db, declared)
    await record_current(services.db, declared)
    return names
