"""`verify-backup`: what is in the store is compared with what was backed up, with the private key and without it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from bson import ObjectId

from coaching_service.core.database.context import Services
from coaching_service.installation.backup.contents import (
    Encryption,
    PartWriter,
    StoredBackups,
    named_parts,
    new_identity,
    part_names,
)
from coaching_service.installation.backup.runs import create_stored_backup
from coaching_service.installation.backup.stores import BackupError, Store, open_store
from coaching_service.settings import Settings
from tests.lifecycle.test_backup import ignore, write_old_backup
from tests.support.commands import CommandResult, type_in
from tests.support.databases import new_database
from tests.support.s3_server import running_s3_server


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """The variables of a server of S3."""
    with running_s3_server() as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield variables


@pytest.fixture
async def source(settings: Settings) -> AsyncIterator[Services]:
    """A database with clients and a photo."""
    async with new_database(settings, "source", has_indexes=False) as (_, services):
        await services.db["customers"].insert_many([{"_id": ObjectId(), "name": f"Client {n}"} for n in range(50)])
        await services.db["fs.chunks"].insert_one({"_id": ObjectId(), "data": os.urandom(200_000)})
        yield services


async def back_up(services: Services, store: Store, *recipients: str) -> str:
    """Make a backup, and return its name."""
    writer = PartWriter(store, Encryption(recipients), ignore)
    return (await create_stored_backup(services, writer))[0]


def flip(data: bytes) -> bytes:
    """The data with one other bit in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def fails(*words: str, **environment: str) -> str:
    """The damage that a command lists, which its last sentence names too."""
    result = type_in(*words, **environment)
    assert result.exit_code == 1, result.out
    [damage] = result.out.splitlines()
    assert result.err == f"Error: {words[1]} has 1 damaged or missing files: {damage}\n"
    return damage


async def test_encrypted_backups_in_a_bucket_are_verified_with_and_without_the_private_key(
    source: Services, bucket: dict[str, str], settings: Settings, tmp_path: Path
) -> None:
    private, public = new_identity()
    (tmp_path / "backup.key").write_text(private)
    location = f"s3://backups/{ObjectId()}"
    store = open_store(location)
    type_in("verify-backup", location, **bucket).refused(f"{location} has no backup", exit_code=1)
    name = await back_up(source, store, public)
    with_key = ("verify-backup", location, "--identity", str(tmp_path / "backup.key"))
    keys = {"SECRET_KEYS": ",".join(settings.secret_keys), **bucket}

    parts = sorted(set(part_names(StoredBackups(store).read(name))))
    said = type_in("verify-backup", location, **bucket).ok()
    assert f"1 backups, {len(parts)} parts of " in said
    assert f", {len(parts)} as they were stored (their contents need the private key" in said
    assert "signatures of 1 backups need the master key" in said
    said = type_in(*with_key, **keys).ok()
    assert f", {len(parts)} with the contents that were backed up\n" in said

    (tmp_path / "other.key").write_text(new_identity()[0])
    wrong = type_in("verify-backup", location, "--identity", str(tmp_path / "other.key"), **keys)
    wrong.refused(f"The backup is encrypted for {public}", exit_code=1)
    (tmp_path / "other.key").write_text(f"{new_identity()[0]}\n{private}\n")
    type_in("verify-backup", location, "--identity", str(tmp_path / "other.key"), **keys).ok()

    data, path = store.read(parts[0]), f"{location}/{parts[0]}"
    for words, problem in (
        (("verify-backup", location), "is damaged: it is not what was backed up"),
        (with_key, "cannot be decrypted: it is damaged, or for another key"),
    ):
        store.write(parts[0], flip(data))
        assert fails(*words, **keys) == f"{path} {problem}"
        store.delete(parts[:1])
        assert fails(*words, **keys).endswith(f"/{parts[0]} is missing")
        store.write(parts[0], data)
        type_in(*words, **keys).ok()

    manifest = store.read(f"backups/{name}.json")
    store.write(f"backups/{name}.json", manifest.replace(b'"documents": 50', b'"documents": 51'))
    assert fails("verify-backup", location, **keys).startswith(f"{name}: The manifest of the backup was changed")
    store.write(f"backups/{name}.json", manifest[:-30])
    assert fails("verify-backup", location, "--at", name, **keys).endswith(f"{name}.json is damaged")


