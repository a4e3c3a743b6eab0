"""`coaching-service backup` and `restore`: what is refused, and what a damaged backup is noticed by."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import socket
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId

from coaching_service.core.auth.secrets import Vault, new_master_key, parse_master_key
from coaching_service.core.database import migrations
from coaching_service.core.database.backup import creation
from coaching_service.core.database.backup.creation import EXTENDED_WINDOW, create_backup
from coaching_service.core.database.backup.manifest import BackupError, Manifest, Report, read_manifest, verify
from coaching_service.core.database.backup.restoring import documents_in, require_keys, require_known, restore_backup
from coaching_service.core.database.backup.stores import remove_drafts
from coaching_service.core.database.context import Services
from coaching_service.lifecycle import administration
from coaching_service.lifecycle.administration import Operator
from coaching_service.settings import Settings
from tests.support.databases import new_database
from tests.support.service_process import until

CUSTOMERS = [{"_id": ObjectId(), "companyId": ObjectId(), "name": f"Client {number}"} for number in range(2_500)]


def ignore(_: int) -> None:
    """Report nothing."""


@pytest.fixture
async def source(settings: Settings) -> AsyncIterator[Services]:
    """A database with clients, and with a file of several chunks."""
    async with new_database(settings, "source") as (_, services):
        await services.db["customers"].insert_many(CUSTOMERS)
        chunks = [{"files_id": ObjectId(), "n": number, "data": bytes(200_000)} for number in range(100)]
        await services.db["fs.chunks"].insert_many(chunks)
        await services.db["leases"].insert_one({"_id": "webhooks", "holder": "a process"})
        yield services


@pytest.fixture
async def target(settings: Settings) -> AsyncIterator[Services]:
    """An empty database."""
    async with new_database(settings, "target", has_indexes=False) as (_, services):
        yield services


@pytest.fixture
async def folder(source: Services, tmp_path: Path) -> Path:
    """A backup of the database."""
    await create_backup(source, tmp_path / "backups" / "monday", ignore)
    return tmp_path / "backups" / "monday"


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


async def test_everything_is_restored_but_the_state_of_processes(
    source: Services, target: Services, folder: Path
) -> None:
    manifest = read_manifest(folder)
    counts = {entry["name"]: entry["documents"] for entry in manifest["collections"]}
    assert (counts["customers"], counts["fs.chunks"]) == (2_500, 100)
    assert manifest["keyFingerprints"] == source.vault.fingerprints
    read: list[int] = []
    await restore_backup(target, documents_in(folder), manifest, read.append, replacing=False)
    of_processes = ("failures", "indexState", "leases")
    expected = {name: each for name, each in (await content(source)).items() if name not in of_processes}
    assert await content(target) == expected
    assert sum(read) == sum(counts.values())


async def test_backup_shows_one_moment_while_others_write(
    source: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two documents that always change together are equal in the backup, although one is read after a change."""
    pair = [source.db["audit"], source.db["workoutTemplates"]]  # the first collection and the last one
    for collection in pair:
        await collection.insert_one({"_id": "pair", "number": 0})
    read_collection = creation._read_collection

    async def change_then_read(services: Services, name: str, *rest: Any) -> Any:
        for collection in pair:
            await collection.update_one({"_id": "pair"}, {"$inc": {"number": 1}})
        return await read_collection(services, name, *rest)

    monkeypatch.setattr(creation, "_read_collection", change_then_read)
    await create_backup(source, tmp_path / "backup", ignore)
    numbers = []
    for collection in pair:
        data = gzip.decompress((tmp_path / "backup" / f"{collection.name}.bson.gz").read_bytes())
        numbers.append(data[data.index(b"number\0") + 7])
    assert numbers == [0, 0]
    assert (await source.db["audit"].find_one({"_id": "pair"}) or {})["number"] > 20


@pytest.mark.parametrize("damage", ["changed byte", "cut off", "missing", "other documents", "no manifest", "no JSON"])
def test_damaged_backup_is_noticed(folder: Path, damage: str) -> None:
    file = folder / "customers.bson.gz"
    data = file.read_bytes()
    match damage:
        case "changed byte":
            file.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
        case "cut off":
            file.write_bytes(data[:-100])
        case "missing":
            file.unlink()
        case "other documents":
            file.write_bytes((folder / "fs.chunks.bson.gz").read_bytes())
        case "no manifest":
            (folder / "manifest.json").unlink()
        case "no JSON":
            (folder / "manifest.json").write_text("{")
    with pytest.raises(BackupError, match=r"customers\.bson\.gz|manifest\.json"):
        verify(folder.joinpath, read_manifest(folder), ignore)


