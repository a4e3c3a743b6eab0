"""Backups in a store: a folder or a bucket, encrypted, with parts that are copied once."""

from __future__ import annotations

import gzip
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import bson
import pytest
from bson import ObjectId

from coaching_service.core.auth import Vault, new_master_key, parse_master_key
from coaching_service.core.database.context import Services
from coaching_service.installation import migrations
from coaching_service.installation.backup.contents import (
    Decryption,
    Encryption,
    Manifest,
    PartReader,
    PartWriter,
    Retention,
    StoredBackups,
    divide,
    new_identity,
    part_names,
    prune,
    require_signature,
)
from coaching_service.installation.backup.runs import backing_up, create_stored_backup, restore_backup
from coaching_service.installation.backup.stores import BackupError, FolderStore, Store, open_store
from coaching_service.settings import Settings
from tests.lifecycle.test_backup import content, ignore, source_database
from tests.support.databases import INDEX_STATE, new_database, remove_documents
from tests.support.s3_server import running_s3_server

PHOTO = 100_000


@pytest.fixture(scope="module")
def s3() -> Iterator[None]:
    """The variables of a server of S3 in the environment."""
    with running_s3_server() as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
async def database(settings: Settings) -> AsyncIterator[Services]:
    """A database for the backups of all tests."""
    async with source_database(settings) as services:
        yield services


@pytest.fixture
async def source(database: Services) -> Services:
    """A database with clients and photos of several MB."""
    await remove_documents(database.db, but_of=(INDEX_STATE, migrations.COLLECTION))
    await database.db["customers"].insert_many(
        [{"_id": ObjectId(), "companyId": ObjectId(), "name": f"Client {number}"} for number in range(500)]
    )
    await database.db["fs.chunks"].insert_many([photo() for _ in range(40)])
    await database.db["leases"].insert_one({"_id": "webhooks", "holder": "a process"})
    return database


@pytest.fixture
async def target(settings: Settings) -> AsyncIterator[Services]:
    """An empty database."""
    async with new_database(settings, "target", has_indexes=False) as (_, services):
        yield services


def photo() -> dict[str, Any]:
    """A piece of a photo, which cannot be compressed."""
    return {"_id": ObjectId(), "files_id": ObjectId(), "n": 0, "data": os.urandom(PHOTO)}


async def back_up(services: Services, store: Store, *recipients: str) -> tuple[str, Manifest, PartWriter]:
    """Make a backup, and return its name, its manifest and what it has copied."""
    writer = PartWriter(store, Encryption(recipients), ignore)
    return *(await create_stored_backup(services, writer)), writer


async def restore(services: Services, store: Store, manifest: Manifest, identity: Path | None = None) -> None:
    """Restore a backup."""
    reader = PartReader(store, Decryption(identity), manifest.get("recipients", []))
    await restore_backup(services, reader.documents, manifest, ignore, replacing=True)


@pytest.fixture
def key(tmp_path: Path) -> tuple[Path, str]:
    """A file with a private key, and the public key."""
    private, public = new_identity()
    file = tmp_path / "backup.key"
    file.write_text(f"# a comment\n{private}\n")
    return file, public


async def test_encrypted_backup_is_restored_from_a_bucket(
    source: Services, target: Services, s3: None, key: tuple[Path, str]
) -> None:
    identity, public = key
    store = open_store(f"s3://backups/{ObjectId()}")
    name, manifest, _ = await back_up(source, store, public)
    assert StoredBackups(store).list_names() == [name]
    stored = StoredBackups(store).read(name)
    require_signature(stored, source.vault)
    await restore(target, store, stored, identity)
    of_processes = ("failures", "indexState", "leases")
    expected = {each: value for each, value in (await content(source)).items() if each not in of_processes}
    assert await content(target) == expected

    parts = {each.name: each.size for each in store.iterate("objects")}
    assert set(parts) == set(part_names(stored))
    assert all(store.read(part).startswith(b"age-encryption.org/v1") for part in parts)
    with pytest.raises(BackupError, match=f"encrypted for {public}.*--identity"):
        Decryption(None).require(manifest["recipients"])
    other = identity.with_name("other.key")
    other.write_text(new_identity()[0])
    with pytest.raises(BackupError, match="cannot be decrypted"):
        await restore(target, store, stored, other)


