"""Making and listing backups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from coaching_service.command_line.admin.running import operator_name
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import console, with_services
from coaching_service.core.database.backup.creation import create_backup
from coaching_service.core.database.backup.encryption import Encryption
from coaching_service.core.database.backup.manifest import BackupError, Manifest, Report, count_documents
from coaching_service.core.database.backup.parts import PartWriter
from coaching_service.core.database.backup.stored import Retention, StoredBackups, prune
from coaching_service.core.database.backup.stores import open_store
from coaching_service.core.database.backup.storing import backing_up, create_stored_backup
from coaching_service.core.database.context import Services
from coaching_service.lifecycle.administration.backups import record_backup
from coaching_service.lifecycle.erasure import tombstones
from coaching_service.settings import Settings

_folder = click.Path(path_type=Path, file_okay=False)


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Report]:
    """Show a progress bar of documents on a terminal."""
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield lambda documents: bar.advance(task, documents)


def require_no_name(folder: str, name: str | None) -> None:
    """Raise BackupError if a backup of a store is named (`--at`), but the folder is one backup."""
    if name is not None:
        raise BackupError(f"{folder} is one backup: --at names one of a store")


@click.command()
@click.argument("folder", type=_folder, required=False)
@data_option
def backup(folder: Path | None, data: Path | None) -> None:
    """Back up the whole database while the service runs: to BACKUP_STORE, or to the new folder FOLDER.

    All of it is of one moment, with uploaded files and indexes, and is read again and compared. A backup in
    BACKUP_STORE, a folder or a bucket, copies only what earlier ones have not stored, is encrypted for
    BACKUP_RECIPIENTS, and older ones than BACKUP_KEEP_DAILY and BACKUP_KEEP_WEEKLY allow are deleted after it.
    FOLDER is not encrypted and appears when it is complete: a compressed file for each collection, and manifest.json.

    A backup contains personal data and hashes of passwords. It does NOT contain the master key, only its fingerprint.
    Without that key the API keys in it cannot be read: store SECRET_KEYS, or with the embedded database the file
    secret.key in the folder --data, in another place, with the private key of BACKUP_RECIPIENTS.

    \b
    Example, every night (docs/backup.md has more):
      BACKUP_STORE=s3://bucket/coaching coaching-service backup
      coaching-service backup /var/backups/coaching/2026-11-23
    """
    settings = settings_with(data)
    if folder is not None:
        _back_up_to_folder(settings, folder)
    elif settings.backup_store is not None:
        _back_up_to_store(settings, settings.backup_store)
    else:
        raise click.UsageError("Name a new FOLDER, or set BACKUP_STORE")


def _back_up_to_folder(settings: Settings, folder: Path) -> None:
    target = folder.absolute()

    async def work(services: Services) -> Manifest:
        with progress("Backing up", 2 * await _count(services)) as report:
            manifest = await create_backup(services, target, report)
        await record_backup(services, operator_name(), manifest)
        return manifest

    manifest = with_services(settings, work, prepares=False)
    size = sum(file.stat().st_size for file in folder.iterdir())
    click.echo(f"{folder}: {_describe(manifest)}, {size} bytes, master key {manifest['keyFingerprints'][0]}")


def _back_up_to_store(settings: Settings, location: str) -> None:
    store = open_store(location)
    retention = Retention(settings.backup_keep_daily, settings.backup_keep_weekly)

    async def work(services: Services) -> None:
        async with backing_up(services):
            await tombstones.write_missing(services, store)
            with progress("Backing up", await _count(services)) as report:
                writer = PartWriter(store, Encryption(settings.backup_recipients), report)
                name, manifest = await create_stored_backup(services, writer)
            await record_backup(services, operator_name(), manifest)
            click.echo(
                f"{location}: backup {name}, {_describe(manifest)}, copied {writer.copied} parts of "
                f"{writer.copied_bytes} bytes, master key {manifest['keyFingerprints'][0]}"
            )
            outdated, unused = prune(store, retention)
            if outdated or unused:
                click.echo(f"Deleted {outdated} older backups and {unused} unused parts")

    with_services(settings, work, prepares=False)


async def _count(services: Services) -> int:
    names = await services.db.list_collection_names()
    return sum([await services.db[name].estimated_document_count() for name in names])


def _describe(manifest: Manifest) -> str:
    return f"{count_documents(manifest)} documents of {len(manifest['collections'])} collections"


@click.command()
@click.argument("location", required=False)
def backups(location: str | None) -> None:
    """List the backups in LOCATION, a folder or s3://bucket/prefix; by default in BACKUP_STORE.

    Each line has the name of a backup, which is its time (UTC), its documents and their bytes, the version of the
    service, and the fingerprint of the master key that is needed to restore it.
    """
    location = location or settings_with().backup_store
    if location is None:
        raise click.UsageError("Name a LOCATION, or set BACKUP_STORE")
    stored = StoredBackups(open_store(location))
    names = stored.list_names()
    with progress("Reading", len(names)) as report:
        for name in names:
            manifest = stored.read(name)
            size = sum(entry["bytes"] for entry in manifest["collections"])
            click.echo(
                f"{name}  {count_documents(manifest)} documents  {size} bytes  {manifest['serviceVersion']}  "
                f"{manifest['keyFingerprints'][0]}"
            )
            report(1)
    if not names:
        click.echo(f"{location} has no backup", err=True)
