"""A client's data as a ZIP archive, streamed: records as JSON lines, files, and a manifest with checksums."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypedDict

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import declared_collections, now
from coaching_service.core.http.downloads import Download
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import file_extension
from coaching_service.people.customers import service as customers

_CHUNK_SIZE = 256 * 1024


async def export(ctx: Context, customer_id: ObjectId) -> Download:
    """Return the export of a client.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    await customers.get_visible(ctx, customer_id)

    def read_all(_start: int, _end: int) -> AsyncIterator[bytes]:
        return _zip(ctx, customer_id)

    return Download("application/zip", f"client-{customer_id}.zip", read_all)


class ManifestEntry(TypedDict):
    """An entry of the archive: its size in bytes and the SHA-256 checksum of its content."""

    name: str
    bytes: int
    sha256: str


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


class _Archive:
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
            async for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                entry.write(chunk)
                if len(output := self.buffer.take()) > 0:
                    yield output
        self.manifest.append({"name": name, "bytes": size, "sha256": digest.hexdigest()})
        yield self.buffer.take()

    def close(self, customer_id: ObjectId) -> bytes:
        """Write the manifest and the directory; returns the rest of the archive."""
        manifest = {
            "customerId": customer_id,
            "exportedAt": now(),
            "entries": self.manifest,
        }
        self._zip.writestr("manifest.json", to_json(manifest))
        self._zip.close()
        return self.buffer.take()


async def _zip(ctx: Context, customer_id: ObjectId) -> AsyncIterator[bytes]:
    archive = _Archive()
    for name, collection in sorted(declared_collections().items()):
        if collection.client_field and not collection.secret:
            where = {collection.client_field: customer_id}
            documents = collection.stream(ctx, where, ("_id",), hint=collection.by_client)
            async for output in archive.add(f"records/{name}.jsonl", _lines(documents)):
                yield output
    async for file in files.iterate_files_of_client(ctx, customer_id):
        if await files.find(ctx.services, file["_id"]) is None:  # replaced since the list was read
            continue
        ending = file_extension(file["contentType"])
        content = files.read(ctx.services, file, 0, file["length"])
        async for output in archive.add(f"files/{file['_id']}{ending}", content, compressed=True):
            yield output
    yield archive.close(customer_id)


async def _lines(documents: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[bytes]:
    """Yield documents as JSON lines, in chunks."""
    chunk = bytearray()
    async for document in documents:
        chunk += to_json(document) + b"\n"
        if len(chunk) > _CHUNK_SIZE:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)
