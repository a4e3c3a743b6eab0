"""What a backup consists of: its signed manifest, and parts named by their content, which may be encrypted.

What a backup has stored, the next one does not store again. The names of backups are times. The format of encrypted
files is age (age-encryption.org/v1): the program `age` can decrypt them without this service, and the machine that
makes a backup does not have the private keys.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import zlib
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, TypeVar, cast

from bson import json_util

from coaching_service.core.auth import Vault
from coaching_service.installation.backup.stores import FILE, BackupError, Store, missing_extra

if TYPE_CHECKING:
    from pyrage import x25519

FORMAT = "coaching-service backup"
FOLDER_VERSION = 1  # a folder with a file for each collection, which versions before 0.3 wrote
VERSION = 2  # parts in a store
_LENGTH = 4  # bytes of a BSON document that say how long it is

T = TypeVar("T")
# Called with how many more documents were processed.
Report = Callable[[int], None]


class Part(TypedDict):
    """Some documents of a collection: their SHA-256 and bytes before compression.

    `stored` is the SHA-256 of the file in the store, which can be compared without the private key.
    """

    sha256: str
    documents: int
    bytes: int
    stored: NotRequired[str]


class CollectionEntry(TypedDict):
    """The documents of a collection, their bytes before compression, where they are, and all indexes, except of `_id`.

    In a folder of an earlier version: the name and the SHA-256 of a file. In a store: `parts`.
    """

    name: str
    documents: int
    bytes: int
    file: NotRequired[str]
    sha256: NotRequired[str]
    parts: NotRequired[list[Part]]
    indexes: list[dict[str, Any]]


class Manifest(TypedDict):
    """What a backup contains.

    `createdAt` is the moment that it shows, in UTC. `migrations` are the numbers of the applied migrations.
    `keyFingerprints` identify the master keys of the service, newest first, and reveal nothing about them.
    In a store: `recipients` are the public keys for which the parts are encrypted, and `signature` is made with the
    newest master key.
    """

    format: str
    version: int
    serviceVersion: str
    createdAt: str
    database: str
    migrations: list[int]
    keyFingerprints: list[str]
    collections: list[CollectionEntry]
    recipients: NotRequired[list[str]]
    signature: NotRequired[str]


def format_manifest(manifest: Manifest) -> str:
    """Return a manifest as the text of its file."""
    return json_util.dumps(manifest, json_options=json_util.RELAXED_JSON_OPTIONS, indent=1) + "\n"


def text_to_sign(manifest: Manifest) -> str:
    """Return the text that a manifest signs: itself without the signature."""
    return format_manifest(cast("Manifest", {name: each for name, each in manifest.items() if name != "signature"}))


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a backup that an earlier version made in a folder of its own. Raises BackupError."""
    try:
        data = (folder / FILE).read_bytes()
    except FileNotFoundError:
        raise BackupError(f"{folder} is not a backup: it has no {FILE}") from None
    return parse_manifest(data, str(folder / FILE))


def parse_manifest(data: bytes, origin: str) -> Manifest:
    """Return the manifest in a file, `origin`. Raises BackupError if it is none that this version can read."""
    try:
        manifest: Any = json_util.loads(data.decode("utf-8"))
    except ValueError:
        raise BackupError(f"{origin} is damaged") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BackupError(f"{origin} is not the manifest of a backup")
    if manifest["version"] not in (FOLDER_VERSION, VERSION):
        raise BackupError(
            f"{origin} was made by a newer version of the service, {manifest['serviceVersion']}: use that"
        )
    return cast("Manifest", manifest)


def count_documents(manifest: Manifest) -> int:
    """Return how many documents a backup has."""
    return sum(entry["documents"] for entry in manifest["collections"])


def iterate_documents(file: Path, sha256: str) -> Iterator[bytes]:
    """Iterate over the BSON documents of a file of a folder. Raises BackupError if it is not what was backed up."""
    try:
        with file.open("rb") as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()
    except FileNotFoundError:
        raise BackupError(f"{file} is missing") from None
    if digest != sha256:
        raise BackupError(f"{file} is damaged: it is not the file that was backed up")
    with gzip.open(file) as data:
        while prefix := data.read(_LENGTH):
            yield prefix + data.read(int.from_bytes(prefix, "little") - _LENGTH)


def split_documents(data: bytes) -> Iterator[bytes]:
    """Iterate over BSON documents that are complete."""
    start = 0
    while start < len(data):
        end = start + int.from_bytes(data[start : start + _LENGTH], "little")
        yield data[start:end]
        start = end


