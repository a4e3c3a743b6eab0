"""`coaching-service backup` and `restore`: what is refused, and what a damaged backup is noticed by."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import math
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bson
import pytest
from bson import ObjectId

from coaching_service.core.auth import Vault, new_master_key, parse_master_key
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import registry
from coaching_service.installation import migrations
from coaching_service.installation.backup import runs
from coaching_service.installation.backup.contents import (
    FOLDER_VERSION,
    CollectionEntry,
    Decryption,
    Encryption,
    Manifest,
    PartReader,
    PartWriter,
    StoredBackups,
    format_manifest,
    read_manifest,
)
from coaching_service.installation.backup.runs import (
    EXTENDED_WINDOW,
    Source,
    create_stored_backup,
    documents_in,
    require_keys,
    require_known,
    restore_backup,
)
from coaching_service.installation.backup.stores import BackupError, FolderStore, NewFolder, remove_drafts
from coaching_service.installation.indexes import ensure_indexes
from coaching_service.lifecycle import administration
from coaching_service.lifecycle.administration import Operator
from coaching_service.runtime import make_indexes
from coaching_service.settings import Settings
from tests.support.databases import INDEX_STATE, new_database, remove_documents
from tests.support.service_process import until

INDEXED = {"customers", "fs.chunks", "operatorActions", "workoutTemplates"}
COLLECTIONS = {*sorted(registry)[::5], *INDEXED, "audit"}
CUSTOMERS = [{"_id": ObjectId(), "companyId": ObjectId(), "name": f"Client {number}"} for number in range(2_500)]


def ignore(_: int) -> None:
    """Report nothing."""


@asynccontextmanager
async def source_database(settings: Settings) -> AsyncIterator[Services]:
    """A database with some collections, of which few have indexes: a restore creates those of the backup again."""
    async with new_database(settings, "source", has_indexes=False) as (_, services):
        declared = {name: registry[name].indexes if name in INDEXED else () for name in COLLECTIONS}
        await migrations.record_new_database(services.db)
        await ensure_indexes(services.db, declared)
        yield services


@pytest.fixture(scope="module")
async def database(settings: Settings) -> AsyncIterator[Services]:
    """A database for the backups of all tests."""
    async with source_database(settings) as services:
        yield services


async def fill(services: Services) -> None:
    """Have a database with clients, and with a file of several chunks, and nothing else."""
    await remove_documents(services.db, but_of=(INDEX_STATE, migrations.COLLECTION))
    await services.db["customers"].insert_many(CUSTOMERS)
    chunks = [{"files_id": ObjectId(), "n": number, "data": bytes(100_000)} for number in range(100)]
    await services.db["fs.chunks"].insert_many(chunks)
    await services.db["leases"].insert_one({"_id": "webhooks", "holder": "a process"})


@pytest.fixture
async def source(database: Services) -> Services:
    """A database with clients, and with a file of several chunks."""
    await fill(database)
    return database


@pytest.fixture
async def target(settings: Settings) -> AsyncIterator[Services]:
    """An empty database."""
    async with new_database(settings, "target", has_indexes=False) as (_, services):
        yield services


@pytest.fixture(scope="module")
async def folder(database: Services, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of the database, which tests only read."""
    await fill(database)
    made = tmp_path_factory.mktemp("folder") / "backups" / "monday"
    await back_up(database, made)
    return made


async def back_up(services: Services, folder: Path) -> None:
    """Make a backup in a new folder."""
    with NewFolder(folder) as store:
        await create_stored_backup(services, PartWriter(store, Encryption(()), ignore))
        store.complete()


def manifest_in(folder: Path) -> Manifest:
    """The manifest of the only backup in a folder."""
    stored = StoredBackups(FolderStore(folder))
    return stored.read(stored.find(None))


def documents_of(folder: Path) -> Source:
    """What reads the documents of the backup in a folder."""
    return PartReader(FolderStore(folder), Decryption(None), []).documents


async def write_old_backup(services: Services, folder: Path) -> None:
    """Write a folder as versions before 0.3 did: a file for each collection, and a manifest."""
    os.mkdir(folder)  # noqa: PTH102 - as asynchronous functions may
    entries: list[CollectionEntry] = []
    for name in ("customers", "fs.chunks"):
        documents = [bson.encode(each) async for each in services.db[name].find({})]
        data = gzip.compress(b"".join(documents))
        (folder / f"{name}.bson.gz").write_bytes(data)
        entry: CollectionEntry = {"name": name, "documents": len(documents), "bytes": 0, "indexes": []}
        entries.append({**entry, "file": f"{name}.bson.gz", "sha256": hashlib.sha256(data).hexdigest()})
    manifest: Manifest = {
        "format": "coaching-service backup",
        "version": FOLDER_VERSION,
        "serviceVersion": "0.2.0",
        "createdAt": "2026-11-23T03:15:00+00:00",
        "database": "coaching",
        "migrations": [1, 2, 3],
        "keyFingerprints": services.vault.fingerprints,
        "collections": entries,
    }
    (folder / "manifest.json").write_text(format_manifest(manifest))