async def test_second_backup_copies_what_is_new(source: Services, target: Services, tmp_path: Path) -> None:
    """Of 4 MB of photos, one is new and one deleted: only the parts that had them, or have them, are copied."""
    store = FolderStore(tmp_path / "store")
    _, first, writer = await back_up(source, store)
    assert writer.copied_bytes > 40 * PHOTO
    _, again, idle = await back_up(source, store)
    assert again["collections"] == first["collections"]
    assert (idle.copied, idle.copied_bytes) == (0, 0)

    await source.db["fs.chunks"].insert_one(photo())
    await source.db["fs.chunks"].find_one_and_delete({}, sort=[("_id", 1)])
    _, second, writer = await back_up(source, store)
    assert (
        PHOTO
        < writer.copied_bytes
        < sum(max(part["bytes"] for part in entry["parts"]) * 2 for entry in second["collections"] if entry["parts"])
    )
    photos = [
        next(each for each in manifest["collections"] if each["name"] == "fs.chunks") for manifest in (first, second)
    ]
    shared = {part["sha256"] for part in photos[0]["parts"]} & {part["sha256"] for part in photos[1]["parts"]}
    # The photo that was deleted changes the first part, or the first two; the new one changes the last.
    assert len(photos[0]["parts"]) < 4 or shared
    await restore(target, store, second)
    assert await target.db["fs.chunks"].count_documents({}) == 40


async def test_where_a_part_ends_depends_on_its_documents_alone() -> None:
    """A document that is inserted first changes one part, or two; the others are as before."""
    documents = [bson.encode({"_id": ObjectId(), "data": os.urandom(20_000)}) for _ in range(1_000)]

    async def batches(these: list[bytes]) -> AsyncIterator[bytes]:
        for start in range(0, len(these), 77):
            yield b"".join(these[start : start + 77])

    before = [part async for part in divide(batches(documents))]
    assert b"".join(part for part, _ in before) == b"".join(documents)
    assert sum(count for _, count in before) == 1_000
    assert all(len(part) <= (16 << 20) + 20_100 for part, _ in before)
    assert len(before) > 2
    after = [part async for part in divide(batches([bson.encode({"_id": ObjectId()}), *documents]))]
    assert len(set(before) - set(after)) <= 2


async def test_damaged_part_is_noticed_and_changes_nothing(source: Services, target: Services, tmp_path: Path) -> None:
    """A part that was changed, cut off, exchanged for another one, or is missing."""
    store = FolderStore(tmp_path / "store")
    _, manifest, _ = await back_up(source, store)
    name = min(part_names(manifest))
    data = store.read(name)
    await target.db["customers"].insert_one({"_id": "present"})
    another = gzip.compress(bson.encode({"_id": ObjectId(), "name": "Another document"}))
    for damaged in (data[:50] + bytes([data[50] ^ 1]) + data[51:], data[:-20], another, None):
        store.delete([name])
        if damaged is not None:
            store.write(name, damaged)
        with pytest.raises(BackupError, match=name):
            await restore(target, store, manifest)
        assert await target.db["customers"].find({}).to_list(None) == [{"_id": "present"}]


async def test_lost_part_is_copied_again(source: Services, tmp_path: Path) -> None:
    """A part that is gone from the store is no part that it has."""
    store = FolderStore(tmp_path / "store")
    _, manifest, _ = await back_up(source, store)
    store.delete([next(part_names(manifest))])
    assert (await back_up(source, store))[2].copied == 1


async def test_parts_for_a_lost_key_are_not_used_again(source: Services, tmp_path: Path, key: tuple[Path, str]) -> None:
    """After a change of BACKUP_RECIPIENTS everything is encrypted again."""
    store = FolderStore(tmp_path / "store")
    lost = (await back_up(source, store, new_identity()[1]))[2]
    assert (await back_up(source, store, key[1]))[2].copied == lost.copied > 0