# --- Encryption -------------------------------------------------------------------------------------------------------


class Encryption:
    """Encrypts for `recipients`, public keys such as `age1...`; without one it changes nothing."""

    def __init__(self, recipients: Sequence[str]) -> None:
        self.recipients = tuple(sorted(set(recipients)))
        self._keys: list[x25519.Recipient] = []
        if not self.recipients:
            return
        pyrage = _age()
        try:
            self._keys = [pyrage.x25519.Recipient.from_str(each) for each in self.recipients]
        except pyrage.RecipientError:
            raise BackupError(
                "BACKUP_RECIPIENTS has a text that is no public key of age: make one with new-backup-key"
            ) from None

    @property
    def folder(self) -> str:
        """A name for what is encrypted for the same keys, so that no other is taken for it."""
        if not self.recipients:
            return "plain"
        return hashlib.sha256("\n".join(self.recipients).encode()).hexdigest()[:16]

    def encrypt(self, data: bytes) -> bytes:
        """Return `data` as it is stored."""
        if not self._keys:
            return data
        encrypted: bytes = _age().encrypt(data, self._keys)
        return encrypted


class Decryption:
    """Decrypts with the private keys in a file, as `age-keygen` and `new-backup-key` write it; without one, nothing."""

    def __init__(self, file: Path | None) -> None:
        self._keys: list[x25519.Identity] = []
        if file is None:
            return
        pyrage = _age()
        try:
            lines = [line.strip() for line in file.read_text("utf-8").splitlines()]
            self._keys = [pyrage.x25519.Identity.from_str(line) for line in lines if line and line[0] != "#"]
        except OSError as error:
            raise BackupError(f"{file} cannot be read ({error.strerror})") from None
        except (pyrage.IdentityError, UnicodeDecodeError):
            raise BackupError(f"{file} is no file with private keys of age (AGE-SECRET-KEY-1...)") from None

    @property
    def has_keys(self) -> bool:
        """Whether a file with private keys was given."""
        return bool(self._keys)

    def can_decrypt(self, recipients: Sequence[str]) -> bool:
        """Return whether one of the keys decrypts what was encrypted for `recipients`, or nothing was encrypted."""
        return not recipients or bool({str(key.to_public()) for key in self._keys} & set(recipients))

    def require(self, recipients: Sequence[str]) -> None:
        """Raise BackupError if none of the keys decrypts what was encrypted for `recipients`."""
        if not self.can_decrypt(recipients):
            raise BackupError(
                f"The backup is encrypted for {', '.join(recipients)}: name the file with its private key with "
                "--identity"
            )

    def decrypt(self, name: str, data: bytes, recipients: Sequence[str]) -> bytes:
        """Return what was encrypted for `recipients`.

        Raises BackupError with the `name` of the file if it was changed, or is for other keys.
        """
        if not recipients:
            return data
        pyrage = _age()
        try:
            decrypted: bytes = pyrage.decrypt(data, self._keys)
        except pyrage.DecryptError:
            raise BackupError(f"{name} cannot be decrypted: it is damaged, or for another key") from None
        return decrypted


def new_identity() -> tuple[str, str]:
    """Return a new private key and its public key."""
    identity = _age().x25519.Identity.generate()
    return str(identity), str(identity.to_public())


def _age() -> Any:
    """Return the package that encrypts, which is imported when it is needed. Raises BackupError if it is missing."""
    try:
        import pyrage
    except ModuleNotFoundError:
        raise missing_extra() from None
    return pyrage


# --- Parts ------------------------------------------------------------------------------------------------------------


OBJECTS = "objects"
_SMALLEST, _USUAL, _LARGEST = 1 << 20, 4 << 20, 16 << 20  # bytes of a part
_IDENTIFIER = slice(4, 21)  # of a document: the type and name of its first element, `_id`, and 12 bytes of its value
_COMPRESSION = 1  # most of what is stored are photos, which cannot be compressed
_AT_ONCE = 4


def part_name(folder: str, digest: str) -> str:
    """Return the name of a part in a store."""
    return f"{OBJECTS}/{folder}/{digest[:2]}/{digest}"


def part_names(manifest: Manifest) -> Iterator[str]:
    """Yield the names of all parts of a backup."""
    return (name for name, _ in named_parts(manifest))


def named_parts(manifest: Manifest) -> Iterator[tuple[str, Part]]:
    """Yield all parts of a backup with their names."""
    folder = Encryption(manifest.get("recipients", ())).folder
    for entry in manifest["collections"]:
        for part in entry.get("parts", ()):
            yield part_name(folder, part["sha256"]), part


