"""A ZIP archive that is written while it is sent: JSON lines, files, and a manifest with checksums."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
from collections.abc import AsyncIterator, Mapping
from typing import Any, NotRequired, TypedDict

from coaching_service.core.http.responses import to_json

_CHUNK_SIZE = 256 * 1024


class ManifestEntry(TypedDict):
    """An entry of the archive: its size in bytes, the SHA-256 checksum of its content, and how many records it has."""

    name: str
    bytes: int
    sha256: str
    records: NotRequired[int]


class _Buffer(io.RawIOBase):
    """The output of the ZIP writer, from which the bytes written so far are taken."""

    def __init__(self) -> None:
        self._content = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        chunk = bytes(data)  # type: ignore[call-overload]  # zipfile writes bytes-like objects
        self._content += chunk
        return len(chunk)

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        content = bytes(self._content)
        self._content.clear()
        return content


class Archive:
    """A ZIP archive being written, and the manifest of its entries."""

    def __init__(self) -> None:
        self.buffer = _Buffer()
        self._zip = zipfile.ZipFile(self.buffer, "w", zipfile.ZIP_DEFLATED)
        self.manifest: list[ManifestEntry] = []

    async def add(self, name: str, chunks: AsyncIterator[bytes], *, compressed: bool = False) -> AsyncIterator[bytes]:
        """Write an entry and yield the bytes of the archive so far; `compressed` content is stored as it is."""
        digest, size = hashlib.sha256(), 0
        self._zip.compresslevel = 0 if compressed else None
        with self._zip.open(name, "w", force_zip64=True) as entry:

            def write(chunk: bytes) -> None:
                digest.update(chunk)
                entry.write(chunk)

            async for chunk in chunks:
                await asyncio.to_thread(write, chunk)  # compressing takes longer than other requests should wait
                size += len(chunk)
                if len(output := self.buffer.take()) > 0:
                    yield output
        self.manifest.append({"name": name, "bytes": size, "sha256": digest.hexdigest()})
        yield self.buffer.take()

    async def add_records(self, name: str, documents: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[bytes]:
        """Write documents as JSON lines; yields the bytes of the archive so far."""
        count = 0

        async def counted() -> AsyncIterator[Mapping[str, Any]]:
            nonlocal count
            async for document in documents:
                count += 1
                yield document

        async for output in self.add(name, _lines(counted())):
            yield output
        self.manifest[-1]["records"] = count

    def close(self, header: Mapping[str, Any]) -> bytes:
        """Write the manifest, which begins with `header`, and the directory; returns the rest of the archive."""
        self._zip.compresslevel = None
        self._zip.writestr("manifest.json", to_json({**header, "entries": self.manifest}))
        self._zip.close()
        return self.buffer.take()


async def _lines(documents: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[bytes]:
    """Yield documents as JSON lines, in chunks."""
    chunk = bytearray()
    async for document in documents:
        chunk += to_json(document) + b"\n"
        if len(chunk) > _CHUNK_SIZE:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)
