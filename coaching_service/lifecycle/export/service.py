"""Everything of a client's in one ZIP, streamed: records as JSON lines, files, and a manifest with checksums."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import AsyncIterator

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, declared_collections, now
from coaching_service.core.http.downloads import Download
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import file_extension
from coaching_service.people.customers import service as customers

_PIECE = 256 * 1024


async def export(ctx: Context, customer_id: ObjectId) -> Download:
    """A client's export. Raises NotFound, Forbidden before anything is sent."""
    await customers.get_visible(ctx, customer_id)

    def pieces(_start: int, _end: int) -> AsyncIterator[bytes]:
        return _zip(ctx, customer_id)

    return Download("application/zip", f"client-{customer_id}.zip", pieces)


class _Outlet(io.RawIOBase):
    """Where the ZIP is written to, and taken from bit by bit: it never holds more than was written since."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]  # zipfile writes bytes-like objects
        self._waiting += piece
        return len(piece)

    def take(self) -> bytes:
        """What was written since it was last taken."""
        taken = bytes(self._waiting)
        self._waiting.clear()
        return taken


class _Package:
    """A ZIP being written, and the manifest of what is in it."""

    def __init__(self) -> None:
        self.outlet = _Outlet()
        self._zip = zipfile.ZipFile(self.outlet, "w", zipfile.ZIP_DEFLATED)
        self.manifest: list[Document] = []

    async def add(self, name: str, pieces: AsyncIterator[bytes], *, packed: bool = False) -> AsyncIterator[bytes]:
        """Write an entry; gives what can be sent meanwhile. What is `packed` already is not compressed again."""
        digest, size = hashlib.sha256(), 0
        self._zip.compresslevel = 0 if packed else None
        with self._zip.open(name, "w", force_zip64=True) as entry:
            async for piece in pieces:
                digest.update(piece)
                size += len(piece)
                entry.write(piece)
                if len(ready := self.outlet.take()) > 0:
                    yield ready
        self.manifest.append({"name": name, "bytes": size, "sha256": digest.hexdigest()})
        yield self.outlet.take()

    def close(self, customer_id: ObjectId) -> bytes:
        """Write the manifest and the directory; gives the rest."""
        facts = {
            "customerId": customer_id,
            "exportedAt": now(),
            "entries": self.manifest,
        }
        self._zip.writestr("manifest.json", to_json(facts))
        self._zip.close()
        return self.outlet.take()


async def _zip(ctx: Context, customer_id: ObjectId) -> AsyncIterator[bytes]:
    package = _Package()
    for name, collection in sorted(declared_collections().items()):
        if collection.client_field and not collection.secret:
            where = {collection.client_field: customer_id}
            documents = collection.stream(ctx, where, ("_id",), hint=collection.by_client)
            async for ready in package.add(f"records/{name}.jsonl", _lines(documents)):
                yield ready
    async for file in files.iterate_files_of_client(ctx, customer_id):
        if await files.find(ctx.services, file["_id"]) is None:  # replaced since the list was read
            continue
        ending = file_extension(file["contentType"])
        bytes_of = files.read(ctx.services, file, 0, file["length"])
        async for ready in package.add(f"files/{file['_id']}{ending}", bytes_of, packed=True):
            yield ready
    yield package.close(customer_id)


async def _lines(documents: AsyncIterator[Document]) -> AsyncIterator[bytes]:
    """Documents as JSON lines, gathered to pieces."""
    gathered = bytearray()
    async for document in documents:
        gathered += to_json(document) + b"\n"
        if len(gathered) > _PIECE:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered)