async def divide(batches: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, int]]:
    """Yield documents, in their order, in parts of some MB, with the number of documents of each.

    Where a part ends depends on the documents at its end alone: an inserted or deleted document changes the part that
    has it, and the others are as before.
    """
    part, count = bytearray(), 0
    async for batch in batches:
        for document in split_documents(batch):
            part += document
            count += 1
            # A part ends after a document so rarely that parts have their usual size.
            if len(part) >= _LARGEST or (
                len(part) >= _SMALLEST and zlib.crc32(document[_IDENTIFIER]) < (len(document) << 32) // _USUAL
            ):
                yield bytes(part), count
                part, count = bytearray(), 0
    if part:
        yield bytes(part), count


async def _in_order(works: AsyncIterable[Coroutine[Any, Any, T]]) -> AsyncGenerator[T]:
    """Yield the results of works in their order; some of them run at the same time."""
    running: deque[asyncio.Task[T]] = deque()
    try:
        async for work in works:
            if len(running) == _AT_ONCE:
                yield await running.popleft()
            running.append(asyncio.create_task(work))
        while running:
            yield await running.popleft()
    finally:
        await asyncio.gather(*running, return_exceptions=True)


@dataclass
class PartWriter:
    """Stores and counts parts that a store does not have yet.

    `digests` are the SHA-256 of the files of parts, by name, as far as they are known.
    """

    store: Store
    encryption: Encryption
    report: Report
    copied: int = 0
    copied_bytes: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set, init=False)

    def find_stored(self) -> set[str]:
        """Read the names of the parts that the store has, and return them."""
        self._known = {each.name for each in self.store.iterate(f"{OBJECTS}/{self.encryption.folder}")}
        return self._known

    async def write(self, name: str, indexes: list[dict[str, Any]], batches: AsyncIterator[bytes]) -> CollectionEntry:
        """Store a collection in parts, some at the same time. Raises BackupError."""
        writes = (self._write_part(data, documents) async for data, documents in divide(batches))
        parts = [part async for part in _in_order(writes)]
        return {
            "name": name,
            "parts": parts,
            "documents": sum(part["documents"] for part in parts),
            "bytes": sum(part["bytes"] for part in parts),
            "indexes": indexes,
        }

    async def _write_part(self, data: bytes, documents: int) -> Part:
        part: Part = {
            "sha256": await asyncio.to_thread(_digest, data),
            "documents": documents,
            "bytes": len(data),
        }
        name = part_name(self.encryption.folder, part["sha256"])
        if name not in self._known:
            self.digests[name], size = await asyncio.to_thread(self._store_part, name, data)
            self._known.add(name)
            self.copied, self.copied_bytes = self.copied + 1, self.copied_bytes + size
        if name in self.digests:
            part["stored"] = self.digests[name]
        self.report(documents)
        return part

    def _store_part(self, name: str, data: bytes) -> tuple[str, int]:
        """Store a part; returns the SHA-256 of its file, and its bytes."""
        stored = self.encryption.encrypt(gzip.compress(data, _COMPRESSION, mtime=0))
        self.store.write(name, stored)
        if self.store.read(name) != stored:
            self.store.delete([name])
            raise BackupError(f"{self.store.location}/{name} is damaged: it is not what was stored")
        return _digest(stored), len(stored)


@dataclass
class PartReader:
    """Reads the parts of a backup, and compares them with its manifest."""

    store: Store
    decryption: Decryption
    recipients: Sequence[str]

    async def documents(self, entry: CollectionEntry) -> AsyncIterator[bytes]:
        """Yield the documents of a collection, reading some parts ahead. Raises BackupError if one is damaged."""
        folder = Encryption(self.recipients).folder

        def read(part: Part) -> bytes:
            name = part_name(folder, part["sha256"])
            return self._decode(name, self.store.read(name), part)

        async def reads() -> AsyncIterator[Coroutine[Any, Any, bytes]]:
            for part in entry["parts"]:
                yield asyncio.to_thread(read, part)

        async with aclosing(_in_order(reads())) as parts:
            async for data in parts:
                for document in split_documents(data):
                    yield document

    def compare(self, name: str, stored: bytes, part: Part) -> None:
        """Raise BackupError if the file of a part is damaged; without the private key compare what was stored."""
        if self.decryption.can_decrypt(self.recipients):
            self._decode(name, stored, part)
        elif "stored" in part and _digest(stored) != part["stored"]:
            raise self._damaged(name)

    def _decode(self, name: str, stored: bytes, part: Part) -> bytes:
        place = f"{self.store.location}/{name}"
        try:
            data = gzip.decompress(self.decryption.decrypt(place, stored, self.recipients))
        except (EOFError, gzip.BadGzipFile, zlib.error):
            data = b""
        if _digest(data) != part["sha256"]:
            raise self._damaged(name)
        return data

    def _damaged(self, name: str) -> BackupError:
        return BackupError(f"{self.store.location}/{name} is damaged: it is not what was backed up")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- The backups of a store, and which of them remain -----------------------------------------------------------------