async def test_a_backup_says_what_earlier_ones_have_stored(source: Services, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    first = StoredBackups(store).read(await back_up(source, store))
    await source.db["fs.chunks"].insert_one({"_id": ObjectId(), "data": b"new"})
    second = StoredBackups(store).read(await back_up(source, store))
    digests = [{name: part["stored"] for name, part in named_parts(each)} for each in (first, second)]
    assert set(digests[0]) != set(digests[1])
    assert all(digests[1][name] == digest for name, digest in digests[0].items() if name in digests[1])


@pytest.mark.parametrize("damage", [flip, lambda data: data[:-9]], ids=["changed", "cut off"])
async def test_folder_of_an_earlier_version_is_verified(
    source: Services, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    folder = tmp_path / "monday"
    await write_old_backup(source, folder)
    assert "documents are as they were backed up" in type_in("verify-backup", str(folder)).ok()
    for command in ("verify-backup", "restore"):
        type_in(command, str(folder), "--at", "20261126T120000Z").refused("is one backup: --at names one of a store")
    file = folder / "customers.bson.gz"
    file.write_bytes(damage(file.read_bytes()))
    type_in("verify-backup", str(folder)).refused("customers.bson.gz is damaged", exit_code=1)
    type_in("verify-backup", str(tmp_path / "none")).refused("is not a backup", exit_code=1)
    assert not (tmp_path / "none").exists()


def test_missing_bucket_is_one_sentence(bucket: dict[str, str]) -> None:
    """Without the XML of the server, whichever request finds it."""
    store = open_store("s3://missing/coaching")
    for use in (
        lambda: list(store.iterate("backups")),
        lambda: store.read("a"),
        lambda: store.write("a", b"x"),
        lambda: store.delete(["a"]),
    ):
        with pytest.raises(BackupError) as caught:
            use()
        assert str(caught.value) == "The bucket of s3://missing/coaching does not exist: create it"
    for command in ("backups", "verify-backup"):
        type_in(command, "s3://missing/coaching", **bucket).refused("The bucket of s3://missing/coaching", exit_code=1)


async def test_verification_of_the_whole_store_is_recorded(
    source: Services, settings: Settings, tmp_path: Path
) -> None:
    location, uri = str(tmp_path / "store"), {"MONGODB_URI": settings.mongodb_uri, "MONGODB_DATABASE": source.db.name}
    name = await back_up(source, open_store(location))
    keys = {"SECRET_KEYS": ",".join(settings.secret_keys), "BACKUP_STORE": location, **uri}

    async def recorded() -> int:
        return await source.db["operatorActions"].count_documents({"action": "backup.verified"})

    await run_command("verify-backup", "--at", name, **keys)
    assert await recorded() == 0, "one backup of several"
    await run_command("verify-backup", **keys)
    assert await recorded() == 1
    unreachable = await run_command("verify-backup", **{**keys, "MONGODB_URI": "mongodb://127.0.0.1:9/?timeoutMS=100"})
    assert unreachable.err == "The verification is not recorded: The database at 127.0.0.1:9 cannot be reached\n"
    path = next(each for each in (tmp_path / "store").rglob("*") if each.is_file() and "objects" in str(each))
    path.write_bytes(flip(path.read_bytes()))
    assert (await asyncio.to_thread(type_in, "verify-backup", **keys)).exit_code == 1
    assert await recorded() == 1, "it is damaged"


async def run_command(*words: str, **environment: str | None) -> CommandResult:
    """Run a command that succeeds, on a thread: it has an event loop of its own."""
    result = await asyncio.to_thread(type_in, *words, **environment)
    result.ok()
    return result
