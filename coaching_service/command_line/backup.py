"""Making, listing and verifying backups."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from coaching_service import (
    app,  # noqa: F401 - it declares all collections
    runtime,
)
from coaching_service.command_line import running
from coaching_service.command_line.admin import operator_name
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import with_services
from coaching_service.core.changes.numbering import is_running
from coaching_service.core.database.context import Services
from coaching_service.core.database.declared import BY_COMPANY, ShardKey, find_index
from coaching_service.core.database.documents import Documents, registry
from coaching_service.core.ids import ObjectId
from coaching_service.installation import migrations
from coaching_service.installation.backup import contents, runs
from coaching_service.installation.backup.stores import BackupError, NewFolder, Store, is_own_folder, open_store
from coaching_service.installation.embedded import DatabaseUnavailable
from coaching_service.lifecycle import erasure
from coaching_service.lifecycle.administration import Operator, record_backup, record_verification
from coaching_service.lifecycle.erasure import repeat_erasures
from coaching_service.settings import Settings

_folder = click.Path(path_type=Path, file_okay=False)


@contextmanager
def progress(title: str, total: int | None) -> Iterator[contents.Report]:
    """Show a progress bar of documents on a terminal."""
    with running.progress(title, total) as update:
        yield lambda documents: update(advance=documents)


def read_folder(folder: str, name: str | None) -> contents.Manifest:
    """Return the manifest of a folder that is one backup. Raises BackupError if one of a store is named (`--at`)."""
    manifest = contents.read_manifest(Path(folder))
    if name is not None:
        raise BackupError(f"{folder} is one backup: --at names one of a store")
    return manifest


@click.command()
@click.argument("folder", type=_folder, required=False)
@data_option
def backup(folder: Path | None, data: Path | None) -> None:
    """Back up the whole database while the service runs: to BACKUP_STORE, or to the new folder FOLDER.

    All of it is of one moment, with uploaded files and indexes, and is read again and compared. A backup in
    BACKUP_STORE, a folder or a bucket, copies only what earlier ones have not stored, is encrypted for
    BACKUP_RECIPIENTS, and older ones than BACKUP_KEEP_DAILY and BACKUP_KEEP_WEEKLY allow are deleted after it.
    FOLDER has one backup like those in a store. It is not encrypted, and appears when it is complete.

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

    async def work(services: Services) -> contents.Manifest:
        with progress("Backing up", await _count(services)) as report, NewFolder(target) as store:
            _, manifest = await runs.create_stored_backup(
                services, contents.PartWriter(store, contents.Encryption(()), report)
            )
            await asyncio.to_thread(store.complete)
        await record_backup(services, operator_name(), manifest)
        return manifest

    manifest = with_services(settings, work, prepares=False)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    click.echo(f"{folder}: {_describe(manifest)}, {size} bytes, master key {manifest['keyFingerprints'][0]}")


def _back_up_to_store(settings: Settings, location: str) -> None:
    store = open_store(location)
    retention = contents.Retention(settings.backup_keep_daily, settings.backup_keep_weekly)

    async def work(services: Services) -> None:
        async with runs.backing_up(services):
            await erasure.write_missing(services, store)
            with progress("Backing up", await _count(services)) as report:
                writer = contents.PartWriter(store, contents.Encryption(settings.backup_recipients), report)
                name, manifest = await runs.create_stored_backup(services, writer)
            await record_backup(services, operator_name(), manifest)
            click.echo(
                f"{location}: backup {name}, {_describe(manifest)}, copied {writer.copied} parts of "
                f"{writer.copied_bytes} bytes, master key {manifest['keyFingerprints'][0]}"
            )
            outdated, unused = contents.prune(store, retention)
            if outdated or unused:
                click.echo(f"Deleted {outdated} older backups and {unused} unused parts")

    with_services(settings, work, prepares=False)


async def _count(services: Services) -> int:
    names = await services.db.list_collection_names()
    return sum([await services.db[name].estimated_document_count() for name in names])