_FOLDER = "backups"
_IN_USE = timedelta(days=1)  # a part that is younger may belong to a backup of another database that is being made
_NAME = "%Y-%m-%dT%H%M%SZ"


def time_of(name: str) -> datetime:
    """Return the time that is the name of a backup."""
    return datetime.strptime(name, _NAME).replace(tzinfo=UTC)


class StoredBackups:
    """The complete backups of a store: a backup has a manifest when all its parts are stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def list_names(self) -> list[str]:
        """Return the names of all backups, oldest first."""
        names = []
        for each in self._store.iterate(_FOLDER):
            name = each.name.removeprefix(f"{_FOLDER}/").removesuffix(".json")
            with suppress(ValueError):  # another file
                time_of(name)
                names.append(name)
        return sorted(names)

    def find(self, name: str | None) -> str:
        """Return the name of the newest backup, or `name` if there is such a backup. Raises BackupError."""
        names = self.list_names()
        if not names:
            raise BackupError(f"{self._store.location} has no backup")
        if name is not None and name not in names:
            raise BackupError(f"{self._store.location} has no backup {name}; the newest is {names[-1]}")
        return name or names[-1]

    def read(self, name: str) -> Manifest:
        """Return the manifest of a backup. Raises BackupError if it is damaged."""
        return parse_manifest(self._store.read(_file(name)), f"{self._store.location}/{_file(name)}")

    def read_newest(self) -> Manifest | None:
        """Return the manifest of the newest backup; None if there is none, or it is damaged."""
        names = self.list_names()
        try:
            return self.read(names[-1]) if names else None
        except BackupError:
            return None

    def write(self, manifest: Manifest, vault: Vault) -> str:
        """Store a signed manifest, and return the name of the backup."""
        name = datetime.fromisoformat(manifest["createdAt"]).strftime(_NAME)
        manifest["signature"] = vault.sign(text_to_sign(manifest))
        self._store.write(_file(name), format_manifest(manifest).encode())
        return name

    def delete(self, names: Collection[str]) -> None:
        """Delete the manifests of backups: their parts remain."""
        self._store.delete([_file(name) for name in names])


def require_signature(manifest: Manifest, vault: Vault) -> None:
    """Raise BackupError if a manifest was not made by a service with one of these master keys, or was changed."""
    if not vault.verify_signature(text_to_sign(manifest), manifest.get("signature", "")):
        raise BackupError("The manifest of the backup was changed, or was not made by this service: do not restore it")


def _file(name: str) -> str:
    return f"{_FOLDER}/{name}.json"


# --- Retention -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Retention:
    """How many days and weeks that have backups retain their newest one."""

    daily: int
    weekly: int

    def select(self, names: Iterable[str]) -> set[str]:
        """Return which of the backups with these names remain."""
        times = {name: time_of(name) for name in sorted(names, reverse=True)}
        periods: list[tuple[int, dict[Hashable, str]]] = [(self.daily, {}), (self.weekly, {})]
        for name, time in times.items():
            for (_, newest), period in zip(periods, (time.date(), time.isocalendar()[:2]), strict=True):
                newest.setdefault(period, name)
        return {name for most, newest in periods for name in list(newest.values())[:most]}


def prune(store: Store, retention: Retention) -> tuple[int, int]:
    """Delete the backups that are not retained, then unused parts; returns how many of both.

    Nothing is deleted if the manifest of a backup that remains cannot be read. Raises BackupError then.
    """
    backups = StoredBackups(store)
    names = backups.list_names()
    remaining = retention.select(names)
    if not remaining:
        raise BackupError(f"{store.location} would have no backup left")
    used = {name for backup in remaining for name in part_names(backups.read(backup))}
    outdated = [name for name in names if name not in remaining]
    backups.delete(outdated)
    limit = datetime.now(UTC) - _IN_USE
    unused = [each.name for each in store.iterate(OBJECTS) if each.name not in used and each.written_at < limit]
    store.delete(unused)
    return len(outdated), len(unused)