async def test_restore_refuses_a_database_with_documents_unless_it_replaces_them(
    target: Services, folder: Path
) -> None:
    await target.db["customers"].insert_one({"_id": "kept"})
    await target.db["other"].insert_one({"_id": 1})
    manifest = read_manifest(folder)
    with pytest.raises(BackupError, match="is not empty"):
        await restore_backup(target, documents_in(folder), manifest, ignore, replacing=False)
    assert await target.db["customers"].count_documents({}) == 1

    await restore_backup(target, documents_in(folder), manifest, ignore, replacing=True)
    names = set(await target.db.list_collection_names())
    assert names == {entry["name"] for entry in manifest["collections"]}
    assert await target.db["customers"].count_documents({}) == 2_500


async def test_failed_restore_changes_nothing_and_can_be_repeated(target: Services, folder: Path) -> None:
    await target.db["customers"].insert_one({"_id": "kept"})
    manifest = read_manifest(folder)
    short: Manifest = json.loads(json.dumps(manifest))
    short["collections"][-1]["documents"] += 1
    with pytest.raises(BackupError, match="documents of workoutTemplates were stored"):
        await restore_backup(target, documents_in(folder), short, ignore, replacing=True)
    assert await target.db["customers"].find({}).to_list(None) == [{"_id": "kept"}]

    await restore_backup(target, documents_in(folder), manifest, ignore, replacing=True)
    assert not [name for name in await target.db.list_collection_names() if name.startswith("restoring.")]


async def test_age_of_the_last_backup_is_that_of_the_moment_it_shows(source: Services, folder: Path) -> None:
    assert await administration.read_age(source, administration.CREATED) == math.inf, "none is recorded"
    manifest = read_manifest(folder)
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


async def test_backup_refuses_an_existing_folder(source: Services, folder: Path) -> None:
    with pytest.raises(BackupError, match="exists"):
        await create_backup(source, folder, ignore)


async def test_failed_backup_leaves_nothing(source: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise BackupError("it is not what was written")

    monkeypatch.setattr(creation, "verify", fail)
    with pytest.raises(BackupError):
        await create_backup(source, tmp_path / "backup", ignore)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - as asynchronous functions may


@pytest.mark.parametrize("has_unnamed_files", [True, False])
async def test_killed_backup_leaves_nothing(
    source: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_unnamed_files: bool
) -> None:
    """Nothing has a name before all is complete; on NFS it is in one folder, which is readable by its owner alone."""
    listed: list[tuple[str, int]] = []

    def look(path_of: Callable[[str], Path], manifest: Manifest, report: Report) -> None:
        listed.extend((each.name, each.stat().st_mode & 0o077) for each in tmp_path.rglob("*"))
        verify(path_of, manifest, report)

    open_file = os.open

    def refuse_unnamed(path: Path, flags: int, *mode: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return open_file(path, flags, *mode)

    monkeypatch.setattr(creation, "verify", look)
    if not has_unnamed_files:
        monkeypatch.setattr(os, "open", refuse_unnamed)
    await create_backup(source, tmp_path / "backup", ignore)
    assert {mode for _, mode in listed} <= {0}
    assert bool(listed) is not has_unnamed_files
    assert os.listdir(tmp_path) == ["backup"]  # noqa: PTH208 - as asynchronous functions may
    verify((tmp_path / "backup").joinpath, read_manifest(tmp_path / "backup"), ignore)


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
    manifest = read_manifest(folder)
    require_known(manifest)
    with pytest.raises(BackupError, match=f"other master keys .{manifest['keyFingerprints'][0]}"):
        require_keys(manifest, Vault([parse_master_key(new_master_key())]))
    newer: Manifest = {**manifest, "migrations": [*manifest["migrations"], len(migrations.STEPS) + 1]}
    with pytest.raises(BackupError, match="newer version"):
        require_known(newer)


async def test_history_of_the_database_is_as_long_as_before_after_a_backup(source: Services, tmp_path: Path) -> None:
    """Also after a backup that was killed: the database would retain the changes of a day, and all files it drops."""
    admin, window = source.db.client.admin, "minSnapshotHistoryWindowInSeconds"
    await admin.command({"setParameter": 1, window: EXTENDED_WINDOW})  # as a killed backup leaves it

    await create_backup(source, tmp_path / "backup", ignore)

    async def is_reset() -> bool:  # other tests of the same database may be making a backup
        return bool((await admin.command({"getParameter": 1, window: 1}))[window] == 300)

    await until(is_reset, "the history is as long as before")