async def test_changed_manifest_is_refused(source: Services, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    name, manifest, _ = await back_up(source, store)
    stored = StoredBackups(store).read(name)
    require_signature(stored, source.vault)
    with pytest.raises(BackupError, match="changed"):
        require_signature({**stored, "database": "other"}, source.vault)
    with pytest.raises(BackupError, match="was not made by this service"):
        require_signature(manifest, Vault([parse_master_key(new_master_key())]))


def test_newest_backup_of_each_day_and_week_remains() -> None:
    names = [f"2026-11-{day:02}T{hour:02}1500Z" for day in range(1, 26) for hour in (3, 15)]
    # The 25th is a Wednesday; the weeks end on the 22nd, 15th and 8th.
    assert Retention(3, 4).select(names) == {f"2026-11-{day:02}T151500Z" for day in (25, 24, 23, 22, 15, 8)}
    assert Retention(1, 0).select(names) == {"2026-11-25T151500Z"}
    assert Retention(7, 4).select(["2026-01-05T031500Z"]) == {"2026-01-05T031500Z"}


async def test_outdated_backups_and_their_parts_are_deleted(source: Services, target: Services, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    name, first, _ = await back_up(source, store)
    old = "2026-01-05T031500Z"
    (tmp_path / "store" / "backups" / f"{name}.json").rename(tmp_path / "store" / "backups" / f"{old}.json")
    await source.db["fs.chunks"].delete_many({})
    await source.db["fs.chunks"].insert_one(photo())
    _, second, _ = await back_up(source, store)
    outdated = set(part_names(first)) - set(part_names(second))
    assert outdated
    assert prune(store, Retention(1, 0)) == (1, 0), "parts of a day may belong to a backup that is being made"
    for part in (tmp_path / "store" / "objects").rglob("*"):
        os.utime(part, (0, 0))
    assert prune(store, Retention(1, 0)) == (0, len(outdated))
    assert {each.name for each in store.iterate("objects")} == set(part_names(second))
    await restore(target, store, second)
    assert await target.db["fs.chunks"].count_documents({}) == 1


async def test_one_backup_at_a_time(source: Services) -> None:
    async with backing_up(source):
        with pytest.raises(BackupError, match="Another backup"):
            async with backing_up(replace(source)):
                pass
    async with backing_up(source):
        pass


def test_store_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "deep" / "store")
    assert list(store.iterate("objects")) == []
    store.write("objects/plain/ab/abc", b"data")
    store.write("objects/plain/ab/abc", b"more")
    assert [(each.name, each.size) for each in store.iterate("objects")] == [("objects/plain/ab/abc", 4)]
    for path in (tmp_path / "deep" / "store").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    store.delete(["objects/plain/ab/abc", "objects/none"])
    with pytest.raises(BackupError, match="missing"):
        store.read("objects/plain/ab/abc")


def test_bucket_that_cannot_be_used_is_one_sentence(s3: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackupError, match=r"bucket of s3://unknown/a does not exist"):
        open_store("s3://unknown/a").write("backups/a.json", b"{}")
    with pytest.raises(BackupError, match=r"s3://backups/a/backups/a\.json is missing"):
        open_store("s3://backups/a/").read("backups/a.json")
    with pytest.raises(BackupError, match="has no backup"):
        StoredBackups(open_store("s3://backups/empty")).find(None)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(BackupError, match=r"s3://backups/a cannot be used: ") as caught:
        open_store("s3://backups/a").read("backups/a.json")
    assert "\n" not in str(caught.value)


def test_encrypted_file_has_the_format_of_age(key: tuple[Path, str]) -> None:
    """The format has other implementations; the version and the recipient are those of the specification."""
    identity, public = key
    encrypted = Encryption([public]).encrypt(b"data")
    assert encrypted.splitlines()[0] == b"age-encryption.org/v1"
    assert encrypted.splitlines()[1].startswith(b"-> X25519 ")
    assert Decryption(identity).decrypt("file", encrypted, [public]) == b"data"
