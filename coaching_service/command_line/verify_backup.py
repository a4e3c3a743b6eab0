"""Verifying backups where they are stored."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service.command_line.backup import progress, require_no_name
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.backup.encryption import Decryption
from coaching_service.core.database.backup.manifest import (
    BackupError,
    count_documents,
    read_manifest,
    verify,
)
from coaching_service.core.database.backup.stored import StoredBackups
from coaching_service.core.database.backup.stores import is_own_folder, open_store
from coaching_service.core.database.backup.verification import Verification, verify_backups
from coaching_service.settings import Settings


@click.command("verify-backup")
@click.argument("location", required=False)
@click.option("--at", "name", metavar="NAME", help="Only this backup of a store, as `backups` lists it [all].")
@click.option(
    "--identity",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the private key of encrypted backups.",
)
@data_option
def verify_backup(location: str | None, name: str | None, identity: Path | None, data: Path | None) -> None:
    """Read everything of the backups in LOCATION, and compare it: by default in BACKUP_STORE. No database is used.

    LOCATION is s3://bucket/prefix, a folder, or a folder of one backup. With the private key (--identity), and without
    encryption, the contents are compared with what was backed up; without the key the files with what was stored. The
    signatures are compared if SECRET_KEYS or secret.key in the folder --data is there.

    \b
    Example, each week:
      coaching-service verify-backup || echo "The backups are damaged"
    """
    settings = settings_with(data)
    location = location or settings.backup_store
    if location is None:
        raise click.UsageError("Name a LOCATION, or set BACKUP_STORE")
    if is_own_folder(location):
        _verify_folder(Path(location), name)
        return
    store = open_store(location)
    backups = StoredBackups(store)
    names = [backups.find(name)] if name else backups.list_names() or [backups.find(None)]
    with progress("Verifying", None) as report:
        result = verify_backups(store, names, Decryption(identity), _vault(settings), report)
    if result.problems:
        for problem in result.problems:
            click.echo(problem)
        raise BackupError(f"{location} has {len(result.problems)} damaged or missing files: {result.problems[0]}")
    click.echo(f"{location}: {_describe(result)}")


def _verify_folder(folder: Path, name: str | None) -> None:
    manifest = read_manifest(folder)
    require_no_name(str(folder), name)
    with progress("Verifying", count_documents(manifest)) as report:
        verify(folder, manifest, report)
    click.echo(f"{folder}: {count_documents(manifest)} documents are as they were backed up")


def _vault(settings: Settings) -> Vault | None:
    """Return the master keys, if there are any: the command creates none."""
    is_known = settings.secret_keys or (settings.mongodb_uri is None and (settings.data_dir / "secret.key").exists())
    return settings.with_secret_keys().vault() if is_known else None


def _describe(result: Verification) -> str:
    text = f"{result.backups} backups, {result.parts} parts of {result.size} bytes are complete"
    others = result.parts - result.decrypted - result.unknown
    if result.decrypted:
        text += f", {result.decrypted} with the contents that were backed up"
    if others:
        text += f", {others} as they were stored (their contents need the private key: --identity)"
    if result.unknown:
        text += f", {result.unknown} compared with nothing: they need the private key (--identity)"
    if result.unsigned:
        text += f"; the signatures of {result.unsigned} backups need the master key"
    return text
