"""A ZIP archive that is written while it is sent: JSON lines, files, and a manifest with checksums."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, NotRequired, TypedDict

from coaching_service.core.http.responses import to_json

_CHUNK_SIZE, _BYTES_AT_ONCE = 64 * 1024, 16 * 1024
_MAX_RATIO = 50
_MAX_SIZE = 2_000_000_000  # of an entry with sizes of 32 bits, for which zipfile has a limit of 2 GiB


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


class _BoundedDeflate:
    """Deflates at most to a fiftieth, so that no reader takes an archive of repetitive data for an attack.

    What would become smaller is stored as it is, in blocks of the same stream.
    """

    def __init__(self) -> None:
        self._deflate, self._store = (zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS) for level in (6, 0))
        self._size = self._compressed_size = 0

    def compress(self, data: bytes) -> bytes:
        """Return the next part of the stream."""
        is_too_small = self._size > _MAX_RATIO * self._compressed_size
        compressor = self._store if is_too_small else self._deflate
        # Nothing after a full flush refers to anything before it, so the parts may come from both.
        part = compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)
        self._size += len(data)
        self._compressed_size += len(part)
        return part

    def flush(self) -> bytes:
        """Return the end of the stream."""
        return self._deflate.flush()


class Archive:
    """A ZIP archive being written, and the manifest of its entries."""

    def __init__(self) -> None:
        self.buffer = _Buffer()
        self._zip = zipfile.ZipFile(self.buffer, "w", zipfile.ZIP_DEFLATED)
        self.manifest: list[ManifestEntry] = []

    async def add(self, name: str, chunks: AsyncIterator[bytes], *, compressed: bool = False) -> AsyncIterator[bytes]:
        """Write an entry and yield the bytes of the archive so far; `compressed` content is stored as it is.

        Readers of streams, such as Java's ZipInputStream, expect sizes of 32 bits after an entry that needs no more.
        """
        digest, size = hashlib.sha256(), 0
        self._zip.compresslevel = 0 if compressed else None
        with self._zip.open(name, "w") as entry:
            if not compressed:
                vars(entry)["_compressor"] = _BoundedDeflate()  # zipfile has no other way to set it

            def write(chunk: bytes) -> None:
                digest.update(chunk)
                entry.write(chunk)

            async for chunk in chunks:
                await asyncio.to_thread(write, chunk)  # compressing takes longer than other requests should wait
                size += len(chunk)
                if len(output := self.buffer.take()) > 0:
                    yield output
            vars(entry)["_zip64"] = size > _MAX_SIZE  # zipfile would decide it before the size is known
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
    """Yield documents as JSON lines, in chunks; other requests continue between documents that are read already."""
    chunk, passed = bytearray(), 0
    async for document in documents:
        chunk += to_json(document) + b"\n"
        if len(chunk) > _CHUNK_SIZE:
            yield bytes(chunk)
            chunk.clear()
            passed = 0
        elif len(chunk) - passed > _BYTES_AT_ONCE:
            passed = len(chunk)
            await asyncio.sleep(0)
    yield bytes(chunk)