def _describe(manifest: contents.Manifest) -> str:
    return f"{contents.count_documents(manifest)} documents of {len(manifest['collections'])} collections"


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
    stored = contents.StoredBackups(open_store(location))
    names = stored.list_names()
    with progress("Reading", len(names)) as report:
        for name in names:
            manifest = stored.read(name)
            size = sum(entry["bytes"] for entry in manifest["collections"])
            click.echo(
                f"{name}  {contents.count_documents(manifest)} documents  {size} bytes  "
                f"{manifest['serviceVersion']}  {manifest['keyFingerprints'][0]}"
            )
            report(1)
    if not names:
        click.echo(f"{location} has no backup", err=True)


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
    """Read everything of the backups in LOCATION, and compare it: by default in BACKUP_STORE. It needs no database.

    LOCATION is s3://bucket/prefix, a folder, or one of a version before 0.3. With the private key (--identity), and
    without encryption, the contents are compared with what was backed up; without the key the files with what was
    stored. The signatures are compared if SECRET_KEYS or secret.key in the folder --data is there. If all of
    BACKUP_STORE is complete, and the database is there, that is recorded for the metric verify_age_seconds.

    \b
    Example, each week:
      coaching-service verify-backup || echo "The backups are damaged"
    """
    settings = settings_with(data)
    location = location or settings.backup_store
    if location is None:
        raise click.UsageError("Name a LOCATION, or set BACKUP_STORE")
    if is_own_folder(location):
        manifest = read_folder(location, name)
        count = contents.count_documents(manifest)
        with progress("Verifying", count) as report:
            for entry in manifest["collections"]:
                for _ in contents.iterate_documents(Path(location) / entry["file"], entry["sha256"]):
                    report(1)
        click.echo(f"{location}: {count} documents are as they were backed up")
        return
    store = open_store(location)
    backups = contents.StoredBackups(store)
    names = [backups.find(name)] if name else backups.list_names() or [backups.find(None)]
    # The master keys, if there are any: the command creates none.
    has_keys = settings.secret_keys or (settings.mongodb_uri is None and (settings.data_dir / "secret.key").exists())
    vault = settings.with_secret_keys().vault() if has_keys else None
    with progress("Verifying", None) as report:
        result = runs.verify_backups(store, names, contents.Decryption(identity), vault, report)
    if result.problems:
        for problem in result.problems:
            click.echo(problem)
        raise BackupError(f"{location} has {len(result.problems)} damaged or missing files: {result.problems[0]}")
    click.echo(f"{location}: {_describe_verified(result)}")
    if name is None and location == settings.backup_store and settings.has_database():

        async def work(services: Services) -> None:
            await record_verification(services, operator_name(), result.backups, result.size)

        try:
            with_services(settings, work, prepares=False)
        except (click.ClickException, DatabaseUnavailable) as error:
            click.echo(f"The verification is not recorded: {error}", err=True)


def _describe_verified(result: runs.Verification) -> str:
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


# --- Restoring backups ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Backup:
    """A backup that can be restored; `store` has it, if it is not in a folder of an earlier version."""

    manifest: contents.Manifest
    documents: (
        runs.Source
    )  # compares each part when it is read, before anything takes the place of what the database has
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
    chosen = _find(source, name, contents.Decryption(identity))
    runs.require_known(chosen.manifest)
    key_file = settings.data_dir / "secret.key"
    is_new = settings.mongodb_uri is None and not settings.secret_keys and not key_file.exists()
    if is_new and not allow_missing_keys:  # before a master key is created
        raise BackupError(
            f"{key_file} is missing: copy the secret.key of the backed up service there, or set SECRET_KEYS"
        )
    settings = settings.with_secret_keys()
    if not allow_missing_keys:
        runs.require_keys(chosen.manifest, settings.vault())
        if chosen.store is not None:
            contents.require_signature(chosen.manifest, settings.vault())
    # The first list of erasures that there is, before anything is changed.
    locations = [erasures] if erasures else [source if chosen.store else None, settings.backup_store]
    lists = (erasure.read_stored(open_store(each)) for each in locations if each is not None)
    listed = next(filter(None, lists), None)
    total = contents.count_documents(chosen.manifest)

    async def work(services: Services) -> tuple[list[str], tuple[int, int]]:
        if await is_running(services):
            raise BackupError("The service runs on this database: stop it, wait ten seconds, and restore again")
        with progress("Restoring", total) as report:
            await runs.restore_backup(services, chosen.documents, chosen.manifest, report, replacing=replace)
        await runtime.make_indexes(services, compares=True)
        applied = await migrations.migrate(services.db, services.vault)
        with progress("Erasing again", len(listed or ())) as report:
            return applied, await repeat_erasures(Operator(services, operator_name()), listed or (), report)

    applied, (clients, companies) = with_services(settings, work, creates=True, prepares=False)
    click.echo(f"Restored {total} documents of {chosen.manifest['createdAt']} into {settings.mongodb_database}")
    if applied:
        click.echo(f"Applied: {', '.join(applied)}")
    if listed is None:
        click.echo("No list of erasures was read: erase again who was erased since (docs/backup.md)", err=True)
    else:
        click.echo(f"Erased again: {clients} clients, {companies} companies")


