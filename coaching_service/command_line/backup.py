"""Making and restoring backups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from coaching_service import runtime
from coaching_service.command_line.admin.running import operator_name
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import console, with_services
from coaching_service.core.changes.numbering.sequencer import is_running
from coaching_service.core.database import migrations
from coaching_service.core.database.backup.creation import create_backup
from coaching_service.core.database.backup.manifest import (
    BackupError,
    Manifest,
    Report,
    count_documents,
    read_manifest,
    verify,
)
from coaching_service.core.database.backup.restoring import require_keys, require_known, restore_backup
from coaching_service.core.database.context import Services
from coaching_service.lifecycle.administration.backups import record_backup
from coaching_service.settings import Settings

_folder = click.Path(path_type=Path, file_okay=False)


@contextmanager
def _progress(title: str, total: int | None) -> Iterator[Report]:
    """A progress bar of documents on a terminal."""
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield lambda documents: bar.advance(task, documents)


@click.command()
@click.argument("folder", type=_folder)
@data_option
def backup(folder: Path, data: Path | None) -> None:
    """Back up the whole database to the new folder FOLDER, while the service runs.

    FOLDER gets a compressed file for each collection, uploaded files included, and manifest.json with their numbers of
    documents, SHA-256 and indexes. All of it is of one moment. It appears when it is complete, and was read again and
    compared: a folder that exists is a good backup. An interrupted one leaves at most a folder `.NAME.*.partial`.

    It contains personal data and hashes of passwords, so it is readable by you alone; store it encrypted. It does NOT
    contain the master key, only its fingerprint. Without that key the API keys in it cannot be read: store
    SECRET_KEYS, or with the embedded database the file secret.key in the folder --data, in another place.

    \b
    Example, every night (docs/backup.md has more):
      coaching-service backup /var/backups/coaching/2026-11-23
      coaching-service restore /var/backups/coaching/2026-11-23 --data /tmp/drill
    """

    target = folder.absolute()

    async def work(services: Services) -> Manifest:
        total = 0
        for name in await services.db.list_collection_names():
            total += await services.db[name].estimated_document_count()
        with _progress("Backing up", 2 * total) as report:
            manifest = await create_backup(services, target, report)
        await record_backup(services, operator_name(), manifest)
        return manifest

    manifest = with_services(settings_with(data), work, prepares=False)
    size = sum(file.stat().st_size for file in folder.iterdir())
    click.echo(
        f"{folder}: {count_documents(manifest)} documents of {len(manifest['collections'])} collections, {size} bytes, "
        f"master key {manifest['keyFingerprints'][0]}"
    )


@click.command()
@click.argument("folder", type=_folder)
@click.option("--replace", is_flag=True, help="Delete everything that the database has. Stop the service first.")
@click.option("--allow-missing-keys", is_flag=True, help="Restore although API keys and other secrets cannot be read.")
@data_option
def restore(folder: Path, replace: bool, allow_missing_keys: bool, data: Path | None) -> None:
    """Restore the backup in FOLDER, that `backup` has made, into an empty database.

    The service must not run. All files are compared with their SHA-256 first. Documents are stored under other names
    and take their places when all are complete, so that a failure before that changes nothing. Then missing indexes are
    created and migrations applied: a backup of an older version can be restored, one of a newer version is refused.

    It is refused if SECRET_KEYS, or secret.key in the folder --data, is not the master key of the backup. For a new
    embedded database, copy secret.key into the new folder first.

    \b
    Afterwards:
      coaching-service doctor      checks the restored data
      docs/backup.md               what to do about erasures, mail and keys since the backup
    """
    manifest = read_manifest(folder)
    require_known(manifest)
    settings = _with_keys_of(manifest, settings_with(data), allow_missing_keys=allow_missing_keys)
    total = count_documents(manifest)
    with _progress("Verifying", total) as report:
        verify(folder, manifest, report)

    async def work(services: Services) -> list[str]:
        if await is_running(services):
            raise BackupError("The service runs on this database: stop it, wait ten seconds, and restore again")
        with _progress("Restoring", total) as report:
            await restore_backup(services, folder, manifest, report, replacing=replace)
        await runtime.make_indexes(services)
        return await migrations.migrate(services.db, services.vault)

    applied = with_services(settings, work, prepares=False)
    click.echo(f"Restored {total} documents of {manifest['createdAt']} into {settings.mongodb_database}")
    if applied:
        click.echo(f"Applied: {', '.join(applied)}")


def _with_keys_of(manifest: Manifest, settings: Settings, *, allow_missing_keys: bool) -> Settings:
    """The settings with master keys. Raises BackupError if they are not those of the backup, before one is created."""
    key_file = settings.data_dir / "secret.key"
    is_new = settings.mongodb_uri is None and not settings.secret_keys and not key_file.exists()
    if is_new and not allow_missing_keys:
        raise BackupError(
            f"{key_file} is missing: copy the secret.key of the backed up service there, or set SECRET_KEYS"
        )
    settings = settings.with_secret_keys()
    if not allow_missing_keys:
        require_keys(manifest, settings.vault())
    return settings
