"""Parts of a backup in a store, named by their content: what a backup has stored, the next one does not store again."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import zlib
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

from coaching_service.core.database.backup import manifest as backup_manifest
from coaching_service.core.database.backup.encryption import Decryption, Encryption
from coaching_service.core.database.backup.stores import Store

OBJECTS = "objects"
_SMALLEST, _USUAL, _LARGEST = 1 << 20, 4 << 20, 16 << 20  # bytes of a part
_IDENTIFIER = slice(4, 21)  # of a document: the type and name of its first element, `_id`, and 12 bytes of its value
_COMPRESSION = 1  # most of what is stored are photos, which cannot be compressed
_AT_ONCE = 4


def part_name(folder: str, digest: str) -> str:
    """Return the name of a part in a store."""
    return f"{OBJECTS}/{folder}/{digest[:2]}/{digest}"


def part_names(manifest: backup_manifest.Manifest) -> Iterator[str]:
    """Yield the names of all parts of a backup."""
    return (name for name, _ in named_parts(manifest))


def named_parts(manifest: backup_manifest.Manifest) -> Iterator[tuple[str, backup_manifest.Part]]:
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
        for document in backup_manifest.split_documents(batch):
            part += document
            count += 1
            if len(part) >= _LARGEST or (len(part) >= _SMALLEST and _ends_part(document)):
                yield bytes(part), count
                part, count = bytearray(), 0
    if part:
        yield bytes(part), count


def _ends_part(document: bytes) -> bool:
    """Return whether a part ends after a document: so rarely that parts have their usual size."""
    return zlib.crc32(document[_IDENTIFIER]) < (len(document) << 32) // _USUAL


@dataclass
class PartWriter:
    """Stores and counts parts that a store does not have yet.

    `digests` are the SHA-256 of the files of parts, by name, as far as they are known.
    """

    store: Store
    encryption: Encryption
    report: backup_manifest.Report
    copied: int = 0
    copied_bytes: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set, init=False)

    def find_stored(self) -> set[str]:
        """Read the names of the parts that the store has, and return them."""
        self._known = {each.name for each in self.store.iterate(f"{OBJECTS}/{self.encryption.folder}")}
        return self._known

    async def write(self, _: str, batches: AsyncIterator[bytes]) -> backup_manifest.CollectionContent:
        """Store a collection in parts, some at the same time. Raises BackupError."""
        pending: deque[asyncio.Task[backup_manifest.Part]] = deque()
        parts: list[backup_manifest.Part] = []
        try:
            async for data, documents in divide(batches):
                if len(pending) == _AT_ONCE:
                    parts.append(await pending.popleft())
                pending.append(asyncio.create_task(self._write_part(data, documents)))
            while pending:
                parts.append(await pending.popleft())
        finally:
            await asyncio.gather(*pending, return_exceptions=True)
        return {
            "parts": parts,
            "documents": sum(part["documents"] for part in parts),
            "bytes": sum(part["bytes"] for part in parts),
        }

    async def _write_part(self, data: bytes, documents: int) -> backup_manifest.Part:
        part: backup_manifest.Part = {
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
            raise backup_manifest.BackupError(f"{self.store.location}/{name} is damaged: it is not what was stored")
        return _digest(stored), len(stored)


@dataclass
class PartReader:
    """Reads the parts of a backup, and compares them with its manifest."""

    store: Store
    decryption: Decryption
    recipients: Sequence[str]

    async def documents(self, entry: backup_manifest.CollectionEntry) -> AsyncIterator[bytes]:
        """Yield the documents of a collection, reading some parts ahead. Raises BackupError if one is damaged."""
        pending: deque[asyncio.Task[bytes]] = deque()
        try:
            for part in entry["parts"]:
                if len(pending) == _AT_ONCE:
                    for document in backup_manifest.split_documents(await pending.popleft()):
                        yield document
                pending.append(asyncio.create_task(asyncio.to_thread(self._read, part)))
            while pending:
                for document in backup_manifest.split_documents(await pending.popleft()):
                    yield document
        finally:
            await asyncio.gather(*pending, return_exceptions=True)

    def _read(self, part: backup_manifest.Part) -> bytes:
        name = part_name(Encryption(self.recipients).folder, part["sha256"])
        return self._decode(name, self.store.read(name), part)

    def compare(self, name: str, stored: bytes, part: backup_manifest.Part) -> None:
        """Raise BackupError if the file of a part is damaged; without the private key compare what was stored."""
        if self.decryption.can_decrypt(self.recipients):
            self._decode(name, stored, part)
        elif "stored" in part and _digest(stored) != part["stored"]:
            raise self._damaged(name)

    def _decode(self, name: str, stored: bytes, part: backup_manifest.Part) -> bytes:
        place = f"{self.store.location}/{name}"
        try:
            data = gzip.decompress(self.decryption.decrypt(place, stored, self.recipients))
        except (EOFError, gzip.BadGzipFile, zlib.error):
            data = b""
        if _digest(data) != part["sha256"]:
            raise self._damaged(name)
        return data

    def _damaged(self, name: str) -> backup_manifest.BackupError:
        return backup_manifest.BackupError(f"{self.store.location}/{name} is damaged: it is not what was backed up")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