def _find(source: str, name: str | None, decryption: contents.Decryption) -> _Backup:
    """Return the backup in a folder of an earlier version, or one of a store. Raises BackupError."""
    if is_own_folder(source):
        manifest = read_folder(source, name)
        return _Backup(manifest, runs.documents_in(Path(source)), None)
    store = open_store(source)
    backups = contents.StoredBackups(store)
    manifest = backups.read(backups.find(name))
    recipients = manifest.get("recipients", [])
    decryption.require(recipients)
    return _Backup(manifest, contents.PartReader(store, decryption, recipients).documents, store)


# --- Printing the commands that shard the database --------------------------------------------------------------------


class _CompanyId(click.ParamType[ObjectId]):
    name = "ID"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> ObjectId:
        if not ObjectId.is_valid(str(value)):
            self.fail("a company is named by its identifier: 24 hexadecimal digits", param, ctx)
        return ObjectId(str(value))


@click.command()
@click.option("--plan", is_flag=True, required=True, help="Print the commands; nothing is changed.")
@click.option("--zone", help="Print only the commands that bind companies to this zone.")
@click.option("--company", "companies", type=_CompanyId(), multiple=True, help="A company of the zone; repeatable.")
def shard(*, plan: bool, zone: str | None, companies: tuple[ObjectId, ...]) -> None:
    """Print the commands for mongosh that shard the collections of MONGODB_DATABASE as they are declared.

    Run them on a mongos after the service has created the indexes. docs/growing.md says when this is needed.
    """
    del plan
    if bool(zone) != bool(companies):
        raise click.UsageError("--zone and --company are used together")
    database = settings_with().mongodb_database
    if zone:
        lines = list_zone_commands(database, registry, companies, zone)
    else:
        lines = list_sharding_commands(database, registry)
    click.echo("\n".join(lines))


Collections = Mapping[str, Documents[Any]]


def list_sharding_commands(database: str, collections: Collections) -> list[str]:
    """Return the lines that shard `collections` in `database` by their placements; the others as comments."""
    lines = [f"sh.enableSharding({_text(database)})", f"db = db.getSiblingDB({_text(database)})"]
    for name, collection in sorted(collections.items()):
        placement = collection.placement
        if not isinstance(placement, ShardKey):
            lines.append(f"// {name} is not sharded: {placement.reason}")
            continue
        key = _text(placement.pattern)
        if find_index(placement, collection.indexes) is None:
            lines.append(f"db.getCollection({_text(name)}).createIndex({key})")
        lines.append(f"sh.shardCollection({_text(f'{database}.{name}')}, {key})")
    return lines


def list_zone_commands(database: str, collections: Collections, companies: Iterable[ObjectId], zone: str) -> list[str]:
    """Return the lines that bind the documents of `companies` to the shards of `zone`."""
    names = sorted(name for name, each in collections.items() if each.placement == BY_COMPANY)
    return [
        f"sh.updateZoneKeyRange({_text(f'{database}.{name}')}, "
        f"{_bound(company)}, {_bound(_next(company))}, {_text(zone)})"
        for company in companies
        for name in names
    ]


def _next(identifier: ObjectId) -> ObjectId:
    """Return the identifier after this one: the end of a range with this one only."""
    return ObjectId((int.from_bytes(identifier.binary, "big") + 1).to_bytes(12, "big"))


def _bound(company: ObjectId) -> str:
    return f'{{"companyId": ObjectId("{company}")}}'


def _text(value: object) -> str:
    return json.dumps(value)
