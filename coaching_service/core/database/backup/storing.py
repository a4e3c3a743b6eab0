"""Making a backup in a store: parts that the store does not have yet, then the manifest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coaching_service.core.auth.secrets import new_token
from coaching_service.core.background import running_in_background
from coaching_service.core.database import leases
from coaching_service.core.database.backup.creation import read_moment
from coaching_service.core.database.backup.manifest import PARTS_VERSION, BackupError, Manifest
from coaching_service.core.database.backup.parts import PartWriter, named_parts, part_names
from coaching_service.core.database.backup.stored import StoredBackups
from coaching_service.core.database.context import Services

_LEASE = "backup"
_RENEWAL_SECONDS = leases.LEASE.total_seconds() / 4


async def create_stored_backup(services: Services, writer: PartWriter) -> tuple[str, Manifest]:
    """Store a backup, and return its name and manifest.

    Each new part is read again and compared. The manifest is stored last, when the store has all parts. Raises
    BackupError if the store cannot be used or has lost a part, or the database no longer has the moment.
    """
    writer.digests = await asyncio.to_thread(_read_digests, writer)
    await asyncio.to_thread(writer.find_stored)
    manifest = await read_moment(services, writer.write)
    manifest["version"] = PARTS_VERSION
    manifest["recipients"] = list(writer.encryption.recipients)
    await asyncio.to_thread(_require_parts, writer, manifest)
    return await asyncio.to_thread(StoredBackups(writer.store).write, manifest, services.vault), manifest


def _read_digests(writer: PartWriter) -> dict[str, str]:
    """Return what the newest backup says that the store has."""
    newest = StoredBackups(writer.store).read_newest()
    return {name: part["stored"] for name, part in named_parts(newest) if "stored" in part} if newest else {}


def _require_parts(writer: PartWriter, manifest: Manifest) -> None:
    present = writer.find_stored()
    if missing := set(part_names(manifest)) - present:
        raise BackupError(f"{writer.store.location} has lost {len(missing)} parts meanwhile: try again")


@asynccontextmanager
async def backing_up(services: Services) -> AsyncIterator[None]:
    """Let no other process use the store of backups of this database. Raises BackupError if one does."""
    holder = new_token()
    if not await leases.acquire(services, _LEASE, holder):
        raise BackupError("Another backup of this database is being made: wait until it ends")

    async def renew() -> None:
        while True:
            await asyncio.sleep(_RENEWAL_SECONDS)
            await leases.acquire(services, _LEASE, holder)

    try:
        async with running_in_background(renew):
            yield
    finally:
        await leases.release(services, _LEASE, holder)
