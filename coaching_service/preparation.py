"""Preparing the database of the service, and waiting for it and its migrations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from coaching_service import memory, runtime
from coaching_service.core.database import migrations
from coaching_service.core.database.connection import UNAUTHORIZED, as_service_error, hosts_of, is_disk_full
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.database.server_versions import read_version, remark_on
from coaching_service.core.errors import Unavailable
from coaching_service.core.http.server import Availability
from coaching_service.people import api_keys
from coaching_service.people import push as push_keys
from coaching_service.settings import SettingsError

log = structlog.get_logger("coaching_service")
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
                await _report_server_version(services)
                await _report_unreadable_keys(services)
                await push_keys.ensure_key(services)
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
