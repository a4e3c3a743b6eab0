"""Restoring backups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from coaching_service import runtime
from coaching_service.command_line.admin.running import operator_name
from coaching_service.command_line.backup import progress, read_folder
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import with_services
from coaching_service.core.changes.numbering.sequencer import is_running
from coaching_service.core.database import migrations
from coaching_service.core.database.backup.encryption import Decryption
from coaching_service.core.database.backup.manifest import BackupError, Manifest, count_documents
from coaching_service.core.database.backup.parts import PartReader
from coaching_service.core.database.backup.restoring import (
    Source,
    documents_in,
    require_keys,
    require_known,
    restore_backup,
)
from coaching_service.core.database.backup.stored import StoredBackups, require_signature
from coaching_service.core.database.backup.stores import Store, is_own_folder, open_store
from coaching_service.core.database.context import Services
from coaching_service.lifecycle import erasure
from coaching_service.lifecycle.administration import Operator
from coaching_service.lifecycle.erasure import Repetition, Tombstone, repeat_erasures
from coaching_service.settings import Settings


@dataclass(frozen=True)
class _Backup:
    """A backup that can be restored; `store` has it, if it is not in a folder of an earlier version."""

    manifest: Manifest
    documents: Source  # compares each part when it is read, before anything takes the place of what the database has
    store: Store | None


@click.command()
@click.argument("source")
@click.option("--at", "name", metavar="NAME", help="The backup of a store, as `backups` lists it [the newest].")
@click.option(
    "--identity",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the private key of an encrypted backup.",
)
@click.option(
    "--erasures",
    metavar="LOCATION",
    help="Folder or s3://bucket/prefix with the list of erasures [SOURCE, or BACKUP_STORE].",
)
@click.option("--replace", is_flag=True, help="Delete everything that the database has. Stop the service first.")
@click.option("--allow-missing-keys", is_flag=True, help="Restore although API keys and other secrets cannot be read.")
@data_option
def restore(
    source: str,
    name: str | None,
    identity: Path | None,
    erasures: str | None,
    replace: bool,
    allow_missing_keys: bool,
    data: Path | None,
) -> None:
    """Restore a backup from SOURCE into an empty database: a folder, or s3://bucket/prefix.

    The service must not run. Everything is compared with its SHA-256. Documents are stored under other names and take
    their places when all are complete, so that a failure before that changes nothing. Then missing indexes are created
    and migrations applied: a backup of an older version can be restored, one of a newer version is refused. At last,
    clients and companies who were erased after the backup are erased again, by the list in the store.

    It is refused if SECRET_KEYS, or secret.key in the folder --data, is not the master key of the backup. For a new
    embedded database, copy secret.key into the new folder first.

    \b
    coaching-service restore s3://bucket/coaching --identity backup.key --data /var/lib/coaching-service
    Afterwards:
      coaching-service doctor      checks the restored data
      docs/backup.md               what to do about mail and keys since the backup
    """
    settings = settings_with(data)
    chosen = _find(source, name, Decryption(identity))
    require_known(chosen.manifest)
    settings = _with_keys_of(chosen.manifest, settings, allow_missing_keys=allow_missing_keys)
    if chosen.store is not None and not allow_missing_keys:
        require_signature(chosen.manifest, settings.vault())
    own = source if chosen.store else None
    listed = _read_erasures(*([erasures] if erasures else [own, settings.backup_store]))
    total = count_documents(chosen.manifest)

    async def work(services: Services) -> tuple[list[str], Repetition]:
        if await is_running(services):
            raise BackupError("The service runs on this database: stop it, wait ten seconds, and restore again")
        with progress("Restoring", total) as report:
            await restore_backup(services, chosen.documents, chosen.manifest, report, replacing=replace)
        await runtime.make_indexes(services, compares=True)
        applied = await migrations.migrate(services.db, services.vault)
        with progress("Erasing again", len(listed or ())) as report:
            return applied, await repeat_erasures(Operator(services, operator_name()), listed or (), report)

    applied, erased = with_services(settings, work, creates=True, prepares=False)
    click.echo(f"Restored {total} documents of {chosen.manifest['createdAt']} into {settings.mongodb_database}")
    if applied:
        click.echo(f"Applied: {', '.join(applied)}")
    if listed is None:
        click.echo("No list of erasures was read: erase again who was erased since (docs/backup.md)", err=True)
    else:
        click.echo(f"Erased again: {erased.clients} clients, {erased.companies} companies")


def _find(source: str, name: str | None, decryption: Decryption) -> _Backup:
    """Return the backup in a folder of an earlier version, or one of a store. Raises BackupError."""
    if is_own_folder(source):
        manifest = read_folder(source, name)
        return _Backup(manifest, documents_in(Path(source)), None)
    store = open_store(source)
    backups = StoredBackups(store)
    manifest = backups.read(backups.find(name))
    recipients = manifest.get("recipients", [])
    decryption.require(recipients)
    return _Backup(manifest, PartReader(store, decryption, recipients).documents, store)


def _read_erasures(*locations: str | None) -> Sequence[Tombstone] | None:
    """Return the first list of erasures that there is, before anything is changed; None without. Raises BackupError."""
    lists = (erasure.read_stored(open_store(each)) for each in locations if each is not None)
    return next(filter(None, lists), None)


def _with_keys_of(manifest: Manifest, settings: Settings, *, allow_missing_keys: bool) -> Settings:
    """Return the settings with master keys.

    Raises BackupError, before one is created, if the backup has others.
    """
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
