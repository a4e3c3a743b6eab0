"""The record of each successful backup and verification, and the age of the last one for the metrics."""

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

CREATED, VERIFIED = "backup.created", "backup.verified"
log = structlog.get_logger("coaching_service.backup")


async def record_backup(services: Services, operator: str, manifest: Manifest) -> None:
    """Record a backup that is complete, and at the place where it stays, as an action of the operator."""
    size = sum(collection["bytes"] for collection in manifest["collections"])
    moment, documents = manifest["createdAt"], count_documents(manifest)
    await _record(services, operator, CREATED, moment=moment, documents=documents, bytes=size)


async def record_verification(services: Services, operator: str, backups: int, size: int) -> None:
    """Record that all backups of a store were found complete, as an action of the operator."""
    await _record(services, operator, VERIFIED, moment=datetime.now(UTC).isoformat(), backups=backups, bytes=size)


async def _record(services: Services, operator: str, action: str, **details: str | int) -> None:
    """Record an action; without the permission to write, or without the database, log a warning: the backup is good."""
    try:
        await audit.record_operator(Context(services), operator, action, None, **details)
    except Exception as error:
        if (known := as_service_error(error)) is None:
            raise
        log.warning("not recorded: metrics show an older one", action=action, reason=known.message)


async def read_age(services: Services, action: str) -> float:
    """Return the seconds since the moment of the last action that is recorded; infinite if none is."""
    last = await audit.find_last_operator_action(services, action)
    if last is None:
        return inf
    moment = datetime.fromisoformat(cast("BackupRecord", last)["moment"])
    return (datetime.now(UTC) - moment).total_seconds()


async def read_metrics(services: Services) -> None:
    """Read the ages of the last backup and verification; not a number while the database does not respond."""
    for action, gauge in ((CREATED, services.metrics.backup_age), (VERIFIED, services.metrics.verify_age)):
        gauge.set(await reading_in_time(read_age(services, action), nan, action))
