"""The record of each successful backup, and the age of the last one for the metrics."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf, nan
from typing import cast

import structlog

from coaching_service.core import audit
from coaching_service.core.database.backup.manifest import Manifest, count_documents
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context, Services
from coaching_service.core.metrics import reading_in_time
from coaching_service.lifecycle.administration.models import BackupRecord

CREATED = "backup.created"
log = structlog.get_logger("coaching_service.backup")


async def record_backup(services: Services, operator: str, manifest: Manifest) -> None:
    """Record a backup that is complete, and at the place where it stays, as an action of the operator.

    Without the permission to write, or without the database, it logs a warning: the backup is a good one.
    """
    size = sum(collection["bytes"] for collection in manifest["collections"])
    moment, documents = manifest["createdAt"], count_documents(manifest)
    try:
        await audit.record_operator(
            Context(services), operator, CREATED, moment=moment, documents=documents, bytes=size
        )
    except Exception as error:
        if (known := as_service_error(error)) is None:
            raise
        log.warning("the backup is complete, but not recorded: metrics show an older one", reason=known.message)


async def read_age(services: Services) -> float:
    """Return the seconds since the moment that the last recorded backup shows; infinite if none is recorded."""
    last = await audit.find_last_operator_action(services, CREATED)
    if last is None:
        return inf
    moment = datetime.fromisoformat(cast("BackupRecord", last)["moment"])
    return (datetime.now(UTC) - moment).total_seconds()


async def read_metrics(services: Services) -> None:
    """Read the age of the last backup; not a number while the database does not respond."""
    services.metrics.backup_age.set(await reading_in_time(read_age(services), nan, "last backup"))