async def content(services: Services) -> dict[str, tuple[list[dict[str, Any]], dict[str, Any]]]:
    """The documents and indexes of all collections."""
    names = await services.db.list_collection_names()
    return {
        name: (
            await services.db[name].find({}).sort("_id", 1).to_list(None),
            dict(await services.db[name].index_information()),
        )
        for name in names
    }


async def test_backup_shows_one_moment_while_others_write(
    source: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two documents that always change together are equal in the backup, although one is read after a change."""
    pair = [source.db["audit"], source.db["workoutTemplates"]]  # the first collection and the last one
    for collection in pair:
        await collection.insert_one({"_id": "pair", "number": 0})
    read_collection = runs._back_up

    async def change_then_read(*arguments: Any) -> Any:
        for collection in pair:
            await collection.update_one({"_id": "pair"}, {"$inc": {"number": 1}})
        return await read_collection(*arguments)

    monkeypatch.setattr(runs, "_back_up", change_then_read)
    await back_up(source, tmp_path / "backup")
    entries = [each for each in manifest_in(tmp_path / "backup")["collections"] if each["documents"] == 1]
    read = documents_of(tmp_path / "backup")
    stored = [bson.decode(document) for entry in entries async for document in read(entry)]
    assert [each["number"] for each in stored if each["_id"] == "pair"] == [0, 0]
    assert (await source.db["audit"].find_one({"_id": "pair"}) or {})["number"] > 10


async def test_backup_of_an_earlier_version_is_restored_unless_it_is_damaged(
    source: Services, target: Services, tmp_path: Path
) -> None:
    """A file that was changed, cut off, exchanged for another one, or is missing."""
    await write_old_backup(source, folder := tmp_path / "monday")
    await target.db["customers"].insert_one({"_id": "kept"})
    manifest, file = read_manifest(folder), folder / "customers.bson.gz"
    data = file.read_bytes()
    another = (folder / "fs.chunks.bson.gz").read_bytes()
    for damaged in (data[:200] + bytes([data[200] ^ 1]) + data[201:], data[:-100], another, None):
        file.unlink()
        if damaged is not None:
            file.write_bytes(damaged)
        with pytest.raises(BackupError, match=r"customers\.bson\.gz is (damaged|missing)"):
            await restore_backup(target, documents_in(folder), manifest, ignore, replacing=True)
        assert await target.db["customers"].find({}).to_list(None) == [{"_id": "kept"}]
    file.write_bytes(data)
    await restore_backup(target, documents_in(folder), manifest, ignore, replacing=True)
    assert await target.db["customers"].find({}).sort("_id", 1).to_list(None) == CUSTOMERS


@pytest.mark.parametrize(("text", "said"), [(None, "is not a backup"), ("{", "is damaged"), ("{}", "is not the manif")])
def test_folder_without_a_manifest_is_no_backup(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(BackupError, match=said):
        read_manifest(tmp_path)


async def test_restore_refuses_a_database_with_documents_unless_it_replaces_them(
    target: Services, folder: Path
) -> None:
    await target.db["customers"].insert_one({"_id": "kept"})
    await target.db["other"].insert_one({"_id": 1})
    manifest = manifest_in(folder)
    with pytest.raises(BackupError, match="is not empty"):
        await restore_backup(target, documents_of(folder), manifest, ignore, replacing=False)
    assert await target.db["customers"].count_documents({}) == 1

    await restore_backup(target, documents_of(folder), manifest, ignore, replacing=True)
    names = set(await target.db.list_collection_names())
    assert names == {entry["name"] for entry in manifest["collections"]}
    assert await target.db["customers"].count_documents({}) == 2_500


async def test_failed_restore_changes_nothing_and_can_be_repeated(target: Services, folder: Path) -> None:
    await target.db["customers"].insert_one({"_id": "kept"})
    manifest = manifest_in(folder)
    short: Manifest = json.loads(json.dumps(manifest))
    short["collections"][-1]["documents"] += 1
    with pytest.raises(BackupError, match="documents of workoutTemplates were stored"):
        await restore_backup(target, documents_of(folder), short, ignore, replacing=True)
    assert await target.db["customers"].find({}).to_list(None) == [{"_id": "kept"}]

    await restore_backup(target, documents_of(folder), manifest, ignore, replacing=True)
    assert not [name for name in await target.db.list_collection_names() if name.startswith("restoring.")]


async def test_age_of_the_last_backup_is_that_of_the_moment_it_shows(source: Services, folder: Path) -> None:
    assert await administration.read_age(source, administration.CREATED) == math.inf, "none is recorded"
    manifest = manifest_in(folder)
    await administration.record_backup(source, "root", {**manifest, "createdAt": "2026-11-20T03:15:00+00:00"})
    last = (datetime.now(UTC) - timedelta(hours=3)).isoformat(timespec="seconds")
    await administration.record_backup(source, "root", {**manifest, "createdAt": last})
    await Operator(source, "root").record("companies.listed")
    assert 3 * 3600 <= await administration.read_age(source, administration.CREATED) < 3 * 3600 + 60
    assert await administration.read_age(source, administration.VERIFIED) == math.inf, "none is verified"
    await administration.record_verification(source, "root", 3, 1_000)
    assert 0 <= await administration.read_age(source, administration.VERIFIED) < 60
    stored = await source.db["operatorActions"].find({"action": "backup.created"}).to_list(None)
    assert [(each["operator"], each["documents"] >= 2_600, each["bytes"] > 0) for each in stored] == [
        ("root", True, True)
    ] * 2


async def test_backup_refuses_an_existing_folder(database: Services, folder: Path) -> None:
    with pytest.raises(BackupError, match="exists"):
        await back_up(database, folder)


@pytest.mark.parametrize("refused", [None, errno.EOPNOTSUPP, errno.EMFILE])
def test_a_backup_has_no_names_before_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int | None
) -> None:
    """On NFS, or with too many files, they are in a folder, which is readable by its owner alone; a failure leaves nothing."""
    listed: list[tuple[str, int]] = []
    files = {f"objects/{number}": bytes([number]) * 5_000 for number in range(3)}
    open_file = os.open

    def write(store: NewFolder) -> None:
        for name, data in files.items():
            store.write(name, data)
            listed.extend((each.name, each.stat().st_mode & 0o077) for each in tmp_path.rglob("*"))
        assert {name: store.read(name) for name in files} == files

    def refuse_unnamed(path: Path, flags: int, *mode: int, **options: Any) -> int:
        if refused is not None and flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(refused, "refused")
        return open_file(path, flags, *mode, **options)

    monkeypatch.setattr(os, "open", refuse_unnamed)
    with pytest.raises(RuntimeError), NewFolder(tmp_path / "failed") as store:
        write(store)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with NewFolder(tmp_path / "backup") as store:
        write(store)
        store.complete()
    assert {mode for _, mode in listed} <= {0}
    assert bool(listed) is (refused is not None)
    assert list(tmp_path.iterdir()) == [tmp_path / "backup"]
    assert {name: (tmp_path / "backup" / name).read_bytes() for name in files} == files


def test_what_a_killed_backup_has_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """On NFS, and in the folder of a store: of a process that has ended, and of another machine after a day."""
    here, ended = socket.gethostname(), 2**22 + 1  # no process has a larger number
    names = [f".a.{here}.{ended}.partial", ".b.elsewhere.1.partial", ".c.elsewhere.1.partial", f".d.{here}.1.partial"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "customers.bson.gz").write_text("plain")
    os.utime(tmp_path / names[2], (0, 0))
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / f".x.{here}.{ended}.partial").write_text("plain")
    remove_drafts(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [names[1], names[3], "objects"]
    assert list((tmp_path / "objects").iterdir()) == []


def test_backup_is_readable_by_its_owner_alone_and_no_draft_is_left(folder: Path) -> None:
    assert [each.name for each in folder.parent.iterdir()] == ["monday"]
    assert folder.stat().st_mode & 0o077 == 0


def test_other_keys_and_newer_versions_are_refused(folder: Path) -> None:
    manifest = manifest_in(folder)
    require_known(manifest)
    with pytest.raises(BackupError, match=f"other master keys .{manifest['keyFingerprints'][0]}"):
        require_keys(manifest, Vault([parse_master_key(new_master_key())]))
    newer: Manifest = {**manifest, "migrations": [*manifest["migrations"], migrations.STEPS[-1].number + 1]}
    with pytest.raises(BackupError, match="newer version"):
        require_known(newer)


async def test_history_of_the_database_is_as_long_as_before_after_a_backup(source: Services, tmp_path: Path) -> None:
    """Also after a backup that was killed: the database would retain the changes of a day, and all files it drops."""
    admin, window = source.db.client.admin, "minSnapshotHistoryWindowInSeconds"
    await admin.command({"setParameter": 1, window: EXTENDED_WINDOW})  # as a killed backup leaves it

    await back_up(source, tmp_path / "backup")

    async def is_reset() -> bool:  # other tests of the same database may be making a backup
        return bool((await admin.command({"getParameter": 1, window: 1}))[window] == 300)

    await until(is_reset, "the history is as long as before")


async def test_everything_is_restored_but_the_state_of_processes(
    source: Services, target: Services, tmp_path: Path
) -> None:
    """With the indexes of all collections."""
    await make_indexes(source)
    await back_up(source, folder := tmp_path / "monday")
    manifest = manifest_in(folder)
    counts = {entry["name"]: entry["documents"] for entry in manifest["collections"]}
    assert (counts["customers"], counts["fs.chunks"]) == (2_500, 100)
    assert manifest["keyFingerprints"] == source.vault.fingerprints
    read: list[int] = []
    await restore_backup(target, documents_of(folder), manifest, read.append, replacing=False)
    of_processes = ("failures", "indexState", "leases")
    expected = {name: each for name, each in (await content(source)).items() if name not in of_processes}
    assert await content(target) == expected
    assert sum(read) == sum(counts.values())
